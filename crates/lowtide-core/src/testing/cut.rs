//! Placement problems whose optimum is known: a full rectangle of time and bytes, cut into items.
//!
//! ~~~text
//! bytes ^ ┌───────┬───┐     guillotine: one cut through a whole region
//!       | ├───┬───┤   │     pinwheel: four regions around a fifth, which no guillotine makes
//!       | │   ├───┴───┤
//!       | └───┴───────┘     then some pieces are dropped or shrunk, but none that lives at one certain step
//!       +-------------> step
//! ~~~
//! That step stays full, so no arena is smaller than the rectangle, and the cut itself is a placement of that
//! size. Cost: O(n) regions and one shuffle, so that ids tell nothing.

use super::random_words;
use crate::{Align, Bytes, Interval, Item, Placement, Problem, Step};

/// What a cut is to look like.
#[derive(Clone, Copy, Debug)]
pub struct CutConfig {
    /// About this many items.
    pub items: u64,
    /// About this many live at once; at most a third of the items.
    pub live: u64,
    /// Length of the time axis.
    pub steps: u32,
    /// Height of the rectangle; rounded down to the grain.
    pub capacity: Bytes,
    /// Sizes are multiples of this; rounded up to a multiple of the alignment.
    pub grain: Bytes,
    /// Alignment of each item.
    pub align: Align,
    /// How many pieces of a hundred are dropped (half of them) or made smaller (the others).
    pub loss: u64,
}

impl Default for CutConfig {
    fn default() -> Self {
        Self {
            items: 1000,
            live: 1000,
            steps: 1 << 20,
            capacity: Bytes(1 << 28),
            grain: Bytes(64),
            align: Align::ONE,
            loss: 5,
        }
    }
}

/// A problem, and a placement that no other beats; its size is the optimum.
#[derive(Clone, Debug)]
pub struct Cut {
    /// What is to be placed.
    pub problem: Problem,
    /// How it was cut.
    pub placement: Placement,
}

/// Cuts a rectangle; the same for the same seed on every machine.
///
/// # Panics
/// If the rectangle is empty or the config asks for more than 2^62 bytes in all.
pub fn cut_problem(seed: u64, config: CutConfig) -> Cut {
    let grain = config.grain.max(Bytes(1)).align_up(config.align).expect("a grain is small").0;
    let height = config.capacity.0 / grain;
    assert!(height > 0 && config.steps > 0, "nothing to cut");
    let kept = 200 - config.loss.min(100);
    let items = (config.items * 200 / kept).max(1);
    let live = config.live.clamp(1, (items / 3).max(1));
    let mut cutter = Cutter {
        words: Box::new(random_words(seed)),
        mean_span: (u64::from(config.steps) * live / items).max(1),
        mean_height: (height / live).max(1),
    };
    let full = cutter.below(u64::from(config.steps));
    let whole = Region { span: (0, u64::from(config.steps)), bytes: (0, height), pieces: items };
    let mut pieces = cutter.cut(whole);
    pieces.retain_mut(|piece| piece.is_live_at(full) || cutter.keep(piece, config.loss));
    cutter.shuffle(&mut pieces);
    let mut placement = Placement { size: Bytes(height * grain), ..Placement::default() };
    let items = pieces.into_iter().map(|piece| {
        placement.offsets.push(Bytes(piece.bytes.0 * grain));
        let bytes = Bytes((piece.bytes.1 - piece.bytes.0) * grain);
        let span = Interval::new(step(piece.span.0), step(piece.span.1));
        Item::new(bytes, span, config.align)
    });
    let problem = Problem::new(items.collect()).expect("the config keeps sizes in range");
    Cut { problem, placement }
}

fn step(at: u64) -> Step {
    Step(u32::try_from(at).expect("within the time axis"))
}

/// From the first number up to, but without, the second.
type Range = (u64, u64);

/// A part of the rectangle and into how many pieces it is still to be cut.
#[derive(Clone, Copy)]
struct Region {
    span: Range,
    /// In grains.
    bytes: Range,
    pieces: u64,
}

impl Region {
    fn is_live_at(&self, step: u64) -> bool {
        self.span.0 <= step && step < self.span.1
    }

    fn length(&self) -> u64 {
        self.span.1 - self.span.0
    }

    fn height(&self) -> u64 {
        self.bytes.1 - self.bytes.0
    }
}

struct Cutter {
    words: Box<dyn Iterator<Item = u64>>,
    /// Sides of a typical piece: what a region's sides are compared with.
    mean_span: u64,
    mean_height: u64,
}

impl Cutter {
    /// A number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.words.next().expect("the words never end") % limit
    }

    /// A number strictly between the ends.
    fn within(&mut self, (low, high): Range) -> u64 {
        low + 1 + self.below(high - low - 1)
    }

    fn cut(&mut self, whole: Region) -> Vec<Region> {
        let mut pieces = Vec::new();
        let mut regions = vec![whole];
        while let Some(region) = regions.pop() {
            let (length, height) = (region.length(), region.height());
            if region.pieces <= 1 || length * height <= 1 {
                pieces.push(region);
                continue;
            }
            if region.pieces >= 5 && length >= 3 && height >= 3 && self.below(4) == 0 {
                regions.extend(self.pinwheel(region));
                continue;
            }
            regions.extend(self.guillotine(region));
        }
        pieces
    }

    /// Two parts, cut across the side that is longer for a piece of this rectangle, mostly.
    fn guillotine(&mut self, region: Region) -> [Region; 2] {
        let (length, height) = (region.length(), region.height());
        let weight = length * 16 / self.mean_span + 1;
        let other = height * 16 / self.mean_height + 1;
        let through_time = height == 1 || (length > 1 && self.below(weight + other) < weight);
        if through_time {
            let at = self.within(region.span);
            let count = self.share(region.pieces, at - region.span.0, length);
            return [
                Region { span: (region.span.0, at), pieces: count, ..region },
                Region { span: (at, region.span.1), pieces: region.pieces - count, ..region },
            ];
        }
        let at = self.within(region.bytes);
        let count = self.share(region.pieces, at - region.bytes.0, height);
        [
            Region { bytes: (region.bytes.0, at), pieces: count, ..region },
            Region { bytes: (at, region.bytes.1), pieces: region.pieces - count, ..region },
        ]
    }

    /// How many of `pieces` go into `part` of `whole`; small regions stray from the even share.
    fn share(&mut self, pieces: u64, part: u64, whole: u64) -> u64 {
        let even = u128::from(pieces) * u128::from(part) / u128::from(whole);
        let mut count = u64::try_from(even).expect("not more than there were");
        if pieces < 64 {
            count = count / 2 + self.below(count + 1);
        }
        count.clamp(1, pieces - 1)
    }

    fn pinwheel(&mut self, region: Region) -> [Region; 5] {
        let Region { span: (start, end), bytes: (bottom, top), pieces } = region;
        let first = self.within((start, end - 1));
        let second = self.within((first, end));
        let low = self.within((bottom, top - 1));
        let high = self.within((low, top));
        let mut parts = [
            ((start, first), (bottom, high)),
            ((start, second), (high, top)),
            ((second, end), (low, top)),
            ((first, end), (bottom, low)),
            ((first, second), (low, high)),
        ]
        .map(|(span, bytes)| Region { span, bytes, pieces: 1 });
        let area = u128::from(region.length()) * u128::from(region.height());
        let mut left = pieces - 5;
        for part in &mut parts {
            let own = u128::from(part.length()) * u128::from(part.height());
            let share = u128::from(pieces - 5) * own / area;
            part.pieces += u64::try_from(share).expect("not more than there were");
            left -= part.pieces - 1;
        }
        parts[0].pieces += left;
        parts
    }

    /// Whether the piece stays; if it does, it may have become smaller.
    fn keep(&mut self, piece: &mut Region, loss: u64) -> bool {
        if self.below(100) >= loss {
            return true;
        }
        let kind = self.below(4);
        if kind == 2 && piece.height() > 1 {
            piece.bytes.1 = self.within(piece.bytes);
        }
        if kind == 3 && piece.length() > 1 {
            piece.span.1 = self.within(piece.span);
        }
        kind >= 2
    }

    fn shuffle(&mut self, pieces: &mut [Region]) {
        for last in (1..pieces.len()).rev() {
            let other = self.below(last as u64 + 1);
            pieces.swap(last, usize::try_from(other).expect("an index"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BufferId, IndexVec, check::check_placement};

    fn configs() -> impl Iterator<Item = CutConfig> {
        [10, 100, 3000].into_iter().flat_map(|items| {
            [0, 5, 40].map(|loss| CutConfig {
                items,
                live: 40,
                grain: Bytes(96),
                align: Align::CACHE_LINE,
                loss,
                ..CutConfig::default()
            })
        })
    }

    /// The greatest sum of sizes that live at once.
    fn live_bound(problem: &Problem) -> Bytes {
        let mut moments: Vec<(u32, bool, u64)> = Vec::new();
        for item in problem.items() {
            moments.push((item.span().start.0, true, item.extent().0));
            moments.push((item.span().end.0, false, item.extent().0));
        }
        moments.sort_unstable();
        let (mut live, mut most) = (0, 0);
        for (_, comes, bytes) in moments {
            live = if comes { live + bytes } else { live - bytes };
            most = most.max(live);
        }
        Bytes(most)
    }

    #[test]
    fn the_cut_is_a_placement_as_small_as_the_live_bound() {
        for (seed, config) in configs().enumerate() {
            let cut = cut_problem(seed as u64, config);
            assert_eq!(check_placement(&cut.problem, &cut.placement), [], "{config:?}");
            assert_eq!(cut.placement.size, live_bound(&cut.problem), "{config:?}");
        }
    }

    #[test]
    fn there_are_about_as_many_items_as_asked_for() {
        for (seed, config) in configs().enumerate() {
            let found = cut_problem(seed as u64, config).problem.items().len() as u64;
            let tolerance = 5 + config.items / 20;
            assert!(found.abs_diff(config.items) <= tolerance, "{found} {config:?}");
        }
    }

    #[test]
    fn items_are_on_the_grain_and_none_is_empty() {
        let whole = |item: &Item| item.extent().0.is_multiple_of(128) && item.align.bytes().0 == 64;
        let items = |cut: Cut| -> IndexVec<BufferId, Item> { cut.problem.items().clone() };
        for config in configs() {
            let items = items(cut_problem(1, config));
            assert!(items.iter().all(|item| whole(item) && item.extent() > Bytes::ZERO));
            assert!(items.iter().all(|item| !item.span().is_empty()));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_cut() {
        let of = |seed| cut_problem(seed, CutConfig::default()).problem;
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
    }
}
