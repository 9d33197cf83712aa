//! Shape inference: a model and bindings of its dimensions in, what is known of every tensor out.
//!
//! ~~~text
//! declared:  x [batch, 3, 224, 224]   y ?                 Conv's rule: y [batch, 64, 112, 112]
//!            bind batch = 8                               Shape's rule: s = [8, 64, 112, 112]
//! in topological order:  facts of inputs ──rule──> facts of outputs ──merge with declared──> facts
//! ~~~
//! Where rule and file disagree, that is reported and the rule wins. Bodies of control flow are inferred with
//! what is known of the values that they capture and receive. Cost: linear in the operators, bodies of loops
//! a few times; a budget keeps loops in loops from multiplying.

use crate::call::{Call, shape_text};
use crate::expr::Expr;
use crate::fact::{self, Extent, Fact};
use crate::{ResolveConfig, control, declaration};
use lowtide_core::{
    Body, Dim, GraphId, IndexVec, Model, ModelGraph, ModelOp, ModelTensor, OpId, TensorId,
};
use std::collections::BTreeMap;

/// What is known of the tensors of one graph.
pub(crate) type Facts = IndexVec<TensorId, Fact>;

/// What is known of one graph, and what the file says otherwise.
#[derive(Debug)]
pub(crate) struct Inferred {
    pub(crate) facts: Facts,
    pub(crate) contradictions: Vec<String>,
}

/// Infers one graph of a model. What a body captures is known only as far as the file declares it.
pub(crate) fn infer(model: &Model, graph: GraphId, config: &ResolveConfig) -> Inferred {
    let ops = model.graphs.iter().map(|graph| graph.ops.len()).sum::<usize>();
    let budget = 8 * ops + 10_000;
    let mut inference = Inference { model, config, budget, contradictions: Vec::new() };
    let facts = inference.graph(graph, BTreeMap::new());
    Inferred { facts, contradictions: inference.contradictions }
}

/// The state of an inference: what to look up, and what was found wrong.
pub(crate) struct Inference<'a> {
    model: &'a Model,
    config: &'a ResolveConfig,
    /// Operators that may still be looked at.
    budget: usize,
    contradictions: Vec<String>,
}

impl Inference<'_> {
    /// Facts of all tensors of a graph, some of which are given.
    fn graph(&mut self, id: GraphId, given: BTreeMap<TensorId, Fact>) -> Facts {
        let graph = &self.model.graphs[id];
        let mut facts: Facts = graph
            .tensors
            .iter_enumerated()
            .map(|(id, row)| self.declared(graph, id, row))
            .collect();
        for (tensor, fact) in given {
            facts[tensor] = merge(fact, &facts[tensor]).0;
        }
        for op in topological(graph) {
            let Some(left) = self.budget.checked_sub(1) else { break };
            self.budget = left;
            self.op(graph, op, &mut facts);
        }
        facts
    }

    fn op(&mut self, graph: &ModelGraph, id: OpId, facts: &mut Facts) {
        let op = &graph.ops[id];
        let inputs: Vec<Option<&Fact>> =
            op.inputs.iter().map(|input| input.map(|tensor| &facts[tensor])).collect();
        let call = Call { op, opset: self.opset(&op.domain), inputs: &inputs };
        let told = match control::rule(&op.domain, &op.kind) {
            Some(rule) => {
                let captured: Vec<&Fact> = op.captured.iter().map(|&id| &facts[id]).collect();
                rule(self, &call, &captured)
            }
            None => match declaration::find(&op.domain, &op.kind).and_then(|row| row.shape) {
                Some(rule) => rule(&call),
                None => return,
            },
        };
        let told = match told {
            Ok(told) => told,
            Err(misfit) => {
                self.contradiction(op, id, &misfit.0);
                return;
            }
        };
        for (&output, fact) in op.outputs.iter().zip(told) {
            let Some(output) = output else { continue };
            let (merged, conflict) = merge(fact, &facts[output]);
            if let Some(conflict) = conflict {
                let name = &graph.tensors[output].name;
                self.contradiction(op, id, &format!("`{name}` {conflict}"));
            }
            facts[output] = merged;
        }
    }

    fn contradiction(&mut self, op: &ModelOp, id: OpId, text: &str) {
        let name = if op.name.is_empty() { format!("{} ({id})", op.kind) } else { op.name.clone() };
        self.contradictions.push(format!("operator `{name}`: {text}"));
    }

    fn opset(&self, domain: &str) -> i64 {
        let found = self.model.opsets.iter().find(|row| row.0 == domain);
        found.map_or(i64::MAX, |row| row.1)
    }

    /// What the file and the bindings say of a tensor.
    fn declared(&self, graph: &ModelGraph, id: TensorId, row: &ModelTensor) -> Fact {
        let bound = self.config.shapes.get(&row.name).filter(|_| graph.inputs.contains(&id));
        let dims = match (bound, &row.shape) {
            (Some(dims), _) => Some(dims.iter().map(|&dim| known(dim)).collect()),
            (None, Some(shape)) => Some(shape.iter().map(|dim| self.extent(dim)).collect()),
            (None, None) => None,
        };
        let fact = Fact::new(row.dtype, dims);
        let data = row.dtype.zip(graph.data.get(&id)).zip(fact.known_dims());
        let elements = data.and_then(|((dtype, data), dims)| fact::elements_of(dtype, &dims, data));
        fact.with(elements)
    }

    fn extent(&self, dim: &Dim) -> Extent {
        match dim {
            Dim::Known(value) => known(*value),
            Dim::Named(name) => match self.config.dims.get(&**name) {
                Some(&value) => known(value),
                None => Some(Expr::name(name)),
            },
            Dim::Unknown => None,
        }
    }

    /// Infers the body of an operator: what is known of its inputs in, of its outputs out.
    pub(crate) fn body(&mut self, body: &Body, inputs: &[Fact], captured: &[&Fact]) -> Vec<Fact> {
        let graph = &self.model.graphs[body.graph];
        let mut given: BTreeMap<TensorId, Fact> =
            graph.inputs.iter().copied().zip(inputs.iter().cloned()).collect();
        for (&tensor, &position) in graph.captured.iter().zip(&body.captured) {
            if let Some(&fact) = captured.get(position) {
                given.insert(tensor, fact.clone());
            }
        }
        let outputs = graph.outputs.clone();
        let facts = self.graph(body.graph, given);
        outputs.into_iter().map(|output| facts[output].clone()).collect()
    }
}

fn known(value: u64) -> Extent {
    i64::try_from(value).ok().map(Expr::Known)
}

/// What a rule tells, completed by what the file declares; and where they contradict each other.
fn merge(told: Fact, declared: &Fact) -> (Fact, Option<String>) {
    let mut conflict = None;
    let dtype = told.dtype.or(declared.dtype);
    if let (Some(told), Some(declared)) = (told.dtype, declared.dtype)
        && told != declared
    {
        conflict = Some(format!("is {told}, declared {declared}"));
    }
    let dims = match (told.dims, &declared.dims) {
        (Some(told), Some(declared)) => {
            if contradict(&told, declared) {
                let (told, declared) = (shape_text(&told), shape_text(declared));
                conflict = Some(format!("has shape {told}, declared {declared}"));
            }
            Some(complete(told, declared))
        }
        (told, declared) => told.or_else(|| declared.clone()),
    };
    (Fact::new(dtype, dims).with(told.elements), conflict)
}

fn contradict(told: &[Extent], declared: &[Extent]) -> bool {
    let known = |dim: &Extent| dim.as_ref().and_then(Expr::known);
    let differ = |(a, b): (&Extent, &Extent)| known(a).zip(known(b)).is_some_and(|(a, b)| a != b);
    told.len() != declared.len() || told.iter().zip(declared).any(differ)
}

/// Dimensions that the rule leaves open, or in names, are taken from the file where it has a number.
fn complete(told: Vec<Extent>, declared: &[Extent]) -> Vec<Extent> {
    if told.len() != declared.len() {
        return told;
    }
    let better = |(told, declared): (Extent, &Extent)| match (&told, declared) {
        (None, _) | (Some(Expr::Open(_)), Some(Expr::Known(_))) => declared.clone(),
        _ => told,
    };
    told.into_iter().zip(declared).map(better).collect()
}

/// The operators, each after those that write what it reads; those of a cycle are left out. Linear.
fn topological(graph: &ModelGraph) -> Vec<OpId> {
    let mut writers: IndexVec<TensorId, Option<OpId>> = IndexVec::filled(graph.tensors.len(), None);
    for (id, op) in graph.ops.iter_enumerated() {
        for &output in op.outputs.iter().flatten() {
            writers[output] = Some(id);
        }
    }
    // Depth first, with a stack of our own: an operator is done when all that it waits for is done.
    let mut state = IndexVec::filled(graph.ops.len(), Visit::New);
    let mut order = Vec::with_capacity(graph.ops.len());
    let mut stack: Vec<OpId> = graph.ops.ids().rev().collect();
    while let Some(id) = stack.pop() {
        match state[id] {
            Visit::New => {
                state[id] = Visit::Open;
                stack.push(id);
                let op = &graph.ops[id];
                let read = op.inputs.iter().flatten().chain(&op.captured);
                let before = read.filter_map(|&tensor| writers[tensor]);
                stack.extend(before.filter(|&other| state[other] == Visit::New));
            }
            Visit::Open => {
                state[id] = Visit::Done;
                order.push(id);
            }
            Visit::Done => {}
        }
    }
    order
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    Open,
    Done,
}
