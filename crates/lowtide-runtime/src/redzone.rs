//! Red zones: bytes that nobody holds keep their poison, so that a write beyond the end of a tensor shows.
//!
//! ~~~text
//! arena while `relu` runs:   [ a ..... |~~~~| b ........... |~~~~~~~~| c ... ]      ~ held by nobody: poison
//!                                       └ looked at after `relu`, which writes b ┘
//! ~~~
//! In guard mode all of the arena is poison before a run, and again what is freed: so every byte that nobody holds is,
//! whether it is a zone that was planned, padding behind a tensor, or a hole. After an operator only the bytes near what
//! it wrote are looked at; those that nobody ever holds can be looked at any time.
//!
//! [`beside_writes`] follows the events one after the other: where operators run side by side, another one may hold these
//! bytes by then, and only [`never_held`] is right. Cost: O(n log n) for the tables, where no buffer holds many parts;
//! then two zones an operand.

use crate::guard::{bytes_of, poison_at, without};
use lowtide_core::{Event, Graph, IndexVec, Plan, ResidenceId, RunId};
use std::collections::BTreeMap;
use std::ops::Range;

/// How far beside what an operator writes is looked: a red zone, and what a kernel may well write too far.
const REACH: usize = 256;

/// Which bytes have to be poison when.
#[derive(Debug)]
pub(crate) struct Zones {
    /// After each run, if one worker follows the events.
    beside: Option<IndexVec<RunId, Vec<Range<usize>>>>,
    /// At any time.
    always: Vec<Range<usize>>,
}

impl Zones {
    /// `in_order` if one worker follows the events, and poisons all that is freed.
    pub(crate) fn new(graph: &Graph, plan: &Plan, in_order: bool) -> Self {
        let beside = in_order.then(|| beside_writes(graph, plan, REACH));
        Self { beside, always: never_held(plan) }
    }

    /// What has to be poison after a run.
    pub(crate) fn after(&self, run: RunId) -> &[Range<usize>] {
        self.beside.as_ref().map_or(&[], |rows| &rows[run])
    }

    /// What has to be poison at the end.
    pub(crate) fn always(&self) -> &[Range<usize>] {
        &self.always
    }
}

/// The bytes of the arena that nobody holds in any step, ascending.
pub(crate) fn never_held(plan: &Plan) -> Vec<Range<usize>> {
    let held = plan.residences.ids().filter_map(|id| bytes_of(plan, id));
    let mut held: Vec<Range<usize>> = held.filter(|range| !range.is_empty()).collect();
    held.sort_by_key(|range| range.start);
    without(arena(plan), &held)
}

/// For each run: the bytes at most `reach` from what it writes that nobody holds while it runs, ascending.
pub(crate) fn beside_writes(
    graph: &Graph,
    plan: &Plan,
    reach: usize,
) -> IndexVec<RunId, Vec<Range<usize>>> {
    let mut held = Held::default();
    let mut rows = IndexVec::filled(plan.schedule.len(), Vec::new());
    for event in &plan.events {
        match *event {
            Event::Alloc(id) => held.change(bytes_of(plan, id), 1),
            Event::Free(id) => held.change(bytes_of(plan, id), -1),
            Event::Exec(run) => {
                let near = near_writes(graph, plan, run, reach);
                rows[run] = near.into_iter().flat_map(|range| held.without(range)).collect();
            }
            _ => {}
        }
    }
    rows
}

/// The bytes from the first to the last damaged one, in the first hole in which there is any; holes must be poison.
pub(crate) fn damaged(memory: &[u8], holes: &[Range<usize>]) -> Option<Range<usize>> {
    let is_damaged = |at: &usize| memory[*at] != poison_at(*at);
    let find = |hole: &Range<usize>| {
        let start = hole.clone().find(is_damaged)?;
        let last = (start..hole.end).rfind(is_damaged)?;
        Some(start..last + 1)
    };
    holes.iter().find_map(find)
}

/// The residences that a run writes: those of its outputs, and its scratch.
pub(crate) fn written<'p>(
    graph: &Graph,
    plan: &'p Plan,
    run: RunId,
) -> impl Iterator<Item = ResidenceId> + use<'p> {
    let inputs = graph.ops()[plan.op(run)].inputs.len();
    plan.bindings[run].iter().skip(inputs).filter_map(|&bound| bound)
}

fn arena(plan: &Plan) -> Range<usize> {
    0..usize::try_from(plan.stats.arena_bytes.0).unwrap_or(usize::MAX)
}

/// The arena within `reach` of what a run writes: ranges that do not touch, ascending.
fn near_writes(graph: &Graph, plan: &Plan, run: RunId, reach: usize) -> Vec<Range<usize>> {
    let end = arena(plan).end;
    let wide = |range: Range<usize>| {
        range.start.saturating_sub(reach)..range.end.saturating_add(reach).min(end)
    };
    let ranges = written(graph, plan, run).filter_map(|id| bytes_of(plan, id));
    let mut ranges: Vec<Range<usize>> =
        ranges.filter(|range| !range.is_empty()).map(wide).filter(|r| !r.is_empty()).collect();
    ranges.sort_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let touches = next.start <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
    ranges
}

/// By how many residences each byte is held: from each key on up to the next one.
#[derive(Debug, Default)]
struct Held(BTreeMap<usize, u32>);

impl Held {
    /// One residence more or less on these bytes.
    fn change(&mut self, range: Option<Range<usize>>, by: i32) {
        let Some(range) = range.filter(|range| !range.is_empty()) else { return };
        for at in [range.start, range.end] {
            let count = self.0.range(..=at).next_back().map_or(0, |(_, &count)| count);
            self.0.insert(at, count);
        }
        for (_, count) in self.0.range_mut(range.clone()) {
            *count = count.saturating_add_signed(by);
        }
        // Keys that no longer divide anything go, so that a wide range does not walk over all that ever was.
        let mut before = self.0.range(..range.start).next_back().map_or(0, |(_, &count)| count);
        let mut is_same = |(&at, &count): (&usize, &u32)| {
            let is_same = count == before;
            before = count;
            is_same.then_some(at)
        };
        let same: Vec<usize> =
            self.0.range(range.start..=range.end).filter_map(&mut is_same).collect();
        for at in same {
            self.0.remove(&at);
        }
    }

    /// What of a range, which is not empty, nobody holds.
    fn without(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let first = self.0.range(..=range.start).next_back().map_or(0, |(_, &count)| count);
        let later = self.0.range(range.start + 1..range.end).map(|(&at, &count)| (at, count));
        let sections: Vec<(usize, u32)> =
            std::iter::once((range.start, first)).chain(later).collect();
        let ends = sections.iter().skip(1).map(|&(at, _)| at).chain([range.end]);
        let free = sections.iter().zip(ends).filter(|((_, count), _)| *count == 0);
        free.map(|(&(start, _), end)| start..end).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::poison;
    use crate::testing::{ARENA, bytes, random_plan};

    /// What a bitmap says: the bytes that nobody holds during these steps.
    fn free(plan: &Plan, steps: Range<usize>) -> Vec<bool> {
        let mut free = vec![true; ARENA];
        for (id, row) in plan.residences.iter_enumerated() {
            if row.span.start.index() < steps.end && steps.start < row.span.end.index() {
                free[bytes(plan, id)].fill(false);
            }
        }
        free
    }

    fn marked(holes: &[Range<usize>]) -> Vec<bool> {
        let mut marked = vec![false; ARENA];
        for hole in holes {
            assert!(!hole.is_empty());
            assert!(marked[hole.clone()].iter().all(|&is_marked| !is_marked), "{holes:?}");
            marked[hole.clone()].fill(true);
        }
        marked
    }

    #[test]
    fn holes_are_what_nobody_holds() {
        arbtest::arbtest(|u| {
            let (graph, plan) = random_plan(u)?;
            let steps = plan.schedule.len();
            assert_eq!(marked(&never_held(&plan)), free(&plan, 0..steps));
            let reach = u.int_in_range(0..=100)?;
            for (run, holes) in beside_writes(&graph, &plan, reach).iter_enumerated() {
                let mut wanted = free(&plan, run.step().index()..run.step().index() + 1);
                let written: Vec<Range<usize>> = written(&graph, &plan, run)
                    .map(|id| bytes(&plan, id))
                    .filter(|range| !range.is_empty())
                    .collect();
                for (at, is_wanted) in wanted.iter_mut().enumerate() {
                    let is_near =
                        |range: &Range<usize>| at + reach >= range.start && at < range.end + reach;
                    *is_wanted &= written.iter().any(is_near);
                }
                assert_eq!(marked(holes), wanted, "{run} {plan:#?}");
            }
            Ok(())
        });
    }

    #[test]
    fn damage_is_found_to_the_byte() {
        let mut memory = vec![0; 64];
        let holes = [3..17, 20..20, 32..64];
        assert_eq!(damaged(&memory, &holes), Some(3..17));
        for hole in &holes {
            poison(&mut memory, hole.clone());
        }
        assert_eq!(damaged(&memory, &holes), None);
        memory[17..20].fill(1);
        assert_eq!(damaged(&memory, &holes), None);
        (memory[40], memory[47]) = (0, 1);
        assert_eq!(damaged(&memory, &holes), Some(40..48));
        memory[16] = 0;
        assert_eq!(damaged(&memory, &holes), Some(16..17));
    }
}
