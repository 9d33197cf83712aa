//! `LSTM`, `GRU`, `RNN` and `DynamicQuantizeLSTM`: sequences in, the states that a cell goes through out.
//!
//! ~~~text
//! x [steps, batch, input] ──products with w, a block of steps at a time──> gates [block, batch, gates * hidden]
//! h [batch, hidden]       ──product with r, each step──────────────────────^  ──cell──> h, c, a piece of y
//! ~~~
//! A direction is run after the other, each from its own end. Time is that of the input in both: a sequence that is
//! shorter than others ends earlier, or begins later if it is run from its end. Weights are read where they are, so no
//! copy of them is kept. What it costs beside its products: five to ten passes over the gates of a step.

mod activation;
mod gru;
mod layer;
mod lstm;
mod quantised;
mod rnn;
mod scratch;
mod shape;
#[cfg(test)]
mod tests;
mod weights;

pub(crate) use gru::gru;
pub(crate) use lstm::lstm;
pub(crate) use quantised::dynamic_quantize_lstm;
pub(crate) use rnn::rnn;
pub(crate) use scratch::{gru_scratch, lstm_scratch, quantised_scratch, rnn_scratch};

/// Where the inputs are.
mod at {
    pub(super) const X: usize = 0;
    pub(super) const W: usize = 1;
    pub(super) const R: usize = 2;
    pub(super) const BIAS: usize = 3;
    pub(super) const LENS: usize = 4;
    pub(super) const H: usize = 5;
    pub(super) const C: usize = 6;
    pub(super) const PEEPHOLES: usize = 7;
}
