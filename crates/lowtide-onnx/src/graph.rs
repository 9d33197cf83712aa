//! One graph's names: what a `GraphProto` defines, each name once, and the tensors behind them.
//!
//! ~~~text
//! input: x, w     initializer: w      node: Relu(x) -> y, Constant -> c
//!   t0 x  Input
//!   t1 w  Initializer                 a weight, although it is listed as an input too
//!   t2 y  Computed                    results in file order
//!   t3 c  Constant
//! ~~~
//! Every name is entered before any is looked up, so operators may come in any order.
//! Cost: linear.

use crate::attributes;
use crate::proto::{GraphProto, NodeProto, ValueInfoProto};
use crate::types::{self, Declared};
use crate::values::Values;
use crate::{Limits, LoadError};
use lowtide_core::{ModelGraph, ModelTensor, Source, TensorId, TensorValue};
use std::collections::BTreeSet;
#[expect(clippy::disallowed_types, reason = "only looked up, never walked")]
use std::collections::HashMap;
use std::fmt;

/// An operator of the file, as messages call it: by its name, or its type and number where it has none.
#[derive(Clone, Copy)]
pub(crate) struct Label<'p> {
    pub(crate) node: &'p NodeProto,
    pub(crate) index: usize,
}

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.node.name.is_empty() {
            return write!(f, "{} (op{})", self.node.op_type, self.index);
        }
        f.write_str(&self.node.name)
    }
}

/// All operators of a graph with their labels.
pub(crate) fn labelled(proto: &GraphProto) -> impl Iterator<Item = Label<'_>> {
    proto.node.iter().enumerate().map(|(index, node)| Label { node, index })
}

/// A graph on its way from message to model, with the names that it defines.
pub(crate) struct Scope<'p> {
    pub(crate) graph: ModelGraph,
    /// For each captured tensor: the value of the outer graph that it stands for.
    pub(crate) captured_from: Vec<TensorId>,
    #[expect(clippy::disallowed_types, reason = "only looked up, never walked")]
    ids: HashMap<&'p str, TensorId>,
    proto: &'p GraphProto,
}

impl<'p> Scope<'p> {
    /// Enters all that the graph itself defines.
    pub(crate) fn define(
        proto: &'p GraphProto,
        weight_inputs: &BTreeSet<String>,
        values: &mut Values<'_>,
    ) -> Result<Self, LoadError> {
        let limits = values.limits;
        let graph = ModelGraph { name: proto.name.clone(), ..ModelGraph::default() };
        #[expect(clippy::disallowed_types, reason = "only looked up, never walked")]
        let ids = HashMap::new();
        let mut scope = Self { graph, captured_from: Vec::new(), ids, proto };
        scope.inputs(weight_inputs, limits)?;
        scope.initializers(values)?;
        labelled(proto).try_for_each(|op| scope.results(op, values))?;
        proto.value_info.iter().chain(&proto.output).try_for_each(|i| scope.declare(i, limits))?;
        Ok(scope)
    }

    /// The tensor of a name of this graph, captured ones included.
    pub(crate) fn id(&self, name: &str) -> Option<TensorId> {
        self.ids.get(name).copied()
    }

    /// Adds a tensor that stands for `outer` of the outer graph.
    pub(crate) fn capture(
        &mut self,
        name: &'p str,
        tensor: ModelTensor,
        outer: TensorId,
    ) -> TensorId {
        let id = self.graph.tensors.push(tensor);
        self.ids.insert(name, id);
        self.graph.captured.push(id);
        self.captured_from.push(outer);
        id
    }

    fn inputs(
        &mut self,
        weight_inputs: &BTreeSet<String>,
        limits: &Limits,
    ) -> Result<(), LoadError> {
        let with_value: BTreeSet<&str> = initializer_names(self.proto).collect();
        let mut seen = BTreeSet::new();
        for (index, info) in self.proto.input.iter().enumerate() {
            self.check_new(&mut seen, "input", index, &info.name)?;
            if with_value.contains(info.name.as_str()) {
                continue;
            }
            let is_weight = weight_inputs.contains(&info.name);
            let source = if is_weight { Source::WeightInput } else { Source::Input };
            let id = self.add(&info.name, types::declared(info, limits)?, source);
            if !is_weight {
                self.graph.inputs.push(id);
            }
        }
        Ok(())
    }

    fn initializers(&mut self, values: &mut Values<'_>) -> Result<(), LoadError> {
        let proto = self.proto;
        if let Some(sparse) = proto.sparse_initializer.first() {
            let tensor = sparse.values.as_ref().map_or("", |values| &values.name).to_owned();
            return Err(LoadError::Sparse { tensor });
        }
        let mut seen = BTreeSet::new();
        for (index, tensor) in proto.initializer.iter().enumerate() {
            self.check_new(&mut seen, "initializer", index, &tensor.name)?;
            let value = values.tensor(tensor, &tensor.name)?;
            self.add_weight(&tensor.name, value, Source::Initializer);
        }
        Ok(())
    }

    fn check_new(
        &self,
        seen: &mut BTreeSet<&'p str>,
        kind: &'static str,
        index: usize,
        name: &'p str,
    ) -> Result<(), LoadError> {
        let graph = || self.proto.name.clone();
        if name.is_empty() {
            return Err(LoadError::Nameless { kind, index, graph: graph() });
        }
        if seen.insert(name) {
            return Ok(());
        }
        Err(LoadError::Duplicate { kind, name: name.to_owned(), graph: graph() })
    }

    fn results(&mut self, op: Label<'p>, values: &mut Values<'_>) -> Result<(), LoadError> {
        attributes::check_references(op)?;
        if op.node.is_constant() {
            let name = self.check_unwritten(op, attributes::constant_output(op)?)?;
            self.add_weight(name, attributes::constant(op, values)?, Source::Constant);
            return Ok(());
        }
        for name in op.node.output.iter().filter(|name| !name.is_empty()) {
            let name = self.check_unwritten(op, name)?;
            self.add(name, Declared::default(), Source::Computed);
        }
        Ok(())
    }

    fn check_unwritten(&self, op: Label<'_>, name: &'p str) -> Result<&'p str, LoadError> {
        let Some(id) = self.id(name) else { return Ok(name) };
        let (tensor, label) = (name.to_owned(), op.to_string());
        let kind = match self.graph.tensors[id].source {
            Source::Computed | Source::Constant => {
                let mut before = labelled(self.proto);
                let first = before.find(|op| op.node.output.iter().any(|output| output == name));
                let first = first.map(|op| op.to_string()).expect("some operator wrote the tensor");
                return Err(LoadError::WrittenTwice { tensor, first, second: label });
            }
            Source::Initializer => "initializer",
            Source::Input | Source::WeightInput | Source::Captured => "input",
        };
        Err(LoadError::WritesExternal { op: label, tensor, kind })
    }

    fn add(&mut self, name: &'p str, declared: Declared, source: Source) -> TensorId {
        let Declared { dtype, shape } = declared;
        let id =
            self.graph.tensors.push(ModelTensor { name: name.to_owned(), dtype, shape, source });
        self.ids.insert(name, id);
        id
    }

    fn add_weight(&mut self, name: &'p str, value: TensorValue, source: Source) {
        let id = self.add(name, Declared::exact(value.dtype, value.dims), source);
        if let Some(data) = value.data {
            self.graph.data.insert(id, data);
        }
    }

    /// Fills in what is not known yet; a declaration never overrides the value itself.
    fn declare(&mut self, info: &ValueInfoProto, limits: &Limits) -> Result<(), LoadError> {
        let declared = types::declared(info, limits)?;
        let Some(id) = self.id(&info.name) else { return Ok(()) };
        let tensor = &mut self.graph.tensors[id];
        if matches!(tensor.source, Source::Computed) {
            tensor.dtype = tensor.dtype.or(declared.dtype);
            tensor.shape = tensor.shape.take().or(declared.shape);
        }
        Ok(())
    }
}

fn initializer_names(proto: &GraphProto) -> impl Iterator<Item = &str> {
    proto.initializer.iter().map(|tensor| tensor.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::SparseTensorProto;
    use crate::testing::{
        fails, file, graph, load, shaped, tensor, tensor_names, try_load, weight,
    };
    use lowtide_core::Dim;

    fn with_weights(mut proto: GraphProto, weights: &[&str]) -> GraphProto {
        proto.initializer = weights.iter().map(|name| weight(name, &[2])).collect();
        proto
    }

    fn sources(model: &ModelGraph) -> Vec<Source> {
        model.tensors.iter().map(|tensor| tensor.source).collect()
    }

    #[test]
    fn ids_go_to_inputs_then_initializers_then_results() {
        let proto = with_weights(graph("x, y -> b", &["a = Add(x, w)", "b = Add(a, y)"]), &["w"]);
        assert_eq!(tensor_names(load(proto).main_graph()), "x y w a b");
    }

    #[test]
    fn an_input_with_a_value_is_a_weight() {
        let model = load(with_weights(graph("x, w -> y", &["y = Add(x, w)"]), &["w"]));
        let main = model.main_graph();
        assert_eq!(sources(main), [Source::Input, Source::Initializer, Source::Computed]);
        assert_eq!(main.inputs.len(), 1);
    }

    #[test]
    fn a_sparse_initializer_is_refused() {
        let mut proto = graph("x -> y", &["y = Add(x, s)"]);
        proto.sparse_initializer = vec![SparseTensorProto { values: Some(weight("s", &[3])) }];
        let message = "tensor `s` is sparse; sparse initializers and constants are not supported";
        fails(proto, message);
    }

    #[test]
    fn a_weight_has_its_value() {
        let model = load(with_weights(graph("x -> y", &["y = Add(x, w)"]), &["w"]));
        let id = TensorId::new(1);
        assert_eq!(model.main_graph().data[&id], [0; 8][..]);
    }

    #[test]
    fn declarations_give_types_and_shapes() {
        let mut proto = graph("x -> z", &["y = Relu(x)", "z = Relu(y)"]);
        proto.input = vec![shaped("x", "batch 3")];
        proto.value_info = vec![shaped("y", "_ -1 ?"), shaped("nobody", "1")];
        proto.output = vec![shaped("z", "7")];
        let model = load(proto);
        let shape = |name| tensor(model.main_graph(), name).shape.clone().unwrap();
        assert_eq!(shape("x"), [Dim::Named("batch".into()), Dim::Known(3)]);
        assert_eq!(shape("y"), [Dim::Unknown, Dim::Unknown, Dim::Unknown]);
        assert_eq!(shape("z"), [Dim::Known(7)]);
    }

    #[test]
    fn what_is_no_tensor_has_no_type() {
        let model = load(graph("sequence -> y", &["y = SequenceLength(sequence)"]));
        let found = tensor(model.main_graph(), "sequence");
        assert_eq!((found.dtype, &found.shape), (None, &None));
    }

    #[test]
    fn a_value_outweighs_a_declaration() {
        let mut proto = with_weights(graph("x -> y", &["y = Add(x, w)"]), &["w"]);
        proto.value_info = vec![shaped("w", "9 9")];
        let model = load(proto);
        assert_eq!(tensor(model.main_graph(), "w").shape, Some(vec![Dim::Known(2)]));
    }

    #[test]
    fn names_are_unique_among_inputs_and_among_initializers() {
        let twice = graph("x, x -> y", &["y = Relu(x)"]);
        fails(twice, "graph `g` has two inputs named `x`, wanted one");
        let twice = with_weights(graph("-> y", &["y = Relu(w)"]), &["w", "w"]);
        fails(twice, "graph `g` has two initializers named `w`, wanted one");
    }

    #[test]
    fn what_has_to_be_named_is_named() {
        let nameless = with_weights(graph("x -> y", &["y = Relu(x)"]), &["w", ""]);
        fails(nameless, "initializer 1 of graph `g` has no name");
        let mut nameless = graph("x -> y", &["y = Relu(x)"]);
        nameless.input.push(shaped("", "1"));
        fails(nameless, "input 1 of graph `g` has no name");
    }

    #[test]
    fn a_tensor_has_one_writer() {
        let twice = graph("x -> y", &["one: y = Relu(x)", "y = Tanh(x)"]);
        fails(twice, "tensor `y` is written by operator `one` and again by operator `Tanh (op1)`");
        let twice = graph("x -> y", &["one: y, y = Split(x)"]);
        fails(twice, "tensor `y` is written by operator `one` and again by operator `one`");
    }

    #[test]
    fn nothing_writes_inputs_and_initializers() {
        let proto = graph("x, y -> x", &["one: x = Relu(y)"]);
        fails(proto, "operator `one` writes `x`, which is an input of the graph");
        let proto = with_weights(graph("x -> w", &["one: w = Relu(x)"]), &["w"]);
        fails(proto, "operator `one` writes `w`, which is an initializer of the graph");
    }

    #[test]
    fn declared_dimensions_are_checked() {
        let mut proto = graph("x -> y", &["y = Relu(x)"]);
        proto.value_info = vec![shaped("y", "4 -2")];
        fails(proto, "dimension 1 of tensor `y` is -2, wanted 0 or more");
        let mut proto = graph("x -> y", &["y = Relu(x)"]);
        proto.input = vec![shaped("x", "1 1 1")];
        let limits = Limits { max_rank: 2, ..Limits::default() };
        let error = try_load(&file(proto), &limits).unwrap_err();
        assert_eq!(error.to_string(), "tensor `x` has 3 dimensions, the limit is 2");
    }
}
