//! A model as its file states it: graphs of operators, names, attributes, declared shapes.
//!
//! ~~~text
//! Model ── graphs ──> main:  x ─ If ─ y          captured: the body reads `w` of the outer graph, so
//!                            w ──┘  \            `w` is an explicit input of the If, behind its own
//!                     body:  w' ─ Relu ─ z       inputs; no second lifetime rule is needed.
//! ~~~
//!
//! Invariants, kept by the reader that builds it: ids are valid for their own graph; every tensor has at
//! most one writer; constants are weights, not operators; a body belongs to one operator. Operator
//! semantics and sizes come later, when a model is resolved into a [`Graph`](crate::Graph).

use crate::{DType, Dim, GraphId, IndexVec, OpId, TensorId};
use std::collections::BTreeMap;

/// A whole model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// All graphs: the main one and the bodies of control-flow operators.
    pub graphs: IndexVec<GraphId, ModelGraph>,
    /// The one that runs.
    pub main: GraphId,
    /// Operator sets in use: domain (empty for the standard one) and version.
    pub opsets: Vec<(String, i64)>,
    /// Version of the file format.
    pub ir_version: i64,
    /// Who wrote the file.
    pub producer: String,
    /// Free key and value pairs.
    pub metadata: Vec<(String, String)>,
}

impl Model {
    /// The graph that runs.
    pub fn main_graph(&self) -> &ModelGraph {
        &self.graphs[self.main]
    }
}

/// One graph of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelGraph {
    /// Its name.
    pub name: String,
    /// Operators in file order, constants left out.
    pub ops: IndexVec<OpId, ModelOp>,
    /// Tensors: inputs, weights, results.
    pub tensors: IndexVec<TensorId, ModelTensor>,
    /// What the caller gives, in order; weights left out.
    pub inputs: Vec<TensorId>,
    /// What the caller gets, in order.
    pub outputs: Vec<TensorId>,
    /// For a body: its tensors that stand for values of the outer graph.
    pub captured: Vec<TensorId>,
    /// Elements of those weights whose value the file holds; as in [`TensorValue::data`].
    pub data: BTreeMap<TensorId, Data>,
}

impl ModelGraph {
    /// How many operators the file lists: those here and the constants that became weights.
    pub fn file_op_count(&self) -> usize {
        let constants =
            self.tensors.iter().filter(|tensor| tensor.source == Source::Constant).count();
        self.ops.len() + constants
    }
}

/// One operator.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOp {
    /// Its name, perhaps empty.
    pub name: String,
    /// The domain of its type; empty for the standard one.
    pub domain: String,
    /// Its type, such as `Conv`.
    pub kind: String,
    /// Inputs by position; `None` for an optional one that is absent.
    pub inputs: Vec<Option<TensorId>>,
    /// Outputs by position; `None` for one that nobody wants.
    pub outputs: Vec<Option<TensorId>>,
    /// Values of this graph that its bodies read, each once, behind its inputs.
    pub captured: Vec<TensorId>,
    /// Attributes in file order.
    pub attributes: Vec<Attribute>,
}

impl ModelOp {
    /// The attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|found| &found.value)
    }
}

/// A named attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer.
    Int(i64),
    /// A number.
    Float(f32),
    /// Text, not always UTF-8.
    Text(Vec<u8>),
    /// A tensor.
    Tensor(TensorValue),
    /// The body of a control-flow operator.
    Body(Body),
    /// Integers.
    Ints(Vec<i64>),
    /// Numbers.
    Floats(Vec<f32>),
    /// Texts.
    Texts(Vec<Vec<u8>>),
    /// Several bodies.
    Bodies(Vec<Body>),
    /// A kind that is carried without being read; the name of the kind.
    Other(&'static str),
}

/// Elements of a tensor, without a copy of them: a piece of shared memory, perhaps of a mapped file.
pub type Data = bytes::Bytes;

/// A tensor whose value the file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorValue {
    /// Its element type.
    pub dtype: DType,
    /// Its dimensions.
    pub dims: Vec<u64>,
    /// Its elements, row after row, least significant byte first, narrow types packed; `None` for strings, and
    /// where the elements were not read. May share the memory of the file, so it may be unaligned.
    pub data: Option<Data>,
}

/// A graph inside an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Which graph of the model.
    pub graph: GraphId,
    /// For each of the body's captured tensors: its position in the operator's `captured`.
    pub captured: Vec<usize>,
}

/// One tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelTensor {
    /// Its name, unique in its graph.
    pub name: String,
    /// The declared element type.
    pub dtype: Option<DType>,
    /// The declared shape; `None` if the file declares none.
    pub shape: Option<Vec<Dim>>,
    /// Where its value comes from.
    pub source: Source,
}

/// Where the value of a tensor comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From the caller.
    Input,
    /// From the file: an initializer.
    Initializer,
    /// From the file: the value of a constant operator.
    Constant,
    /// From the caller, but the file says that it is a weight.
    WeightInput,
    /// From an operator.
    Computed,
    /// From the outer graph.
    Captured,
}

impl Source {
    /// Whether the value is the same in every run.
    pub fn is_weight(self) -> bool {
        matches!(self, Self::Initializer | Self::Constant | Self::WeightInput)
    }
}
