//! Events of a plan and the moments of its runs to what was really held.
//!
//! ~~~text
//! plan:     ALLOC a  EXEC 0  EXEC 1  EXEC 2  FREE a       run 1 and run 2 read a
//! really:      |-- run 0 --|-- run 2 --|
//!                          |------ run 1 ------|  FREE a  run 1 ended last: only then is a free
//! ~~~
//! A residence is held from the first start of a run that uses it to the last end of one. Where runs follow each other
//! as the plan says, that is what its events say. Cost: O(n log n).

use super::moments::Moment;
use crate::cover::{Cover, blocks, is_in_arena};
use lowtide_core::{BufferId, Bytes, Event, Id, IndexVec, Plan, ResidenceId, RunId};
use std::time::Duration;

/// A residence that comes or goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) at: Duration,
    pub(super) residence: ResidenceId,
    pub(super) is_alloc: bool,
    /// Bytes held in the arena after it, padded as those of a plan are.
    pub(super) held: Bytes,
}

/// All allocations and frees, in the order of time.
pub(super) fn changes(plan: &Plan, moments: &IndexVec<RunId, Moment>) -> Vec<Change> {
    let mut held = Held::new(plan);
    let mut changes = unsorted(plan, moments);
    // At one moment a run that is over comes before one that begins, and one that takes no time begins before it ends.
    changes.sort_by_key(|&(at, run, is_free, residence)| (at, run, is_free, residence));
    let change = |&(at, _, is_free, residence): &(Duration, RunId, bool, ResidenceId)| {
        held.change(plan, residence, if is_free { -1 } else { 1 });
        Change { at, residence, is_alloc: !is_free, held: Bytes(held.bytes) }
    };
    changes.iter().map(change).collect()
}

/// When what comes or goes; the run that it waits for; whether it goes.
fn unsorted(
    plan: &Plan,
    moments: &IndexVec<RunId, Moment>,
) -> Vec<(Duration, RunId, bool, ResidenceId)> {
    let mut first = IndexVec::filled(plan.residences.len(), None);
    let mut last = IndexVec::filled(plan.residences.len(), None);
    for (id, run) in users(plan) {
        let Moment { start, end } = moments[run];
        first[id] = Some(first[id].map_or((start, run), |known| (start, run).min(known)));
        last[id] = last[id].max(Some((end, run)));
    }
    let mut changes = Vec::new();
    for event in &plan.events {
        let row = match *event {
            Event::Alloc(id) => first[id].map(|(at, run)| (at, run, false, id)),
            Event::Free(id) => last[id].map(|(at, run)| (at, run, true, id)),
            _ => None,
        };
        changes.extend(row);
    }
    changes
}

/// Which runs use which residences: those that are bound to them, and those beside their events.
fn users(plan: &Plan) -> Vec<(ResidenceId, RunId)> {
    let mut users = Vec::new();
    for run in plan.schedule.ids() {
        users.extend(plan.bindings[run].iter().flatten().map(|&id| (id, run)));
    }
    let last = plan.schedule.len().saturating_sub(1);
    let (mut next, mut before) = (0, 0);
    for event in &plan.events {
        match *event {
            Event::Exec(run) => (next, before) = (run.index() + 1, run.index()),
            Event::Alloc(id) => users.push((id, RunId::from_index(next.min(last)))),
            Event::Free(id) => users.push((id, RunId::from_index(before))),
            _ => {}
        }
    }
    users
}

/// What is held at one moment.
struct Held {
    covers: IndexVec<BufferId, Option<Cover>>,
    bytes: u64,
}

impl Held {
    fn new(plan: &Plan) -> Self {
        let cover = |(_, buffer): (BufferId, &lowtide_core::Buffer)| {
            let parts = plan.residences.range(buffer.parts.clone());
            let is_placed = parts.first().is_some_and(|row| is_in_arena(plan, row));
            is_placed.then(|| Cover::new(parts.iter().map(|row| blocks(plan, row))))
        };
        Self { covers: plan.buffers.iter_enumerated().map(cover).collect(), bytes: 0 }
    }

    /// One more or less of what covers the bytes of a residence; what lies in a pool counts nothing.
    fn change(&mut self, plan: &Plan, residence: ResidenceId, by: i32) {
        let row = &plan.residences[residence];
        let Some(cover) = &mut self.covers[row.buffer] else { return };
        let before = cover.covered();
        let (low, high) = blocks(plan, row);
        cover.change(low, high, by);
        self.bytes = self.bytes - before + cover.covered();
    }
}
