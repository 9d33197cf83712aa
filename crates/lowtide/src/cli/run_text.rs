//! The summary of runs, for people.

use lowtide::core::{Bytes, DType};
use lowtide::formats::{Array, RunSummary};
use std::fmt::Write;

/// Outputs and types of operators that are listed before the rest is counted.
const SHOWN: usize = 8;

/// Appends a line; writing to a string cannot fail.
macro_rules! line {
    ($text:expr, $($arg:tt)*) => {
        let _ = writeln!($text, $($arg)*);
    };
}

/// What came out, how long it took, what memory it took.
pub(super) fn run(figures: &RunSummary, outputs: &[Array], labels: &[String]) -> String {
    let mut text = String::new();
    let RunSummary { model, mode, repeats, load_seconds, threads, .. } = figures;
    let runs = if *repeats == 1 { "run once".to_owned() } else { format!("run {repeats} times") };
    let guarded = if figures.guard { ", guarded" } else { "" };
    line!(
        text,
        "{model}: loaded and planned in {:.1} ms, {runs} in mode {mode}{guarded}, {}",
        load_seconds * 1e3,
        if *threads == 1 { "one thread".to_owned() } else { format!("{threads} threads") }
    );
    line!(text, "");
    for (row, output) in figures.outputs.iter().zip(outputs).take(SHOWN) {
        let largest = largest(output).map_or_else(String::new, |found| found.text(labels));
        line!(text, "output `{}` {} {:?}{largest}", row.name, row.dtype, row.shape);
    }
    if outputs.len() > SHOWN {
        line!(text, "and {} more", outputs.len() - SHOWN);
    }
    line!(text, "");
    figures_of(&mut text, figures);
    profile(&mut text, figures);
    text
}

fn figures_of(text: &mut String, figures: &RunSummary) {
    let latency = figures.latency_ms;
    let mut row = |name: &str, value: String, note: &str| {
        let row = format!("  {name:<22} {value:>12}  {note}");
        line!(text, "{}", row.trim_end());
    };
    let note = match figures.repeats {
        1 => "the first run".to_owned(),
        _ => {
            format!("median; least {:.3} ms, nine in ten below {:.3} ms", latency.min, latency.p90)
        }
    };
    row("latency", format!("{:.3} ms", latency.median), &note);
    let bytes = |bytes: u64| Bytes(bytes).to_string();
    row("arena", bytes(figures.arena_bytes), "planned; one block, all intermediate tensors");
    if figures.outputs_bytes > 0 {
        row("outputs", bytes(figures.outputs_bytes), "left to the caller by the plan");
    }
    if figures.pool_peak_bytes > 0 {
        row("pool", bytes(figures.pool_peak_bytes), "at most at once; sizes known in the run only");
    }
    row("kernels", bytes(figures.kernel_bytes), "declared; what libraries keep for packing");
    if figures.rss_loaded_bytes > 0 {
        row(
            "resident in the runs",
            bytes(figures.rss_run_bytes),
            "measured, above the loaded model",
        );
    }
    let copied = Bytes(figures.weights_copied_bytes);
    let note = if copied == Bytes::ZERO {
        "read where they lie in the file".to_owned()
    } else {
        format!("{copied} of them copied, as they lie unaligned in the file")
    };
    row("weights", bytes(figures.weights_bytes), &note);
    if figures.rss_peak_bytes > 0 {
        row("resident at most", bytes(figures.rss_peak_bytes), "measured, the whole process");
    }
}

fn profile(text: &mut String, figures: &RunSummary) {
    let Some(rows) = &figures.profile else { return };
    let all: f64 = rows.iter().map(|row| row.ms).sum();
    line!(text, "");
    line!(text, "  {:<28} {:>6} {:>12} {:>8}", "type", "count", "ms a run", "share");
    for row in rows {
        let share = if all > 0.0 { row.ms / all * 100.0 } else { 0.0 };
        line!(text, "  {:<28} {:>6} {:>12.4} {share:>6.1} %", row.kind, row.count, row.ms);
    }
}

/// The largest element of an output.
struct Largest {
    at: usize,
    value: f32,
    len: usize,
}

impl Largest {
    fn text(&self, labels: &[String]) -> String {
        let Self { at, value, len } = self;
        let label = labels.get(*at).filter(|_| labels.len() == *len);
        let label = label.map_or_else(String::new, |label| format!(", class `{label}`"));
        format!(": largest {value:.4} at {at}{label}")
    }
}

/// The largest element of an output that could be scores of classes.
fn largest(output: &Array) -> Option<Largest> {
    let (&len, rest) = output.dims().split_last()?;
    if output.dtype() != DType::F32 || len < 2 || rest.iter().any(|&dim| dim != 1) {
        return None;
    }
    let values = output
        .bytes()
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes(bytes.try_into().expect("a chunk has four bytes")));
    let (at, value) = values.enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Largest { at, value, len })
}
