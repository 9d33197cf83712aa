//! The table as it stands in the file: header, rows, columns.

use super::cells::Cells;
use super::{NamedProblem, ProblemCsvError, items};
use csv::{ReaderBuilder, StringRecord, Trim, Writer};
use lowtide_core::{Bytes, Placement};
use std::io::{self, Write};

/// The largest file: no count of rows passes an id.
const MAX_FILE: Bytes = Bytes(u32::MAX as u64);

/// Reads a problem. The offsets of the file do not bind the problem; see [`NamedProblem::pinned`].
pub fn read_problem(bytes: &[u8]) -> Result<NamedProblem, ProblemCsvError> {
    let found = Bytes(bytes.len() as u64);
    if found > MAX_FILE {
        return Err(ProblemCsvError::TooLong { found, limit: MAX_FILE });
    }
    let table = Table::read(bytes)?;
    let rows = table.rows.iter().map(|row| Cells::new(&table, row).row());
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    items::problem(rows, table)
}

/// Writes the table of a problem with the offsets of a placement; all other columns stay as they were.
///
/// # Panics
/// If the placement has fewer items than the problem.
pub fn write_placement(
    problem: &NamedProblem,
    placement: &Placement,
    out: impl Write,
) -> io::Result<()> {
    let Table { header, rows, columns } = &problem.table;
    let mut writer = Writer::from_writer(out);
    let offset = columns.offset.unwrap_or(header.len());
    writer.write_record(with_cells(header, [(offset, "offset")]))?;
    for (row, bytes) in rows.iter().zip(placement.offsets.as_slice()) {
        writer.write_record(with_cells(row, [(offset, &bytes.0.to_string())]))?;
    }
    assert!(placement.offsets.len() >= rows.len(), "a placement has an offset for each item");
    writer.flush()
}

/// A record with some cells replaced, or some more behind its own.
pub(super) fn with_cells<'a, const N: usize>(
    record: &'a StringRecord,
    cells: [(usize, &'a str); N],
) -> impl Iterator<Item = &'a str> {
    let more = cells.iter().filter(|&&(place, _)| place >= record.len()).count();
    (0..record.len() + more).map(move |place| {
        let cell = cells.iter().find(|&&(other, _)| other == place);
        cell.map_or_else(|| &record[place], |&(_, text)| text)
    })
}

/// Every row has as many cells as the header.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) header: StringRecord,
    pub(super) rows: Vec<StringRecord>,
    pub(super) columns: Columns,
}

impl Table {
    fn read(bytes: &[u8]) -> Result<Self, ProblemCsvError> {
        let mut reader = ReaderBuilder::new().flexible(true).trim(Trim::All).from_reader(bytes);
        let header = reader.headers()?.clone();
        let columns = Columns::of(&header)?;
        let mut rows = Vec::new();
        for row in reader.into_records() {
            let mut row = row?;
            skip_empty_lines(&mut row, bytes);
            let is_blank = row.len() == 1 && row[0].is_empty();
            if is_blank {
                continue;
            }
            if row.len() != header.len() {
                let (found, wanted) = (row.len(), header.len());
                return Err(ProblemCsvError::Cells { line: line(&row), found, wanted });
            }
            rows.push(row);
        }
        Ok(Self { header, rows, columns })
    }
}

/// The reader takes empty lines for the beginning of the record after them; people count them.
pub(crate) fn skip_empty_lines(row: &mut StringRecord, bytes: &[u8]) {
    let Some(mut position) = row.position().cloned() else { return };
    let start = usize::try_from(position.byte()).unwrap_or(bytes.len());
    let ends = bytes.iter().skip(start).take_while(|byte| matches!(byte, b'\n' | b'\r'));
    let empty = ends.filter(|&&byte| byte == b'\n').count();
    position.set_line(position.line() + empty as u64);
    row.set_position(Some(position));
}

/// The line in which a record starts, from 1.
pub(crate) fn line(record: &StringRecord) -> u64 {
    record.position().map_or(1, csv::Position::line)
}

/// Which cell of a row means what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    pub(super) id: usize,
    pub(super) lower: usize,
    pub(super) upper: usize,
    /// Whether times of ending are the last ones inside, not the first ones outside.
    pub(super) is_inclusive: bool,
    pub(super) size: usize,
    pub(super) alignment: Option<usize>,
    pub(super) gaps: Option<usize>,
    pub(super) hint: Option<usize>,
    pub(super) offset: Option<usize>,
    pub(super) space: Option<usize>,
    pub(super) weight: Option<usize>,
}

/// The columns by their first name; the others are `MiniMalloc`'s older ones.
const NAMES: [&[&str]; 10] = [
    &["id", "buffer", "buffer_id"],
    &["lower", "start", "begin"],
    &["upper", "end"],
    &["size"],
    &["alignment"],
    &["gaps"],
    &["hint"],
    &["offset"],
    &["space"],
    &["weight"],
];

impl Columns {
    fn of(header: &StringRecord) -> Result<Self, ProblemCsvError> {
        let mut places = [None; NAMES.len()];
        for (place, name) in header.iter().enumerate() {
            let line = line(header);
            let column = NAMES.iter().position(|names| names.contains(&name));
            let column = column
                .ok_or_else(|| ProblemCsvError::UnknownColumn { line, column: name.to_owned() })?;
            if let Some(first) = places[column].replace(place) {
                let (first, second) = (header[first].to_owned(), name.to_owned());
                return Err(ProblemCsvError::ColumnTwice { line, first, second });
            }
        }
        let [id, lower, upper, size, alignment, gaps, hint, offset, space, weight] = places;
        let needed =
            |place: Option<usize>, column| place.ok_or(ProblemCsvError::NoColumn { column });
        let upper = needed(upper, "upper")?;
        Ok(Self {
            id: needed(id, "id")?,
            lower: needed(lower, "lower")?,
            upper,
            is_inclusive: &header[upper] == "end",
            size: needed(size, "size")?,
            alignment,
            gaps,
            hint,
            offset,
            space,
            weight,
        })
    }
}
