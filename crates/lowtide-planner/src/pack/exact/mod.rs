//! A placement that is known in, a smaller one out, or the proof that there is none.
//!
//! ~~~text
//! goal ──────?──────────────────── known        is there a placement as small as the goal? (tight, so quick to tell)
//!       impossible ──?──────────── known        if not told: one half way? and so on, as far as the steps go
//! ~~~
//! Every question is for one capacity, and answered yes with offsets, no with certainty, or not at all: then the search
//! goes on above, and nothing is claimed. Cost: exponential at worst; steps are pairs of items looked at.

mod instance;
mod orders;
mod portfolio;
mod rises;
mod search;
mod state;

use crate::meter::Meter;
use instance::Instance;
pub(super) use instance::MOST_ITEMS;
use lowtide_core::{Bytes, IndexVec, Placement, Problem};
use portfolio::{Answer, place_within};

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Searched {
    /// A smaller placement, if one was found.
    pub(super) placement: Option<Placement>,
    /// No placement is smaller than this.
    pub(super) bound: Bytes,
    /// Some question was left open that more steps might answer.
    pub(super) is_open: bool,
}

/// Where to look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    /// There is nothing below.
    pub(super) bound: Bytes,
    /// As small is small enough.
    pub(super) goal: Bytes,
    /// As small is known.
    pub(super) known: Bytes,
}

/// The first look takes so many steps, each further one several times as many: whoever ends the search early has
/// something by then.
const FIRST_LOOK: u64 = 4_000_000;
const GROWTH: u64 = 8;

/// Looks for a placement smaller than the one that is known, until one is as small as the goal.
pub(super) fn improve(problem: &Problem, range: Range, meter: &mut Meter<'_>) -> Searched {
    let mut best = Searched { placement: None, bound: range.bound, is_open: false };
    let Some(instance) = Instance::new(problem) else { return best };
    let (mut range, mut look) = (range, FIRST_LOOK);
    while range.known > range.goal.max(range.bound) && !meter.is_out() {
        // What would be left for a last look is better spent now.
        let is_last = meter.left() / GROWTH < look;
        let most = if is_last { meter.left() } else { look };
        let found = meter.with_at_most(most, |part| bisect(problem, &instance, range, part));
        let is_over = found.is_over || is_last;
        best.bound = best.bound.max(found.bound);
        best.is_open = !found.is_over;
        range.bound = best.bound;
        if let Some(placement) = found.placement {
            range.known = placement.size;
            best.placement = Some(placement);
        }
        if is_over {
            break;
        }
        look *= GROWTH;
    }
    best
}

/// What one look came to.
struct Look {
    placement: Option<Placement>,
    bound: Bytes,
    /// There is nothing more to ask for.
    is_over: bool,
}

/// Asks for the goal, then for sizes between that and what is known.
fn bisect(problem: &Problem, instance: &Instance, range: Range, meter: &mut Meter<'_>) -> Look {
    let grain = instance.grain;
    let mut best = None;
    // Below `least` there is nothing; below `next` nothing is known of, and it is not asked for again.
    let mut least = range.bound.0.next_multiple_of(grain);
    let (mut next, mut size) = (least.max(range.goal.0 / grain * grain), range.known.0);
    let (mut capacity, mut is_known) = (next, true);
    while next < size && !meter.is_out() {
        // The goal is asked for with half of the steps, each further question with half of what is left.
        let half = meter.left().div_ceil(2);
        match meter.with_at_most(half, |part| place_within(instance, capacity, part)) {
            Answer::Found(offsets) => {
                let placement = placement(problem, instance, &offsets);
                size = placement.size.0;
                meter.watched().tell(placement.size, Bytes(least));
                best = Some(placement);
            }
            Answer::Impossible => {
                least = capacity + grain;
                next = least;
            }
            Answer::Unknown => {
                is_known = false;
                next = capacity + grain;
            }
        }
        // Half way between what is known and what is not, in steps that matter.
        capacity = next + (size.saturating_sub(next) / 2 / grain) * grain;
    }
    let bound = range.bound.max(Bytes(least.min(size)));
    Look { placement: best, bound, is_over: is_known && next >= size }
}

/// Whether there is a placement within a capacity; `None` if that is not known in time, or the search does not
/// take such a problem.
pub(super) fn fits(problem: &Problem, capacity: Bytes, meter: &mut Meter<'_>) -> Option<bool> {
    let instance = Instance::new(problem)?;
    if meter.is_out() {
        return None;
    }
    match place_within(&instance, capacity.0, meter) {
        Answer::Found(_) => Some(true),
        Answer::Impossible => Some(false),
        Answer::Unknown => None,
    }
}

/// Where the items of the problem lie; those without bytes at the bottom, or where they are fixed.
fn placement(problem: &Problem, instance: &Instance, offsets: &[u64]) -> Placement {
    let pinned = problem.items().iter().map(|item| item.pin.unwrap_or_default());
    let mut placed: IndexVec<_, Bytes> = pinned.collect();
    let mut size = Bytes::ZERO;
    for ((&item, &offset), piece) in instance.items.iter().zip(offsets).zip(&instance.pieces) {
        placed[item] = Bytes(offset);
        size = size.max(Bytes(offset + piece.bytes));
    }
    Placement { offsets: placed, size }
}
