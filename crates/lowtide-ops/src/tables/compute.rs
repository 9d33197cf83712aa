//! Operators whose output elements depend on many input elements: products, convolutions, pools, recurrences.
//!
//! ~~~text
//! x[0..n] ──> y[i]     x is still read when y[i] is written: y lies elsewhere
//! ~~~

use super::Table;
use crate::declaration::copies;

/// The rows.
pub(super) static TABLE: Table = &[
    copies("Attention"),
    copies("AveragePool"),
    copies("BlackmanWindow"),
    copies("Conv"),
    copies("ConvInteger"),
    copies("ConvTranspose"),
    copies("DFT"),
    copies("DeformConv"),
    copies("DequantizeLinear"),
    copies("Det"),
    copies("DynamicQuantizeLinear"),
    copies("Einsum"),
    copies("GRU"),
    copies("Gemm"),
    copies("GlobalAveragePool"),
    copies("GlobalLpPool"),
    copies("GlobalMaxPool"),
    copies("HammingWindow"),
    copies("HannWindow"),
    copies("LSTM"),
    copies("LpPool"),
    copies("MatMul"),
    copies("MatMulInteger"),
    copies("MaxPool"),
    copies("MaxRoiPool"),
    copies("MaxUnpool"),
    copies("MelWeightMatrix"),
    copies("NegativeLogLikelihoodLoss"),
    copies("NonMaxSuppression"),
    copies("QLinearConv"),
    copies("QLinearMatMul"),
    copies("QuantizeLinear"),
    copies("RNN"),
    copies("RoiAlign"),
    copies("RotaryEmbedding"),
    copies("STFT"),
    copies("SoftmaxCrossEntropyLoss"),
];
