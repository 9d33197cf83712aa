//! The plan file: [`Plan`](lowtide_core::Plan) to JSON and back.
//!
//! ~~~text
//! {"format": "lowtide-plan", "version": 2, "fingerprint": "0f…", ...
//!  "schedule": [0, 2, 1],                                   the operator of each run
//!  "bindings": [[null, 0], [0, 1], [0, 2]],                 the residences of each run's operands
//!  "buffers": {"space": [0, 0, 0], "offset": [0, 64, 128], ...},     a table is its columns,
//!  "events": [["ALLOC", 0], ["EXEC", 0], ...]}                       one line each
//! ~~~
//! `docs/plan-file.md` describes every field. What is read is not trusted: columns of a table have to be
//! of one length and every number in its range, or the reader says which entry is not. What the numbers
//! mean is for the checker to judge. Memory is proportional to the length of the file.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::read_plan;
pub(crate) use write::space_name;
pub use write::write_plan;

use crate::column::Misfit;
use lowtide_core::Bytes;

/// The version of the plan file that is read and written.
pub const PLAN_VERSION: u32 = 3;

const FORMAT: &str = "lowtide-plan";
/// The largest file: with two bytes or more for an entry, every count of entries fits an id.
const MAX_FILE: Bytes = Bytes(u32::MAX as u64);

const ALLOC: &str = "ALLOC";
const EXEC: &str = "EXEC";
const FREE: &str = "FREE";
const FENCE: &str = "FENCE";
const COMPACT: &str = "COMPACT";

/// Why bytes are not a plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PlanFileError {
    /// Not JSON, or not of this form; the message has line and column.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Another format, or none.
    #[error("the format is {found}; wanted \"lowtide-plan\"")]
    Format { found: String },
    /// Another version, or none.
    #[error("the version of the plan is {found}; this reader knows version {wanted}")]
    Version { found: String, wanted: u32 },
    /// Too long.
    #[error("the plan has {found}, the limit is {limit}")]
    TooLong { found: Bytes, limit: Bytes },
    /// Columns of a table that do not have the same length.
    #[error("{column} has {found} entries, but {other} has {wanted}")]
    Length { column: String, found: usize, other: String, wanted: usize },
    /// A value that is not what it should be.
    #[error("{place} is {found}; wanted {wanted}")]
    Value { place: String, found: String, wanted: &'static str },
}

impl From<Misfit> for PlanFileError {
    fn from(Misfit { place, found, wanted }: Misfit) -> Self {
        Self::Value { place, found, wanted }
    }
}
