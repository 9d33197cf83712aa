//! Fences: enough for every order in which workers may run, and none too many.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use arbitrary::Unstructured;
use lowtide_core::testing::{Limits, describe, graph, random_bytes};
use lowtide_core::{Align, Event, Fault, Graph, Plan, Reuse, check};
use lowtide_planner::{OrderRule, PlanConfig, plan};

fn planned(graph: &Graph, reuse: Reuse) -> Plan {
    let config =
        PlanConfig { align: Align::ONE, order: OrderRule::Rules, reuse, ..PlanConfig::default() };
    plan(graph, &config).unwrap().plan
}

/// Without any one of its fences, a plan is refused, for that reason alone.
#[test]
fn no_fence_follows_from_others() {
    let mut fences = 0;
    for seed in 0..400 {
        let bytes = random_bytes(seed, 1 << 12);
        let Ok(graph) = graph(&mut Unstructured::new(&bytes), Limits::all(16)) else { continue };
        let plan = planned(&graph, Reuse::Pack);
        check(&graph, plan.clone()).unwrap();
        for at in 0..plan.events.len() {
            if !matches!(plan.events[at], Event::Fence(_)) {
                continue;
            }
            let mut broken = plan.clone();
            broken.events.remove(at);
            let faults = check(&graph, broken).unwrap_err().0;
            let is_order = faults.iter().all(|fault| matches!(fault, Fault::Unordered { .. }));
            assert!(is_order, "seed {seed}: {faults:?}\n{}", describe(&graph));
            fences += 1;
        }
    }
    assert!(fences > 300, "{fences}");
}

#[test]
fn where_nothing_shares_bytes_nothing_waits() {
    for seed in 0..200 {
        let bytes = random_bytes(seed, 1 << 12);
        let Ok(graph) = graph(&mut Unstructured::new(&bytes), Limits::all(16)) else { continue };
        assert_eq!(planned(&graph, Reuse::Safe).fences(), 0, "{}", describe(&graph));
    }
}
