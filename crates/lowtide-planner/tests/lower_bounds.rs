//! Lower bounds on placement and their certificates, against brute force and on problems that are known.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use arbitrary::Unstructured;
use lowtide_core::check::{Shown, check_bound, check_placement};
use lowtide_core::testing::{TinyLimits, fits, least_arena, random_words, tiny_problem};
use lowtide_core::{Align, Bound, BufferId, Bytes, Interval, Item, Problem, Proof, Step};
use lowtide_planner::{Budget, certify, live_bound, live_sums, pack, placement_bound, witness};

const ENOUGH: u64 = 10_000_000;

/// Runs `property` on tiny problems that have a placement, with their least arena.
fn on_problems(limits: TinyLimits, property: impl Fn(&Problem, Bytes, &mut Unstructured<'_>)) {
    arbtest::arbtest(|u| {
        let problem = tiny_problem(u, limits)?;
        if let Some(least) = least_arena(&problem) {
            property(&problem, least, u);
        }
        Ok(())
    })
    .budget_ms(2000);
}

/// Shapes of all kinds, and those that the exact search takes.
const ALL: TinyLimits = TinyLimits { items: 6, rects: 3, aligns: true, pins: true };
const PLAIN: TinyLimits = TinyLimits { items: 7, rects: 1, aligns: true, pins: false };

#[test]
fn no_bound_is_above_the_least_arena_and_each_is_certified() {
    for limits in [ALL, PLAIN, TinyLimits { pins: true, ..PLAIN }] {
        on_problems(limits, |problem, least, _| {
            let bound = placement_bound(problem);
            assert!(bound.bytes <= least, "{bound:?} {least} {problem:#?}");
            assert_eq!(check_bound(problem, &bound), Ok(Shown::Certified), "{problem:#?}");
            assert!(live_bound(&live_sums(problem)).bytes <= bound.bytes);
        });
    }
}

#[test]
fn packings_are_above_the_least_arena_and_equal_to_it_where_that_is_proven() {
    for limits in [ALL, PLAIN] {
        on_problems(TinyLimits { pins: false, ..limits }, |problem, least, _| {
            let packing = pack(problem, ENOUGH);
            let size = packing.placement.size;
            assert_eq!(check_placement(problem, &packing.placement), []);
            assert!(packing.bound.bytes <= least && least <= size, "{problem:#?}");
            assert!(size > packing.bound.bytes || size == least, "{problem:#?}");
        });
    }
}

fn only(problem: &Problem, items: impl Iterator<Item = BufferId>) -> Problem {
    Problem::new(items.map(|id| problem.items()[id].clone()).collect()).unwrap()
}

#[test]
fn a_witness_does_not_fit_and_fits_without_any_of_its_items() {
    on_problems(PLAIN, |problem, least, u| {
        let less = u.int_in_range(1..=4).unwrap_or(1);
        let Some(capacity) = least.0.checked_sub(less).map(Bytes) else { return };
        let found = witness(problem, capacity, Budget::of(ENOUGH)).unwrap();
        let items = || found.items.iter().copied();
        assert!(found.is_smallest, "{problem:#?}");
        assert!(!fits(&only(problem, items()), capacity), "{found:?} {problem:#?}");
        for left_out in items() {
            let rest = only(problem, items().filter(|&id| id != left_out));
            assert!(fits(&rest, capacity), "{left_out} of {found:?} in {capacity} {problem:#?}");
        }
    });
}

#[test]
fn a_witness_without_time_or_of_shapes_that_are_not_searched_still_does_not_fit() {
    on_problems(TinyLimits { pins: false, ..ALL }, |problem, least, u| {
        let Some(capacity) = least.0.checked_sub(1).map(Bytes) else { return };
        let steps = u.int_in_range(0..=3000).unwrap_or(0);
        if let Some(found) = witness(problem, capacity, Budget::of(steps)) {
            let part = only(problem, found.items.iter().copied());
            assert!(!fits(&part, capacity), "{found:?} {problem:#?}");
        }
    });
}

#[test]
fn what_a_search_has_proven_is_certified() {
    on_problems(PLAIN, |problem, least, _| {
        let proof = certify(problem, least, Budget::of(ENOUGH)).unwrap();
        let shown = check_bound(problem, &Bound { bytes: least, proof: proof.clone() });
        assert_eq!(shown, Ok(Shown::Certified), "{proof} {problem:#?}");
        assert_eq!(certify(problem, least + Bytes(1), Budget::of(ENOUGH)), None);
        // Without time nothing is contradicted, and nothing but simple proofs certified.
        let proof = certify(problem, least + Bytes(1), Budget::of(0));
        assert_eq!(proof, Some(Proof::Search));
    });
}

/// Sizes and alignments, all of one time.
fn pile(rows: &[(u64, u64)]) -> Problem {
    let span = Interval::new(Step(0), Step(1));
    let item = |&(bytes, align)| Item::new(Bytes(bytes), span, Align::new(align).unwrap());
    Problem::new(rows.iter().map(item).collect()).unwrap()
}

#[test]
fn holes_of_aligned_items_are_more_than_the_live_sum() {
    let bound = placement_bound(&pile(&[(65, 64), (65, 64), (65, 64), (10, 1)]));
    let proof = Proof::Stacked { step: Step(0), align: Align::CACHE_LINE };
    assert_eq!(bound, Bound { bytes: Bytes(128 + 128 + 65), proof });
}

#[test]
fn a_fixed_offset_is_a_bound() {
    let mut item = pile(&[(8, 8)]).items().as_slice()[0].clone();
    item.pin = Some(Bytes(64));
    let problem = Problem::new(vec![item].into()).unwrap();
    let proof = Proof::Items([BufferId::new(0)].into());
    assert_eq!(placement_bound(&problem), Bound { bytes: Bytes(72), proof });
}

#[test]
fn nothing_needs_nothing() {
    assert_eq!(placement_bound(&Problem::default()), Bound::NONE);
}

#[test]
fn the_largest_items_of_the_peak_are_the_witness_of_less_than_the_live_sum() {
    let problem = pile(&[(8, 8), (32, 8), (16, 8), (64, 8)]);
    let found = witness(&problem, Bytes(100), Budget::of(0)).unwrap();
    let ids = [1, 2, 3].map(BufferId::new).to_vec();
    assert_eq!((found.items, found.is_smallest), (ids, true));
}

/// Many items: up to ties, the sweep has to agree with what each step needs by itself.
#[test]
fn the_sweep_finds_the_step_that_needs_most() {
    let mut words = random_words(7);
    let mut below = |limit| words.next().unwrap() % limit;
    let items: Vec<Item> = (0..300)
        .map(|_| {
            let start = u32::try_from(below(100)).unwrap();
            let end = start + 1 + u32::try_from(below(20)).unwrap();
            let span = Interval::new(Step(start), Step(end));
            Item::new(Bytes(1 + below(500)), span, Align::CACHE_LINE)
        })
        .collect();
    let problem = Problem::new(items.into()).unwrap();
    let bound = placement_bound(&problem);
    for step in (0..problem.steps()).map(Step::from_index) {
        let proof = Proof::Stacked { step, align: Align::CACHE_LINE };
        let more = Bound { bytes: bound.bytes + Align::CACHE_LINE.bytes(), proof };
        assert!(check_bound(&problem, &more).is_err(), "{step}");
    }
}
