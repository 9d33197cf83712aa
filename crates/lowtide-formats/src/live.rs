//! [`live_curve`]: bytes live at each step, from the residences of a plan.
//!
//! Residences of one buffer that lie on the same bytes count once: an output written over a dying input
//! adds nothing during the step in which both are there.
//!
//! ~~~text
//! offset ^  [ a: steps 0-3 ][ b ]         buffer: b is written over a during step 3
//!        +--------------------------> step
//! live      64  64  64   64  64           not 128 at step 3
//! ~~~
//! A residence covers every aligned block that it touches. Each buffer is swept over time; a tree over its
//! blocks keeps how many are covered. Cost: O(n log n).

use lowtide_core::{BufferId, Bytes, IndexVec, Plan, Residence, SpaceKind};
use std::collections::BTreeMap;

/// Bytes live in arenas at each step of a plan, padded to its alignment.
pub fn live_curve(plan: &Plan) -> Vec<Bytes> {
    let mut changes = Changes::new(plan.schedule.len());
    let mut shared: BTreeMap<BufferId, Vec<Stay>> = BTreeMap::new();
    let mut tenants: IndexVec<BufferId, u32> = IndexVec::filled(plan.buffers.len(), 0);
    let in_arena = |row: &&Residence| {
        let space = plan.buffers.get(row.buffer).and_then(|buffer| plan.spaces.get(buffer.space));
        space.is_some_and(|space| space.kind == SpaceKind::Arena)
    };
    for row in plan.residences.iter().filter(in_arena) {
        tenants[row.buffer] += 1;
    }
    for row in plan.residences.iter().filter(in_arena) {
        let stay = Stay::of(plan, row);
        if tenants[row.buffer] == 1 {
            changes.add(stay.start, i128::from(stay.high - stay.low));
            changes.add(stay.end, -i128::from(stay.high - stay.low));
            continue;
        }
        shared.entry(row.buffer).or_default().push(stay);
    }
    for stays in shared.values() {
        sweep(stays, &mut changes);
    }
    changes.sum()
}

/// The blocks and steps of one residence, both half-open.
#[derive(Clone, Copy, Debug)]
struct Stay {
    low: u64,
    high: u64,
    start: usize,
    end: usize,
}

impl Stay {
    fn of(plan: &Plan, row: &Residence) -> Self {
        let block = plan.align.bytes().0;
        let low = row.offset.0 / block * block;
        let end = row.offset.0.saturating_add(row.size.bound().unwrap_or_default().0);
        let high = Bytes(end).align_up(plan.align).map_or(u64::MAX, |end| end.0);
        let (start, end) = (row.span.start.index(), row.span.end.index());
        // An empty residence covers nothing, wherever it lies.
        let high = if row.size.bound().unwrap_or_default() == Bytes::ZERO { low } else { high };
        Self { low, high, start, end: end.max(start) }
    }
}

/// What is added at each step to the bytes live before it.
struct Changes(Vec<i128>);

impl Changes {
    fn new(steps: usize) -> Self {
        Self(vec![0; steps])
    }

    /// Beyond the last step nothing is counted.
    fn add(&mut self, step: usize, bytes: i128) {
        if let Some(change) = self.0.get_mut(step) {
            *change += bytes;
        }
    }

    fn sum(self) -> Vec<Bytes> {
        let mut live = 0;
        let mut step = |change| {
            live += change;
            Bytes(u64::try_from(live).unwrap_or(u64::MAX))
        };
        self.0.into_iter().map(&mut step).collect()
    }
}

/// Follows one buffer through time and notes how many of its bytes are covered.
fn sweep(stays: &[Stay], changes: &mut Changes) {
    let mut cover = Cover::new(stays);
    let starts = stays.iter().map(|stay| (stay.start, 1, stay));
    let ends = stays.iter().map(|stay| (stay.end, -1, stay));
    let mut events: Vec<(usize, i32, &Stay)> = starts.chain(ends).collect();
    events.sort_by_key(|&(step, ..)| step);
    for (step, by, stay) in events {
        let before = i128::from(cover.covered());
        cover.change(stay.low, stay.high, by);
        changes.add(step, i128::from(cover.covered()) - before);
    }
}

/// How many bytes are covered by at least one range: a segment tree over the ends of all ranges.
struct Cover {
    marks: Vec<u64>,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Default)]
struct Node {
    /// Ranges that cover all of this node, but not all of its parent.
    whole: i32,
    covered: u64,
}

impl Cover {
    fn new(stays: &[Stay]) -> Self {
        let mut marks: Vec<u64> = stays.iter().flat_map(|stay| [stay.low, stay.high]).collect();
        marks.sort_unstable();
        marks.dedup();
        let nodes = vec![Node::default(); 2 * marks.len().next_power_of_two()];
        Self { marks, nodes }
    }

    fn covered(&self) -> u64 {
        self.nodes[1].covered
    }

    /// One range more or less; its ends are marks.
    fn change(&mut self, low: u64, high: u64, by: i32) {
        let leaves = self.nodes.len() / 2;
        self.visit(1, (0, leaves), (low, high), by);
    }

    /// `slots` are positions of marks; slot `i` reaches from mark `i` to the next one.
    fn visit(&mut self, node: usize, slots: (usize, usize), range: (u64, u64), by: i32) {
        let last = self.marks.len() - 1;
        let ends = (self.marks[slots.0.min(last)], self.marks[slots.1.min(last)]);
        if range.0 >= ends.1 || ends.0 >= range.1 {
            return;
        }
        if range.0 <= ends.0 && ends.1 <= range.1 {
            self.nodes[node].whole += by;
        } else {
            let middle = usize::midpoint(slots.0, slots.1);
            self.visit(2 * node, (slots.0, middle), range, by);
            self.visit(2 * node + 1, (middle, slots.1), range, by);
        }
        let is_leaf = slots.1 - slots.0 == 1;
        self.nodes[node].covered = match self.nodes[node].whole {
            0 if is_leaf => 0,
            0 => self.nodes[2 * node].covered + self.nodes[2 * node + 1].covered,
            _ => ends.1 - ends.0,
        };
    }
}

#[cfg(test)]
mod tests;
