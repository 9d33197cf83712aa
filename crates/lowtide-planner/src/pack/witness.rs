//! A capacity that is too small in, a smallest set of items that cannot be placed together within it out.
//!
//! ~~~text
//! all items   a b c d e f g h      impossible
//! window          c d e f g        impossible: what lives around the tightest step is enough
//! leave out       c d     g        e, f left out: still impossible
//! one by one      c       g        no item can be spared: this is why the capacity is too small
//! ~~~
//! Smallest means that no item can be left out, not that no other set has fewer. Each question goes to the
//! exact search; one that it does not answer in time keeps its items. Cost: about `k log n` searches for `k`
//! items in the end.

use super::exact;
use super::lower::placement_bound;
use crate::bounds::{live_bound, live_sums};
use crate::meter::{Budget, Meter, Watched};
use lowtide_core::check::{Shown, check_bound};
use lowtide_core::{Align, Bound, BufferId, Bytes, Interval, Item, Problem, Proof, Rect, Step};
use std::cmp::Reverse;

/// Each question may take so great a part of the steps that are left.
const PART: u64 = 4;
/// Sets that are larger than this are not offered to the checker.
const MOST_ITEMS: usize = 64;

/// Items that cannot be placed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The items, by id.
    pub items: Vec<BufferId>,
    /// Whether any of them can be left out and the others do fit; if not, the steps were used up before
    /// that was known of all of them.
    pub is_smallest: bool,
}

/// Why a capacity is too small, for a search that has shown that it is; `None` if that is not found again
/// within the budget.
pub fn witness(problem: &Problem, capacity: Bytes, budget: Budget<'_>) -> Option<Witness> {
    let watched = Watched::new(budget.watch);
    find(problem, capacity, &mut Meter::new(budget.steps, &watched))
}

fn find(problem: &Problem, capacity: Bytes, meter: &mut Meter<'_>) -> Option<Witness> {
    let mut search = Search { problem, capacity, meter, is_sure: true };
    let peak = peak(problem);
    let sum = search.smallest_sum(peak);
    if let Some(items) = &sum
        && search.fits_without_any(items)
    {
        return Some(sorted(items.clone(), true));
    }
    let mut items = sum.map_or_else(|| search.around(peak), Some)?;
    search.is_sure = true;
    search.leave_out(&mut items, peak);
    Some(sorted(items, search.is_sure))
}

/// The proof of a bound that a finished search has found: a certificate if one is simple enough for the
/// checker, else the search. `None` if the search contradicts it: there is a placement below.
pub fn certify(problem: &Problem, claimed: Bytes, budget: Budget<'_>) -> Option<Proof> {
    let watched = Watched::new(budget.watch);
    prove(problem, claimed, &mut Meter::new(budget.steps, &watched))
}

/// [`certify`] within what is left of a budget.
pub(super) fn prove(problem: &Problem, claimed: Bytes, meter: &mut Meter<'_>) -> Option<Proof> {
    let simple = placement_bound(problem);
    if simple.bytes >= claimed {
        return Some(simple.proof);
    }
    let below = claimed.saturating_sub(Bytes(1));
    if fits_in_part(problem, below, meter) == Some(true) {
        return None;
    }
    let witness = find(problem, below, meter).filter(|found| found.items.len() <= MOST_ITEMS);
    let proof = witness.map(|found| Proof::Items(found.items.into()));
    let is_shown = |proof: &Proof| {
        let bound = Bound { bytes: claimed, proof: proof.clone() };
        check_bound(problem, &bound) == Ok(Shown::Certified)
    };
    Some(proof.filter(is_shown).unwrap_or(Proof::Search))
}

/// Whether a problem fits, asked with a part of the steps; `None` if that is not known in time.
fn fits_in_part(problem: &Problem, capacity: Bytes, meter: &mut Meter<'_>) -> Option<bool> {
    let some = meter.left().div_ceil(PART);
    meter.with_at_most(some, |part| exact::fits(problem, capacity, part))
}

fn sorted(mut items: Vec<BufferId>, is_smallest: bool) -> Witness {
    items.sort_unstable();
    Witness { items, is_smallest }
}

fn peak(problem: &Problem) -> Step {
    match live_bound(&live_sums(problem)).proof {
        Proof::LiveSum(step) => step,
        _ => Step::ZERO,
    }
}

struct Search<'a, 'w> {
    problem: &'a Problem,
    capacity: Bytes,
    meter: &'a mut Meter<'w>,
    /// All questions were answered.
    is_sure: bool,
}

impl Search<'_, '_> {
    /// The fewest of the items that are live at a step whose bytes are more than the capacity.
    fn smallest_sum(&self, step: Step) -> Option<Vec<BufferId>> {
        let is_live = |rect: &&Rect| rect.span.contains(step);
        let bytes = |item: &Item| item.rects().iter().filter(is_live).map(|r| r.bytes).sum();
        let items = self.problem.items().iter_enumerated();
        let mut rows: Vec<(Bytes, BufferId)> = items.map(|(id, item)| (bytes(item), id)).collect();
        rows.sort_unstable_by_key(|&(bytes, id)| (Reverse(bytes), id));
        let mut sum = Bytes::ZERO;
        for (at, &(bytes, _)) in rows.iter().enumerate() {
            sum += bytes;
            if sum > self.capacity {
                return Some(rows[..=at].iter().map(|&(_, id)| id).collect());
            }
        }
        None
    }

    /// Whether plain sums tell all about these items, which live together: any but one of them can be piled up.
    fn fits_without_any(&self, items: &[BufferId]) -> bool {
        let items = || items.iter().map(|&id| &self.problem.items()[id]);
        let align = items().map(|item| item.align).max().unwrap_or(Align::ONE);
        items().all(|item| {
            let is_plain = matches!(item.rects(), [rect] if rect.offset == Bytes::ZERO);
            is_plain && item.pin.is_none() && item.extent().is_aligned(align)
        })
    }

    /// Whether these items fit; `None` if that is not known in time.
    fn fits(&mut self, items: &[BufferId]) -> Option<bool> {
        let part = self.problem.part(items);
        if placement_bound(&part).bytes > self.capacity {
            return Some(false);
        }
        fits_in_part(&part, self.capacity, self.meter)
    }

    /// What lives around a step, from there on as far out as it takes to be too much.
    fn around(&mut self, step: Step) -> Option<Vec<BufferId>> {
        let mut reach = 0_u32;
        loop {
            let window = Interval::new(
                Step(step.0.saturating_sub(reach)),
                Step(step.0.saturating_add(reach).saturating_add(1)),
            );
            let items = self.problem.items().iter_enumerated();
            let near = items.filter(|(_, item)| item.span().overlaps(window));
            let near: Vec<BufferId> = near.map(|(id, _)| id).collect();
            if self.fits(&near) == Some(false) {
                return Some(near);
            }
            let is_all = window.start == Step::ZERO && window.end.index() >= self.problem.steps();
            if is_all || self.meter.is_out() {
                return None;
            }
            reach = (2 * reach).max(1);
        }
    }

    /// Leaves out groups, then smaller ones, then one by one; the farthest and the smallest first.
    fn leave_out(&mut self, items: &mut Vec<BufferId>, peak: Step) {
        let key = |&id: &BufferId| {
            let item = &self.problem.items()[id];
            let Interval { start, end } = item.span();
            let distance = start.0.saturating_sub(peak.0).max((peak.0 + 1).saturating_sub(end.0));
            (Reverse(distance), item.extent(), id)
        };
        items.sort_unstable_by_key(key);
        let mut group = items.len() / 2;
        while group > 0 {
            let mut at = 0;
            while at < items.len() {
                let end = (at + group).min(items.len());
                let rest = [&items[..at], &items[end..]].concat();
                match self.fits(&rest) {
                    Some(false) => *items = rest,
                    Some(true) => at = end,
                    None => {
                        // A group that is kept unasked is asked for again in parts.
                        self.is_sure &= group > 1;
                        at = end;
                    }
                }
            }
            group /= 2;
        }
    }
}
