//! [`Segments`]: what each range of bytes holds, as disjoint segments in order.
//!
//! ~~~text
//! set [16,48) = b:    [0 ──── a ──── 64)    becomes    [0 a 16)[16 ─ b ─ 48)[48 a 64)
//! ~~~
//! Cost: O(log n) for each segment touched; a write leaves at most two pieces behind, so n writes touch O(n).

use crate::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

/// Memory that does not touch other memory: an arena, one buffer of a pool, one tensor of the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Region {
    Space(u32),
    Pooled(u32),
    External(u32),
}

/// A byte of some memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    pub(super) region: Region,
    pub(super) offset: u64,
}

/// A range of bytes of one region; never empty where it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: Address,
    pub(super) end: u64,
}

impl Range {
    pub(super) fn new(start: Address, bytes: Option<Bytes>) -> Self {
        let end = bytes.map_or(u64::MAX, |bytes| start.offset.saturating_add(bytes.0));
        Self { start, end }
    }

    pub(super) fn len(self) -> u64 {
        self.end - self.start.offset
    }

    /// What lies in both; empty, at some place, if nothing does.
    pub(super) fn common(self, other: Self) -> Self {
        let is_one_region = self.start.region == other.start.region;
        let start = self.start.offset.max(other.start.offset);
        let end = if is_one_region { self.end.min(other.end).max(start) } else { start };
        Self { start: self.at(start), end }
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.common(other).len() > 0
    }

    fn at(self, offset: u64) -> Address {
        Address { region: self.start.region, offset }
    }
}

/// Disjoint segments, each with a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments<T> {
    /// Start of each segment: its end and value.
    rows: BTreeMap<Address, (u64, T)>,
}

/// What lies where something else was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<T> {
    Nothing,
    Other(T),
}

impl<T: Copy + PartialEq> Segments<T> {
    pub(super) fn new() -> Self {
        Self { rows: BTreeMap::new() }
    }

    /// All segments that overlap `range`, clipped to it.
    pub(super) fn overlapping(&self, range: Range) -> impl Iterator<Item = (Range, T)> + '_ {
        let before = self.rows.range((Unbounded, Excluded(range.start))).next_back();
        let within = self.rows.range((Included(range.start), Excluded(range.at(range.end))));
        before.into_iter().chain(within).filter_map(move |(&start, &(end, value))| {
            let touches =
                start.region == range.start.region && end > range.start.offset && range.len() > 0;
            let start = start.max(range.start);
            touches.then_some((Range { start, end: end.min(range.end) }, value))
        })
    }

    /// Sets the bytes of `range`, which may be empty. Neighbours of the same value become one segment.
    pub(super) fn set(&mut self, range: Range, value: T) {
        self.clear(range);
        if range.len() == 0 {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        if let Some(&(next_end, next)) = self.rows.get(&range.at(end))
            && next == value
        {
            self.rows.remove(&range.at(end));
            end = next_end;
        }
        if let Some((&before, &(reached, previous))) = self.rows.range(..start).next_back()
            && (before.region, reached, previous) == (start.region, start.offset, value)
        {
            start = before;
        }
        self.rows.insert(start, (end, value));
    }

    /// Forgets the bytes of `range`; returns how many were set.
    pub(super) fn clear(&mut self, range: Range) -> u64 {
        let touched: Vec<(Range, T)> = self.overlapping(range).collect();
        for &(part, value) in &touched {
            self.cut(part, value);
        }
        touched.iter().map(|(part, _)| part.len()).sum()
    }

    /// Takes `part` out of the one segment that it lies in.
    fn cut(&mut self, part: Range, value: T) {
        let (&start, &(end, _)) = self
            .rows
            .range((Unbounded, Included(part.start)))
            .next_back()
            .expect("a part lies in a segment");
        self.rows.remove(&start);
        if start < part.start {
            self.rows.insert(start, (part.start.offset, value));
        }
        if part.end < end {
            self.rows.insert(part.at(part.end), (end, value));
        }
    }

    /// The first thing in `range` that `is_right` does not take, told of each segment and its value.
    pub(super) fn first_other(
        &self,
        range: Range,
        mut is_right: impl FnMut(Range, T) -> bool,
    ) -> Option<Found<T>> {
        let mut reached = range.start.offset;
        for (part, value) in self.overlapping(range) {
            if part.start.offset > reached {
                return Some(Found::Nothing);
            }
            if !is_right(part, value) {
                return Some(Found::Other(value));
            }
            reached = part.end;
        }
        (reached < range.end).then_some(Found::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> Range {
        Range { start: Address { region: Region::Space(0), offset: start }, end }
    }

    fn is(wanted: char) -> impl Fn(Range, char) -> bool {
        move |_, found| found == wanted
    }

    /// The model: one value a byte.
    fn bytes(segments: &Segments<char>) -> String {
        let at = |i| segments.overlapping(range(i, i + 1)).next().map_or('.', |(_, value)| value);
        (0..10).map(at).collect()
    }

    #[test]
    fn writes_cut_what_they_cover() {
        let mut segments = Segments::new();
        segments.set(range(0, 8), 'a');
        segments.set(range(2, 5), 'b');
        assert_eq!(bytes(&segments), "aabbbaaa..");
        assert_eq!(segments.clear(range(1, 3)), 2);
        assert_eq!(bytes(&segments), "a..bbaaa..");
        assert_eq!(segments.clear(range(0, 10)), 6);
        assert_eq!(bytes(&segments), "..........");
    }

    #[test]
    fn neighbours_of_one_value_become_one_segment() {
        let mut segments = Segments::new();
        segments.set(range(0, 2), 'a');
        segments.set(range(4, 6), 'a');
        segments.set(range(2, 4), 'a');
        assert_eq!(segments.rows.len(), 1);
        segments.set(range(6, 8), 'b');
        assert_eq!((&*bytes(&segments), segments.rows.len()), ("aaaaaabb..", 2));
    }

    #[test]
    fn other_regions_are_not_touched() {
        let mut segments = Segments::new();
        let other = Range { start: Address { region: Region::Space(1), offset: 0 }, end: 9 };
        segments.set(range(5, 9), 'a');
        segments.set(other, 'b');
        assert_eq!(segments.overlapping(range(0, 10)).count(), 1);
        assert_eq!(segments.clear(other), 9);
    }

    #[test]
    fn a_hole_is_not_the_wanted_value() {
        let mut segments = Segments::new();
        segments.set(range(0, 2), 'a');
        segments.set(range(3, 5), 'a');
        assert_eq!(segments.first_other(range(0, 2), is('a')), None);
        assert_eq!(segments.first_other(range(0, 5), is('a')), Some(Found::Nothing));
        assert_eq!(segments.first_other(range(3, 5), is('b')), Some(Found::Other('a')));
        assert_eq!(segments.first_other(range(4, 6), is('a')), Some(Found::Nothing));
    }

    #[test]
    fn an_empty_range_holds_nothing_and_misses_nothing() {
        let mut segments = Segments::new();
        segments.set(range(0, 4), 'a');
        segments.set(range(2, 2), 'b');
        assert_eq!(bytes(&segments), "aaaa......");
        assert_eq!(segments.first_other(range(2, 2), is('z')), None);
        assert_eq!(segments.overlapping(range(3, 3)).count(), 0);
        assert_eq!(segments.first_other(range(3, 3), is('z')), None);
    }
}
