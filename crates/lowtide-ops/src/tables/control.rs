//! Control flow, and values that are no tensors.
//!
//! ~~~text
//! c ─ If { then: graph, else: graph } ─ y      y is written by whichever body runs
//! ~~~

use super::Table;
use crate::declaration::copies;

/// The rows.
pub(super) static TABLE: Table = &[
    copies("ConcatFromSequence"),
    copies("If"),
    copies("Loop"),
    copies("Optional"),
    copies("OptionalGetElement"),
    copies("OptionalHasElement"),
    copies("Scan"),
    copies("SequenceAt"),
    copies("SequenceConstruct"),
    copies("SequenceEmpty"),
    copies("SequenceErase"),
    copies("SequenceInsert"),
    copies("SequenceLength"),
    copies("SequenceMap"),
    copies("SplitToSequence"),
];
