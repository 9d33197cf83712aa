//! Operators of the domain `com.microsoft`, which optimisers of ONNX Runtime write into files.
//!
//! ~~~text
//! MatMul, Add ──> com.microsoft::FusedMatMul      known, but not yet taken apart: a copy
//! ~~~

use super::Table;
use crate::declaration::{copies, overwrites};
use crate::kernels::elementwise::{activation, trilu};
use crate::kernels::{compute, layout as run, normalise};
use crate::shapes::{
    attention, contrib, conv, embed, image, layout, like_first, matmul, normalise as rules, pad,
    pool, quantise, recurrent, reduce, resize, select, signal, text, unknown,
};
use crate::work;

/// The rows.
pub(super) static TABLE: Table = Table {
    cost: None,
    rows: &[
        copies("Attention").shape(attention::packed).cost(work::packed_attention),
        copies("BeamSearch").shape(contrib::beams),
        copies("BiasAdd").shape(like_first).cost(work::one_each),
        copies("BiasDropout").shape(contrib::bias_dropout).cost(work::one_each),
        overwrites("BiasGelu", &[0])
            .shape(like_first)
            .cost(work::some_each)
            .kernel(activation::bias_gelu),
        copies("BiasSoftmax").shape(like_first).cost(work::some_each),
        copies("BiasSplitGelu").shape(contrib::split_gelu).cost(work::some_each),
        copies("BifurcationDetector").shape(unknown),
        copies("CDist").shape(contrib::distances),
        copies("ConvTransposeWithDynamicPads").shape(contrib::same_rank),
        copies("CropAndResize").shape(resize::crop_and_resize),
        copies("DecoderMaskedMultiHeadAttention").shape(attention::like_query),
        copies("DequantizeBFP").shape(unknown),
        copies("DequantizeLinear").shape(quantise::dequantize).cost(work::some_each),
        copies("DequantizeWithOrder").shape(quantise::to_named),
        copies("DynamicQuantizeLSTM")
            .shape(recurrent::quantised)
            .cost(work::recurrent)
            .scratch(compute::quantised_scratch)
            .kernel(compute::dynamic_quantize_lstm),
        copies("DynamicQuantizeMatMul").shape(matmul::dynamic).cost(work::matmul),
        copies("DynamicTimeWarping").shape(contrib::path),
        copies("EmbedLayerNormalization").shape(embed::embed).cost(work::some_each),
        copies("ExpandDims").shape(contrib::expand_dims).cost(work::nothing),
        overwrites("FastGelu", &[0])
            .shape(like_first)
            .cost(work::some_each)
            .kernel(activation::fast_gelu),
        copies("FusedConv").shape(conv::conv).cost(work::conv),
        copies("FusedGemm").shape(matmul::gemm).cost(work::gemm),
        copies("FusedMatMul").shape(matmul::fused).cost(work::matmul).kernel(compute::fused),
        copies("FusedMatMulActivation").shape(matmul::fused).cost(work::matmul),
        copies("GatedRelativePositionBias").shape(attention::gated_bias),
        copies("GatherBlockQuantized").shape(contrib::gather_blocks).cost(work::nothing),
        copies("GatherND")
            .shape(select::gather_nd)
            .cost(work::nothing)
            .kernel(run::gather::gather_nd)
            .moves(),
        overwrites("Gelu", &[0])
            .shape(like_first)
            .cost(work::some_each)
            .kernel(activation::gelu_exact),
        copies("GemmFastGelu").shape(matmul::matmul).cost(work::matmul),
        copies("GemmFloat8").shape(matmul::gemm_float8).cost(work::gemm),
        copies("GreedySearch").shape(contrib::words),
        copies("GridSample").shape(image::grid_sample),
        copies("GroupNorm").shape(like_first).cost(work::some_each),
        copies("GroupQueryAttention").shape(attention::grouped),
        copies("Inverse").shape(like_first),
        copies("Irfft").shape(signal::irfft),
        copies("LongformerAttention").shape(like_first),
        copies("MatMulBnb4").shape(matmul::packed).cost(work::matmul),
        copies("MatMulFpQ4").shape(unknown),
        copies("MatMulInteger16").shape(matmul::integer).cost(work::matmul),
        copies("MatMulIntegerToFloat").shape(matmul::integer_to_float).cost(work::matmul),
        copies("MatMulNBits").shape(matmul::packed).cost(work::matmul),
        copies("MaxpoolWithMask").shape(pool::pool).cost(work::window),
        copies("MoE").shape(like_first),
        copies("MulInteger").shape(contrib::mul_integer).cost(work::one_each),
        copies("MultiHeadAttention").shape(attention::multi_head).cost(work::attention),
        copies("MurmurHash3").shape(text::hash),
        copies("NGramRepeatBlock").shape(contrib::like_second),
        copies("NhwcConv").shape(conv::conv_channels_last).cost(work::conv),
        copies("NhwcFusedConv").shape(conv::conv_channels_last).cost(work::conv),
        copies("NhwcMaxPool").shape(pool::channels_last).cost(work::window),
        copies("PackedAttention").shape(unknown),
        copies("PackedMultiHeadAttention").shape(unknown),
        copies("Pad").shape(pad::pad).cost(work::nothing),
        copies("QAttention").shape(attention::quantised).cost(work::packed_attention),
        copies("QEmbedLayerNormalization").shape(embed::quantised),
        copies("QGemm").shape(matmul::qgemm).cost(work::gemm),
        copies("QLinearAdd").shape(contrib::quantised_pair).cost(work::some_each),
        copies("QLinearAveragePool").shape(pool::quantised).cost(work::window),
        copies("QLinearConcat").shape(contrib::quantised_concat).cost(work::nothing),
        copies("QLinearConv").shape(conv::qlinear_conv).cost(work::qlinear_conv),
        copies("QLinearGlobalAveragePool").shape(pool::global_quantised).cost(work::one_each_read),
        copies("QLinearLeakyRelu").shape(like_first).cost(work::some_each),
        copies("QLinearMul").shape(contrib::quantised_pair).cost(work::some_each),
        copies("QLinearReduceMean").shape(reduce::reduce).cost(work::one_each_read),
        copies("QLinearSigmoid").shape(like_first).cost(work::some_each),
        copies("QLinearSoftmax").shape(like_first).cost(work::some_each),
        copies("QLinearWhere").shape(contrib::quantised_choice).cost(work::some_each),
        copies("QMoE").shape(like_first),
        copies("QOrderedAttention").shape(unknown),
        copies("QOrderedGelu").shape(like_first),
        copies("QOrderedLayerNormalization").shape(like_first),
        copies("QOrderedMatMul").shape(matmul::qordered).cost(work::matmul),
        copies("QuantizeBFP").shape(unknown),
        copies("QuantizeLinear").shape(quantise::quantize).cost(work::some_each),
        copies("QuantizeWithOrder").shape(quantise::to_int8),
        overwrites("QuickGelu", &[0])
            .shape(like_first)
            .cost(work::some_each)
            .kernel(activation::quick_gelu),
        copies("Range").shape(layout::range).cost(work::nothing),
        copies("ReduceSumInteger").shape(reduce::integer_sum).cost(work::one_each_read),
        copies("RelativePositionBias").shape(attention::position_bias),
        copies("RemovePadding").shape(embed::remove_padding).cost(work::nothing),
        copies("RestorePadding").shape(embed::restore_padding).cost(work::nothing),
        copies("Rfft").shape(signal::rfft),
        overwrites("RotaryEmbedding", &[0])
            .shape(like_first)
            .cost(work::some_each)
            .kernel(compute::rotary::contributed),
        copies("SampleOp").shape(like_first),
        copies("Sampling").shape(contrib::words),
        copies("SkipGroupNorm").shape(rules::skip_group).cost(work::some_each),
        copies("SkipLayerNormalization")
            .shape(rules::skip_layer)
            .cost(work::some_each)
            .kernel(normalise::skip_layer),
        copies("SkipSimplifiedLayerNormalization")
            .shape(rules::skip_layer)
            .cost(work::some_each)
            .kernel(normalise::skip_rms),
        copies("SparseAttention").shape(attention::grouped),
        copies("SparseToDenseMatMul").shape(unknown),
        copies("Tokenizer").shape(unknown),
        copies("TorchEmbedding").shape(select::embedding).cost(work::nothing),
        copies("TransposeMatMul").shape(matmul::fused).cost(work::matmul).kernel(compute::fused),
        copies("Trilu").shape(like_first).cost(work::nothing).kernel(trilu::trilu).moves(),
        copies("UnfoldTensor").shape(contrib::unfold).cost(work::nothing),
        copies("Unique").shape(select::unique_of_vector).cost(work::nothing),
        copies("WhisperBeamSearch").shape(contrib::beams),
        copies("WordConvEmbedding").shape(unknown),
    ],
};
