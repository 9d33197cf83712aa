//! Programs of graphs that mean nothing: each operator mixes all bytes that it reads into all bytes that it writes, so that
//! one wrong byte anywhere shows.

use lowtide::core::operator::{KernelError, Operands, Place, Prepared, Program};
use lowtide::core::testing::random_bytes;
use lowtide::core::{Bytes, DType, Id, IndexVec, OpId, Sharing, Tensor, TensorId, TensorKind};
use lowtide::{Graph, GraphBuilder};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The same graph with bytes as elements; `None` if some size or place is not known before the run.
pub(crate) fn of_bytes(graph: &Graph) -> Option<Graph> {
    let mut builder = GraphBuilder::new("bytes");
    for (id, tensor) in graph.tensors().iter_enumerated() {
        let (extent, size) = (graph.extent(id), tensor.size.fixed()?);
        if !extent.is_exact || extent.bytes.is_none_or(|bytes| bytes < size) {
            return None;
        }
        builder.tensor(Tensor { dtype: Some(DType::U8), ..tensor.clone() });
    }
    for op in graph.ops() {
        builder.op(op.clone());
    }
    builder.finish().ok()
}

/// Whether the caller's own bytes would be changed, which no session does.
pub(crate) fn changes_external(graph: &Graph) -> bool {
    graph.ops().iter().flat_map(|op| &op.sharing).any(|sharing| match *sharing {
        Sharing::Mutates { of, .. } => {
            graph.tensors()[graph.storage(of)].kind != TensorKind::Computed
        }
        _ => false,
    })
}

pub(crate) fn len(graph: &Graph, id: TensorId) -> usize {
    usize::try_from(graph.tensors()[id].size.bound().unwrap().0).unwrap()
}

/// What an operator writes into its output number `at`, given all that it reads: bytes that depend on all of it, but
/// for parts and pieces, which are what the graph says.
pub(crate) fn mixed(graph: &Graph, op: OpId, inputs: &[Vec<u8>], at: usize) -> Vec<u8> {
    let mut seed = 1 + op.index() as u64 * 64 + at as u64;
    for byte in inputs.iter().flat_map(|bytes| bytes.iter().chain(&[7])) {
        seed = (seed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3).rotate_left(9);
    }
    let row = &graph.ops()[op];
    let written = row.outputs[at];
    let mut bytes = random_bytes(seed, len(graph, written));
    let value = |id: TensorId| &inputs[row.inputs.iter().position(|&input| input == id).unwrap()];
    let number = |bytes: Bytes| usize::try_from(bytes.0).unwrap();
    for sharing in &row.sharing {
        match *sharing {
            Sharing::PartOf { input, output, offset } if output == written => {
                let start = number(offset);
                bytes[start..start + value(input).len()].copy_from_slice(value(input));
            }
            Sharing::PieceOf { output, of, offset } if output == written => {
                let (start, len) = (number(offset), bytes.len());
                bytes.copy_from_slice(&value(of)[start..start + len]);
            }
            _ => {}
        }
    }
    bytes
}

fn run_mixed(graph: &Graph, op: OpId, operands: &mut Operands<'_>) {
    operands.scratch.fill(0xEE);
    let read = |input: &lowtide::core::operator::Input<'_>| match input.place {
        Place::Apart(bytes) => bytes.to_vec(),
        Place::In { output, offset } => {
            let whole = &operands.outputs[output].as_ref().unwrap().bytes;
            whole[offset..offset + input.len()].to_vec()
        }
    };
    let inputs: Vec<Vec<u8>> = operands.inputs.iter().flatten().map(read).collect();
    for output in operands.outputs.iter_mut().flatten() {
        let values = mixed(graph, op, &inputs, output.at);
        output.bytes.copy_from_slice(&values);
    }
    operands.scratch.fill(0xDD);
}

pub(crate) fn external(id: TensorId, len: usize) -> Vec<u8> {
    random_bytes(1000 + u64::from(id.raw()), len)
}

pub(crate) fn ids(graph: &Graph, kind: TensorKind) -> Vec<TensorId> {
    graph.tensors().ids().filter(|&id| graph.tensors()[id].kind == kind).collect()
}

pub(crate) fn program(graph: &Graph) -> Program {
    let shared = Arc::new(graph.clone());
    let prepared = |(id, op): (OpId, &lowtide::Op)| {
        let graph = Arc::clone(&shared);
        Some(Prepared {
            kernel: Box::new(move |operands: &mut Operands<'_>| -> Result<(), KernelError> {
                run_mixed(&graph, id, operands);
                Ok(())
            }),
            inputs: op.inputs.iter().copied().map(Some).collect(),
            outputs: op.outputs.iter().copied().map(Some).collect(),
        })
    };
    let outputs = graph.tensors().ids().filter(|&id| graph.tensors()[id].is_output);
    let mut weights = IndexVec::filled(graph.tensors().len(), None);
    for id in ids(graph, TensorKind::Weight) {
        weights[id] = Some(external(id, len(graph, id)).into());
    }
    Program {
        calls: graph.ops().iter_enumerated().map(prepared).collect(),
        late: BTreeMap::new(),
        shapes: graph.tensors().ids().map(|id| [len(graph, id)].into()).collect(),
        weights,
        inputs: ids(graph, TensorKind::Input),
        outputs: outputs.collect(),
        graph: graph.clone(),
    }
}
