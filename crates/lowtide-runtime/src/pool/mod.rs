//! [`Pool`]: memory for tensors whose size is known when the model runs.
//!
//! ~~~text
//! alloc(1200 B) ──> PoolBlock ── bytes, bytes_mut ──> 1200 bytes, aligned to 256 ── free ──> the limit's again
//! ~~~
//! Each block is memory of its own: nothing is shared, and nothing is kept for later.

use crate::memory::{Block, Memory, MemoryError};
use lowtide_core::{Align, Bytes};
use parking_lot::Mutex;

/// What blocks are aligned to.
const ALIGN: Bytes = Bytes(256);

/// How a pool gives out memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// At most so many bytes are given out at once.
    pub limit: Bytes,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self { limit: Bytes(u64::MAX) }
    }
}

/// Why there is no block.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// What is free below the limit is too little, or lies apart.
    #[error(
        "{wanted} are wanted of the pool, {free} are free of {limit}, at most {largest} in one piece"
    )]
    Exhausted {
        /// How many bytes were asked for.
        wanted: Bytes,
        /// How many are free.
        free: Bytes,
        /// How many of them lie side by side.
        largest: Bytes,
        /// How many may be given out at once.
        limit: Bytes,
    },
    /// The memory below it has none.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// Gives out blocks, to several workers at once.
#[derive(Debug)]
pub struct Pool {
    limit: Bytes,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    memory: Box<dyn Memory>,
    held: Bytes,
}

/// So many bytes as were asked for. Goes back by [`Pool::free`].
#[derive(Debug)]
pub struct PoolBlock {
    block: Box<dyn Block>,
    bytes: Bytes,
}

impl Pool {
    /// A pool that holds nothing yet.
    pub fn new(config: &PoolConfig, memory: Box<dyn Memory>) -> Self {
        let state = State { memory, held: Bytes::ZERO };
        Self { limit: config.limit, state: Mutex::new(state) }
    }

    /// A block of so many bytes, for one worker. What they hold is left over from others.
    pub fn alloc(&self, _worker: usize, bytes: Bytes) -> Result<PoolBlock, PoolError> {
        let mut state = self.state.lock();
        let free = self.limit.saturating_sub(state.held);
        if bytes > free {
            let (wanted, largest, limit) = (bytes, free, self.limit);
            return Err(PoolError::Exhausted { wanted, free, largest, limit });
        }
        let align = Align::new(ALIGN.0).expect("a power of two");
        let block = state.memory.reserve(bytes, align)?;
        if block.host().is_none() {
            return Err(MemoryError::NotHost.into());
        }
        state.held += bytes;
        Ok(PoolBlock { block, bytes })
    }

    /// Takes a block back from a worker.
    pub fn free(&self, _worker: usize, block: PoolBlock) {
        let PoolBlock { block, bytes } = block;
        drop(block);
        let mut state = self.state.lock();
        state.held = state.held.saturating_sub(bytes);
    }

    /// What a block holds.
    pub fn bytes<'a>(&'a self, block: &'a PoolBlock) -> &'a [u8] {
        block.block.host().expect("the block was of this processor when it was reserved")
    }

    /// What a block holds.
    pub fn bytes_mut<'a>(&'a self, block: &'a mut PoolBlock) -> &'a mut [u8] {
        block.block.host_mut().expect("the block was of this processor when it was reserved")
    }
}
