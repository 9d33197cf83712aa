//! Small models for tests: one line a tensor, or one an operator with its results.
//!
//! ~~~text
//! input x batch 3          a float32 input
//! weight w i64 3           a weight of another type
//! y 6; m bool 6 = F(x, w)  an operator with two results
//! ~~~

use crate::{ResolveConfig, ResolveError, Resolved, resolve};
use lowtide_core::{
    DType, Dim, Graph, GraphId, IndexVec, Model, ModelGraph, ModelOp, ModelTensor, Sharing, Source,
    TensorId,
};
use std::collections::BTreeMap;

/// A model whose graph has these tensors and operators; without names, the last tensor is the output.
pub(crate) fn model(lines: &[&str], outputs: &str) -> Model {
    let mut graph = ModelGraph::default();
    for line in lines {
        let results = line.split(" = ").next().unwrap();
        results.split(';').for_each(|text| add_tensor(&mut graph, text));
    }
    for line in lines {
        if let Some((results, call)) = line.split_once(" = ") {
            let op = op(&graph, results, call);
            graph.ops.push(op);
        }
    }
    graph.outputs = outputs.split_whitespace().map(|name| id(&graph, name)).collect();
    if outputs.is_empty() {
        graph.outputs.extend(graph.tensors.ids().next_back());
    }
    Model {
        graphs: IndexVec::from(vec![graph]),
        main: GraphId::new(0),
        opsets: Vec::new(),
        ir_version: 8,
        producer: String::new(),
        metadata: Vec::new(),
    }
}

fn add_tensor(graph: &mut ModelGraph, text: &str) {
    let (source, text) = match text.trim().split_once(' ') {
        Some(("input", rest)) => (Source::Input, rest),
        Some(("weight", rest)) => (Source::Initializer, rest),
        _ => (Source::Computed, text.trim()),
    };
    let (name, rest) = text.split_once(' ').unwrap();
    let first = rest.split_whitespace().next().unwrap();
    let types = [
        ("i32", DType::I32),
        ("i64", DType::I64),
        ("bool", DType::Bool),
        ("f32", DType::F32),
        ("u8", DType::U8),
        ("u4", DType::U4),
        ("string", DType::String),
    ];
    let found = types.iter().find(|row| row.0 == first);
    let dims = if found.is_some() { rest.strip_prefix(first).unwrap_or_default() } else { rest };
    graph.tensors.push(ModelTensor {
        name: name.to_owned(),
        dtype: Some(found.map_or(DType::F32, |row| row.1)),
        shape: Some(shape(dims)),
        source,
    });
}

fn op(graph: &ModelGraph, results: &str, call: &str) -> ModelOp {
    let (kind, inputs) = call.trim_end_matches(')').split_once('(').unwrap();
    let first_word = |text: &str| id(graph, text.split_whitespace().next().unwrap());
    ModelOp {
        name: String::new(),
        domain: String::new(),
        kind: kind.to_owned(),
        inputs: inputs.split(", ").map(|name| Some(id(graph, name))).collect(),
        outputs: results.split(';').map(|text| Some(first_word(text))).collect(),
        captured: Vec::new(),
        attributes: Vec::new(),
    }
}

fn id(graph: &ModelGraph, name: &str) -> TensorId {
    graph.tensors.iter_enumerated().find(|row| row.1.name == name).unwrap().0
}

/// Dimensions that are numbers, names, or `?`.
pub(crate) fn shape(text: &str) -> Vec<Dim> {
    let dim = |word: &str| match word.parse() {
        Ok(value) => Dim::Known(value),
        Err(_) if word == "?" => Dim::Unknown,
        Err(_) => Dim::Named(word.into()),
    };
    text.split_whitespace().map(dim).collect()
}

/// A configuration that binds one name.
pub(crate) fn dims(name: &str, value: u64) -> ResolveConfig {
    ResolveConfig { dims: BTreeMap::from([(name.to_owned(), value)]), ..ResolveConfig::default() }
}

/// A configuration that bounds one name.
pub(crate) fn bounds(name: &str, most: u64) -> ResolveConfig {
    ResolveConfig {
        max_dims: BTreeMap::from([(name.to_owned(), most)]),
        ..ResolveConfig::default()
    }
}

/// The graph of such a model.
pub(crate) fn resolve_with(
    lines: &[&str],
    outputs: &str,
    config: &ResolveConfig,
) -> Result<Resolved, ResolveError> {
    resolve(&model(lines, outputs), GraphId::new(0), config)
}

/// All sharing of a graph: `y in x` for a view, `y on x` for a permission to overwrite.
pub(crate) fn shares(graph: &Graph) -> String {
    let name = |id: TensorId| &graph.tensors()[id].name;
    let text = |sharing: &Sharing| match *sharing {
        Sharing::View { output, of, .. } => format!("{} in {}", name(output), name(of)),
        Sharing::MayOverwrite { output, of } => format!("{} on {}", name(output), name(of)),
        ref other => format!("{other:?}"),
    };
    let all = graph.ops().iter().flat_map(|op| &op.sharing).map(text);
    all.collect::<Vec<_>>().join(", ")
}
