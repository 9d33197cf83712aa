//! Placement into several spaces, against brute force over all assignments of tiny problems, and on hostile ones.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use arbitrary::{Result, Unstructured};
use lowtide_core::check::{Shown, check_bound, check_spaces};
use lowtide_core::testing::{TinyLimits, fits, random_bytes, random_words, tiny_problem};
use lowtide_core::{
    Align, Bound, BufferId, Bytes, Id, IndexVec, Interval, Item, Problem, Proof, SpaceId,
    SpacesProblem, SpillReason, Stay, Step,
};
use lowtide_planner::{SpacesPackError, SpacesPacking, pack_spaces};

const ENOUGH: u64 = 10_000_000;
const TINY: TinyLimits = TinyLimits { items: 5, rects: 1, aligns: true, pins: true };

/// Two spaces; whether the second one has a capacity.
fn tiny_spaces(
    u: &mut Unstructured<'_>,
    limits: TinyLimits,
    limited: bool,
) -> Result<SpacesProblem> {
    let problem = tiny_problem(u, limits)?;
    let first = Some(Bytes(u.int_in_range(0..=14)?));
    let second = if limited { Some(Bytes(u.int_in_range(0..=14)?)) } else { None };
    let mut stays = IndexVec::new();
    for item in problem.items() {
        let is_free = item.pin.is_none() && u.ratio(5, 6)?;
        let space = if is_free { None } else { Some(SpaceId::new(u.int_in_range(0..=1)?)) };
        stays.push(Stay { weight: u.int_in_range(0..=9)?, space });
    }
    Ok(SpacesProblem::new(problem, vec![first, second].into(), stays).unwrap())
}

/// The most weight in the first space over all assignments that fit; `None` if none does.
fn best(problem: &SpacesProblem) -> Option<u64> {
    let items: Vec<BufferId> = problem.problem().items().ids().collect();
    let mut best = None;
    for choice in 0..1_u32 << items.len() {
        let space = |id: BufferId| SpaceId::new(choice >> id.raw() & 1);
        if !items.iter().all(|&id| problem.allows(id, space(id))) {
            continue;
        }
        let fit = problem.capacities().iter_enumerated().all(|(here, &capacity)| {
            let part = items.iter().copied().filter(|&id| space(id) == here);
            fits_space(problem.problem(), part.collect(), capacity)
        });
        if fit {
            best = best.max(Some(first_weight(problem, &items, space)));
        }
    }
    best
}

/// Without a capacity only fixed offsets can clash.
fn fits_space(problem: &Problem, mut part: Vec<BufferId>, capacity: Option<Bytes>) -> bool {
    if capacity.is_none() {
        part.retain(|&id| problem.items()[id].pin.is_some());
    }
    fits(&problem.part(&part), capacity.unwrap_or(Bytes(100)))
}

fn first_weight(
    problem: &SpacesProblem,
    items: &[BufferId],
    space: impl Fn(BufferId) -> SpaceId,
) -> u64 {
    let first = items.iter().filter(|&&id| space(id) == SpaceId::new(0));
    first.map(|&id| problem.stays()[id].weight).sum()
}

/// All that a packing claims.
fn check(problem: &SpacesProblem, packing: &SpacesPacking) {
    let placement = &packing.placement;
    assert_eq!(check_spaces(problem, placement), [], "{problem:#?}");
    for (space, filled) in packing.spaces.iter_enumerated() {
        let homes = placement.spaces.iter_enumerated();
        let items: Vec<BufferId> =
            homes.filter(|(_, home)| **home == space).map(|(id, _)| id).collect();
        assert_eq!(filled.items, items.len());
        assert_eq!(filled.weight, items.iter().map(|&id| problem.stays()[id].weight).sum::<u64>());
        let bound = part_ids(&filled.bound, &items);
        let shown = check_bound(&problem.problem().part(&items), &bound);
        assert!(matches!(shown, Ok(Shown::Certified | Shown::Quoted)), "{shown:?} {problem:#?}");
        assert!(filled.bound.bytes <= placement.sizes[space]);
    }
    assert!(packing.spaces[SpaceId::new(0)].weight <= packing.most_first, "{problem:#?}");
}

fn part_ids(bound: &Bound, items: &[BufferId]) -> Bound {
    let Proof::Items(named) = &bound.proof else { return bound.clone() };
    let part = |id| BufferId::from_index(items.binary_search(id).unwrap());
    Bound { bytes: bound.bytes, proof: Proof::Items(named.iter().map(part).collect()) }
}

/// How often the best was found, and how often there was one, over fixed seeds; only where not all fits anyway.
fn share(limits: TinyLimits, limited: bool) -> (u32, u32) {
    let (mut met, mut all) = (0, 0);
    for seed in 0..500 {
        let bytes = random_bytes(seed, 256);
        let problem = tiny_spaces(&mut Unstructured::new(&bytes), limits, limited).unwrap();
        let best = best(&problem);
        let found = match pack_spaces(&problem, ENOUGH) {
            Ok(packing) => {
                check(&problem, &packing);
                let (found, best) = (packing.spaces[SpaceId::new(0)].weight, best.unwrap());
                assert!(found <= best && best <= packing.most_first, "{found} {best} {problem:#?}");
                if packing.placement.spills.is_empty() {
                    continue;
                }
                Some(found)
            }
            Err(error) => {
                assert!(!error.is_impossible() || best.is_none(), "{error} {best:?} {problem:#?}");
                None
            }
        };
        all += u32::from(best.is_some());
        met += u32::from(best.is_some() && best == found);
    }
    (met, all)
}

#[track_caller]
fn check_share(limits: TinyLimits, limited: bool, percent: u32) {
    let (met, all) = share(limits, limited);
    println!("the best is found for {met} of {all} problems where something is spilled");
    assert!(all > 100 && 100 * met >= percent * all, "{met} of {all}");
}

#[test]
fn plain_items_are_chosen_best() {
    check_share(TINY, false, 99);
}

#[test]
fn plain_items_are_chosen_best_when_both_spaces_are_small() {
    check_share(TINY, true, 97);
}

#[test]
fn staircases_are_mostly_chosen_best() {
    check_share(TinyLimits { rects: 3, ..TINY }, false, 90);
    check_share(TinyLimits { rects: 3, ..TINY }, true, 90);
}
