//! [`Known`]: a graph with what was inferred of it, from which sizes, costs and kernels follow.
//!
//! ~~~text
//! op 7 ── Known::call ──> Call { attributes, opset, facts of its inputs }  ──operator──> scratch, work, kernel
//! ~~~

use crate::infer::{self, Facts};
use lowtide_core::operator::{Call, Fact};
use lowtide_core::{Model, ModelGraph, ModelOp, Operator, Registry, TensorId};

/// A graph with what was inferred of its tensors, and what its operators mean.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) model: &'a Model,
    pub(crate) source: &'a ModelGraph,
    pub(crate) facts: &'a Facts,
    pub(crate) registry: &'a Registry,
}

impl<'a> Known<'a> {
    /// What an operator means, if its type is known.
    pub(crate) fn operator(self, op: &ModelOp) -> Option<&'a dyn Operator> {
        self.registry.find(&op.domain, &op.kind)
    }

    /// What is known of each tensor, by position; `None` for one that is absent.
    pub(crate) fn facts(self, tensors: &[Option<TensorId>]) -> Vec<Option<&'a Fact>> {
        tensors.iter().map(|tensor| tensor.map(|id| &self.facts[id])).collect()
    }

    /// An operator with what is known of its inputs.
    pub(crate) fn call<'c>(self, op: &'c ModelOp, inputs: &'c [Option<&'c Fact>]) -> Call<'c> {
        Call { op, opset: infer::opset(self.model, &op.domain), inputs }
    }
}
