//! Orders between the least memory and the least time.
//!
//! ~~~text
//! arena ^
//!       |  x critical path       an order of few bytes may begin a long chain late, and then one worker runs it alone;
//!       |    . blends            blends of both orders, and score rules, lie between
//!       |        .  x least arena
//!       +--|-----|--------> makespan
//!       fastest  limit           of those within the limit the one with the smallest arena is kept
//! ~~~
//! In a blend an operator stands by the weighted mean of its places in two orders: what comes first in both comes first in
//! it, so blends are orders. The order by the critical path is a list schedule: always the ready operator with the
//! longest way to the end. Where the order found without a limit is within it, that one stays.
//! Cost: O((operators + edges) log operators) an order. Source of the list schedule: Topcuoglu, Hariri, Wu, HEFT, 2002, on
//! equal workers.

use crate::time::{Times, makespan, seconds_to_end, starts};
use crate::{PlanConfig, ScoreWeights, score_order};
use lowtide_core::{Graph, OpId, Order};
use std::cmp::Reverse;
use std::num::NonZeroUsize;

/// How long orders take on several workers.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    times: Times,
    workers: NonZeroUsize,
}

/// An order that may be quick enough.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) rule: &'static str,
    pub(crate) order: Order,
    pub(crate) makespan: f64,
}

/// Weights of the score rule, from memory alone to the critical path alone.
const WEIGHTS: [(f64, f64); 4] = [(1.0, 0.0), (0.7, 0.3), (0.3, 0.7), (0.0, 1.0)];

/// Blends lie at these sevenths of the way to the critical path.
const SEVENTHS: u64 = 7;

impl Clock {
    /// None where one worker runs everything: then all orders take equally long.
    pub(crate) fn new(graph: &Graph, config: &PlanConfig) -> Option<Self> {
        let workers = config.workers;
        (workers > NonZeroUsize::MIN).then(|| Self { times: Times::of(graph), workers })
    }

    pub(crate) fn makespan(&self, graph: &Graph, order: &Order) -> f64 {
        makespan(graph, order, &self.times, self.workers)
    }

    /// The order by the critical path.
    pub(crate) fn critical(&self, graph: &Graph) -> Offer {
        let ranks = seconds_to_end(graph, &self.times);
        let mut ops: Vec<OpId> = graph.file_order().schedule().iter().copied().collect();
        // Stable: what takes no time stays in the order of the file. Not negative, so the bits compare like the numbers.
        ops.sort_by_key(|&op| Reverse(ranks[op].to_bits()));
        let order = Order::new(graph, ops).expect("the way to the end falls along the graph");
        let ops = starts(graph, &order, &self.times, self.workers);
        self.offer("critical-path", graph, ops)
    }

    fn offer(&self, rule: &'static str, graph: &Graph, ops: Vec<OpId>) -> Offer {
        let order = Order::new(graph, ops).expect("only what was ready was taken");
        Offer { rule, makespan: self.makespan(graph, &order), order }
    }

    /// Orders between `memory` and the critical path, and that one.
    pub(crate) fn offers(&self, graph: &Graph, config: &PlanConfig, memory: &Order) -> Vec<Offer> {
        let critical = self.critical(graph);
        let mut offers = Vec::new();
        for (alpha, beta) in WEIGHTS {
            let score = ScoreWeights { alpha, beta };
            let order = score_order(graph, &PlanConfig { score, ..config.clone() });
            let makespan = self.makespan(graph, &order);
            offers.push(Offer { rule: "score", order, makespan });
        }
        for part in 1..SEVENTHS {
            offers.push(self.offer("blend", graph, blend(memory, &critical.order, part)));
        }
        offers.push(critical);
        offers
    }
}

/// The order at so many sevenths of the way from one to another.
fn blend(from: &Order, to: &Order, part: u64) -> Vec<OpId> {
    let mut ops: Vec<OpId> = from.schedule().iter().copied().collect();
    let place = |order: &Order, op| u64::from(order.step(op).0);
    // Stable: where the means are equal, what comes first in `from` comes first.
    ops.sort_by_key(|&op| place(from, op) * (SEVENTHS - part) + place(to, op) * part);
    ops
}

/// How long an order may take if the fastest takes `fastest`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) fastest: f64,
    pub(crate) slowdown: f64,
}

impl Limit {
    /// Whether so long is quick enough; the fastest itself always is.
    pub(crate) fn admits(self, makespan: f64) -> bool {
        makespan <= self.fastest || makespan <= self.fastest * (1.0 + self.slowdown)
    }
}
