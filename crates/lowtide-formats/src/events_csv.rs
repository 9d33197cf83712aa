//! The events of a plan as a CSV table, one row an event.
//!
//! ~~~text
//! event_id,event_type,tensor_name,buffer_index,op_id,step,offset,bytes,space,worker,tensor_id,...
//! 1,ALLOC,y,0,5,0,0,64,arena,,7,...     before the operator that needs it first
//! 2,EXEC,-,-,5,0,,,,,,...
//! 3,FREE,x,1,5,0,64,64,arena,,3,...     after the operator that needs it last
//! ~~~
//! `docs/csv.md` describes the columns.

use crate::plan_file::space_name;
use lowtide_core::{Event, Graph, Occupant, OpId, Plan, ResidenceId, RunId, Step};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

const HEADER: [&str; 13] = [
    "event_id",
    "event_type",
    "tensor_name",
    "buffer_index",
    "op_id",
    "step",
    "offset",
    "bytes",
    "space",
    "worker",
    "tensor_id",
    "op_name",
    "op_type",
];

/// What stands where an event has no tensor and no buffer.
const NOTHING: &str = "-";

/// Writes the events of a plan, which the checker has accepted for this graph.
///
/// # Panics
/// If the plan names what it or the graph does not have.
pub fn write_events(graph: &Graph, plan: &Plan, out: impl Write) -> io::Result<()> {
    let mut table = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    table.write_record(HEADER)?;
    let mut executed = 0;
    for (event_id, &event) in (1_u64..).zip(&plan.events) {
        let row = match event {
            Event::Alloc(residence) => stay(graph, plan, residence, Step(executed)),
            Event::Exec(run) | Event::Compact(run) => Row::of(graph, plan, run.step()),
            // The operator that is waited for, in the step of the one that waits.
            Event::Fence(run) => Row { step: executed, ..Row::of(graph, plan, run.step()) },
            // FREEs follow the operator that they belong to.
            Event::Free(residence) => {
                stay(graph, plan, residence, Step(executed.saturating_sub(1)))
            }
            other => {
                let text = format!("the event table has no word for {other:?}");
                return Err(io::Error::new(io::ErrorKind::Unsupported, text));
            }
        };
        executed += u32::from(matches!(event, Event::Exec(_)));
        table.serialize(Row { event_id, event_type: name(event), ..row })?;
    }
    table.flush()
}

fn name(event: Event) -> &'static str {
    match event {
        Event::Alloc(_) => "ALLOC",
        Event::Free(_) => "FREE",
        Event::Fence(_) => "FENCE",
        Event::Compact(_) => "COMPACT",
        _ => "EXEC",
    }
}

/// One row; the fields are the columns.
#[derive(Serialize)]
struct Row<'a> {
    event_id: u64,
    event_type: &'static str,
    tensor_name: Cow<'a, str>,
    buffer_index: BufferCell,
    op_id: Option<u32>,
    step: u32,
    offset: Option<u64>,
    bytes: Option<u64>,
    space: &'static str,
    /// Nobody assigns events to workers yet.
    worker: Option<u32>,
    tensor_id: Option<u32>,
    op_name: &'a str,
    op_type: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum BufferCell {
    Buffer(u32),
    Nothing(&'static str),
}

impl<'a> Row<'a> {
    /// A row that has only a step, and the operator that runs then.
    fn of(graph: &'a Graph, plan: &Plan, step: Step) -> Self {
        let op = plan.schedule.get(RunId::new(step.0)).copied();
        let row = op.map(|op| &graph.ops()[op]);
        Self {
            event_id: 0,
            event_type: "",
            tensor_name: Cow::Borrowed(NOTHING),
            buffer_index: BufferCell::Nothing(NOTHING),
            op_id: op.map(OpId::raw),
            step: step.0,
            offset: None,
            bytes: None,
            space: "",
            worker: None,
            tensor_id: None,
            op_name: row.map_or("", |row| &row.name),
            op_type: row.map_or("", |row| &row.kind),
        }
    }
}

/// The row of a residence that comes or goes.
fn stay<'a>(graph: &'a Graph, plan: &Plan, residence: ResidenceId, step: Step) -> Row<'a> {
    let stay = &plan.residences[residence];
    let space = plan.buffers[stay.buffer].space;
    let address = plan.address(residence);
    Row {
        tensor_name: occupant_name(graph, plan, stay.what),
        buffer_index: BufferCell::Buffer(stay.buffer.raw()),
        offset: address.map(|(_, offset)| offset.0),
        bytes: stay.size.bound().map(|bytes| bytes.0),
        space: space_name(plan.spaces[space].kind),
        tensor_id: match stay.what {
            Occupant::Tensor(tensor) => Some(tensor.raw()),
            Occupant::Scratch(_) => None,
        },
        ..Row::of(graph, plan, step)
    }
}

fn occupant_name<'a>(graph: &'a Graph, plan: &Plan, what: Occupant) -> Cow<'a, str> {
    match what {
        Occupant::Tensor(tensor) => Cow::Borrowed(&graph.tensors()[tensor].name),
        Occupant::Scratch(run) => {
            Cow::Owned(format!("scratch of {}", graph.op_label(plan.op(run))))
        }
    }
}

#[cfg(test)]
mod tests;
