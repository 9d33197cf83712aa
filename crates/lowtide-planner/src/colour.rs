//! Colouring: buffers that never live together share one block, of the size of the largest.
//!
//! ~~~text
//! b0 [0,3)   colour 0      each buffer, in the chosen order, takes the first colour whose buffers are all
//! b1 [1,5)   colour 1      dead before it comes. By first step this uses as many colours as there are
//! b2 [3,6)   colour 0      buffers live at once, which is the least possible (interval graphs are perfect);
//! ~~~                      by last step (the seed's order) it may need more.
//!
//! In both orders all buffers that come earlier and overlap a new one end after its start, so one number a
//! colour, its latest end, tells whether it fits. Cost: O(n log n).

use crate::ColourBy;
use lowtide_core::{Align, BufferId, Bytes, IndexVec, Interval, Placement, Problem};

/// A colouring of all items of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colouring {
    /// The colour of each item.
    pub colours: IndexVec<BufferId, u32>,
    /// Size of each colour's block.
    pub blocks: Vec<Bytes>,
}

impl Colouring {
    /// Bytes of all blocks together.
    pub fn bytes(&self) -> Bytes {
        self.blocks.iter().copied().sum()
    }

    /// The blocks, one behind the other.
    pub fn placement(&self) -> Placement {
        let mut size = Bytes::ZERO;
        let mut bases = Vec::with_capacity(self.blocks.len());
        for &block in &self.blocks {
            bases.push(size);
            size += block;
        }
        let offsets = self.colours.iter().map(|&colour| bases[colour as usize]).collect();
        Placement { offsets, size }
    }
}

/// Colours all items.
pub fn colour(problem: &Problem, by: ColourBy) -> Colouring {
    if by == ColourBy::Best {
        let [start, end] = [ColourBy::Start, ColourBy::End].map(|by| colour(problem, by));
        return if end.bytes() < start.bytes() { end } else { start };
    }
    let items = problem.items();
    let spans: IndexVec<BufferId, Interval> = items.iter().map(lowtide_core::Item::span).collect();
    let mut order: Vec<BufferId> = items.ids().collect();
    match by {
        ColourBy::Start | ColourBy::Best => {
            order.sort_by_key(|&id| (spans[id].start, spans[id].end, id));
        }
        ColourBy::End => order.sort_by_key(|&id| (spans[id].end, spans[id].start, id)),
    }
    let mut colours = IndexVec::filled(items.len(), 0);
    let mut ends = LatestEnds::new(items.len());
    let mut blocks: Vec<Bytes> = Vec::new();
    let mut align = Align::ONE;
    for id in order {
        let colour = ends.first_free(spans[id].start.0);
        ends.set(colour, spans[id].end.0);
        if colour == blocks.len() {
            blocks.push(Bytes::ZERO);
        }
        blocks[colour] = blocks[colour].max(items[id].extent());
        colours[id] = u32::try_from(colour).expect("no more colours than items");
        align = align.max(items[id].align);
    }
    for block in &mut blocks {
        *block = block.align_up(align).expect("a problem's sizes fit with padding");
    }
    Colouring { colours, blocks }
}

/// The most items that live at once: no colouring uses fewer colours.
pub fn fewest_colours(problem: &Problem) -> usize {
    let mut changes = vec![0_i64; problem.steps() + 1];
    for span in problem.items().iter().map(lowtide_core::Item::span).filter(|span| !span.is_empty())
    {
        changes[span.start.index()] += 1;
        changes[span.end.index()] -= 1;
    }
    let mut live = 0;
    let most = changes.iter().map(|change| {
        live += change;
        live
    });
    usize::try_from(most.max().unwrap_or(0)).expect("ends never outnumber starts")
}

/// The latest end of each colour, in a tree of minima that finds the first colour that is free.
struct LatestEnds {
    leaves: usize,
    /// Node 1 is the root; a colour that is not used yet ended before all.
    least: Vec<u32>,
}

impl LatestEnds {
    fn new(colours: usize) -> Self {
        let leaves = colours.max(1).next_power_of_two();
        Self { leaves, least: vec![0; 2 * leaves] }
    }

    /// The first colour whose latest end is not after `start`; there is one for each item.
    fn first_free(&self, start: u32) -> usize {
        let mut node = 1;
        while node < self.leaves {
            node *= 2;
            if self.least[node] > start {
                node += 1;
            }
        }
        node - self.leaves
    }

    fn set(&mut self, colour: usize, end: u32) {
        let mut node = self.leaves + colour;
        self.least[node] = end;
        while node > 1 {
            node /= 2;
            self.least[node] = self.least[2 * node].min(self.least[2 * node + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::{Item, Step};

    fn problem(items: &[(u32, u32, u64)]) -> Problem {
        let item = |&(start, end, bytes): &(u32, u32, u64)| {
            Item::new(Bytes(bytes), Interval::new(Step(start), Step(end)), Align::ONE)
        };
        Problem::new(items.iter().map(item).collect()).unwrap()
    }

    fn used(items: &[(u32, u32, u64)], by: ColourBy) -> (usize, u64) {
        let colouring = colour(&problem(items), by);
        (colouring.blocks.len(), colouring.bytes().0)
    }

    #[test]
    fn buffers_that_do_not_meet_share_the_larger_block() {
        assert_eq!(used(&[(0, 2, 8), (2, 4, 16), (1, 3, 4)], ColourBy::Start), (2, 20));
    }

    #[test]
    fn colouring_by_end_can_need_more_than_the_optimum() {
        // By end, [0,1) and [1,2) do not keep the colours that the long ones would need.
        let items = [(0, 1, 1), (2, 3, 1), (0, 4, 1), (3, 5, 1), (1, 6, 1)];
        assert_eq!(fewest_colours(&problem(&items)), 3);
        assert_eq!(used(&items, ColourBy::Start).0, 3);
        assert!(used(&items, ColourBy::End).0 >= 3);
    }
}
