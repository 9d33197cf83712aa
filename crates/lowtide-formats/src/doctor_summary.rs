//! What `lowtide doctor --json` prints; described in `docs/json.md`.

use crate::summary::to_json;
use serde::Serialize;

/// What `lowtide doctor --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DoctorSummary {
    /// The model's file.
    pub model: String,
    /// The plan's file; absent for a plan made on the spot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Whether all tensors agree and the checker takes the plan.
    pub ok: bool,
    /// Steps of the schedule.
    pub steps: usize,
    /// Runs that were made, up to the one where something differs.
    pub runs: usize,
    /// Operands and outputs that agree with safe mode.
    pub compared: usize,
    /// The first that does not; absent if all do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<FindingRow>,
    /// What the checker finds.
    pub faults: Vec<String>,
}

/// The first tensor that differs, and who is to blame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FindingRow {
    /// The tensor.
    pub tensor: String,
    /// Which operand it is, as in `input 0`; `output` for an output of the graph in the end.
    pub operand: String,
    /// The run in which it shows; absent for an output in the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<UseRow>,
    /// What is wrong, in one word.
    pub cause: String,
    /// What is wrong, in a sentence.
    pub why: String,
    /// The first element that differs; absent where the run cannot be made at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<DifferenceRow>,
    /// Whose bytes are wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub victim: Option<StayRow>,
    /// Whose use of memory made them so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub culprit: Option<StayRow>,
    /// The run that wrote those bytes last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer: Option<UseRow>,
}

/// An element that differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DifferenceRow {
    /// Its index in the tensor.
    pub element: usize,
    /// Its byte in the arena; absent for what is elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// What is there.
    pub found: String,
    /// What safe mode has.
    pub wanted: String,
    /// Bytes of the tensor that differ.
    pub bytes: usize,
}

/// A run of an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UseRow {
    /// When; absent if it never runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The operator.
    pub op: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
}

/// A residence. Steps are given as the first and the one after the last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StayRow {
    /// Its number in the plan.
    pub residence: u32,
    /// What stays there.
    pub name: String,
    /// The number of its buffer.
    pub buffer: u32,
    /// Its first byte in the arena.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
    /// When the events hold it; absent if they never allocate it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<[u32; 2]>,
    /// When the graph needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needed: Option<[u32; 2]>,
    /// Who writes it.
    pub writers: Vec<UseRow>,
    /// Who reads it.
    pub readers: Vec<UseRow>,
    /// Whether an output of the graph lies there.
    pub is_output: bool,
}

impl DoctorSummary {
    /// As JSON, with a line end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}
