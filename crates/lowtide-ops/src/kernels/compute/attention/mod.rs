//! Attention: queries, keys and values in, for each query the mean of the values, weighed by how well their keys fit.
//!
//! ~~~text
//! q [rows, size] x k^T [size, total] ──mask, softcap──> scores ──softmax──> weights x v [total, v_size] ──> y [rows, v_size]
//!                                                      [rows, total]: the scratch, a block of rows of one head at a time
//! ~~~
//! No more than 64 rows of scores exist at once, so that long sequences need little memory. Heads are walked one after the
//! other; the products inside use several threads if there are any.
//! Source: Vaswani and others, Attention is all you need, 2017.

mod cache;
mod heads;
mod mask;
mod standard;
#[cfg(test)]
mod tests;

pub(crate) use standard::{attention, scores};
