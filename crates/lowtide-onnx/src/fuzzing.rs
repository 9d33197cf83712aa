//! What a fuzzer drives, and the ordinary tests too: any bytes in, an error or a model that keeps its word.

use crate::{Limits, WriteError, parse, write_reordered};
use lowtide_core::{
    Body, Data, Dim, Model, ModelGraph, ModelOp, ModelTensor, OpId, Source, TensorId, Value,
};

/// Limits under which a single input cannot take long.
const SMALL: Limits = Limits {
    max_file_bytes: 1 << 20,
    max_ops: 4096,
    max_messages: 1 << 15,
    max_tensors: 4096,
    max_rank: 8,
    max_depth: 4,
    max_function_bytes: 1 << 20,
};

/// Reads any bytes. Must not panic; what comes out keeps the invariants of a [`Model`], and the file can be
/// written again.
pub fn fuzz_parse(data: &[u8]) {
    let file = Data::copy_from_slice(data);
    if let Ok(model) = parse(file.clone(), &SMALL) {
        assert_valid(&model);
        assert_writes(&file, &model);
    }
}

/// Panics unless the file comes out as it was in file order, and with the same operators in another; a
/// file of calls or of several graphs may be refused.
fn assert_writes(file: &Data, model: &Model) {
    let mut order: Vec<OpId> = model.main_graph().ops.ids().collect();
    let mut out = Vec::new();
    match write_reordered(file, &order, &mut out) {
        Err(WriteError::Call { .. } | WriteError::GraphCount { .. }) => return,
        result => result.expect("what can be read can be written"),
    }
    assert_eq!(out, file[..]);
    order.reverse();
    out.clear();
    write_reordered(file, &order, &mut out).expect("any order can be written");
    let again = parse(Data::from(out), &SMALL).expect("order does not matter to the reader");
    let kinds = |model: &Model| -> Vec<String> {
        model.main_graph().ops.iter().map(|op| format!("{} {}", op.name, op.kind)).collect()
    };
    assert!(kinds(&again).iter().eq(kinds(model).iter().rev()), "the same operators, reversed");
}

/// Panics unless the model keeps the invariants that its type promises.
pub fn assert_valid(model: &Model) {
    let mut owners = vec![0; model.graphs.len()];
    for graph in &model.graphs {
        assert_tensors(graph);
        for (op, body) in bodies(graph) {
            owners[body.graph.raw() as usize] += 1;
            assert_eq!(body.captured.len(), model.graphs[body.graph].captured.len());
            assert!(body.captured.iter().all(|&position| position < op.captured.len()));
        }
    }
    for (index, count) in owners.into_iter().enumerate() {
        let is_main = model.main.raw() as usize == index;
        assert_eq!(count, usize::from(!is_main), "a body belongs to one operator");
    }
}

fn assert_tensors(graph: &ModelGraph) {
    let exists = |id: TensorId| graph.tensors.get(id).is_some();
    let mut writers = vec![0; graph.tensors.len()];
    for op in &graph.ops {
        assert!(op.inputs.iter().flatten().chain(&op.captured).all(|&input| exists(input)));
        for output in op.outputs.iter().flatten() {
            writers[output.raw() as usize] += 1;
        }
    }
    for (tensor, count) in graph.tensors.iter().zip(writers) {
        assert_eq!(count, usize::from(tensor.source == Source::Computed), "one writer each");
    }
    for (&id, data) in &graph.data {
        assert!(graph.tensors[id].source.is_weight(), "only weights have values");
        assert_eq!(byte_count(&graph.tensors[id]), Some(data.len() as u64));
    }
    assert!(graph.inputs.iter().chain(&graph.outputs).all(|&tensor| exists(tensor)));
    let captured = |&id: &TensorId| graph.tensors[id].source == Source::Captured;
    assert!(graph.captured.iter().all(captured));
}

/// How long the value of a tensor is, from its declaration.
fn byte_count(tensor: &ModelTensor) -> Option<u64> {
    let dims = tensor.shape.iter().flatten();
    let elements = dims.map(|dim| if let Dim::Known(known) = dim { *known } else { 0 });
    let elements: Vec<u64> = elements.collect();
    let count = if elements.contains(&0) { 0 } else { elements.iter().product() };
    Some(tensor.dtype?.bytes(count)?.0)
}

fn bodies(graph: &ModelGraph) -> impl Iterator<Item = (&ModelOp, &Body)> {
    graph.ops.iter().flat_map(|op| {
        op.attributes.iter().flat_map(|a| of_value(&a.value)).map(move |body| (op, body))
    })
}

fn of_value(value: &Value) -> &[Body] {
    match value {
        Value::Body(body) => std::slice::from_ref(body),
        Value::Bodies(bodies) => bodies,
        _ => &[],
    }
}
