//! [`check()`]: a graph and a plan in, a [`CheckedPlan`] or every fault out.
//!
//! The checker replays the events against the graph. It shares no code with the planner and does not look at
//! the planner's lifetimes: it keeps a shadow of memory that says, for each range of bytes, which value was
//! written there last, and compares that with what every read wants to see.
//!
//! ~~~text
//! EXEC relu: reads a, writes b       shadow before: [0,64) = a      read a: sees a, right
//!                                    shadow after:  [0,64) = b      a later read of a would see b: a fault
//! ~~~
//!
//! The rules, each a kind of [`Fault`]:
//!
//! 1. *Tables* (`tables`): the fingerprint is the graph's; ids are in range; residences tile the buffers and
//!    stay inside their space; offsets are aligned, inside a buffer too unless what stays there may lie beside
//!    others; sizes and scratch are the graph's; weights and the caller's inputs have no residence; in safe mode no
//!    byte is reserved twice.
//! 2. *Protocol* (`replay`): runs happen once and in schedule order, every operator runs, each after the
//!    writers of what it reads; a residence is allocated once, just before the run that needs it first, and
//!    freed once, after its last use; what is not an output is freed; spans say the same as the events;
//!    bindings name the right residence.
//! 3. *Bytes* (`replay`, `shadow`): what comes to lie on bytes that others hold keeps them: by the declarations of
//!    parts and pieces it is to have, byte for byte, what is there already, and where it touches an operand of the
//!    run, that operand lies where the operator declares it. Or it overwrites one dying input, byte for byte, as the
//!    operator about to run may; no other operand lies there, and what was overwritten is freed right after the
//!    run. What is written is held; every read sees the bytes of the right writer, or bytes that are the same by
//!    declaration, through views and mutations; at the end every output of the graph is held and right.
//! 4. *Order* (`races`): with several workers, every write to some bytes comes after every access to what was there
//!    before, and every read after the write, by data, mutations or fences; a fence waits for an earlier run.
//! 5. *Claims* (`claims`, `bounds`): statistics are recomputed, certificates of bounds verified; those about
//!    what is live only if the replay found no fault. A bound without a certificate is accepted as quoted,
//!    unless the plan itself lies below it.
//!
//! Rules for budgets (spill, restore) join at `replay`. Faults in the tables end the check, since nothing can be
//! replayed with ids that mean nothing. Cost: O((events + operands) log n).

mod bounds;
mod claims;
mod fault;
mod items;
mod packing;
mod races;
mod replay;
mod shadow;
mod spaces;
mod tables;
mod together;

pub use bounds::{BoundFault, Shown, check_bound};
pub use fault::{Fault, Faults};
pub use packing::{PlacementFault, check_placement};
pub use spaces::{SpacesFault, check_spaces};

use crate::{Bytes, Graph, Occupant, OpId, Owner, Plan, ResidenceId, TensorId, TensorKind};
use shadow::{Address, Region};

/// A plan that has been judged: the only kind that a runtime accepts.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedPlan(Plan);

impl CheckedPlan {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.0
    }

    /// The plan, no longer marked as judged.
    pub fn into_plan(self) -> Plan {
        self.0
    }
}

/// Judges a plan. All faults are reported, those of the replay only if the tables are sound.
pub fn check(graph: &Graph, plan: Plan) -> Result<CheckedPlan, Faults> {
    let faults = tables::faults(graph, &plan);
    if !faults.is_empty() {
        return Err(Faults(faults));
    }
    let replayed = replay::run(graph, &plan);
    let mut faults = replayed.faults;
    // What a wrong plan holds at each step says nothing about its claims, or about what meets what.
    let live = faults.is_empty().then_some(&replayed.live);
    if live.is_some() {
        races::judge(graph, &plan, &mut faults);
    }
    claims::judge(graph, &plan, live, &mut faults);
    if faults.is_empty() { Ok(CheckedPlan(plan)) } else { Err(Faults(faults)) }
}

/// Whether a tensor's own storage belongs into a plan's memory.
fn is_placed(graph: &Graph, plan: &Plan, tensor: TensorId) -> bool {
    if plan.outputs == Owner::Caller && graph.holds_output(tensor) {
        return false;
    }
    match graph.tensors()[tensor].kind {
        TensorKind::Computed => graph.is_storage(tensor),
        TensorKind::Input => plan.inputs == Owner::Arena && !plan.schedule.is_empty(),
        TensorKind::Weight => false,
    }
}

/// The first byte of a residence: in its arena, or in its buffer where that lies in a pool.
fn address(plan: &Plan, id: ResidenceId) -> Address {
    let residence = &plan.residences[id];
    let buffer = &plan.buffers[residence.buffer];
    match buffer.offset {
        Some(offset) => Address {
            region: Region::Space(buffer.space.raw()),
            offset: (offset + residence.offset).0,
        },
        None => {
            Address { region: Region::Pooled(residence.buffer.raw()), offset: residence.offset.0 }
        }
    }
}

/// Bytes that a residence keeps for itself: padded, unless it is a tensor that may be a part of another one
/// and so may end where the next part begins; `None` without a bound.
fn reserved_bytes(graph: &Graph, plan: &Plan, what: Occupant) -> Option<Bytes> {
    match what {
        Occupant::Tensor(tensor) => {
            let bytes = graph.tensors()[tensor].size.bound()?;
            Some(if graph.is_part(tensor) { bytes } else { padded(plan, bytes) })
        }
        Occupant::Scratch(run) => {
            graph.ops()[plan.op(run)].scratch.bound().map(|bytes| padded(plan, bytes))
        }
    }
}

/// Names for faults. A fault carries them, so they are short whatever the model says.
fn tensor_label(graph: &Graph, tensor: TensorId) -> String {
    shortened(&graph.tensor_label(tensor))
}

fn op_label(graph: &Graph, op: OpId) -> String {
    shortened(&graph.op_label(op))
}

fn shortened(name: &str) -> String {
    const LONGEST: usize = 120;
    match name.char_indices().nth(LONGEST) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}...", &name[..end]),
    }
}

/// A size with its padding. Sizes of a graph are far from overflow.
fn padded(plan: &Plan, bytes: Bytes) -> Bytes {
    bytes.align_up(plan.align).expect("a graph's sizes fit with padding")
}
