//! Places items one after the other, each into the lowest hole between those that live together with it.
//!
//! ~~~text
//! base of the next item:   0 ──(forbidden)── free ──(forbidden)──(forbidden)── free ...
//!                                            here
//! ~~~
//! A placed rectangle forbids an interval of bases: those at which some rectangle of the item would overlap
//! it. Cost for an item with k neighbours: O(k log n). Neighbours are what the budget counts.

use super::placed::{Placed, Taken};
use crate::meter::Meter;
use lowtide_core::{Align, BufferId, Bytes, IndexVec, Item, Placement, Problem};

/// Places all items in the given order; `None` if the arena comes to `limit` or more, or the steps run out.
pub(super) fn first_fit(
    problem: &Problem,
    order: &[BufferId],
    limit: Bytes,
    meter: &mut Meter<'_>,
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
            meter.spend(1 + forbid(&placed, item, &mut forbidden));
            lowest_hole(&mut forbidden, item.align)
        };
        size = size.max(base + item.extent());
        if size >= limit || meter.is_out() {
            return None;
        }
        offsets[id] = base;
        add(&mut placed, id, item, base);
    }
    Some(Placement { offsets, size })
}

/// Bases at which the item would meet something: from the first number up to, but without, the second.
type Forbidden = (u64, u64);

/// More intervals than this are united, again and again: an item of many rectangles meets the same ones many times.
const MOST_APART: usize = 1 << 16;

/// Finds what is forbidden; returns how many pairs of rectangles that took.
fn forbid(placed: &Placed, item: &Item, forbidden: &mut Vec<Forbidden>) -> u64 {
    let (mut pairs, mut most) = (0, MOST_APART);
    for rect in item.rects().iter().filter(|rect| rect.takes_bytes()) {
        placed.overlapping(rect.span, |Taken { bottom, top }| {
            pairs += 1;
            if let Some(high) = top.checked_sub(rect.offset.0).filter(|&high| high > 0) {
                forbidden.push(((bottom + 1).saturating_sub(rect.end().0), high));
            }
        });
        if forbidden.len() > most {
            unite(forbidden);
            most = MOST_APART.max(2 * forbidden.len());
        }
    }
    pairs
}

/// Makes one interval of those that touch.
fn unite(forbidden: &mut Vec<Forbidden>) {
    forbidden.sort_unstable();
    forbidden.dedup_by(|next, last| {
        let touches = next.0 <= last.1;
        if touches {
            last.1 = last.1.max(next.1);
        }
        touches
    });
}

/// The lowest base that no interval forbids.
fn lowest_hole(forbidden: &mut [Forbidden], align: Align) -> Bytes {
    forbidden.sort_unstable_by_key(|&(low, _)| low);
    let mut base = Bytes::ZERO;
    for &(low, high) in &*forbidden {
        if base.0 < low {
            return base;
        }
        if high > base.0 {
            base = Bytes(high).align_up(align).expect("a problem's sizes fit with padding");
        }
    }
    base
}

/// Gives an item its place.
pub(super) fn add(placed: &mut Placed, id: BufferId, item: &Item, base: Bytes) {
    for (index, rect) in item.rects().iter().enumerate() {
        if rect.takes_bytes() {
            let bottom = (base + rect.offset).0;
            let taken = Taken { bottom, top: bottom + rect.bytes.0 };
            placed.add(id, index, rect.span.end.0, taken);
        }
    }
}
