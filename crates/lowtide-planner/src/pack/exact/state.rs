//! [`State`]: a partial placement from below, and what follows from it.
//!
//! ~~~text
//! offset ^
//!        |   rest: c, d still to come      floor + rest > capacity in some section: no way on
//!        |  ┌───┐_______floor              floor: no piece that is still to come can lie lower here
//!        |  │ a │┌────┐
//!        |  └───┘│ b  │
//!        +---------------> sections
//! ~~~
//! Pieces are placed at offsets that never fall, ties by id, each at the lowest offset that those placed so far leave
//! it. Every placement of pieces that stand on their bases can be pushed down to one of this kind, so nothing is lost.
//! From that follows, after each piece:
//!
//! - who overlaps it lies above it;
//! - a piece that was passed over (it could have come earlier, and did not) has to rest on one that is still to come,
//!   so it lies above the lowest top of those;
//! - in each section, nobody lies below the lowest offset of those that are still to come;
//! - a piece with a fixed offset that would have to lie higher is a dead end.
//!
//! The second is not in `MiniMalloc` (Moffitt, ASPLOS 2023), whose search this is otherwise. What is the least of many
//! (the floor of a section, the top under a piece passed over) is worked out again only when the one that it came from
//! has changed, as watched literals are in SAT solvers.

use super::instance::{Instance, Piece};
use lowtide_core::{BufferId, Bytes, IndexVec};
use std::ops::Range;

/// Above all offsets: the lowest offset of what is placed already.
pub(super) const PLACED: u64 = u64::MAX / 4;

/// So many sections side by side are looked at in the time of one piece.
const SECTIONS_A_STEP: usize = 8;

/// What was there before a change.
#[derive(Clone, Copy, Debug)]
enum Change {
    Low(BufferId, u64),
    Floor(usize, Floor),
    Support(BufferId, Support),
}

/// No piece that is still to come lies lower in a section, because of this one.
#[derive(Clone, Copy, Debug)]
struct Floor {
    height: u64,
    lowest: BufferId,
}

/// The lowest top on which a piece that was passed over can rest, and whose it is.
#[derive(Clone, Copy, Debug)]
struct Support {
    top: u64,
    at: usize,
}

/// A partial placement.
#[derive(Debug)]
pub(super) struct State {
    pub(super) instance: Instance,
    pub(super) capacity: u64,
    /// The lowest offset that a piece can have; [`PLACED`] once it has one.
    pub(super) low: IndexVec<BufferId, u64>,
    pub(super) offset: IndexVec<BufferId, u64>,
    /// How many that overlap a piece are still to come.
    pub(super) open: IndexVec<BufferId, u32>,
    floors: Vec<Floor>,
    supports: IndexVec<BufferId, Support>,
    /// Bytes that are still to come, by section.
    rest: Vec<u64>,
    /// Pieces still to come that cross from the section before into this one.
    pub(super) crossing: Vec<u32>,
    /// How often each section was the one with no room for the rest.
    pub(super) failures: Vec<u32>,
    trail: Vec<Change>,
    /// Pieces in the order in which they were placed, each with the length of the trail before.
    placed: Vec<(BufferId, usize)>,
    /// Pieces whose lowest offset has changed since the last one was placed.
    lifted: Vec<BufferId>,
    /// Pieces and sections looked at.
    pub(super) work: u64,
}

impl State {
    pub(super) fn new(instance: Instance, capacity: u64) -> Self {
        let (pieces, sections) = (instance.pieces.len(), instance.live.len());
        let mut crossing = vec![0; sections];
        let mut rest = vec![0; sections];
        for piece in &instance.pieces {
            crossing[inner(piece)].iter_mut().for_each(|count| *count += 1);
            for run in &piece.runs {
                let bytes = run.top - run.bottom;
                rest[run.sections.clone()].iter_mut().for_each(|rest| *rest += bytes);
            }
        }
        let lowest = |live: &Vec<BufferId>| live.first().copied();
        let floor = |live| Floor { height: 0, lowest: lowest(live).unwrap_or(BufferId::new(0)) };
        let mut state = Self {
            capacity,
            low: instance.pieces.iter().map(|piece| piece.pin.unwrap_or(0)).collect(),
            offset: IndexVec::filled(pieces, 0),
            open: instance.overlaps.iter().map(|list| count(list.len())).collect(),
            floors: instance.live.iter().map(floor).collect(),
            supports: IndexVec::filled(pieces, Support { top: PLACED, at: 0 }),
            rest,
            crossing,
            failures: vec![0; sections],
            trail: Vec::new(),
            placed: Vec::with_capacity(pieces),
            lifted: Vec::new(),
            work: 0,
            instance,
        };
        for section in 0..sections {
            state.floors[section] = state.floor(section);
        }
        state
    }

    /// How many pieces are placed.
    pub(super) fn height(&self) -> usize {
        self.placed.len()
    }

    /// Whether all has room at the start.
    pub(super) fn starts_well(&self) -> bool {
        let has_room = |(floor, rest): (&Floor, &u64)| {
            *rest == 0 || floor.height.saturating_add(*rest) <= self.capacity
        };
        let ends_inside = |piece: &Piece| piece.pin.unwrap_or(0) + piece.bytes <= self.capacity;
        self.floors.iter().zip(&self.rest).all(has_room)
            && self.instance.pieces.iter().all(ends_inside)
    }

    /// The highest offset at which all that is still to come has room in these sections; `None`: at none.
    pub(super) fn ceiling(&self, sections: &Range<usize>) -> Option<u64> {
        let most = self.rest[sections.clone()].iter().fold(0, |most, &rest| most.max(rest));
        self.capacity.checked_sub(most)
    }

    /// Places a piece at its lowest offset; `false` if there is no way on from there. Those in `passed` could have
    /// come before it.
    pub(super) fn place(&mut self, item: BufferId, passed: &[(u64, BufferId)]) -> bool {
        let at = self.low[item];
        self.lifted.clear();
        self.put(item, at);
        self.lift_overlaps(item, at)
            && self.lift_passed_over(passed, at)
            && self.raise_floors()
            && self.has_room_above(item)
    }

    /// Writes down where a piece lies.
    fn put(&mut self, item: BufferId, at: u64) {
        self.placed.push((item, self.trail.len()));
        self.offset[item] = at;
        self.set_low(item, PLACED);
        for run in &self.instance.pieces[item].runs {
            self.work += (run.sections.len() / SECTIONS_A_STEP) as u64;
            for section in run.sections.clone() {
                let floor = self.floors[section];
                self.trail.push(Change::Floor(section, floor));
                self.floors[section].height = floor.height.max(at + run.top);
                self.rest[section] -= run.top - run.bottom;
            }
        }
        let inner = inner(&self.instance.pieces[item]);
        self.crossing[inner].iter_mut().for_each(|count| *count -= 1);
    }

    /// Takes pieces away until so many are left.
    pub(super) fn undo_to(&mut self, height: usize) {
        while self.placed.len() > height {
            let (item, len) = self.placed.pop().expect("it is longer than that");
            for change in self.trail.drain(len..).rev() {
                match change {
                    Change::Low(item, low) => self.low[item] = low,
                    Change::Floor(section, floor) => self.floors[section] = floor,
                    Change::Support(item, support) => self.supports[item] = support,
                }
            }
            let piece = &self.instance.pieces[item];
            for run in &piece.runs {
                let bytes = run.top - run.bottom;
                self.rest[run.sections.clone()].iter_mut().for_each(|rest| *rest += bytes);
            }
            self.crossing[inner(piece)].iter_mut().for_each(|count| *count += 1);
            for &other in &self.instance.overlaps[item] {
                self.open[other] += 1;
            }
        }
    }

    fn set_low(&mut self, item: BufferId, low: u64) {
        self.trail.push(Change::Low(item, self.low[item]));
        self.low[item] = low;
        self.lifted.push(item);
    }

    /// A piece lies at this offset or above; `false` if it cannot.
    fn lift(&mut self, item: BufferId, to: u64) -> bool {
        let piece = &self.instance.pieces[item];
        let low = Bytes(to).align_up(piece.align).expect("a problem's sizes fit with padding").0;
        let fits = piece.pin.is_none() && low + piece.bytes <= self.capacity;
        self.set_low(item, low);
        fits
    }

    /// Who overlaps a piece lies above it.
    fn lift_overlaps(&mut self, item: BufferId, at: u64) -> bool {
        let (mut all_fit, top) = (true, at + self.instance.pieces[item].bytes);
        let count = self.instance.overlaps[item].len();
        self.work += count as u64;
        for index in 0..count {
            let other = self.instance.overlaps[item][index];
            // Also for those that are placed, so that it is undone for the same ones.
            self.open[other] -= 1;
            let rises = self.instance.rises.as_ref();
            let top = rises.map_or(top, |rises| at + rises.over[item][index]);
            if self.low[other] < top {
                all_fit &= self.lift(other, top);
            }
        }
        all_fit
    }

    /// Who was passed over rests on something that is still to come; `false` if there is nothing, or no room. Whoever
    /// the piece that was placed last has lifted may rest on that.
    fn lift_passed_over(&mut self, passed: &[(u64, BufferId)], at: u64) -> bool {
        passed.iter().all(|&(_, item)| {
            self.low[item] > at
                || self.support(item, at).is_some_and(|top| top <= at || self.lift(item, top))
        })
    }

    /// The lowest top on which a piece can come to rest, if that is not below `at`.
    fn support(&mut self, item: BufferId, at: u64) -> Option<u64> {
        let support = self.supports[item];
        if support.top < PLACED && self.top_below(item, support.at, at) == support.top {
            return Some(support.top);
        }
        let count = self.instance.overlaps[item].len();
        self.work += count as u64;
        let tops = (0..count).map(|index| (self.top_below(item, index, at), index));
        let (top, index) = tops.min().filter(|&(top, _)| top < PLACED)?;
        self.trail.push(Change::Support(item, support));
        self.supports[item] = Support { top, at: index };
        Some(top)
    }

    /// Where a piece comes to lie if it rests on one of those that overlap it.
    fn top_below(&self, item: BufferId, index: usize, at: u64) -> u64 {
        let other = self.instance.overlaps[item][index];
        let rises = self.instance.rises.as_ref();
        let bytes = self.instance.pieces[other].bytes;
        self.low[other].max(at) + rises.map_or(bytes, |rises| rises.under[item][index])
    }

    /// Raises the floors of sections to the lowest piece that is still to come; `false` if the rest has no room.
    fn raise_floors(&mut self) -> bool {
        for index in 0..self.lifted.len() {
            let item = self.lifted[index];
            for run in 0..self.instance.pieces[item].runs.len() {
                let sections = self.instance.pieces[item].runs[run].sections.clone();
                self.work += (sections.len() / SECTIONS_A_STEP) as u64;
                for section in sections {
                    if self.floors[section].lowest == item && !self.raise_floor(section) {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn raise_floor(&mut self, section: usize) -> bool {
        if self.rest[section] == 0 {
            return true;
        }
        self.work += self.instance.live[section].len() as u64;
        let floor = self.floor(section);
        self.trail.push(Change::Floor(section, self.floors[section]));
        self.floors[section] = floor;
        if floor.height + self.rest[section] > self.capacity {
            self.failures[section] += 1;
            return false;
        }
        true
    }

    /// The floor of a section, worked out again.
    fn floor(&self, section: usize) -> Floor {
        let (mut low, mut lowest) = (PLACED, BufferId::new(0));
        for &item in &self.instance.live[section] {
            if self.low[item] < low {
                (low, lowest) = (self.low[item], item);
            }
        }
        let low = if low < PLACED { low } else { 0 };
        Floor { height: self.floors[section].height.max(low), lowest }
    }

    /// Whether what is still to come has room above the piece that was placed last.
    fn has_room_above(&mut self, item: BufferId) -> bool {
        for run in &self.instance.pieces[item].runs {
            for section in run.sections.clone() {
                let rest = self.rest[section];
                if rest > 0 && self.floors[section].height + rest > self.capacity {
                    self.failures[section] += 1;
                    return false;
                }
            }
        }
        true
    }
}

/// The sections into which a piece crosses from the one before.
fn inner(piece: &Piece) -> Range<usize> {
    piece.sections.start + 1..piece.sections.end
}

fn count(len: usize) -> u32 {
    u32::try_from(len).expect("there are at most so many pieces")
}
