//! Measured times of operators as CSV: bytes and a graph to seconds.
//!
//! ~~~text
//! op_name,seconds                conv1  0.0012
//! conv1,0.0012          ──>      relu   not measured
//! ~~~
//! An operator is named by its name, or by its id as the event table has it. Other columns are left alone, so that what a
//! profiler writes need not be cut. Memory follows the length of the file. Cost: O(n log n).

use crate::problem_csv::{line, skip_empty_lines};
use csv::{ReaderBuilder, StringRecord, Trim};
use lowtide_core::{Graph, IndexVec, MOST_SECONDS, OpId, is_time};
use std::collections::BTreeMap;

/// Why bytes are no times of a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TimesCsvError {
    /// Not CSV, or not UTF-8; the message has the line.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// The header does not say which operator, or has no times.
    #[error("the header has {found}; wanted `seconds` and one of `op_name` and `op_id`")]
    Header { found: String },
    /// A row with cells missing or too many.
    #[error("line {line} has {found} cells, the header has {wanted}")]
    Cells { line: u64, found: usize, wanted: usize },
    /// A cell that is not what it should be.
    #[error("line {line}, column `{column}`: found `{found}`, wanted {wanted}")]
    Cell { line: u64, column: &'static str, found: String, wanted: String },
    /// A name that no operator has.
    #[error("line {line}: no operator is named `{name}`; the nearest name is {nearest}")]
    NoSuchName { line: u64, name: String, nearest: String },
    /// A name that several have.
    #[error("line {line}: {count} operators are named `{name}`, wanted the column `op_id`")]
    Ambiguous { line: u64, name: String, count: usize },
    /// An operator measured twice.
    #[error("line {line}: operator `{op}` has a time in line {first}")]
    Twice { line: u64, op: String, first: u64 },
}

type Result<T> = std::result::Result<T, TimesCsvError>;

/// Reads the measured times of a graph's operators; those that the file leaves out have none.
pub fn read_times(bytes: &[u8], graph: &Graph) -> Result<IndexVec<OpId, Option<f64>>> {
    let mut reader = ReaderBuilder::new().flexible(true).trim(Trim::All).from_reader(bytes);
    let header = reader.headers()?.clone();
    let table = Table::new(graph, &header)?;
    let mut seconds = IndexVec::filled(graph.ops().len(), None);
    let mut lines: IndexVec<OpId, u64> = IndexVec::filled(graph.ops().len(), 0);
    for row in reader.into_records() {
        let mut row = row?;
        skip_empty_lines(&mut row, bytes);
        if row.len() == 1 && row[0].is_empty() {
            continue;
        }
        let line = line(&row);
        if row.len() != header.len() {
            return Err(TimesCsvError::Cells { line, found: row.len(), wanted: header.len() });
        }
        let op = table.op(&row, line)?;
        if seconds[op].replace(table.seconds(&row, line)?).is_some() {
            return Err(TimesCsvError::Twice { line, op: graph.op_label(op), first: lines[op] });
        }
        lines[op] = line;
    }
    Ok(seconds)
}

/// Which cell means what, and which names there are.
struct Table<'g> {
    ops: usize,
    is_by_id: bool,
    op: usize,
    seconds: usize,
    /// For each name the first operator that has it, and how many have.
    names: BTreeMap<&'g str, (OpId, usize)>,
}

impl<'g> Table<'g> {
    fn new(graph: &'g Graph, header: &StringRecord) -> Result<Self> {
        let place = |name: &str| {
            let mut places = header.iter().enumerate().filter(|(_, cell)| *cell == name);
            places.next().map(|(place, _)| place).filter(|_| places.next().is_none())
        };
        let (name, id) = (place("op_name"), place("op_id"));
        // Names are for people: where both are there, the id counts.
        let (Some(op), Some(seconds)) = (id.or(name), place("seconds")) else {
            let cells: Vec<String> = header.iter().map(|cell| format!("`{cell}`")).collect();
            return Err(TimesCsvError::Header { found: cells.join(", ") });
        };
        let mut names: BTreeMap<&str, (OpId, usize)> = BTreeMap::new();
        for (id, row) in graph.ops().iter_enumerated() {
            names.entry(&row.name).or_insert((id, 0)).1 += 1;
        }
        Ok(Self { ops: graph.ops().len(), is_by_id: id.is_some(), op, seconds, names })
    }

    fn op(&self, row: &StringRecord, line: u64) -> Result<OpId> {
        let cell = &row[self.op];
        if self.is_by_id {
            let id = cell.parse().ok().map(OpId::new).filter(|id| (id.raw() as usize) < self.ops);
            let wanted = || format!("the id of an operator, a whole number below {}", self.ops);
            let wrong = || wrong(line, "op_id", cell, wanted());
            return id.ok_or_else(wrong);
        }
        let name = cell.to_owned();
        match self.names.get(cell) {
            Some(&(op, 1)) => Ok(op),
            Some(&(_, count)) => Err(TimesCsvError::Ambiguous { line, name, count }),
            None => Err(TimesCsvError::NoSuchName { line, nearest: self.nearest(cell), name }),
        }
    }

    /// The name that begins most like this one; it stands beside it in the alphabet.
    fn nearest(&self, name: &str) -> String {
        let alike =
            |other: &str| name.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        let before = self.names.range(..name).next_back();
        let beside = before.into_iter().chain(self.names.range(name..).next());
        let nearest = beside.map(|(&other, _)| other).max_by_key(|other| alike(other));
        nearest.map_or_else(|| "none, as there are no operators".to_owned(), |n| format!("`{n}`"))
    }

    fn seconds(&self, row: &StringRecord, line: u64) -> Result<f64> {
        let cell = &row[self.seconds];
        let seconds = cell.parse().ok().filter(|&s: &f64| is_time(s));
        let wanted = || format!("a number of seconds from 0 to {MOST_SECONDS:e}");
        // A zero below zero would not compare like the number that it is.
        seconds.map(f64::abs).ok_or_else(|| wrong(line, "seconds", cell, wanted()))
    }
}

fn wrong(line: u64, column: &'static str, found: &str, wanted: String) -> TimesCsvError {
    TimesCsvError::Cell { line, column, found: found.to_owned(), wanted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::{Bytes, GraphBuilder, Op, Size};

    fn graph() -> Graph {
        let size = Size::Fixed(Bytes(8));
        let mut builder = GraphBuilder::new("times");
        let mut last = builder.input("x", size);
        for name in ["conv1", "conv2", "relu", "relu"] {
            let next = builder.computed(name, size);
            builder.op(Op::new(name, "Op", [last], [next]));
            last = next;
        }
        builder.finish().unwrap()
    }

    fn read(text: &str) -> std::result::Result<Vec<Option<f64>>, String> {
        let times = read_times(text.as_bytes(), &graph());
        times.map(Into::into).map_err(|error| error.to_string())
    }

    #[test]
    fn operators_are_named_by_name_or_by_id() {
        let wanted = Ok(vec![None, Some(0.5), None, None]);
        assert_eq!(read("op_name,seconds\nconv2,0.5\n"), wanted);
        assert_eq!(read("calls,seconds,op_id\n\n 3 , 5e-1 , 1\n"), wanted);
        assert_eq!(read("op_name,op_id,seconds\nany,1,0.5\n"), wanted);
        assert_eq!(read("op_id,seconds\n"), Ok(vec![None; 4]));
    }

    #[track_caller]
    fn fails(text: &str, message: &str) {
        assert_eq!(read(text), Err(message.to_owned()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wanted = "wanted `seconds` and one of `op_name` and `op_id`";
        fails("op_name,secs\n", &format!("the header has `op_name`, `secs`; {wanted}"));
        fails(
            "op_id,op_id,seconds\n",
            &format!("the header has `op_id`, `op_id`, `seconds`; {wanted}"),
        );
        fails("op_id,seconds\n1\n", "line 2 has 1 cells, the header has 2");
        let wanted = "wanted a number of seconds from 0 to 1e12";
        for found in ["-1", "nan", "1e999", "", "1 ms"] {
            let message = format!("line 2, column `seconds`: found `{found}`, {wanted}");
            fails(&format!("op_id,seconds\n1,{found}\n"), &message);
        }
        let message = "line 3, column `op_id`: found `4`, wanted the id of an operator, a whole number below 4";
        fails("op_id,seconds\n\n4,1\n", message);
        fails("op_id,seconds\n1,1\n2,1\n1,2\n", "line 4: operator `conv2` has a time in line 2");
    }

    #[test]
    fn wrong_names_come_with_the_nearest() {
        let nearest = |name: &str, nearest: &str| {
            let message =
                format!("line 2: no operator is named `{name}`; the nearest name is `{nearest}`");
            fails(&format!("op_name,seconds\n{name},1\n"), &message);
        };
        nearest("conv22", "conv2");
        nearest("conv0", "conv1");
        nearest("rel", "relu");
        nearest("zzz", "relu");
        let message = "line 2: 2 operators are named `relu`, wanted the column `op_id`";
        fails("op_name,seconds\nrelu,1\n", message);
    }
}
