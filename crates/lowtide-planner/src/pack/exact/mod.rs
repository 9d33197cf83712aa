//! A placement that is known in, a smaller one out, or the proof that there is none.
//!
//! ~~~text
//! bound ─────?──────────────────── known        is there a placement as small as the bound? (tight, so quick to tell)
//!       impossible ──?──────────── known        if not told: one half way? and so on, as far as the steps go
//! ~~~
//! Every question is for one capacity, and answered yes with offsets, no with certainty, or not at all: then the search
//! goes on above, and nothing is claimed. Cost: exponential at worst; `steps` are pairs of items looked at.

mod instance;
mod search;
mod state;

use instance::Instance;
pub(super) use instance::MOST_ITEMS;
use lowtide_core::{BufferId, Bytes, IndexVec, Placement, Problem};
use search::{Answer, place_within};

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Searched {
    /// A smaller placement, if one was found.
    pub(super) placement: Option<Placement>,
    /// No placement is smaller than this.
    pub(super) bound: Bytes,
}

/// Looks for a placement smaller than `known` and not below `bound`, under which there is none.
pub(super) fn improve(problem: &Problem, known: Bytes, bound: Bytes, steps: &mut u64) -> Searched {
    let mut best = Searched { placement: None, bound };
    let Some(instance) = Instance::new(problem) else { return best };
    let grain = instance.grain;
    // Below `least` there is nothing; below `next` nothing is known of, and it is not asked for again.
    let mut least = bound.0.next_multiple_of(grain);
    let (mut next, mut size) = (least, known.0);
    let mut capacity = least;
    while next < size && *steps > 0 {
        // The bound is asked for with half of the steps, each further question with half of what is left.
        let mut some = steps.div_ceil(2);
        *steps -= some;
        let answer = place_within(&instance, capacity, &mut some);
        *steps += some;
        match answer {
            Answer::Found(offsets) => {
                let placement = placement(problem, &instance, &offsets);
                size = placement.size.0;
                best.placement = Some(placement);
            }
            Answer::Impossible => {
                least = capacity + grain;
                next = least;
            }
            Answer::Unknown => next = capacity + grain,
        }
        // Half way between what is known and what is not, in steps that matter.
        capacity = next + (size.saturating_sub(next) / 2 / grain) * grain;
    }
    best.bound = bound.max(Bytes(least.min(size)));
    best
}

/// Whether there is a placement within a capacity; `None` if that is not known in time, or the search does not
/// take such a problem.
pub(super) fn fits(problem: &Problem, capacity: Bytes, steps: &mut u64) -> Option<bool> {
    let instance = Instance::new(problem)?;
    if *steps == 0 {
        return None;
    }
    match place_within(&instance, capacity.0, steps) {
        Answer::Found(_) => Some(true),
        Answer::Impossible => Some(false),
        Answer::Unknown => None,
    }
}

fn placement(
    problem: &Problem,
    instance: &Instance,
    offsets: &IndexVec<BufferId, Bytes>,
) -> Placement {
    let mut placed = IndexVec::filled(problem.items().len(), Bytes::ZERO);
    let mut size = Bytes::ZERO;
    for (piece, &item) in instance.items.iter_enumerated() {
        placed[item] = offsets[piece];
        size = size.max(offsets[piece] + Bytes(instance.pieces[piece].bytes));
    }
    Placement { offsets: placed, size }
}
