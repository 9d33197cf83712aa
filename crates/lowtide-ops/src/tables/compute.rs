//! Operators whose output elements depend on many input elements: products, convolutions, pools, recurrences.
//!
//! ~~~text
//! x[0..n] ──> y[i]     x is still read when y[i] is written: y lies elsewhere
//! ~~~

use super::Table;
use crate::declaration::copies;
use crate::shapes::{
    attention, conv, einsum, like_first, loss, matmul, pool, quantise, recurrent, resize, select,
    signal,
};

/// The rows.
pub(super) static TABLE: Table = &[
    copies("Attention").shape(attention::standard),
    copies("AveragePool").shape(pool::pool),
    copies("BlackmanWindow").shape(signal::window),
    copies("Conv").shape(conv::conv),
    copies("ConvInteger").shape(conv::conv_integer),
    copies("ConvTranspose").shape(conv::conv_transpose),
    copies("DFT").shape(signal::dft),
    copies("DeformConv").shape(conv::deform_conv),
    copies("DequantizeLinear").shape(quantise::dequantize),
    copies("Det").shape(matmul::det),
    copies("DynamicQuantizeLinear").shape(quantise::dynamic),
    copies("Einsum").shape(einsum::einsum),
    copies("GRU").shape(recurrent::recurrent),
    copies("Gemm").shape(matmul::gemm),
    copies("GlobalAveragePool").shape(pool::global),
    copies("GlobalLpPool").shape(pool::global),
    copies("GlobalMaxPool").shape(pool::global),
    copies("HammingWindow").shape(signal::window),
    copies("HannWindow").shape(signal::window),
    copies("LSTM").shape(recurrent::recurrent),
    copies("LpPool").shape(pool::pool),
    copies("MatMul").shape(matmul::matmul),
    copies("MatMulInteger").shape(matmul::integer),
    copies("MaxPool").shape(pool::pool),
    copies("MaxRoiPool").shape(pool::roi),
    copies("MaxUnpool").shape(pool::unpool),
    copies("MelWeightMatrix").shape(signal::mel_weights),
    copies("NegativeLogLikelihoodLoss").shape(loss::likelihood),
    copies("NonMaxSuppression").shape(select::non_max_suppression),
    copies("QLinearConv").shape(conv::qlinear_conv),
    copies("QLinearMatMul").shape(matmul::qlinear),
    copies("QuantizeLinear").shape(quantise::quantize),
    copies("RNN").shape(recurrent::recurrent),
    copies("RoiAlign").shape(resize::roi_align),
    copies("RotaryEmbedding").shape(like_first),
    copies("STFT").shape(signal::stft),
    copies("SoftmaxCrossEntropyLoss").shape(loss::cross_entropy),
];
