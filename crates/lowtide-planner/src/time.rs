//! How long a graph takes: the critical path, all operators one after the other, and an order on several workers.
//!
//! ~~~text
//! a 2 ─ b 3 ─ d 1     critical path  a b d, 6 s       no number of workers is faster
//!     └ c 2 ─┘        total          8 s              one worker
//!                     order a c b d on 2 workers:     worker 1  a a b b b d
//!                                                     worker 2  . . c c . .     makespan 6 s
//! ~~~
//! Whenever a worker is free it takes the first operator of the order whose inputs are there. An operator waits for those
//! that write what it reads, and one that changes bytes in place for the other readers of the old value; that memory is
//! used again makes nobody wait here, so a run with fences may take longer. The critical path is never longer than the
//! makespan, and that is never longer than the total; on one worker it is the total.
//!
//! Where only some costs are known, the others count as their mean; where none is, each as 1.
//! Cost: O((operators + edges) log operators). Source: Graham, Bounds on Multiprocessing Timing Anomalies, 1966.

use lowtide_core::{Graph, IndexVec, OpId, Order, Readiness, Step, TensorId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroUsize;

/// How long each operator takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    seconds: IndexVec<OpId, f64>,
    unknown: usize,
}

/// The longest chain of operators that wait for each other.
#[derive(Clone, Debug, PartialEq)]
pub struct CriticalPath {
    /// How long it takes.
    pub seconds: f64,
    /// Its operators, the first first.
    pub ops: Vec<OpId>,
}

impl Times {
    /// The times of a graph by the costs of its operators.
    pub fn of(graph: &Graph) -> Self {
        let known = || graph.ops().iter().filter_map(|op| op.cost);
        let unknown = graph.ops().len() - known().count();
        #[expect(clippy::cast_precision_loss, reason = "a mean needs no exact count")]
        let count = known().count() as f64;
        let mean = if count > 0.0 { known().sum::<f64>() / count } else { 1.0 };
        let seconds = graph.ops().iter().map(|op| op.cost.unwrap_or(mean)).collect();
        Self { seconds, unknown }
    }

    /// Seconds of each operator.
    pub fn seconds(&self) -> &IndexVec<OpId, f64> {
        &self.seconds
    }

    /// Operators whose time is not known.
    pub fn unknown(&self) -> usize {
        self.unknown
    }

    /// Seconds of all operators together.
    pub fn total(&self) -> f64 {
        self.seconds.iter().sum()
    }
}

/// The critical path of a graph. Cost: linear.
pub fn critical_path(graph: &Graph, times: &Times) -> CriticalPath {
    let mut ends: IndexVec<OpId, f64> = IndexVec::filled(graph.ops().len(), 0.0);
    let mut before: IndexVec<OpId, Option<OpId>> = IndexVec::filled(ends.len(), None);
    // For each tensor the reader so far that ends last.
    let mut readers: IndexVec<TensorId, Option<OpId>> =
        IndexVec::filled(graph.tensors().len(), None);
    let mut last: Option<OpId> = None;
    let later = |ends: &IndexVec<OpId, f64>, a: Option<OpId>, b: OpId| match a {
        Some(a) if ends[a] >= ends[b] => a,
        _ => b,
    };
    for &op in graph.file_order().schedule() {
        let writers = graph.reads(op).iter().filter_map(|&tensor| graph.writer(tensor));
        let waits = graph.overwritten_by(op).iter().filter_map(|&tensor| readers[tensor]);
        before[op] = writers.chain(waits).fold(None, |a, b| Some(later(&ends, a, b)));
        ends[op] = before[op].map_or(0.0, |op| ends[op]) + times.seconds[op];
        for &tensor in graph.reads(op) {
            readers[tensor] = Some(later(&ends, readers[tensor], op));
        }
        last = Some(later(&ends, last, op));
    }
    let mut ops: Vec<OpId> = std::iter::successors(last, |&op| before[op]).collect();
    ops.reverse();
    CriticalPath { seconds: last.map_or(0.0, |op| ends[op]), ops }
}

/// Seconds from the start of each operator to the end of the longest chain that waits for it. Cost: linear.
pub(crate) fn seconds_to_end(graph: &Graph, times: &Times) -> IndexVec<OpId, f64> {
    let mut ranks: IndexVec<OpId, f64> = IndexVec::filled(graph.ops().len(), 0.0);
    // For each tensor the most of those that wait until it has been read.
    let mut mutations: IndexVec<TensorId, f64> = IndexVec::filled(graph.tensors().len(), 0.0);
    for &op in graph.file_order().schedule().as_slice().iter().rev() {
        let outputs = graph.ops()[op].outputs.iter();
        let readers = outputs.flat_map(|&output| graph.readers(output)).map(|&next| ranks[next]);
        let waiting = graph.reads(op).iter().map(|&tensor| mutations[tensor]);
        ranks[op] = times.seconds[op] + readers.chain(waiting).fold(0.0, f64::max);
        for &tensor in graph.overwritten_by(op) {
            mutations[tensor] = mutations[tensor].max(ranks[op]);
        }
    }
    ranks
}

/// Seconds that an order takes on so many workers.
pub fn makespan(graph: &Graph, order: &Order, times: &Times, workers: NonZeroUsize) -> f64 {
    Run::new(graph, order, times, workers).run(|_| {})
}

/// The operators as they start when workers take them from an order.
pub(crate) fn starts(
    graph: &Graph,
    order: &Order,
    times: &Times,
    workers: NonZeroUsize,
) -> Vec<OpId> {
    let mut ops = Vec::with_capacity(order.len());
    Run::new(graph, order, times, workers).run(|op| ops.push(op));
    ops
}

/// Workers that take operators from an order.
struct Run<'a> {
    order: &'a Order,
    times: &'a Times,
    readiness: Readiness<'a>,
    free: usize,
    /// What may start, by its place in the order.
    ready: BinaryHeap<Reverse<Step>>,
    /// What runs, by its end as bits that compare like it: it is not negative.
    running: BinaryHeap<Reverse<(u64, Step)>>,
}

impl<'a> Run<'a> {
    fn new(graph: &'a Graph, order: &'a Order, times: &'a Times, workers: NonZeroUsize) -> Self {
        let readiness = Readiness::new(graph);
        let ready = readiness.ready().map(|op| Reverse(order.step(op))).collect();
        let running = BinaryHeap::new();
        Self { order, times, readiness, free: workers.get(), ready, running }
    }

    /// Runs everything, tells what starts, and returns the time.
    fn run(mut self, mut started: impl FnMut(OpId)) -> f64 {
        let mut now: f64 = 0.0;
        loop {
            while self.free > 0 {
                let Some(Reverse(step)) = self.ready.pop() else { break };
                let op = self.op(step);
                started(op);
                self.free -= 1;
                self.running.push(Reverse(((now + self.times.seconds[op]).to_bits(), step)));
            }
            let Some(&Reverse((end, _))) = self.running.peek() else { return now };
            now = f64::from_bits(end);
            self.finish(end);
        }
    }

    /// Everything that ends at this time.
    fn finish(&mut self, now: u64) {
        while let Some(&Reverse((end, step))) = self.running.peek()
            && end == now
        {
            self.running.pop();
            self.free += 1;
            let (op, order, ready) = (self.op(step), self.order, &mut self.ready);
            self.readiness.run(op, |next| ready.push(Reverse(order.step(next))));
        }
    }

    fn op(&self, step: Step) -> OpId {
        self.order.schedule().as_slice()[step.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::testing::{Limits, describe, graph};
    use lowtide_core::{Bytes, GraphBuilder, Op, Sharing, Size};

    const SIZE: Size = Size::Fixed(Bytes(8));

    /// The drawing above; `c` may change in place what `b` reads.
    fn diamond(mutates: bool) -> Graph {
        let mut builder = GraphBuilder::new("diamond");
        let x = builder.input("x", SIZE);
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| builder.computed(name, SIZE));
        builder.op(Op::new("a", "A", [x], [a]).cost(2.0));
        builder.op(Op::new("b", "B", [a], [b]).cost(3.0));
        let op = Op::new("c", "C", [a], [c]).cost(2.0);
        builder.op(if mutates { op.sharing(Sharing::Mutates { output: c, of: a }) } else { op });
        builder.op(Op::new("d", "D", [b, c], [d]).cost(1.0));
        builder.finish().unwrap()
    }

    fn workers(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    #[track_caller]
    fn takes(graph: &Graph, ops: &[u32], count: usize, wanted: f64) {
        let order = Order::new(graph, ops.iter().map(|&op| OpId::new(op)).collect()).unwrap();
        let found = makespan(graph, &order, &Times::of(graph), workers(count));
        assert!((found - wanted).abs() < 1e-12, "{found}");
    }

    #[test]
    fn workers_take_what_is_ready() {
        takes(&diamond(false), &[0, 2, 1, 3], 1, 8.0);
        takes(&diamond(false), &[0, 2, 1, 3], 2, 6.0);
        takes(&diamond(false), &[0, 2, 1, 3], 9, 6.0);
    }

    #[test]
    fn a_mutation_waits_for_the_readers_of_the_old_value() {
        takes(&diamond(true), &[0, 1, 2, 3], 2, 8.0);
        let path = critical_path(&diamond(true), &Times::of(&diamond(true)));
        assert_eq!(path.ops, [0, 1, 2, 3].map(OpId::new));
    }

    #[test]
    fn the_critical_path_is_the_longest_chain() {
        let graph = diamond(false);
        let times = Times::of(&graph);
        let path = critical_path(&graph, &times);
        assert_eq!(path.ops, [0, 1, 3].map(OpId::new));
        assert!((path.seconds - 6.0).abs() < 1e-12 && (times.total() - 8.0).abs() < 1e-12);
        let ranks: Vec<f64> = seconds_to_end(&graph, &times).into();
        assert!(ranks.iter().zip([6.0, 4.0, 3.0, 1.0]).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn unknown_times_count_as_the_mean() {
        let mut costs = IndexVec::filled(2, None);
        let mut builder = GraphBuilder::new("chain");
        let [x, y] = ["x", "y"].map(|name| builder.input(name, SIZE));
        let [a, b] = ["a", "b"].map(|name| builder.computed(name, SIZE));
        builder.op(Op::new("a", "A", [x], [a]));
        builder.op(Op::new("b", "B", [y], [b]));
        let graph = builder.finish().unwrap();
        assert_eq!(Times::of(&graph), Times { seconds: vec![1.0, 1.0].into(), unknown: 2 });
        costs[OpId::new(0)] = Some(4.0);
        let graph = graph.with_costs(&costs).unwrap();
        assert_eq!(Times::of(&graph), Times { seconds: vec![4.0, 4.0].into(), unknown: 1 });
        costs[OpId::new(1)] = Some(f64::NAN);
        let message = graph.with_costs(&costs).unwrap_err().to_string();
        assert!(message.contains("`b`: its cost is NaN seconds"), "{message}");
    }

    #[test]
    fn path_makespan_and_total_are_in_this_order() {
        arbtest::arbtest(|u| {
            let graph = graph(u, Limits::all(24))?;
            let (order, times) = (graph.file_order(), Times::of(&graph));
            let (path, total) = (critical_path(&graph, &times), times.total());
            let near = 1e-9 * total;
            let time = |count| makespan(&graph, &order, &times, workers(count));
            assert!((time(1) - total).abs() <= near, "{}", describe(&graph));
            for count in 2..6 {
                assert!(time(count) >= path.seconds - near, "{}", describe(&graph));
                assert!(time(count) <= total + near, "{}", describe(&graph));
            }
            // Nobody waits for a worker.
            assert!((time(graph.ops().len()) - path.seconds).abs() <= near, "{}", describe(&graph));
            let ranks = seconds_to_end(&graph, &times);
            let longest = ranks.iter().copied().fold(0.0, f64::max);
            assert!((longest - path.seconds).abs() <= near);
            let sum: f64 = path.ops.iter().map(|&op| times.seconds[op]).sum();
            assert!((sum - path.seconds).abs() <= near);
            Ok(())
        })
        .size_max(1 << 12)
        .budget_ms(1500);
    }
}
