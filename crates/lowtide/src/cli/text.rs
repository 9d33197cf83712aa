//! The summary of a plan, for people.

use super::time;
use lowtide::core::Bytes;
use lowtide::formats::{CurveStyle, PlanSummary, live_curve, memory_curve};
use lowtide::{Loaded, Planned, standing_at_peak};
use std::fmt::Write;

/// How many tensors, types or rules are listed before the rest is counted.
const SHOWN: usize = 5;

/// The four figures, what stands at the peak, a small memory curve.
pub(super) fn plan(loaded: &Loaded, planned: &Planned, figures: &PlanSummary) -> String {
    let mut text = String::new();
    head(&mut text, figures);
    incomplete(&mut text, loaded, figures);
    four_figures(&mut text, figures);
    time::figures(&mut text, figures);
    colours(&mut text, figures);
    unknown_ops(&mut text, figures);
    peak(&mut text, loaded, planned);
    if planned.plan.stats.peak_live_bytes == Bytes::ZERO {
        return text;
    }
    let live = live_curve(&planned.plan);
    let bound = Some(planned.plan.order_bound.bytes).filter(|bytes| *bytes > Bytes::ZERO);
    text += "\n";
    text += &memory_curve(&live, &CurveStyle { lower_bound: bound, ..CurveStyle::default() });
    text
}

/// Appends a line; writing to a string cannot fail.
macro_rules! line {
    ($text:expr, $($arg:tt)*) => {
        let _ = writeln!($text, $($arg)*);
    };
}

fn head(text: &mut String, figures: &PlanSummary) {
    let PlanSummary { model, ops, runs, tensors, seconds, .. } = figures;
    let weights = Bytes(figures.weights_bytes);
    let constants =
        if ops == runs { String::new() } else { format!(" ({} of them constants)", ops - runs) };
    line!(text, "{model}: {ops} operators{constants}, {tensors} tensors, {weights} of weights");
    line!(
        text,
        "planned in {:.1} ms: order by rule {}, mode {}",
        seconds * 1e3,
        figures.order_rule,
        figures.reuse
    );
    line!(text, "");
}

fn four_figures(text: &mut String, figures: &PlanSummary) {
    let all = figures.no_reuse_bytes;
    line!(text, "  {:<20} {:>12}  {:>8}", "", "", "saved");
    let mut row = |name: &str, bytes: u64, note: &str| {
        let saved = if bytes == all { String::new() } else { saved(bytes, all) };
        let bytes = Bytes(bytes).to_string();
        let row = format!("  {name:<20} {bytes:>12}  {saved:>8}  {note}");
        line!(text, "{}", row.trim_end());
    };
    row("every tensor kept", all, "");
    row("file order, reuse", figures.file_order_bytes, "");
    row("planned", figures.arena_bytes, &proven(figures));
    if figures.arena_bytes > figures.least_peak_bytes && figures.reuse == "pack" {
        row("least live at once", figures.least_peak_bytes, &least(figures));
    }
    row("lower bound", figures.lower_bound_bytes, "");
}

/// What is known of the least peak, and whether the plan itself needs more, as it packs into less.
fn least(figures: &PlanSummary) -> String {
    let mut notes: Vec<String> = Vec::new();
    if figures.least_peak_proven {
        notes.push("least of all orders, proven".to_owned());
    }
    if figures.peak_live_bytes > figures.least_peak_bytes {
        let own = Bytes(figures.peak_live_bytes);
        notes.push(format!("this plan holds {own} and packs into less"));
    }
    notes.join("; ")
}

/// What is saved against every tensor kept, in percent.
fn saved(bytes: u64, all: u64) -> String {
    if all == 0 {
        return String::new();
    }
    #[expect(clippy::cast_precision_loss, reason = "one digit behind the point is printed")]
    let percent = (1.0 - bytes as f64 / all as f64) * 100.0;
    format!("{percent:.1} %")
}

fn proven(figures: &PlanSummary) -> String {
    if !figures.complete || figures.reuse != "pack" {
        return String::new();
    }
    match (figures.order_proven, figures.placement_proven) {
        (true, true) => "optimal, proven".to_owned(),
        (false, true) => format!(
            "placement optimal for this order; {} above the bound on all orders",
            Bytes(figures.arena_bytes - figures.lower_bound_bytes)
        ),
        (_, false) => format!(
            "{} lost to placement, {} above the bound on all orders",
            Bytes(figures.arena_bytes - figures.placement_bound_bytes),
            Bytes(figures.arena_bytes - figures.lower_bound_bytes)
        ),
    }
}

fn colours(text: &mut String, figures: &PlanSummary) {
    let Some(colours) = &figures.colours else { return };
    line!(text, "");
    line!(text, "colours, at least {}:", colours.optimum);
    for (name, row) in [("by first step", &colours.by_start), ("by last step", &colours.by_end)] {
        line!(text, "  {name:<20} {:>12}  {} colours", Bytes(row.bytes).to_string(), row.colours);
    }
}

/// What the figures leave out: said before them, since they mean little without it.
fn incomplete(text: &mut String, loaded: &Loaded, figures: &PlanSummary) {
    if figures.complete {
        return;
    }
    let unknown = figures.pool_tensors;
    line!(
        text,
        "INCOMPLETE: {unknown} tensors of unknown size go to the pool; the figures leave them out"
    );
    if !loaded.open_dims.is_empty() {
        let names = some(loaded.open_dims.iter().map(|name| format!("`{name}`")));
        line!(
            text,
            "  bind dimensions with --dim NAME=N or bound them with --max-dim NAME=N: {names}"
        );
    }
    let tensors = loaded.graph.tensors();
    let names = loaded.unknown_tensors.iter().map(|&id| format!("`{}`", tensors[id].name));
    line!(text, "  of unknown size: {}", some(names));
    line!(text, "");
}

fn unknown_ops(text: &mut String, figures: &PlanSummary) {
    if figures.unknown_ops.is_empty() {
        return;
    }
    let types = figures.unknown_ops.iter().map(|(kind, count)| format!("{kind} ({count})"));
    line!(text, "");
    line!(text, "operators without a declaration share nothing: {}", some(types));
}

/// The first few of a list, and how many more there are.
fn some(items: impl ExactSizeIterator<Item = String>) -> String {
    let rest = items.len().saturating_sub(SHOWN);
    let mut shown: Vec<String> = items.take(SHOWN).collect();
    if rest > 0 {
        shown.push(format!("and {rest} more"));
    }
    shown.join(", ")
}

fn peak(text: &mut String, loaded: &Loaded, planned: &Planned) {
    let plan = &planned.plan;
    if plan.stats.peak_live_bytes == Bytes::ZERO {
        return;
    }
    let step = plan.stats.peak_step;
    let op = planned.order.schedule().as_slice()[step.index()];
    let (label, kind) = (loaded.graph.op_label(op), &loaded.graph.ops()[op].kind);
    line!(text, "");
    line!(
        text,
        "at the peak {} are live, in step {step}, operator `{label}` ({kind}):",
        plan.stats.peak_live_bytes
    );
    let standing = standing_at_peak(&loaded.graph, plan);
    for row in standing.iter().take(SHOWN) {
        let size = row.size.to_string();
        line!(
            text,
            "  {size:>12}  `{}`, held from step {} to {}",
            row.name,
            row.first_step,
            row.last_step
        );
    }
    if standing.len() > SHOWN {
        line!(text, "  and {} more", standing.len() - SHOWN);
    }
}
