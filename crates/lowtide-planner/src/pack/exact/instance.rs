//! [`Instance`]: a problem as the search sees it: items over sections of time.
//!
//! ~~~text
//! steps      0    3    7        section: a stretch of time in which nothing comes or goes
//! sections   | s0 | s1 |        b0 takes [s0, s2), b1 takes [s1, s2): they overlap in s1
//! ~~~

use lowtide_core::{Align, BufferId, Bytes, Id, IndexVec, Lists, Problem, Step};
use std::ops::Range;

/// More items, or more pairs of them, are not searched.
pub(in crate::pack) const MOST_ITEMS: usize = 2048;
const MOST_PAIRS: usize = 1 << 21;

/// One item.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) bytes: u64,
    pub(super) align: Align,
    pub(super) sections: Range<usize>,
    /// How long it lives.
    pub(super) duration: u64,
}

/// Items of one rectangle each, none of them empty or fixed.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub(super) pieces: IndexVec<BufferId, Piece>,
    /// Who is there at the same time.
    pub(super) overlaps: Lists<BufferId, BufferId>,
    /// Who is there in each section.
    pub(super) live: Vec<Vec<BufferId>>,
    /// All offsets that matter are multiples of this.
    pub(super) grain: u64,
    /// The item of the problem that each piece is; empty ones are left out.
    pub(super) items: IndexVec<BufferId, BufferId>,
}

impl Instance {
    /// `None` if there is an item of several rectangles or with a fixed offset, or there is too much of all.
    pub(super) fn new(problem: &Problem) -> Option<Self> {
        let mut rows = Vec::new();
        for (id, item) in problem.items().iter_enumerated() {
            let [rect] = item.rects() else { return None };
            if item.pin.is_some() || rect.offset > Bytes::ZERO {
                return None;
            }
            if rect.bytes > Bytes::ZERO && !rect.span.is_empty() {
                rows.push((id, *rect, item.align));
            }
        }
        if rows.len() > MOST_ITEMS {
            return None;
        }
        let starts = starts(problem);
        let mut times: Vec<u32> =
            rows.iter().flat_map(|(_, rect, _)| [rect.span.start.0, rect.span.end.0]).collect();
        times.sort_unstable();
        times.dedup();
        let section = |time: u32| times.partition_point(|&other| other < time);
        let mut pieces = IndexVec::new();
        let mut items = IndexVec::new();
        let start_of: Vec<u64> = times.iter().map(|&time| starts[time as usize]).collect();
        for (id, rect, align) in rows {
            let sections = section(rect.span.start.0)..section(rect.span.end.0);
            let duration = start_of[sections.end] - start_of[sections.start];
            pieces.push(Piece { bytes: rect.bytes.0, align, sections, duration });
            items.push(id);
        }
        let live = live(&pieces, times.len().saturating_sub(1));
        let overlaps = overlaps(&pieces, &live)?;
        let grain = pieces
            .iter()
            .fold(0, |all, piece: &Piece| gcd(gcd(all, piece.bytes), piece.align.bytes().0));
        Some(Self { pieces, overlaps, live, grain: grain.max(1), items })
    }

    /// All pieces.
    pub(super) fn ids(&self) -> impl Iterator<Item = BufferId> + use<> {
        self.pieces.ids()
    }
}

/// When each step starts, and when the last one ends.
fn starts(problem: &Problem) -> Vec<u64> {
    let durations = (0..problem.steps()).map(|step| problem.duration(Step::from_index(step)));
    let mut now = 0_u64;
    let ends = durations.map(|duration| {
        now = now.saturating_add(duration);
        now
    });
    std::iter::once(0).chain(ends).collect()
}

fn live(pieces: &IndexVec<BufferId, Piece>, sections: usize) -> Vec<Vec<BufferId>> {
    let mut live = vec![Vec::new(); sections];
    for (id, piece) in pieces.iter_enumerated() {
        live[piece.sections.clone()].iter_mut().for_each(|list| list.push(id));
    }
    live
}

/// Who overlaps whom; `None` if these are too many.
fn overlaps(
    pieces: &IndexVec<BufferId, Piece>,
    live: &[Vec<BufferId>],
) -> Option<Lists<BufferId, BufferId>> {
    let mut lists = Lists::default();
    let mut left = 2 * MOST_PAIRS;
    let mut seen = IndexVec::filled(pieces.len(), BufferId::from_index(pieces.len()));
    for (id, piece) in pieces.iter_enumerated() {
        let mut others = Vec::new();
        for &other in live[piece.sections.clone()].iter().flatten() {
            if other != id && seen[other] != id {
                seen[other] = id;
                others.push(other);
            }
        }
        left = left.checked_sub(others.len())?;
        lists.push(others);
    }
    Some(lists)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
