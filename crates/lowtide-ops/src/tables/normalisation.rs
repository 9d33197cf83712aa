//! Operators that scale rows or channels by statistics of their own.
//!
//! ~~~text
//! row of x ──> statistics, kept aside ──> row of y, element by element
//! ~~~
//! A row is read to its end before its first element is written, so the output may lie on input 0. Local
//! response normalisation reads neighbouring channels again later, so it copies.

use super::Table;
use crate::declaration::{Rule, copies, overwrites, row};
use crate::shapes::{like_first, normalise};
use crate::work;

/// The rows.
pub(super) static TABLE: Table = Table {
    cost: Some(work::some_each),
    rows: &[
        row("BatchNormalization", Rule::OverwriteWhenInferring).shape(normalise::batch),
        overwrites("GroupNormalization", &[0]).shape(like_first),
        overwrites("Hardmax", &[0]).shape(normalise::along_axis),
        overwrites("InstanceNormalization", &[0]).shape(like_first),
        copies("LRN").shape(like_first),
        overwrites("LayerNormalization", &[0]).shape(normalise::layer),
        overwrites("LogSoftmax", &[0]).shape(normalise::along_axis),
        overwrites("LpNormalization", &[0]).shape(normalise::along_axis),
        overwrites("MeanVarianceNormalization", &[0]).shape(like_first),
        overwrites("RMSNormalization", &[0]).shape(normalise::rms),
        overwrites("SimplifiedLayerNormalization", &[0]).shape(normalise::layer),
        overwrites("Softmax", &[0]).shape(normalise::along_axis),
    ],
};
