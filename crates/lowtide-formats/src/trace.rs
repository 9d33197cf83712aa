//! What really ran, as a trace for Perfetto or Chrome: operators by worker, and the bytes of the arena over time.
//!
//! ~~~text
//! operators   worker 0           |  conv  |    relu    |
//!             worker 1           |~~waits~~| pad |
//! arena       arena bytes held   ___/‾‾‾‾‾‾\____/‾‾‾‾‾         a counter
//!             allocs and frees   |  |      |    |               a row of its own, so that it can be hidden
//! ~~~
//! The form is JSON, an object with `traceEvents`, in microseconds since the run began; `docs/trace.md` describes it.
//! Cost: O(n log n) in operands and residences.

mod held;
mod moments;

use held::{Change, changes};
use lowtide_core::{Graph, Occupant, Plan, Ran, ResidenceId, TensorId};
use moments::moments;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

/// The process of a trace in which operators run.
const OPERATORS: u32 = 1;
/// The process of a trace that shows memory.
const ARENA: u32 = 2;

/// Writes what one run of a graph did. `ran` may be in any order; of a whole run it may lack what had nothing to do, such
/// as views and parts in place: these count as done once their inputs are. If it is empty, so is the trace.
///
/// # Errors
/// If `out` cannot be written.
///
/// # Panics
/// If the plan names what it or the graph does not have, or `ran` what the plan does not.
pub fn write_trace(graph: &Graph, plan: &Plan, ran: &[Ran], mut out: impl Write) -> io::Result<()> {
    let mut rows = Vec::new();
    if !ran.is_empty() {
        names(ran, &mut rows);
        operators(graph, plan, ran, &mut rows);
        memory(graph, plan, &changes(plan, &moments(graph, plan, ran)), &mut rows);
    }
    serde_json::to_writer(&mut out, &Trace { display_time_unit: "ns", trace_events: rows })?;
    out.flush()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Trace<'a> {
    display_time_unit: &'static str,
    trace_events: Vec<Row<'a>>,
}

/// One event; the fields are those of the format.
#[derive(Serialize)]
struct Row<'a> {
    name: String,
    /// `M`: a name, `X`: with a duration, `C`: a counter, `i`: at one instant.
    ph: &'static str,
    pid: u32,
    tid: u32,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    cat: &'a str,
    /// How far the line of an instant reaches: `t`, its own row.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    args: Args<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Args<'a> {
    Name { name: String },
    Wait { step: u32 },
    Operator(OperatorArgs<'a>),
    Counter { bytes: u64 },
    Stay(OperandArgs),
}

#[derive(Serialize)]
struct OperatorArgs<'a> {
    /// The step of the plan, which is also the number of the run.
    step: u32,
    op_id: u32,
    op_type: &'a str,
    inputs: Vec<OperandArgs>,
    outputs: Vec<OperandArgs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scratch: Option<OperandArgs>,
}

/// A value and where it is; what the plan does not place has no residence, and no offset.
#[derive(Serialize)]
struct OperandArgs {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    residence: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
}

impl Row<'_> {
    /// A row without anything that only some have.
    fn new(name: impl Into<String>, ph: &'static str, (pid, tid): (u32, u32)) -> Self {
        let args = Args::Name { name: String::new() };
        Self { name: name.into(), ph, pid, tid, ts: 0.0, dur: None, cat: "", s: None, args }
    }
}

/// Microseconds, exact to the nanosecond.
fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e9).round() / 1e3
}

/// Names of processes and rows.
fn names(ran: &[Ran], rows: &mut Vec<Row<'_>>) {
    let mut name = |what, row, name: &str| {
        rows.push(Row { args: Args::Name { name: name.to_owned() }, ..Row::new(what, "M", row) });
    };
    name("process_name", (OPERATORS, 0), "operators");
    let workers: BTreeSet<u32> = ran.iter().map(|ran| ran.worker).collect();
    for worker in workers {
        name("thread_name", (OPERATORS, worker), &format!("worker {worker}"));
    }
    name("process_name", (ARENA, 0), "arena");
    name("thread_name", (ARENA, 0), "allocs and frees");
}

/// What each worker did, and before that where it waited.
fn operators<'a>(graph: &'a Graph, plan: &Plan, ran: &[Ran], rows: &mut Vec<Row<'a>>) {
    let mut ran = ran.to_vec();
    ran.sort_by_key(|ran| (ran.worker, ran.start, ran.end, ran.run));
    let mut before: Option<(u32, Duration)> = None;
    for ran in &ran {
        let at = (OPERATORS, ran.worker);
        // A worker that is said to have waited while it ran something has waited since then.
        let earliest = before.filter(|&(worker, _)| worker == ran.worker).map(|(_, end)| end);
        let waits = ran.start.saturating_sub(ran.waited).max(earliest.unwrap_or_default());
        if !ran.waited.is_zero() && waits < ran.start {
            let (ts, dur) = (micros(waits), Some(micros(ran.start.saturating_sub(waits))));
            let args = Args::Wait { step: ran.run.raw() };
            rows.push(Row { ts, dur, cat: "wait", args, ..Row::new("waits", "X", at) });
        }
        let op = plan.op(ran.run);
        rows.push(Row {
            ts: micros(ran.start),
            dur: Some(micros(ran.end.saturating_sub(ran.start))),
            cat: &graph.ops()[op].kind,
            args: Args::Operator(operands(graph, plan, ran)),
            ..Row::new(graph.op_label(op), "X", at)
        });
        before = Some((ran.worker, ran.end));
    }
}

fn operands<'a>(graph: &'a Graph, plan: &Plan, ran: &Ran) -> OperatorArgs<'a> {
    let op = plan.op(ran.run);
    let row = &graph.ops()[op];
    let bindings = &plan.bindings[ran.run];
    let (inputs, others) = bindings.split_at(row.inputs.len());
    let shown = |tensors: &[TensorId], bound: &[Option<ResidenceId>]| {
        let operands = tensors.iter().zip(bound);
        operands.map(|(&tensor, &bound)| operand(graph, plan, tensor, bound)).collect()
    };
    OperatorArgs {
        step: ran.run.raw(),
        op_id: op.raw(),
        op_type: &row.kind,
        inputs: shown(&row.inputs, inputs),
        outputs: shown(&row.outputs, others),
        scratch: others.get(row.outputs.len()).copied().flatten().map(|id| stay(graph, plan, id)),
    }
}

fn operand(
    graph: &Graph,
    plan: &Plan,
    tensor: TensorId,
    bound: Option<ResidenceId>,
) -> OperandArgs {
    // A view may begin inside the storage that holds it.
    let start = graph.extent(tensor).start;
    let address = bound.and_then(|id| plan.address(id));
    OperandArgs {
        name: graph.tensor_label(tensor),
        bytes: graph.tensors()[tensor].size.bound().map(|bytes| bytes.0),
        residence: bound.map(ResidenceId::raw),
        offset: address.map(|(_, offset)| (offset + start).0),
    }
}

/// What a residence holds, and where.
fn stay(graph: &Graph, plan: &Plan, id: ResidenceId) -> OperandArgs {
    let row = &plan.residences[id];
    let name = match row.what {
        Occupant::Tensor(tensor) => graph.tensor_label(tensor),
        Occupant::Scratch(run) => format!("scratch of {}", graph.op_label(plan.op(run))),
    };
    OperandArgs {
        name,
        bytes: row.size.bound().map(|bytes| bytes.0),
        residence: Some(id.raw()),
        offset: plan.address(id).map(|(_, offset)| offset.0),
    }
}

/// What comes and goes, and what is held after all of one moment.
fn memory<'a>(graph: &'a Graph, plan: &Plan, changes: &[Change], rows: &mut Vec<Row<'a>>) {
    let next = changes.iter().skip(1).map(|change| Some(change.at)).chain([None]);
    for (change, next) in changes.iter().zip(next) {
        let ts = micros(change.at);
        let args = stay(graph, plan, change.residence);
        let what = if change.is_alloc { "ALLOC" } else { "FREE" };
        let name = format!("{what} {}", args.name);
        rows.push(Row {
            ts,
            cat: "memory",
            s: Some("t"),
            args: Args::Stay(args),
            ..Row::new(name, "i", (ARENA, 0))
        });
        if next != Some(change.at) {
            let args = Args::Counter { bytes: change.held.0 };
            rows.push(Row { ts, args, ..Row::new("arena bytes held", "C", (ARENA, 0)) });
        }
    }
}

#[cfg(test)]
mod tests;
