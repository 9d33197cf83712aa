//! What operators mean: a model in, a [`Graph`](lowtide_core::Graph) with sizes and sharing out.
//!
//! ~~~text
//! Model: x [batch, 64] ─ Relu ─ y      ──resolve──>   x 2 KiB ─ Relu ─ y 2 KiB, y may lie on x
//!                                      batch = 8
//! ~~~
//! Each operator type has one row in one of the tables by family: how its output shares memory with its inputs,
//! what shapes its outputs have, how much it calculates. A type without a row is planned too: it shares nothing,
//! keeps the shapes that the file declares, and is counted among the unknown ones.

#![forbid(unsafe_code)]

mod config;
mod control;
mod cost;
mod declaration;
mod dim_text;
mod error;
mod infer;
mod inside;
mod kernels;
mod known;
mod late;
mod machine;
#[cfg(test)]
mod page;
mod prepare;
#[cfg(test)]
mod properties;
mod resolve;
mod scratch;
mod shapes;
mod sharing;
mod sizes;
mod tables;
#[cfg(test)]
mod testing;
mod widened;
mod work;

pub(crate) use lowtide_core::operator::{call, expr, fact};

pub use config::{ResolveConfig, dim_names, unused_dims};
pub use cost::Cost;
pub use error::ResolveError;
pub use machine::Machine;
pub use prepare::{PrepareError, prepare};
pub use resolve::{Resolved, resolve};
pub use tables::standard;
