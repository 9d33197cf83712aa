//! Problem to placement: several greedy orders, the best kept; then a search for a smaller one.
//!
//! ~~~text
//! offset ^ | b1 |  b2   |   b0 came first; b1 and b2 never live together, so they lie at the same
//!        | |     b0     |   offset on top of it. Holes below and between are filled.
//! ~~~
//!
//! The sweep places in the order of time, as a heap would, and costs O(n log n) whatever lives together. The
//! other rules look at all placed items that live together with the next one; they run within a budget of
//! such pairs, give up as soon as they cannot beat the best so far, and are not tried once one meets the
//! bound. Holes are filled from below: over the models at hand, taking the tightest hole instead never won.
//! Of thousands of items, `skyline` then places whole rows into the lowest valley, many times. What is left of
//! the budget goes into `exact`, which finds the smallest placement or proves that there is none below, if it
//! is given the time; the same budget gives the same placement on every machine.

mod exact;
mod fit;
mod lower;
mod placed;
mod random;
mod skyline;
mod spaces;
mod sweep;
mod witness;

pub use lower::placement_bound;
pub use spaces::{FilledSpace, SpacesPackError, SpacesPacking, pack_spaces};
pub use witness::{Witness, certify, witness};

use fit::first_fit;
use lowtide_core::{Align, Bound, BufferId, Bytes, Item, Placement, Problem};

/// A placement and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Where each item lies.
    pub placement: Placement,
    /// Which rule won.
    pub rule: &'static str,
    /// No placement is smaller, and why.
    pub bound: Bound,
    /// Pairs of items looked at.
    pub steps: u64,
}

/// The key by which a rule sorts items, ascending.
type Key = fn(&Item) -> (u64, u64);

/// Rules by name, the one that wins most often first. Keys that say "largest first" are negated.
const RULES: [(&str, Key); 3] = [("size", by_size), ("area", by_area), ("lifetime", by_lifetime)];

/// Pairs that the rules may look at where `exact` takes no part: with a million items each pair is a cache miss, and `skyline` wins.
const RULES_AT_SCALE: u64 = 100_000_000;

fn by_size(item: &Item) -> (u64, u64) {
    (u64::MAX - item.extent().0, u64::from(item.span().start.0))
}

fn by_area(item: &Item) -> (u64, u64) {
    let area = item.extent().0.saturating_mul(u64::from(item.span().len()));
    (u64::MAX - area, u64::from(item.span().start.0))
}

fn by_lifetime(item: &Item) -> (u64, u64) {
    (u64::MAX - u64::from(item.span().len()), u64::MAX - item.extent().0)
}

/// Packs within a budget of `steps` pairs; stops once the arena is as small as a lower bound.
pub fn pack(problem: &Problem, steps: u64) -> Packing {
    let bound = placement_bound(problem);
    let least = bound.bytes;
    let mut left = steps;
    let mut best = by_rules(problem, bound, &mut left);
    if best.placement.size > least
        && is_large(problem)
        && let Some(placement) = skyline::improve(problem, &best.placement, least, &mut left)
    {
        best = Packing { placement, rule: "skyline", ..best };
    }
    if best.placement.size > least {
        let searched = exact::improve(problem, best.placement.size, least, &mut left);
        if searched.bound > least {
            let proof = certify(problem, searched.bound, &mut left);
            let proof = proof.expect("a finished search found nothing below its bound");
            best.bound = Bound { bytes: searched.bound, proof };
        }
        if let Some(placement) = searched.placement {
            best = Packing { placement, rule: "search", ..best };
        }
    }
    // What is never there lies at the bottom, takes no bytes, and ends inside all the same.
    best.placement.size = best.placement.size.max(least);
    best.steps = steps - left;
    best
}

/// Whether there are too many items for `exact`.
fn is_large(problem: &Problem) -> bool {
    problem.items().len() > exact::MOST_ITEMS
}

/// The best of the greedy rules.
fn by_rules(problem: &Problem, bound: Bound, left: &mut u64) -> Packing {
    let least = bound.bytes;
    let mut best = Packing { bound, ..first_packing(problem) };
    let mut some = if is_large(problem) { RULES_AT_SCALE.min(left.div_ceil(16)) } else { *left };
    *left -= some;
    for (name, key) in RULES {
        if best.placement.size <= least || some == 0 {
            break;
        }
        let order = sorted(problem, key);
        if let Some(placement) = first_fit(problem, &order, best.placement.size, &mut some) {
            best = Packing { placement, rule: name, ..best };
        }
    }
    *left += some;
    best
}

/// One that is always found: the sweep; above everything that has a fixed offset, if something has.
fn first_packing(problem: &Problem) -> Packing {
    let pins = problem.items().iter().filter_map(|item| Some(item.pin? + item.extent()));
    let pinned = pins.max().unwrap_or_default();
    let mut placement = sweep::sweep(problem);
    if pinned > Bytes::ZERO {
        let align = problem.items().iter().map(|item| item.align).max().unwrap_or(Align::ONE);
        let base = pinned.align_up(align).expect("a problem's sizes fit with padding");
        placement.size = base + placement.size;
        for (id, item) in problem.items().iter_enumerated() {
            let offset = &mut placement.offsets[id];
            *offset = item.pin.unwrap_or(base + *offset);
        }
    }
    Packing { placement, rule: "time", bound: Bound::NONE, steps: 0 }
}

/// All items, fixed offsets first, then by the rule, ties by id.
fn sorted(problem: &Problem, key: Key) -> Vec<BufferId> {
    let keyed =
        problem.items().iter_enumerated().map(|(id, item)| (item.pin.is_none(), key(item), id));
    let mut keyed: Vec<(bool, (u64, u64), BufferId)> = keyed.collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, _, id)| id).collect()
}
