//! [`Order`]: a schedule in which each operator runs once, proven topological. [`Readiness`]: which
//! operators may run next.
//!
//! An operator may run once all it reads has been written and, if it changes bytes in place, once all other
//! readers of the old bytes have run.
//!
//! ~~~text
//! x ─ a ─ y ┬ b ─ z        ready: a | b c | c | m
//!           ├ c ─ w        m changes y in place, so it waits for b and c, the other readers of y
//!           └ m ~ y'
//! ~~~

use crate::index::Id;
use crate::{Graph, IndexVec, OpId, RunId, Step, TensorId};

/// Which operator runs at which step.
pub type Schedule = IndexVec<RunId, OpId>;

impl RunId {
    /// When this run takes place.
    pub const fn step(self) -> Step {
        Step(self.raw())
    }
}

/// A schedule in which every operator of a graph runs once, after all that it depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    schedule: Schedule,
    steps: IndexVec<OpId, Step>,
}

/// Why a list of operators is not an order of a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// An operator is missing, or there is one too many.
    #[error("the order has {found} operators, the graph has {wanted}")]
    Length {
        /// Entries of the order.
        found: usize,
        /// Operators of the graph.
        wanted: usize,
    },
    /// An id beyond the table.
    #[error("position {position} of the order names operator {op}, which the graph does not have")]
    NoSuchOp {
        /// Where in the order.
        position: usize,
        /// The id found there.
        op: OpId,
    },
    /// An operator runs twice, before something that it reads is written, or before another reader of
    /// bytes that it changes.
    #[error(
        "operator `{op}` cannot run at position {position}: it has run, or what it waits for has not"
    )]
    NotReady {
        /// Where in the order.
        position: usize,
        /// The operator's label.
        op: String,
    },
}

impl Order {
    /// Proves that `ops` is an order of `graph`. Cost: linear.
    pub fn new(graph: &Graph, ops: Vec<OpId>) -> Result<Self, OrderError> {
        let wanted = graph.ops().len();
        if ops.len() != wanted {
            return Err(OrderError::Length { found: ops.len(), wanted });
        }
        let mut readiness = Readiness::new(graph);
        for (position, &op) in ops.iter().enumerate() {
            if op.index() >= wanted {
                return Err(OrderError::NoSuchOp { position, op });
            }
            if !readiness.is_ready(op) {
                return Err(OrderError::NotReady { position, op: graph.op_label(op) });
            }
            readiness.run(op, |_| {});
        }
        Ok(Self::proven(ops))
    }

    /// An order that its maker has proven.
    pub(crate) fn proven(ops: Vec<OpId>) -> Self {
        let mut steps = IndexVec::filled(ops.len(), Step::ZERO);
        for (index, &op) in ops.iter().enumerate() {
            steps[op] = Step::from_index(index);
        }
        Self { schedule: Schedule::from(ops), steps }
    }

    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// When an operator runs.
    pub fn step(&self, op: OpId) -> Step {
        self.steps[op]
    }

    /// Number of steps.
    pub fn len(&self) -> usize {
        self.schedule.len()
    }

    /// Whether there is no operator.
    pub fn is_empty(&self) -> bool {
        self.schedule.is_empty()
    }
}

/// The set of operators that have run, and those that may run next. A whole run costs O(graph).
#[derive(Clone, Debug)]
pub struct Readiness<'g> {
    graph: &'g Graph,
    /// For each operator, what it still waits for; `None` once it has run.
    missing: IndexVec<OpId, Option<u32>>,
    /// For each tensor, its readers that have not run.
    unread: IndexVec<TensorId, u32>,
}

fn count(len: usize) -> u32 {
    u32::try_from(len).expect("a graph has at most u32::MAX edges")
}

impl<'g> Readiness<'g> {
    /// Nothing has run.
    pub fn new(graph: &'g Graph) -> Self {
        let tensors = graph.tensors().ids();
        let mut readiness = Self {
            graph,
            missing: graph.ops().ids().map(|_| Some(0)).collect(),
            unread: tensors.map(|tensor| count(graph.readers(tensor).len())).collect(),
        };
        for op in graph.ops().ids() {
            readiness.missing[op] = Some(readiness.count_missing(op));
        }
        readiness
    }

    fn count_missing(&self, op: OpId) -> u32 {
        let data = self.graph.reads(op).iter().filter(|&&t| self.graph.writer(t).is_some());
        let waits = self.graph.overwritten_by(op).iter();
        count(data.count() + waits.filter(|&&tensor| !self.is_read_for(tensor, op)).count())
    }

    /// Whether all readers of `tensor` but `op` have run.
    fn is_read_for(&self, tensor: TensorId, op: OpId) -> bool {
        let own = u32::from(self.graph.readers(tensor).binary_search(&op).is_ok());
        self.unread[tensor] == own
    }

    /// Operators that may run now, ascending. Cost: linear; meant for the start.
    pub fn ready(&self) -> impl Iterator<Item = OpId> + '_ {
        self.graph.ops().ids().filter(|&op| self.is_ready(op))
    }

    /// Whether `op` has not run and may run now.
    pub fn is_ready(&self, op: OpId) -> bool {
        self.missing[op] == Some(0)
    }

    /// Whether `op` has run.
    pub fn has_run(&self, op: OpId) -> bool {
        self.missing[op].is_none()
    }

    /// Readers of a tensor that have not run.
    pub fn unread(&self, tensor: TensorId) -> u32 {
        self.unread[tensor]
    }

    /// Runs `op`; `ready` is told of each operator that may run from now on.
    ///
    /// # Panics
    /// If `op` is not ready.
    pub fn run(&mut self, op: OpId, mut ready: impl FnMut(OpId)) {
        assert!(self.is_ready(op), "only a ready operator runs");
        self.missing[op] = None;
        let graph = self.graph;
        for &output in &graph.ops()[op].outputs {
            for &reader in graph.readers(output) {
                self.settle(reader, &mut ready);
            }
        }
        for &tensor in graph.reads(op) {
            self.unread[tensor] -= 1;
            if self.unread[tensor] > 1 {
                continue;
            }
            // At most one reader is left: mutations that wait for all others, or for all, may go on.
            for &mutation in graph.overwriters(tensor) {
                if mutation != op && !self.has_run(mutation) && self.is_read_for(tensor, mutation) {
                    self.settle(mutation, &mut ready);
                }
            }
        }
    }

    fn settle(&mut self, op: OpId, ready: &mut impl FnMut(OpId)) {
        if let Some(missing) = &mut self.missing[op] {
            *missing -= 1;
            if *missing == 0 {
                ready(op);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, GraphBuilder, Op, Sharing, Size};

    const SIZE: Size = Size::Fixed(Bytes(64));

    /// The drawing above.
    fn mutated_after_two_readers() -> Graph {
        let mut b = GraphBuilder::new("mutation");
        let x = b.input("x", SIZE);
        let [y, z, w, changed] = ["y", "z", "w", "y'"].map(|name| b.computed(name, SIZE));
        b.op(Op::new("a", "A", [x], [y]));
        b.op(Op::new("b", "B", [y], [z]));
        b.op(Op::new("m", "M", [y], [changed]).sharing(Sharing::Mutates { output: changed, of: y }));
        b.op(Op::new("c", "C", [y], [w]));
        b.finish().unwrap()
    }

    fn order(graph: &Graph, ops: &[u32]) -> Result<Order, OrderError> {
        Order::new(graph, ops.iter().map(|&op| OpId::new(op)).collect())
    }

    #[test]
    fn a_mutation_waits_for_the_readers_of_the_old_value() {
        let graph = mutated_after_two_readers();
        assert!(order(&graph, &[0, 1, 3, 2]).is_ok());
        let early = order(&graph, &[0, 1, 2, 3]).unwrap_err();
        assert_eq!(early, OrderError::NotReady { position: 2, op: "m".into() });
    }

    /// `a`, a view `v` of it, a view `w` of `v` that `m` changes, and a view `u` of the upper half of `a`.
    fn changed_below_a_view(v_size: Size, v_offset: Option<u64>, w_offset: u64) -> Graph {
        let half = Size::Fixed(Bytes(32));
        let mut b = GraphBuilder::new("views");
        let x = b.input("x", SIZE);
        let a = b.computed("a", SIZE);
        let v = b.computed("v", v_size);
        let [w, u, changed, y] = ["w", "u", "w'", "y"].map(|name| b.computed(name, half));
        let view = |output, of, offset: Option<u64>| Sharing::View {
            output,
            of,
            offset: offset.map(Bytes),
        };
        b.op(Op::new("a", "A", [x], [a]));
        b.op(Op::new("v", "V", [a], [v]).sharing(view(v, a, v_offset)));
        b.op(Op::new("w", "V", [v], [w]).sharing(view(w, v, Some(w_offset))));
        b.op(Op::new("u", "V", [a], [u]).sharing(view(u, a, Some(32))));
        b.op(Op::new("m", "M", [w], [changed]).sharing(Sharing::Mutates { output: changed, of: w }));
        b.op(Op::new("reader", "R", [u], [y]));
        b.finish().unwrap()
    }

    #[test]
    fn offsets_add_up_through_views_of_unknown_size_and_mean_nothing_below_another_order() {
        let late_reader = |graph: &Graph| order(graph, &[0, 1, 2, 3, 4, 5]).is_ok();
        // `w` is the lower half of `a`: the reader of the upper half may come late.
        assert!(late_reader(&changed_below_a_view(Size::Unknown, Some(0), 0)));
        // `v` begins in the middle, so `w` is the upper half.
        assert!(!late_reader(&changed_below_a_view(Size::Unknown, Some(32), 0)));
        // `v` is in another order, so `w` may be anywhere.
        assert!(!late_reader(&changed_below_a_view(SIZE, None, 0)));
        // An expanded view has more bytes than its base, and so has room for an offset.
        assert!(!late_reader(&changed_below_a_view(Size::Fixed(Bytes(256)), None, 128)));
    }

    #[test]
    fn the_order_of_the_file_is_mended_as_little_as_possible() {
        let graph = mutated_after_two_readers();
        let ops: Vec<u32> = graph.file_order().schedule().iter().map(|op| op.raw()).collect();
        assert_eq!(ops, [0, 1, 3, 2]);
    }

    #[test]
    fn lists_that_are_no_order_are_refused() {
        let graph = mutated_after_two_readers();
        assert!(matches!(order(&graph, &[0, 1, 3]), Err(OrderError::Length { .. })));
        assert!(matches!(order(&graph, &[0, 1, 3, 9]), Err(OrderError::NoSuchOp { .. })));
        assert!(matches!(order(&graph, &[0, 1, 1, 3]), Err(OrderError::NotReady { .. })));
        assert!(matches!(order(&graph, &[1, 0, 3, 2]), Err(OrderError::NotReady { .. })));
    }
}
