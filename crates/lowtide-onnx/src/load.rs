//! Messages in, [`Model`] out: operators get ids for names, and bodies become graphs of the model.
//!
//! ~~~text
//! main:    x, w ──> If ──> y             If.captured = [w]
//!                    │
//! body:              └─ If ──> z         the outer body reads no w itself, but captures it for the inner
//!                        │
//! inner:                 └─ Relu(w) ──> v
//! ~~~
//! A name that a body does not define is looked up in the graph around it, and there in the next one.
//! Where it is found, each graph on the way down gets a captured tensor, so that each refers only to its
//! parent. The nearest definition wins. Recursion goes as deep as `max_depth`, not deeper.
//! Cost: linear in the file, times the depth of bodies.

use crate::attributes::{self, kind};
use crate::graph::{Label, Scope, labelled};
use crate::key::domain;
use crate::proto::{AttributeProto, GraphProto, ModelProto, OperatorSetIdProto};
use crate::values::Values;
use crate::{Limits, LoadError, weight_inputs};
use lowtide_core::{
    Attribute, Body, GraphId, IndexVec, Model, ModelGraph, ModelOp, ModelTensor, Source, TensorId,
    Value,
};
use std::collections::{BTreeMap, BTreeSet};

/// Builds the model of a file.
pub(crate) fn model(proto: &ModelProto, values: &mut Values<'_>) -> Result<Model, LoadError> {
    let main = proto.graph.as_ref().ok_or(LoadError::NoGraph)?;
    let metadata: Vec<(String, String)> =
        proto.metadata_props.iter().map(|row| (row.key.clone(), row.value.clone())).collect();
    let list = metadata.iter().find(|row| row.0 == weight_inputs::KEY);
    let weights = list.map_or(Ok(Vec::new()), |row| weight_inputs::parse(&row.1))?;
    let mut loader = Loader::new(values);
    let (main, _) = loader.graph(main, &weights.into_iter().collect())?;
    Ok(Model {
        graphs: loader.graphs,
        main,
        opsets: proto.opset_import.iter().map(opset).collect(),
        ir_version: proto.ir_version,
        producer: format!("{} {}", proto.producer_name, proto.producer_version).trim().to_owned(),
        metadata,
    })
}

fn opset(row: &OperatorSetIdProto) -> (String, i64) {
    (domain(&row.domain), row.version)
}

struct Loader<'p, 'v, 'o> {
    limits: &'o Limits,
    values: &'v mut Values<'o>,
    graphs: IndexVec<GraphId, ModelGraph>,
    /// The graph being read, last, and those around it.
    scopes: Vec<Scope<'p>>,
    ops: u64,
    tensors: u64,
}

/// Values that the bodies of one operator capture, each once.
#[derive(Default)]
struct Captures {
    list: Vec<TensorId>,
    positions: BTreeMap<TensorId, usize>,
}

impl Captures {
    fn position(&mut self, tensor: TensorId) -> usize {
        *self.positions.entry(tensor).or_insert_with(|| {
            self.list.push(tensor);
            self.list.len() - 1
        })
    }
}

impl<'p, 'v, 'o> Loader<'p, 'v, 'o> {
    fn new(values: &'v mut Values<'o>) -> Self {
        let (limits, graphs) = (values.limits, IndexVec::new());
        Self { limits, values, graphs, scopes: Vec::new(), ops: 0, tensors: 0 }
    }

    /// Reads a graph inside those of `scopes`; returns the values of its parent that it captures.
    fn graph(
        &mut self,
        proto: &'p GraphProto,
        weight_inputs: &BTreeSet<String>,
    ) -> Result<(GraphId, Vec<TensorId>), LoadError> {
        self.check_depth(proto)?;
        self.count_ops(proto.node.len())?;
        let id = self.graphs.push(ModelGraph::default());
        let scope = Scope::define(proto, weight_inputs, self.values)?;
        self.count_tensors(scope.graph.tensors.len())?;
        self.scopes.push(scope);
        for op in labelled(proto).filter(|op| !op.node.is_constant()) {
            let op = self.op(op)?;
            self.innermost().graph.ops.push(op);
        }
        for output in &proto.output {
            let output = self.output(proto, &output.name)?;
            self.innermost().graph.outputs.push(output);
        }
        let scope = self.scopes.pop().expect("pushed above");
        self.graphs[id] = scope.graph;
        Ok((id, scope.captured_from))
    }

    fn innermost(&mut self) -> &mut Scope<'p> {
        self.scopes.last_mut().expect("a graph is being read")
    }

    fn op(&mut self, label: Label<'p>) -> Result<ModelOp, LoadError> {
        let node = label.node;
        let inputs = node.input.iter().map(|name| self.input(label, name));
        let inputs = inputs.collect::<Result<_, _>>()?;
        let outputs = node.output.iter().map(|name| self.innermost().id(name)).collect();
        let mut captures = Captures::default();
        let mut attributes = Vec::with_capacity(node.attribute.len());
        for attribute in &node.attribute {
            let value = self.value(label, attribute, &mut captures)?;
            attributes.push(Attribute { name: attribute.name.clone(), value });
        }
        Ok(ModelOp {
            name: node.name.clone(),
            domain: domain(&node.domain),
            kind: node.op_type.clone(),
            inputs,
            outputs,
            captured: captures.list,
            attributes,
        })
    }

    fn input(&mut self, op: Label<'p>, name: &'p str) -> Result<Option<TensorId>, LoadError> {
        if name.is_empty() {
            return Ok(None);
        }
        let found = self.look_up(self.scopes.len() - 1, name)?;
        let undefined =
            || LoadError::UndefinedInput { op: op.to_string(), tensor: name.to_owned() };
        found.ok_or_else(undefined).map(Some)
    }

    fn output(&mut self, proto: &GraphProto, name: &'p str) -> Result<TensorId, LoadError> {
        let found = self.look_up(self.scopes.len() - 1, name)?;
        let (graph, tensor) = (&proto.name, name);
        found.ok_or_else(|| LoadError::UndefinedOutput {
            graph: graph.clone(),
            tensor: tensor.to_owned(),
        })
    }

    /// The tensor that a name means in the graph of this level; captured if an outer graph defines it.
    fn look_up(&mut self, level: usize, name: &'p str) -> Result<Option<TensorId>, LoadError> {
        if let Some(id) = self.scopes[level].id(name) {
            return Ok(Some(id));
        }
        let Some(outer_level) = level.checked_sub(1) else { return Ok(None) };
        let Some(outer) = self.look_up(outer_level, name)? else { return Ok(None) };
        self.count_tensors(1)?;
        let value = &self.scopes[outer_level].graph.tensors[outer];
        let tensor = ModelTensor { source: Source::Captured, ..value.clone() };
        Ok(Some(self.scopes[level].capture(name, tensor, outer)))
    }

    fn value(
        &mut self,
        op: Label<'p>,
        attribute: &'p AttributeProto,
        captures: &mut Captures,
    ) -> Result<Value, LoadError> {
        match attributes::kind_of(attribute) {
            kind::BODY => match &attribute.g {
                Some(graph) => self.body(graph, captures).map(Value::Body),
                None => Err(attributes::empty(attribute, op, "a graph")),
            },
            kind::BODIES => {
                let bodies = attribute.graphs.iter().map(|graph| self.body(graph, captures));
                Ok(Value::Bodies(bodies.collect::<Result<_, _>>()?))
            }
            _ => attributes::plain_value(attribute, op, self.values),
        }
    }

    fn body(&mut self, proto: &'p GraphProto, captures: &mut Captures) -> Result<Body, LoadError> {
        let (graph, from) = self.graph(proto, &BTreeSet::new())?;
        let captured = from.into_iter().map(|tensor| captures.position(tensor)).collect();
        Ok(Body { graph, captured })
    }

    fn check_depth(&self, proto: &GraphProto) -> Result<(), LoadError> {
        let (depth, limit) = (self.scopes.len(), self.limits.max_depth);
        if depth <= limit {
            return Ok(());
        }
        Err(LoadError::TooDeep { graph: proto.name.clone(), depth, limit })
    }

    fn count_ops(&mut self, more: usize) -> Result<(), LoadError> {
        self.ops += more as u64;
        let (found, limit) = (self.ops, self.limits.max_ops);
        if found <= u64::from(limit) {
            return Ok(());
        }
        Err(LoadError::TooManyOps { found, limit })
    }

    fn count_tensors(&mut self, more: usize) -> Result<(), LoadError> {
        self.tensors += more as u64;
        let (found, limit) = (self.tensors, self.limits.max_tensors);
        if found <= u64::from(limit) {
            return Ok(());
        }
        Err(LoadError::TooManyTensors { found, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::StringStringEntryProto;
    use crate::testing::{
        body, fails, file, first_op, graph, list, load, op, shaped, tensor, tensor_names, try_load,
        weight, with,
    };
    use lowtide_core::{Dim, Id};

    fn if_with(text: &str, then: GraphProto) -> Model {
        let mut proto = graph("c, w -> y", &[]);
        proto.input[1] = shaped("w", "5");
        proto.node.push(with(op(text), body("then_branch", then)));
        load(proto)
    }

    fn only_body(op: &ModelOp) -> &Body {
        match op.attribute("then_branch") {
            Some(Value::Body(body)) => body,
            other => panic!("no body: {other:?}"),
        }
    }

    #[test]
    fn operators_may_come_in_any_order() {
        let model = load(graph("x -> z", &["z = Relu(y)", "y = Relu(x)"]));
        let main = model.main_graph();
        assert_eq!(tensor_names(main), "x z y");
        assert_eq!(first_op(main).inputs, [Some(TensorId::new(2))]);
    }

    #[test]
    fn absent_inputs_and_outputs_are_none() {
        let model = load(graph("x -> z", &[", z = F(, x)"]));
        let op = first_op(model.main_graph());
        assert_eq!(op.inputs, [None, Some(TensorId::new(0))]);
        assert_eq!(op.outputs, [None, Some(TensorId::new(1))]);
    }

    #[test]
    fn what_is_read_is_defined() {
        fails(
            graph("x -> y", &["one: y = Add(x, w)"]),
            "operator `one` reads `w`, which nothing defines",
        );
        fails(graph("x -> z", &["y = Relu(x)"]), "graph `g` outputs `z`, which nothing defines");
    }

    #[test]
    fn the_standard_domain_has_one_name() {
        let mut proto = graph("x -> y", &["y = Relu(x)"]);
        proto.node[0].domain = "ai.onnx".to_owned();
        let mut file = file(proto);
        file.opset_import = vec![OperatorSetIdProto { domain: "ai.onnx".to_owned(), version: 17 }];
        let model = try_load(&file, &Limits::default()).unwrap();
        assert_eq!(first_op(model.main_graph()).domain, "");
        assert_eq!(model.opsets, [(String::new(), 17)]);
    }

    fn stripped(value: &str) -> Result<Model, LoadError> {
        let mut file = file(graph("x, w -> y", &["y = Add(x, w)"]));
        let (key, value) = ("weight_inputs".to_owned(), value.to_owned());
        file.metadata_props = vec![StringStringEntryProto { key, value }];
        try_load(&file, &Limits::default())
    }

    #[test]
    fn stripped_weights_are_weights() {
        let model = stripped(r#"["w", "folded away"]"#).unwrap();
        assert_eq!(tensor(model.main_graph(), "w").source, Source::WeightInput);
        assert_eq!(list(model.main_graph(), model.main_graph().inputs.clone()), "x");
        let message = "metadata `weight_inputs`, byte 1: found '1', wanted a string";
        assert_eq!(stripped("[1]").unwrap_err().to_string(), message);
    }

    #[test]
    fn a_body_captures_what_it_does_not_define() {
        let model = if_with("y = If(c)", graph("-> v", &["u = Add(w, w)", "v = Add(u, c)"]));
        let op = first_op(model.main_graph());
        assert_eq!(list(model.main_graph(), op.captured.clone()), "w c");
        let inner = &model.graphs[only_body(op).graph];
        assert_eq!(tensor_names(inner), "u v w c");
        assert_eq!(list(inner, inner.captured.clone()), "w c");
        assert_eq!(only_body(op).captured, [0, 1]);
        assert_eq!(tensor(inner, "w").shape, Some(vec![Dim::Known(5)]));
    }

    #[test]
    fn a_value_captured_two_deep_passes_the_graph_between() {
        let innermost = graph("-> v", &["v = Relu(w)"]);
        let mut middle = graph("-> z", &[]);
        middle.node.push(with(op("z = If(c)"), body("then_branch", innermost)));
        let model = if_with("y = If(c)", middle);
        let outer_op = first_op(model.main_graph());
        let middle = &model.graphs[only_body(outer_op).graph];
        let inner_op = first_op(middle);
        assert_eq!(list(middle, middle.captured.clone()), "c w");
        assert_eq!(list(middle, inner_op.captured.clone()), "w");
        assert_eq!(list(model.main_graph(), outer_op.captured.clone()), "c w");
        assert_eq!(
            (&only_body(outer_op).captured[..], &only_body(inner_op).captured[..]),
            (&[0, 1][..], &[0][..])
        );
    }

    #[test]
    fn inner_definitions_shadow_outer_ones() {
        let mut then = graph("-> v", &["y = Relu(w)", "v = Relu(y)"]);
        then.initializer = vec![weight("w", &[3])];
        let model = if_with("y = If(c)", then);
        assert!(first_op(model.main_graph()).captured.is_empty());
    }

    #[test]
    fn two_bodies_share_a_captured_value() {
        let mut proto = graph("c, w -> y", &[]);
        let branch = || graph("-> v", &["v = Relu(w)"]);
        let both = AttributeProto {
            name: "all".to_owned(),
            graphs: vec![branch(), branch()],
            ..AttributeProto::default()
        };
        proto.node.push(with(op("y = Case(c)"), both));
        let model = load(proto);
        let op = first_op(model.main_graph());
        assert_eq!(op.captured.len(), 1);
        let Some(Value::Bodies(bodies)) = op.attribute("all") else { panic!("no bodies") };
        assert!(bodies.iter().all(|body| body.captured == [0]));
        assert_eq!(bodies.iter().map(|body| body.graph.index()).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_body_may_output_a_captured_value() {
        let model = if_with("y = If(c)", graph("-> w", &[]));
        let inner = &model.graphs[only_body(first_op(model.main_graph())).graph];
        assert_eq!(inner.outputs, inner.captured);
    }

    #[track_caller]
    fn exceeds(limits: Limits, message: &str) {
        let mut proto = graph("c -> y", &["a = Relu(c)"]);
        proto
            .node
            .push(with(op("y = If(c)"), body("then_branch", graph("-> v", &["v = Relu(a)"]))));
        let error = try_load(&file(proto), &limits).unwrap_err();
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn limits_hold_over_all_graphs() {
        let all = Limits::default();
        exceeds(Limits { max_ops: 2, ..all }, "the file has 3 operators or more, the limit is 2");
        exceeds(Limits { max_tensors: 4, ..all }, "the file has 5 tensors or more, the limit is 4");
        exceeds(Limits { max_tensors: 3, ..all }, "the file has 4 tensors or more, the limit is 3");
        exceeds(Limits { max_depth: 0, ..all }, "graph `g` lies 1 bodies deep, the limit is 0");
        exceeds(Limits { max_file_bytes: 9, ..all }, "the file has more than 9 bytes, the limit");
    }
}
