//! [`Program`]: a graph with all that is needed to run it, but for a plan.
//!
//! ~~~text
//! Model + Graph ──prepare──> Program { kernels, late, shapes, weights }      + CheckedPlan ──> a session that runs
//! ~~~

use super::{Kernel, LateCall};
use crate::{Data, Graph, IndexVec, OpId, TensorId};
use std::collections::BTreeMap;
use std::fmt;

/// A graph, a kernel for each operator that calculates or what makes one in the run, and the values of its weights.
#[derive(Debug)]
pub struct Program {
    /// The graph.
    pub graph: Graph,
    /// What runs each operator; `None` for one whose outputs are views, which has nothing to do, and for a late one.
    pub calls: IndexVec<OpId, Option<Prepared>>,
    /// Operators of which some operand has no size before the run.
    pub late: BTreeMap<OpId, LateCall>,
    /// The shape of each tensor that a kernel reads or writes, or that the caller sees; empty where it is not fixed.
    pub shapes: IndexVec<TensorId, Box<[usize]>>,
    /// The elements of each weight that the file holds, row after row, least significant byte first.
    pub weights: IndexVec<TensorId, Option<Data>>,
    /// What the caller gives, in order.
    pub inputs: Vec<TensorId>,
    /// What the caller gets, in order.
    pub outputs: Vec<TensorId>,
}

/// An operator ready to run.
pub struct Prepared {
    /// What runs it.
    pub kernel: Box<dyn Kernel>,
    /// What it reads, by position; `None` for an optional input that is absent.
    pub inputs: Vec<Option<TensorId>>,
    /// What it writes, by position; `None` for an output that nobody wants. Those that are views are not given to it.
    pub outputs: Vec<Option<TensorId>>,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inputs, outputs, .. } = self;
        f.debug_struct("Prepared").field("inputs", inputs).field("outputs", outputs).finish()
    }
}
