//! What a model consists of: operators with shapes, bytes, costs and lifetimes, and the totals people compare.

use crate::Loaded;
use lowtide_core::{Bytes, Dim, OpId, Source, TensorId, TensorKind};
use lowtide_formats::{CostRow, InspectSummary, OperatorRow, ResultRow, ValuesRow};
use lowtide_planner::lifetimes;

/// Describes a model in the order of its file.
pub fn inspect(model: &str, loaded: &Loaded) -> InspectSummary {
    let graph = &loaded.graph;
    let operators = operators(loaded);
    let costs = || operators.iter().filter_map(|row| row.cost);
    let storages = || {
        graph
            .tensors()
            .iter_enumerated()
            .filter(|&(id, row)| row.kind == TensorKind::Computed && graph.is_storage(id))
    };
    InspectSummary {
        model: model.to_owned(),
        ops: loaded.file_ops,
        tensors: graph.tensors().len(),
        parameters: parameters(loaded),
        weights_bytes: graph.weights_bytes().0,
        macs: costs().fold(0, |sum, cost| cost.macs.saturating_add(sum)),
        flops: costs().fold(0, |sum, cost| cost.flops.saturating_add(sum)),
        activation_bytes: storages().filter_map(|(_, row)| row.size.bound()).sum::<Bytes>().0,
        unknown_tensors: storages().filter(|(_, row)| row.size.bound().is_none()).count(),
        uncosted_ops: operators.iter().filter(|row| row.cost.is_none()).count(),
        values: loaded.weights.as_ref().map(|report| ValuesRow {
            in_place_bytes: report.in_place.0,
            unaligned_bytes: report.unaligned.0,
            decoded_bytes: report.decoded.0,
            external_bytes: report.external.0,
            absent_bytes: report.absent.0,
        }),
        operators,
    }
}

/// Elements of the weights; constants are part of how a model calculates, not of what it has learned.
fn parameters(loaded: &Loaded) -> u64 {
    let is_constant = |id: TensorId| {
        let model = loaded.model.as_ref().map(|model| &model.main_graph().tensors[id]);
        model.is_some_and(|tensor| tensor.source == Source::Constant)
    };
    let tensors = loaded.graph.tensors().iter_enumerated();
    let weights = tensors.filter(|&(id, row)| row.kind == TensorKind::Weight && !is_constant(id));
    let counts = weights.filter_map(|(_, row)| Dim::element_count(row.shape.as_deref()?));
    counts.fold(0, u64::saturating_add)
}

fn operators(loaded: &Loaded) -> Vec<OperatorRow> {
    let graph = &loaded.graph;
    let lives = lifetimes(graph, &graph.file_order());
    let result = |&id: &TensorId| {
        let row = &graph.tensors()[id];
        let life = lives[id].unwrap_or_default();
        ResultRow {
            id: id.raw(),
            name: row.name.to_string(),
            dtype: row.dtype.map(lowtide_core::DType::name),
            shape: row.shape.as_deref().map(Dim::shape_text),
            bytes: row.size.bound().map(|bytes| bytes.0),
            is_storage: graph.is_storage(id),
            first_step: life.start.0,
            last_step: life.end.0.saturating_sub(1),
        }
    };
    let rows = graph.ops().iter_enumerated().map(|(id, op)| OperatorRow {
        id: id.raw(),
        name: op.name.to_string(),
        kind: op.kind.to_string(),
        inputs: op.inputs.iter().map(|&input| graph.tensor_label(input)).collect(),
        outputs: op.outputs.iter().map(result).collect(),
        cost: cost(loaded, id),
    });
    rows.collect()
}

fn cost(loaded: &Loaded, op: OpId) -> Option<CostRow> {
    let cost = (*loaded.costs.get(op)?)?;
    Some(CostRow {
        macs: cost.macs,
        flops: cost.flops,
        read_bytes: cost.read_bytes,
        written_bytes: cost.written_bytes,
    })
}
