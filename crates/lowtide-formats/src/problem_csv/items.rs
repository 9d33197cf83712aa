//! Rows to items: times to ranks, gaps to rectangles.

use super::cells::Row;
use super::table::Table;
use super::{NamedProblem, ProblemCsvError};
use lowtide_core::{BufferId, Bytes, IndexVec, Interval, Item, Problem, ProblemError, Rect, Step};
use std::collections::BTreeMap;
use std::ops::Range;

pub(super) fn problem(rows: Vec<Row>, table: Table) -> Result<NamedProblem, ProblemCsvError> {
    check_ids(&rows)?;
    let times = times(&rows);
    let items = rows.iter().map(|row| item(row, &times)).collect();
    let offsets = rows.iter().map(|row| row.offset).collect();
    let weights = rows.iter().map(|row| row.weight).collect();
    let ids: IndexVec<BufferId, String> = rows.into_iter().map(|row| row.id).collect();
    let problem = timed(items, &times).map_err(|error| name_error(&error, &ids))?;
    Ok(NamedProblem { ids, problem, offsets, weights, times, table })
}

/// A problem whose steps last as long as in the file.
pub(super) fn timed(
    items: IndexVec<BufferId, Item>,
    times: &[i64],
) -> Result<Problem, ProblemError> {
    let durations = times.windows(2).map(|pair| pair[1].abs_diff(pair[0])).collect();
    Ok(Problem::new(items)?.with_durations(durations))
}

/// The error with the name of the item that it is about.
pub(super) fn name_error(
    error: &ProblemError,
    ids: &IndexVec<BufferId, String>,
) -> ProblemCsvError {
    let (id, limit) = match *error {
        ProblemError::TooLarge { item, limit } => (ids[item].clone(), limit),
        _ => (String::new(), Bytes::MAX_TOTAL),
    };
    ProblemCsvError::TooLarge { id, limit }
}

fn check_ids(rows: &[Row]) -> Result<(), ProblemCsvError> {
    let mut lines = BTreeMap::new();
    for row in rows {
        if let Some(first) = lines.insert(row.id.as_str(), row.line) {
            return Err(ProblemCsvError::IdTwice { line: row.line, id: row.id.clone(), first });
        }
    }
    Ok(())
}

/// All times at which something changes, ascending.
fn times(rows: &[Row]) -> Vec<i64> {
    let spans = |row: &Row| {
        let gaps = row.gaps.iter().map(|gap| gap.time.clone());
        gaps.chain([row.life.clone()]).flat_map(|span| [span.start, span.end]).collect::<Vec<_>>()
    };
    let mut times: Vec<i64> = rows.iter().flat_map(spans).collect();
    times.sort_unstable();
    times.dedup();
    times
}

fn item(row: &Row, times: &[i64]) -> Item {
    let step = |time: i64| Step::from_index(times.partition_point(|&other| other < time));
    let rect = |time: Range<i64>, bytes: Range<Bytes>| Rect {
        offset: bytes.start,
        bytes: bytes.end - bytes.start,
        span: Interval::new(step(time.start), step(time.end)),
    };
    let mut rects = Vec::with_capacity(1);
    let mut now = row.life.start;
    for gap in &row.gaps {
        if now < gap.time.start {
            rects.push(rect(now..gap.time.start, Bytes::ZERO..row.size));
        }
        if let Some(window) = &gap.window {
            rects.push(rect(gap.time.clone(), window.clone()));
        }
        now = gap.time.end;
    }
    if now < row.life.end {
        rects.push(rect(now..row.life.end, Bytes::ZERO..row.size));
    }
    if rects.is_empty() {
        // The gaps leave nothing; the item still has a place.
        rects.push(rect(row.life.clone(), Bytes::ZERO..Bytes::ZERO));
    }
    Item { rects: rects.into(), align: row.align, pin: None }
}
