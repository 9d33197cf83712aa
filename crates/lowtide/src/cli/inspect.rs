//! `lowtide inspect`.

use super::args::{InspectArgs, SortArg};
use super::{Answer, out, progress};
use lowtide::core::Bytes;
use lowtide::formats::{InspectSummary, OperatorRow};
use lowtide::{inspect, load};
use std::cmp::Reverse;

pub(super) fn run(args: &InspectArgs) -> anyhow::Result<Answer> {
    let options = args.model.options()?;
    let path = &args.model.model;
    let name = path.display().to_string();
    let (loaded, _) = progress::during(&format!("reading {name}"), || load(path, &options));
    let loaded = loaded?;
    let mut summary = inspect(&name, &loaded);
    sort(&mut summary.operators, args.sort);
    if let Some(top) = args.top {
        summary.operators.truncate(top);
    }
    let text = if args.json { summary.to_json() } else { text(&summary) };
    out::print(&text)?;
    Ok(Answer::Yes)
}

/// Bytes of the results of an operator that have memory of their own.
fn bytes(row: &OperatorRow) -> u64 {
    let storages = row.outputs.iter().filter(|result| result.is_storage);
    storages.filter_map(|result| result.bytes).fold(0, u64::saturating_add)
}

/// Steps for which the results of an operator are needed.
fn life(row: &OperatorRow) -> u32 {
    let lives = row.outputs.iter().map(|result| result.last_step - result.first_step);
    lives.max().unwrap_or(0)
}

fn sort(rows: &mut [OperatorRow], by: SortArg) {
    match by {
        SortArg::Id => {}
        SortArg::Type => rows.sort_by(|a, b| a.kind.cmp(&b.kind)),
        SortArg::Bytes => rows.sort_by_key(|row| Reverse(bytes(row))),
        SortArg::Macs => rows.sort_by_key(|row| Reverse(row.cost.map(|cost| cost.macs))),
        SortArg::Flops => rows.sort_by_key(|row| Reverse(row.cost.map(|cost| cost.flops))),
        SortArg::Life => rows.sort_by_key(|row| Reverse(life(row))),
    }
}

/// Counts in thousands, millions and so on, as models are compared.
fn short(count: u64) -> String {
    const UNITS: [&str; 6] = ["", " k", " M", " G", " T", " P"];
    #[expect(clippy::cast_precision_loss, reason = "three digits are printed")]
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { count.to_string() } else { format!("{value:.2}{}", UNITS[unit]) }
}

fn text(summary: &InspectSummary) -> String {
    let mut lines = totals(summary);
    lines.push(String::new());
    lines.push(format!(
        "{:>6}  {:<20} {:<28} {:>12} {:>10} {:>10}  {:>11}  name",
        "id", "type", "shape of the result", "bytes", "MACs", "flops", "life"
    ));
    lines.extend(summary.operators.iter().map(line));
    lines.join("\n") + "\n"
}

fn totals(summary: &InspectSummary) -> Vec<String> {
    let InspectSummary { model, ops, tensors, .. } = summary;
    let mut lines = vec![
        format!("{model}: {ops} operators, {tensors} tensors"),
        format!(
            "  parameters  {:>10}   {} of weights and constants",
            short(summary.parameters),
            Bytes(summary.weights_bytes)
        ),
        format!("  MACs        {:>10}   {} flops", short(summary.macs), short(summary.flops)),
        format!("  activations {:>10}", Bytes(summary.activation_bytes).to_string()),
    ];
    if summary.unknown_tensors > 0 {
        lines.push(format!("  {} results of unknown size are left out", summary.unknown_tensors));
    }
    if summary.uncosted_ops > 0 {
        lines.push(format!("  {} operators of unknown cost are left out", summary.uncosted_ops));
    }
    if let Some(values) = summary.values {
        lines.push(format!(
            "  values      {} in place, {} to be copied once, {} decoded, {} in other files, {} absent",
            Bytes(values.in_place_bytes),
            Bytes(values.unaligned_bytes),
            Bytes(values.decoded_bytes),
            Bytes(values.external_bytes),
            Bytes(values.absent_bytes)
        ));
    }
    lines
}

fn line(row: &OperatorRow) -> String {
    let first = row.outputs.first();
    let unknown = || "?".to_owned();
    let shape =
        first.map_or_else(String::new, |result| result.shape.clone().unwrap_or_else(unknown));
    let size = match first {
        None => String::new(),
        Some(result) if !result.is_storage => "view".to_owned(),
        Some(result) => result.bytes.map_or_else(unknown, |bytes| Bytes(bytes).to_string()),
    };
    let count = |of: Option<u64>| of.map_or_else(unknown, short);
    let life = first.map_or_else(String::new, |r| format!("{}-{}", r.first_step, r.last_step));
    format!(
        "{:>6}  {:<20} {shape:<28} {size:>12} {:>10} {:>10}  {life:>11}  {}",
        row.id,
        row.kind,
        count(row.cost.map(|cost| cost.macs)),
        count(row.cost.map(|cost| cost.flops)),
        row.name
    )
}
