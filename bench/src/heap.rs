//! What an engine without a plan does: a block for each tensor from a heap, given back after its last reader.
//!
//! ~~~text
//! kernel of op ──takes blocks for its outputs──> runs ──the last reader of a tensor gives its block back──>
//! ~~~
//! All in safe code: blocks of the allocator are vectors without elements, which are not touched.

use lowtide::Graph;
use lowtide::core::{Id, OpId, TensorId};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

type Block = Vec<u8>;

/// Where blocks come from.
pub enum Heap {
    /// The allocator of this program.
    Allocator,
    /// Free blocks by size, a power of two, behind one lock.
    Pool(Mutex<BTreeMap<usize, Vec<Block>>>),
}

impl Heap {
    fn take(&self, bytes: usize) -> Block {
        match self {
            Self::Allocator => Vec::with_capacity(bytes),
            Self::Pool(pool) => {
                let size = bytes.next_power_of_two();
                let found = locked(pool).get_mut(&size).and_then(Vec::pop);
                found.unwrap_or_else(|| Vec::with_capacity(size))
            }
        }
    }

    fn give(&self, block: Block) {
        if let Self::Pool(pool) = self {
            locked(pool).entry(block.capacity()).or_default().push(block);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The block of each computed tensor, and how many readers it still has.
pub struct Blocks {
    heap: Heap,
    sizes: Vec<usize>,
    readers: Vec<usize>,
    left: Vec<AtomicUsize>,
    held: Vec<Mutex<Option<Block>>>,
}

impl Blocks {
    pub fn new(graph: &Graph, heap: Heap) -> Self {
        let ids = || graph.tensors().ids();
        let size = |id: TensorId| graph.tensors()[id].size.bound().map_or(0, |bytes| bytes.0);
        let readers: Vec<usize> = ids().map(|id| graph.readers(id).len()).collect();
        Self {
            heap,
            sizes: ids().map(|id| usize::try_from(size(id)).unwrap_or_default()).collect(),
            left: readers.iter().map(|&count| AtomicUsize::new(count)).collect(),
            held: ids().map(|_| Mutex::new(None)).collect(),
            readers,
        }
    }

    /// Takes the blocks of what `op` writes.
    pub fn before(&self, graph: &Graph, op: OpId) {
        for output in &graph.ops()[op].outputs {
            *locked(&self.held[output.index()]) = Some(self.heap.take(self.sizes[output.index()]));
        }
    }

    /// Gives back those that nobody reads after `op`.
    pub fn after(&self, graph: &Graph, op: OpId) {
        for input in graph.reads(op) {
            let at = input.index();
            if self.left[at].fetch_sub(1, Ordering::AcqRel) == 1 {
                self.left[at].store(self.readers[at], Ordering::Release);
                self.free(at);
            }
        }
        for output in &graph.ops()[op].outputs {
            if self.readers[output.index()] == 0 {
                self.free(output.index());
            }
        }
    }

    fn free(&self, at: usize) {
        if let Some(block) = locked(&self.held[at]).take() {
            self.heap.give(block);
        }
    }

    /// Blocks that a run takes and gives back.
    pub fn pairs(graph: &Graph) -> usize {
        graph.ops().iter().map(|op| op.outputs.len()).sum()
    }
}
