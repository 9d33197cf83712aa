//! Problem to a lower bound that needs no search: the best of the live sum, of what alignment loses at one
//! step, and of a single item.
//!
//! ~~~text
//! offset ^ |  c  |......      a, b and c start at multiples of 8: all but the topmost take their bytes
//!        | |   b   |....      rounded up. Other items fill the dots, at most one row of dots each.
//!        | |    a     |.
//!        +---------------> bytes, rounded up
//! ~~~
//! A sweep over time for each alignment that occurs finds the step at which the rounded sum is the greatest;
//! there, and at the peak, what is lost and what fills the dots is worked out. A fixed offset, or a shape that
//! stands on a foot, may need more than all that: then that item alone is the certificate.
//! Cost: linear for each alignment, and sorting at two steps; there are at most 22, usually one or two.

use crate::bounds::{live_bound, live_sums};
use lowtide_core::{Align, Bound, BufferId, Bytes, Item, Problem, Proof, Rect, Step};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The best of these bounds, with its certificate: the simplest one that shows as much.
pub fn placement_bound(problem: &Problem) -> Bound {
    let live = live_bound(&live_sums(problem));
    let peak = if let Proof::LiveSum(step) = live.proof { step } else { Step::ZERO };
    let mut best = live;
    for align in aligns(problem) {
        for step in BTreeSet::from([peak, stacked_step(problem, align)]) {
            let bytes = stacked(problem, step, align);
            if bytes > best.bytes {
                best = Bound { bytes, proof: Proof::Stacked { step, align } };
            }
        }
    }
    for (id, item) in problem.items().iter_enumerated() {
        let bytes = item.pin.unwrap_or_default() + item.extent();
        if bytes > best.bytes {
            best = Bound { bytes, proof: alone(id) };
        }
    }
    best
}

fn alone(id: BufferId) -> Proof {
    Proof::Items([id].into())
}

/// The alignments of items, except the one that loses nothing.
fn aligns(problem: &Problem) -> BTreeSet<Align> {
    let aligns = problem.items().iter().map(|item| item.align);
    aligns.filter(|&align| align > Align::ONE).collect()
}

/// What has to start at multiples of `align`, and takes bytes.
fn coarse(problem: &Problem, align: Align) -> impl Iterator<Item = &Rect> {
    let rects = problem.items().iter().flat_map(|item| item.rects().iter().map(move |r| (item, r)));
    rects.filter(move |(item, rect)| is_coarse(item, rect, align)).map(|(_, rect)| rect)
}

fn is_coarse(item: &Item, rect: &Rect, align: Align) -> bool {
    let is_kept = match item.pin {
        Some(pin) => pin.is_aligned(align),
        None => item.align >= align,
    };
    is_kept && rect.offset.is_aligned(align) && rect.takes_bytes()
}

fn rounded(bytes: Bytes, align: Align) -> u64 {
    bytes.align_up(align).expect("a problem's sizes fit with padding").0
}

/// The first step at which the rounded bytes are the most. A step with less has less by `align` or more,
/// which no difference between largest roundings makes up for; of steps with as much, another one may be
/// better by less than `align`.
fn stacked_step(problem: &Problem, align: Align) -> Step {
    let mut changes = vec![(0, 0); problem.steps() + 1];
    for rect in coarse(problem, align) {
        let bytes = rounded(rect.bytes, align);
        changes[rect.span.start.index()].0 += bytes;
        changes[rect.span.end.index()].1 += bytes;
    }
    let (mut live, mut best, mut at) = (0, 0, 0);
    for (step, (born, died)) in changes.into_iter().enumerate() {
        live = live + born - died;
        if live > best {
            (best, at) = (live, step);
        }
    }
    Step::from_index(at)
}

/// What is needed at a step: all bytes of the coarse ones and of the `m` largest others, and, as each of these
/// can fill one rounding, the smallest roundings of all but `m + 1` coarse ones; the most over all `m`.
fn stacked(problem: &Problem, step: Step, align: Align) -> Bytes {
    let (mut roundings, mut others) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for item in problem.items() {
        let is_live = |rect: &&Rect| rect.span.contains(step);
        for rect in item.rects().iter().filter(is_live) {
            if is_coarse(item, rect, align) {
                bytes += rect.bytes.0;
                roundings.push(rounded(rect.bytes, align) - rect.bytes.0);
            } else {
                others.push(rect.bytes.0);
            }
        }
    }
    roundings.sort_unstable_by_key(|&rounding| Reverse(rounding));
    others.sort_unstable_by_key(|&other| Reverse(other));
    let mut lost: u64 = roundings.iter().skip(1).sum();
    let mut most = bytes + lost;
    for (m, other) in others.into_iter().enumerate() {
        bytes += other;
        lost -= roundings.get(m + 1).copied().unwrap_or(0);
        most = most.max(bytes + lost);
    }
    Bytes(most)
}
