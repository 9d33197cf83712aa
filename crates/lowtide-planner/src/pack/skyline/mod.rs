//! Packs from the bottom up: always into the lowest valley of the skyline, there a whole row of items.
//!
//! ~~~text
//! offset ^      ┌──┐          valley: the lowest part of the skyline between two walls
//!        | ──┐  │  └───
//!        |   │▒▒│             row: waiting items that fit between the walls and cover most of the valley;
//!        |   └──┘             a slit that stays open is wasted up to the lower wall
//!        +-------------> step
//! ~~~
//! What is covered counts more where less waste is left: the target minus the load minus what was wasted
//! before. A wall that is hardly higher than the valley is levelled, since wide valleys are filled better.
//! One pass is repeated with other targets and a little noise, the smallest arena kept.
//!
//! Cost of a pass: O(n log n) and, for each valley, the items that start and the sections that lie in it;
//! about 10 us an item with 1000 live at once, where first fit takes 50. Memory: O(n), no conflicts.
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
const PASSES: u32 = 64;

/// A placement smaller than the incumbent, if some pass finds one before the steps run out; the search ends at
/// the first one that meets the bound. `None` for problems with fixed offsets.
pub(super) fn improve(
    problem: &Problem,
    incumbent: &Placement,
    bound: Bytes,
    meter: &mut Meter<'_>,
) -> Option<Placement> {
    if problem.items().iter().any(|item| item.pin.is_some()) {
        return None;
    }
    let axis = Axis::new(problem);
    let mut best: Option<Placement> = None;
    for number in 0..PASSES {
        let limit = best.as_ref().map_or(incumbent.size, |placement| placement.size);
        if limit <= bound || meter.is_out() {
            break;
        }
        best = build(problem, &axis, pass(number, bound), limit, meter).or(best);
    }
    best
}

/// The first pass is plain; the others differ in target, tolerance and noise.
fn pass(number: u32, bound: Bytes) -> Pass {
    let percent = [4, 2, 3, 1][(number % 4) as usize];
    let noise = match number {
        0 => 0.0,
        number if number % 4 == 3 => 0.5,
        _ => 0.06,
    };
    let tolerance = [32, 32, 20, 0][(number / 4 % 4) as usize];
    let target = Bytes(bound.0 + bound.0 / 100 * percent).max(Bytes(1));
    Pass { target, tolerance, noise, seed: number }
}

#[cfg(test)]
mod tests;
