//! [`Segments`]: spans with memory under them.
//!
//! ~~~text
//! class 5 MiB, no span ──> below the limit? map a segment ──> spans.take
//!                            no: give idle ones back first; else say what is free
//! more pages than were taken lately, and a tenth ──> whole pages of the largest free spans go back to the system
//! ~~~

use super::pages::PAGE;
use super::spans::{Place, SpanId, Spans};
use super::{PoolConfig, PoolError};
use crate::memory::{Block, Memory, MemoryError};
use lowtide_core::{Align, Bytes};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Segments are multiples of this.
fn page() -> Align {
    Align::new(4096).expect("a power of two")
}

/// Memory of a segment.
#[derive(Debug)]
struct Mapped {
    /// Kept, to be given back, as a whole or in pages; its bytes are reached by the address alone.
    block: Box<dyn Block>,
    base: AtomicPtr<u8>,
}

/// An idle segment is too large if it is so many times what was held at most.
const TOO_LARGE: u64 = 4;
/// Blocks taken from the lists between two times at which all is taken back that is at hand.
const COLLECT: u64 = 4096;
/// Less than so many bytes are not worth it.
const LITTLE: u64 = 1 << 20;
/// This part of the memory is given back beyond what has to be.
const AHEAD: u64 = 128;
/// A call to the system for less is not worth it.
const WORTH: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct Segments {
    pub(super) spans: Spans,
    memory: Box<dyn Memory>,
    mapped: Vec<Option<Mapped>>,
    limit: Bytes,
    least: Bytes,
    idle_runs: u32,
    idle_percent: u32,
    /// Ends of runs since the last look at what is idle.
    runs: u32,
    /// Whether the memory has refused to take pages back: it is not asked again.
    keeps_pages: bool,
    /// Bytes that were given back in pages.
    pub(super) discarded: u64,
    /// The most that was resident.
    pub(super) peak: u64,
    /// How often memory was mapped, and given back.
    pub(super) grown: u64,
    pub(super) released: u64,
    /// Blocks taken from the lists, and how many were when last all was taken back that is at hand.
    pub(super) taken: u64,
    collected_at: u64,
    /// How often blocks were moved together, and how many bytes of them.
    pub(super) compactions: u64,
    pub(super) moved: u64,
}

impl Segments {
    pub(super) fn new(config: &PoolConfig, memory: Box<dyn Memory>) -> Self {
        Self {
            spans: Spans::new(config.classes.clone(), config.joins),
            memory,
            mapped: Vec::new(),
            limit: config.limit,
            least: config.segment,
            idle_runs: config.idle_runs,
            idle_percent: config.idle_percent,
            runs: 0,
            keeps_pages: false,
            discarded: 0,
            peak: 0,
            grown: 0,
            released: 0,
            taken: 0,
            collected_at: 0,
            compactions: 0,
            moved: 0,
        }
    }

    /// A block of a class from a list.
    pub(super) fn take_free(&mut self, class: usize) -> Option<SpanId> {
        let before = self.spans.total;
        let found = self.spans.take(class);
        self.note_growth(before);
        self.taken += u64::from(found.is_some());
        found
    }

    /// Whether what is at hand has to be taken back before the pool grows: now and then, as it means a look at all slots; and
    /// always before a segment is mapped.
    pub(super) fn is_collection_due(&self, class: usize) -> bool {
        self.taken - self.collected_at >= COLLECT || !self.spans.can_extend(class)
    }

    /// What is at hand is being taken back.
    pub(super) fn note_collection(&mut self) {
        self.collected_at = self.taken;
    }

    /// A block of a class, in a new segment if there is no span for it. What was asked for is for the message.
    pub(super) fn take(&mut self, class: usize, wanted: Bytes) -> Result<SpanId, PoolError> {
        let before = self.spans.total;
        let found = self.spans.take(class).or_else(|| self.spans.extend(class));
        let id = found.map_or_else(|| self.grow(class, wanted), Ok)?;
        self.note_growth(before);
        self.taken += 1;
        Ok(id)
    }

    /// Blocks have been taken or moved, and before that so many bytes were resident. None of what they have new was touched yet:
    /// if it is too much, other pages go back first.
    pub(super) fn note_growth(&mut self, before: u64) {
        if self.spans.total <= before {
            return;
        }
        let most = self.most_resident(self.spans.recent_peak);
        if self.spans.total > most {
            // Somewhat more, so that the next blocks find room.
            let more = self.spans.total - most + most / AHEAD;
            self.give_back(Bytes(more), Bytes(WORTH));
        }
        self.peak = self.peak.max(self.spans.total);
    }

    /// What may be resident where so much was taken at most.
    fn most_resident(&self, taken: u64) -> u64 {
        let kept = 100_u64.saturating_sub(u64::from(self.idle_percent));
        let most = u128::from(taken) * 100 / u128::from(kept.max(1));
        let most = u64::try_from(most).unwrap_or(u64::MAX).max(taken.saturating_add(LITTLE));
        if kept == 0 { u64::MAX } else { most }
    }

    /// Gives pages back until no more than so much is resident, if pages go back at all.
    pub(super) fn trim_to(&mut self, most: Bytes) {
        let beyond = Bytes(self.spans.total).saturating_sub(most);
        if self.idle_percent < 100 {
            self.give_back(beyond, Bytes::ZERO);
        }
    }

    /// Gives so many bytes of free pages back, of spans that have at least so much to give; how many bytes.
    pub(super) fn give_back(&mut self, wanted: Bytes, least: Bytes) -> Bytes {
        let mut gone = 0;
        if self.keeps_pages {
            return Bytes::ZERO;
        }
        for spare in self.spans.spare_pages(wanted.0, least.0) {
            let at = |page: u64| usize::try_from(page * PAGE).expect("it is mapped");
            let mapped = self.mapped[spare.segment as usize].as_mut().expect("it is mapped");
            if !mapped.block.give_back(at(spare.pages.start)..at(spare.pages.end)) {
                self.keeps_pages = true;
                break;
            }
            gone += self.spans.discard(&spare);
        }
        self.discarded += gone;
        Bytes(gone)
    }

    /// Where a block lies.
    pub(super) fn address(&self, id: SpanId) -> *mut u8 {
        self.address_of(self.spans.place(id))
    }

    /// Where a place is.
    pub(super) fn address_of(&self, place: Place) -> *mut u8 {
        let mapped = self.mapped[place.segment as usize].as_ref().expect("spans lie in segments");
        let start = usize::try_from(place.start).expect("it is mapped");
        mapped.base.load(Ordering::Relaxed).wrapping_add(start)
    }

    /// The end of a run; after some of them the most that was held in these.
    pub(super) fn end_run(&mut self) -> Option<Bytes> {
        self.runs += 1;
        if self.idle_runs == 0 || self.runs < self.idle_runs {
            return None;
        }
        self.runs = 0;
        Some(Bytes(self.spans.restart_peak()))
    }

    /// Gives idle segments back, the latest first, as long as so many bytes stay; also one that is so much larger that a new one
    /// in its place is worth it. How many bytes.
    pub(super) fn release(&mut self, keep: Bytes) -> Bytes {
        let mut idle: Vec<(u32, Bytes)> = self.spans.idle().collect();
        idle.reverse();
        let mut released = Bytes::ZERO;
        for (segment, bytes) in idle {
            let is_beyond = Bytes(self.spans.total).saturating_sub(bytes) >= keep;
            if is_beyond || bytes.0 / TOO_LARGE > keep.0.max(LITTLE) {
                released += self.unmap(segment);
            }
        }
        released
    }

    fn unmap(&mut self, segment: u32) -> Bytes {
        let touched = self.spans.remove_segment(segment);
        self.mapped[segment as usize] = None;
        self.released += 1;
        touched
    }

    /// A block of a class in a new segment.
    fn grow(&mut self, class: usize, wanted: Bytes) -> Result<SpanId, PoolError> {
        let bytes = self.spans.classes().size(class);
        let full = |bytes: Bytes| bytes.align_up(page()).unwrap_or(bytes);
        let least = full(bytes);
        let generous = full(Bytes(self.spans.mapped.max(self.least.0).max(least.0)));
        let generous = generous.min(Bytes(self.limit.0 / page().bytes().0 * page().bytes().0));
        if self.room() < least {
            self.make_room(least);
        }
        if self.room() < least {
            return Err(self.exhausted(wanted));
        }
        let first = generous.min(self.room()).max(least);
        match self.map(first) {
            Err(_) if first > least => self.map(least)?,
            done => done?,
        }
        Ok(self.spans.extend(class).expect("the new segment is large enough"))
    }

    /// What may still be mapped.
    fn room(&self) -> Bytes {
        self.limit.saturating_sub(Bytes(self.spans.mapped))
    }

    /// Gives idle segments back, none of which is large enough, until there is room for a new one, if they suffice.
    fn make_room(&mut self, bytes: Bytes) {
        let idle: Vec<u32> = self.spans.idle().map(|(segment, _)| segment).collect();
        let mapped = idle.iter().map(|&segment| self.spans.bytes_of(segment));
        if mapped.fold(self.room(), |sum, bytes| sum + bytes) < bytes {
            return;
        }
        for segment in idle {
            if self.room() < bytes {
                self.unmap(segment);
            }
        }
    }

    fn map(&mut self, bytes: Bytes) -> Result<(), MemoryError> {
        let mut block = self.memory.reserve(bytes, page())?;
        let address = block.address();
        let memory = block.host_mut().ok_or(MemoryError::NotHost)?;
        if (memory.len() as u64) < bytes.0 || !address.is_multiple_of(page().bytes().0) {
            return Err(MemoryError::TooLarge { bytes });
        }
        let base = AtomicPtr::new(memory.as_mut_ptr());
        let segment = self.spans.add_segment(bytes) as usize;
        if segment >= self.mapped.len() {
            self.mapped.resize_with(segment + 1, || None);
        }
        self.mapped[segment] = Some(Mapped { block, base });
        self.grown += 1;
        Ok(())
    }

    fn exhausted(&self, wanted: Bytes) -> PoolError {
        let held = Bytes(self.spans.held);
        let largest = self.spans.largest_hole().max(self.room());
        let free = self.limit.saturating_sub(held);
        PoolError::Exhausted { wanted, free, largest, limit: self.limit }
    }
}
