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

use crate::call::{Call, Misfit, shape_text};
use crate::expr::Expr;
use crate::fact::{self, Extent, Fact};
use crate::{ResolveConfig, control, dim_names, dim_text};
use lowtide_core::{
    Body, Dim, GraphId, IndexVec, Model, ModelGraph, ModelOp, ModelTensor, OpId, Registry, Source,
    TensorId,
};
use std::collections::{BTreeMap, BTreeSet};

/// Shape arithmetic has a handful of elements an operator; a model may spend that as it likes.
const ELEMENTS_PER_OP: usize = 16;
const SPARE_ELEMENTS: usize = 1 << 18;

/// What is known of the tensors of one graph.
pub(crate) type Facts = IndexVec<TensorId, Fact>;

/// What is known of one graph, and what the file says otherwise.
#[derive(Debug)]
pub(crate) struct Inferred {
    pub(crate) facts: Facts,
    /// At most one an operator, bodies included.
    pub(crate) contradictions: Contradictions,
}

/// What is wrong with operators, each by its graph and id.
pub(crate) type Contradictions = BTreeMap<(GraphId, OpId), String>;

/// Infers one graph of a model. What a body captures is known only as far as the file declares it.
pub(crate) fn infer(
    model: &Model,
    graph: GraphId,
    config: &ResolveConfig,
    registry: &Registry,
) -> Inferred {
    let ops = model.graphs.iter().map(|graph| graph.ops.len()).sum::<usize>();
    let budget = 8 * ops + 10_000;
    let mut inference = Inference {
        model,
        root: graph,
        config,
        registry,
        names: names(model, config),
        budget,
        elements: ELEMENTS_PER_OP * ops + SPARE_ELEMENTS,
        contradictions: Contradictions::new(),
    };
    let facts = inference.graph(graph, BTreeMap::new());
    Inferred { facts, contradictions: inference.contradictions }
}

/// Names that stand for a dimension of their own, in the model or in the bindings.
fn names<'a>(model: &'a Model, config: &'a ResolveConfig) -> BTreeSet<&'a str> {
    let bound = config.dims.keys().chain(config.max_dims.keys()).map(String::as_str);
    dim_names(model).into_iter().chain(bound).collect()
}

/// The state of an inference: what to look up, and what was found wrong.
pub(crate) struct Inference<'a> {
    model: &'a Model,
    /// The graph that is resolved; shapes of inputs are bound only there.
    root: GraphId,
    config: &'a ResolveConfig,
    registry: &'a Registry,
    names: BTreeSet<&'a str>,
    /// Operators that may still be looked at.
    budget: usize,
    /// Elements that may still be remembered, so that memory stays in proportion to the model.
    elements: usize,
    contradictions: Contradictions,
}

impl Inference<'_> {
    /// Facts of all tensors of a graph, some of which are given.
    fn graph(&mut self, id: GraphId, given: BTreeMap<TensorId, Fact>) -> Facts {
        let graph = &self.model.graphs[id];
        let mut facts: Facts = graph
            .tensors
            .iter_enumerated()
            .map(|(tensor, row)| self.declared(id, tensor, row))
            .collect();
        for (tensor, fact) in given {
            facts[tensor] = merge(fact, &facts[tensor]).0;
        }
        for op in topological(graph) {
            let Some(left) = self.budget.checked_sub(1) else { break };
            self.budget = left;
            self.op(id, op, &mut facts);
        }
        facts
    }

    fn op(&mut self, within: GraphId, id: OpId, facts: &mut Facts) {
        let graph = &self.model.graphs[within];
        let op = &graph.ops[id];
        let inputs: Vec<Option<&Fact>> =
            op.inputs.iter().map(|input| input.map(|tensor| &facts[tensor])).collect();
        let call = Call { op, opset: opset(self.model, &op.domain), inputs: &inputs };
        let told = if let Some(rule) = control::rule(&op.domain, &op.kind) {
            let captured: Vec<&Fact> = op.captured.iter().map(|&id| &facts[id]).collect();
            rule(self, &call, &captured)
        } else {
            let operator = self.registry.find(&op.domain, &op.kind);
            let Some(told) = operator.and_then(|operator| operator.shapes(&call)) else { return };
            told
        };
        let told = match told.and_then(never_negative) {
            Ok(told) => told,
            Err(misfit) => {
                self.contradiction((within, id), op, &misfit.0);
                return;
            }
        };
        let mut conflicts = Vec::new();
        for (&output, fact) in op.outputs.iter().zip(told) {
            let Some(output) = output else { continue };
            let (merged, conflict) = merge(fact, &facts[output]);
            let name = &graph.tensors[output].name;
            conflicts.extend(conflict.map(|conflict| format!("`{name}` {conflict}")));
            facts[output] = self.within_budget(merged);
        }
        if !conflicts.is_empty() {
            self.contradiction((within, id), op, &conflicts.join("; "));
        }
    }

    /// The fact, without its elements once too many are remembered.
    fn within_budget(&mut self, fact: Fact) -> Fact {
        let count = fact.elements.as_ref().map_or(0, Vec::len);
        if let Some(left) = self.elements.checked_sub(count) {
            self.elements = left;
            return fact;
        }
        Fact { elements: None, ..fact }
    }

    /// A body is inferred several times; what was found first stays.
    fn contradiction(&mut self, at: (GraphId, OpId), op: &ModelOp, text: &str) {
        let (_, id) = at;
        let name = if op.name.is_empty() { format!("{} ({id})", op.kind) } else { op.name.clone() };
        let line = format!("operator `{name}`: {text}");
        self.contradictions.entry(at).or_insert(line);
    }

    /// What the file and the bindings say of a tensor.
    fn declared(&self, within: GraphId, id: TensorId, row: &ModelTensor) -> Fact {
        let graph = &self.model.graphs[within];
        let is_input = row.source == Source::Input && within == self.root;
        let bound = self.config.shapes.get(&row.name).filter(|_| is_input);
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
            Dim::Named(name) => match self.bound(name) {
                Some(value) => Some(value),
                None => Some(self.expression(name).unwrap_or_else(|| Expr::name(name))),
            },
            Dim::Unknown => None,
        }
    }

    fn bound(&self, name: &str) -> Option<Expr> {
        self.config.dims.get(name).and_then(|&value| known(value))
    }

    /// A name that is an expression in others, each of which stands for a dimension or is bound. One that is
    /// bounded as a whole stays whole.
    fn expression(&self, text: &str) -> Option<Expr> {
        if self.config.max_dims.contains_key(text) {
            return None;
        }
        let value = |name: &str| {
            let is_name = self.names.contains(name);
            self.bound(name).or_else(|| is_name.then(|| Expr::name(name)))
        };
        let is_natural = |expr: &Expr| expr.known().is_none_or(|value| value >= 0);
        dim_text::parse(text, &value).filter(is_natural)
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

/// The version of an operator set in a model; the newest one if the model does not say.
pub(crate) fn opset(model: &Model, domain: &str) -> i64 {
    model.opsets.iter().find(|row| row.0 == domain).map_or(i64::MAX, |row| row.1)
}

/// What a rule tells, unless a dimension is below 0.
fn never_negative(told: Vec<Fact>) -> Result<Vec<Fact>, Misfit> {
    let is_negative = |dim: &Extent| dim.as_ref().and_then(Expr::known).is_some_and(|dim| dim < 0);
    match told.iter().flat_map(|fact| &fact.dims).find(|dims| dims.iter().any(is_negative)) {
        Some(dims) => Err(Misfit(format!("shape {} has a dimension below 0", shape_text(dims)))),
        None => Ok(told),
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

#[cfg(test)]
mod tests {
    use crate::testing::{infers, misfits};

    #[test]
    fn an_operator_is_wrong_once() {
        let declared =
            ["input x 2 4", "weight s i64 2 = 1 3", "a 2 2; b 2 2 = Split(x, s) {axis=1}"];
        misfits(
            &declared,
            "`a` has shape [2, 1], declared [2, 2]; `b` has shape [2, 3], declared [2, 2]",
        );
    }

    #[test]
    fn the_file_completes_what_rules_leave_open() {
        infers(&["input x n", "y i64 1 7 = NonZero(x)"], "i64 [1, 7]");
    }
}
