//! Items that may lie in a space in, those that are to stay out: by what is live alone, before anything is placed.
//!
//! ~~~text
//! live ^     ┌─a─┐          over the capacity while a lives: of a, b and c the one that is worth least for each
//!  cap |╌╌┌──┴─b─┴──┐╌╌╌    byte that it takes off the excess, here a or b, leaves first
//!      |  │    c    │
//!      +-----------------> step
//! ~~~
//! The rule: while a step is over, the item leaves that is worth least for each byte of excess that it relieves,
//! summed over all steps that are over, as one that helps at several is better. Then what left comes back where
//! there is room, what is worth most first. Three ways to fill from nothing (by worth, by worth for a byte, by worth for a byte
//! and step) are tried too. The best of these is improved by exchanges: one item in, by the same rule others out.
//! Cost: O(n log n) for each way; exchanges have a budget.

use super::loads::Loads;
use super::over::Over;
use crate::meter::Meter;
use lowtide_core::{BufferId, IndexVec, Interval, SpacesProblem};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// How often on average the place of an item in the order may be worked out again.
const REFRESHES: usize = 16;
/// What an exchange costs for each item and each step: loads are summed up again, and items tried in their order.
const EXCHANGE: u64 = 64;
/// Rounds of exchanges.
const ROUNDS: usize = 8;

/// What may lie in a space.
pub(super) struct Offer<'a> {
    pub(super) problem: &'a SpacesProblem,
    /// The items; all else speaks of their positions here.
    pub(super) items: &'a [BufferId],
    /// What has nowhere else to go.
    pub(super) must_stay: Vec<bool>,
    /// What an item counts; by its id.
    pub(super) values: &'a IndexVec<BufferId, u64>,
}

impl Offer<'_> {
    fn rects(&self, at: usize) -> impl Iterator<Item = (Range<usize>, i64)> {
        let rects = self.problem.problem().items()[self.items[at]].rects().iter();
        let taken = rects.filter(|rect| rect.takes_bytes());
        taken.map(|rect| {
            (rect.span.start.index()..rect.span.end.index(), rect.bytes.0.cast_signed())
        })
    }

    fn span(&self, at: usize) -> Interval {
        self.problem.problem().items()[self.items[at]].span()
    }

    pub(super) fn value(&self, at: usize) -> u64 {
        self.values[self.items[at]]
    }

    pub(super) fn total(&self, kept: &[bool]) -> u128 {
        (0..kept.len()).filter(|&at| kept[at]).map(|at| u128::from(self.value(at))).sum()
    }

    /// Bytes above or below the capacity at each step.
    pub(super) fn loads(&self, kept: &[bool], capacity: i64) -> Vec<i64> {
        let mut changes = vec![0_i64; self.problem.problem().steps() + 1];
        for at in (0..kept.len()).filter(|&at| kept[at]) {
            for (steps, bytes) in self.rects(at) {
                changes[steps.start] += bytes;
                changes[steps.end] -= bytes;
            }
        }
        changes.pop();
        let mut load = -capacity;
        for change in &mut changes {
            load += *change;
            *change = load;
        }
        changes
    }

    pub(super) fn add(&self, loads: &mut Loads, at: usize, sign: i64) {
        for (steps, bytes) in self.rects(at) {
            loads.add(steps, sign * bytes);
        }
    }

    /// The most above the capacity while an item lives, and when.
    pub(super) fn most(&self, loads: &Loads, at: usize) -> Option<(i64, usize)> {
        let mosts = self.rects(at).filter_map(|(steps, _)| loads.most(steps));
        mosts.max_by_key(|&(most, step)| (most, Reverse(step)))
    }

    /// What is to stay within a capacity; `None` if what has to is too much already.
    pub(super) fn choose(&self, capacity: i64, meter: &mut Meter<'_>) -> Option<Vec<bool>> {
        let peak = Loads::new(&self.loads(&self.must_stay, capacity)).peak();
        if peak.is_some_and(|(most, _)| most > 0) {
            return None;
        }
        let mut best = vec![true; self.items.len()];
        if self.leave(&mut best, &self.must_stay, capacity).is_empty() {
            return Some(best);
        }
        self.come_back(&mut best, capacity, &self.by_worth());
        for order in self.other_orders(capacity) {
            let mut kept = self.must_stay.clone();
            self.come_back(&mut kept, capacity, &order);
            if self.total(&kept) > self.total(&best) {
                best = kept;
            }
        }
        self.exchange(&mut best, capacity, meter);
        Some(best)
    }

    /// Takes out what is worth least for each byte of excess, until no step is over; returns it in this order.
    pub(super) fn leave(&self, kept: &mut [bool], stays: &[bool], capacity: i64) -> Vec<usize> {
        let mut over = Over::new(&self.loads(kept, capacity));
        let key = |over: &mut Over, at: usize| {
            let relief: u128 =
                self.rects(at).map(|(steps, bytes)| over.relief(&steps, bytes)).sum();
            (relief > 0).then(|| (ratio(self.value(at), relief), Reverse(relief), at))
        };
        let may_leave = (0..kept.len()).filter(|&at| kept[at] && !stays[at]);
        let mut heap: BinaryHeap<_> =
            may_leave.filter_map(|at| key(&mut over, at)).map(Reverse).collect();
        let mut left = Vec::new();
        let mut refreshes = REFRESHES * heap.len();
        while over.is_over()
            && let Some(Reverse((_, _, at))) = heap.pop()
        {
            // What others relieved since makes an item worth more for a byte, never less.
            let Some(now) = key(&mut over, at) else { continue };
            if refreshes > 0 && heap.peek().is_some_and(|Reverse(next)| *next < now) {
                refreshes -= 1;
                heap.push(Reverse(now));
                continue;
            }
            self.rects(at).for_each(|(steps, bytes)| over.lower(&steps, bytes));
            kept[at] = false;
            left.push(at);
        }
        left
    }

    /// Lets items in, in this order, where there is room.
    fn come_back(&self, kept: &mut [bool], capacity: i64, order: &[usize]) {
        let mut loads = Loads::new(&self.loads(kept, capacity));
        for &at in order {
            if !kept[at] {
                kept[at] = self.comes_back(&mut loads, at);
            }
        }
    }

    /// Adds an item if there is room.
    pub(super) fn comes_back(&self, loads: &mut Loads, at: usize) -> bool {
        // Most have no room for one rectangle alone; to look costs less than to add and take away.
        let is_full = |(steps, bytes)| loads.most(steps).is_some_and(|(most, _)| most + bytes > 0);
        if self.rects(at).any(is_full) {
            return false;
        }
        self.add(loads, at, 1);
        let has_room = self.most(loads, at).is_none_or(|(most, _)| most <= 0);
        if !has_room {
            self.add(loads, at, -1);
        }
        has_room
    }

    /// All items, what is worth most first.
    pub(super) fn by_worth(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.items.len()).collect();
        order.sort_by_cached_key(|&at| {
            (Reverse(self.value(at)), self.problem.need(self.items[at]), at)
        });
        order
    }

    /// Other orders of filling from nothing: by worth, for a byte, for a byte and a step that is over.
    fn other_orders(&self, capacity: i64) -> [Vec<usize>; 3] {
        let all = vec![true; self.items.len()];
        let mut is_over = Vec::with_capacity(self.problem.problem().steps() + 1);
        let mut count = 0_u64;
        for load in self.loads(&all, capacity) {
            is_over.push(count);
            count += u64::from(load > 0);
        }
        is_over.push(count);
        let bytes = |at: usize| self.rects(at).map(|(_, bytes)| bytes.unsigned_abs()).max();
        let area = |at: usize| -> u128 {
            let rects = self.rects(at);
            rects
                .map(|(steps, bytes)| {
                    let steps = is_over[steps.end] - is_over[steps.start];
                    u128::from(steps) * u128::from(bytes.unsigned_abs())
                })
                .sum()
        };
        let sorted = |key: &dyn Fn(usize) -> u64| {
            let mut order: Vec<usize> = (0..self.items.len()).collect();
            order.sort_by_cached_key(|&at| (Reverse(key(at)), at));
            order
        };
        [
            self.by_worth(),
            sorted(&|at| ratio(self.value(at), bytes(at).unwrap_or(0).into())),
            sorted(&|at| ratio(self.value(at), area(at))),
        ]
    }

    /// One item in, others out by the rule, as long as that gains and the budget lasts.
    fn exchange(&self, best: &mut Vec<bool>, capacity: i64, meter: &mut Meter<'_>) {
        let order = self.by_worth();
        let cost = EXCHANGE * (self.items.len() + self.problem.problem().steps()) as u64;
        for _ in 0..ROUNDS {
            let mut has_gained = false;
            for &at in &order {
                if best[at] {
                    continue;
                }
                if meter.left() < cost {
                    return;
                }
                meter.spend(cost);
                if let Some(kept) = self.with(best, at, capacity, &order)
                    && self.total(&kept) > self.total(best)
                {
                    *best = kept;
                    has_gained = true;
                }
            }
            if !has_gained {
                return;
            }
        }
    }

    /// The same with one more item, and without what has to leave for it.
    fn with(&self, kept: &[bool], at: usize, capacity: i64, order: &[usize]) -> Option<Vec<bool>> {
        let mut stays = self.must_stay.clone();
        stays[at] = true;
        let mut kept = kept.to_vec();
        kept[at] = true;
        let left = self.leave(&mut kept, &stays, capacity);
        if self.loads(&kept, capacity).iter().any(|&load| load > 0) {
            return None;
        }
        // Nothing more had room before, and there is more of it only where something left.
        let freed = left.into_iter().map(|at| self.span(at)).reduce(Interval::hull);
        let freed = freed.unwrap_or_default();
        let is_near = |at: &usize| self.span(*at).overlaps(freed);
        let near: Vec<usize> = order.iter().copied().filter(is_near).collect();
        self.come_back(&mut kept, capacity, &near);
        Some(kept)
    }
}

/// A quotient as a number that sorts like it; division is the same on every machine. By nothing: the most.
fn ratio(value: u64, bytes: u128) -> u64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "it only orders; ties go by what stands beside it"
    )]
    let ratio = value as f64 / bytes as f64;
    if bytes == 0 { u64::MAX } else { ratio.to_bits() }
}
