//! Fences: enough for every order in which workers may run, and none too many.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use arbitrary::Unstructured;
use lowtide_core::testing::{Limits, describe, graph, random_bytes};
use lowtide_core::{
    Align, Bytes, Event, Fault, Graph, GraphBuilder, Op, Owner, Plan, Reuse, RunId, Size, check,
};
use lowtide_planner::{OrderRule, PlanConfig, plan, plan_in_order};

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

/// Without fences: whatever the order in which workers run, and whatever shares bytes.
#[test]
fn where_only_data_lets_bytes_be_used_again_nothing_waits() {
    let (mut apart, mut together, mut safe) = (0, 0, 0);
    for seed in 0..1_500 {
        let bytes = random_bytes(seed, 1 << 12);
        let Ok(graph) = graph(&mut Unstructured::new(&bytes), Limits::all(16)) else { continue };
        let owner = if seed % 3 == 0 { Owner::Arena } else { Owner::Caller };
        let config = PlanConfig {
            align: if seed % 2 == 0 { Align::ONE } else { Align::CACHE_LINE },
            order: OrderRule::Rules,
            inputs: owner,
            red_zone: Bytes(if seed % 5 == 0 { 32 } else { 0 }),
            pack_steps: 1 << 16,
            ..PlanConfig::default()
        };
        let with = plan(&graph, &config).unwrap().plan;
        let without = plan(&graph, &PlanConfig { fences: false, ..config.clone() }).unwrap();
        assert_eq!(without.plan.fences(), 0, "seed {seed}\n{}", describe(&graph));
        let checked = check(&graph, without.plan.clone());
        assert!(checked.is_ok(), "seed {seed}: {checked:?}\n{}", describe(&graph));
        let given = PlanConfig { fences: false, ..config };
        assert_eq!(plan_in_order(&graph, &without.order, &given).fences(), 0, "seed {seed}");
        apart += without.plan.stats.arena_bytes.0;
        together += with.stats.arena_bytes.0;
        safe += without.plan.stats.no_reuse_bytes.0;
    }
    assert!(together < apart && apart < safe, "{together} < {apart} < {safe}");
}

/// Far back too, where a look would be long: in a chain data orders everything.
#[test]
fn a_long_chain_needs_no_fence_and_no_larger_arena_without() {
    let mut b = GraphBuilder::new("chain");
    let mut last = b.input("x", Size::Fixed(Bytes(64)));
    for at in 0..10_000_u64 {
        let size = if at % 9_000 == 1 { 4096 } else { 64 + 64 * (at % 7) };
        let next = b.computed(format!("t{at}"), Size::Fixed(Bytes(size)));
        b.op(Op::new(format!("{at}"), "Op", [last], [next]));
        last = next;
    }
    b.output(last);
    let graph = b.finish().unwrap();
    let config = PlanConfig { order: OrderRule::File, ..PlanConfig::default() };
    let plans = [true, false].map(|fences| {
        let plan = plan(&graph, &PlanConfig { fences, ..config.clone() }).unwrap().plan;
        assert_eq!(plan.fences(), 0);
        check(&graph, plan).unwrap()
    });
    assert_eq!(plans[0].plan().stats.arena_bytes, plans[1].plan().stats.arena_bytes);
}

/// The caller has written an input before the first run: what comes over it waits for those that read it.
#[test]
fn an_input_in_the_arena_is_read_before_something_comes_over_it() {
    let size = |bytes| Size::Fixed(Bytes(bytes));
    let mut b = GraphBuilder::new("input");
    let (x, w) = (b.input("x", size(256)), b.weight("w", size(64)));
    let [a, r, y] =
        [("a", 64), ("r", 256), ("y", 64)].map(|(name, len)| b.computed(name, size(len)));
    b.op(Op::new("A", "A", [x], [a]));
    b.op(Op::new("R", "R", [w], [r]));
    b.op(Op::new("Y", "Y", [a, r], [y]));
    b.output(y);
    let graph = b.finish().unwrap();
    let config =
        PlanConfig { order: OrderRule::File, inputs: Owner::Arena, ..PlanConfig::default() };
    let mut plan = plan(&graph, &config).unwrap().plan;
    assert_eq!(plan.stats.arena_bytes, Bytes(384));
    assert!(plan.events.contains(&Event::Fence(RunId::new(0))), "{:?}", plan.events);
    check(&graph, plan.clone()).unwrap();
    plan.events.retain(|event| !matches!(event, Event::Fence(_)));
    let faults = check(&graph, plan).unwrap_err().0;
    assert!(matches!(faults.as_slice(), [Fault::Unordered { .. }]), "{faults:?}");
}
