//! An earlier placement in, one out that moves little: plan stability.
//!
//! ~~~text
//! earlier   a b c d e        kept: those whose places still go together, the largest first
//! kept      a b   d e        the others are placed around them
//! too high        ▲          who lives with what ended too high is let go, and all is placed again
//! ~~~
//! The limit is what the caller can bear: a capacity, or the arena that packing without regard to the earlier one
//! comes to. Each round lets go of more; in the end nothing is kept. Cost: a few first fits, and short searches.

use super::exact;
use super::fit::{add, first_fit};
use super::placed::Placed;
use super::{RULES, sorted};
use crate::meter::Meter;
use lowtide_core::{Bound, BufferId, Bytes, IndexVec, Interval, Item, Placement, Problem};

/// Where items lay before; `None` for those that are new.
pub type Earlier = IndexVec<BufferId, Option<Bytes>>;

/// So often is something let go before all is.
const ROUNDS: u32 = 12;
/// A search around what is kept may take one in so many of the steps that are left.
const PART: u64 = 4;

/// A placement no larger than the limit that keeps much of an earlier one; `None` if none is found.
pub(super) fn keep(
    problem: &Problem,
    earlier: &Earlier,
    limit: Bytes,
    meter: &mut Meter<'_>,
) -> Option<Placement> {
    // What is fixed anyway is kept too.
    let mut kept = going_together(problem, earlier, limit);
    for _ in 0..ROUNDS {
        // None if the offsets add up to more than a problem may hold.
        let pinned = problem.with_pins(&kept).ok()?;
        let placement = around(&pinned, limit, meter);
        if placement.as_ref().is_some_and(|placement| placement.size <= limit) {
            return placement;
        }
        if meter.is_out() || !let_go(problem, &mut kept, placement.as_ref(), limit) {
            break;
        }
    }
    None
}

/// Items that lie within the limit and apart from each other where they lay, the largest first.
fn going_together(problem: &Problem, earlier: &Earlier, limit: Bytes) -> Earlier {
    let mut kept = IndexVec::filled(problem.items().len(), None);
    let mut placed = Placed::new(problem);
    for id in sorted(problem, RULES[0].1) {
        let item = &problem.items()[id];
        let base = item.pin.or_else(|| earlier.get(id).copied().flatten());
        let Some(base) = base.filter(|&base| item.pin.is_some() || base.is_aligned(item.align))
        else {
            continue;
        };
        let is_inside = base.checked_add(item.extent()).is_some_and(|end| end <= limit);
        if item.pin.is_some() || (is_inside && is_free(&placed, item, base)) {
            kept[id] = Some(base);
            add(&mut placed, id, item, base);
        }
    }
    kept
}

fn is_free(placed: &Placed, item: &Item, base: Bytes) -> bool {
    let mut is_free = true;
    for rect in item.rects().iter().filter(|rect| rect.takes_bytes()) {
        let (bottom, top) = ((base + rect.offset).0, (base + rect.end()).0);
        placed
            .overlapping(rect.span, |taken| is_free &= taken.top <= bottom || top <= taken.bottom);
    }
    is_free
}

/// The smallest of a few placements around what is kept.
fn around(pinned: &Problem, limit: Bytes, meter: &mut Meter<'_>) -> Option<Placement> {
    let mut best: Option<Placement> = None;
    for (_, key) in RULES {
        let size = best.as_ref().map_or(Bytes(u64::MAX), |best| best.size);
        if size > limit {
            best = first_fit(pinned, &sorted(pinned, key), size, meter).or(best);
        }
    }
    let known = best.as_ref()?.size;
    if known > limit {
        let some = meter.left().div_ceil(PART);
        let range = exact::Range { bound: Bound::NONE.bytes, goal: limit, known };
        best =
            meter.with_at_most(some, |part| exact::improve(pinned, range, part)).placement.or(best);
    }
    best
}

/// Lets go of what lives with items that ended too high, or of all; `false` if nothing is kept.
fn let_go(
    problem: &Problem,
    kept: &mut Earlier,
    placement: Option<&Placement>,
    limit: Bytes,
) -> bool {
    let items = || problem.items().iter_enumerated();
    let is_high = |&(id, item): &(BufferId, &Item)| {
        placement.is_none_or(|placement| placement.offsets[id] + item.extent() > limit)
    };
    let high: Vec<Interval> = items().filter(is_high).map(|(_, item)| item.span()).collect();
    let during = high.iter().copied().reduce(Interval::hull).unwrap_or_default();
    let mut any = false;
    let may_move = |(_, item): &(BufferId, &Item)| item.pin.is_none();
    for (id, _) in items().filter(may_move).filter(|(_, item)| item.span().overlaps(during)) {
        any |= kept[id].take().is_some();
    }
    any
}
