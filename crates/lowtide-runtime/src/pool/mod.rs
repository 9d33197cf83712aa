//! [`Pool`]: memory for what cannot be planned, asked for and given back while a graph runs.
//!
//! ~~~text
//! alloc(worker, 700 KiB) ──class 768 KiB──> at hand? one exchange ──────────────────────────> block
//!                                             no │                                             ^
//!                                                └─ lock ─> its list, or lent from the next ──>│
//!                                                             none │                           │
//!                                       what is at hand comes back, then a segment is mapped ──┘
//! free(worker, block) ──> at hand if there is room, else to the lists, where it joins its neighbours
//! ~~~
//! Two levels: a worker finds blocks of most classes at hand, each taken and put back by one atomic exchange, as is a
//! block that was left at a home; a lock guards the lists, for all else. Memory comes in segments, up to a limit, and
//! goes back when it has been idle for some runs. A block is a number; where it lies may change when blocks are moved
//! together, and nobody has to be told.
//!
//! | file | what becomes what |
//! |---|---|
//! | `classes` | bytes to a class |
//! | `spans` | classes to spans of segments, and which of them are free: the lists |
//! | `pages` | bytes of segments to pages, and which of them are memory |
//! | `slots` | free blocks to blocks at hand |
//! | `entries` | the number of a block to its address |
//! | `segments` | segments to memory of the system, and back |
//! | `raw` | blocks to slices, and bytes to where they are moved: the only unsafe code |
//! | `stats` | all of these to figures, and to text for Prometheus |

mod classes;
mod entries;
#[cfg(all(test, loom))]
mod model;
mod pages;
mod raw;
mod segments;
mod slots;
mod spans;
mod stats;
#[cfg(all(test, not(loom)))]
mod tests;

pub use classes::{ClassesError, SizeClasses};
pub use raw::Compaction;
pub use stats::{ClassStats, PoolStats};

use crate::memory::{Memory, MemoryError};
use crate::sync::brief::{Mutex, MutexGuard, lock};
use entries::Entries;
use lowtide_core::Bytes;
use segments::Segments;
use slots::{Slot, Slots};
use spans::SpanId;
use stats::Book;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a pool grows and what it keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Sizes of blocks.
    pub classes: SizeClasses,
    /// All segments together never take more.
    pub limit: Bytes,
    /// Threads that use it at once: each has blocks at hand, and a number of its own.
    pub workers: NonZeroUsize,
    /// Places for blocks of their own, see [`Pool::alloc_home`].
    pub homes: usize,
    /// A segment takes at least so much address space, and at least as much as all others, below the limit. It becomes memory as
    /// it is touched, from below.
    pub segment: Bytes,
    /// Blocks of one class that a worker has at hand take at most so many bytes; at most sixteen blocks. 0: none.
    pub at_hand: Bytes,
    /// After so many calls of [`Pool::end_run`] idle segments beyond what was held since at most go back to the system. 0: none
    /// does.
    pub idle_runs: u32,
    /// Before the pool touches more pages whole free ones go back to the system, the largest spans first, if else more than so many
    /// percent of its memory were beyond the most that was taken lately, and more than 1 MiB. 100: none does.
    pub idle_percent: u32,
    /// [`Pool::compact`] moves blocks only if more than so many percent of all bytes are scattered.
    pub scattered: u32,
    /// Whether free blocks join their neighbours, so that what was lent goes home. Else the pool falls to pieces: only to show
    /// that.
    pub joins: bool,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            classes: SizeClasses::default(),
            limit: Bytes(u64::MAX),
            workers: NonZeroUsize::MIN,
            homes: 0,
            segment: Bytes(64 << 20),
            at_hand: Bytes(256 << 10),
            idle_runs: 16,
            idle_percent: 8,
            scattered: 10,
            joins: true,
        }
    }
}

/// Why there is no block. The pool is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// No class is so large.
    #[error("{wanted} are wanted of the pool, at most 1 TiB can be")]
    TooLarge {
        /// How many bytes were asked for.
        wanted: Bytes,
    },
    /// The limit is reached.
    #[error(
        "{wanted} are wanted of the pool: {free} are free below the limit of {limit}, {largest} of them together"
    )]
    Exhausted {
        /// How many bytes were asked for.
        wanted: Bytes,
        /// Bytes of the limit that nobody holds.
        free: Bytes,
        /// The most of them that lie together, or could be mapped together.
        largest: Bytes,
        /// What all segments may take.
        limit: Bytes,
    },
    /// The system gives no memory.
    #[error("the pool cannot grow")]
    Memory(#[from] MemoryError),
}

/// A block of a pool: so many bytes as were asked for, nobody else's until it is given back to the pool that it is of.
/// Dropped, it stays taken until the pool is dropped.
#[derive(Debug)]
#[must_use = "a block that is not given back stays taken"]
pub struct PoolBlock {
    pool: u64,
    id: SpanId,
    class: u8,
    len: usize,
}

impl PoolBlock {
    /// Its bytes, as many as were asked for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none was asked for.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Memory in blocks of some sizes, for several threads (docs/pool.md).
#[derive(Debug)]
pub struct Pool {
    config: PoolConfig,
    /// No other pool has it, so that a block tells of which it is.
    number: u64,
    slots: Slots,
    homes: Vec<Slot>,
    entries: Entries,
    books: Vec<Book>,
    segments: Mutex<Segments>,
}

/// No two pools have the same number.
static POOLS: AtomicU64 = AtomicU64::new(0);

/// At most so many blocks of a class are at hand.
const MOST_AT_HAND: u64 = 16;

impl Pool {
    /// An empty pool, which maps its segments from `memory` of this processor.
    pub fn new(config: &PoolConfig, memory: Box<dyn Memory>) -> Self {
        let at_hand = |class| {
            let count = config.at_hand.0 / config.classes.size(class).0;
            u32::try_from(count.min(MOST_AT_HAND)).expect("it is small")
        };
        let of_class: Vec<u32> = (0..config.classes.len()).map(at_hand).collect();
        let workers = config.workers.get();
        Self {
            number: POOLS.fetch_add(1, Ordering::Relaxed),
            slots: Slots::new(workers, &of_class),
            homes: (0..config.homes).map(|_| Slot::new()).collect(),
            entries: Entries::new(),
            books: (0..workers).map(|_| Book::default()).collect(),
            segments: Mutex::new(Segments::new(config, memory)),
            config: config.clone(),
        }
    }

    /// How it was made.
    pub fn config(&self) -> &PoolConfig {
        &self.config
    }

    /// A block of so many bytes at a multiple of 256, which hold what was left there. `worker` below the number of workers
    /// says what is at hand; at any time each is one thread's, else figures are off and blocks may get lost. Cost: constant, but
    /// for a new segment.
    ///
    /// # Panics
    /// If there is no such worker.
    #[inline]
    pub fn alloc(&self, worker: usize, bytes: Bytes) -> Result<PoolBlock, PoolError> {
        let class = self.class(bytes)?;
        if let Some(id) = self.slots.take(worker, class) {
            return Ok(self.block(worker, (id, class), bytes));
        }
        self.alloc_from_lists(worker, class, bytes)
    }

    /// [`Pool::alloc`] for what comes again in every run: the block that was left at this home is taken if it is of the right
    /// size, and goes back there.
    ///
    /// # Panics
    /// If there is no such worker or home.
    pub fn alloc_home(
        &self,
        worker: usize,
        home: usize,
        bytes: Bytes,
    ) -> Result<PoolBlock, PoolError> {
        let class = self.class(bytes)?;
        let Some(id) = self.homes[home].take() else { return self.alloc(worker, bytes) };
        let found = self.entries.class(id);
        if usize::from(found) == class {
            return Ok(self.block(worker, (id, class), bytes));
        }
        self.put(worker, usize::from(found), id);
        self.alloc(worker, bytes)
    }

    /// Gives a block back.
    ///
    /// # Panics
    /// If it is of another pool, or there is no such worker.
    #[inline]
    pub fn free(&self, worker: usize, block: PoolBlock) {
        let (id, class) = self.closed(worker, block);
        self.put(worker, class, id);
    }

    /// Gives a block back, to be found at a home.
    ///
    /// # Panics
    /// If it is of another pool, or there is no such worker or home.
    pub fn free_home(&self, worker: usize, home: usize, block: PoolBlock) {
        let (id, class) = self.closed(worker, block);
        if !self.homes[home].put(id) {
            self.put(worker, class, id);
        }
    }

    /// A run is over: after some runs what is beyond the most that these held goes back to the system: segments, if nothing is in
    /// them, and whole pages of what is free.
    pub fn end_run(&self) {
        let mut segments = self.lock();
        if let Some(most) = segments.end_run() {
            self.collect(&mut segments);
            segments.release(most);
            segments.trim_to(most);
        }
    }

    /// Gives back to the system all segments of which no byte is held, and all whole pages of what is free; how many bytes.
    pub fn release_idle(&self) -> Bytes {
        let mut segments = self.lock();
        self.collect(&mut segments);
        segments.release(Bytes::ZERO) + segments.give_back(Bytes(u64::MAX), Bytes::ZERO)
    }

    #[inline]
    fn class(&self, bytes: Bytes) -> Result<usize, PoolError> {
        self.config.classes.of(bytes).ok_or(PoolError::TooLarge { wanted: bytes })
    }

    #[inline]
    fn block(&self, worker: usize, (id, class): (SpanId, usize), bytes: Bytes) -> PoolBlock {
        self.books[worker].open(self.config.classes.size(class).0, bytes.0);
        let class = u8::try_from(class).expect("classes are few");
        let len = usize::try_from(bytes.0).expect("it is mapped");
        PoolBlock { pool: self.number, id, class, len }
    }

    /// Notes that a block is given back.
    #[expect(clippy::needless_pass_by_value, reason = "a block that is given back is gone")]
    #[inline]
    fn closed(&self, worker: usize, block: PoolBlock) -> (SpanId, usize) {
        let PoolBlock { pool, id, class, len } = block;
        assert_eq!(pool, self.number, "the block is of another pool");
        let class = usize::from(class);
        self.books[worker].close(self.config.classes.size(class).0, len as u64);
        (id, class)
    }

    #[inline]
    fn put(&self, worker: usize, class: usize, id: SpanId) {
        if !self.slots.put(worker, class, id) {
            self.lock().spans.give(id);
        }
    }

    #[cold]
    fn alloc_from_lists(
        &self,
        worker: usize,
        class: usize,
        bytes: Bytes,
    ) -> Result<PoolBlock, PoolError> {
        let mut segments = self.lock();
        let id = if let Some(id) = segments.take_free(class) {
            id
        } else {
            if segments.is_collection_due(class) {
                self.collect(&mut segments);
            }
            segments.take(class, bytes)?
        };
        self.entries.set(id, segments.address(id), class);
        drop(segments);
        Ok(self.block(worker, (id, class), bytes))
    }

    /// Takes back what is at hand and at home.
    fn collect(&self, segments: &mut Segments) {
        segments.note_collection();
        for id in self.slots.drain().chain(self.homes.iter().filter_map(Slot::take)) {
            segments.spans.give(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Segments> {
        lock(&self.segments)
    }
}
