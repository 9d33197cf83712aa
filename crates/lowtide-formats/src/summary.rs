//! The JSON documents that commands print with `--json`; described in `docs/json.md`.
//!
//! ~~~text
//! figures of a plan ──PlanSummary──> { "version": 1, "model": ..., "arena_bytes": ..., ... }
//! ~~~
//! Byte counts are integers; fields are only ever added within a version.

use serde::Serialize;
use std::collections::BTreeMap;

/// Version of all documents here.
pub const SUMMARY_VERSION: u32 = 1;

#[derive(Serialize)]
struct Versioned<'a, T> {
    version: u32,
    #[serde(flatten)]
    body: &'a T,
}

pub(crate) fn to_json(body: &impl Serialize) -> String {
    let document = Versioned { version: SUMMARY_VERSION, body };
    let mut text = serde_json::to_string_pretty(&document).expect("numbers and text are JSON");
    text.push('\n');
    text
}

/// What `lowtide plan --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "a document of figures, each flag its own")]
pub struct PlanSummary {
    /// The file.
    pub model: String,
    /// Of the graph, as plans carry it: 32 hexadecimal digits.
    pub fingerprint: String,
    /// Operators that the file lists, constants included.
    pub ops: usize,
    /// Steps of the schedule: constants are no steps.
    pub runs: usize,
    /// Tensors: inputs, weights, constants, results.
    pub tensors: usize,
    /// Bytes of all weights and constants.
    pub weights_bytes: u64,
    /// Every tensor in memory of its own; views and weights count nothing.
    pub no_reuse_bytes: u64,
    /// The arena of the file order, with the same sharing and packing.
    pub file_order_bytes: u64,
    /// The most that is live at one step.
    pub peak_live_bytes: u64,
    /// The first step at which that much is live.
    pub peak_step: u32,
    /// The least that any order that was looked at has live at once; the plan's can be above it, in a smaller arena.
    pub least_peak_bytes: u64,
    /// Whether no order has a smaller peak than that.
    pub least_peak_proven: bool,
    /// No order can do with less.
    pub lower_bound_bytes: u64,
    /// No placement of this order can do with less.
    pub placement_bound_bytes: u64,
    /// The arena of the plan.
    pub arena_bytes: u64,
    /// Tensors of unknown size, which live in the pool.
    pub pool_tensors: usize,
    /// Pairs of operators of which one waits for the other for the sake of bytes alone, if several run at once.
    pub fences: usize,
    /// Whether every tensor has a size; the figures leave out what the pool holds.
    pub complete: bool,
    /// Whether no other order has a smaller peak; never if the plan is not complete.
    pub order_proven: bool,
    /// Whether no other placement of this order is smaller; never if the plan is not complete.
    pub placement_proven: bool,
    /// The rule that found the order.
    pub order_rule: String,
    /// How memory is reused: pack, colour or safe.
    pub reuse: String,
    /// Alignment of buffers.
    pub align_bytes: u64,
    /// Every order that was tried.
    pub tried: Vec<TriedRow>,
    /// Both colourings, in mode colour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colours: Option<ColoursRow>,
    /// Operator types without a declaration, and how many operators are of each.
    pub unknown_ops: BTreeMap<String, usize>,
    /// Names of dimensions that nobody has bound.
    pub open_dims: Vec<String>,
    /// How long the operators take, where a time is known or was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeRow>,
    /// Time of planning alone.
    pub seconds: f64,
}

/// How long the operators of a plan take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeRow {
    /// The longest chain of operators that wait for each other.
    pub critical_path_seconds: f64,
    /// Its operators by their ids.
    pub critical_path: Vec<u32>,
    /// All operators one after the other.
    pub total_seconds: f64,
    /// Operators of unknown time, which count as the mean of the others, or as 1 where no time is known.
    pub untimed_ops: usize,
    /// The plan's order on several workers.
    #[serde(flatten)]
    pub workers: Option<WorkersRow>,
}

/// How long an order takes on several workers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkersRow {
    /// How many.
    pub workers: usize,
    /// The plan's order.
    pub makespan_seconds: f64,
    /// The fastest order that was looked at.
    pub least_makespan_seconds: f64,
    /// The longest chain of operators that wait for each other if fences make them wait too.
    pub fenced_critical_path_seconds: f64,
    /// The arena where fences make operators wait; none if this plan has no fences and its mode allows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fenced_arena_bytes: Option<u64>,
    /// The arena if bytes are used again only where data orders it; none if the mode has no such plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfenced_arena_bytes: Option<u64>,
    /// Without fences the same buffers need so much at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfenced_bound_bytes: Option<u64>,
    /// The plan on 1, 2, 4, 8 and as many workers as were asked for.
    pub by_workers: Vec<ByWorkersRow>,
}

/// How long a plan takes on so many workers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ByWorkersRow {
    /// How many.
    pub workers: usize,
    /// If data alone makes operators wait, as without fences and in safe mode.
    pub makespan_seconds: f64,
    /// If fences do too.
    pub fenced_makespan_seconds: f64,
}

/// One order that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriedRow {
    /// The rule.
    pub rule: String,
    /// Its peak.
    pub peak_bytes: u64,
    /// Its arena.
    pub arena_bytes: u64,
    /// Its seconds on the workers; only with several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub makespan_seconds: Option<f64>,
}

/// Both colourings of the buffers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ColoursRow {
    /// The fewest colours that any colouring uses.
    pub optimum: usize,
    /// Coloured by the first step.
    pub by_start: ColouringRow,
    /// Coloured by the last step.
    pub by_end: ColouringRow,
}

/// One colouring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ColouringRow {
    /// How many colours.
    pub colours: usize,
    /// Bytes of all blocks.
    pub bytes: u64,
}

impl PlanSummary {
    /// As JSON, with a line end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}

/// What `lowtide check --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckSummary {
    /// The model's file.
    pub model: String,
    /// The plan's file.
    pub plan: String,
    /// Whether the plan is right.
    pub ok: bool,
    /// The arena that the plan states.
    pub arena_bytes: u64,
    /// The lower bound that it states; if the plan is right, its certificate was verified.
    pub lower_bound_bytes: u64,
    /// All faults.
    pub faults: Vec<String>,
    /// Time of checking alone.
    pub seconds: f64,
}

impl CheckSummary {
    /// As JSON, with a line end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}

/// What `lowtide pack --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PackSummary {
    /// The file.
    pub problem: String,
    /// Whether the offsets are right, and within the capacity if one was given.
    pub ok: bool,
    /// Buffers in it.
    pub buffers: usize,
    /// No placement can do with less.
    pub lower_bound_bytes: u64,
    /// Why, in a few words.
    pub bound_proof: String,
    /// The arena found, or the one that the given offsets need.
    pub arena_bytes: u64,
    /// Whether no placement is smaller.
    pub proven: bool,
    /// Why no smaller arena was looked for: `at_bound`, `at_goal`, `out_of_steps`, `ended` or `out_of_ideas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<&'static str>,
    /// Pairs of buffers looked at.
    pub steps: u64,
    /// With `--keep`: buffers that had a place in the earlier table and lie elsewhere now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<Vec<MovedRow>>,
    /// With `--check`: all faults of the given offsets.
    pub faults: Vec<String>,
    /// Time of packing or checking alone.
    pub seconds: f64,
}

/// A buffer that lies elsewhere than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MovedRow {
    /// Its name.
    pub id: String,
    /// Its offset before.
    pub from: u64,
    /// Its offset now.
    pub to: u64,
}

impl PackSummary {
    /// As JSON, with a line end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_comes_first_and_every_field_is_described() {
        let summary = CheckSummary {
            model: "m".into(),
            plan: "p".into(),
            ok: true,
            arena_bytes: 1,
            lower_bound_bytes: 1,
            faults: Vec::new(),
            seconds: 0.5,
        };
        assert!(summary.to_json().starts_with("{\n  \"version\": 1,\n  \"model\": \"m\","));
        let docs = include_str!("../../../docs/json.md");
        assert!(docs.contains(&format!("version {SUMMARY_VERSION}")));
        for field in
            ["no_reuse_bytes", "file_order_bytes", "lower_bound_bytes", "placement_proven", "tried"]
        {
            assert!(docs.contains(&format!("`{field}`")), "{field}");
        }
    }
}
