//! Last stage: statistics recomputed, certificates of bounds verified.

use super::{BoundFault, Fault, Shown, check_bound, is_placed, items, padded, reserved_bytes};
use crate::{
    Bound, Bytes, Graph, IndexVec, Occupant, OpId, Plan, Problem, Proof, RunId, Sharing, Size,
    SpaceKind, Step, TensorId,
};
use std::collections::BTreeSet;

/// Compares what the plan claims with what the replay saw live at each step, if it could be replayed.
pub(super) fn judge(
    graph: &Graph,
    plan: &Plan,
    live: Option<&IndexVec<RunId, Bytes>>,
    faults: &mut Vec<Fault>,
) {
    let mut rows = sizes(graph, plan);
    if let Some(live) = live {
        rows.extend(peaks(plan, live));
    }
    for (name, found, wanted) in rows {
        if found != wanted {
            faults.push(Fault::WrongStatistic { name, found, wanted });
        }
    }
    judge_order(graph, plan, live, faults);
    if let Some(live) = live {
        judge_placement(graph, plan, live, faults);
    }
}

fn judge_order(
    graph: &Graph,
    plan: &Plan,
    live: Option<&IndexVec<RunId, Bytes>>,
    faults: &mut Vec<Fault>,
) {
    let claim = &plan.order_bound;
    let shown = certificate(graph, plan, &claim.proof);
    bound("order", claim, shown, faults);
    let peak = live.map(|live| live.iter().copied().max().unwrap_or_default());
    above_peak("order", claim, shown, peak, faults);
}

/// What is claimed about this schedule, whose `live` bytes the replay has seen.
fn judge_placement(
    graph: &Graph,
    plan: &Plan,
    live: &IndexVec<RunId, Bytes>,
    faults: &mut Vec<Fault>,
) {
    let (which, claim) = ("placement", &plan.placement_bound);
    match &claim.proof {
        Proof::LiveSum(Step(step)) => {
            bound(which, claim, live.get(RunId::new(*step)).copied(), faults);
        }
        Proof::Stacked { .. } | Proof::Items(_) | Proof::Search => {
            if let Err(fault) = by_buffers(graph, plan, claim) {
                faults.push(as_fault(which, claim, fault));
                return;
            }
            let arena = arena_bytes(plan);
            if arena < claim.bytes.0 {
                let (bound, arena) = (claim.bytes, Bytes(arena));
                faults.push(Fault::BoundAboveArena { which, bound, arena });
            }
        }
        proof => {
            let shown = certificate(graph, plan, proof);
            bound(which, claim, shown, faults);
            let peak = live.iter().copied().max().unwrap_or_default();
            above_peak(which, claim, shown, Some(peak), faults);
        }
    }
}

/// Judges a claim about the buffers of the plan, as items that are to be placed.
fn by_buffers(graph: &Graph, plan: &Plan, claim: &Bound) -> Result<Shown, BoundFault> {
    let wrong = || BoundFault::WrongProof { found: claim.proof.to_string() };
    let problem = match &claim.proof {
        Proof::Stacked { step, .. } => items::at_step(graph, plan, *step),
        Proof::Items(buffers) => items::of_buffers(graph, plan, buffers),
        _ => Some(Problem::default()),
    };
    check_bound(&problem.ok_or_else(wrong)?, claim)
}

fn as_fault(which: &'static str, claim: &Bound, fault: BoundFault) -> Fault {
    let bound = claim.bytes;
    match fault {
        BoundFault::WrongProof { found } => Fault::WrongProof { which, found },
        BoundFault::NotShown { found, shown } => Fault::BoundNotShown { which, found, shown },
        BoundFault::ItemsFit { items, .. } => Fault::ItemsFit { which, bound, items },
        BoundFault::TooHard { items, .. } => Fault::ProofTooHard { which, bound, items },
    }
}

/// A bound that is shown, or quoted, and still above what this very plan needs, is none.
fn above_peak(
    which: &'static str,
    claim: &Bound,
    shown: Option<Bytes>,
    peak: Option<Bytes>,
    faults: &mut Vec<Fault>,
) {
    let is_shown = shown.is_some_and(|shown| claim.bytes <= shown);
    if let Some(peak) = peak.filter(|&peak| is_shown && peak < claim.bytes) {
        faults.push(Fault::BoundAbovePeak { which, bound: claim.bytes, peak });
    }
}

/// Name, claim and recomputed value of a statistic.
type Row = (&'static str, u64, u64);

fn sizes(graph: &Graph, plan: &Plan) -> Vec<Row> {
    let stats = &plan.stats;
    let placed = || graph.tensors().iter_enumerated().filter(|&(id, _)| is_placed(graph, plan, id));
    let sizes = placed().filter_map(|(_, tensor)| tensor.size.bound());
    let no_reuse: Bytes = sizes.map(|bytes| padded(plan, bytes)).sum();
    let pooled = placed().filter(|(_, tensor)| tensor.size == Size::Unknown).count();
    vec![
        ("arena_bytes", stats.arena_bytes.0, arena_bytes(plan)),
        ("no_reuse_bytes", stats.no_reuse_bytes.0, no_reuse.0),
        ("pool_tensors", stats.pool_tensors as u64, pooled as u64),
    ]
}

fn arena_bytes(plan: &Plan) -> u64 {
    let arenas = plan.spaces.iter().filter(|space| space.kind == SpaceKind::Arena);
    // A hostile plan may have several arenas whose sizes add up to anything.
    arenas.fold(0, |sum: u64, space| sum.saturating_add(space.size.0))
}

fn peaks(plan: &Plan, live: &IndexVec<RunId, Bytes>) -> [Row; 2] {
    let peak = live.iter().copied().max().unwrap_or_default();
    let peak_step = live.iter().position(|&bytes| bytes == peak).unwrap_or(0);
    [
        ("peak_live_bytes", plan.stats.peak_live_bytes.0, peak.0),
        ("peak_step", u64::from(plan.stats.peak_step.0), peak_step as u64),
    ]
}

fn bound(which: &'static str, bound: &Bound, shown: Option<Bytes>, faults: &mut Vec<Fault>) {
    match shown {
        None => faults.push(Fault::WrongProof { which, found: bound.proof.to_string() }),
        Some(shown) if bound.bytes > shown => {
            faults.push(Fault::BoundNotShown { which, found: bound.bytes, shown });
        }
        Some(_) => {}
    }
}

/// The bytes that a certificate for every order shows; `None` if it is none, or names what is not there.
/// A search shows whatever it claims, as it can only be quoted.
fn certificate(graph: &Graph, plan: &Plan, proof: &Proof) -> Option<Bytes> {
    match *proof {
        Proof::Trivial => Some(Bytes::ZERO),
        Proof::Outputs => Some(outputs(graph, plan)),
        Proof::WorkingSet(op) => {
            graph.ops().get(op).is_some().then(|| working_set(graph, plan, op))
        }
        Proof::Search => Some(Bytes(u64::MAX)),
        Proof::LiveSum(_) | Proof::Stacked { .. } | Proof::Items(_) => None,
    }
}

fn outputs(graph: &Graph, plan: &Plan) -> Bytes {
    let outputs = graph.tensors().iter_enumerated().filter(|(_, tensor)| tensor.is_output);
    let storages = outputs.map(|(id, _)| graph.storage(id)).collect();
    graph.least_bytes(storages, |storage| reserved(graph, plan, storage))
}

/// What is there while `op` runs, less what could lie on something else that is there.
fn working_set(graph: &Graph, plan: &Plan, op: OpId) -> Bytes {
    let row = &graph.ops()[op];
    let operands = row.inputs.iter().chain(&row.outputs);
    let storages = operands.map(|&tensor| graph.storage(tensor)).collect();
    let scratch = row.scratch.bound().map_or(Bytes::ZERO, |bytes| padded(plan, bytes));
    // Parts and pieces may lie inside others: `least_bytes` counts them once.
    let total = graph.least_bytes(storages, |storage| reserved(graph, plan, storage));
    let overwriting = row.sharing.iter().filter_map(|sharing| match *sharing {
        Sharing::MayOverwrite { output, .. } => Some(output),
        _ => None,
    });
    let overwriting: BTreeSet<TensorId> = overwriting.collect();
    let saved: Bytes = overwriting.into_iter().map(|output| reserved(graph, plan, output)).sum();
    (total + scratch).saturating_sub(saved)
}

/// Bytes that a storage takes at least; none for what the plan does not place.
fn reserved(graph: &Graph, plan: &Plan, storage: TensorId) -> Bytes {
    let bytes = reserved_bytes(graph, plan, Occupant::Tensor(storage)).unwrap_or_default();
    if is_placed(graph, plan, storage) { bytes } else { Bytes::ZERO }
}
