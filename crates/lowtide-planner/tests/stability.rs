//! Packing with an earlier placement: right, no larger, and little moved; and packing that somebody looks on at.

use lowtide_core::check::check_placement;
use lowtide_core::testing::{CutConfig, TinyLimits, cut_problem, tiny_problem};
use lowtide_core::{Bytes, Item, Problem};
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
