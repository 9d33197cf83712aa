//! Places items in the order of time, as a heap with best fit would serve them.
//!
//! ~~~text
//! step 3: b1 ends    [b0][ hole ][b2][ rest ...      holes by offset (to merge) and by size (to find)
//! step 3: b3 comes   [b0][b3 ][h][b2][ rest ...      the smallest hole that is large enough
//! ~~~
//! An item of several rectangles takes its whole extent for its whole span. Cost: O(n log n), whatever lives
//! together. Items with a fixed offset are left out.

use lowtide_core::{Align, BufferId, Bytes, IndexVec, Placement, Problem};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn sweep(problem: &Problem) -> Placement {
    let mut heap = Heap::default();
    let mut offsets = IndexVec::filled(problem.items().len(), Bytes::ZERO);
    for (_, comes, id) in moments(problem) {
        let item = &problem.items()[id];
        let bytes = item.extent().0;
        if comes {
            offsets[id] = Bytes(heap.alloc(bytes, item.align));
        } else {
            heap.free(offsets[id].0, bytes);
        }
    }
    Placement { offsets, size: Bytes(heap.size) }
}

/// When items come and go: who goes at a step goes before who comes; larger items come first.
fn moments(problem: &Problem) -> impl Iterator<Item = (u32, bool, BufferId)> {
    let mut moments = Vec::with_capacity(2 * problem.items().len());
    for (id, item) in problem.items().iter_enumerated() {
        let span = item.span();
        let extent = item.extent().0;
        if extent > 0 && !span.is_empty() && item.pin.is_none() {
            moments.push((span.start.0, true, u64::MAX - extent, id));
            moments.push((span.end.0, false, 0, id));
        }
    }
    moments.sort_unstable();
    moments.into_iter().map(|(step, comes, _, id)| (step, comes, id))
}

#[derive(Default)]
struct Heap {
    size: u64,
    /// Start of each hole: its end. Holes do not touch.
    holes: BTreeMap<u64, u64>,
    /// Size and start of each hole.
    by_size: BTreeSet<(u64, u64)>,
}

impl Heap {
    fn alloc(&mut self, bytes: u64, align: Align) -> u64 {
        let aligned = |start: u64| {
            Bytes(start).align_up(align).expect("a problem's sizes fit with padding").0
        };
        let found = self.by_size.range((bytes, 0)..).map(|&(size, start)| (start, start + size));
        let found = found.take(TRIES).find(|&(start, end)| aligned(start) + bytes <= end);
        let (start, end) = found.unwrap_or_else(|| self.grow(bytes, align));
        let base = aligned(start);
        self.remove(start, end);
        self.insert(start, base);
        self.insert(base + bytes, end);
        base
    }

    /// Makes the hole at the top large enough.
    fn grow(&mut self, bytes: u64, align: Align) -> (u64, u64) {
        let last = self.holes.last_key_value().filter(|&(_, &end)| end == self.size);
        let start = last.map_or(self.size, |(&start, _)| start);
        let base = Bytes(start).align_up(align).expect("a problem's sizes fit with padding").0;
        self.remove(start, self.size);
        self.size = self.size.max(base + bytes);
        self.insert(start, self.size);
        (start, self.size)
    }

    fn free(&mut self, start: u64, bytes: u64) {
        let (mut low, mut high) = (start, start + bytes);
        if let Some((&below, &end)) =
            self.holes.range(..start).next_back().filter(|hole| *hole.1 == low)
        {
            self.remove(below, end);
            low = below;
        }
        if let Some(&end) = self.holes.get(&high) {
            self.remove(high, end);
            high = end;
        }
        self.insert(low, high);
    }

    fn insert(&mut self, start: u64, end: u64) {
        if start < end {
            self.holes.insert(start, end);
            self.by_size.insert((end - start, start));
        }
    }

    fn remove(&mut self, start: u64, end: u64) {
        if start < end {
            self.holes.remove(&start);
            self.by_size.remove(&(end - start, start));
        }
    }
}

/// How many holes of sufficient size are tried where their alignment does not fit.
const TRIES: usize = 16;
