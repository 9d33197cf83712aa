//! Operators that scale rows or channels by statistics of their own.
//!
//! ~~~text
//! row of x ──> statistics, kept aside ──> row of y, element by element
//! ~~~
//! A row is read to its end before its first element is written, so the output may lie on input 0. Local
//! response normalisation reads neighbouring channels again later, so it copies.

use super::Table;
use crate::declaration::{Rule, copies, overwrites, row};

/// The rows.
pub(super) static TABLE: Table = &[
    row("BatchNormalization", Rule::OverwriteWhenInferring),
    overwrites("GroupNormalization", &[0]),
    overwrites("Hardmax", &[0]),
    overwrites("InstanceNormalization", &[0]),
    copies("LRN"),
    overwrites("LayerNormalization", &[0]),
    overwrites("LogSoftmax", &[0]),
    overwrites("LpNormalization", &[0]),
    overwrites("MeanVarianceNormalization", &[0]),
    overwrites("RMSNormalization", &[0]),
    overwrites("SimplifiedLayerNormalization", &[0]),
    overwrites("Softmax", &[0]),
];
