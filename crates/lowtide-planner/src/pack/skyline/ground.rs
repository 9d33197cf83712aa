//! [`Ground`]: the skyline, as flat parts; which of them is the lowest?
//!
//! ~~~text
//! height ^      ┌──┐
//!        | ──┐  │  └────      parts by their first section: end, height, the part before
//!        |   └──┘             heap of (height, first section); entries of parts that are gone are skipped
//!        +-0-1--2--3---->     neighbours never have the same height
//! ~~~

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A flat part between two walls, sections `[start, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Valley {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) height: u64,
    /// Height of the lower wall; nothing is as high as the walls of the axis.
    pub(super) wall: u64,
}

pub(super) struct Ground {
    /// End of the part that starts at a section; 0 if none does.
    ends: Vec<u32>,
    heights: Vec<u64>,
    before: Vec<Option<u32>>,
    lowest: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Ground {
    pub(super) fn new(sections: u32) -> Self {
        let len = sections as usize + 1;
        let mut ends = vec![0; len];
        ends[0] = sections;
        let lowest = BinaryHeap::from([Reverse((0, 0))]);
        Self { ends, heights: vec![0; len], before: vec![None; len], lowest }
    }

    /// Takes the lowest part, the first of several; it is to be given back by [`Self::cover`].
    pub(super) fn lowest(&mut self) -> Valley {
        loop {
            let Reverse((height, start)) = self.lowest.pop().expect("the axis is covered");
            let end = self.ends[start as usize];
            if end > 0 && self.heights[start as usize] == height {
                let wall = self.left_wall(start).min(self.right_wall(end));
                return Valley { start, end, height, wall };
            }
        }
    }

    fn left_wall(&self, start: u32) -> u64 {
        self.before[start as usize].map_or(u64::MAX, |before| self.heights[before as usize])
    }

    fn right_wall(&self, end: u32) -> u64 {
        if self.is_last(end) { u64::MAX } else { self.heights[end as usize] }
    }

    fn is_last(&self, end: u32) -> bool {
        end as usize + 1 == self.ends.len()
    }

    /// Puts parts, given by their ends and heights from left to right, in the place of the valley.
    pub(super) fn cover(&mut self, valley: Valley, parts: &[(u32, u64)]) {
        let mut before = self.before[valley.start as usize];
        self.ends[valley.start as usize] = 0;
        let mut start = valley.start;
        for &(end, height) in parts {
            before = Some(self.append(before, start, end, height));
            start = end;
        }
        if self.is_last(valley.end) {
            return;
        }
        let (end, height) = (self.ends[valley.end as usize], self.heights[valley.end as usize]);
        self.ends[valley.end as usize] = 0;
        let last = self.append(before, valley.end, end, height);
        if !self.is_last(end) {
            self.before[end as usize] = Some(last);
        }
    }

    /// Adds a part after another, of which it becomes a piece if both are as high.
    fn append(&mut self, before: Option<u32>, start: u32, end: u32, height: u64) -> u32 {
        let same = before.filter(|&part| self.heights[part as usize] == height);
        let part = same.unwrap_or(start);
        if same.is_none() {
            self.before[start as usize] = before;
        }
        self.heights[part as usize] = height;
        self.ends[part as usize] = end;
        self.lowest.push(Reverse((height, part)));
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_same_height_are_one() {
        let mut ground = Ground::new(4);
        let whole = ground.lowest();
        assert_eq!(whole, Valley { start: 0, end: 4, height: 0, wall: u64::MAX });
        ground.cover(whole, &[(1, 7), (3, 2), (4, 5)]);
        let valley = ground.lowest();
        assert_eq!(valley, Valley { start: 1, end: 3, height: 2, wall: 5 });
        ground.cover(valley, &[(3, 5)]);
        let valley = ground.lowest();
        assert_eq!(valley, Valley { start: 1, end: 4, height: 5, wall: 7 });
        ground.cover(valley, &[(2, 7), (4, 9)]);
        assert_eq!(ground.lowest(), Valley { start: 0, end: 2, height: 7, wall: 9 });
    }
}
