//! Ranges of bytes that are touched in, who touched a byte last out.
//!
//! ~~~text
//! a is written to [0, 64)       [ a                  ]
//! b is written to [32, 48)      [ a      ][ b ][ a   ]      at byte 40: b
//! ~~~
//! Cost: O(log n) a touch, amortised, and a question.

use lowtide_core::{ResidenceId, RunId, TensorId};
use std::collections::BTreeMap;
use std::ops::Range;

/// Who touched bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// A run wrote a tensor there.
    Wrote { run: RunId, tensor: TensorId, residence: Option<ResidenceId> },
    /// A run had its scratch there.
    Scratch { run: RunId, residence: Option<ResidenceId> },
    /// An input of the graph was copied there.
    Given { tensor: TensorId },
    /// The residence was allocated: what was there before is nobody's.
    Allocated(ResidenceId),
    /// The residence was freed: what was there is nobody's any more.
    Freed(ResidenceId),
}

/// A touch, and when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The index of the event.
    pub(crate) event: usize,
    pub(crate) touch: Touch,
}

/// The last touch of every byte: ranges that do not overlap, by their starts.
#[derive(Debug, Default)]
pub(crate) struct Marks(BTreeMap<usize, (usize, Mark)>);

impl Marks {
    /// Remembers that `range` was touched.
    pub(crate) fn set(&mut self, range: Range<usize>, mark: Mark) {
        if range.is_empty() {
            return;
        }
        self.cut(range.start);
        self.cut(range.end);
        let covered: Vec<usize> = self.0.range(range.clone()).map(|row| *row.0).collect();
        for start in covered {
            self.0.remove(&start);
        }
        self.0.insert(range.start, (range.end, mark));
    }

    /// Who touched this byte last.
    pub(crate) fn at(&self, byte: usize) -> Option<Mark> {
        let (_, &(end, mark)) = self.0.range(..=byte).next_back()?;
        (byte < end).then_some(mark)
    }

    /// Lets a range that goes over `byte` end there, and another one begin.
    fn cut(&mut self, byte: usize) {
        let Some((_, row)) = self.0.range_mut(..byte).next_back() else { return };
        let (end, mark) = *row;
        if byte < end {
            row.0 = byte;
            self.0.insert(byte, (end, mark));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_touch_of_each_byte_is_known() {
        let mut marks = Marks::default();
        let freed = Touch::Freed(ResidenceId::new(0));
        for (event, range) in [0..8, 2..4, 3..6, 5..5, 10..12, 9..11].into_iter().enumerate() {
            marks.set(range, Mark { event, touch: freed });
        }
        let at = |byte| marks.at(byte).map_or(".".to_owned(), |mark| mark.event.to_string());
        assert_eq!((0..13).map(at).collect::<String>(), "00122200.554.");
    }
}
