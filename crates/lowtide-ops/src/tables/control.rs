//! Control flow, and values that are no tensors.
//!
//! ~~~text
//! c ─ If { then: graph, else: graph } ─ y      y is written by whichever body runs
//! ~~~

use super::Table;
use crate::declaration::copies;
use crate::shapes::{one_bool, one_int, unknown};

/// The rows.
pub(super) static TABLE: Table = Table {
    cost: None,
    rows: &[
        copies("ConcatFromSequence").shape(unknown),
        copies("If"),
        copies("Loop"),
        copies("Optional").shape(unknown),
        copies("OptionalGetElement").shape(unknown),
        copies("OptionalHasElement").shape(one_bool),
        copies("Scan"),
        copies("SequenceAt").shape(unknown),
        copies("SequenceConstruct").shape(unknown),
        copies("SequenceEmpty").shape(unknown),
        copies("SequenceErase").shape(unknown),
        copies("SequenceInsert").shape(unknown),
        copies("SequenceLength").shape(one_int),
        copies("SequenceMap").shape(unknown),
        copies("SplitToSequence").shape(unknown),
    ],
};
