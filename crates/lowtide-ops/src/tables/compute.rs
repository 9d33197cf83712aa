//! Operators whose output elements depend on many input elements: products, convolutions, pools, recurrences.
//!
//! ~~~text
//! x[0..n] ──> y[i]     x is still read when y[i] is written: y lies elsewhere
//! ~~~

use super::Table;
use crate::declaration::{copies, overwrites};
use crate::kernels::{compute, reduce};
use crate::shapes::{
    attention, conv, einsum, like_first, loss, matmul, pool, quantise, recurrent, resize, select,
    signal,
};
use crate::work;

/// The rows.
pub(super) static TABLE: Table = Table {
    cost: None,
    rows: &[
        copies("Attention")
            .shape(attention::standard)
            .cost(work::attention)
            .scratch(compute::attention::scores)
            .kernel(compute::attention::attention),
        copies("AveragePool").shape(pool::pool).cost(work::window).kernel(compute::average_pool),
        copies("BlackmanWindow").shape(signal::window).cost(work::some_each),
        copies("Conv").shape(conv::conv).cost(work::conv).kernel(compute::conv),
        copies("ConvInteger")
            .shape(conv::conv_integer)
            .cost(work::conv)
            .kernel(compute::integer_conv),
        copies("ConvTranspose")
            .shape(conv::conv_transpose)
            .cost(work::conv_transpose)
            .scratch(compute::columns)
            .kernel(compute::conv_transpose),
        copies("DFT").shape(signal::dft),
        copies("DeformConv").shape(conv::deform_conv).cost(work::conv),
        copies("DequantizeLinear")
            .shape(quantise::dequantize)
            .cost(work::some_each)
            .kernel(compute::dequantize),
        copies("Det").shape(matmul::det),
        copies("DynamicQuantizeLinear")
            .shape(quantise::dynamic)
            .cost(work::some_each)
            .kernel(compute::dynamic),
        copies("Einsum").shape(einsum::einsum).cost(work::einsum).kernel(compute::einsum::einsum),
        copies("GRU")
            .shape(recurrent::recurrent)
            .cost(work::recurrent)
            .scratch(compute::gru_scratch)
            .kernel(compute::gru),
        copies("Gemm").shape(matmul::gemm).cost(work::gemm).kernel(compute::gemm),
        copies("GlobalAveragePool")
            .shape(pool::global)
            .cost(work::one_each_read)
            .kernel(reduce::over_image::<reduce::Mean>),
        copies("GlobalLpPool")
            .shape(pool::global)
            .cost(work::one_each_read)
            .kernel(reduce::over_image_by_p),
        copies("GlobalMaxPool")
            .shape(pool::global)
            .cost(work::one_each_read)
            .kernel(reduce::over_image::<reduce::Max>),
        copies("HammingWindow").shape(signal::window).cost(work::some_each),
        copies("HannWindow").shape(signal::window).cost(work::some_each),
        copies("LSTM")
            .shape(recurrent::recurrent)
            .cost(work::recurrent)
            .scratch(compute::lstm_scratch)
            .kernel(compute::lstm),
        copies("LpPool").shape(pool::pool).cost(work::window).kernel(compute::lp_pool),
        copies("MatMul").shape(matmul::matmul).cost(work::matmul).kernel(compute::matmul),
        copies("MatMulInteger")
            .shape(matmul::integer)
            .cost(work::matmul)
            .kernel(compute::integer_product),
        copies("MaxPool").shape(pool::pool).cost(work::window).kernel(compute::max_pool),
        copies("MaxRoiPool").shape(pool::roi).cost(work::some_each),
        copies("MaxUnpool").shape(pool::unpool).cost(work::one_each_read),
        copies("MelWeightMatrix").shape(signal::mel_weights).cost(work::some_each),
        copies("NegativeLogLikelihoodLoss")
            .shape(loss::likelihood)
            .cost(work::one_each_read)
            .kernel(reduce::loss::likelihood),
        copies("NonMaxSuppression")
            .shape(select::non_max_suppression)
            .measure(compute::non_max::count)
            .scratch(compute::non_max::order)
            .kernel(compute::non_max::non_max_suppression),
        copies("QLinearConv")
            .shape(conv::qlinear_conv)
            .cost(work::qlinear_conv)
            .scratch(compute::channel_sums)
            .kernel(compute::quantised_conv),
        copies("QLinearMatMul")
            .shape(matmul::qlinear)
            .cost(work::matmul)
            .kernel(compute::quantised_product),
        copies("QuantizeLinear")
            .shape(quantise::quantize)
            .cost(work::some_each)
            .kernel(compute::quantize),
        copies("RNN")
            .shape(recurrent::recurrent)
            .cost(work::recurrent)
            .scratch(compute::rnn_scratch)
            .kernel(compute::rnn),
        copies("RoiAlign").shape(resize::roi_align).cost(work::some_each),
        overwrites("RotaryEmbedding", &[0])
            .shape(like_first)
            .cost(work::some_each)
            .kernel(compute::rotary::rotary),
        copies("STFT").shape(signal::stft),
        copies("SoftmaxCrossEntropyLoss")
            .shape(loss::cross_entropy)
            .cost(work::some_each)
            .kernel(reduce::loss::cross_entropy),
    ],
};
