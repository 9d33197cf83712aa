//! Places items one after the other, each into a hole between those that live together with it.
//!
//! ~~~text
//! base of the next item:   0 ──(forbidden)── free ──(forbidden)──(forbidden)── free ...
//!                                            first fit: here; best fit: the hole with least to spare
//! ~~~
//! A placed rectangle forbids an open interval of bases: those at which some rectangle of the item would
//! overlap it. Cost for an item with k neighbours: O(k log n). Neighbours are what the budget counts.

use super::placed::{Placed, Taken};
use lowtide_core::{Align, BufferId, Bytes, IndexVec, Item, Placement, Problem};

/// Which hole an item takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// The lowest.
    First,
    /// The one with the least to spare, the lowest of equals; above all if there is none.
    Best,
}

/// Places all items in the given order; `None` if `steps` run out.
pub(super) fn place_in_order(
    problem: &Problem,
    order: &[BufferId],
    fit: Fit,
    steps: &mut u64,
) -> Option<Placement> {
    let mut placed = Placed::new(problem);
    let mut offsets = IndexVec::filled(order.len(), Bytes::ZERO);
    let mut size = Bytes::ZERO;
    let mut forbidden = Vec::new();
    for &id in order {
        let item = &problem.items()[id];
        let base = if let Some(pin) = item.pin {
            pin
        } else {
            forbidden.clear();
            forbid(&placed, item, &mut forbidden);
            *steps = steps.saturating_sub(1 + forbidden.len() as u64);
            if *steps == 0 {
                return None;
            }
            Bytes(find_hole(&mut forbidden, item.align, fit))
        };
        offsets[id] = base;
        size = size.max(base + item.extent());
        add(&mut placed, id, item, base);
    }
    Some(Placement { offsets, size })
}

/// Bases at which the item would meet something, as pairs `(low, high)`: all between, ends excluded.
/// A base may be `low` or below, so `low` is `None` where not even 0 is far enough below.
type Forbidden = (Option<u64>, u64);

fn forbid(placed: &Placed, item: &Item, forbidden: &mut Vec<Forbidden>) {
    for rect in item.rects().iter().filter(|rect| rect.bytes > Bytes::ZERO) {
        placed.overlapping(rect.span, |Taken { bottom, top }| {
            if let Some(high) = top.checked_sub(rect.offset.0).filter(|&high| high > 0) {
                forbidden.push((bottom.checked_sub(rect.end().0), high));
            }
        });
    }
}

fn find_hole(forbidden: &mut [Forbidden], align: Align, fit: Fit) -> u64 {
    forbidden.sort_unstable();
    let mut free_from = 0;
    let mut best: Option<(u64, u64)> = None;
    for &(low, high) in &*forbidden {
        if let Some(low) = low.filter(|&low| free_from <= low) {
            match fit {
                Fit::First => return free_from,
                Fit::Best => {
                    let hole = (low - free_from, free_from);
                    best = Some(best.map_or(hole, |best| best.min(hole)));
                }
            }
        }
        if high > free_from {
            let high = Bytes(high).align_up(align).expect("a problem's sizes fit with padding");
            free_from = high.0;
        }
    }
    best.map_or(free_from, |(_, base)| base)
}

fn add(placed: &mut Placed, id: BufferId, item: &Item, base: Bytes) {
    for (index, rect) in item.rects().iter().enumerate() {
        if rect.bytes > Bytes::ZERO && !rect.span.is_empty() {
            let bottom = (base + rect.offset).0;
            let taken = Taken { bottom, top: bottom + rect.bytes.0 };
            placed.add(id, index, rect.span.end.0, taken);
        }
    }
}
