//! Last stage: statistics recomputed, certificates of bounds verified.

use super::{Fault, is_placed, padded};
use crate::{
    Bound, Bytes, Graph, IndexVec, OpId, Plan, Proof, RunId, Sharing, Size, SpaceKind, Step,
    TensorId,
};
use std::collections::BTreeSet;

/// Compares what the plan claims with what the replay saw live at each step.
pub(super) fn judge(
    graph: &Graph,
    plan: &Plan,
    live: &IndexVec<RunId, Bytes>,
    faults: &mut Vec<Fault>,
) {
    statistics(graph, plan, live, faults);
    let shown = match plan.order_bound.proof {
        Proof::LiveSum(_) => None,
        proof => certificate(graph, plan, live, proof),
    };
    bound("order", plan.order_bound, shown, faults);
    let shown = certificate(graph, plan, live, plan.placement_bound.proof);
    bound("placement", plan.placement_bound, shown, faults);
}

fn statistics(graph: &Graph, plan: &Plan, live: &IndexVec<RunId, Bytes>, faults: &mut Vec<Fault>) {
    let stats = &plan.stats;
    let peak = live.iter().copied().max().unwrap_or_default();
    let peak_step = live.iter().position(|&bytes| bytes == peak).unwrap_or(0);
    let arenas = plan.spaces.iter().filter(|space| space.kind == SpaceKind::Arena);
    let placed = || graph.tensors().iter_enumerated().filter(|&(id, _)| is_placed(graph, plan, id));
    let sizes = placed().filter_map(|(_, tensor)| tensor.size.bound());
    let no_reuse: Bytes = sizes.map(|bytes| padded(plan, bytes)).sum();
    let pooled = placed().filter(|(_, tensor)| tensor.size == Size::Unknown).count();
    let rows = [
        ("peak_live_bytes", stats.peak_live_bytes.0, peak.0),
        ("peak_step", u64::from(stats.peak_step.0), peak_step as u64),
        ("arena_bytes", stats.arena_bytes.0, arenas.map(|space| space.size).sum::<Bytes>().0),
        ("no_reuse_bytes", stats.no_reuse_bytes.0, no_reuse.0),
        ("pool_tensors", stats.pool_tensors as u64, pooled as u64),
    ];
    for (name, found, wanted) in rows {
        if found != wanted {
            faults.push(Fault::WrongStatistic { name, found, wanted });
        }
    }
}

fn bound(which: &'static str, bound: Bound, shown: Option<Bytes>, faults: &mut Vec<Fault>) {
    match shown {
        None => faults.push(Fault::WrongProof { which, found: format!("{:?}", bound.proof) }),
        Some(shown) if bound.bytes > shown => {
            faults.push(Fault::BoundNotShown { which, found: bound.bytes, shown });
        }
        Some(_) => {}
    }
}

/// The bytes that a certificate shows; `None` if it names something that is not there.
fn certificate(
    graph: &Graph,
    plan: &Plan,
    live: &IndexVec<RunId, Bytes>,
    proof: Proof,
) -> Option<Bytes> {
    match proof {
        Proof::Trivial => Some(Bytes::ZERO),
        Proof::Outputs => Some(outputs(graph, plan)),
        Proof::WorkingSet(op) => {
            graph.ops().get(op).is_some().then(|| working_set(graph, plan, op))
        }
        Proof::LiveSum(Step(step)) => live.get(RunId::new(step)).copied(),
    }
}

fn outputs(graph: &Graph, plan: &Plan) -> Bytes {
    let outputs = graph.tensors().iter_enumerated().filter(|(_, tensor)| tensor.is_output);
    let storages: BTreeSet<TensorId> = outputs.map(|(id, _)| graph.storage(id)).collect();
    storages.into_iter().map(|storage| reserved(graph, plan, storage)).sum()
}

/// What is there while `op` runs, less what could lie on something else that is there.
fn working_set(graph: &Graph, plan: &Plan, op: OpId) -> Bytes {
    let row = &graph.ops()[op];
    let operands = row.inputs.iter().chain(&row.outputs);
    let storages: BTreeSet<TensorId> = operands.map(|&tensor| graph.storage(tensor)).collect();
    let scratch = row.scratch.bound().map_or(Bytes::ZERO, |bytes| padded(plan, bytes));
    let total: Bytes = storages.iter().map(|&storage| reserved(graph, plan, storage)).sum();
    let shared = row.sharing.iter().filter_map(|sharing| match *sharing {
        Sharing::MayOverwrite { output, .. } => Some(output),
        Sharing::PartOf { input, .. } => Some(graph.storage(input)),
        Sharing::View { .. } | Sharing::Mutates { .. } => None,
    });
    let shared: BTreeSet<TensorId> = shared.collect();
    let saved: Bytes = shared.into_iter().map(|tensor| reserved(graph, plan, tensor)).sum();
    (total + scratch).saturating_sub(saved)
}

/// Padded bytes of a storage in the arena; none for what lies elsewhere.
fn reserved(graph: &Graph, plan: &Plan, storage: TensorId) -> Bytes {
    let bytes = graph.tensors()[storage].size.bound().unwrap_or_default();
    if is_placed(graph, plan, storage) { padded(plan, bytes) } else { Bytes::ZERO }
}
