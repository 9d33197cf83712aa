//! One row of the table: text to numbers, with line and column in every error.

use super::ProblemCsvError;
use super::table::{Columns, Table, line};
use csv::StringRecord;
use lowtide_core::{Align, Bytes};
use std::ops::Range;

/// One row, read. Times are half-open whatever the file's are.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) line: u64,
    pub(super) id: String,
    pub(super) life: Range<i64>,
    pub(super) size: Bytes,
    pub(super) align: Align,
    /// By time; none overlaps another.
    pub(super) gaps: Vec<Gap>,
    pub(super) offset: Option<Bytes>,
    /// What it is worth in a fast space: what the file says, else its size.
    pub(super) weight: u64,
}

/// A time during which not all of an item's bytes are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) time: Range<i64>,
    /// The bytes that are taken all the same.
    pub(super) window: Option<Range<Bytes>>,
}

/// The cells of one row.
pub(super) struct Cells<'t> {
    header: &'t StringRecord,
    columns: Columns,
    row: &'t StringRecord,
}

type Result<T> = std::result::Result<T, ProblemCsvError>;

impl<'t> Cells<'t> {
    pub(super) fn new(table: &'t Table, row: &'t StringRecord) -> Self {
        Self { header: &table.header, columns: table.columns, row }
    }

    pub(super) fn row(&self) -> Result<Row> {
        let life = self.life()?;
        let size = self.bytes(self.columns.size)?;
        if let Some(hint) = self.present(self.columns.hint) {
            self.bytes(hint)?;
        }
        Ok(Row {
            line: line(self.row),
            id: self.row[self.columns.id].to_owned(),
            size,
            align: self.align()?,
            gaps: self.gaps(&life, size)?,
            offset: self.present(self.columns.offset).map(|place| self.bytes(place)).transpose()?,
            weight: self.weight(size)?,
            life,
        })
    }

    /// A column that is in the table, and not empty in this row.
    fn present(&self, column: Option<usize>) -> Option<usize> {
        column.filter(|&place| !self.row[place].is_empty())
    }

    fn wrong<T>(&self, place: usize, found: &str, wanted: impl Into<String>) -> Result<T> {
        Err(ProblemCsvError::Cell {
            line: line(self.row),
            column: self.header[place].to_owned(),
            found: found.to_owned(),
            wanted: wanted.into(),
        })
    }

    fn life(&self) -> Result<Range<i64>> {
        let (lower, upper) = (self.columns.lower, self.columns.upper);
        let start = self.time(lower, &self.row[lower])?;
        let end = self.end(upper, &self.row[upper])?;
        if start < end {
            return Ok(start..end);
        }
        let than = if self.columns.is_inclusive { "not less" } else { "more" };
        self.wrong(upper, &self.row[upper], format!("{than} than the {start} where it starts"))
    }

    fn time(&self, place: usize, text: &str) -> Result<i64> {
        let wanted = "a whole number of -9223372036854775808 to 9223372036854775807";
        text.parse().or_else(|_| self.wrong(place, text, wanted))
    }

    /// The first time outside.
    fn end(&self, place: usize, text: &str) -> Result<i64> {
        let end = self.time(place, text)?;
        let outside = end.checked_add(self.columns.is_inclusive.into());
        outside.map_or_else(|| self.wrong(place, text, "less than 9223372036854775807"), Ok)
    }

    fn bytes(&self, place: usize) -> Result<Bytes> {
        self.bytes_of(place, &self.row[place])
    }

    fn bytes_of(&self, place: usize, text: &str) -> Result<Bytes> {
        let number: Option<i64> = text.parse().ok();
        let bytes = number.and_then(|number| u64::try_from(number).ok()).map(Bytes);
        let wanted = "a whole number of bytes of 0 to 9223372036854775807";
        bytes.map_or_else(|| self.wrong(place, text, wanted), Ok)
    }

    fn weight(&self, size: Bytes) -> Result<u64> {
        let Some(place) = self.present(self.columns.weight) else { return Ok(size.0) };
        let text = &self.row[place];
        let number = text.parse().ok().and_then(|number: i64| u64::try_from(number).ok());
        let wanted = "a whole number of 0 to 9223372036854775807";
        number.map_or_else(|| self.wrong(place, text, wanted), Ok)
    }

    fn align(&self) -> Result<Align> {
        let Some(place) = self.present(self.columns.alignment) else { return Ok(Align::ONE) };
        let wanted = format!("a power of two of 1 to {}", Align::MAX);
        let align = Align::new(self.bytes(place)?.0);
        align.map_or_else(|| self.wrong(place, &self.row[place], wanted), Ok)
    }

    fn gaps(&self, life: &Range<i64>, size: Bytes) -> Result<Vec<Gap>> {
        let Some(place) = self.present(self.columns.gaps) else { return Ok(Vec::new()) };
        let texts = self.row[place].split_ascii_whitespace();
        let gap = |text| Ok((self.gap(place, text, life, size)?, text));
        let mut gaps = texts.map(gap).collect::<Result<Vec<(Gap, &str)>>>()?;
        gaps.sort_by_key(|(gap, _)| gap.time.start);
        for pair in gaps.windows(2) {
            let ((first, name), (second, text)) = (&pair[0], &pair[1]);
            if second.time.start < first.time.end {
                return self.wrong(place, text, format!("a gap that does not overlap {name}"));
            }
        }
        Ok(gaps.into_iter().map(|(gap, _)| gap).collect())
    }

    /// `10-20`, or `10-20@0:16`.
    fn gap(&self, place: usize, text: &str, life: &Range<i64>, size: Bytes) -> Result<Gap> {
        let (time, window) = text.split_once('@').map_or((text, None), |(t, w)| (t, Some(w)));
        // The first character may be a sign.
        let dash = time.char_indices().skip(1).find(|&(_, c)| c == '-');
        let Some((dash, _)) = dash else {
            return self.wrong(place, text, "gaps such as 10-20 or 10-20@0:16");
        };
        let start = self.time(place, &time[..dash])?;
        let end = self.end(place, &time[dash + 1..])?;
        if start >= end || start < life.start || end > life.end {
            let wanted = format!("a gap inside the lifetime [{}, {})", life.start, life.end);
            return self.wrong(place, text, wanted);
        }
        let window = window.map(|window| self.window(place, window, size)).transpose()?;
        Ok(Gap { time: start..end, window })
    }

    fn window(&self, place: usize, text: &str, size: Bytes) -> Result<Range<Bytes>> {
        let Some((start, end)) = text.split_once(':') else {
            return self.wrong(place, text, "a window such as 0:16");
        };
        let window = self.bytes_of(place, start)?..self.bytes_of(place, end)?;
        if window.is_empty() || window.end > size {
            let wanted = format!("a window of some bytes inside the size of {}", size.0);
            return self.wrong(place, text, wanted);
        }
        Ok(window)
    }
}
