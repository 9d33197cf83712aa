//! Time at the command line: a machine, measured times and workers in; seconds out.

use super::args::{PlannerArgs, threads};
use anyhow::Context;
use lowtide::Loaded;
use lowtide::core::{Bytes, MOST_SECONDS};
use lowtide::formats::{self, PlanSummary, WorkersRow};
use lowtide::ops::Machine;
use lowtide::planner::PlanConfig;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// How long operators take, and how long a plan may.
#[derive(Debug, clap::Args)]
pub(super) struct TimeArgs {
    /// How fast the machine is, as in flops=7e10,bandwidth=1e10,overhead=1e-6 (the defaults): calculations and bytes a
    /// second, and seconds for each operator. Gives the operators of an ONNX model their times.
    #[arg(long, value_name = "NAME=N,...", value_parser = machine)]
    machine: Option<Machine>,
    /// Measured times of operators as CSV, instead of estimated ones (docs/csv.md).
    #[arg(long, value_name = "FILE")]
    pub(super) times: Option<PathBuf>,
    /// Count how long the plan takes on so many workers that run operators side by side.
    #[arg(long, value_name = "N", default_value = "1", value_parser = threads)]
    workers: NonZeroUsize,
    /// Keep the smallest arena of the orders that take at most so much longer on the workers than the fastest one, as in 5%.
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_negative_numbers = true)]
    max_slowdown: Option<f64>,
}

impl TimeArgs {
    pub(super) fn machine(&self) -> Machine {
        self.machine.unwrap_or_default()
    }

    pub(super) fn config(&self, config: &PlanConfig) -> PlanConfig {
        PlanConfig { workers: self.workers, slowdown: self.max_slowdown, ..config.clone() }
    }

    /// The same model with the measured times.
    pub(super) fn measured(&self, loaded: Loaded) -> anyhow::Result<Loaded> {
        let Some(path) = &self.times else { return Ok(loaded) };
        let name = path.display();
        let bytes = std::fs::read(path).with_context(|| format!("cannot read `{name}`"))?;
        let times = formats::read_times(&bytes, &loaded.graph);
        let times = times.with_context(|| format!("`{name}` has no times of this model"))?;
        Ok(Loaded { graph: loaded.graph.with_costs(&times)?, ..loaded })
    }

    /// Flags that were given and mean nothing beside the others.
    pub(super) fn unused(&self, planner: &PlannerArgs) -> Option<&'static str> {
        let is_given = self.max_slowdown.is_some() && !planner.finds_order();
        is_given.then_some("--max-slowdown")
    }

    /// What a user of these flags should know.
    pub(super) fn warning(&self, loaded: &Loaded) -> Option<&'static str> {
        if self.max_slowdown.is_some() && self.workers == NonZeroUsize::MIN {
            return Some(
                "on one worker all orders take equally long: --max-slowdown wants --workers",
            );
        }
        if self.machine.is_some() && loaded.model.is_none() {
            return Some(
                "--machine is for ONNX models: a graph file says how long its operators take",
            );
        }
        let is_known = loaded.graph.ops().iter().any(|op| op.cost.is_some());
        let is_asked = self.workers > NonZeroUsize::MIN;
        (is_asked && !is_known)
            .then_some("no operator's time is known (--times gives them): each counts as 1 s")
    }
}

fn machine(text: &str) -> Result<Machine, String> {
    let wanted =
        || "wanted flops=N,bandwidth=N,overhead=N or some of them, as in flops=7e10".to_owned();
    let mut machine = Machine::default();
    let mut given: Vec<&str> = Vec::new();
    for part in text.split(',') {
        let (name, number) = part.split_once('=').ok_or_else(wanted)?;
        let name = name.trim();
        if given.contains(&name) {
            return Err(format!("`{part}`: {name} is given twice"));
        }
        given.push(name);
        let (field, range) = match name {
            "flops" => (&mut machine.flops_per_second, 1.0..=1e30),
            "bandwidth" => (&mut machine.bytes_per_second, 1.0..=1e30),
            "overhead" => (&mut machine.overhead_seconds, 0.0..=MOST_SECONDS),
            _ => return Err(wanted()),
        };
        let number: Option<f64> = number.trim().parse().ok();
        let number = number.filter(|number| range.contains(number));
        *field = number.ok_or_else(|| {
            format!("`{part}`: wanted a number from {} to {:e}", range.start(), range.end())
        })?;
    }
    Ok(machine)
}

/// 5% or 5 as 0.05.
fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    let number = number.filter(|number| *number >= 0.0);
    number.map(|number| number / 100.0).ok_or_else(|| "wanted a percentage, as in 5%".to_owned())
}

/// What a summary says of time; writing to a string cannot fail.
pub(super) fn figures(text: &mut String, figures: &PlanSummary) {
    let Some(time) = &figures.time else { return };
    let total = seconds(time.total_seconds);
    let path = seconds(time.critical_path_seconds);
    let _ = writeln!(text);
    let _ = writeln!(text, "  {:<20} {total:>12}", "all operators");
    let ops = time.critical_path.len();
    let _ = writeln!(
        text,
        "  {:<20} {path:>12}  {ops} operators; no number of workers is faster",
        "critical path"
    );
    if let Some(row) = &time.workers {
        let name = format!("on {} workers", row.workers);
        let least = row.least_makespan_seconds;
        let more = if least > 0.0 { (row.makespan_seconds / least - 1.0) * 100.0 } else { 0.0 };
        let found = seconds(row.makespan_seconds);
        let _ = writeln!(
            text,
            "  {name:<20} {found:>12}  {more:.1} % longer than the fastest order found, {}",
            seconds(least)
        );
    }
    if let Some(row) = &time.workers {
        by_workers(text, figures, row);
    }
    if time.untimed_ops > 0 {
        let _ =
            writeln!(text, "  {} operators of unknown time count as the mean", time.untimed_ops);
    }
}

/// What fences cost on several workers, and what they save.
fn by_workers(text: &mut String, figures: &PlanSummary, row: &WorkersRow) {
    let path = figures.time.as_ref().map_or(0.0, |time| time.critical_path_seconds);
    let arena = |bytes: Option<u64>| bytes.map_or("-".to_owned(), |n| Bytes(n).to_string());
    let mut line = |name: &str, fenced: &str, without: &str| {
        let _ = writeln!(text, "  {name:<20} {fenced:>12} {without:>16}");
    };
    line("", "with fences", "without fences");
    line("arena", &arena(row.fenced_arena_bytes), &arena(row.unfenced_arena_bytes));
    line("  at least", "", &arena(row.unfenced_bound_bytes));
    line("critical path", &seconds(row.fenced_critical_path_seconds), &seconds(path));
    for by in &row.by_workers {
        let name = format!("on {} worker{}", by.workers, if by.workers == 1 { "" } else { "s" });
        line(&name, &seconds(by.fenced_makespan_seconds), &seconds(by.makespan_seconds));
    }
    trade(text, row);
}

/// How much of the one for how much of the other.
fn trade(text: &mut String, row: &WorkersRow) {
    let (Some(with), Some(without)) = (row.fenced_arena_bytes, row.unfenced_arena_bytes) else {
        return;
    };
    let asked = row.by_workers.iter().find(|by| by.workers == row.workers);
    let Some(by) = asked.filter(|by| with > 0 && by.makespan_seconds > 0.0) else { return };
    let hundredths = without.saturating_mul(100) / with;
    let _ = writeln!(
        text,
        "  without fences {}.{:02} times the arena, and on {} workers {:.2} times as fast",
        hundredths / 100,
        hundredths % 100,
        by.workers,
        by.fenced_makespan_seconds / by.makespan_seconds
    );
}

/// Seconds in a unit that suits them.
fn seconds(seconds: f64) -> String {
    match seconds {
        0.0 => "0 s".to_owned(),
        s if s < 1e-3 => format!("{:.2} us", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_given_in_part() {
        let found = machine("overhead=0, flops=1e12").unwrap();
        let wanted =
            Machine { flops_per_second: 1e12, overhead_seconds: 0.0, ..Machine::default() };
        assert_eq!(found, wanted);
        assert_eq!(machine("flops=0"), Err("`flops=0`: wanted a number from 1 to 1e30".to_owned()));
        assert!(machine("").is_err() && machine("cores=2").is_err());
        assert!(machine("overhead=-1").is_err() && machine("bandwidth=inf").is_err());
        assert_eq!(machine("flops=1,flops=2"), Err("`flops=2`: flops is given twice".to_owned()));
        assert!(machine("overhead=1e13").is_err());
    }

    #[test]
    fn percentages_may_carry_their_sign() {
        assert_eq!(
            (percent("5%"), percent("5"), percent("inf")),
            (Ok(0.05), Ok(0.05), Ok(f64::INFINITY))
        );
        assert!(percent("-1").is_err() && percent("nan").is_err() && percent("x").is_err());
    }

    #[test]
    fn seconds_have_a_unit_that_suits_them() {
        let texts = [0.0, 2.5e-6, 0.0125, 3.0].map(seconds);
        assert_eq!(texts, ["0 s", "2.50 us", "12.50 ms", "3.00 s"]);
    }
}
