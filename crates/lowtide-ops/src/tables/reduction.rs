//! Operators that fold, scan or rank along an axis.
//!
//! ~~~text
//! x[2,3] ──ReduceSum over axis 1──> y[2]
//! ~~~

use super::Table;
use crate::declaration::copies;
use crate::shapes::{like_first, reduce};
use crate::work;

/// The rows.
pub(super) static TABLE: Table = Table {
    cost: Some(work::one_each_read),
    rows: &[
        copies("ArgMax").shape(reduce::position),
        copies("ArgMin").shape(reduce::position),
        copies("CumProd").shape(like_first),
        copies("CumSum").shape(like_first),
        copies("ReduceL1").shape(reduce::reduce),
        copies("ReduceL2").shape(reduce::reduce),
        copies("ReduceLogSum").shape(reduce::reduce),
        copies("ReduceLogSumExp").shape(reduce::reduce),
        copies("ReduceMax").shape(reduce::max),
        copies("ReduceMean").shape(reduce::reduce),
        copies("ReduceMin").shape(reduce::min),
        copies("ReduceProd").shape(reduce::prod),
        copies("ReduceSum").shape(reduce::sum),
        copies("ReduceSumSquare").shape(reduce::reduce),
        copies("TopK").shape(reduce::top_k),
    ],
};
