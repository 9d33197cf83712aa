//! Plan in, the first thing in it that means nothing out: what has to hold before an unchecked plan can be followed.
//!
//! ~~~text
//! schedule ──> operators of the graph       bindings ──> residences ──> buffers      all in range,
//! events ──> residences, runs               offset + offset + size                   and no sum that overflows
//! ~~~
//! This is not the checker: such a plan can be wrong in every other way. Cost: linear in the plan.

use lowtide_core::{Bytes, Event, Graph, Id, Occupant, Plan, Residence, Size};

/// Why a plan cannot even be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoMeaning {
    /// The plan is for another graph.
    #[error("the plan is for graph {found}, this one is {wanted}")]
    OtherGraph {
        /// The plan's fingerprint.
        found: String,
        /// The graph's.
        wanted: String,
    },
    /// An id names nothing.
    #[error("{place} is {found}, but there are only {limit}")]
    OutOfRange {
        /// Where the id stands.
        place: String,
        /// The id.
        found: usize,
        /// How many there are.
        limit: usize,
    },
    /// A table has too few rows, or too many.
    #[error("{place} has {found} entries, wanted {wanted}")]
    WrongLength {
        /// Which table.
        place: String,
        /// How many entries it has.
        found: usize,
        /// How many it has to have.
        wanted: usize,
    },
    /// A residence has another size than what stays there.
    #[error("residence {residence} has {found}, the graph says {wanted}")]
    WrongSize {
        /// Which.
        residence: usize,
        /// Its size.
        found: Size,
        /// The size of what stays there.
        wanted: Size,
    },
    /// The end of a residence is no number.
    #[error("residence {residence} ends beyond all numbers")]
    Endless {
        /// Which.
        residence: usize,
    },
}

/// That all ids of a plan are in range, and its sums are numbers.
pub(crate) fn check_meaning(graph: &Graph, plan: &Plan) -> Result<(), NoMeaning> {
    let (found, wanted) = (plan.fingerprint, graph.fingerprint());
    if found != wanted {
        let (found, wanted) = (found.to_string(), wanted.to_string());
        return Err(NoMeaning::OtherGraph { found, wanted });
    }
    for (run, &op) in plan.schedule.iter_enumerated() {
        in_range(|| format!("the operator of {run}"), op, graph.ops().len())?;
    }
    check_bindings(graph, plan)?;
    for (id, residence) in plan.residences.iter_enumerated() {
        in_range(|| format!("the buffer of {id}"), residence.buffer, plan.buffers.len())?;
        let place = || format!("what stays in {id}");
        match residence.what {
            Occupant::Tensor(tensor) => in_range(place, tensor, graph.tensors().len())?,
            Occupant::Scratch(run) => in_range(place, run, plan.schedule.len())?,
        }
        let (found, wanted) = (residence.size, size(graph, plan, residence.what));
        if found != wanted {
            return Err(NoMeaning::WrongSize { residence: id.index(), found, wanted });
        }
        end(plan, residence).ok_or(NoMeaning::Endless { residence: id.index() })?;
    }
    check_events(plan)
}

fn in_range(place: impl Fn() -> String, id: impl Id, limit: usize) -> Result<(), NoMeaning> {
    let found = id.index();
    if found < limit {
        return Ok(());
    }
    Err(NoMeaning::OutOfRange { place: place(), found, limit })
}

fn check_length(place: impl Fn() -> String, found: usize, wanted: usize) -> Result<(), NoMeaning> {
    if found == wanted {
        return Ok(());
    }
    Err(NoMeaning::WrongLength { place: place(), found, wanted })
}

/// For each run an entry for each operand.
fn check_bindings(graph: &Graph, plan: &Plan) -> Result<(), NoMeaning> {
    let table = || "the table of bindings".to_owned();
    check_length(table, plan.bindings.len(), plan.schedule.len())?;
    for (run, &op) in plan.schedule.iter_enumerated() {
        let op = &graph.ops()[op];
        let row = &plan.bindings[run];
        let scratch = usize::from(op.needed_scratch().is_some());
        let wanted = op.inputs.len() + op.outputs.len() + scratch;
        check_length(|| format!("the bindings of {run}"), row.len(), wanted)?;
        for &id in row.iter().flatten() {
            in_range(|| format!("a residence bound by {run}"), id, plan.residences.len())?;
        }
    }
    Ok(())
}

fn check_events(plan: &Plan) -> Result<(), NoMeaning> {
    for (index, event) in plan.events.iter().enumerate() {
        let place = || format!("what event {index} names");
        match *event {
            Event::Alloc(id) | Event::Free(id) => in_range(place, id, plan.residences.len())?,
            Event::Exec(run) | Event::Fence(run) | Event::Compact(run) => {
                in_range(place, run, plan.schedule.len())?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn size(graph: &Graph, plan: &Plan, what: Occupant) -> Size {
    match what {
        Occupant::Tensor(tensor) => graph.tensors()[tensor].size,
        Occupant::Scratch(run) => graph.ops()[plan.op(run)].scratch,
    }
}

fn end(plan: &Plan, residence: &Residence) -> Option<Bytes> {
    let start = plan.buffers[residence.buffer].offset.unwrap_or_default();
    start.checked_add(residence.offset)?.checked_add(residence.size.bound().unwrap_or_default())
}
