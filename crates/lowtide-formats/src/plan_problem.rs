//! The placement problem of a plan in the CSV form of `MiniMalloc`, so that other packers can be tried on it.
//!
//! ~~~text
//! buffer: conv1_out steps 2-5, then relu_out over it 5-8   ->   conv1_out,2,8,4096,64,
//! buffer of a concat: parts that come one by one           ->   cat,2,9,8192,64,2-4@0:4096
//! ~~~
//! Times are steps, and sizes are padded. Parts of a buffer that lie apart at one step are written with what lies between
//! them. `docs/csv.md` describes the columns.

use lowtide_core::{Buffer, BufferId, Bytes, Graph, Interval, Occupant, Plan, SpaceKind, Step};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::Range;

/// Writes the buffers that lie in an arena, without their offsets. A buffer is named after the first that stays in it, or
/// without a graph by its number: such a table tells nothing of the model but its sizes.
///
/// # Panics
/// If the plan is not one of the graph.
pub fn write_plan_problem(graph: Option<&Graph>, plan: &Plan, out: impl Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(["id", "lower", "upper", "size", "alignment", "gaps"])?;
    let mut names = BTreeSet::new();
    for (id, buffer) in plan.buffers.iter_enumerated() {
        if plan.spaces[buffer.space].kind != SpaceKind::Arena || buffer.parts.is_empty() {
            continue;
        }
        let mut name = graph.map_or_else(|| id.to_string(), |graph| name(graph, plan, buffer));
        if !names.insert(name.clone()) {
            name = format!("{name} ({id})");
            names.insert(name.clone());
        }
        table.write_record(row(plan, id, name))?;
    }
    table.flush()
}

fn name(graph: &Graph, plan: &Plan, buffer: &Buffer) -> String {
    match plan.residences[buffer.parts.start].what {
        Occupant::Tensor(tensor) => match &*graph.tensors()[tensor].name {
            "" => tensor.to_string(),
            name => name.to_owned(),
        },
        Occupant::Scratch(run) => format!("scratch of {}", plan.op(run)),
    }
}

fn row(plan: &Plan, id: BufferId, name: String) -> [String; 6] {
    let parts = parts(plan, &plan.buffers[id]);
    let size = parts.iter().map(|(bytes, _)| bytes.end).max().unwrap_or_default();
    let span = parts.iter().map(|&(_, span)| span).reduce(Interval::hull).unwrap_or_default();
    let gaps = gaps(&parts, size);
    let align = plan.buffers[id].align.bytes();
    let numbers = [u64::from(span.start.0), u64::from(span.end.0), size.0, align.0];
    let [lower, upper, size, align] = numbers.map(|number| number.to_string());
    [name, lower, upper, size, align, gaps]
}

/// The bytes of each residence of a buffer, padded, and when it has them.
fn parts(plan: &Plan, buffer: &Buffer) -> Vec<(Range<Bytes>, Interval)> {
    let rows = plan.residences.range(buffer.parts.clone()).iter();
    let parts = rows.filter_map(|row| {
        let end = row.offset.checked_add(row.size.bound()?)?.align_up(plan.align)?;
        Some((row.offset..end, row.span))
    });
    parts.collect()
}

/// The times during which not all bytes are taken: `2-4@0:4096`, or `2-4` where none are.
fn gaps(parts: &[(Range<Bytes>, Interval)], size: Bytes) -> String {
    let times: BTreeSet<Step> = parts.iter().flat_map(|(_, span)| [span.start, span.end]).collect();
    let times: Vec<Step> = times.into_iter().collect();
    let mut gaps: Vec<(Interval, Option<Range<Bytes>>)> = Vec::new();
    for pair in times.windows(2) {
        let now = Interval::new(pair[0], pair[1]);
        let taken = taken(parts, now);
        if taken == Some(Bytes::ZERO..size) {
            continue;
        }
        match gaps.last_mut() {
            Some((span, window)) if span.end == now.start && *window == taken => span.end = now.end,
            _ => gaps.push((now, taken)),
        }
    }
    let texts = gaps.iter().map(|(span, window)| match window {
        None => format!("{}-{}", span.start.0, span.end.0),
        Some(Range { start, end }) => {
            format!("{}-{}@{}:{}", span.start.0, span.end.0, start.0, end.0)
        }
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// From the first byte that is taken during a time to the last one.
fn taken(parts: &[(Range<Bytes>, Interval)], now: Interval) -> Option<Range<Bytes>> {
    let live = parts.iter().filter(|(bytes, span)| span.overlaps(now) && !bytes.is_empty());
    live.map(|(bytes, _)| bytes.clone()).reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
}
