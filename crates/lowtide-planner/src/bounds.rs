//! Lower bounds: the largest working set of one operator (for every order) and the live sum (for one).
//!
//! ~~~text
//! order bound:      max over operators of  inputs + outputs + scratch - what may be overwritten,
//!                   and the sum of the graph's outputs
//! placement bound:  max over steps of the sum of what is live
//! ~~~
//! Each comes with a certificate: the operator, or the step. Cost: near-linear.

use crate::PlanConfig;
use lowtide_core::{Bound, Bytes, Graph, OpId, Problem, Proof, Rect, Sharing, Step, TensorId};

/// A bound for every order of the operators.
pub fn order_bound(graph: &Graph, config: &PlanConfig) -> Bound {
    let sizes = Sizes { graph, config };
    let mut best = Bound { bytes: sizes.outputs(), proof: Proof::Outputs };
    for op in graph.ops().ids() {
        let bytes = sizes.working_set(op);
        if bytes > best.bytes {
            best = Bound { bytes, proof: Proof::WorkingSet(op) };
        }
    }
    if best.bytes == Bytes::ZERO { Bound::NONE } else { best }
}

struct Sizes<'a> {
    graph: &'a Graph,
    config: &'a PlanConfig,
}

impl Sizes<'_> {
    /// Bytes that a storage takes at least; zero if the plan does not place it.
    fn storage(&self, storage: TensorId) -> Bytes {
        let tensor = &self.graph.tensors()[storage];
        match (self.config.places(self.graph, storage), self.graph.is_part(storage)) {
            (false, _) => Bytes::ZERO,
            // Side by side in a whole, parts are not padded.
            (true, true) => tensor.size.bound().unwrap_or_default(),
            (true, false) => self.padded(tensor.size.bound()),
        }
    }

    fn padded(&self, bytes: Option<Bytes>) -> Bytes {
        bytes
            .unwrap_or_default()
            .align_up(self.config.align)
            .expect("a graph's sizes fit with padding")
    }

    fn sum(&self, tensors: impl Iterator<Item = TensorId>) -> Bytes {
        let storages = tensors.map(|tensor| self.graph.storage(tensor)).collect();
        self.graph.least_bytes(storages, |storage| self.storage(storage))
    }

    fn outputs(&self) -> Bytes {
        if self.graph.ops().is_empty() {
            return Bytes::ZERO;
        }
        let tensors = self.graph.tensors().iter_enumerated();
        self.sum(tensors.filter(|(_, tensor)| tensor.is_output).map(|(id, _)| id))
    }

    fn working_set(&self, op: OpId) -> Bytes {
        let row = &self.graph.ops()[op];
        let all = self.sum(row.inputs.iter().chain(&row.outputs).copied());
        // Parts and pieces may lie inside others: the sum counts them once.
        let mut overwriting: Vec<TensorId> = row
            .sharing
            .iter()
            .filter_map(|sharing| match *sharing {
                Sharing::MayOverwrite { output, .. } => Some(output),
                _ => None,
            })
            .collect();
        overwriting.sort_unstable();
        overwriting.dedup();
        let saved = overwriting.into_iter().map(|output| self.storage(output)).sum();
        (all + self.padded(row.scratch.bound())).saturating_sub(saved)
    }
}

/// What is live at each step of a placement problem.
pub fn live_sums(problem: &Problem) -> Vec<Bytes> {
    let mut changes = vec![(0_u64, 0_u64); problem.steps() + 1];
    for rect in problem.items().iter().flat_map(lowtide_core::Item::rects) {
        let Rect { bytes, span, .. } = *rect;
        if !span.is_empty() {
            changes[span.start.index()].0 += bytes.0;
            changes[span.end.index()].1 += bytes.0;
        }
    }
    let mut live = 0;
    let sums = changes.iter().map(|&(born, died)| {
        live = live + born - died;
        Bytes(live)
    });
    sums.take(problem.steps()).collect()
}

/// The most that is live, at the first step at which that much is: a bound for every placement.
pub fn live_bound(live: &[Bytes]) -> Bound {
    let Some(&peak) = live.iter().max() else { return Bound::NONE };
    let at = live.iter().position(|&bytes| bytes == peak).expect("the maximum is one of them");
    Bound { bytes: peak, proof: Proof::LiveSum(Step::from_index(at)) }
}
