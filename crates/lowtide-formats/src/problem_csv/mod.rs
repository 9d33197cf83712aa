//! Bare placement problems in the CSV form of `MiniMalloc`: bytes to [`NamedProblem`], and back with offsets.
//!
//! ~~~text
//! id,lower,upper,size,gaps        item a   during [20,30) nothing is taken, during [40,50) only
//! a,10,60,64,20-30 40-50@0:16     offset ^ ┌──┐  ┌──┐  ┌──┐   the lowest 16 bytes:
//! b,20,30,64,                            | │  │  │  └──┘  │   four rectangles, one item
//!                                        | └──┘  └────────┘
//!                                        +-10-20-30-40-50-60-> time
//! ~~~
//! Times are any 64-bit integers; a problem counts steps, so they are ranked, and the table keeps the
//! originals. Sizes, offsets and alignments are bytes. `docs/csv.md` describes the columns. Memory is
//! proportional to the length of the file. Cost: O(n log n).

mod cells;
mod items;
mod spaces;
mod table;
#[cfg(test)]
mod tests;

pub use spaces::{NamedSpace, write_spaces_placement};
pub(crate) use table::{line, skip_empty_lines};
pub use table::{read_problem, write_placement};

use lowtide_core::{
    Align, BufferId, Bytes, IndexVec, Interval, Item, Placement, Problem, SpacesError, Step,
};
use std::collections::BTreeMap;

/// A problem with what its file says beyond it.
#[derive(Clone, Debug)]
pub struct NamedProblem {
    /// The name of each item.
    pub ids: IndexVec<BufferId, String>,
    /// The items in the order of the file, with no pins.
    pub problem: Problem,
    /// The offset that the file gives, if it does.
    pub offsets: IndexVec<BufferId, Option<Bytes>>,
    /// What each item is worth in a fast space: what the file says, else its size.
    pub weights: IndexVec<BufferId, u64>,
    /// The time of each step.
    pub times: Vec<i64>,
    table: table::Table,
}

/// Why bytes are not a problem.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ProblemCsvError {
    /// Not CSV, or not UTF-8; the message has the line.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// Too long.
    #[error("the table has {found}, the limit is {limit}")]
    TooLong { found: Bytes, limit: Bytes },
    /// A column that must be there is not.
    #[error("the header has no column `{column}`; wanted at least id, lower, upper and size")]
    NoColumn { column: &'static str },
    /// A column with a name that means nothing.
    #[error(
        "line {line}: column `{column}` is unknown; wanted id, lower, upper (or end), size, \
         alignment, gaps, hint, offset, space or weight"
    )]
    UnknownColumn { line: u64, column: String },
    /// Two columns that mean the same.
    #[error("line {line}: column `{second}` says the same as column `{first}`")]
    ColumnTwice { line: u64, first: String, second: String },
    /// A row with cells missing or too many.
    #[error("line {line} has {found} cells, the header has {wanted}")]
    Cells { line: u64, found: usize, wanted: usize },
    /// A cell that is not what it should be.
    #[error("line {line}, column `{column}`: found `{found}`, wanted {wanted}")]
    Cell { line: u64, column: String, found: String, wanted: String },
    /// A name given to two items.
    #[error("line {line}: id `{id}` is taken by line {first}")]
    IdTwice { line: u64, id: String, first: u64 },
    /// Sizes out of range.
    #[error("with item `{id}` the sizes and offsets add up to more than {limit}")]
    TooLarge { id: String, limit: Bytes },
    /// Offsets were wanted, but one is not there.
    #[error("item `{id}` has no offset")]
    NoOffset { id: String },
    /// Places in several spaces were wanted, but one is not there.
    #[error("item `{id}` has no space")]
    NoSpace { id: String },
    /// Weights out of range.
    #[error("with item `{id}` the weights add up to more than {limit}")]
    TooHeavy { id: String, limit: u64 },
    /// Spaces that make no problem.
    #[error(transparent)]
    Spaces(#[from] SpacesError),
}

impl NamedProblem {
    /// The problem with the offsets of the file as pins. No row may name a space.
    pub fn pinned(&self) -> Result<Problem, ProblemCsvError> {
        self.names_no_space()?;
        self.with_pins()
    }

    fn with_pins(&self) -> Result<Problem, ProblemCsvError> {
        let pinned = self.problem.with_pins(&self.offsets);
        pinned.map_err(|error| items::name_error(&error, &self.ids))
    }

    /// Where the buffers lie in another table, by their names; those that it does not place are new.
    pub fn offsets_of(&self, other: &Self) -> IndexVec<BufferId, Option<Bytes>> {
        let named = other.ids.iter().map(String::as_str).zip(other.offsets.iter().copied());
        let named: BTreeMap<&str, Option<Bytes>> = named.collect();
        self.ids.iter().map(|id| named.get(id.as_str()).copied().flatten()).collect()
    }

    /// The same problem with bytes that nothing may take, at any time: each range from its first byte on. They come
    /// after the buffers of the table, and are not written with it.
    pub fn reserve(&mut self, ranges: &[(Bytes, Bytes)]) -> Result<(), ProblemCsvError> {
        let mut items = self.problem.items().clone();
        let all = Interval::new(Step::ZERO, Step::from_index(self.problem.steps()));
        for &(offset, bytes) in ranges {
            items.push(Item::new(bytes, all, Align::ONE));
            self.offsets.push(Some(offset));
            self.weights.push(0);
            self.ids.push(format!("reserved {}:{}", offset.0, bytes.0));
        }
        self.problem = items::timed(items, &self.times)
            .map_err(|error| items::name_error(&error, &self.ids))?;
        Ok(())
    }

    /// The offsets of the file as a placement, to be judged; every item must have one, and no row may name a space.
    pub fn placement(&self) -> Result<Placement, ProblemCsvError> {
        self.names_no_space()?;
        let mut placement = Placement::default();
        for id in self.ids.ids() {
            let (offset, end) = self.place(id)?;
            placement.size = placement.size.max(end);
            placement.offsets.push(offset);
        }
        Ok(placement)
    }

    /// The first byte of an item by the file, and the byte after its last one.
    fn place(&self, id: BufferId) -> Result<(Bytes, Bytes), ProblemCsvError> {
        let name = || self.ids[id].clone();
        let offset = self.offsets[id].ok_or_else(|| ProblemCsvError::NoOffset { id: name() })?;
        let end = offset.checked_add(self.problem.items()[id].extent());
        let end = end.filter(|&end| end <= Bytes::MAX_TOTAL);
        let limit = Bytes::MAX_TOTAL;
        let end = end.ok_or_else(|| ProblemCsvError::TooLarge { id: name(), limit })?;
        Ok((offset, end))
    }
}
