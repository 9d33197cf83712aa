//! [`Slots`]: free blocks that are kept at hand, each taken and put back by one atomic exchange.
//!
//! ~~~text
//! worker 0, class 640    [ 17 ][    ][    ][    ]      take: exchange with nothing, 17 is mine
//! worker 1, class 640    [    ][  3 ][    ][    ]      put:  17 where nothing is; nobody else puts anything there
//! home 0                 [  9 ]                        put:  nothing exchanged for 17, or the slot is left as it is
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
    #[inline]
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
        self.0.load(Ordering::Relaxed) == EMPTY
            && self.0.compare_exchange(EMPTY, id, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// [`Slot::put`] of the only thread that puts anything here: what is empty stays so meanwhile, and no exchange is needed.
    #[inline]
    fn put_mine(&self, id: SpanId) -> bool {
        let is_empty = self.0.load(Ordering::Relaxed) == EMPTY;
        if is_empty {
            self.0.store(id, Ordering::Release);
        }
        is_empty
    }
}

/// Slots of one worker and class: a stack, of which others may take what is there at any time.
#[derive(Debug)]
struct Stack {
    first: u32,
    len: u32,
    /// No slot from here on holds anything. Only the worker changes it.
    top: AtomicU32,
}

/// Slots by worker and class.
#[derive(Debug)]
pub(super) struct Slots {
    places: Vec<Slot>,
    stacks: Vec<Stack>,
    classes: usize,
}

impl Slots {
    /// For so many workers, with so many slots for each class.
    pub(super) fn new(workers: usize, of_class: &[u32]) -> Self {
        let mut stacks = Vec::new();
        let mut first = 0;
        for &len in (0..workers).flat_map(|_| of_class) {
            stacks.push(Stack { first, len, top: AtomicU32::new(0) });
            first += len;
        }
        Self { places: (0..first).map(|_| Slot::new()).collect(), stacks, classes: of_class.len() }
    }

    #[inline]
    fn stack(&self, worker: usize, class: usize) -> &Stack {
        &self.stacks[worker * self.classes + class]
    }

    /// A block of a class that this worker has at hand.
    #[inline]
    pub(super) fn take(&self, worker: usize, class: usize) -> Option<SpanId> {
        let stack = self.stack(worker, class);
        let mut top = stack.top.load(Ordering::Relaxed);
        let mut found = None;
        while top > 0 && found.is_none() {
            top -= 1;
            // None where others were first.
            found = self.places[(stack.first + top) as usize].take();
        }
        stack.top.store(top, Ordering::Relaxed);
        found
    }

    /// Keeps a block at hand, if there is room; whether there was. Only one thread at a time does so for a worker, else one of
    /// two blocks is lost; nobody has one twice.
    #[inline]
    pub(super) fn put(&self, worker: usize, class: usize, id: SpanId) -> bool {
        let stack = self.stack(worker, class);
        let top = stack.top.load(Ordering::Relaxed);
        let is_kept = top < stack.len && self.places[(stack.first + top) as usize].put_mine(id);
        stack.top.store(top + u32::from(is_kept), Ordering::Relaxed);
        is_kept
    }

    /// Takes all that there is, whosever it is.
    pub(super) fn drain(&self) -> impl Iterator<Item = SpanId> {
        self.places.iter().filter_map(Slot::take)
    }
}
