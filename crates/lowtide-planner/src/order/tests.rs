//! The bound for every sharing beside all mixtures of parts in place and copies, in all orders of small graphs.

use super::{Rungs, climb};
use crate::meter::{Meter, Watched};
use crate::share::bodies::has_links;
use crate::share::{Ground, Links, Wishes, share};
use crate::{Budget, PlanConfig, bounds, peak_of, plan};
use arbitrary::Unstructured;
use lowtide_core::testing::{Limits, describe, graph, random_bytes};
use lowtide_core::{Align, Bytes, Graph, GraphBuilder, Op, OpId, Order, Sharing, Size};
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

/// The most that is live, in the best of these orders and mixtures.
fn least_peak(graph: &Graph, config: &PlanConfig, orders: &[Order], mixtures: &[Wishes]) -> u64 {
    let pairs = orders.iter().flat_map(|order| mixtures.iter().map(move |wishes| (order, wishes)));
    let peak = |(order, wishes)| {
        let (problem, _) = share(graph, order, config, wishes).problem();
        bounds::live_bound(&bounds::live_sums(&problem)).bytes.0
    };
    pairs.map(peak).min().unwrap_or(u64::MAX)
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
        let least = least_peak(&graph, &config, &orders, &mixtures);
        assert!(bound <= least, "seed {seed}: bound {bound}, {least}\n{}", describe(&graph));
        if seed % 8 == 0 && orders.len() < MOST_ORDERS {
            let peak = plan(&graph, &config).unwrap().plan.stats.peak_live_bytes.0;
            assert!(least <= peak, "seed {seed}: {least}, planned {peak}\n{}", describe(&graph));
        }
        graphs += 1;
        equal += usize::from(bound == least);
    }
    assert!(graphs > 1_500 && equal * 10 > graphs * 8, "{equal} of {graphs} are equal");
}

/// A concat whose first part lives on, and a split: with one of them in place and a copy for the other, less is live
/// than with both, or none.
#[test]
fn a_mixture_can_need_less_than_every_way_as_a_whole() {
    let mut b = GraphBuilder::new("mixed");
    let x = b.input("x", Size::Fixed(Bytes(128)));
    let [big, small] =
        [64, 16].map(|bytes| b.weight(format!("w{bytes}"), Size::Fixed(Bytes(bytes))));
    let [a, ab] =
        [128, 144].map(|bytes| b.computed(format!("a{bytes}"), Size::Fixed(Bytes(bytes))));
    let cut = b.computed("cut", Size::Fixed(Bytes(20)));
    let view = b.computed("view", Size::Fixed(Bytes(16)));
    let bounded = b.computed("bounded", Size::AtMost(Bytes(64)));
    let pieces = [0, 1, 2, 3].map(|at| b.computed(format!("p{at}"), Size::Fixed(Bytes(36))));
    let [whole, rest] =
        [196, 128].map(|bytes| b.computed(format!("c{bytes}"), Size::Fixed(Bytes(bytes))));
    let part = |input, output, at| Sharing::PartOf { input, output, offset: Bytes(at) };
    let piece = |output, of, at| Sharing::PieceOf { output, of, offset: Bytes(at) };
    let all = |sharing: Vec<Sharing>| move |op: Op| Op { sharing, ..op };
    b.op(all(vec![part(x, a, 0)])(Op::new("0", "Concat", [x], [a])));
    b.op(all(vec![part(a, ab, 0), part(small, ab, 128)])(Op::new("1", "Concat", [a, small], [ab])));
    b.op(all(vec![piece(cut, big, 40)])(Op::new("2", "Split", [big], [cut])));
    let viewed = Sharing::View { output: view, of: small, offset: Some(Bytes::ZERO) };
    b.op(all(vec![viewed])(Op::new("3", "View", [small, small], [view, bounded])));
    let cuts = pieces.iter().zip([0, 36, 72, 108]).map(|(&p, at)| piece(p, ab, at)).collect();
    let mut split = all(cuts)(Op::new("4", "Split", [ab, bounded], pieces));
    split.scratch = Size::Fixed(Bytes(256));
    b.op(split);
    let parts = vec![part(ab, whole, 0), part(small, whole, 144), part(pieces[1], whole, 160)];
    b.op(all(parts)(Op::new("5", "Concat", [ab, small, pieces[1]], [whole, rest])));
    b.output(x);
    let graph = b.finish().unwrap();
    let config = PlanConfig { align: Align::ONE, ..PlanConfig::default() };
    let orders = orders(&graph);
    let wholes = orders.iter().map(|order| peak_of(&graph, order, &config).0).min();
    let mixed = least_peak(&graph, &config, &orders, &mixtures(&graph, &config));
    assert_eq!((mixed, wholes), (468, Some(500)));
    assert_eq!(plan(&graph, &config).unwrap().plan.stats.peak_live_bytes, Bytes(468));
    assert!(bound(&graph, &config).unwrap() <= 468);
}
