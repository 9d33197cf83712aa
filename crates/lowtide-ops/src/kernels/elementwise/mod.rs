//! Kernels that calculate element i of the output from element i of each input.
//!
//! ~~~text
//! a  [4, 3]  ─┐  a piece of each input,      y[i] = a[i] + b[i]
//! b     [3]  ─┴─ broadcast, side by side ──> for a piece of y ──> y [4, 3]
//! ~~~
//! Inputs come a piece at a time (`reader`), loops run over pieces (`apply`), and what stands in a loop is one function
//! from elements to an element, written once for all types that can do it (`numeric`). An input that lies in the output
//! is copied out a piece at a time before the piece is written; so where an input lies changes no bit of the result.

#![expect(clippy::unnecessary_wraps, reason = "what makes a kernel has the signature of a rule")]

pub(crate) mod activation;
mod apply;
pub(crate) mod arithmetic;
pub(crate) mod cast;
pub(crate) mod choose;
mod functions;
pub(crate) mod logic;
pub(crate) mod math;
pub(crate) mod numeric;
pub(crate) mod power;
#[cfg(test)]
mod properties;
mod reader;
pub(crate) mod trilu;
pub(crate) mod variadic;

pub(crate) use functions::Float;
