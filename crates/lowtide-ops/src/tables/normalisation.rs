//! Operators that scale rows or channels by statistics of their own.
//!
//! ~~~text
//! row of x ──> statistics, kept aside ──> row of y, element by element
//! ~~~
//! A row is read to its end before its first element is written, so the output may lie on input 0. Local
//! response normalisation reads neighbouring channels again later, so it copies.

use super::Table;
use crate::declaration::{Rule, copies, overwrites, row};
use crate::kernels::normalise as kernels;
use crate::shapes::{like_first, normalise};
use crate::work;

/// The rows.
pub(super) static TABLE: Table = Table {
    cost: Some(work::some_each),
    rows: &[
        row("BatchNormalization", Rule::OverwriteWhenInferring)
            .shape(normalise::batch)
            .kernel(kernels::batch),
        overwrites("GroupNormalization", &[0]).shape(like_first).kernel(kernels::group),
        overwrites("Hardmax", &[0]).shape(normalise::along_axis).kernel(kernels::hardmax),
        overwrites("InstanceNormalization", &[0]).shape(like_first).kernel(kernels::instance),
        copies("LRN").shape(like_first).kernel(kernels::local_response),
        overwrites("LayerNormalization", &[0]).shape(normalise::layer).kernel(kernels::layer),
        overwrites("LogSoftmax", &[0]).shape(normalise::along_axis).kernel(kernels::log_softmax),
        overwrites("LpNormalization", &[0]).shape(normalise::along_axis).kernel(kernels::lp),
        overwrites("MeanVarianceNormalization", &[0])
            .shape(like_first)
            .kernel(kernels::mean_variance),
        overwrites("RMSNormalization", &[0]).shape(normalise::rms).kernel(kernels::rms),
        overwrites("SimplifiedLayerNormalization", &[0])
            .shape(normalise::layer)
            .kernel(kernels::rms),
        overwrites("Softmax", &[0]).shape(normalise::along_axis).kernel(kernels::softmax),
    ],
};
