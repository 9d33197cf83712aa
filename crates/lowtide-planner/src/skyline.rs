//! Items in the order of time to offsets that need no fences, in little time.
//!
//! ~~~text
//! offset ^                       of every byte only who lay there last is looked at: f comes after all that use d,
//!        │ ┌ b ┐┌──── e ────     and so after a and c, that lay there before
//!        │ ├ a ┴┐┌ d ┐┌ f ──
//!        │ └────┴┴ c ┴┴─────
//!        └───────────────────> order
//! ~~~
//! What lies in the same byte one after the other is ordered by data, each after the one before. However many items have been
//! there, there are as many looks as ranges in use.

use crate::apart::{Item, Part, is_over, lowest};
use lowtide_core::Reach;

/// A range of bytes, and the item that lay there last.
#[derive(Clone, Copy, Debug)]
struct Last {
    start: u64,
    end: u64,
    item: usize,
}

/// Places items, each at the lowest offset where all that lay there is over before it begins. If `stay_below`, what is over for
/// nobody lies below all else. What is left when the looks are used up comes on top. Gives offsets and size.
/// Cost: O(items · ranges in use).
pub(crate) fn sweep(
    items: &[Item],
    reach: &Reach,
    stay_below: bool,
    looks: &mut u64,
) -> (Vec<u64>, u64) {
    let mut by_time: Vec<usize> = (0..items.len()).collect();
    by_time.sort_by_key(|&at| items[at].begins);
    let (stay, pass): (Vec<usize>, Vec<usize>) =
        by_time.into_iter().partition(|&at| stay_below && items[at].stays());
    let mut skyline = Skyline { items, reach, offsets: vec![0; items.len()], ranges: Vec::new() };
    let mut size = 0;
    for at in stay {
        size = skyline.put(at, &mut [(0, size)]);
    }
    let base = size;
    for at in pass {
        let cost = 1 + (skyline.ranges.len() * items[at].parts.len()) as u64;
        let mut taken = if cost > *looks { vec![(0, size)] } else { skyline.taken(at) };
        *looks = looks.saturating_sub(cost);
        taken.push((0, base));
        size = size.max(skyline.put(at, &mut taken));
        skyline.cover(at);
    }
    (skyline.offsets, size)
}

struct Skyline<'a> {
    items: &'a [Item],
    reach: &'a Reach,
    offsets: Vec<u64>,
    /// Ascending and disjoint.
    ranges: Vec<Last>,
}

impl Skyline<'_> {
    /// The offsets at which an item would meet something that is not over: ranges without their ends.
    fn taken(&self, item: usize) -> Vec<(u64, u64)> {
        let mut taken = Vec::new();
        for last in &self.ranges {
            for mine in &self.items[item].parts {
                let low = (last.start + 1).saturating_sub(mine.end);
                let high = last.end.saturating_sub(mine.start);
                if low < high && !self.is_over(last, mine) {
                    taken.push((low, high));
                }
            }
        }
        taken
    }

    /// Whether all that uses a range is over before a part begins.
    fn is_over(&self, last: &Last, part: &Part) -> bool {
        let base = self.offsets[last.item];
        let mut meets = self.items[last.item]
            .parts
            .iter()
            .filter(|theirs| base + theirs.start < last.end && last.start < base + theirs.end);
        meets.all(|theirs| is_over(theirs, part, self.reach))
    }

    /// Puts an item at the lowest offset outside of ranges; where it ends.
    fn put(&mut self, item: usize, taken: &mut [(u64, u64)]) -> u64 {
        self.offsets[item] = lowest(taken, self.items[item].align);
        self.offsets[item] + self.items[item].extent
    }

    /// From now on an item is the last one where its parts lie.
    fn cover(&mut self, item: usize) {
        let base = self.offsets[item];
        for part in &self.items[item].parts {
            let (start, end) = (base + part.start, base + part.end);
            let from = self.ranges.partition_point(|last| last.end <= start);
            let to = self.ranges.partition_point(|last| last.start < end);
            let met = &self.ranges[from..to];
            let below = met.first().filter(|last| last.start < start);
            let above = met.last().filter(|last| last.end > end);
            let new = [
                below.map(|&last| Last { end: start, ..last }),
                Some(Last { start, end, item }),
                above.map(|&last| Last { start: end, ..last }),
            ];
            self.ranges.splice(from..to, new.into_iter().flatten());
        }
    }
}
