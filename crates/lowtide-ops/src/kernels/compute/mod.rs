//! Kernels whose output elements depend on many input elements: products, convolutions, pools.
//!
//! ~~~text
//! MatMul, Gemm ──────────────> product ──> rten-gemm | row times matrix | plain loops
//! Conv ──> columns of windows ──^     |
//!      └─> taps along rows            |
//! LSTM, GRU, RNN ──> gates of steps ──> product, each step
//! MaxPool, AveragePool ──> taps along rows
//! ~~~

pub(crate) mod attention;
mod conv;
mod conv_transpose;
pub(crate) mod einsum;
mod gemm;
mod matmul;
pub(crate) mod non_max;
mod pool;
mod product;
#[cfg(test)]
mod properties;
mod quantised;
mod recurrent;
mod resize;
pub(crate) mod rotary;
mod row_product;
mod window;

pub(crate) use conv::{channel_sums, conv, integer_conv, quantised_conv};
pub(crate) use conv_transpose::{columns, conv_transpose};
pub(crate) use gemm::gemm;
pub(crate) use matmul::{fused, matmul};
pub(crate) use pool::{average_pool, lp_pool, max_pool};
pub(crate) use quantised::{dequantize, dynamic, integer_product, quantised_product, quantize};
pub(crate) use recurrent::{
    dynamic_quantize_lstm, gru, gru_scratch, lstm, lstm_scratch, quantised_scratch, rnn,
    rnn_scratch,
};
pub(crate) use resize::{resize, upsample};
