//! Red zones: what lives together lies apart, and the plan is one like any other.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use arbitrary::Unstructured;
use lowtide_core::testing::{Limits, describe, graph, structured_nets};
use lowtide_core::{Align, Bytes, Graph, GraphBuilder, Owner, Plan, Residence, Reuse, check};
use lowtide_planner::{OrderRule, PlanConfig, PlanError, plan, plan_in_order};

fn any_config(u: &mut Unstructured<'_>) -> arbitrary::Result<PlanConfig> {
    let reuse = *u.choose(&Reuse::ALL)?;
    Ok(PlanConfig {
        order: *u.choose(&[OrderRule::File, OrderRule::Search])?,
        reuse,
        fences: reuse == Reuse::Colour || u.arbitrary()?,
        parts: u.arbitrary()?,
        inputs: *u.choose(&[Owner::Caller, Owner::Arena])?,
        outputs: *u.choose(&[Owner::Caller, Owner::Arena])?,
        align: *u.choose(&[Align::ONE, Align::CACHE_LINE, Align::new(256).unwrap()])?,
        red_zone: Bytes(*u.choose(&[64, 256])?),
        pack_steps: *u.choose(&[0, 1000, 1_000_000])?,
        ..PlanConfig::default()
    })
}

/// What takes bytes of the arena: where it begins and ends, and what it is.
fn held(plan: &Plan) -> Vec<(u64, u64, Residence)> {
    let range = |(id, &row): (_, &Residence)| {
        let (_, start) = plan.address(id)?;
        let bytes = row.size.bound().filter(|&bytes| bytes > Bytes::ZERO)?;
        Some((start.0, (start + bytes).0, row))
    };
    plan.residences.iter_enumerated().filter_map(range).collect()
}

#[track_caller]
fn check_apart(graph: &Graph, plan: &Plan, zone: Bytes) {
    let held = held(plan);
    for (at, &(start, end, row)) in held.iter().enumerate() {
        assert!(end + zone.0 <= plan.stats.arena_bytes.0, "no zone behind the topmost");
        for &(other_start, other_end, other) in &held[..at] {
            let are_together = row.span.overlaps(other.span) && row.buffer != other.buffer;
            let are_apart = end + zone.0 <= other_start || other_end + zone.0 <= start;
            assert!(!are_together || are_apart, "{row:?} {other:?} {}", describe(graph));
        }
    }
}

#[test]
fn what_lives_together_lies_apart_and_the_checker_accepts_it() {
    arbtest::arbtest(|u| {
        let graph = graph(u, Limits::all(24))?;
        let config = any_config(u)?;
        let plan = plan(&graph, &config).unwrap().plan;
        check_apart(&graph, &plan, config.red_zone);
        if let Err(faults) = check(&graph, plan) {
            panic!("{config:?}\n{}\n{faults}", describe(&graph));
        }
        Ok(())
    })
    .size_max(1 << 12)
    .budget_ms(3000);
}

#[test]
fn parts_in_place_lie_apart_too() {
    for graph in structured_nets() {
        let config = PlanConfig { red_zone: Bytes(256), ..PlanConfig::default() };
        let plan = plan_in_order(&graph, &graph.file_order(), &config);
        check_apart(&graph, &plan, config.red_zone);
        check(&graph, plan).unwrap();
    }
}

#[test]
fn the_bound_is_that_of_the_buffers_without_zones() {
    for graph in structured_nets() {
        let config = PlanConfig { order: OrderRule::File, parts: false, ..PlanConfig::default() };
        let without = plan(&graph, &config).unwrap().plan;
        let config = PlanConfig { red_zone: Bytes(4096), ..config };
        let with = plan(&graph, &config).unwrap().plan;
        assert!(with.placement_bound.bytes <= without.placement_bound.bytes);
        assert!(with.stats.arena_bytes > without.stats.arena_bytes, "{}", graph.name());
        assert_eq!(with.stats.peak_live_bytes, without.stats.peak_live_bytes);
    }
}

#[test]
fn a_zone_without_room_is_refused() {
    for zone in [1 << 62, u64::MAX] {
        let config = PlanConfig { red_zone: Bytes(zone), ..PlanConfig::default() };
        let error = plan(&GraphBuilder::new("").finish().unwrap(), &config).unwrap_err();
        assert_eq!(error, PlanError::RedZone { value: Bytes(zone) });
    }
}
