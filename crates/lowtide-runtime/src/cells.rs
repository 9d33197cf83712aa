//! [`Cells`]: in guard mode, bytes that are poisoned as soon as all that use them are over, whatever the order.
//!
//! ~~~text
//! buffer   w [0 ───────────── 64)      cells [0,16) used by all that use w or p;  [16,64) by those that use w
//!          p [0 ── 16)                 each counts its runs down, and is poisoned by the last, before that one is said
//!                                      to be over: whoever writes there next waits for it
//! ~~~
//! A cell is a range of a buffer that the same residences cover. Those that hold an output of the graph stay. Buffers in
//! which too much lies in too much are not poisoned. Cost: near-linear, but for residences that cover many cells.

use crate::guard::bytes_of;
use lowtide_core::{Buffer, Graph, IndexVec, Lists, Occupant, Plan, ResidenceId, RunId, SpaceKind};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Cells that the residences of one buffer may cover together.
const MOST_COVERED: usize = 1 << 12;

#[derive(Debug)]
pub(crate) struct Cells {
    ranges: Vec<Range<usize>>,
    of_run: Lists<RunId, u32>,
    /// How many runs use each cell, and how many of them are not over.
    users: Vec<u32>,
    left: Vec<AtomicU32>,
    /// Whether all that nobody uses any more is poisoned.
    pub(crate) is_complete: bool,
}

impl Cells {
    pub(crate) fn new(graph: &Graph, plan: &Plan) -> Self {
        let mut ranges = Vec::new();
        let mut of_residence: IndexVec<ResidenceId, Vec<u32>> =
            IndexVec::filled(plan.residences.len(), Vec::new());
        let mut is_complete = true;
        for buffer in &plan.buffers {
            is_complete &= cut(graph, plan, buffer, &mut ranges, &mut of_residence);
        }
        let mut users = vec![0; ranges.len()];
        let mut of_run = Lists::new();
        for run in plan.schedule.ids() {
            let bound = plan.bindings[run].iter().flatten();
            let mut cells: Vec<u32> = bound.flat_map(|&id| &of_residence[id]).copied().collect();
            cells.sort_unstable();
            cells.dedup();
            for &cell in &cells {
                users[cell as usize] += 1;
            }
            of_run.push(cells);
        }
        let left = users.iter().map(|_| AtomicU32::new(0)).collect();
        Self { ranges, of_run, users, left, is_complete }
    }

    /// Begins anew. Nobody else uses it now.
    pub(crate) fn start(&self) {
        for (left, &users) in self.left.iter().zip(&self.users) {
            left.store(users, Ordering::Relaxed);
        }
    }

    /// The cells of which `run` is the last user; to be poisoned before the run is said to be over.
    pub(crate) fn finish(&self, run: RunId) -> impl Iterator<Item = Range<usize>> {
        let cells = self.of_run[run].iter().map(|&cell| cell as usize);
        let last = cells.filter(|&cell| self.left[cell].fetch_sub(1, Ordering::AcqRel) == 1);
        last.map(|cell| self.ranges[cell].clone())
    }
}

/// Adds the cells of a buffer, and to its residences those that they cover; whether they are not too many.
fn cut(
    graph: &Graph,
    plan: &Plan,
    buffer: &Buffer,
    ranges: &mut Vec<Range<usize>>,
    of_residence: &mut IndexVec<ResidenceId, Vec<u32>>,
) -> bool {
    if plan.spaces[buffer.space].kind != SpaceKind::Arena {
        return true;
    }
    let ids = || (buffer.parts.start.raw()..buffer.parts.end.raw()).map(ResidenceId::new);
    let rows: Vec<(ResidenceId, Range<usize>)> = ids()
        .filter_map(|id| Some((id, bytes_of(plan, id)?)))
        .filter(|(_, r)| !r.is_empty())
        .collect();
    let mut ends: Vec<usize> = rows.iter().flat_map(|(_, r)| [r.start, r.end]).collect();
    ends.sort_unstable();
    ends.dedup();
    let at = |end: usize| ends.partition_point(|&other| other < end);
    let covered: usize = rows.iter().map(|(_, r)| at(r.end) - at(r.start)).sum();
    if covered > MOST_COVERED {
        return false;
    }
    let mut stays = vec![false; ends.len()];
    for (id, range) in &rows {
        if holds_output(graph, plan, *id) {
            stays[at(range.start)..at(range.end)].fill(true);
        }
    }
    let numbers: Vec<Option<u32>> = ends
        .windows(2)
        .zip(stays)
        .map(|(pair, stays)| {
            let number = u32::try_from(ranges.len()).expect("cells fit u32");
            ranges.extend((!stays).then(|| pair[0]..pair[1]));
            (!stays).then_some(number)
        })
        .collect();
    for (id, range) in rows {
        of_residence[id].extend(numbers[at(range.start)..at(range.end)].iter().flatten());
    }
    true
}

fn holds_output(graph: &Graph, plan: &Plan, id: ResidenceId) -> bool {
    matches!(plan.residences[id].what, Occupant::Tensor(storage) if graph.holds_output(storage))
}
