//! Small files for tests: text in, messages out.
//!
//! ~~~text
//! graph("x -> z", &["first: y = Relu(x)", "z = Add(y, )"])
//! ~~~

use crate::fuzzing::assert_valid;
use crate::proto::{
    AttributeProto, DimensionProto, GraphProto, ModelProto, NodeProto, TensorProto,
    TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};
use crate::{Limits, LoadError, parse};
use bytes::Bytes;
use lowtide_core::{Model, ModelGraph, ModelOp, ModelTensor, TensorId};
use prost::Message;

/// A graph with inputs and outputs of which only the names are known.
pub(crate) fn graph(interface: &str, ops: &[&str]) -> GraphProto {
    let (inputs, outputs) = interface.split_once("->").unwrap();
    let infos = |text| names(text).into_iter().map(|name| info(&name)).collect();
    GraphProto {
        name: "g".to_owned(),
        node: ops.iter().map(|text| op(text)).collect(),
        input: infos(inputs),
        output: infos(outputs),
        ..GraphProto::default()
    }
}

/// An operator: `name: a, b = Kind(c, d)`, the name left out or not.
pub(crate) fn op(text: &str) -> NodeProto {
    let (name, text) = text.split_once(':').unwrap_or(("", text));
    let (outputs, call) = text.split_once('=').unwrap();
    let (kind, inputs) = call.trim().trim_end_matches(')').split_once('(').unwrap();
    NodeProto {
        name: name.to_owned(),
        op_type: kind.to_owned(),
        input: names(inputs),
        output: names(outputs),
        ..NodeProto::default()
    }
}

fn names(text: &str) -> Vec<String> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    text.split(',').map(|name| name.trim().to_owned()).collect()
}

/// The same operator with one more attribute.
pub(crate) fn with(mut op: NodeProto, attribute: AttributeProto) -> NodeProto {
    op.attribute.push(attribute);
    op
}

/// The body of an operator.
pub(crate) fn body(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        r#type: 5,
        g: Some(Box::new(graph)),
        ..AttributeProto::default()
    }
}

fn info(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: name.to_owned(), r#type: None }
}

/// A float tensor declared with dimensions that are numbers, names, or `_` for none.
pub(crate) fn shaped(name: &str, dims: &str) -> ValueInfoProto {
    let dim = dims.split_whitespace().map(|text| match text.parse() {
        Ok(value) => DimensionProto { dim_value: Some(value), dim_param: None },
        Err(_) if text == "_" => DimensionProto::default(),
        Err(_) => DimensionProto { dim_value: None, dim_param: Some(text.to_owned()) },
    });
    let shape = Some(TensorShapeProto { dim: dim.collect() });
    let tensor_type = Some(TensorTypeProto { elem_type: 1, shape });
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { tensor_type }) }
}

/// A float tensor of zeros.
pub(crate) fn weight(name: &str, dims: &[i64]) -> TensorProto {
    let zeros = vec![0; usize::try_from(dims.iter().product::<i64>()).unwrap() * 4];
    let (name, dims, raw_data) = (name.to_owned(), dims.to_vec(), Some(Bytes::from(zeros)));
    TensorProto { name, dims, data_type: 1, raw_data, ..TensorProto::default() }
}

/// A file that holds this graph.
pub(crate) fn file(graph: GraphProto) -> ModelProto {
    ModelProto { ir_version: 8, graph: Some(graph), ..ModelProto::default() }
}

/// Through the bytes of a file and back.
pub(crate) fn try_load(file: &ModelProto, limits: &Limits) -> Result<Model, LoadError> {
    let model = parse(Bytes::from(file.encode_to_vec()), limits)?;
    assert_valid(&model);
    Ok(model)
}

/// The model of a file that holds this graph.
pub(crate) fn load(graph: GraphProto) -> Model {
    try_load(&file(graph), &Limits::default()).unwrap()
}

/// Loading a file that holds this graph ends with this message.
#[track_caller]
pub(crate) fn fails(graph: GraphProto, message: &str) {
    let error = try_load(&file(graph), &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), message);
}

/// A tensor of a graph by its name.
pub(crate) fn tensor<'g>(graph: &'g ModelGraph, name: &str) -> &'g ModelTensor {
    graph.tensors.iter().find(|tensor| tensor.name == name).unwrap()
}

/// Names of tensors, in the order of their ids.
pub(crate) fn tensor_names(graph: &ModelGraph) -> String {
    list(graph, graph.tensors.ids())
}

/// Names of these tensors.
pub(crate) fn list(graph: &ModelGraph, ids: impl IntoIterator<Item = TensorId>) -> String {
    let names = ids.into_iter().map(|id| graph.tensors[id].name.as_str());
    names.collect::<Vec<_>>().join(" ")
}

/// The first operator of a graph.
pub(crate) fn first_op(graph: &ModelGraph) -> &ModelOp {
    graph.ops.iter().next().unwrap()
}
