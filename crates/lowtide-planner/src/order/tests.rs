//! The bound for every sharing beside all mixtures of parts in place and copies, in all orders of small graphs.

use super::{Rungs, climb};
use crate::meter::{Meter, Watched};
use crate::share::bodies::has_links;
use crate::share::{Ground, Links, Wishes, share};
use crate::{Budget, PlanConfig, bounds};
use arbitrary::Unstructured;
use lowtide_core::testing::{Limits, describe, graph, random_bytes};
use lowtide_core::{Align, Graph, OpId, Order};
use std::collections::BTreeSet;

/// More orders of a graph are not tried.
const MOST_ORDERS: usize = 60;

/// Some orders of the operators, all of them if there are few.
fn orders(graph: &Graph) -> Vec<Order> {
    let mut found = Vec::new();
    let ids: Vec<OpId> = graph.ops().ids().collect();
    extend(graph, &ids, &mut Vec::new(), &mut found);
    found
}

fn extend(graph: &Graph, ids: &[OpId], begun: &mut Vec<OpId>, found: &mut Vec<Order>) {
    if begun.len() == ids.len() {
        found.extend(Order::new(graph, begun.clone()).ok());
    }
    for &op in ids {
        let reads = graph.reads(op).iter().filter_map(|&tensor| graph.writer(tensor));
        let is_ready = !begun.contains(&op) && { reads }.all(|writer| begun.contains(&writer));
        if is_ready && found.len() < MOST_ORDERS {
            begun.push(op);
            extend(graph, ids, begun, found);
            begun.pop();
        }
    }
}

/// All parts in place, those that die, none, and every choice of operators that copy.
fn mixtures(graph: &Graph, config: &PlanConfig) -> Vec<Wishes> {
    let ops = graph.ops().iter_enumerated();
    let links: Vec<OpId> = ops.filter(|(_, op)| has_links(op)).map(|(id, _)| id).collect();
    let chosen = |choice: usize| -> BTreeSet<OpId> {
        (0..links.len()).filter(|at| choice >> at & 1 == 1).map(|at| links[at]).collect()
    };
    let mixed = |links| {
        (0..1 << chosen(usize::MAX).len())
            .map(move |choice| Wishes::without(graph, config, links, &chosen(choice)))
    };
    Links::ALL.into_iter().flat_map(mixed).collect()
}

fn bound(graph: &Graph, config: &PlanConfig) -> Option<u64> {
    let ground = Ground::relaxed(graph, config)?;
    let watched = Watched::new(Budget::of(0).watch);
    let mut meter = Meter::new(config.order_steps, &watched);
    climb(graph, config, &ground, Rungs::Search, &mut meter).map(|ladder| ladder.bound)
}

#[test]
fn no_mixture_of_parts_in_place_and_copies_needs_less_than_the_bound() {
    let (mut graphs, mut equal) = (0, 0);
    for seed in 0..3_000 {
        let bytes = random_bytes(seed, 1 << 11);
        let Ok(graph) = graph(&mut Unstructured::new(&bytes), Limits::all(7)) else { continue };
        let align = if seed % 2 == 0 { Align::ONE } else { Align::CACHE_LINE };
        let config = PlanConfig { align, ..PlanConfig::default() };
        let Some(bound) = bound(&graph, &config) else { continue };
        let (orders, mixtures) = (orders(&graph), mixtures(&graph, &config));
        if mixtures.len() > 24 {
            continue;
        }
        let mut least = u64::MAX;
        for (order, wishes) in orders.iter().flat_map(|o| mixtures.iter().map(move |w| (o, w))) {
            let (problem, _) = share(&graph, order, &config, wishes).problem();
            least = least.min(bounds::live_bound(&bounds::live_sums(&problem)).bytes.0);
        }
        assert!(bound <= least, "seed {seed}: bound {bound}, {least}\n{}", describe(&graph));
        graphs += 1;
        equal += usize::from(bound == least);
    }
    assert!(graphs > 1_500 && equal * 10 > graphs * 8, "{equal} of {graphs} are equal");
}
