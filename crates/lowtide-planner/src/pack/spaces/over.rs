//! [`Over`]: the steps at which a space is over its capacity, and how much of that an item would take away.
//!
//! ~~~text
//! excess ^   5
//!        |   █  2           an item of 3 bytes over all four steps relieves 3 + 2 + 1 = 6;
//!        | 0 █  █  1        when it is gone, only one step is left, with an excess of 2
//!        +-------------> step
//! ~~~
//! A segment tree over those steps alone, with the least and the greatest excess below each node, so that what
//! fits under all of it, or over all of it, is told at once. A step whose excess is gone never comes back.
//! Cost: O(log steps) for taking away, over all calls; asking looks at a limited number of nodes, and beyond them
//! takes the larger of what the answer can be.

use std::ops::Range;

#[derive(Clone, Copy, Default)]
struct Node {
    /// Steps that are over.
    count: u32,
    /// Taken from all steps below, and not from their nodes.
    owed: i64,
    least: i64,
    most: i64,
    sum: i128,
}

impl Node {
    fn leaf(excess: i64) -> Self {
        Self { count: 1, owed: 0, least: excess, most: excess, sum: excess.into() }
    }

    fn lower(&mut self, bytes: i64) {
        self.owed += bytes;
        self.least -= bytes;
        self.most -= bytes;
        self.sum -= i128::from(bytes) * i128::from(self.count);
    }

    fn of(left: Self, right: Self) -> Self {
        match (left.count, right.count) {
            (_, 0) => Self { owed: 0, ..left },
            (0, _) => Self { owed: 0, ..right },
            _ => Self {
                count: left.count + right.count,
                owed: 0,
                least: left.least.min(right.least),
                most: left.most.max(right.most),
                sum: left.sum + right.sum,
            },
        }
    }
}

/// Nodes that one question looks at.
const MOST_NODES: u32 = 512;

pub(super) struct Over {
    width: usize,
    /// For each step, how many before it were over at first.
    ranks: Vec<u32>,
    nodes: Vec<Node>,
    /// Nodes that the question at hand may still look at.
    looks: u32,
}

impl Over {
    /// From the bytes above or below the capacity at each step.
    pub(super) fn new(loads: &[i64]) -> Self {
        let mut ranks = Vec::with_capacity(loads.len() + 1);
        let mut leaves = Vec::new();
        for &load in loads {
            ranks.push(u32::try_from(leaves.len()).expect("steps are 32-bit"));
            if load > 0 {
                leaves.push(Node::leaf(load));
            }
        }
        ranks.push(u32::try_from(leaves.len()).expect("steps are 32-bit"));
        let width = leaves.len().next_power_of_two();
        let mut nodes = vec![Node::default(); 2 * width];
        nodes[width..width + leaves.len()].copy_from_slice(&leaves);
        for at in (1..width).rev() {
            nodes[at] = Node::of(nodes[2 * at], nodes[2 * at + 1]);
        }
        Self { width, ranks, nodes, looks: 0 }
    }

    /// Whether some step is over.
    pub(super) fn is_over(&self) -> bool {
        self.nodes[1].count > 0
    }

    fn ranked(&self, steps: &Range<usize>) -> Range<usize> {
        self.ranks[steps.start] as usize..self.ranks[steps.end] as usize
    }

    /// The excess that so many bytes less at these steps would take away, summed over the steps.
    pub(super) fn relief(&mut self, steps: &Range<usize>, bytes: i64) -> u128 {
        let range = self.ranked(steps);
        self.looks = MOST_NODES;
        if range.is_empty() || bytes <= 0 {
            return 0;
        }
        self.relief_below(1, 0..self.width, &range, bytes)
    }

    fn relief_below(
        &mut self,
        at: usize,
        here: Range<usize>,
        range: &Range<usize>,
        bytes: i64,
    ) -> u128 {
        let node = self.nodes[at];
        if node.count == 0 || range.end <= here.start || here.end <= range.start {
            return 0;
        }
        if range.start <= here.start && here.end <= range.end {
            let all = i128::from(bytes) * i128::from(node.count);
            if self.looks == 0 || node.most <= bytes || node.least >= bytes {
                return all.min(node.sum).unsigned_abs();
            }
        }
        self.looks = self.looks.saturating_sub(1);
        self.settle(at);
        let middle = usize::midpoint(here.start, here.end);
        let below = self.relief_below(2 * at, here.start..middle, range, bytes);
        below + self.relief_below(2 * at + 1, middle..here.end, range, bytes)
    }

    /// Takes so many bytes away at these steps.
    pub(super) fn lower(&mut self, steps: &Range<usize>, bytes: i64) {
        let range = self.ranked(steps);
        if !range.is_empty() && bytes > 0 {
            self.lower_below(1, 0..self.width, &range, bytes);
        }
    }

    fn lower_below(&mut self, at: usize, here: Range<usize>, range: &Range<usize>, bytes: i64) {
        let node = self.nodes[at];
        if node.count == 0 || range.end <= here.start || here.end <= range.start {
            return;
        }
        if range.start <= here.start && here.end <= range.end {
            if node.most <= bytes {
                self.nodes[at] = Node::default();
                return;
            }
            if node.least > bytes {
                self.nodes[at].lower(bytes);
                return;
            }
        }
        self.settle(at);
        let middle = usize::midpoint(here.start, here.end);
        self.lower_below(2 * at, here.start..middle, range, bytes);
        self.lower_below(2 * at + 1, middle..here.end, range, bytes);
        self.nodes[at] = Node::of(self.nodes[2 * at], self.nodes[2 * at + 1]);
    }

    /// Takes what is owed from both halves.
    fn settle(&mut self, at: usize) {
        let owed = std::mem::take(&mut self.nodes[at].owed);
        for half in [2 * at, 2 * at + 1] {
            if owed > 0 && self.nodes[half].count > 0 {
                self.nodes[half].lower(owed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::testing::random_words;

    #[test]
    fn relief_is_that_of_a_plain_table() {
        let mut words = random_words(3);
        let mut random = |below: u64| words.next().unwrap() % below;
        for steps in [1, 2, 9, 40] {
            for _ in 0..100 {
                let mut plain: Vec<i64> =
                    (0..steps).map(|_| random(60).cast_signed() - 20).collect();
                let mut over = Over::new(&plain);
                for _ in 0..10 {
                    let start = usize::try_from(random(steps)).unwrap();
                    let range = start..start + usize::try_from(random(steps)).unwrap();
                    let range = range.start..range.end.min(plain.len());
                    let bytes = random(20).cast_signed();
                    let excess = plain[range.clone()].iter().filter(|&&excess| excess > 0);
                    let wanted: i64 = excess.map(|&excess| excess.min(bytes)).sum();
                    assert_eq!(over.relief(&range, bytes), u128::from(wanted.unsigned_abs()));
                    over.lower(&range, bytes);
                    plain[range].iter_mut().for_each(|excess| *excess -= bytes);
                    assert_eq!(over.is_over(), plain.iter().any(|&excess| excess > 0));
                }
            }
        }
    }
}
