//! Small models for tests: one line a tensor, or one an operator with its results.
//!
//! ~~~text
//! input x batch 3          a float32 input
//! weight w i64 3           a weight of another type
//! weight s i64 2 = 3 -1    a weight whose elements are known
//! y 6; m bool 6 = F(x, w)  an operator with two results; `_` for one that nobody wants
//! y = F(x, _) {a=[1, 2]}   one that declares nothing, with an absent input and an attribute
//! y = F(x) {v=tensor i64 3}   an attribute that is a tensor of one element
//! opset 11                 of all domains
//! ~~~

use crate::{ResolveConfig, ResolveError, Resolved, resolve};
use lowtide_core::{
    Attribute, DType, Dim, Graph, GraphId, IndexVec, Model, ModelGraph, ModelOp, ModelTensor,
    Sharing, Source, TensorId, TensorValue, Value,
};
use std::collections::BTreeMap;

/// A model whose graph has these tensors and operators; without names, the last tensor is the output.
pub(crate) fn model(lines: &[&str], outputs: &str) -> Model {
    let mut graph = ModelGraph::default();
    let mut opsets = Vec::new();
    for line in lines {
        if let Some(version) = line.strip_prefix("opset ") {
            let version = version.parse().unwrap();
            opsets = vec![(String::new(), version), ("com.microsoft".to_owned(), version)];
            continue;
        }
        let results = line.split(" =").next().unwrap();
        let are_there = results.split(';').filter(|text| text.trim() != "_");
        are_there.for_each(|text| add_tensor(&mut graph, text));
        if let (Some((_, values)), true) = (line.split_once(" ="), line.starts_with("weight ")) {
            add_data(&mut graph, values);
        }
    }
    for line in lines.iter().filter(|line| !line.starts_with("weight ")) {
        if let Some((results, call)) = line.split_once(" = ") {
            let op = op(&graph, results, call);
            graph.ops.push(op);
        }
    }
    graph.outputs = outputs.split_whitespace().map(|name| id(&graph, name)).collect();
    if outputs.is_empty() {
        graph.outputs.extend(graph.tensors.ids().next_back());
    }
    let is_input = |id: &TensorId| graph.tensors[*id].source == Source::Input;
    graph.inputs = graph.tensors.ids().filter(is_input).collect();
    Model {
        graphs: IndexVec::from(vec![graph]),
        main: GraphId::new(0),
        opsets,
        ir_version: 8,
        producer: String::new(),
        metadata: Vec::new(),
    }
}

/// Types as tests write them.
const TYPES: [(&str, DType); 16] = [
    ("f32", DType::F32),
    ("f16", DType::F16),
    ("bf16", DType::BF16),
    ("f64", DType::F64),
    ("i8", DType::I8),
    ("i16", DType::I16),
    ("u16", DType::U16),
    ("u64", DType::U64),
    ("i32", DType::I32),
    ("i64", DType::I64),
    ("bool", DType::Bool),
    ("u8", DType::U8),
    ("u4", DType::U4),
    ("u32", DType::U32),
    ("i4", DType::I4),
    ("string", DType::String),
];

fn add_tensor(graph: &mut ModelGraph, text: &str) {
    let (source, text) = match text.trim().split_once(' ') {
        Some(("input", rest)) => (Source::Input, rest),
        Some(("weight", rest)) => (Source::Initializer, rest),
        _ => (Source::Computed, text.trim()),
    };
    let Some((name, rest)) =
        text.split_once(' ').or_else(|| (source != Source::Computed).then_some((text, "")))
    else {
        let name = text.to_owned();
        graph.tensors.push(ModelTensor { name, dtype: None, shape: None, source });
        return;
    };
    let first = rest.split_whitespace().next().unwrap_or_default();
    let found = TYPES.iter().find(|row| row.0 == first);
    let dims = if found.is_some() { rest.strip_prefix(first).unwrap_or_default() } else { rest };
    graph.tensors.push(ModelTensor {
        name: name.to_owned(),
        dtype: Some(found.map_or(DType::F32, |row| row.1)),
        shape: Some(shape(dims)),
        source,
    });
}

/// Elements of the last tensor.
fn add_data(graph: &mut ModelGraph, values: &str) {
    let (id, row) = graph.tensors.iter_enumerated().next_back().unwrap();
    let dtype = row.dtype.unwrap();
    let data: Vec<u8> = values.split_whitespace().flat_map(|word| bytes(dtype, word)).collect();
    graph.data.insert(id, data.into());
}

/// One element. Of 16-bit fractions it is their bits.
fn bytes(dtype: DType, word: &str) -> Vec<u8> {
    macro_rules! of_types {
        ($($($dtype:ident)|+ => $rust:ty),+) => {
            match dtype {
                $($(DType::$dtype)|+ => word.parse::<$rust>().unwrap().to_le_bytes().to_vec(),)+
                other => panic!("no elements of {other}"),
            }
        };
    }
    of_types!(
        F32 => f32, F64 => f64, I8 => i8, I16 => i16, I32 => i32, I64 => i64,
        Bool | U8 => u8, U16 | F16 | BF16 => u16, U32 => u32, U64 => u64
    )
}

fn op(graph: &ModelGraph, results: &str, call: &str) -> ModelOp {
    let (call, attributes) = match call.split_once(" {") {
        Some((call, attributes)) => (call, attributes.trim_end_matches('}')),
        None => (call, ""),
    };
    let (kind, inputs) = call.trim_end_matches(')').split_once('(').unwrap();
    let (domain, kind) = kind.rsplit_once('.').unwrap_or(("", kind));
    let named = |name: &str| (name != "_").then(|| id(graph, name));
    let first_word = |text: &str| named(text.split_whitespace().next().unwrap());
    ModelOp {
        name: String::new(),
        domain: domain.to_owned(),
        kind: kind.to_owned(),
        inputs: inputs.split(", ").filter(|name| !name.is_empty()).map(named).collect(),
        outputs: results.split(';').map(first_word).collect(),
        captured: Vec::new(),
        attributes: attributes_of(attributes),
    }
}

/// `a=1, b=[1, 2], c=0.5, d=text`.
fn attributes_of(text: &str) -> Vec<Attribute> {
    let mut attributes = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let end = if after.starts_with('[') {
            after.find(']').unwrap() + 1
        } else {
            after.find(", ").unwrap_or(after.len())
        };
        let (value, behind) = after.split_at(end);
        attributes.push(Attribute { name: name.trim().to_owned(), value: value_of(value) });
        rest = behind.trim_start_matches(", ");
    }
    attributes
}

fn value_of(text: &str) -> Value {
    if let Some(list) = text.strip_prefix('[') {
        let words = list.trim_end_matches(']').split(", ").filter(|word| !word.is_empty());
        let words: Vec<&str> = words.collect();
        let ints: Result<Vec<i64>, _> = words.iter().map(|word| word.parse()).collect();
        let floats: Result<Vec<f32>, _> = words.iter().map(|word| word.parse()).collect();
        let texts = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        return match (ints, floats) {
            (Ok(ints), _) => Value::Ints(ints),
            (_, Ok(floats)) => Value::Floats(floats),
            _ => Value::Texts(texts),
        };
    }
    if let Some((dtype, value)) = text.strip_prefix("tensor ").and_then(|rest| rest.split_once(' '))
    {
        let dtype = TYPES.iter().find(|row| row.0 == dtype).unwrap().1;
        let data = Some(bytes(dtype, value).into());
        return Value::Tensor(TensorValue { dtype, dims: vec![1], data });
    }
    if let Ok(value) = text.parse() {
        return Value::Int(value);
    }
    text.parse().map_or_else(|_| Value::Text(text.as_bytes().to_vec()), Value::Float)
}

/// What is inferred of the results of the last operator: `f32 [n, 3]; i64 ?`.
#[track_caller]
pub(crate) fn infers(lines: &[&str], wanted: &str) {
    let resolved = resolve_with(lines, "", &ResolveConfig::default()).unwrap();
    assert_eq!(resolved.contradictions, [""; 0], "{lines:?}");
    assert_eq!(last_results(&resolved), wanted, "{lines:?}");
}

/// What is wrong with the only operator.
#[track_caller]
pub(crate) fn misfits(lines: &[&str], wanted: &str) {
    let resolved = resolve_with(lines, "", &ResolveConfig::default()).unwrap();
    let lines: Vec<&str> =
        resolved.contradictions.iter().filter_map(|line| Some(line.split_once(": ")?.1)).collect();
    assert_eq!(lines, [wanted]);
}

fn last_results(resolved: &Resolved) -> String {
    let tensors = resolved.graph.tensors();
    let text = |&id: &TensorId| {
        let tensor = &tensors[id];
        let dtype = TYPES.iter().find(|row| Some(row.1) == tensor.dtype).map_or("?", |row| row.0);
        match &tensor.shape {
            Some(shape) => format!("{dtype} {}", Dim::shape_text(shape)),
            None => format!("{dtype} ?"),
        }
    };
    let last = resolved.graph.ops().iter().next_back().unwrap();
    last.outputs.iter().map(text).collect::<Vec<_>>().join("; ")
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
    resolve(&model(lines, outputs), GraphId::new(0), config, &crate::standard())
}

/// All sharing of a graph: `y in x` for a view, `y on x` for a permission to overwrite, `a at 0 B of y` for a part or
/// a piece.
pub(crate) fn shares(graph: &Graph) -> String {
    let name = |id: TensorId| &graph.tensors()[id].name;
    let text = |sharing: &Sharing| match *sharing {
        Sharing::View { output, of, .. } => format!("{} in {}", name(output), name(of)),
        Sharing::MayOverwrite { output, of } => format!("{} on {}", name(output), name(of)),
        Sharing::PartOf { input, output, offset } => {
            format!("{} at {offset} of {}", name(input), name(output))
        }
        Sharing::PieceOf { output, of, offset } => {
            format!("{} at {offset} of {}", name(output), name(of))
        }
        Sharing::Mutates { .. } => format!("{sharing:?}"),
    };
    let all = graph.ops().iter().flat_map(|op| &op.sharing).map(text);
    all.collect::<Vec<_>>().join(", ")
}
