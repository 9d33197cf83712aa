//! Operators that fold, scan or rank along an axis.
//!
//! ~~~text
//! x[2,3] ──ReduceSum over axis 1──> y[2]
//! ~~~

use super::Table;
use crate::declaration::copies;

/// The rows.
pub(super) static TABLE: Table = &[
    copies("ArgMax"),
    copies("ArgMin"),
    copies("CumProd"),
    copies("CumSum"),
    copies("ReduceL1"),
    copies("ReduceL2"),
    copies("ReduceLogSum"),
    copies("ReduceLogSumExp"),
    copies("ReduceMax"),
    copies("ReduceMean"),
    copies("ReduceMin"),
    copies("ReduceProd"),
    copies("ReduceSum"),
    copies("ReduceSumSquare"),
    copies("TopK"),
];
