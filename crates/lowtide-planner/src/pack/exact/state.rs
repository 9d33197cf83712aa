//! [`State`]: a partial placement from below, and what follows from it.
//!
//! ~~~text
//! offset ^
//!        |   rest: c, d still to come      floor + rest > capacity in some section: no way on
//!        |  ┌───┐_______floor              floor: no item that is still to come can lie lower here
//!        |  │ a │┌────┐
//!        |  └───┘│ b  │
//!        +---------------> sections
//! ~~~
//! Items are placed at offsets that never fall, ties in the order of their ranks, each at the lowest offset that those
//! placed so far leave it. Every placement can be pushed down to one of this kind, so nothing is lost. From that
//! follows, after each item:
//!
//! - who overlaps it lies above it;
//! - an item that was passed over (it could have come earlier, and did not) has to rest on an item that is still to
//!   come, so it lies above the lowest top of those;
//! - in each section, nobody lies below the lowest offset of those that are still to come.
//!
//! The second is not in `MiniMalloc` (Moffitt, ASPLOS 2023), whose search this is otherwise.

use super::instance::{Instance, Piece};
use lowtide_core::{BufferId, Bytes, IndexVec};
use std::ops::Range;

/// Above all offsets: the lowest offset of what is placed already.
pub(super) const PLACED: u64 = u64::MAX / 4;

/// What was there before a change.
#[derive(Clone, Copy, Debug)]
enum Change {
    Low(BufferId, u64),
    Floor(usize, u64),
}

/// A partial placement.
#[derive(Debug)]
pub(super) struct State<'a> {
    pub(super) instance: &'a Instance,
    capacity: u64,
    /// Ties are broken by this.
    pub(super) rank: IndexVec<BufferId, usize>,
    /// The lowest offset that an item can have; [`PLACED`] once it has one.
    pub(super) low: IndexVec<BufferId, u64>,
    pub(super) offset: IndexVec<BufferId, u64>,
    /// How many that overlap an item are still to come.
    pub(super) open: IndexVec<BufferId, usize>,
    floor: Vec<u64>,
    /// Bytes that are still to come, by section.
    rest: Vec<u64>,
    /// Items still to come that cross from the section before into this one.
    pub(super) crossing: Vec<u32>,
    /// How often each section was the one with no room for the rest.
    pub(super) failures: Vec<f64>,
    trail: Vec<Change>,
    /// Items in the order in which they were placed, each with the length of the trail before.
    placed: Vec<(BufferId, usize)>,
    /// Pairs that may still be looked at.
    pub(super) work: u64,
}

/// Where the search stands: the last item's offset and rank, in these sections, among these items.
#[derive(Clone, Debug)]
pub(super) struct Place<'s> {
    pub(super) among: &'s [BufferId],
    pub(super) sections: Range<usize>,
    pub(super) at: u64,
    pub(super) rank: usize,
}

impl<'a> State<'a> {
    pub(super) fn new(
        instance: &'a Instance,
        capacity: u64,
        rank: IndexVec<BufferId, usize>,
        failures: Vec<f64>,
    ) -> Self {
        let (items, sections) = (instance.pieces.len(), instance.live.len());
        let mut crossing = vec![0; sections];
        let mut rest = vec![0; sections];
        for piece in &instance.pieces {
            rest[piece.sections.clone()].iter_mut().for_each(|rest| *rest += piece.bytes);
            crossing[piece.sections.clone()].iter_mut().skip(1).for_each(|count| *count += 1);
        }
        let open = instance.overlaps.iter().map(<[BufferId]>::len).collect();
        Self {
            instance,
            capacity,
            rank,
            low: IndexVec::filled(items, 0),
            offset: IndexVec::filled(items, 0),
            open,
            floor: vec![0; sections],
            rest,
            crossing,
            failures,
            trail: Vec::new(),
            placed: Vec::with_capacity(items),
            work: 0,
        }
    }

    /// How many items are placed.
    pub(super) fn height(&self) -> usize {
        self.placed.len()
    }

    /// Places an item; `false` if there is no way on from there.
    pub(super) fn place(&mut self, item: BufferId, place: &Place<'_>) -> bool {
        self.put(item, place.at);
        let Some(mut touched) = self.lift_overlaps(item, place.at) else { return false };
        loop {
            let Some(passed) = self.lift_passed_over(place) else { return false };
            touched = hull(touched, passed.clone());
            if !self.raise_floors(touched, place.at) {
                return false;
            }
            if passed.is_empty() {
                return self.fits(&place.sections, place.at);
            }
            touched = 0..0;
        }
    }

    /// Whether all that is still to come has room at this offset or above.
    pub(super) fn fits(&self, sections: &Range<usize>, at: u64) -> bool {
        let floors = self.floor[sections.clone()].iter();
        let rows = floors.zip(&self.rest[sections.clone()]);
        // Without a branch, so that it is done in vectors.
        let over = rows.fold(0, |over, (&floor, &rest)| {
            over | (u64::from(rest != 0) & u64::from(floor.max(at) + rest > self.capacity))
        });
        over == 0
    }

    fn piece(&self, item: BufferId) -> &'a Piece {
        let instance = self.instance;
        &instance.pieces[item]
    }

    /// Writes down where an item lies.
    fn put(&mut self, item: BufferId, at: u64) {
        self.placed.push((item, self.trail.len()));
        self.offset[item] = at;
        self.set_low(item, PLACED);
        let Piece { bytes, sections, .. } = self.piece(item);
        for section in sections.clone() {
            self.set_floor(section, at + bytes);
            self.rest[section] -= bytes;
        }
        self.crossing[sections.clone()].iter_mut().skip(1).for_each(|count| *count -= 1);
    }

    /// Takes items away until so many are left.
    pub(super) fn undo_to(&mut self, height: usize) {
        while self.placed.len() > height {
            let (item, len) = self.placed.pop().expect("it is longer than that");
            while self.trail.len() > len {
                match self.trail.pop().expect("it is longer than that") {
                    Change::Low(item, low) => self.low[item] = low,
                    Change::Floor(section, floor) => self.floor[section] = floor,
                }
            }
            let Piece { bytes, sections, .. } = self.piece(item);
            self.rest[sections.clone()].iter_mut().for_each(|rest| *rest += bytes);
            self.crossing[sections.clone()].iter_mut().skip(1).for_each(|count| *count += 1);
            let instance = self.instance;
            for &other in &instance.overlaps[item] {
                self.open[other] += 1;
            }
        }
    }

    fn set_low(&mut self, item: BufferId, low: u64) {
        self.trail.push(Change::Low(item, self.low[item]));
        self.low[item] = low;
    }

    fn set_floor(&mut self, section: usize, floor: u64) {
        self.trail.push(Change::Floor(section, self.floor[section]));
        self.floor[section] = floor;
    }

    /// Who overlaps an item lies above it. The sections in which that changed something.
    fn lift_overlaps(&mut self, item: BufferId, at: u64) -> Option<Range<usize>> {
        let (instance, mut touched) = (self.instance, self.piece(item).sections.clone());
        let top = at + self.piece(item).bytes;
        let mut all_fit = true;
        self.work = self.work.saturating_sub(instance.overlaps[item].len() as u64);
        for &other in &instance.overlaps[item] {
            // Also for those that are placed, so that it is undone for the same ones.
            self.open[other] -= 1;
            if self.low[other] < top {
                let piece = self.piece(other);
                let low = aligned(top, piece);
                self.set_low(other, low);
                touched = hull(touched, piece.sections.clone());
                all_fit &= low + piece.bytes <= self.capacity;
            }
        }
        all_fit.then_some(touched)
    }

    /// Who was passed over rests on something that is still to come; `None` if there is nothing, or no room.
    fn lift_passed_over(&mut self, place: &Place<'_>) -> Option<Range<usize>> {
        let instance = self.instance;
        let mut touched = 0..0;
        for &item in place.among {
            let low = self.low[item];
            if (low, self.rank[item]) > (place.at, place.rank) {
                continue;
            }
            let overlaps = &instance.overlaps[item];
            self.work = self.work.saturating_sub(overlaps.len() as u64);
            let tops = overlaps
                .iter()
                .map(|&other| self.low[other].max(place.at) + instance.pieces[other].bytes);
            let top = tops.min().filter(|&top| top < PLACED)?;
            let piece = self.piece(item);
            let above = aligned(top, piece);
            if above + piece.bytes > self.capacity {
                return None;
            }
            if above > low {
                self.set_low(item, above);
                touched = hull(touched, piece.sections.clone());
            }
        }
        Some(touched)
    }

    /// Raises the floors of sections to the lowest item that is still to come; `false` if the rest has no room.
    fn raise_floors(&mut self, sections: Range<usize>, at: u64) -> bool {
        let instance = self.instance;
        for section in sections {
            if self.rest[section] == 0 {
                continue;
            }
            let live = &instance.live[section];
            self.work = self.work.saturating_sub(live.len() as u64);
            let low = live.iter().map(|&item| self.low[item]).min().unwrap_or(PLACED);
            if low > self.floor[section] {
                self.set_floor(section, low);
            }
            if self.floor[section].max(at) + self.rest[section] > self.capacity {
                self.failures[section] += 1.0;
                return false;
            }
        }
        true
    }
}

fn aligned(offset: u64, piece: &Piece) -> u64 {
    Bytes(offset).align_up(piece.align).expect("a problem's sizes fit with padding").0
}

/// The sections from the first of both to the last of both.
fn hull(a: Range<usize>, b: Range<usize>) -> Range<usize> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b,
        (_, true) => a,
        _ => a.start.min(b.start)..a.end.max(b.end),
    }
}
