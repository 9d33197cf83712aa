//! [`Search`]: depth first over partial placements, on a stack of its own; it can be left and taken up again.
//!
//! ~~~text
//! frames     a ─ b ─ c ─ ...         each frame: who can come next, lowest first, and how far it has tried
//! groups         └ left | right      nothing crosses a section any more: the parts are searched one after the other,
//!                                    and where one fails, so does the frame before the split
//! ~~~
//! A piece that starts above some top need not be tried: the piece with that top would fit below it. A piece that
//! overlaps nothing that is still to come can do no harm: if it does not help, nothing else does. A search that ends by
//! itself has proven its answer, if the pieces stand on their bases.

use super::instance::Instance;
use super::state::{PLACED, State};
use crate::meter::Meter;
use lowtide_core::BufferId;
use std::ops::Range;

/// How a search ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All pieces are placed.
    Found,
    /// There is no way.
    None,
    /// It was left before its end.
    Unknown,
}

/// Sections that nothing crosses into or out of, and what is still to come in them.
#[derive(Debug)]
struct Part {
    pieces: Vec<BufferId>,
    sections: Range<usize>,
}

/// Parts that are searched one after the other.
#[derive(Debug)]
struct Group {
    parts: Vec<Part>,
    /// How many of them are done.
    done: usize,
    /// The frame that was split.
    parent: Option<usize>,
}

#[derive(Debug)]
struct Frame {
    group: usize,
    part: usize,
    /// The frame that goes on if this one fails.
    parent: Option<usize>,
    /// How many pieces were placed, and how many groups there were.
    height: usize,
    groups: usize,
    /// Its candidates in the pool, those tried first.
    candidates: Range<usize>,
    tried: usize,
    /// The last one tried overlapped nothing that was still to come.
    is_free: bool,
}

/// A search for a placement within a capacity.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) state: State,
    frames: Vec<Frame>,
    groups: Vec<Group>,
    /// Candidates of all frames with their offsets.
    pool: Vec<(u64, BufferId)>,
    end: Option<End>,
}

impl Search {
    /// Pieces of one offset are placed in the order of their ids.
    pub(super) fn new(instance: Instance, capacity: u64) -> Self {
        let state = State::new(instance, capacity);
        let (frames, groups, pool) = (Vec::new(), Vec::new(), Vec::new());
        let mut search = Self { state, frames, groups, pool, end: None };
        let all = Part {
            pieces: search.state.instance.pieces.ids().collect(),
            sections: 0..search.state.instance.live.len(),
        };
        if !search.state.starts_well() {
            search.end = Some(End::None);
        } else if all.pieces.is_empty() {
            search.end = Some(End::Found);
        } else {
            search.split(&all, None);
        }
        search
    }

    /// Goes on until it ends, so many pieces were tried, or the steps run out.
    pub(super) fn run(&mut self, tries: u64, meter: &mut Meter<'_>) -> End {
        for _ in 0..tries {
            if let Some(end) = self.end {
                return end;
            }
            if meter.is_out() {
                break;
            }
            self.step();
            meter.spend(1 + std::mem::take(&mut self.state.work));
        }
        self.end.unwrap_or(End::Unknown)
    }

    /// Tries the next candidate of the last frame.
    fn step(&mut self) {
        let at = self.frames.len() - 1;
        let frame = &mut self.frames[at];
        let next = frame.candidates.start + frame.tried;
        if next == frame.candidates.end {
            return self.fail(at);
        }
        frame.tried += 1;
        let (_, item) = self.pool[next];
        frame.is_free = self.state.open[item] == 0;
        if self.state.place(item, &self.pool[frame.candidates.start..next]) {
            self.go_on(at, item);
        } else {
            self.state.undo_to(frame.height);
        }
    }

    /// Searches on behind a piece, in parts if it was the last that crossed a section.
    fn go_on(&mut self, at: usize, item: BufferId) {
        let Frame { group, part, .. } = self.frames[at];
        let sections = &self.groups[group].parts[part].sections;
        let own = &self.state.instance.pieces[item].sections;
        let mut cuts = own.start.max(sections.start + 1)..(own.end + 1).min(sections.end);
        if cuts.any(|section| self.state.crossing[section] == 0) {
            let pieces = &self.groups[group].parts[part].pieces;
            let rest = pieces.iter().copied().filter(|&piece| self.state.low[piece] != PLACED);
            let rest = Part { pieces: rest.collect(), sections: sections.clone() };
            if rest.pieces.is_empty() {
                return self.succeed(group);
            }
            return self.split(&rest, Some(at));
        }
        self.enter(group, part, Some(at));
    }

    /// Makes a group of the stretches that nothing crosses, those with the fewest pieces first, and starts with the first.
    fn split(&mut self, whole: &Part, parent: Option<usize>) {
        let mut cuts = vec![whole.sections.start];
        let inner = whole.sections.start + 1..whole.sections.end;
        cuts.extend(inner.filter(|&section| self.state.crossing[section] == 0));
        let ends = cuts.iter().skip(1).copied().chain([whole.sections.end]);
        let sections = cuts.iter().copied().zip(ends).map(|(start, end)| start..end);
        let mut parts: Vec<Part> =
            sections.map(|sections| Part { pieces: Vec::new(), sections }).collect();
        for &piece in &whole.pieces {
            let first = self.state.instance.pieces[piece].sections.start;
            parts[cuts.partition_point(|&cut| cut <= first) - 1].pieces.push(piece);
        }
        parts.retain(|part| !part.pieces.is_empty());
        parts.sort_by_key(|part| part.pieces.len());
        self.groups.push(Group { parts, done: 0, parent });
        self.enter(self.groups.len() - 1, 0, parent);
    }

    /// Pushes a frame; if nothing of its part is still to come, the part is done.
    fn enter(&mut self, group: usize, part: usize, parent: Option<usize>) {
        let start = self.pool.len();
        if !self.collect(group, part) {
            return self.succeed(group);
        }
        let candidates = start..self.pool.len();
        let (height, groups) = (self.state.height(), self.groups.len());
        let (tried, is_free) = (0, false);
        self.frames.push(Frame { group, part, parent, height, groups, candidates, tried, is_free });
    }

    /// Puts those that can come next into the pool, lowest first: below every top, and not so high that the rest
    /// has no room. `false` if nothing is still to come.
    fn collect(&mut self, group: usize, part: usize) -> bool {
        let Part { pieces, sections } = &self.groups[group].parts[part];
        let state = &mut self.state;
        state.work += pieces.len() as u64;
        let tops = pieces.iter().map(|&id| state.low[id] + state.instance.pieces[id].bytes);
        let roof = tops.fold(PLACED, u64::min);
        if roof == PLACED {
            return false;
        }
        let Some(ceiling) = state.ceiling(sections) else { return true };
        let start = self.pool.len();
        let limit = roof.min(ceiling + 1);
        let lows = pieces.iter().map(|&piece| (state.low[piece], piece));
        self.pool.extend(lows.filter(|&(low, _)| low < limit));
        self.pool[start..].sort_unstable();
        true
    }

    /// A part is done: the next one of its group, or of the group before the split.
    fn succeed(&mut self, mut group: usize) {
        loop {
            let Group { parts, done, parent } = &mut self.groups[group];
            *done += 1;
            if *done < parts.len() {
                let (part, parent) = (*done, *parent);
                return self.enter(group, part, parent);
            }
            let Some(parent) = *parent else {
                self.end = Some(End::Found);
                return;
            };
            group = self.frames[parent].group;
        }
    }

    /// A frame has no way on: the one before the split, or before its last piece, tries its next candidate. If that
    /// piece was free to lie there, nothing else helps, and that frame fails too.
    fn fail(&mut self, mut at: usize) {
        loop {
            let Some(parent) = self.frames[at].parent else {
                self.end = Some(End::None);
                return;
            };
            self.frames.truncate(parent + 1);
            let frame = &self.frames[parent];
            self.groups.truncate(frame.groups);
            self.pool.truncate(frame.candidates.end);
            self.state.undo_to(frame.height);
            if !frame.is_free {
                return;
            }
            at = parent;
        }
    }
}
