//! Kernels that fold or rank along axes.
//!
//! ~~~text
//! ReduceSum, GlobalAveragePool ──split──> kept | reduced axes ──fold──> one element for each kept place
//! ArgMax, CumSum, TopK         ──lines──> [outer, along, inner]
//! ~~~

mod cumulate;
mod fold;
mod kinds;
mod lines;
pub(crate) mod loss;
mod position;
#[cfg(test)]
mod properties;
mod split;
#[cfg(test)]
mod tests;
mod top_k;

pub(crate) use cumulate::{cum_prod, cum_sum};
pub(crate) use fold::{extreme, fold_row, over_image, over_image_by_p, reduce};
pub(crate) use kinds::{
    LengthL1, LengthL2, LogSum, LogSumExp, Max, Mean, Min, Product, Sum, SumSquare,
};
pub(crate) use lines::Lines;
pub(crate) use position::{arg_max, arg_min};
pub(crate) use split::{Split, check_rank};
pub(crate) use top_k::top_k;
