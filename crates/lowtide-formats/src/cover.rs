//! [`Cover`]: how many bytes of a buffer are held, as residences come and go.
//!
//! ~~~text
//! blocks    |  a  |  a  |     |        a covers two blocks, b two: three are covered
//!           |     |  b  |  b  |        without a: two
//! ~~~
//! Residences of one buffer that lie on the same bytes count once; each covers every aligned block that it touches.
//! Cost: a logarithm for each that comes or goes.

use lowtide_core::{Bytes, Plan, Residence, SpaceKind};

/// Whether a residence lies in an arena.
pub(crate) fn is_in_arena(plan: &Plan, row: &Residence) -> bool {
    let space = plan.buffers.get(row.buffer).and_then(|buffer| plan.spaces.get(buffer.space));
    space.is_some_and(|space| space.kind == SpaceKind::Arena)
}

/// The first byte of its buffer that a residence covers, and that after the last one.
pub(crate) fn blocks(plan: &Plan, row: &Residence) -> (u64, u64) {
    let block = plan.align.bytes().0;
    let low = row.offset.0 / block * block;
    let bytes = row.size.bound().unwrap_or_default();
    if bytes == Bytes::ZERO {
        // What is empty covers nothing, wherever it lies.
        return (low, low);
    }
    let end = Bytes(row.offset.0.saturating_add(bytes.0));
    (low, end.align_up(plan.align).map_or(u64::MAX, |end| end.0))
}

/// How many bytes are covered by at least one range: a segment tree over the ends of all ranges.
#[derive(Debug)]
pub(crate) struct Cover {
    marks: Vec<u64>,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// Ranges that cover all of this node, but not all of its parent.
    whole: i32,
    covered: u64,
}

impl Cover {
    /// Nothing is covered yet; these are the ranges that will be.
    pub(crate) fn new(ranges: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut marks: Vec<u64> = ranges.flat_map(|(low, high)| [low, high]).collect();
        marks.sort_unstable();
        marks.dedup();
        let nodes = vec![Node::default(); 2 * marks.len().next_power_of_two()];
        Self { marks, nodes }
    }

    /// How many bytes some range covers.
    pub(crate) fn covered(&self) -> u64 {
        self.nodes[1].covered
    }

    /// One range more or less; its ends are marks.
    pub(crate) fn change(&mut self, low: u64, high: u64, by: i32) {
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
