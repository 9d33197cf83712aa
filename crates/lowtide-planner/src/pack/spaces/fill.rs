//! Items that may lie in one space in, those that stay and their placement out.
//!
//! ~~~text
//! chosen by what is live ──pack──> within the capacity? done
//!                          above:  what lies wholly below the capacity stays: one answer (cut)
//!                                  choose again for less than the capacity, half way and half way: others
//!                                  the best of these ──> what left comes back as long as all still packs
//! ~~~
//! What is live may fit and its placement not: then some bytes are lost between items. Choosing for a smaller
//! capacity lets items leave from the steps that are nearly full, which are those that do not pack.
//! Cost: a limited number of packings, each with a part of the steps that are left.

use super::loads::Loads;
use super::offer::Offer;
use crate::meter::Meter;
use crate::pack::{Packing, Stopped, pack_within, placement_bound};
use lowtide_core::{BufferId, Bytes, Id, IndexVec, Placement, SpaceId, SpacesProblem};

/// Choices for smaller capacities that are packed.
const TRIES: u32 = 6;
/// Each packing takes at most such a part of the steps that are left.
const PART: u64 = 8;
/// Exchanges are many.
const EXCHANGE_PART: u64 = 64;
/// Groups of items that are tried when they come back: of few items each can be tried alone.
const FEW: usize = 64;
const GROUPS_OF_MANY: usize = 12;

/// A filled space.
pub(super) struct Filled {
    /// For each offered item, whether it stays.
    pub(super) kept: Vec<bool>,
    /// The placement of those that stay, in their order.
    pub(super) packing: Packing,
}

/// What has to stay did not fit.
pub(super) struct NotFilled {
    /// The item that ended highest above the capacity.
    pub(super) item: BufferId,
    /// What has to stay needs at least this.
    pub(super) least: Bytes,
}

/// Fills spaces within a budget of steps.
pub(super) struct Filler<'a, 'w> {
    pub(super) problem: &'a SpacesProblem,
    pub(super) meter: &'a mut Meter<'w>,
}

impl Filler<'_, '_> {
    pub(super) fn fill(&mut self, offer: &Offer<'_>, space: SpaceId) -> Result<Filled, NotFilled> {
        let all = vec![true; offer.items.len()];
        let Some(capacity) = self.problem.capacities()[space] else {
            return Ok(self.pack(offer, all, 2));
        };
        let limit = capacity.min(Bytes::MAX_TOTAL).0.cast_signed();
        let chosen = self.choose(offer, limit);
        let kept = chosen.unwrap_or_else(|| offer.must_stay.clone());
        let is_last = !offer.must_stay.contains(&false);
        let first = self.pack(offer, kept, if is_last { 2 } else { PART });
        if first.packing.placement.size <= capacity {
            return Ok(first);
        }
        if is_last {
            return Err(not_filled(offer, &first, capacity));
        }
        let mut best = self.smaller(offer, &first, capacity)?;
        self.come_back(offer, &mut best, capacity);
        if offer.items.len() <= FEW {
            self.exchange(offer, &mut best, capacity);
        }
        Ok(best)
    }

    /// Packs what stays, with a part of the steps.
    fn pack(&mut self, offer: &Offer<'_>, kept: Vec<bool>, part: u64) -> Filled {
        let items = items_of(offer, &kept);
        let (problem, some) =
            (self.problem.problem().part(&items), self.meter.left().div_ceil(part));
        let packing = self.meter.with_at_most(some, |part| pack_within(&problem, None, part));
        Filled { kept, packing }
    }

    /// Chooses what stays, with a part of the steps.
    fn choose(&mut self, offer: &Offer<'_>, capacity: i64) -> Option<Vec<bool>> {
        let some = self.meter.left() / PART;
        self.meter.with_at_most(some, |part| offer.choose(capacity, part))
    }

    /// The best of some choices that do pack, as the first one does not.
    fn smaller(
        &mut self,
        offer: &Offer<'_>,
        first: &Filled,
        capacity: Bytes,
    ) -> Result<Filled, NotFilled> {
        let mut best = self.cut(offer, first, capacity);
        let limit = capacity.0.cast_signed();
        let peak = Loads::new(&offer.loads(&offer.must_stay, 0)).peak();
        let (mut low, mut high) = (peak.map_or(0, |(most, _)| most), limit);
        let lost = first.packing.placement.size.saturating_sub(capacity).0.cast_signed();
        let mut target = limit.saturating_sub(lost);
        for _ in 0..TRIES {
            if high - low <= 1 {
                break;
            }
            if target <= low || target >= high {
                target = i64::midpoint(low, high);
            }
            let Some(kept) = self.choose(offer, target) else { break };
            let tried = self.pack(offer, kept, PART);
            if tried.packing.placement.size <= capacity {
                low = target;
                keep_better(offer, &mut best, tried);
            } else {
                high = target;
            }
            target = i64::midpoint(low, high);
        }
        if let Some(best) = best {
            return Ok(best);
        }
        let least = self.pack(offer, offer.must_stay.clone(), 2);
        if least.packing.placement.size > capacity {
            return Err(not_filled(offer, &least, capacity));
        }
        Ok(least)
    }

    /// What lies wholly below the capacity stays where it is, if what must stay does.
    fn cut(&self, offer: &Offer<'_>, whole: &Filled, capacity: Bytes) -> Option<Filled> {
        let mut kept = vec![false; whole.kept.len()];
        let mut placement = Placement::default();
        let stood = (0..kept.len()).filter(|&at| whole.kept[at]);
        for (at, &offset) in stood.zip(whole.packing.placement.offsets.as_slice()) {
            let item = offer.items[at];
            let end = offset + self.problem.problem().items()[item].extent();
            if end <= capacity {
                kept[at] = true;
                placement.offsets.push(offset);
                placement.size = placement.size.max(end);
            }
        }
        if (0..kept.len()).any(|at| offer.must_stay[at] && !kept[at]) {
            return None;
        }
        let bound = placement_bound(&self.problem.problem().part(&items_of(offer, &kept)));
        placement.size = placement.size.max(bound.bytes);
        let stopped = Stopped::AtGoal;
        Some(Filled { kept, packing: Packing { placement, rule: "cut", bound, steps: 0, stopped } })
    }

    /// What left comes back, what is worth most first, in groups that are halved when they do not pack.
    fn come_back(&mut self, offer: &Offer<'_>, best: &mut Filled, capacity: Bytes) {
        let limit = capacity.0.cast_signed();
        let mut loads = Loads::new(&offer.loads(&best.kept, limit));
        let mut group = Vec::new();
        for at in offer.by_worth() {
            if !best.kept[at] && offer.comes_back(&mut loads, at) {
                group.push(at);
            }
        }
        let few = offer.items.len() <= FEW;
        let mut tries = if few { offer.items.len() } else { GROUPS_OF_MANY };
        let mut groups = vec![group];
        while let Some(group) = groups.pop().filter(|group| !group.is_empty() && tries > 0) {
            tries -= 1;
            let mut kept = best.kept.clone();
            for &at in &group {
                kept[at] = true;
            }
            let tried = self.pack(offer, kept, PART);
            if tried.packing.placement.size <= capacity {
                *best = tried;
                continue;
            }
            if group.len() > 1 {
                let (first, second) = group.split_at(group.len().div_ceil(2));
                groups.push(second.to_vec());
                groups.push(first.to_vec());
            }
        }
    }

    /// Of few items: one that left comes in and others leave for it, as long as that gains and packs.
    fn exchange(&mut self, offer: &Offer<'_>, best: &mut Filled, capacity: Bytes) {
        let order = offer.by_worth();
        let mut next = 0;
        while let Some(&at) = order.get(next) {
            next += 1;
            if best.kept[at] {
                continue;
            }
            if let Some(better) = self.with(offer, best, at, capacity) {
                *best = better;
                next = 0;
            }
        }
    }

    /// A better filling that holds this item: each other one is left out, and what then packs comes in.
    fn with(
        &mut self,
        offer: &Offer<'_>,
        best: &Filled,
        at: usize,
        capacity: Bytes,
    ) -> Option<Filled> {
        let value = offer.total(&best.kept);
        let mut kept = best.kept.clone();
        kept[at] = true;
        let mut out: Vec<usize> =
            (0..kept.len()).filter(|&other| best.kept[other] && !offer.must_stay[other]).collect();
        out.sort_by_key(|&other| (offer.value(other), other));
        for other in out {
            kept[other] = false;
            if offer.total(&kept) > value {
                let mut tried = self.pack(offer, kept.clone(), EXCHANGE_PART);
                if tried.packing.placement.size <= capacity {
                    self.come_back(offer, &mut tried, capacity);
                    return Some(tried);
                }
            }
            kept[other] = true;
        }
        None
    }
}

/// The items that stay.
pub(super) fn items_of(offer: &Offer<'_>, kept: &[bool]) -> Vec<BufferId> {
    let rows = offer.items.iter().zip(kept);
    rows.filter(|&(_, &is_kept)| is_kept).map(|(&item, _)| item).collect()
}

fn keep_better(offer: &Offer<'_>, best: &mut Option<Filled>, tried: Filled) {
    let is_better =
        best.as_ref().is_none_or(|best| offer.total(&tried.kept) > offer.total(&best.kept));
    if is_better {
        *best = Some(tried);
    }
}

fn not_filled(offer: &Offer<'_>, whole: &Filled, capacity: Bytes) -> NotFilled {
    let items = items_of(offer, &whole.kept);
    let offsets: &IndexVec<BufferId, Bytes> = &whole.packing.placement.offsets;
    let ends = offsets.iter_enumerated().map(|(part, &offset)| {
        let item = items[part.index()];
        (offset + offer.problem.problem().items()[item].extent(), item)
    });
    let highest = ends.filter(|&(end, _)| end > capacity).max();
    let item = highest.map_or(BufferId::new(0), |(_, item)| item);
    NotFilled { item, least: whole.packing.bound.bytes }
}
