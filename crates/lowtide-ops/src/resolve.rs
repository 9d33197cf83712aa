//! [`resolve`]: one graph of a model in, a [`Graph`] out: sizes for shapes, sharing for operator types.
//!
//! ~~~text
//! ModelGraph ── infer ──> facts ── sizes ──> tensors ── sharing ──> operators ── GraphBuilder ──> Graph
//!              bindings                              tables
//! ~~~
//! Ids stay: operator and tensor i of the graph are those of the model. What a body captures is an input of
//! its graph. Cost: linear in the graph.

use crate::fact::Fact;
use crate::infer::{Facts, Inferred, infer};
use crate::known::Known;
use crate::sharing::{self, Shares};
use crate::{Cost, ResolveConfig, ResolveError, cost, scratch, sizes};
use lowtide_core::{
    DType, Dim, Graph, GraphBuilder, GraphId, IndexVec, Model, ModelGraph, ModelOp, ModelTensor,
    Op, OpId, Registry, Sharing, Size, Source, Tensor, TensorId, TensorKind,
};
use std::collections::BTreeMap;

/// A graph, and what was found on the way to it.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The graph; its ids are those of the model's graph.
    pub graph: Graph,
    /// Tensors of unknown size, inputs and weights included.
    pub unknown_tensors: Vec<TensorId>,
    /// Operator types without declaration (`domain::type` outside the standard domain), and how many
    /// operators are of each. They share nothing.
    pub unknown_ops: BTreeMap<String, usize>,
    /// Where the file declares something else than its operators compute; what they compute is kept. Also views
    /// of another size than their base, which are copies here. At most one line an operator.
    pub contradictions: Vec<String>,
    /// What each operator costs, where that is known.
    pub costs: IndexVec<OpId, Option<Cost>>,
    /// What was inferred, from which kernels are made.
    pub facts: IndexVec<TensorId, Fact>,
}

/// Resolves one graph of a model.
///
/// # Panics
/// If the model has no such graph, or its tensors and operators name ids that it does not have.
pub fn resolve(
    model: &Model,
    graph: GraphId,
    config: &ResolveConfig,
    registry: &Registry,
) -> Result<Resolved, ResolveError> {
    config.check()?;
    let source = &model.graphs[graph];
    let config = &config.with_names_of_shapes(source)?;
    check_declared(source, config)?;
    let Inferred { facts, mut contradictions } = infer(model, graph, config, registry);
    let tensors = tensors(source, &facts, config)?;
    let known = Known { model, source, facts: &facts, registry };
    let Shares { of_op, contradictions: of_views } = sharing::shares(known, &tensors);
    for (op, line) in of_views {
        contradictions.entry((graph, op)).or_insert(line);
    }
    let costs = cost::costs(known, &tensors, &of_op);
    let is_unknown = |id: &TensorId| tensors[*id].size == Size::Unknown;
    let unknown_tensors = tensors.ids().filter(is_unknown).collect();
    let mut builder = GraphBuilder::new(source.name.as_str());
    for tensor in &tensors {
        builder.tensor(tensor.clone());
    }
    for (op, shares) in source.ops.iter().zip(&of_op) {
        let scratch = scratch::size(known, op, config)?;
        builder.op(resolved_op(op, shares).scratch(scratch));
    }
    Ok(Resolved {
        graph: builder.finish()?,
        unknown_tensors,
        unknown_ops: unknown_ops(source, registry),
        facts,
        contradictions: contradictions.into_values().collect(),
        costs,
    })
}

/// Declared dimensions and bindings are numbers that sizes can be calculated with.
fn check_declared(source: &ModelGraph, config: &ResolveConfig) -> Result<(), ResolveError> {
    let bound = |dim: &Dim| match dim {
        Dim::Named(name) => {
            let value = config.dims.get(&**name).or_else(|| config.max_dims.get(&**name));
            value.map_or_else(|| dim.clone(), |&value| Dim::Known(value))
        }
        _ => dim.clone(),
    };
    let is_huge = |dim: &Dim| matches!(dim, Dim::Known(value) if i64::try_from(*value).is_err());
    for row in &source.tensors {
        let shape: Vec<Dim> = match config.shapes.get(&row.name) {
            Some(dims) => dims.iter().map(|&dim| Dim::Known(dim)).collect(),
            None => row.shape.iter().flatten().map(bound).collect(),
        };
        if shape.iter().any(is_huge) {
            let dtype = row.dtype.unwrap_or(DType::U8);
            return Err(sizes::too_large(&row.name, dtype, &shape));
        }
    }
    Ok(())
}

fn tensors(
    source: &ModelGraph,
    facts: &Facts,
    config: &ResolveConfig,
) -> Result<IndexVec<TensorId, Tensor>, ResolveError> {
    let rows = source.tensors.iter().zip(facts);
    let tensors = rows.map(|(row, fact)| tensor(row, fact, config));
    let mut tensors: IndexVec<TensorId, Tensor> = tensors.collect::<Result<_, _>>()?;
    source.outputs.iter().for_each(|&output| tensors[output].is_output = true);
    Ok(tensors)
}

fn tensor(row: &ModelTensor, fact: &Fact, config: &ResolveConfig) -> Result<Tensor, ResolveError> {
    let size = sizes::size(&row.name, fact, config)?;
    let kind = match row.source {
        Source::Input | Source::Captured => TensorKind::Input,
        Source::Initializer | Source::Constant | Source::WeightInput => TensorKind::Weight,
        Source::Computed => TensorKind::Computed,
    };
    let shape = sizes::shape(fact);
    Ok(Tensor { dtype: fact.dtype, shape, ..Tensor::new(row.name.as_str(), size, kind) })
}

fn resolved_op(op: &ModelOp, shares: &[Sharing]) -> Op {
    let inputs: Vec<TensorId> = op.inputs.iter().flatten().chain(&op.captured).copied().collect();
    let outputs: Vec<TensorId> = op.outputs.iter().flatten().copied().collect();
    let plain = Op::new(op.name.as_str(), type_name(op), inputs, outputs);
    shares.iter().fold(plain, |op, &sharing| op.sharing(sharing))
}

/// The type with its domain, unless that is the standard one.
pub(crate) fn type_name(op: &ModelOp) -> String {
    if op.domain.is_empty() { op.kind.clone() } else { format!("{}::{}", op.domain, op.kind) }
}

fn unknown_ops(source: &ModelGraph, registry: &Registry) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for op in source.ops.iter().filter(|op| registry.find(&op.domain, &op.kind).is_none()) {
        *counts.entry(type_name(op)).or_insert(0) += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bounds, dims, model, resolve_with};
    use lowtide_core::{Bytes, Dim};

    const CHAIN: [&str; 4] =
        ["input x batch 3", "weight w 3", "y batch 3 = Add(x, w)", "z ? = Mystery(y)"];

    #[test]
    fn ids_stay_and_kinds_follow_sources() {
        let resolved = resolve_with(&CHAIN, "z", &ResolveConfig::default()).unwrap();
        let tensors = resolved.graph.tensors();
        let names: Vec<&str> = tensors.iter().map(|tensor| &*tensor.name).collect();
        assert_eq!(names, ["x", "w", "y", "z"]);
        let kinds: Vec<_> = tensors.iter().map(|tensor| tensor.kind).collect();
        let computed = TensorKind::Computed;
        assert_eq!(kinds, [TensorKind::Input, TensorKind::Weight, computed, computed]);
        let outputs: Vec<_> = tensors.iter().map(|tensor| tensor.is_output).collect();
        assert_eq!(outputs, [false, false, false, true]);
    }

    #[test]
    fn bindings_decide_what_is_unknown() {
        let unknown = |config| {
            let resolved = resolve_with(&CHAIN, "z", &config).unwrap();
            resolved.unknown_tensors.iter().map(|id| id.raw()).collect::<Vec<_>>()
        };
        assert_eq!(unknown(ResolveConfig::default()), [0, 2, 3]);
        assert_eq!(unknown(dims("batch", 2)), [3]);
        assert_eq!(unknown(bounds("batch", 2)), [3]);
    }

    #[test]
    fn bound_names_become_numbers_in_the_shape() {
        let shape = |config| {
            let resolved = resolve_with(&CHAIN, "z", &config).unwrap();
            resolved.graph.tensors()[TensorId::new(0)].shape.clone().unwrap()
        };
        assert_eq!(shape(dims("batch", 2))[0], Dim::Known(2));
        assert_eq!(shape(bounds("batch", 2))[0], Dim::Named("batch".into()));
    }

    #[test]
    fn unknown_types_are_counted() {
        let resolved = resolve_with(&CHAIN, "z", &ResolveConfig::default()).unwrap();
        assert_eq!(resolved.unknown_ops, BTreeMap::from([("Mystery".to_owned(), 1)]));
    }

    #[test]
    fn a_type_of_another_domain_carries_it() {
        let mut model = model(&["input x 3", "y 3 = Relu(x)"], "y");
        model.graphs[GraphId::new(0)].ops[OpId::new(0)].domain = "com.example".to_owned();
        let resolved =
            resolve(&model, GraphId::new(0), &ResolveConfig::default(), &crate::standard())
                .unwrap();
        assert_eq!(&*resolved.graph.ops()[OpId::new(0)].kind, "com.example::Relu");
        assert_eq!(resolved.unknown_ops["com.example::Relu"], 1);
    }

    #[test]
    fn captured_values_are_inputs() {
        let mut model = model(&["input x 3", "input c 3", "y 3 = If(x)"], "y");
        let graph = &mut model.graphs[GraphId::new(0)];
        graph.tensors[TensorId::new(1)].source = Source::Captured;
        graph.ops[OpId::new(0)].captured = vec![TensorId::new(1)];
        let resolved =
            resolve(&model, GraphId::new(0), &ResolveConfig::default(), &crate::standard())
                .unwrap();
        assert_eq!(resolved.graph.ops()[OpId::new(0)].inputs.len(), 2);
        assert_eq!(resolved.graph.tensors()[TensorId::new(1)].kind, TensorKind::Input);
    }

    #[track_caller]
    fn fails(lines: &[&str], config: &ResolveConfig, message: &str) {
        let error = resolve_with(lines, "y", config).unwrap_err();
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn errors_of_the_graph_come_through() {
        let message = "operators wait for each other in a cycle: `Relu (op0)` -> `Relu (op1)` -> `Relu (op0)`";
        fails(&["x 3 = Relu(y)", "y 3 = Relu(x)"], &ResolveConfig::default(), message);
    }

    #[test]
    fn a_binding_that_makes_a_tensor_too_large_is_an_error() {
        let message =
            "tensor `x`, float32 [18446744073709551615, 3], takes more than 4.00 EiB, the limit";
        fails(&["input x batch 3", "y 3 = Relu(x)"], &dims("batch", u64::MAX), message);
        assert_eq!(Bytes::MAX_TOTAL.to_string(), "4.00 EiB");
    }
}
