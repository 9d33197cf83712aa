//! [`Placed`]: which rectangles that have a place overlap a span of steps?
//!
//! ~~~text
//! leaves: all rectangles by start      end if placed, else 0
//! inner nodes: greatest end below      query [s, e): leaves with start < e are a prefix; of these, walk
//!                                      down wherever the greatest end is after s
//! ~~~
//! Cost: O(log n) to add; O((k + 1) log n) for a query with k answers. The conflict graph is never built.

use lowtide_core::{BufferId, Interval, Problem};

/// Bytes taken by a placed rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) bottom: u64,
    pub(super) top: u64,
}

pub(super) struct Placed {
    /// Start of each rectangle, ascending.
    starts: Vec<u32>,
    leaves: usize,
    /// Greatest end of the placed rectangles below each node; node 1 is the root.
    ends: Vec<u32>,
    taken: Vec<Taken>,
    /// Leaf of the first rectangle of each item; the others follow in the item's order.
    leaf_of: Vec<u32>,
    first_rect: Vec<u32>,
}

impl Placed {
    pub(super) fn new(problem: &Problem) -> Self {
        let mut first_rect = Vec::with_capacity(problem.items().len());
        let mut order: Vec<(u32, u32)> = Vec::with_capacity(problem.items().len());
        for item in problem.items() {
            first_rect.push(as_u32(order.len()));
            for rect in item.rects() {
                order.push((rect.span.start.0, as_u32(order.len())));
            }
        }
        order.sort_unstable();
        let mut leaf_of = vec![0; order.len()];
        for (leaf, &(_, rect)) in order.iter().enumerate() {
            leaf_of[rect as usize] = as_u32(leaf);
        }
        let leaves = order.len().max(1).next_power_of_two();
        let starts: Vec<u32> = order.into_iter().map(|(start, _)| start).collect();
        let taken = vec![Taken::default(); starts.len()];
        Self { starts, leaves, ends: vec![0; 2 * leaves], taken, leaf_of, first_rect }
    }

    /// Gives rectangle number `rect` of `item` its bytes.
    pub(super) fn add(&mut self, item: BufferId, rect: usize, end: u32, taken: Taken) {
        let leaf = self.leaf_of[self.first_rect[item.raw() as usize] as usize + rect] as usize;
        self.taken[leaf] = taken;
        let mut node = self.leaves + leaf;
        while node > 0 && self.ends[node] < end {
            self.ends[node] = end;
            node /= 2;
        }
    }

    /// Calls `found` for each placed rectangle whose span overlaps `span`.
    pub(super) fn overlapping(&self, span: Interval, mut found: impl FnMut(Taken)) {
        let limit = self.starts.partition_point(|&start| start < span.end.0);
        let mut stack = [(0_usize, 0_usize); 64];
        let mut depth = 1;
        stack[0] = (1, self.leaves);
        while depth > 0 {
            depth -= 1;
            let (node, width) = stack[depth];
            if self.ends[node] <= span.start.0 {
                continue;
            }
            if width == 1 {
                found(self.taken[node - self.leaves]);
                continue;
            }
            // The first leaf of the right child: leaves of a node are consecutive.
            let half = width / 2;
            let right_start = (2 * node + 1) * half - self.leaves;
            if right_start < limit {
                stack[depth] = (2 * node + 1, half);
                depth += 1;
            }
            stack[depth] = (2 * node, half);
            depth += 1;
        }
    }
}

fn as_u32(index: usize) -> u32 {
    u32::try_from(index).expect("at most u32::MAX rectangles")
}
