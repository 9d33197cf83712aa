//! Packing with an earlier placement: right, no larger, and little moved; and packing that somebody looks on at.

use lowtide_core::check::check_placement;
use lowtide_core::testing::{CutConfig, TinyLimits, cut_problem, tiny_problem};
use lowtide_core::{Align, Bytes, Interval, Item, Problem, Rect, Step};
use lowtide_planner::{Budget, Earlier, PackRequest, Packing, Stopped, pack, pack_as_asked};
use std::cell::Cell;
use std::ops::ControlFlow;

const ENOUGH: u64 = 20_000_000;

fn near(problem: &Problem, earlier: &Earlier, goal: Option<Bytes>) -> Packing {
    let request = PackRequest { goal, earlier: Some(earlier), ..PackRequest::of(ENOUGH) };
    pack_as_asked(problem, request)
}

fn moved(packing: &Packing, earlier: &Earlier) -> usize {
    let rows = packing.placement.offsets.iter().zip(earlier);
    rows.filter(|(now, before)| before.is_some_and(|before| before != **now)).count()
}

#[test]
fn whatever_was_before_the_placement_is_right_and_no_larger() {
    arbtest::arbtest(|u| {
        let limits = TinyLimits { items: 6, rects: 3, aligns: true, pins: false };
        let problem = tiny_problem(u, limits)?;
        let offsets = problem
            .items()
            .iter()
            .map(|_| Ok(u.arbitrary::<bool>()?.then_some(Bytes(u.int_in_range(0..=20)?))));
        let earlier: Earlier = offsets.collect::<arbitrary::Result<_>>()?;
        let packing = near(&problem, &earlier, None);
        assert_eq!(check_placement(&problem, &packing.placement), [], "{problem:#?} {earlier:?}");
        // With a quarter less effort it is found all the same: these are tiny.
        assert!(packing.placement.size <= pack(&problem, ENOUGH).placement.size, "{problem:#?}");
        Ok(())
    })
    .budget_ms(2000);
}

#[test]
fn nothing_moves_that_need_not() {
    for seed in 0..8 {
        let config = CutConfig { items: 120, live: 20, loss: 20, ..CutConfig::default() };
        let cut = cut_problem(seed, config);
        let before: Earlier = cut.placement.offsets.iter().map(|&offset| Some(offset)).collect();
        // Where it lay it is as small as can be.
        let same = near(&cut.problem, &before, None);
        assert_eq!((moved(&same, &before), same.placement.size), (0, cut.placement.size));
        // One item grows by half; there is room for a tenth more.
        let mut items = cut.problem.items().clone();
        let grown = items.ids().next().unwrap();
        let Item { align, .. } = items[grown];
        let bytes = Bytes(items[grown].extent().0 / 2 * 3);
        items[grown] = Item::new(bytes, items[grown].span(), align);
        let problem = Problem::new(items).unwrap();
        let goal = Bytes(cut.placement.size.0 / 10 * 11 + bytes.0);
        let packing = near(&problem, &before, Some(goal));
        assert_eq!(check_placement(&problem, &packing.placement), []);
        assert!(packing.placement.size <= goal);
        assert!(moved(&packing, &before) <= 12, "seed {seed}: {}", moved(&packing, &before));
    }
}

#[test]
fn whoever_looks_on_sees_arenas_shrink_and_ends_the_search() {
    let cut = cut_problem(3, CutConfig { items: 400, live: 40, loss: 0, ..CutConfig::default() });
    let (calls, last) = (Cell::new(0), Cell::new(Bytes(u64::MAX)));
    let watch = |progress: lowtide_planner::Progress| {
        calls.set(calls.get() + 1);
        if let Some(arena) = progress.arena {
            assert!(arena <= last.get() && progress.bound <= arena);
            last.set(arena);
        }
        if calls.get() < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let budget = Budget { steps: u64::MAX, watch: &watch };
    let packing = pack_as_asked(&cut.problem, PackRequest { budget, ..PackRequest::of(0) });
    assert_eq!(check_placement(&cut.problem, &packing.placement), []);
    assert!(
        calls.get() == 5 && packing.stopped == Stopped::Ended
            || packing.stopped == Stopped::AtBound
    );
}

#[test]
fn an_earlier_placement_takes_nothing_from_the_search() {
    for seed in 0..6 {
        let config = CutConfig { items: 80, live: 15, loss: 10, ..CutConfig::default() };
        let problem = cut_problem(seed, config).problem;
        let nowhere: Earlier =
            problem.items().ids().map(|id| Some(Bytes(u64::from(id.raw()) * 977))).collect();
        let request = |earlier| PackRequest { earlier, ..PackRequest::of(3_000_000) };
        let without = pack_as_asked(&problem, request(None)).placement.size;
        let with = pack_as_asked(&problem, request(Some(&nowhere))).placement.size;
        assert!(with <= without, "seed {seed}: {with} {without}");
    }
}

#[test]
fn a_goal_that_is_met_without_it_is_met_with_it() {
    let config = CutConfig { items: 2500, live: 60, loss: 10, ..CutConfig::default() };
    for seed in 0..3 {
        let problem = cut_problem(seed, config).problem;
        let size = pack(&problem, ENOUGH).placement.size;
        let request = PackRequest { goal: Some(size), ..PackRequest::of(ENOUGH) };
        assert!(pack_as_asked(&problem, request).placement.size <= size, "seed {seed}");
    }
}

#[test]
fn the_arena_ends_where_its_last_item_does() {
    let item = |bytes, pin| {
        let span = Interval::new(Step(0), Step(1));
        Item { pin: Some(Bytes(pin)), ..Item::new(Bytes(bytes), span, Align::ONE) }
    };
    let problem = Problem::new([item(0, 8), item(3, 8)].into_iter().collect()).unwrap();
    let request = PackRequest { goal: Some(Bytes(14)), ..PackRequest::of(ENOUGH) };
    assert_eq!(pack_as_asked(&problem, request).placement.size, Bytes(11));
}

#[test]
fn what_has_too_many_gaps_is_left_to_the_rules() {
    // Two thousand items over forty thousand sections.
    let rect = |at: u32| {
        let span = Interval::new(Step(2 * at), Step(2 * at + 1));
        Rect { offset: Bytes::ZERO, bytes: Bytes(64), span }
    };
    let gaps: Vec<Rect> = (0..20_000).map(rect).collect();
    let all = Interval::new(Step(0), Step(40_000));
    let plain = (1..1900).map(|bytes| Item::new(Bytes(bytes), all, Align::ONE));
    let gappy = Item { rects: gaps.into(), align: Align::ONE, pin: None };
    let problem = Problem::new(plain.chain([gappy]).collect()).unwrap();
    let packing = pack(&problem, 100_000_000);
    assert_eq!(check_placement(&problem, &packing.placement), []);
}
