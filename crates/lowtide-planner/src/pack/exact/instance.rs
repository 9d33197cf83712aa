//! [`Instance`]: a problem as the search sees it: pieces over sections of time.
//!
//! ~~~text
//! steps      0    3    7        section: a stretch of time in which nothing comes or goes
//! sections   | s0 | s1 |        b0 takes [s0, s2), b1 takes [s1, s2): they overlap in s1
//!
//! offset ^  ┌──┐  run: what a piece takes in some sections, from `bottom` to `top` above its base;
//!        |  │  └──┐    a lifetime with gaps has several, so have staircases
//!        |  └─────┘
//! ~~~

use super::rises::Rises;
use lowtide_core::{Align, BufferId, Id, IndexVec, Item, Lists, Problem, Step};
use std::ops::Range;

/// More items, or more pairs of them, are not searched.
pub(in crate::pack) const MOST_ITEMS: usize = 2048;
const MOST_PAIRS: usize = 1 << 21;
/// More sections, counted once for each piece that is there, are not searched.
const MOST_LIVE: usize = 1 << 22;
/// More pairs of runs of pieces that overlap are not looked at.
const MOST_MEETINGS: usize = 1 << 26;

/// What a piece takes in some sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) sections: Range<usize>,
    /// First byte above the base.
    pub(super) bottom: u64,
    /// The byte after the last one.
    pub(super) top: u64,
}

/// One item that takes bytes.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// The byte after its last one, from its base.
    pub(super) bytes: u64,
    pub(super) align: Align,
    /// The only offset that it can have.
    pub(super) pin: Option<u64>,
    /// From its first section to its last one.
    pub(super) sections: Range<usize>,
    /// By section.
    pub(super) runs: Box<[Run]>,
    /// How long it takes bytes.
    pub(super) duration: u64,
}

/// Pieces with who meets whom. The search places pieces of one offset in the order of their ids.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub(super) pieces: IndexVec<BufferId, Piece>,
    /// Who is there at the same time.
    pub(super) overlaps: Lists<BufferId, BufferId>,
    /// How far one lies above the other, where that is not the size of the lower one.
    pub(super) rises: Option<Rises>,
    /// Who is there in each section.
    pub(super) live: Vec<Vec<BufferId>>,
    /// All offsets that matter are multiples of this.
    pub(super) grain: u64,
    /// The item of the problem that each piece is; empty ones are left out.
    pub(super) items: IndexVec<BufferId, BufferId>,
    /// Whether each piece stands on its base wherever it is: then a search that finds nothing has proven it.
    /// Something that hangs over may be held up by what comes after it, which the search does not look for.
    pub(super) stands: bool,
}

impl Instance {
    /// `None` if there is too much.
    pub(super) fn new(problem: &Problem) -> Option<Self> {
        let items = problem.items().iter_enumerated().filter(|(_, item)| item.takes_bytes());
        let items: IndexVec<BufferId, BufferId> = items.map(|(id, _)| id).collect();
        if items.len() > MOST_ITEMS {
            return None;
        }
        let axis = Axis::new(problem, &items);
        let pieces: IndexVec<BufferId, Piece> =
            items.iter().map(|&id| axis.piece(&problem.items()[id])).collect();
        let runs = pieces.iter().flat_map(|piece| &piece.runs);
        if runs.map(|run| run.sections.len()).sum::<usize>() > MOST_LIVE {
            return None;
        }
        let live = live(&pieces, axis.times.len().saturating_sub(1));
        let overlaps = overlaps(&pieces, &live)?;
        let meetings = overlaps.iter().zip(&pieces).map(|(others, piece)| {
            piece.runs.len() * others.iter().map(|&other| pieces[other].runs.len()).sum::<usize>()
        });
        if meetings.sum::<usize>() > MOST_MEETINGS {
            return None;
        }
        let stands = pieces.iter().flat_map(|piece| &piece.runs).all(|run| run.bottom == 0);
        let grain = grain(&pieces);
        let rises = Rises::new(&pieces, &overlaps);
        Some(Self { pieces, overlaps, rises, live, grain, items, stands })
    }

    /// The same with the pieces in another order.
    pub(super) fn ordered(&self, order: &[BufferId]) -> Self {
        let mut place = IndexVec::filled(order.len(), BufferId::from_index(0));
        for (at, &piece) in order.iter().enumerate() {
            place[piece] = BufferId::from_index(at);
        }
        let renamed =
            |list: &[BufferId]| list.iter().map(|&other| place[other]).collect::<Vec<_>>();
        let mut overlaps = Lists::new();
        for &piece in order {
            overlaps.push(renamed(&self.overlaps[piece]));
        }
        Self {
            pieces: order.iter().map(|&piece| self.pieces[piece].clone()).collect(),
            overlaps,
            rises: self.rises.as_ref().map(|rises| rises.ordered(order)),
            live: self.live.iter().map(|list| renamed(list)).collect(),
            grain: self.grain,
            items: order.iter().map(|&piece| self.items[piece]).collect(),
            stands: self.stands,
        }
    }
}

/// The times at which something comes or goes.
struct Axis {
    times: Vec<u32>,
    /// When each of them is, in the time of the problem.
    starts: Vec<u64>,
}

impl Axis {
    fn new(problem: &Problem, items: &IndexVec<BufferId, BufferId>) -> Self {
        let rects = items.iter().flat_map(|&id| problem.items()[id].rects());
        let rects = rects.filter(|rect| rect.takes_bytes());
        let mut times: Vec<u32> =
            rects.flat_map(|rect| [rect.span.start.0, rect.span.end.0]).collect();
        times.sort_unstable();
        times.dedup();
        let starts = starts(problem);
        let starts = times.iter().map(|&time| starts[time as usize]).collect();
        Self { times, starts }
    }

    fn section(&self, time: u32) -> usize {
        self.times.partition_point(|&other| other < time)
    }

    fn piece(&self, item: &Item) -> Piece {
        let rects = item.rects().iter().filter(|rect| rect.takes_bytes());
        let mut runs: Vec<Run> = rects
            .map(|rect| Run {
                sections: self.section(rect.span.start.0)..self.section(rect.span.end.0),
                bottom: rect.offset.0,
                top: rect.end().0,
            })
            .collect();
        runs.sort_by_key(|run| (run.sections.start, run.bottom));
        let first = runs.iter().map(|run| run.sections.start).min().unwrap_or_default();
        let last = runs.iter().map(|run| run.sections.end).max().unwrap_or_default();
        let length = |run: &Run| self.starts[run.sections.end] - self.starts[run.sections.start];
        Piece {
            bytes: item.extent().0,
            align: item.align,
            pin: item.pin.map(|pin| pin.0),
            sections: first..last,
            duration: runs.iter().map(length).fold(0, u64::saturating_add),
            runs: runs.into_boxed_slice(),
        }
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

/// Who is there in each section, each once.
fn live(pieces: &IndexVec<BufferId, Piece>, sections: usize) -> Vec<Vec<BufferId>> {
    let mut live: Vec<Vec<BufferId>> = vec![Vec::new(); sections];
    for (id, piece) in pieces.iter_enumerated() {
        for list in piece.runs.iter().flat_map(|run| run.sections.clone()) {
            if live[list].last() != Some(&id) {
                live[list].push(id);
            }
        }
    }
    live
}

/// Who overlaps whom; `None` if these are too many. Cost: linear in the answer, for pieces of few runs.
fn overlaps(
    pieces: &IndexVec<BufferId, Piece>,
    live: &[Vec<BufferId>],
) -> Option<Lists<BufferId, BufferId>> {
    let mut starting: Vec<Vec<BufferId>> = vec![Vec::new(); live.len()];
    for (id, piece) in pieces.iter_enumerated() {
        piece.runs.iter().for_each(|run| starting[run.sections.start].push(id));
    }
    let mut lists = Lists::default();
    let mut left = 2 * MOST_PAIRS;
    let mut seen = IndexVec::filled(pieces.len(), BufferId::from_index(pieces.len()));
    for (id, piece) in pieces.iter_enumerated() {
        let mut others = Vec::new();
        for Run { sections, .. } in &piece.runs {
            let later = starting[sections.start + 1..sections.end].iter();
            for &other in later.chain([&live[sections.start]]).flatten() {
                if other != id && seen[other] != id {
                    seen[other] = id;
                    others.push(other);
                }
            }
        }
        left = left.checked_sub(others.len())?;
        lists.push(others);
    }
    Some(lists)
}

fn grain(pieces: &IndexVec<BufferId, Piece>) -> u64 {
    let numbers = pieces.iter().flat_map(|piece| {
        let ends = piece.runs.iter().flat_map(|run| [run.bottom, run.top]);
        ends.chain([piece.bytes, piece.align.bytes().0, piece.pin.unwrap_or(0)])
    });
    numbers.fold(0, gcd).max(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
