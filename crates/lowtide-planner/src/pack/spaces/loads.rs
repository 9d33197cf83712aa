//! [`Loads`]: the bytes above or below a capacity at each step; adding to a range of steps, the most in a range.
//!
//! ~~~text
//!          max of all        a node holds what was added to all of its steps at once,
//!         /          \       and the most of its halves with that added
//!     [0,2)          [2,4)
//! ~~~
//! A segment tree. Cost: O(log steps) for each question; 32 bytes a step.

use std::ops::Range;

#[derive(Clone, Copy, Default)]
struct Node {
    max: i64,
    added: i64,
}

/// A number for each step.
#[derive(Clone)]
pub(super) struct Loads {
    /// Steps, rounded up to a power of two.
    width: usize,
    steps: usize,
    nodes: Vec<Node>,
}

/// Below every load, and far enough from the end of the range to add to it.
const NOTHING: i64 = i64::MIN / 2;

impl Loads {
    pub(super) fn new(loads: &[i64]) -> Self {
        let width = loads.len().next_power_of_two();
        let mut nodes = vec![Node { max: NOTHING, added: 0 }; 2 * width];
        for (node, &max) in nodes[width..].iter_mut().zip(loads) {
            node.max = max;
        }
        for at in (1..width).rev() {
            nodes[at].max = nodes[2 * at].max.max(nodes[2 * at + 1].max);
        }
        Self { width, steps: loads.len(), nodes }
    }

    /// Adds to all steps of a range.
    pub(super) fn add(&mut self, range: Range<usize>, bytes: i64) {
        if range.start < range.end {
            self.add_below(1, 0..self.width, &range, bytes);
        }
    }

    fn add_below(&mut self, at: usize, here: Range<usize>, range: &Range<usize>, bytes: i64) {
        if range.start <= here.start && here.end <= range.end {
            self.nodes[at].max += bytes;
            self.nodes[at].added += bytes;
            return;
        }
        let middle = usize::midpoint(here.start, here.end);
        if range.start < middle {
            self.add_below(2 * at, here.start..middle, range, bytes);
        }
        if range.end > middle {
            self.add_below(2 * at + 1, middle..here.end, range, bytes);
        }
        let most = self.nodes[2 * at].max.max(self.nodes[2 * at + 1].max);
        self.nodes[at].max = most + self.nodes[at].added;
    }

    /// The most in a range, at the first step at which there is as much; `None` in an empty one.
    pub(super) fn most(&self, range: Range<usize>) -> Option<(i64, usize)> {
        if range.start >= range.end {
            return None;
        }
        Some(self.most_below(1, 0..self.width, &range))
    }

    /// The most of all.
    pub(super) fn peak(&self) -> Option<(i64, usize)> {
        self.most(0..self.steps)
    }

    fn most_below(&self, at: usize, here: Range<usize>, range: &Range<usize>) -> (i64, usize) {
        if range.end <= here.start || here.end <= range.start {
            return (NOTHING, here.start);
        }
        if range.start <= here.start && here.end <= range.end {
            return (self.nodes[at].max, self.first_of(at));
        }
        let middle = usize::midpoint(here.start, here.end);
        let left = self.most_below(2 * at, here.start..middle, range);
        let right = self.most_below(2 * at + 1, middle..here.end, range);
        let (most, step) = if right.0 > left.0 { right } else { left };
        (most + self.nodes[at].added, step)
    }

    /// The first step below a node at which there is the most.
    fn first_of(&self, mut at: usize) -> usize {
        while at < self.width {
            let is_right = self.nodes[2 * at + 1].max > self.nodes[2 * at].max;
            at = 2 * at + usize::from(is_right);
        }
        at - self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::testing::random_words;

    #[test]
    fn answers_are_those_of_a_plain_table() {
        let mut words = random_words(7);
        let mut random = |below: u64| words.next().unwrap() % below;
        for steps in [1, 2, 7, 33] {
            let mut plain: Vec<i64> = (0..steps).map(|_| random(50).cast_signed() - 25).collect();
            let mut loads = Loads::new(&plain);
            for _ in 0..300 {
                let start = usize::try_from(random(steps)).unwrap();
                let end = usize::try_from(random(steps + 1)).unwrap();
                let bytes = random(20).cast_signed() - 10;
                loads.add(start..end, bytes);
                plain.iter_mut().take(end).skip(start).for_each(|load| *load += bytes);
                let all = plain.iter().enumerate().take(end).skip(start);
                let wanted = all
                    .map(|(at, &load)| (load, at))
                    .max_by_key(|&(load, at)| (load, std::cmp::Reverse(at)));
                assert_eq!(loads.most(start..end), wanted);
            }
        }
    }
}
