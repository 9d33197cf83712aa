//! [`check_spaces`]: does a placement into several spaces keep items apart, capacities and fixed spaces?
//!
//! ~~~text
//! all items ──by their space──> items of one space ──check_placement──> faults, with the ids of all items
//! ~~~
//! Each space is judged by itself, as bytes of different spaces never meet. Of the spill order it is checked that it
//! names what has left a space and nothing else; the reasons are for people. Cost: O(n log n) when all is right.

use super::packing::{PlacementFault, check_placement};
use crate::{BufferId, Bytes, Id, IndexVec, Placement, SpaceId, SpacesPlacement, SpacesProblem};

/// One fault of a placement into several spaces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SpacesFault {
    #[error("{found} {what}, wanted {wanted}")]
    WrongLength { what: &'static str, found: usize, wanted: usize },
    #[error("item {item} lies in {found}, there are {spaces} spaces")]
    NoSuchSpace { item: BufferId, found: SpaceId, spaces: usize },
    #[error("item {item} lies in {found}, wanted its fixed space, {wanted}")]
    WrongSpace { item: BufferId, found: SpaceId, wanted: SpaceId },
    #[error("{space} takes {found} bytes, its capacity is {capacity}")]
    OverCapacity { space: SpaceId, found: u64, capacity: u64 },
    #[error("in {space}: {fault}")]
    Placement { space: SpaceId, fault: PlacementFault },
    #[error("item {item} is said to have left {from} {found} times, wanted {wanted}")]
    WrongSpills { item: BufferId, from: SpaceId, found: usize, wanted: usize },
}

/// All faults of a placement into several spaces; empty means that it is right.
pub fn check_spaces(problem: &SpacesProblem, placement: &SpacesPlacement) -> Vec<SpacesFault> {
    let mut faults = lengths(problem, placement);
    if !faults.is_empty() {
        return faults;
    }
    homes(problem, placement, &mut faults);
    if faults.iter().any(|fault| matches!(fault, SpacesFault::NoSuchSpace { .. })) {
        return faults;
    }
    for space in problem.capacities().ids() {
        one_space(problem, placement, space, &mut faults);
    }
    spills(problem, placement, &mut faults);
    faults
}

fn lengths(problem: &SpacesProblem, placement: &SpacesPlacement) -> Vec<SpacesFault> {
    let (items, spaces) = (problem.problem().items().len(), problem.capacities().len());
    let rows = [
        ("spaces of items", placement.spaces.len(), items),
        ("offsets of items", placement.offsets.len(), items),
        ("sizes of spaces", placement.sizes.len(), spaces),
    ];
    let wrong = rows.into_iter().filter(|(_, found, wanted)| found != wanted);
    wrong.map(|(what, found, wanted)| SpacesFault::WrongLength { what, found, wanted }).collect()
}

fn homes(problem: &SpacesProblem, placement: &SpacesPlacement, faults: &mut Vec<SpacesFault>) {
    let spaces = problem.capacities().len();
    for (item, &found) in placement.spaces.iter_enumerated() {
        if found.index() >= spaces {
            faults.push(SpacesFault::NoSuchSpace { item, found, spaces });
        }
        if let Some(wanted) = problem.stays()[item].space.filter(|&wanted| wanted != found) {
            faults.push(SpacesFault::WrongSpace { item, found, wanted });
        }
    }
}

fn one_space(
    problem: &SpacesProblem,
    placement: &SpacesPlacement,
    space: SpaceId,
    faults: &mut Vec<SpacesFault>,
) {
    let size = placement.sizes[space];
    if let Some(capacity) = problem.capacities()[space].filter(|&capacity| size > capacity) {
        let (found, capacity) = (size.0, capacity.0);
        faults.push(SpacesFault::OverCapacity { space, found, capacity });
    }
    let items = placement.items_in(space);
    let offsets: IndexVec<BufferId, Bytes> =
        items.iter().map(|&id| placement.offsets[id]).collect();
    let found = check_placement(&problem.problem().part(&items), &Placement { offsets, size });
    let named = found.into_iter().map(|fault| renamed(&fault, &items));
    faults.extend(named.map(|fault| SpacesFault::Placement { space, fault }));
}

/// A fault of a part, with the ids of the whole.
fn renamed(fault: &PlacementFault, items: &[BufferId]) -> PlacementFault {
    let whole = |part: BufferId| items[part.index()];
    match *fault {
        PlacementFault::WrongLength { found, wanted } => {
            PlacementFault::WrongLength { found, wanted }
        }
        PlacementFault::Misaligned { item, offset, align } => {
            PlacementFault::Misaligned { item: whole(item), offset, align }
        }
        PlacementFault::Outside { item, end, size } => {
            PlacementFault::Outside { item: whole(item), end, size }
        }
        PlacementFault::OffPin { item, found, wanted } => {
            PlacementFault::OffPin { item: whole(item), found, wanted }
        }
        PlacementFault::Overlap { first, second, byte, step } => {
            PlacementFault::Overlap { first: whole(first), second: whole(second), byte, step }
        }
    }
}

/// An item with no fixed space has left every space before its own, once.
fn spills(problem: &SpacesProblem, placement: &SpacesPlacement, faults: &mut Vec<SpacesFault>) {
    let mut told: Vec<(BufferId, SpaceId)> =
        placement.spills.iter().map(|spill| (spill.item, spill.from)).collect();
    told.sort_unstable();
    let mut wanted = Vec::with_capacity(told.len());
    for (item, home) in placement.spaces.iter_enumerated() {
        if problem.stays()[item].space.is_none() {
            wanted.extend((0..home.raw()).map(|space| (item, SpaceId::new(space))));
        }
    }
    let (mut left, mut right) = (told.into_iter().peekable(), wanted.into_iter().peekable());
    while let Some(row) = left.peek().into_iter().chain(right.peek()).min().copied() {
        let found = std::iter::from_fn(|| left.next_if_eq(&row)).count();
        let wanted = std::iter::from_fn(|| right.next_if_eq(&row)).count();
        if found != wanted {
            let (item, from) = row;
            faults.push(SpacesFault::WrongSpills { item, from, found, wanted });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Align, Interval, Item, Problem, Spill, SpillReason, Stay, Step};

    /// Two items of 4 bytes that live together, the second bound to the second space; 4 bytes, then no limit.
    fn problem() -> SpacesProblem {
        let item = Item::new(Bytes(4), Interval::new(Step(0), Step(2)), Align::ONE);
        let items = Problem::new(IndexVec::filled(3, item)).unwrap();
        let stay = |space| Stay { weight: 4, space };
        let stays = vec![stay(None), stay(Some(SpaceId::new(1))), stay(None)];
        SpacesProblem::new(items, vec![Some(Bytes(4)), None].into(), stays.into()).unwrap()
    }

    fn right() -> SpacesPlacement {
        let why = SpillReason::Over { step: Step(0), bytes: Bytes(4) };
        SpacesPlacement {
            spaces: [0, 1, 1].map(SpaceId::new).to_vec().into(),
            offsets: [0, 0, 4].map(Bytes).to_vec().into(),
            sizes: [4, 8].map(Bytes).to_vec().into(),
            spills: vec![Spill { item: BufferId::new(2), from: SpaceId::new(0), why }],
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut SpacesPlacement), wanted: &[&str]) {
        let mut placement = right();
        change(&mut placement);
        let faults = check_spaces(&problem(), &placement);
        assert_eq!(faults.iter().map(ToString::to_string).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn each_rule_is_broken_by_itself() {
        let (b, space) = (BufferId::new, SpaceId::new);
        check(|_| {}, &[]);
        check(
            |p| p.offsets[b(2)] = Bytes(3),
            &["in space1: items b1 and b2 both take byte 3 at step 0"],
        );
        check(
            |p| p.sizes[space(1)] = Bytes(7),
            &["in space1: item b2 ends at 8, the arena has 7 bytes"],
        );
        check(|p| p.sizes[space(0)] = Bytes(5), &["space0 takes 5 bytes, its capacity is 4"]);
        check(|p| p.spaces[b(2)] = space(2), &["item b2 lies in space2, there are 2 spaces"]);
        check(|p| p.sizes = vec![Bytes(9); 3].into(), &["3 sizes of spaces, wanted 2"]);
        check(|p| p.offsets = IndexVec::new(), &["0 offsets of items, wanted 3"]);
        check(|p| p.spills.clear(), &["item b2 is said to have left space0 0 times, wanted 1"]);
        check(
            |p| p.spills.extend(p.spills.clone()),
            &["item b2 is said to have left space0 2 times, wanted 1"],
        );
    }

    #[test]
    fn a_fixed_space_is_kept() {
        let swapped = |p: &mut SpacesPlacement| {
            p.spaces = [1, 0, 1].map(SpaceId::new).to_vec().into();
            let first = Spill { item: BufferId::new(0), ..p.spills[0] };
            p.spills.push(first);
        };
        check(swapped, &["item b1 lies in space0, wanted its fixed space, space1"]);
    }
}
