//! The buffers of a plan as the items of a problem, worked out from its residences.
//!
//! ~~~text
//! buffer:  [ a: steps 0-3 ][ b: 3-7 ]     item:  [     one rectangle     ]
//!          b is written over a at step 2,        bytes that two residences share are taken once,
//!          so both hold the bytes then           bytes that none holds at a step are not taken
//! ~~~
//! Items are numbered as the buffers are. Only what a certificate is about is worked out: one step, or the
//! buffers that it names; the other items have no rectangles. Only for plans of one arena, since what is
//! topmost in each of several would be lost in each. Cost: O(n log n) for a step.

use super::{padded, reserved_bytes};
use crate::{
    Buffer, BufferId, Bytes, Graph, IndexVec, Interval, Item, Plan, Problem, Rect, Rects,
    Residence, SpaceKind, Step,
};
use std::collections::BTreeSet;

/// More residences than these are not taken apart for one certificate.
const MOST_PARTS: usize = 1024;

/// What is there at one step; `None` if there is no such step, or not one arena.
pub(super) fn at_step(graph: &Graph, plan: &Plan, step: Step) -> Option<Problem> {
    if step.index() >= plan.schedule.len() {
        return None;
    }
    let window = Interval::new(step, step.next());
    problem(plan, |_, buffer| rects(graph, plan, buffer, window))
}

/// The named buffers; `None` if they hold too much, or there is not one arena.
pub(super) fn of_buffers(graph: &Graph, plan: &Plan, named: &[BufferId]) -> Option<Problem> {
    let named: BTreeSet<BufferId> = named.iter().copied().collect();
    let mut parts = 0;
    for &id in &named {
        let range = &plan.buffers.get(id)?.parts;
        parts += plan.residences.range(range.clone()).len();
    }
    if parts > MOST_PARTS {
        return None;
    }
    let all = Interval::new(Step::ZERO, Step::from_index(plan.schedule.len()));
    problem(
        plan,
        |id, buffer| {
            if named.contains(&id) { rects(graph, plan, buffer, all) } else { Vec::new() }
        },
    )
}

fn problem(plan: &Plan, rects: impl Fn(BufferId, &Buffer) -> Vec<Rect>) -> Option<Problem> {
    let arenas = plan.spaces.iter().filter(|space| space.kind == SpaceKind::Arena);
    if arenas.count() != 1 {
        return None;
    }
    let item = |(id, buffer): (BufferId, &Buffer)| {
        // What has no offset lies in a pool.
        let rects = if buffer.offset.is_some() { rects(id, buffer) } else { Vec::new() };
        Item { rects: Rects::from(rects), align: buffer.align, pin: None }
    };
    let items: IndexVec<BufferId, Item> = plan.buffers.iter_enumerated().map(item).collect();
    Problem::new(items).ok()
}

/// The bytes that a buffer holds during `window`, without those that are held twice.
fn rects(graph: &Graph, plan: &Plan, buffer: &Buffer, window: Interval) -> Vec<Rect> {
    let parts = plan.residences.range(buffer.parts.clone());
    let end = |part: &Residence| part.offset + part.size.bound().unwrap_or_default();
    let extent = parts.iter().map(end).max().unwrap_or_default();
    let mut held = Vec::new();
    for part in parts.iter().filter(|part| part.size.bound().is_some_and(|n| n > Bytes::ZERO)) {
        let mut bytes = reserved_bytes(graph, plan, part.what).unwrap_or_default();
        if end(part) == extent {
            // The buffer itself is padded, also behind a part.
            bytes = bytes.max(padded(plan, extent) - part.offset);
        }
        let start = part.span.start.max(window.start);
        let span = Interval::new(start, part.span.end.min(window.end));
        if bytes > Bytes::ZERO && !span.is_empty() {
            held.push(Rect { offset: part.offset, bytes, span });
        }
    }
    held.sort_unstable();
    let mut times: Vec<Step> =
        held.iter().flat_map(|rect| [rect.span.start, rect.span.end]).collect();
    times.sort_unstable();
    times.dedup();
    let mut rects: Vec<Rect> = Vec::new();
    let mut before = 0..0;
    for time in times.windows(2) {
        let section = Interval::new(time[0], time[1]);
        let next = taken(&held, section);
        let same = rects[before.clone()].iter().zip(&next).all(|(a, b)| {
            a.offset == b.offset && a.bytes == b.bytes && a.span.end == section.start
        });
        if same && before.len() == next.len() {
            rects[before.clone()].iter_mut().for_each(|rect| rect.span.end = section.end);
            continue;
        }
        before = rects.len()..rects.len() + next.len();
        rects.extend(next);
    }
    rects
}

/// The ranges that are taken during a section in which nothing comes or goes; `held` is sorted by offset.
fn taken(held: &[Rect], section: Interval) -> Vec<Rect> {
    let mut taken: Vec<Rect> = Vec::new();
    for rect in held.iter().filter(|rect| rect.span.overlaps(section)) {
        match taken.last_mut() {
            Some(last) if rect.offset <= last.end() => {
                last.bytes = last.end().max(rect.end()).saturating_sub(last.offset);
            }
            _ => taken.push(Rect { span: section, ..*rect }),
        }
    }
    taken
}
