//! [`Slots`]: free blocks that are kept at hand, each taken and put back by one atomic exchange.
//!
//! ~~~text
//! worker 0, class 640    [ 17 ][    ][    ][    ]      take: exchange with nothing, 17 is mine
//! worker 1, class 640    [    ][  3 ][    ][    ]      put:  nothing exchanged for 17, or the slot is left as it is
//! home 0                 [  9 ]
//! ~~~
//! Whoever gets a number out of a slot has the block, and nobody else: there is no moment at which it stands in two places,
//! whatever was there before, so that numbers may come back (no ABA).

use super::spans::SpanId;
use crate::sync::{AtomicU32, Ordering};

/// Nothing.
pub(super) const EMPTY: u32 = u32::MAX;

/// One place for a free block.
#[derive(Debug)]
pub(super) struct Slot(pub(super) AtomicU32);

impl Slot {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(EMPTY))
    }

    /// The block, if there is one: it is the caller's now.
    pub(super) fn take(&self) -> Option<SpanId> {
        // Only a look: most slots of most classes are empty, and an exchange costs more.
        if self.0.load(Ordering::Relaxed) == EMPTY {
            return None;
        }
        let id = self.0.swap(EMPTY, Ordering::AcqRel);
        (id != EMPTY).then_some(id)
    }

    /// Puts a block here if nothing is; whether it was put.
    pub(super) fn put(&self, id: SpanId) -> bool {
        self.0.compare_exchange(EMPTY, id, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// Slots by worker and class.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// The first slot of each class, of the first worker; then the end.
    starts: Vec<u32>,
}

impl Slots {
    /// For so many workers, with so many slots for each class.
    pub(super) fn new(workers: usize, of_class: &[u32]) -> Self {
        let mut starts = vec![0];
        for &count in of_class {
            starts.push(starts[starts.len() - 1] + count);
        }
        let each = starts[of_class.len()] as usize;
        Self { slots: (0..workers * each).map(|_| Slot::new()).collect(), starts }
    }

    fn of(&self, worker: usize, class: usize) -> &[Slot] {
        let each = self.starts[self.starts.len() - 1] as usize;
        let base = worker * each;
        &self.slots[base + self.starts[class] as usize..base + self.starts[class + 1] as usize]
    }

    /// A block of a class that this worker has at hand.
    pub(super) fn take(&self, worker: usize, class: usize) -> Option<SpanId> {
        self.of(worker, class).iter().find_map(Slot::take)
    }

    /// Keeps a block at hand, if there is room; whether there was.
    pub(super) fn put(&self, worker: usize, class: usize, id: SpanId) -> bool {
        self.of(worker, class).iter().any(|slot| slot.put(id))
    }

    /// Takes all that there is, whosever it is.
    pub(super) fn drain(&self) -> impl Iterator<Item = SpanId> {
        self.slots.iter().filter_map(Slot::take)
    }
}
