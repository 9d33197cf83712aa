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
//! Then `skyline` places whole rows into the lowest valley, many times. What is left of
//! the budget goes into `exact`, which finds the smallest placement or proves that there is none below, if it
//! is given the time. What `exact` cannot take apart, `climb` improves by changing the order. The same budget gives
//! the same placement on every machine.

mod climb;
mod exact;
mod fit;
mod lower;
mod placed;
mod skyline;
mod spaces;
mod stable;
mod sweep;
mod witness;

pub use lower::placement_bound;
pub use spaces::{FilledSpace, SpacesPackError, SpacesPacking, pack_spaces};
pub use stable::Earlier;
pub use witness::{Witness, certify, witness};

use crate::meter::{Budget, Meter, Watched};
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
    /// Why nothing smaller was looked for.
    pub stopped: Stopped,
}

/// Why a search for a smaller arena came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The arena is as small as the bound: there is nothing smaller.
    AtBound,
    /// The arena is as small as was asked for.
    AtGoal,
    /// The steps ran out.
    OutOfSteps,
    /// Whoever looked on ended it.
    Ended,
    /// Nothing was left to try.
    OutOfIdeas,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct PackRequest<'r> {
    /// Pairs of items that may be looked at, and who looks on.
    pub budget: Budget<'r>,
    /// An arena of this size is small enough; the search asks for it before anything smaller or larger.
    pub goal: Option<Bytes>,
    /// Where items lay before: they stay there if the arena need not be larger than it is without that, or than the goal.
    pub earlier: Option<&'r Earlier>,
}

impl PackRequest<'_> {
    /// The smallest arena that so many steps find.
    pub fn of(steps: u64) -> Self {
        Self { budget: Budget::of(steps), goal: None, earlier: None }
    }
}

/// For an earlier placement there is one more in so many of the steps.
const FOR_EARLIER: u64 = 4;

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
    pack_as_asked(problem, PackRequest::of(steps))
}

/// Packs until the arena is as small as a lower bound or as the goal, the steps run out, or somebody ends it.
pub fn pack_as_asked(problem: &Problem, request: PackRequest<'_>) -> Packing {
    let PackRequest { budget, goal, earlier } = request;
    let watched = Watched::new(budget.watch);
    let mut packing = pack_within(problem, goal, &mut Meter::new(budget.steps, &watched));
    if let Some(earlier) = earlier {
        // What is found without it is found with it: this comes on top.
        let mut more = Meter::new(budget.steps / FOR_EARLIER, &watched);
        let limit = goal.unwrap_or_default().max(packing.placement.size);
        if let Some(placement) = stable::keep(problem, earlier, limit, &mut more) {
            if placement.size > packing.placement.size {
                packing.stopped = Stopped::AtGoal;
            }
            packing = Packing { placement, rule: "earlier", ..packing };
            packing.placement.size = packing.placement.size.max(packing.bound.bytes);
        }
        packing.steps += budget.steps / FOR_EARLIER - more.left();
    }
    packing
}

/// Packs with what a meter allows.
fn pack_within(problem: &Problem, goal: Option<Bytes>, meter: &mut Meter<'_>) -> Packing {
    let (watched, allowed) = (meter.watched(), meter.left());
    let bound = placement_bound(problem);
    let goal = goal.unwrap_or_default().max(bound.bytes);
    let mut pack =
        Pack { problem, goal, meter, best: first_packing(problem, bound), is_open: false };
    let share = pack.share_of_rules();
    pack.by_rules(share);
    pack.by_rows();
    pack.by_search();
    pack.by_climbing();
    let left = pack.meter.left();
    let Packing { mut placement, rule, bound, .. } = pack.best;
    // What is never there lies at the bottom, takes no bytes, and ends inside all the same.
    placement.size = placement.size.max(bound.bytes);
    let stopped = if placement.size <= bound.bytes {
        Stopped::AtBound
    } else if placement.size <= goal {
        Stopped::AtGoal
    } else if watched.is_ended() {
        Stopped::Ended
    } else if left == 0 || pack.is_open {
        Stopped::OutOfSteps
    } else {
        Stopped::OutOfIdeas
    };
    let steps = if watched.is_ended() { watched.steps() } else { allowed - left };
    Packing { placement, rule, bound, steps, stopped }
}

/// Packs by the greedy rules alone: what the searches are compared with.
pub fn pack_by_rules(problem: &Problem, steps: u64) -> Packing {
    let watched = Watched::new(Budget::of(0).watch);
    let meter = &mut Meter::new(steps, &watched);
    let bound = placement_bound(problem);
    let (goal, best) = (bound.bytes, first_packing(problem, bound));
    let mut pack = Pack { problem, goal, meter, best, is_open: false };
    pack.by_rules(steps);
    let left = pack.meter.left();
    Packing { steps: steps - left, ..pack.best }
}

/// One stage after the other, each unless the arena is small enough already.
struct Pack<'p, 'm, 'w> {
    problem: &'p Problem,
    goal: Bytes,
    meter: &'m mut Meter<'w>,
    best: Packing,
    /// A search had questions left when its steps were used up.
    is_open: bool,
}

impl Pack<'_, '_, '_> {
    fn is_done(&self) -> bool {
        self.best.placement.size <= self.goal || self.meter.is_out()
    }

    /// Whether there are too many items for `exact`.
    fn is_large(&self) -> bool {
        self.problem.items().len() > exact::MOST_ITEMS
    }

    /// Whether something has a fixed offset, which rows do not place around.
    fn has_pins(&self) -> bool {
        self.problem.items().iter().any(|item| item.pin.is_some())
    }

    fn keep(&mut self, placement: Placement, rule: &'static str) {
        self.best.placement = placement;
        self.best.rule = rule;
        self.meter.watched().tell(self.best.placement.size, self.best.bound.bytes);
    }

    /// What the rules may spend; nothing if many items would have them give up before the end.
    fn share_of_rules(&self) -> u64 {
        let left = self.meter.left();
        if !self.is_large() || self.has_pins() {
            return left;
        }
        let share = RULES_AT_SCALE.min(left.div_ceil(16));
        if pairs(self.problem) > share { 0 } else { share }
    }

    /// The best of the greedy rules.
    fn by_rules(&mut self, most: u64) {
        let (problem, goal, mut best) = (self.problem, self.goal, self.best.placement.size);
        let found = self.meter.with_at_most(most, |meter| {
            let mut found = None;
            for (name, key) in RULES {
                if best <= goal || meter.is_out() {
                    break;
                }
                if let Some(placement) = first_fit(problem, &sorted(problem, key), best, meter) {
                    best = placement.size;
                    found = Some((placement, name));
                }
            }
            found
        });
        if let Some((placement, name)) = found {
            self.keep(placement, name);
        }
    }

    fn by_rows(&mut self) {
        if self.is_done() {
            return;
        }
        let (known, bound, goal) = (&self.best.placement, self.best.bound.bytes, self.goal);
        if let Some(placement) = skyline::improve(self.problem, known, bound, goal, self.meter) {
            self.keep(placement, "skyline");
        }
    }

    /// Other orders, for what rows and the search do not see all placements of.
    fn by_climbing(&mut self) {
        if self.is_done() || (self.is_large() && !self.has_pins()) {
            return;
        }
        let (known, goal) = (&self.best.placement, self.goal);
        if let Some(placement) = climb::improve(self.problem, known, goal, self.meter) {
            self.keep(placement, "climb");
        }
    }

    fn by_search(&mut self) {
        if self.is_done() {
            return;
        }
        let (bound, known) = (self.best.bound.bytes, self.best.placement.size);
        let range = exact::Range { bound, goal: self.goal, known };
        let searched = exact::improve(self.problem, range, self.meter);
        self.is_open = searched.is_open;
        if searched.bound > bound {
            let proof = witness::prove(self.problem, searched.bound, self.meter);
            let proof = proof.expect("a finished search found nothing below its bound");
            self.best.bound = Bound { bytes: searched.bound, proof };
        }
        if let Some(placement) = searched.placement {
            self.keep(placement, "search");
        }
    }
}

/// Pairs of items that live together: what a rule looks at until it comes to its end.
fn pairs(problem: &Problem) -> u64 {
    let spans = || problem.items().iter().map(Item::span).filter(|span| !span.is_empty());
    let mut starts: Vec<u32> = spans().map(|span| span.start.0).collect();
    let mut ends: Vec<u32> = spans().map(|span| span.end.0).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let mut ended = 0;
    let live = starts.iter().enumerate().map(|(before, start)| {
        while ends[ended] <= *start {
            ended += 1;
        }
        (before - ended) as u64
    });
    live.sum()
}

/// One that is always found: the sweep; above everything that has a fixed offset, if something has.
fn first_packing(problem: &Problem, bound: Bound) -> Packing {
    let pins = problem.items().iter().filter_map(|item| Some(item.pin? + item.extent()));
    let pinned = pins.max().unwrap_or_default();
    let mut placement = sweep::sweep(problem);
    if pinned > Bytes::ZERO {
        let align = problem.items().iter().map(|item| item.align).max().unwrap_or(Align::ONE);
        let base = pinned.align_up(align).expect("a problem's sizes fit with padding");
        placement.size = Bytes::ZERO;
        for (id, item) in problem.items().iter_enumerated() {
            let above = if item.takes_bytes() { base } else { Bytes::ZERO };
            let offset = &mut placement.offsets[id];
            *offset = item.pin.unwrap_or(above + *offset);
            placement.size = placement.size.max(*offset + item.extent());
        }
    }
    Packing { placement, rule: "time", bound, steps: 0, stopped: Stopped::OutOfIdeas }
}

/// All items, fixed offsets first, then by the rule, ties by id.
fn sorted(problem: &Problem, key: Key) -> Vec<BufferId> {
    let keyed =
        problem.items().iter_enumerated().map(|(id, item)| (item.pin.is_none(), key(item), id));
    let mut keyed: Vec<(bool, (u64, u64), BufferId)> = keyed.collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, _, id)| id).collect()
}
