//! Brute force as the oracle, on tiny inputs: lifetimes, colouring, packing, bounds.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use arbitrary::Unstructured;
use lowtide_core::check::check_placement;
use lowtide_core::testing::{
    Limits, TinyLimits, describe, graph, least_arena, permutations, tiny_problem,
};
use lowtide_core::{
    Align, Bytes, Graph, Id, IndexVec, Interval, Item, Order, Placement, Problem, Rect, Step,
    TensorId,
};
use lowtide_planner::{
    ColourBy, OrderRule, PlanConfig, colour, fewest_colours, lifetimes, live_sums, pack, plan,
    plan_in_order,
};

/// The oracle of a lifetime: look at every step and ask who needs the tensor there.
fn is_needed_at(graph: &Graph, order: &Order, tensor: TensorId, step: Step) -> bool {
    let ops = order.schedule().as_slice();
    let touches = |at: usize| {
        let op = &graph.ops()[ops[at]];
        op.inputs.contains(&tensor) || op.outputs.contains(&tensor)
    };
    let seen = (0..=step.index()).any(touches);
    seen && (graph.tensors()[tensor].is_output || (step.index()..ops.len()).any(touches))
}

#[test]
fn lifetimes_are_the_steps_at_which_somebody_needs_the_tensor() {
    arbtest::arbtest(|u| {
        let graph = graph(u, Limits::all(10))?;
        let order = graph.file_order();
        for (tensor, life) in lifetimes(&graph, &order).iter_enumerated() {
            for step in (0..order.len()).map(Step::from_index) {
                let alive = life.is_some_and(|life| life.start <= step && step < life.end);
                assert_eq!(alive, is_needed_at(&graph, &order, tensor, step), "{tensor} at {step}");
            }
        }
        Ok(())
    })
    .budget_ms(1000);
}

fn tiny(u: &mut Unstructured<'_>, rects: usize) -> arbitrary::Result<Problem> {
    tiny_problem(u, TinyLimits { items: 6, rects, aligns: true, pins: false })
}

/// Without fixed offsets there always is one.
fn least(problem: &Problem) -> Bytes {
    least_arena(problem).unwrap()
}

#[test]
fn packings_are_right_and_between_the_bound_and_nothing_shared() {
    arbtest::arbtest(|u| {
        let problem = tiny(u, 3)?;
        let steps = *u.choose(&[0, 5, 1_000_000])?;
        let packing = pack(&problem, steps);
        assert_eq!(check_placement(&problem, &packing.placement), [], "{problem:#?}");
        let live = live_sums(&problem).into_iter().max().unwrap_or_default();
        let least = least(&problem);
        assert!(live <= least, "{problem:#?}");
        assert!(least <= packing.placement.size, "{problem:#?}");
        assert!(packing.bound.bytes <= least, "{problem:#?}");
        Ok(())
    })
    .budget_ms(2000);
}

/// What the search places by its rules, it places best: pieces that stand on their bases, fixed or not, with gaps,
/// and with windows that begin at the base.
#[test]
fn the_search_finds_the_least_arena_and_proves_it() {
    arbtest::arbtest(|u| {
        let limits = TinyLimits { items: 6, rects: 3, aligns: true, pins: u.arbitrary()? };
        let standing = |item: &Item| {
            let low = |rect: &Rect| Rect { offset: Bytes::ZERO, ..*rect };
            let rects: Vec<Rect> = item.rects().iter().map(low).collect();
            Item { rects: rects.into(), ..item.clone() }
        };
        let items = tiny_problem(u, limits)?.items().iter().map(standing).collect();
        let problem = Problem::new(items).unwrap();
        let Some(least) = least_arena(&problem) else { return Ok(()) };
        let packing = pack(&problem, 10_000_000);
        assert_eq!(check_placement(&problem, &packing.placement), [], "{problem:#?}");
        assert_eq!((packing.placement.size, packing.bound.bytes), (least, least), "{problem:#?}");
        Ok(())
    })
    .budget_ms(3000);
}

/// Of shapes that hang over, and all else that there is, it finds the best nearly always, and claims nothing wrong.
#[test]
fn the_search_rarely_misses_the_least_arena_of_staircases() {
    let (mut all, mut missed) = (0, 0);
    arbtest::arbtest(|u| {
        let limits = TinyLimits { items: 6, rects: 3, aligns: true, pins: u.arbitrary()? };
        let problem = tiny_problem(u, limits)?;
        let Some(least) = least_arena(&problem) else { return Ok(()) };
        let packing = pack(&problem, 10_000_000);
        assert_eq!(check_placement(&problem, &packing.placement), [], "{problem:#?}");
        assert!(packing.bound.bytes <= least && least <= packing.placement.size, "{problem:#?}");
        all += 1;
        missed += u32::from(least < packing.placement.size);
        Ok(())
    })
    .budget_ms(3000);
    assert!(missed * 20 <= all, "{missed} of {all} missed");
}

#[test]
fn what_is_never_there_ends_inside_all_the_same() {
    let item = |bytes, start, end| {
        Item::new(Bytes(bytes), Interval::new(Step(start), Step(end)), Align::ONE)
    };
    let live = [(3, 0, 2), (5, 1, 3), (2, 2, 4), (4, 0, 1), (6, 3, 4), (100, 2, 2)];
    let items = live.into_iter().map(|(bytes, start, end)| item(bytes, start, end)).collect();
    let problem = Problem::new(items).unwrap();
    let packing = pack(&problem, 1_000_000);
    assert_eq!(check_placement(&problem, &packing.placement), []);
    assert_eq!(packing.placement.size, Bytes(100));
}

/// Fewest colours by trying all assignments.
fn fewest_by_trying(spans: &[Interval]) -> usize {
    fn fits(spans: &[Interval], colours: &mut Vec<usize>, most: usize) -> bool {
        let next = colours.len();
        next == spans.len()
            || (0..most).any(|colour| {
                let clash =
                    (0..next).any(|i| colours[i] == colour && spans[i].overlaps(spans[next]));
                if clash {
                    return false;
                }
                colours.push(colour);
                let fits = fits(spans, colours, most);
                colours.pop();
                fits
            })
    }
    (0..=spans.len()).find(|&most| fits(spans, &mut Vec::new(), most)).unwrap()
}

#[test]
fn colouring_by_start_uses_the_fewest_colours_and_by_end_is_right() {
    arbtest::arbtest(|u| {
        let problem = tiny(u, 1)?;
        let spans: Vec<Interval> = problem.items().iter().map(Item::span).collect();
        let fewest = fewest_by_trying(&spans);
        assert_eq!(fewest_colours(&problem), fewest);
        assert_eq!(colour(&problem, ColourBy::Start).blocks.len(), fewest);
        for by in [ColourBy::Best, ColourBy::Start, ColourBy::End] {
            let colouring = colour(&problem, by);
            assert!(colouring.blocks.len() >= fewest);
            assert_eq!(check_placement(&problem, &colouring.placement()), []);
        }
        Ok(())
    })
    .budget_ms(1000);
}

/// The least peak over all orders, each with the planner's sharing.
fn least_peak(graph: &Graph, config: &PlanConfig) -> Bytes {
    let mut best = Bytes(u64::MAX);
    permutations(&graph.ops().ids().collect::<Vec<_>>(), &mut |ops| {
        if let Ok(order) = Order::new(graph, ops.to_vec()) {
            best = best.min(plan_in_order(graph, &order, config).stats.peak_live_bytes);
        }
    });
    best
}

#[test]
fn the_order_bound_is_never_above_the_least_peak() {
    arbtest::arbtest(|u| {
        let graph = graph(u, Limits { max_ops: 6, sharing: true, open_sizes: true, empty: true })?;
        let config =
            PlanConfig { align: Align::ONE, order: OrderRule::Search, ..PlanConfig::default() };
        let planned = plan(&graph, &config).unwrap();
        let least = least_peak(&graph, &config);
        assert!(planned.plan.order_bound.bytes <= least, "{}", describe(&graph));
        Ok(())
    })
    .size_max(1 << 10)
    .budget_ms(2000);
}

#[test]
fn pins_are_kept_where_they_can_be() {
    let span = Interval::new(Step(0), Step(2));
    let pinned = Item { pin: Some(Bytes(8)), ..Item::new(Bytes(8), span, Align::ONE) };
    let items =
        [Item::new(Bytes(8), span, Align::ONE), pinned, Item::new(Bytes(4), span, Align::ONE)];
    let problem = Problem::new(IndexVec::from(items.to_vec())).unwrap();
    let Placement { offsets, size } = pack(&problem, 1000).placement;
    assert_eq!((offsets.as_slice(), size), (&[Bytes(0), Bytes(8), Bytes(16)][..], Bytes(20)));
    assert_eq!(offsets.ids().map(Id::index).max(), Some(2));
}
