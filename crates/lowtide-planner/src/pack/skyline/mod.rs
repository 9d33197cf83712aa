//! Packs from the bottom up: always into the lowest valley of the skyline, there a whole row of items.
//!
//! ~~~text
//! offset ^      ┌──┐          valley: the lowest part of the skyline between two walls
//!        | ──┐  │  └───
//!        |   │▒▒│             row: waiting items that fit between the walls and cover most of the valley;
//!        |   └──┘             a slit that stays open is wasted up to the lower wall
//!        +-------------> step
//! ~~~
//! What is covered counts more where less waste is left, in every second pass by the square of what is: the target
//! minus the load minus what was wasted before. A wall that is hardly higher than the valley is levelled, since wide valleys
//! are filled better. One pass is repeated, the smallest arena kept, with noise and with a target between the
//! bound and the best so far: a target that is far from what can be had spends waste where it hurts.
//!
//! Cost of a pass: O(n log n) and, for each valley, the items that start and the sections that lie in it;
//! 8 us an item with 1000 live at once, where first fit takes 50. Memory: O(n), no conflicts.
//! Limits: an item of several rectangles takes its extent for its whole span; nothing is put below an item
//! that came before; no fixed offsets. Idea: E. Burke, G. Kendall, G. Whitwell, "A new placement heuristic
//! for the orthogonal stock-cutting problem", 2004.

mod axis;
mod ground;
mod row;
mod tower;

use crate::meter::Meter;
use axis::Axis;
use lowtide_core::{Bytes, Placement, Problem};
use tower::{Pass, build};

/// At most this many passes: after these, noise finds little that is new.
const PASSES: usize = 64;

/// At most this many items placed by all passes, but three passes in any case: the larger a problem, the more
/// one pass is like another.
const PLACED: usize = 800_000;

/// Steps for each item below which a pass must hurry to come to its end.
const FEW_STEPS: u64 = 600;

/// A placement smaller than the incumbent, if some pass finds one before the steps run out; the search ends at
/// the first one that meets the goal, which is the bound or above it. `None` for problems with fixed offsets.
pub(super) fn improve(
    problem: &Problem,
    incumbent: &Placement,
    bound: Bytes,
    goal: Bytes,
    meter: &mut Meter<'_>,
) -> Option<Placement> {
    if problem.items().iter().any(|item| item.pin.is_some()) {
        return None;
    }
    let axis = Axis::new(problem);
    let items = axis.ids.len().max(1);
    let looked_at = if meter.left() / (items as u64) < FEW_STEPS { 512 } else { 2048 };
    let mut best: Option<Placement> = None;
    let passes = (PLACED / items).clamp(3, PASSES);
    for number in 0..passes {
        let limit = best.as_ref().map_or(incumbent.size, |placement| placement.size);
        if limit <= goal || meter.is_out() {
            break;
        }
        let pass = pass(number, &axis, target(number, bound, best.as_ref()), looked_at);
        best = build(problem, &axis, pass, limit, meter).or(best);
    }
    best
}

/// Every second pass counts slack by itself: graphs of layers want that, where others want the square.
fn is_squared(number: usize) -> bool {
    number.is_multiple_of(2)
}

/// What is within reach: the best so far, less a share of what it is above the bound; with plain slack some percent
/// above the bound.
fn target(number: usize, bound: Bytes, best: Option<&Placement>) -> Bytes {
    if !is_squared(number) {
        return Bytes((bound.0 + bound.0 / 100 * [4, 2, 3, 1][number / 2 % 4]).max(1));
    }
    let percent = [50, 70, 85, 35][number / 2 % 4];
    let above = best.map_or(bound.0 / 40, |best| (best.size.0 - bound.0) / 100 * percent);
    Bytes((bound.0 + above).max(1))
}

/// The passes differ in tolerance and noise, too.
fn pass(number: usize, axis: &Axis, target: Bytes, looked_at: u32) -> Pass {
    let noise = if number % 4 == 3 { 0.5 } else { 0.06 };
    let tolerance = [32, 32, 20, 0][number / 4 % 4];
    let tolerance = axis.mean_bytes.checked_div(tolerance).unwrap_or(0);
    let squared = is_squared(number);
    Pass { target, looked_at, squared, tolerance, noise, seed: axis::as_u32(number) }
}

#[cfg(test)]
mod tests;
