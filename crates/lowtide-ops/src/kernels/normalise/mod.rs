//! Kernels that scale rows or channels by statistics of their own.
//!
//! ~~~text
//! row of x ──copied, unless it is there already──> row of y ──statistics──> row of y, in place
//! ~~~
//! Each row is worked on where it will stay, so it does not matter whether the output lies on the input.

mod batch;
mod groups;
mod layer;
mod local;
mod lp;
mod mean_variance;
mod place;
mod skip;
mod softmax;
mod statistics;
#[cfg(test)]
mod tests;

pub(crate) use batch::batch;
pub(crate) use groups::{group, instance};
pub(crate) use layer::{layer, rms};
pub(crate) use local::local_response;
pub(crate) use lp::lp;
pub(crate) use mean_variance::mean_variance;
pub(crate) use place::each_part;
pub(crate) use skip::{skip_layer, skip_rms};
pub(crate) use softmax::{hardmax, log_softmax, row_of_shares, softmax};
