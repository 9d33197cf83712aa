//! The least arena within a limit of time.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use lowtide_core::testing::{Limits, describe, graph, structured_nets};
use lowtide_core::{Bytes, Graph, GraphBuilder, Op, Size, check};
use lowtide_planner::{PlanConfig, PlanError, Planned, Times, critical_path, makespan, plan};
use std::num::NonZeroUsize;

/// Two short branches that need much for a while, and a long one that keeps much: the short ones first need least, and
/// the long one then starts late.
fn branches() -> Graph {
    let mut builder = GraphBuilder::new("branches");
    let x = builder.input("x", Size::Fixed(Bytes(64)));
    let mut branch = |name: &str, [wide, end]: [u64; 2], seconds: f64| {
        let [wide, end] =
            [wide, end].map(|bytes| builder.computed(name, Size::Fixed(Bytes(bytes))));
        builder.op(Op::new(name, "Begin", [x], [wide]).cost(seconds));
        builder.op(Op::new(name, "End", [wide], [end]).cost(seconds));
        end
    };
    let ends = [
        branch("short", [512, 64], 1.0),
        branch("short too", [512, 64], 1.0),
        branch("long", [256, 256], 2.0),
    ];
    let y = builder.computed("y", Size::Fixed(Bytes(64)));
    builder.op(Op::new("y", "Add", ends, [y]).cost(1.0));
    builder.output(y);
    builder.finish().unwrap()
}

fn config(workers: usize, slowdown: Option<f64>) -> PlanConfig {
    let workers = NonZeroUsize::new(workers).unwrap();
    PlanConfig { workers, slowdown, ..PlanConfig::default() }
}

fn seconds(graph: &Graph, planned: &Planned, workers: usize) -> f64 {
    let workers = NonZeroUsize::new(workers).unwrap();
    makespan(graph, &planned.order, &Times::of(graph), workers)
}

#[track_caller]
fn takes(slowdown: Option<f64>, arena: u64, makespan: f64) {
    let graph = branches();
    let planned = plan(&graph, &config(2, slowdown)).unwrap();
    assert_eq!(planned.plan.stats.arena_bytes, Bytes(arena));
    assert!((seconds(&graph, &planned, 2) - makespan).abs() < 1e-12);
    assert_eq!(planned.least_makespan, Some(5.0));
}

#[test]
fn bytes_are_traded_for_time() {
    takes(None, 640, 7.0);
    takes(Some(f64::INFINITY), 640, 7.0);
    takes(Some(0.4), 640, 7.0);
    takes(Some(0.39), 896, 5.0);
    takes(Some(0.0), 896, 5.0);
}

#[test]
fn a_slowdown_is_a_number_of_at_least_nothing() {
    for value in [-0.1, f64::NAN] {
        let error = plan(&branches(), &config(2, Some(value))).unwrap_err();
        assert!(matches!(error, PlanError::BadSlowdown { .. }));
        assert!(error.to_string().ends_with("wanted a number, 0 or more"), "{error}");
    }
}

#[test]
fn makespans_are_within_the_limit_and_without_one_nothing_changes() {
    arbtest::arbtest(|u| {
        let graph = graph(u, Limits::all(24))?;
        let workers = u.int_in_range(2..=4)?;
        let slowdown = f64::from(u.int_in_range(0..=10_u8)?) / 20.0;
        let limited = plan(&graph, &config(workers, Some(slowdown))).unwrap();
        let (found, least) = (seconds(&graph, &limited, workers), limited.least_makespan.unwrap());
        assert!(found <= least * (1.0 + slowdown), "{found} {least} {}", describe(&graph));
        let path = critical_path(&graph, &Times::of(&graph)).seconds;
        assert!(least >= path * (1.0 - 1e-9), "{least} {path}");
        let free = plan(&graph, &config(1, None)).unwrap();
        let unlimited = plan(&graph, &config(workers, Some(f64::INFINITY))).unwrap();
        assert_eq!(unlimited.plan, free.plan);
        assert!(check(&graph, limited.plan).is_ok(), "{}", describe(&graph));
        Ok(())
    })
    .size_max(1 << 12)
    .budget_ms(3000);
}

/// The arena of one of these graphs is above its bound, so that some of its concats copy after all.
#[test]
fn the_limit_holds_where_parts_lie_in_place() {
    for graph in structured_nets() {
        let planned = plan(&graph, &config(2, Some(0.0))).unwrap();
        assert!(planned.tried.iter().all(|row| row.makespan.is_some()), "{}", graph.name());
        let least = planned.least_makespan.unwrap();
        assert!(seconds(&graph, &planned, 2) <= least * (1.0 + 1e-12), "{}", graph.name());
        check(&graph, planned.plan).unwrap();
    }
}
