//! What `lowtide run --json` prints; described in `docs/json.md`.

use crate::summary::to_json;
use serde::Serialize;

/// What `lowtide run --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunSummary {
    /// The file.
    pub model: String,
    /// Of the graph, as plans carry it.
    pub fingerprint: String,
    /// How memory was reused: pack, colour or safe.
    pub mode: String,
    /// The arena of the plan.
    pub arena_bytes: u64,
    /// Outputs that the plan leaves to the caller.
    pub outputs_bytes: u64,
    /// The most that the pool held.
    pub pool_peak_bytes: u64,
    /// The most memory of the system that the pool had touched.
    pub pool_held_bytes: u64,
    /// How often blocks of the pool were moved together.
    pub pool_compactions: u64,
    /// How many bytes that moved.
    pub pool_moved_bytes: u64,
    /// How long that took.
    pub pool_compact_seconds: f64,
    /// What libraries under the kernels hold at most, beside the arena.
    pub kernel_bytes: u64,
    /// Bytes of all weights and constants.
    pub weights_bytes: u64,
    /// Of them, bytes that were copied because they lie unaligned in the file.
    pub weights_copied_bytes: u64,
    /// The most that was resident in the whole process; 0 where the system does not say.
    pub rss_peak_bytes: u64,
    /// What was resident when the model was loaded and its inputs were there.
    pub rss_loaded_bytes: u64,
    /// The most that was resident during the runs, above that.
    pub rss_run_bytes: u64,
    /// Time of a run.
    pub latency_ms: LatencyRow,
    /// How often it was run.
    pub repeats: usize,
    /// Threads inside an operator.
    pub threads: usize,
    /// Threads between operators.
    pub workers: usize,
    /// Whether freed bytes were poisoned.
    pub guard: bool,
    /// Time of loading and planning.
    pub load_seconds: f64,
    /// What came out.
    pub outputs: Vec<OutputRow>,
    /// Time by type of operator, the most first; with `--profile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Vec<ProfileRow>>,
}

/// Time of a run in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencyRow {
    /// The least.
    pub min: f64,
    /// As many took less as took more.
    pub median: f64,
    /// Nine in ten took less.
    pub p90: f64,
}

impl LatencyRow {
    /// Of some runs; all zero for none.
    pub fn of(milliseconds: &[f64]) -> Self {
        let mut sorted = milliseconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        let at =
            |percent: usize| sorted.get((last * percent).div_ceil(100)).copied().unwrap_or(0.0);
        Self { min: at(0), median: at(50), p90: at(90) }
    }
}

/// One output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutputRow {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Where it was saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Time of the operators of one type in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileRow {
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// How many operators are of it.
    pub count: usize,
    /// Milliseconds of all of them in one run: the median over the runs.
    pub ms: f64,
}

impl RunSummary {
    /// As JSON, with a line end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_taken_from_the_middle() {
        let row = LatencyRow::of(&[5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!(row, LatencyRow { min: 1.0, median: 3.0, p90: 5.0 });
        assert_eq!(LatencyRow::of(&[7.0]), LatencyRow { min: 7.0, median: 7.0, p90: 7.0 });
        assert_eq!(LatencyRow::of(&[]), LatencyRow { min: 0.0, median: 0.0, p90: 0.0 });
    }
}
