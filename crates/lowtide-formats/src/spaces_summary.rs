//! What `lowtide pack --space --json` prints; described in `docs/json.md`.

use crate::summary::to_json;
use serde::Serialize;

/// What `lowtide pack --space --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SpacesSummary {
    /// The file.
    pub problem: String,
    /// Whether all fits; with `--check` whether the given places are right.
    pub ok: bool,
    /// Buffers in it.
    pub buffers: usize,
    /// The spaces, the fastest first; empty if the buffers were not placed.
    pub spaces: Vec<SpaceRow>,
    /// What left a space for a later one, in the order in which it left.
    pub spilled: Vec<SpilledRow>,
    /// If nothing was placed: whether it is shown that nothing can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impossible: Option<bool>,
    /// If nothing was placed: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Pairs of buffers looked at, and other work in the same measure; 0 if nothing was placed.
    pub steps: u64,
    /// With `--check`: all faults of the given places.
    pub faults: Vec<String>,
    /// Time of packing or checking alone.
    pub seconds: f64,
}

/// A space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpaceRow {
    /// Its name.
    pub name: String,
    /// How many bytes it has; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// How many the buffers in it take.
    pub used_bytes: u64,
    /// Buffers in it.
    pub buffers: usize,
    /// No placement of these buffers takes less.
    pub lower_bound_bytes: u64,
    /// Why, in a few words.
    pub bound_proof: String,
    /// Whether no placement of these buffers is smaller.
    pub proven: bool,
    /// The weights of its buffers together.
    pub weight: u64,
    /// Of the first space: no choice of buffers keeps more weight in it. Absent with `--check`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_weight: Option<u64>,
}

/// A buffer that left a space for a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpilledRow {
    /// Its name.
    pub id: String,
    /// The space that it left.
    pub from: String,
    /// Why: `too_large`, `over` or `not_placed`.
    pub why: &'static str,
    /// If the space was over: when it was so most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<i64>,
    /// By how many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_bytes: Option<u64>,
}

impl SpacesSummary {
    /// As JSON, with a line end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}
