//! Small models from text: one line a tensor that is given, or one an operator.
//!
//! ~~~text
//! input x float32 n 5            weight w int64 2 = 3 -1          output y z
//! y = Concat(x, w) axis=0        attributes are whole numbers
//! ~~~

use lowtide::core::operator::Program;
use lowtide::core::{
    Attribute, DType, Dim, GraphId, IndexVec, Model, ModelGraph, ModelOp, ModelTensor, Source,
    TensorId, Value,
};
use lowtide::{Graph, ResolveConfig, ops};

/// A model that is ready to be planned and run.
pub(crate) struct Prepared {
    pub(crate) graph: Graph,
    pub(crate) program: Program,
}

pub(crate) fn prepared(lines: &[&str], config: &ResolveConfig) -> Prepared {
    let model = model(lines);
    let registry = ops::standard();
    let resolved = ops::resolve(&model, model.main, config, &registry).unwrap();
    assert_eq!(resolved.contradictions, [""; 0]);
    let graph = resolved.graph;
    let program = ops::prepare(&model, graph.clone(), &resolved.facts, &registry).unwrap();
    Prepared { graph, program }
}

fn model(lines: &[&str]) -> Model {
    let mut graph = ModelGraph::default();
    for line in lines {
        match line.split_once(' ').unwrap() {
            ("input", text) => {
                let id = given(&mut graph, text, Source::Input);
                graph.inputs.push(id);
            }
            ("weight", text) => drop(given(&mut graph, text, Source::Initializer)),
            ("output", names) => {
                graph.outputs = names.split_whitespace().map(|name| id(&graph, name)).collect();
            }
            _ => call(&mut graph, line),
        }
    }
    Model {
        graphs: IndexVec::from(vec![graph]),
        main: GraphId::new(0),
        opsets: vec![(String::new(), 17)],
        ir_version: 8,
        producer: String::new(),
        metadata: Vec::new(),
    }
}

fn id(graph: &ModelGraph, name: &str) -> TensorId {
    graph.tensors.iter_enumerated().find(|row| row.1.name == name).unwrap().0
}

fn given(graph: &mut ModelGraph, text: &str, source: Source) -> TensorId {
    let (head, values) = text.split_once(" =").unwrap_or((text, ""));
    let mut words = head.split_whitespace();
    let (name, dtype) = (words.next().unwrap().to_owned(), words.next().unwrap());
    let dim = |word: &str| word.parse().map_or_else(|_| Dim::Named(word.into()), Dim::Known);
    let shape = Some(words.map(dim).collect());
    let dtype = DType::from_name(dtype);
    let id = graph.tensors.push(ModelTensor { name, dtype, shape, source });
    if source == Source::Initializer {
        let values = values.split_whitespace().map(|word| word.parse::<i64>().unwrap());
        let bytes: Vec<u8> = values.flat_map(i64::to_le_bytes).collect();
        graph.data.insert(id, bytes.into());
    }
    id
}

fn call(graph: &mut ModelGraph, line: &str) {
    let (result, call) = line.split_once(" = ").unwrap();
    let (kind, rest) = call.split_once('(').unwrap();
    let (inputs, attributes) = rest.split_once(')').unwrap();
    let (name, source) = (result.to_owned(), Source::Computed);
    let output = graph.tensors.push(ModelTensor { name, dtype: None, shape: None, source });
    let attribute = |text: &str| {
        let (name, value) = text.split_once('=').unwrap();
        Attribute { name: name.to_owned(), value: Value::Int(value.parse().unwrap()) }
    };
    let op = ModelOp {
        name: String::new(),
        domain: String::new(),
        kind: kind.to_owned(),
        inputs: inputs.split(", ").map(|name| Some(id(graph, name))).collect(),
        outputs: vec![Some(output)],
        captured: Vec::new(),
        attributes: attributes.split_whitespace().map(attribute).collect(),
    };
    graph.ops.push(op);
}
