//! The least peak of tiny graphs, by trying every order, against what the search proves.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use arbitrary::Unstructured;
use lowtide_core::testing::{Limits, describe, graph, random_bytes};
use lowtide_core::{Align, Bytes, Graph, OpId, Order, Owner, check};
use lowtide_planner::{OrderRule, PlanConfig, peak_of, plan};
use std::collections::BTreeMap;

/// The least peak over all orders, each shared and counted as a plan would be.
fn least_peak(graph: &Graph, config: &PlanConfig) -> Bytes {
    let mut least = Bytes(u64::MAX);
    every_order(graph, &mut Vec::new(), &mut |ops| {
        let order = Order::new(graph, ops.to_vec()).unwrap();
        least = least.min(peak_of(graph, &order, config));
    });
    least
}

fn every_order(graph: &Graph, ops: &mut Vec<OpId>, visit: &mut dyn FnMut(&[OpId])) {
    if ops.len() == graph.ops().len() {
        return visit(ops);
    }
    let mut readiness = lowtide_core::Readiness::new(graph);
    for &op in &*ops {
        readiness.run(op, |_| {});
    }
    for op in readiness.ready().collect::<Vec<_>>() {
        ops.push(op);
        every_order(graph, ops, visit);
        ops.pop();
    }
}

#[test]
fn search_finds_the_least_peak_and_proves_it() {
    let (mut graphs, mut proven, mut mixed) = (0, 0, 0);
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..6000 {
        let bytes = random_bytes(seed, 1 << 11);
        let limits =
            Limits { max_ops: 7, sharing: true, open_sizes: seed % 3 == 0, empty: seed % 2 == 0 };
        let Ok(graph) = graph(&mut Unstructured::new(&bytes), limits) else { continue };
        let config = PlanConfig {
            align: if seed % 5 == 0 { Align::CACHE_LINE } else { Align::ONE },
            in_place: seed % 4 != 0,
            parts: seed % 7 != 0,
            inputs: if seed % 11 == 0 { Owner::Arena } else { Owner::Caller },
            outputs: if seed % 13 == 0 { Owner::Caller } else { Owner::Arena },
            order: OrderRule::Search,
            ..PlanConfig::default()
        };
        let planned = plan(&graph, &config).unwrap();
        let found = planned.plan.stats.peak_live_bytes;
        let least = least_peak(&graph, &config);
        let text = || format!("seed {seed} {config:?}\n{}", describe(&graph));
        assert!(
            planned.plan.order_bound.bytes <= least,
            "{:?}, least {}, tried {:?}
{}",
            planned.plan.order_bound,
            least.0,
            planned.tried,
            text()
        );
        *kinds.entry(planned.plan.order_rule.clone()).or_default() += 1;
        graphs += 1;
        proven += usize::from(planned.plan.order_proven());
        assert!(planned.plan.order_bound.bytes <= found, "{}", text());
        if found < least {
            // Some parts in place and some copied: of such mixtures the brute force knows none.
            assert!(config.parts, "{}", text());
            mixed += 1;
        } else if planned.plan.stats.arena_bytes > found || !planned.plan.order_proven() {
            // A larger peak may have the smaller arena.
            assert!(least <= found, "{}", text());
        } else {
            assert_eq!(found, least, "{}", text());
        }
        if let Err(faults) = check(&graph, planned.plan) {
            panic!("{faults:?}\n{}", text());
        }
    }
    assert!(mixed * 100 < graphs, "{mixed} of {graphs}");
    assert!(graphs > 5000 && proven * 100 > graphs * 95, "{proven} of {graphs} proven, {kinds:?}");
}
