//! [`live_curve`]: bytes live at each step, from the residences of a plan.
//!
//! Residences of one buffer that lie on the same bytes count once: an output written over a dying input
//! adds nothing during the step in which both are there.
//!
//! ~~~text
//! offset ^  [ a: steps 0-3 ][ b ]         buffer: b is written over a during step 3
//!        +--------------------------> step
//! live      64  64  64   64  64           not 128 at step 3
//! ~~~
//! A residence covers every aligned block that it touches. Each buffer is swept over time. Cost: O(n log n).

use crate::cover::{Cover, blocks, is_in_arena};
use lowtide_core::{BufferId, Bytes, IndexVec, Plan, Residence};
use std::collections::BTreeMap;

/// Bytes live in arenas at each step of a plan, padded to its alignment.
pub fn live_curve(plan: &Plan) -> Vec<Bytes> {
    let mut changes = Changes::new(plan.schedule.len());
    let mut shared: BTreeMap<BufferId, Vec<Stay>> = BTreeMap::new();
    let mut tenants: IndexVec<BufferId, u32> = IndexVec::filled(plan.buffers.len(), 0);
    let in_arena = |row: &&Residence| is_in_arena(plan, row);
    for row in plan.residences.iter().filter(in_arena) {
        tenants[row.buffer] += 1;
    }
    for row in plan.residences.iter().filter(in_arena) {
        let stay = Stay::of(plan, row);
        if tenants[row.buffer] == 1 {
            changes.add(stay.start, i128::from(stay.high - stay.low));
            changes.add(stay.end, -i128::from(stay.high - stay.low));
            continue;
        }
        shared.entry(row.buffer).or_default().push(stay);
    }
    for stays in shared.values() {
        sweep(stays, &mut changes);
    }
    changes.sum()
}

/// The blocks and steps of one residence, both half-open.
#[derive(Clone, Copy, Debug)]
struct Stay {
    low: u64,
    high: u64,
    start: usize,
    end: usize,
}

impl Stay {
    fn of(plan: &Plan, row: &Residence) -> Self {
        let (low, high) = blocks(plan, row);
        let (start, end) = (row.span.start.index(), row.span.end.index());
        Self { low, high, start, end: end.max(start) }
    }
}

/// What is added at each step to the bytes live before it.
struct Changes(Vec<i128>);

impl Changes {
    fn new(steps: usize) -> Self {
        Self(vec![0; steps])
    }

    /// Beyond the last step nothing is counted.
    fn add(&mut self, step: usize, bytes: i128) {
        if let Some(change) = self.0.get_mut(step) {
            *change += bytes;
        }
    }

    fn sum(self) -> Vec<Bytes> {
        let mut live = 0;
        let mut step = |change| {
            live += change;
            Bytes(u64::try_from(live).unwrap_or(u64::MAX))
        };
        self.0.into_iter().map(&mut step).collect()
    }
}

/// Follows one buffer through time and notes how many of its bytes are covered.
fn sweep(stays: &[Stay], changes: &mut Changes) {
    let mut cover = Cover::new(stays.iter().map(|stay| (stay.low, stay.high)));
    let starts = stays.iter().map(|stay| (stay.start, 1, stay));
    let ends = stays.iter().map(|stay| (stay.end, -1, stay));
    let mut events: Vec<(usize, i32, &Stay)> = starts.chain(ends).collect();
    events.sort_by_key(|&(step, ..)| step);
    for (step, by, stay) in events {
        let before = i128::from(cover.covered());
        cover.change(stay.low, stay.high, by);
        changes.add(step, i128::from(cover.covered()) - before);
    }
}

#[cfg(test)]
mod tests;
