use super::{Bytes, Meter, Placement, Problem};
use crate::meter::{Budget, Watched};
use lowtide_core::check::check_placement;
use lowtide_core::testing::{Cut, CutConfig, cut_problem};
use lowtide_core::{Align, BufferId, IndexVec, Interval, Item, Rect, Rects, Step};

const ENOUGH: u64 = 50_000_000;

/// Within a budget of steps, which are counted down.
fn improve(
    problem: &Problem,
    incumbent: &Placement,
    bound: Bytes,
    steps: &mut u64,
) -> Option<Placement> {
    let watched = Watched::new(Budget::of(0).watch);
    let mut meter = Meter::new(*steps, &watched);
    let found = super::improve(problem, incumbent, bound, bound, &mut meter);
    *steps = meter.left();
    found
}

/// All items above each other.
fn pile(problem: &Problem) -> Placement {
    let mut placement = Placement::default();
    for item in problem.items() {
        let base = placement.size.align_up(item.align).expect("a few items");
        placement.offsets.push(base);
        placement.size = base + item.extent();
    }
    placement
}

fn cut(seed: u64) -> Cut {
    let (items, loss) = (10 + 37 * seed % 900, 7 * seed % 41);
    let (live, align) = (20 + 3 * seed, Align::new(1 << (seed % 8)).expect("a power of two"));
    cut_problem(seed, CutConfig { items, live, loss, align, ..CutConfig::default() })
}

#[test]
fn what_is_found_is_right_and_smaller() {
    for seed in 0..30 {
        let cut = cut(seed);
        let pile = pile(&cut.problem);
        let bound = cut.placement.size;
        let found = improve(&cut.problem, &pile, bound, &mut ENOUGH.clone());
        let found = found.expect("anything beats a pile");
        assert_eq!(check_placement(&cut.problem, &found), [], "seed {seed}");
        assert!(found.size < pile.size && found.size >= bound, "seed {seed}");
    }
}

#[test]
fn the_same_problem_gives_the_same_placement() {
    let find = |seed| {
        let cut = cut(seed);
        improve(&cut.problem, &pile(&cut.problem), cut.placement.size, &mut ENOUGH.clone())
    };
    assert!((3..9).all(|seed| find(seed) == find(seed)));
}

#[test]
fn nothing_beats_the_optimum() {
    for seed in 0..10 {
        let Cut { problem, placement } = cut(seed);
        let mut steps = 1_000_000;
        assert_eq!(improve(&problem, &placement, Bytes::ZERO, &mut steps), None, "seed {seed}");
    }
}

#[test]
fn large_cuts_come_near_the_optimum() {
    let config = CutConfig { items: 4000, loss: 25, ..CutConfig::default() };
    let Cut { problem, placement } = cut_problem(1, config);
    let found = improve(&problem, &pile(&problem), placement.size, &mut ENOUGH.clone());
    let found = found.expect("anything beats a pile").size;
    assert!(found.0 * 100 <= placement.size.0 * 108, "{found} of {}", placement.size);
}

#[test]
fn a_spent_budget_ends_the_search() {
    let problem = cut(5).problem;
    let mut steps = 100;
    assert_eq!(improve(&problem, &pile(&problem), Bytes::ZERO, &mut steps), None);
    assert_eq!(steps, 0);
}

#[test]
fn items_of_several_rectangles_and_of_no_bytes_are_placed() {
    let span = |start, end| Interval::new(Step(start), Step(end));
    let rect = |offset, start, end| Rect {
        offset: Bytes(offset),
        bytes: Bytes(64),
        span: span(start, end),
    };
    let stairs = Rects::from(vec![rect(0, 0, 4), rect(64, 2, 6)]);
    let items: IndexVec<BufferId, Item> = [
        Item { rects: stairs.clone(), align: Align::CACHE_LINE, pin: None },
        Item { rects: stairs, align: Align::ONE, pin: None },
        Item::new(Bytes(0), span(0, 6), Align::ONE),
        Item::new(Bytes(9), span(3, 3), Align::ONE),
        Item::new(Bytes(9), span(3, 7), Align::CACHE_LINE),
    ]
    .into_iter()
    .collect();
    let problem = Problem::new(items).expect("five items");
    let incumbent = Placement { size: Bytes(1000), ..pile(&problem) };
    let found = improve(&problem, &incumbent, Bytes::ZERO, &mut ENOUGH.clone());
    assert_eq!(check_placement(&problem, &found.expect("1000 is too much")), []);
}

#[test]
fn fixed_offsets_are_left_to_others() {
    let span = Interval::new(Step(0), Step(1));
    let item = Item { pin: Some(Bytes(64)), ..Item::new(Bytes(8), span, Align::ONE) };
    let problem = Problem::new([item].into_iter().collect()).expect("one item");
    let incumbent = Placement { size: Bytes(1000), ..pile(&problem) };
    assert_eq!(improve(&problem, &incumbent, Bytes::ZERO, &mut ENOUGH.clone()), None);
}
