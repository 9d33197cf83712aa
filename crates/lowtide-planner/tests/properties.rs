//! Random graphs, planned in every mode, judged by the checker.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use arbitrary::Unstructured;
use lowtide_core::testing::{Limits, describe, graph, reordered};
use lowtide_core::{Align, Bound, Bytes, Graph, OpId, Order, Owner, Plan, Proof, Reuse, check};
use lowtide_planner::{
    ColourBy, OrderRule, PlanConfig, Planned, peak_of, plan, plan_in_order, score_order,
};

/// Runs `property` on random graphs of up to `max_ops` operators.
fn on_graphs(
    max_ops: usize,
    mut property: impl FnMut(&Graph, &mut Unstructured<'_>) -> arbitrary::Result<()>,
) {
    arbtest::arbtest(|u| {
        let graph = graph(u, Limits::all(max_ops))?;
        property(&graph, u)
    })
    .size_max(1 << 12)
    .budget_ms(2000);
}

fn any_config(u: &mut Unstructured<'_>) -> arbitrary::Result<PlanConfig> {
    Ok(PlanConfig {
        order: *u.choose(&[OrderRule::File, OrderRule::Score, OrderRule::Search])?,
        reuse: *u.choose(&Reuse::ALL)?,
        colour_by: *u.choose(&[ColourBy::Best, ColourBy::Start, ColourBy::End])?,
        in_place: u.arbitrary()?,
        parts: u.arbitrary()?,
        inputs: *u.choose(&[Owner::Caller, Owner::Arena])?,
        outputs: *u.choose(&[Owner::Caller, Owner::Arena])?,
        align: *u.choose(&[Align::ONE, Align::CACHE_LINE, Align::new(256).unwrap()])?,
        pack_steps: *u.choose(&[0, 10, 1000, 1_000_000])?,
        ..PlanConfig::default()
    })
}

fn planned(graph: &Graph, config: &PlanConfig) -> Planned {
    plan(graph, config).unwrap()
}

#[test]
fn every_plan_passes_the_checker() {
    on_graphs(24, |graph, u| {
        let config = any_config(u)?;
        if let Err(faults) = check(graph, planned(graph, &config).plan) {
            panic!("{config:?}\n{}\n{faults}", describe(graph));
        }
        Ok(())
    });
}

#[test]
fn bound_peak_arena_and_no_reuse_are_in_this_order() {
    on_graphs(24, |graph, u| {
        let config = any_config(u)?;
        let plan = planned(graph, &config).plan;
        assert!(plan.order_bound.bytes <= plan.stats.peak_live_bytes);
        assert!(plan.stats.peak_live_bytes <= plan.placement_bound.bytes);
        assert!(plan.placement_bound.bytes <= plan.stats.arena_bytes);
        let has_scratch = graph.ops().iter().any(|op| op.needed_scratch().is_some());
        assert!(has_scratch || plan.stats.arena_bytes <= plan.stats.no_reuse_bytes);
        Ok(())
    });
}

#[test]
fn the_best_order_never_needs_more_than_the_order_of_the_file() {
    on_graphs(24, |graph, u| {
        let config = PlanConfig { order: OrderRule::Search, ..any_config(u)? };
        let planned = planned(graph, &config);
        assert!(planned.plan.stats.arena_bytes <= planned.file_order_bytes());
        Ok(())
    });
}

#[test]
fn writing_in_place_never_raises_the_peak_of_an_order() {
    on_graphs(24, |graph, u| {
        // Where sizes are no multiples of the alignment, padding depends on what lies beside what.
        let base = PlanConfig { order: OrderRule::File, align: Align::ONE, ..any_config(u)? };
        let file = graph.file_order();
        let peak = |in_place| peak_of(graph, &file, &PlanConfig { in_place, ..base.clone() });
        assert!(peak(true) <= peak(false));
        Ok(())
    });
}

#[test]
fn equal_input_gives_equal_plans() {
    on_graphs(24, |graph, u| {
        let config = any_config(u)?;
        assert_eq!(planned(graph, &config), planned(graph, &config));
        Ok(())
    });
}

#[test]
fn another_order_of_the_file_changes_no_bound_and_no_peak_of_an_order() {
    on_graphs(24, |graph, u| {
        // Of two wishes that cannot both be granted, the numbers of tensors decide.
        let config = PlanConfig { parts: false, ..any_config(u)? };
        let order = score_order(graph, &config);
        let ops: Vec<OpId> = order.schedule().iter().copied().collect();
        let (other, ids) = reordered(graph, &ops);
        let mapped = graph.file_order().schedule().iter().map(|&op| ids[op]).collect();
        let here = plan_in_order(graph, &graph.file_order(), &config);
        let there = plan_in_order(&other, &Order::new(&other, mapped).unwrap(), &config);
        assert_eq!(here.order_bound.bytes, there.order_bound.bytes);
        assert_eq!(here.stats.no_reuse_bytes, there.stats.no_reuse_bytes);
        assert_eq!(here.stats.peak_live_bytes, there.stats.peak_live_bytes, "{}", describe(graph));
        assert_eq!(here.stats.peak_step, there.stats.peak_step);
        Ok(())
    });
}

/// What the checker takes from the residences is what its replay has seen.
#[test]
fn what_is_stacked_without_alignment_is_the_live_sum() {
    on_graphs(24, |graph, u| {
        let plan = planned(graph, &any_config(u)?).plan;
        if plan.schedule.is_empty() {
            return Ok(());
        }
        let claim = |more| {
            let proof = Proof::Stacked { step: plan.stats.peak_step, align: Align::ONE };
            let placement_bound = Bound { bytes: plan.stats.peak_live_bytes + Bytes(more), proof };
            check(graph, Plan { placement_bound, ..plan.clone() }).map(|_| ())
        };
        assert_eq!(claim(0), Ok(()), "{}", describe(graph));
        assert!(claim(1).is_err(), "{}", describe(graph));
        Ok(())
    });
}
