//! Placement into several spaces, against brute force over all assignments of tiny problems, and on hostile ones.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use arbitrary::{Result, Unstructured};
use lowtide_core::check::{Shown, check_bound, check_spaces};
use lowtide_core::testing::{TinyLimits, fits, random_bytes, random_words, tiny_problem};
use lowtide_core::{
    Align, BufferId, Bytes, IndexVec, Interval, Item, Problem, SpaceId, SpacesProblem, SpillReason,
    Stay, Step,
};
use lowtide_planner::{Budget, SpacesPackError, SpacesPacking, pack_spaces};

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
        let shown = check_bound(&problem.problem().part(&items), &filled.bound);
        assert!(matches!(shown, Ok(Shown::Certified | Shown::Quoted)), "{shown:?} {problem:#?}");
        assert!(filled.bound.bytes <= placement.sizes[space]);
    }
    assert!(packing.spaces[SpaceId::new(0)].weight <= packing.most_first, "{problem:#?}");
}

/// How often the best was found, and how often there was one, over fixed seeds; only where not all fits anyway.
fn share(limits: TinyLimits, limited: bool) -> (u32, u32) {
    let (mut met, mut all) = (0, 0);
    for seed in 0..2000 {
        let bytes = random_bytes(seed, 256);
        let problem = tiny_spaces(&mut Unstructured::new(&bytes), limits, limited).unwrap();
        let best = best(&problem);
        let found = match pack_spaces(&problem, Budget::of(ENOUGH)) {
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
    check_share(TinyLimits { rects: 3, ..TINY }, false, 94);
}

#[test]
fn staircases_are_mostly_chosen_best_when_both_spaces_are_small() {
    check_share(TinyLimits { rects: 3, ..TINY }, true, 80);
}

/// Items of bytes over steps; spaces; weights are bytes.
fn plain(items: &[(u64, u32, u32)], capacities: &[Option<u64>]) -> SpacesProblem {
    let item = |&(bytes, start, end): &(u64, u32, u32)| {
        Item::new(Bytes(bytes), Interval::new(Step(start), Step(end)), Align::ONE)
    };
    let items: IndexVec<BufferId, Item> = items.iter().map(item).collect();
    let stays = items.iter().map(Stay::anywhere).collect();
    let capacities = capacities.iter().map(|capacity| capacity.map(Bytes)).collect();
    SpacesProblem::new(Problem::new(items).unwrap(), capacities, stays).unwrap()
}

#[test]
fn the_order_of_spilling_says_when_and_by_how_much() {
    let problem = plain(&[(4, 0, 9), (6, 0, 2), (5, 4, 6), (20, 8, 9)], &[Some(10), Some(8), None]);
    let packing = pack_spaces(&problem, Budget::of(ENOUGH)).unwrap();
    check(&problem, &packing);
    assert_eq!(packing.placement.spaces.iter().map(|s| s.raw()).collect::<Vec<_>>(), [0, 0, 0, 2]);
    let spills = packing.placement.spills;
    assert_eq!(spills.len(), 2);
    assert!(spills.iter().all(|spill| spill.why == SpillReason::TooLarge));
    let tight = pack_spaces(
        &plain(&[(4, 0, 9), (6, 1, 2), (5, 4, 6)], &[Some(9), None]),
        Budget::of(ENOUGH),
    );
    let spills = tight.unwrap().placement.spills;
    let why = SpillReason::Over { step: Step(1), bytes: Bytes(1) };
    assert_eq!(
        spills.iter().map(|spill| (spill.item.raw(), spill.why)).collect::<Vec<_>>(),
        [(0, why)]
    );
}

#[track_caller]
fn refuses(problem: &SpacesProblem, is_impossible: bool, words: &str) {
    let error: SpacesPackError = pack_spaces(problem, Budget::of(ENOUGH)).unwrap_err();
    assert_eq!(error.is_impossible(), is_impossible, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn impossible_is_said_with_a_reason() {
    let (four, eight) = (Some(4), Some(8));
    refuses(&plain(&[(9, 0, 1)], &[four, eight]), true, "b0 needs 9 B, the largest space");
    refuses(&plain(&[(5, 0, 2), (5, 1, 3)], &[four, eight]), true, "only in space1 needs 10 B");
    refuses(&plain(&[(4, 0, 1); 4], &[four, eight]), true, "16 B are live");
    refuses(&plain(&[(3, 0, 1); 4], &[Some(5), Some(7)]), false, "not found within the effort");
    refuses(&plain(&[(1, 0, 1)], &[Some(0)]), true, "0 B");
}

#[test]
fn spaces_of_no_bytes_and_weights_of_all_kinds_are_harmless() {
    let problem = plain(&[(0, 0, 1), (7, 0, 2), (0, 1, 2)], &[Some(0), Some(0), None]);
    check(&problem, &pack_spaces(&problem, Budget::of(ENOUGH)).unwrap());
    let nothing = plain(&[], &[Some(0), None]);
    check(&nothing, &pack_spaces(&nothing, Budget::of(0)).unwrap());
    let stay = |weight| Stay { weight, space: None };
    let heavy = |weights: [u64; 2]| {
        let problem = plain(&[(4, 0, 1), (4, 0, 1)], &[Some(4), None]);
        let stays = weights.map(stay).to_vec().into();
        SpacesProblem::new(problem.problem().clone(), problem.capacities().clone(), stays)
    };
    let packing =
        pack_spaces(&heavy([1, (u64::MAX >> 1) - 1]).unwrap(), Budget::of(ENOUGH)).unwrap();
    assert_eq!(packing.spaces[SpaceId::new(0)].weight, (u64::MAX >> 1) - 1);
    assert!(heavy([1, u64::MAX >> 1]).unwrap_err().to_string().contains("add up to more"));
    let packing = pack_spaces(&heavy([0, 0]).unwrap(), Budget::of(ENOUGH)).unwrap();
    assert_eq!((packing.most_first, packing.placement.spills.len()), (0, 1));
}

/// Items that live for up to `longest` of `count` steps.
fn many(count: u32, longest: u32, part: u64) -> SpacesProblem {
    let mut words = random_words(u64::from(count));
    let mut random = |below: u32| u32::try_from(words.next().unwrap() % u64::from(below)).unwrap();
    let mut items = Vec::new();
    for _ in 0..count {
        let (start, bytes) = (random(count), 64 * (1 + random(64)));
        items.push((u64::from(bytes), start, start + 1 + random(longest)));
    }
    let peak = 64 * 32 * u64::from(longest) / 2;
    plain(&items, &[Some(peak / part), None])
}

#[test]
fn many_items_are_placed_by_the_same_rule_each_time() {
    for problem in [many(3000, 100, 3), many(20_000, 40, 2)] {
        let packing = pack_spaces(&problem, Budget::of(1_000_000)).unwrap();
        check(&problem, &packing);
        if problem.problem().items().len() < 10_000 {
            assert_eq!(pack_spaces(&problem, Budget::of(1_000_000)).unwrap(), packing);
        }
    }
}
