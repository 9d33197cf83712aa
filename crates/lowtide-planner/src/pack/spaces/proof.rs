//! Why items cannot be placed at all, if that can be shown: nothing here is said for want of effort.
//!
//! ~~~text
//! space 0, 4 KiB  ┐  an item of 10 KiB fits into neither;
//! space 1, 8 KiB  ┘  three of 5 KiB at one step fit only into space 1, and take 15 KiB;
//!                    13 KiB at one step are more than both
//! ~~~
//! Each set of spaces is asked for what may lie nowhere else: every space alone, and the largest so many. Of items
//! without a fixed space no other set can tell more, as what fits into a space fits into all larger ones.

use super::SpacesPackError;
use crate::bounds::{live_bound, live_sums};
use crate::pack::placement_bound;
use lowtide_core::check::{PlacementFault, check_placement};
use lowtide_core::{BufferId, Bytes, Id, IndexVec, Placement, Proof, SpaceId, SpacesProblem, Step};
use std::cmp::Reverse;

/// An error if the problem is impossible, and simple sums or one space alone show it.
pub(super) fn is_not_excluded(problem: &SpacesProblem) -> Result<(), SpacesPackError> {
    for item in problem.problem().items().ids() {
        fits_alone(problem, item)?;
    }
    for space in problem.capacities().ids() {
        pins_agree(problem, space)?;
        one_space(problem, space)?;
    }
    largest_spaces(problem)
}

fn fits_alone(problem: &SpacesProblem, item: BufferId) -> Result<(), SpacesPackError> {
    let mut spaces = problem.capacities().iter_enumerated();
    if spaces.any(|(space, _)| problem.allows(item, space)) {
        return Ok(());
    }
    let home = problem.stays()[item].space;
    let limits = problem.capacities().iter_enumerated();
    let open = limits.filter(|&(space, _)| home.is_none_or(|home| home == space));
    let largest = open.filter_map(|(_, &capacity)| capacity).max().unwrap_or_default();
    Err(SpacesPackError::TooLarge { item, need: problem.need(item), largest })
}

/// Items that may lie in this space only.
pub(super) fn bound_to(problem: &SpacesProblem, space: SpaceId) -> Vec<BufferId> {
    let is_only = |&item: &BufferId| {
        let mut others = problem.capacities().ids().filter(|&other| other != space);
        problem.allows(item, space) && !others.any(|other| problem.allows(item, other))
    };
    problem.problem().items().ids().filter(is_only).collect()
}

fn one_space(problem: &SpacesProblem, space: SpaceId) -> Result<(), SpacesPackError> {
    let Some(capacity) = problem.capacities()[space] else { return Ok(()) };
    let bound = placement_bound(&problem.problem().part(&bound_to(problem, space)));
    if bound.bytes <= capacity {
        return Ok(());
    }
    Err(SpacesPackError::SpaceTooSmall { space, need: bound.bytes, capacity })
}

/// Two fixed offsets in one space may exclude each other.
fn pins_agree(problem: &SpacesProblem, space: SpaceId) -> Result<(), SpacesPackError> {
    let items = problem.problem().items().iter_enumerated();
    let is_here = |id: BufferId| problem.stays()[id].space == Some(space);
    let pinned = items.filter_map(|(id, item)| Some((id, item.pin.filter(|_| is_here(id))?)));
    let (ids, offsets): (Vec<BufferId>, Vec<Bytes>) = pinned.unzip();
    let size = ids.iter().map(|&id| problem.need(id)).max().unwrap_or_default();
    let placement = Placement { offsets: offsets.into(), size };
    for fault in check_placement(&problem.problem().part(&ids), &placement) {
        match fault {
            PlacementFault::Overlap { first, second, .. } => {
                let (first, second) = (ids[first.index()], ids[second.index()]);
                return Err(SpacesPackError::PinsClash { first, second });
            }
            PlacementFault::Misaligned { item, .. } => {
                let item = ids[item.index()];
                return Err(SpacesPackError::PinMisaligned { item });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The largest spaces together, each time one more: what fits only into them may not be more than they have.
fn largest_spaces(problem: &SpacesProblem) -> Result<(), SpacesPackError> {
    let mut spaces: Vec<(Option<Bytes>, SpaceId)> =
        problem.capacities().iter_enumerated().map(|(id, &capacity)| (capacity, id)).collect();
    // No capacity is the largest.
    spaces.sort_by_key(|&(capacity, id)| (capacity.is_some(), Reverse(capacity), id));
    let mut room = Bytes::ZERO;
    let mut is_in: IndexVec<SpaceId, bool> = IndexVec::filled(spaces.len(), false);
    for (capacity, space) in spaces {
        let Some(sum) = capacity.and_then(|capacity| room.checked_add(capacity)) else {
            return Ok(());
        };
        room = sum;
        is_in[space] = true;
        let is_bound = |id: BufferId| {
            problem.capacities().ids().all(|space| is_in[space] || !problem.allows(id, space))
        };
        let items: Vec<BufferId> =
            problem.problem().items().ids().filter(|&id| is_bound(id)).collect();
        let bound = live_bound(&live_sums(&problem.problem().part(&items)));
        if bound.bytes > room {
            let step = if let Proof::LiveSum(step) = bound.proof { step } else { Step::ZERO };
            return Err(SpacesPackError::TooMuch { step, need: bound.bytes, room });
        }
    }
    Ok(())
}
