//! Problem to placement: several greedy orders, the best kept.
//!
//! ~~~text
//! offset ^ | b1 |  b2   |   b0 came first; b1 and b2 never live together, so they lie at the same
//!        | |     b0     |   offset on top of it. Holes below and between are filled.
//! ~~~
//!
//! [`sweep`] places in the order of time, as a heap would, and costs O(n log n) whatever lives together.
//! [`first_fit`](Rule) and best fit look at all placed items that live together with the next one; they run
//! within a budget of such pairs, and stop as soon as one meets the bound. Not optimal.

mod fit;
mod placed;
mod sweep;

use fit::{Fit, place_in_order};
use lowtide_core::{BufferId, Bytes, Item, Placement, Problem};

/// A placement and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Where each item lies.
    pub placement: Placement,
    /// Which rule won.
    pub rule: &'static str,
    /// Pairs of items looked at.
    pub steps: u64,
}

/// An order of items, and which hole they take.
struct Rule {
    name: &'static str,
    order: fn(&Item) -> (u64, u64),
    fit: Fit,
}

/// Largest first in some sense; the keys sort ascending, so they are negated.
const RULES: [Rule; 7] = [
    Rule { name: "size, first fit", order: by_size, fit: Fit::First },
    Rule { name: "start, first fit", order: by_start, fit: Fit::First },
    Rule { name: "area, first fit", order: by_area, fit: Fit::First },
    Rule { name: "size, best fit", order: by_size, fit: Fit::Best },
    Rule { name: "lifetime, first fit", order: by_lifetime, fit: Fit::First },
    Rule { name: "start, best fit", order: by_start, fit: Fit::Best },
    Rule { name: "area, best fit", order: by_area, fit: Fit::Best },
];

fn by_size(item: &Item) -> (u64, u64) {
    (u64::MAX - item.extent().0, u64::from(item.span().start.0))
}

fn by_start(item: &Item) -> (u64, u64) {
    (u64::from(item.span().start.0), u64::MAX - item.extent().0)
}

fn by_area(item: &Item) -> (u64, u64) {
    let area = item.extent().0.saturating_mul(u64::from(item.span().len()));
    (u64::MAX - area, u64::from(item.span().start.0))
}

fn by_lifetime(item: &Item) -> (u64, u64) {
    (u64::MAX - u64::from(item.span().len()), u64::MAX - item.extent().0)
}

/// Packs within a budget of `steps` pairs; stops once the arena is as small as `bound`.
pub fn pack(problem: &Problem, bound: Bytes, steps: u64) -> Packing {
    let mut left = steps;
    let mut best = first_packing(problem);
    for rule in &RULES {
        if best.placement.size <= bound || left == 0 {
            break;
        }
        let order = sorted(problem, rule.order);
        if let Some(placement) = place_in_order(problem, &order, rule.fit, &mut left)
            && placement.size < best.placement.size
        {
            best = Packing { placement, rule: rule.name, steps: 0 };
        }
    }
    best.steps = steps - left;
    best
}

/// One that is always found. Fixed offsets need the rule that looks at what lies where.
fn first_packing(problem: &Problem) -> Packing {
    if problem.items().iter().all(|item| item.pin.is_none()) {
        return Packing { placement: sweep::sweep(problem), rule: "sweep, best fit", steps: 0 };
    }
    let order = sorted(problem, by_size);
    let placement = place_in_order(problem, &order, Fit::First, &mut u64::MAX.clone());
    Packing {
        placement: placement.expect("the budget is endless"),
        rule: "size, first fit",
        steps: 0,
    }
}

/// All items, fixed offsets first, then by the rule, ties by id.
fn sorted(problem: &Problem, key: fn(&Item) -> (u64, u64)) -> Vec<BufferId> {
    let keyed =
        problem.items().iter_enumerated().map(|(id, item)| (item.pin.is_none(), key(item), id));
    let mut keyed: Vec<(bool, (u64, u64), BufferId)> = keyed.collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, _, id)| id).collect()
}
