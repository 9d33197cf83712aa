//! [`Source`]: ours and the allocators of others, asked in the same way.
//!
//! ~~~text
//! worker 1, 700 KiB ──take──> Block ──give──> back        glibc, mimalloc, jemalloc, buddy, one lock, the pool
//! ~~~

#![expect(
    unsafe_code,
    reason = "allocators of others are asked for bytes and given them back, in pairs"
)]

use buddy_system_allocator::Heap;
use lowtide::core::Bytes;
use lowtide::runtime::{Pool, PoolBlock};
use std::alloc::{GlobalAlloc, Layout};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Gives out blocks of memory to several workers.
pub trait Source: Sync {
    type Block: Send;

    fn take(&self, worker: usize, bytes: usize) -> Option<Self::Block>;

    fn give(&self, worker: usize, block: Self::Block);

    /// Writes one byte of each page.
    fn touch(&self, block: &mut Self::Block);
}

const PAGE: usize = 4096;

impl Source for Pool {
    type Block = PoolBlock;

    fn take(&self, worker: usize, bytes: usize) -> Option<PoolBlock> {
        self.alloc(worker, Bytes(bytes as u64)).ok()
    }

    fn give(&self, worker: usize, block: PoolBlock) {
        self.free(worker, block);
    }

    fn touch(&self, block: &mut PoolBlock) {
        self.bytes_mut(block).iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    }
}

/// Bytes of another allocator.
pub struct Raw {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it stands for bytes that nobody else has.
unsafe impl Send for Raw {}

impl Raw {
    fn touch(&mut self) {
        for at in (0..self.layout.size()).step_by(PAGE) {
            // SAFETY: inside of the bytes that were given.
            unsafe { self.start.as_ptr().add(at).write_volatile(1) };
        }
    }
}

/// Aligned as the pool's are at least to a cache line.
fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), 64).ok()
}

/// An allocator that can be a program's.
pub struct Global<A>(pub A);

impl<A: GlobalAlloc + Sync> Source for Global<A> {
    type Block = Raw;

    fn take(&self, _worker: usize, bytes: usize) -> Option<Raw> {
        let layout = layout(bytes)?;
        // SAFETY: the layout has bytes.
        let start = NonNull::new(unsafe { self.0.alloc(layout) })?;
        Some(Raw { start, layout })
    }

    fn give(&self, _worker: usize, block: Raw) {
        // SAFETY: it was given out by this allocator with this layout, once.
        unsafe { self.0.dealloc(block.start.as_ptr(), block.layout) };
    }

    fn touch(&self, block: &mut Raw) {
        block.touch();
    }
}

/// Buddies behind a lock: blocks of powers of two, cut in halves and joined again.
pub struct Buddy {
    heap: Mutex<Heap<40>>,
    _memory: Vec<u8>,
}

impl Buddy {
    pub fn new(bytes: usize) -> Self {
        let mut memory = vec![0_u8; bytes];
        let mut heap = Heap::empty();
        // SAFETY: the bytes are this heap's alone, and are kept as long as it is.
        unsafe { heap.init(memory.as_mut_ptr() as usize, bytes) };
        Self { heap: Mutex::new(heap), _memory: memory }
    }

    /// Bytes that were asked for, and of blocks in use.
    pub fn use_now(&self) -> (usize, usize) {
        let heap = locked(&self.heap);
        (heap.stats_alloc_user(), heap.stats_alloc_actual())
    }
}

impl Source for Buddy {
    type Block = Raw;

    fn take(&self, _worker: usize, bytes: usize) -> Option<Raw> {
        let layout = layout(bytes)?;
        locked(&self.heap).alloc(layout).ok().map(|start| Raw { start, layout })
    }

    fn give(&self, _worker: usize, block: Raw) {
        // SAFETY: it was given out by this heap with this layout, once.
        unsafe { locked(&self.heap).dealloc(block.start, block.layout) };
    }

    fn touch(&self, block: &mut Raw) {
        block.touch();
    }
}

/// Free blocks by size, a power of two, behind one lock.
#[derive(Default)]
pub struct OneLock(Mutex<BTreeMap<usize, Vec<Vec<u8>>>>);

impl Source for OneLock {
    type Block = Vec<u8>;

    fn take(&self, _worker: usize, bytes: usize) -> Option<Vec<u8>> {
        let size = bytes.next_power_of_two();
        let found = locked(&self.0).get_mut(&size).and_then(Vec::pop);
        Some(found.unwrap_or_else(|| vec![0; size]))
    }

    fn give(&self, _worker: usize, block: Vec<u8>) {
        locked(&self.0).entry(block.len()).or_default().push(block);
    }

    fn touch(&self, block: &mut Vec<u8>) {
        block.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    }
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
