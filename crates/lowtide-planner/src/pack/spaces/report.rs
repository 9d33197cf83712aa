//! Filled spaces to the result: ids of the whole problem, and in which order what left has left.
//!
//! ~~~text
//! offered a b c d e, stayed a c ──> everything in again, and only b, d, e may leave, by the rule
//!                                   b: at step 4 still 3 KiB over;  d: at step 9 1 KiB;  e: room enough, not placed
//! ~~~
//! The order is worked out for what left in the end, so that every reason holds with those before it gone.

use super::fill::{Filled, items_of};
use super::loads::Loads;
use super::most::most_kept;
use super::offer::Offer;
use super::{FilledSpace, SpacesPacking};
use crate::pack::Packing;
use lowtide_core::{
    BufferId, Bytes, IndexVec, SpaceId, SpacesPlacement, SpacesProblem, Spill, SpillReason, Step,
};

/// What is known so far.
pub(super) struct Report<'a> {
    problem: &'a SpacesProblem,
    placement: SpacesPlacement,
    spaces: IndexVec<SpaceId, FilledSpace>,
    is_placed: IndexVec<BufferId, bool>,
}

impl<'a> Report<'a> {
    pub(super) fn new(problem: &'a SpacesProblem) -> Self {
        let items = problem.problem().items().len();
        let placement = SpacesPlacement {
            spaces: IndexVec::filled(items, SpaceId::new(0)),
            offsets: IndexVec::filled(items, Bytes::ZERO),
            ..SpacesPlacement::default()
        };
        let is_placed = IndexVec::filled(items, false);
        Self { problem, placement, spaces: IndexVec::new(), is_placed }
    }

    pub(super) fn is_placed(&self, item: BufferId) -> bool {
        self.is_placed[item]
    }

    /// Adds a space that was filled; `open` is what was not placed before.
    pub(super) fn add(
        &mut self,
        offer: &Offer<'_>,
        space: SpaceId,
        open: &[BufferId],
        filled: Filled,
    ) {
        let items = items_of(offer, &filled.kept);
        for (&item, &offset) in items.iter().zip(&filled.packing.placement.offsets) {
            self.placement.spaces[item] = space;
            self.placement.offsets[item] = offset;
            self.is_placed[item] = true;
        }
        self.placement.sizes.push(filled.packing.placement.size);
        let weight = items.iter().map(|&item| self.problem.stays()[item].weight).sum();
        let Packing { bound, rule, .. } = filled.packing;
        self.spaces.push(FilledSpace { items: items.len(), weight, bound, rule });
        let is_free = |item: BufferId| self.problem.stays()[item].space.is_none();
        for &item in open.iter().filter(|&&item| is_free(item)) {
            if !self.problem.allows(item, space) {
                let why = SpillReason::TooLarge;
                self.placement.spills.push(Spill { item, from: space, why });
            }
        }
        self.placement.spills.extend(spills(offer, space, &filled.kept));
    }

    pub(super) fn finish(self, steps: u64) -> SpacesPacking {
        let Self { problem, placement, spaces, .. } = self;
        SpacesPacking { placement, spaces, most_first: most_first(problem), steps }
    }
}

/// A bound on the weight in the first space.
fn most_first(problem: &SpacesProblem) -> u64 {
    let space = SpaceId::new(0);
    let items = problem.problem().items().ids();
    let items: Vec<BufferId> = items.filter(|&id| problem.allows(id, space)).collect();
    let stays =
        |&id: &BufferId| !problem.capacities().ids().skip(1).any(|other| problem.allows(id, other));
    let must_stay = items.iter().map(stays).collect();
    let values = problem.stays().iter().map(|stay| stay.weight).collect();
    let offer = Offer { problem, items: &items, must_stay, values: &values };
    let capacity = problem.capacities()[space].unwrap_or(Bytes::MAX_TOTAL).min(Bytes::MAX_TOTAL);
    let most = most_kept(&offer, capacity.0.cast_signed());
    u64::try_from(most).expect("the weights of a problem add up to 63 bits")
}

/// What left a space, in order, and why.
fn spills(offer: &Offer<'_>, space: SpaceId, kept: &[bool]) -> Vec<Spill> {
    let Some(capacity) = offer.problem.capacities()[space] else { return Vec::new() };
    let limit = capacity.min(Bytes::MAX_TOTAL).0.cast_signed();
    let mut now = vec![true; kept.len()];
    let mut order = offer.leave(&mut now, kept, limit);
    order.extend((0..kept.len()).filter(|&at| now[at] && !kept[at]));
    let all = vec![true; kept.len()];
    let mut loads = Loads::new(&offer.loads(&all, limit));
    let mut rows = Vec::with_capacity(order.len());
    for at in order {
        let most = offer.most(&loads, at).filter(|&(most, _)| most > 0);
        let why = most.map_or(SpillReason::NotPlaced, |(most, step)| SpillReason::Over {
            step: Step::from_index(step),
            bytes: Bytes(most.unsigned_abs()),
        });
        offer.add(&mut loads, at, -1);
        rows.push(Spill { item: offer.items[at], from: space, why });
    }
    rows
}
