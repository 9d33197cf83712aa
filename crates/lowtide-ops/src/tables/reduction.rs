//! Operators that fold, scan or rank along an axis.
//!
//! ~~~text
//! x[2,3] ──ReduceSum over axis 1──> y[2]
//! ~~~

use super::Table;
use crate::declaration::copies;
use crate::kernels::reduce as kernels;
use crate::shapes::{like_first, reduce};
use crate::{scratch, work};

/// The rows.
pub(super) static TABLE: Table = Table {
    cost: Some(work::one_each_read),
    rows: &[
        copies("ArgMax").shape(reduce::position).kernel(kernels::arg_max),
        copies("ArgMin").shape(reduce::position).kernel(kernels::arg_min),
        copies("CumProd").shape(like_first).kernel(kernels::cum_prod),
        copies("CumSum").shape(like_first).kernel(kernels::cum_sum),
        copies("ReduceL1").shape(reduce::reduce).kernel(kernels::reduce::<kernels::LengthL1>),
        copies("ReduceL2").shape(reduce::reduce).kernel(kernels::reduce::<kernels::LengthL2>),
        copies("ReduceLogSum").shape(reduce::reduce).kernel(kernels::reduce::<kernels::LogSum>),
        copies("ReduceLogSumExp")
            .shape(reduce::reduce)
            .kernel(kernels::reduce::<kernels::LogSumExp>),
        copies("ReduceMax").shape(reduce::max).kernel(kernels::extreme::<kernels::Max>),
        copies("ReduceMean").shape(reduce::reduce).kernel(kernels::reduce::<kernels::Mean>),
        copies("ReduceMin").shape(reduce::min).kernel(kernels::extreme::<kernels::Min>),
        copies("ReduceProd").shape(reduce::prod).kernel(kernels::reduce::<kernels::Product>),
        copies("ReduceSum").shape(reduce::sum).kernel(kernels::reduce::<kernels::Sum>),
        copies("ReduceSumSquare")
            .shape(reduce::reduce)
            .kernel(kernels::reduce::<kernels::SumSquare>),
        copies("TopK").shape(reduce::top_k).scratch(scratch::line).kernel(kernels::top_k),
    ],
};
