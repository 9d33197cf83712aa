//! The arena: ranges of bytes in, slices out. The only unsafe code of running a plan.
//!
//! ~~~text
//! block  [ b (read) ........ ][ scratch ][ y (written) .. ]
//!          &[u8]                &mut [u8]  &mut [u8]           apart, as `BoundRun` has proven
//!          and from those of other runs under way, as the checker has
//! ~~~

#![expect(
    unsafe_code,
    reason = "slices of one block, some of which are written: proven apart when a run is bound"
)]

use crate::bind::{BoundRun, Source};
use crate::guard;
use crate::memory::{Block, Memory, MemoryError};
use crate::tensor::TensorRef;
use crate::weights::Weights;
use lowtide_core::operator::{Input, Operands, Output, Place};
use lowtide_core::{Align, Bytes, IndexVec, TensorId};
use std::marker::PhantomData;
use std::ops::Range;

/// One block of memory.
#[derive(Debug)]
pub(crate) struct Arena(Box<dyn Block>);

/// What a run reads that is not in the arena.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) shapes: &'a IndexVec<TensorId, Box<[usize]>>,
    pub(crate) weights: &'a Weights,
    pub(crate) inputs: &'a [TensorRef<'a>],
}

/// Vectors that are filled anew for each run, so that none is allocated.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    inputs: Vec<Option<Input<'static>>>,
    outputs: Vec<Option<Output<'static>>>,
}

impl Spare {
    /// With room for the largest run.
    pub(crate) fn for_runs<'r>(runs: impl Iterator<Item = &'r BoundRun>) -> Self {
        let (mut inputs, mut outputs) = (0, 0);
        for run in runs {
            inputs = inputs.max(run.reads().len());
            outputs = outputs.max(run.writes().len());
        }
        Self { inputs: Vec::with_capacity(inputs), outputs: Vec::with_capacity(outputs) }
    }
}

/// The same memory for elements of another lifetime. The standard library keeps it when all elements are mapped to
/// such of the same layout.
fn recycled<A, B>(mut vec: Vec<A>) -> Vec<B> {
    vec.clear();
    vec.into_iter().map(|_| unreachable!("it was cleared")).collect()
}

impl Arena {
    pub(crate) fn new(
        memory: &mut dyn Memory,
        bytes: Bytes,
        align: Align,
    ) -> Result<Self, MemoryError> {
        let mut block = memory.reserve(bytes, align)?;
        let len = block.host_mut().ok_or(MemoryError::NotHost)?.len();
        if Bytes(len as u64) < bytes || !block.address().is_multiple_of(align.bytes().0) {
            return Err(MemoryError::TooLarge { bytes });
        }
        Ok(Self(block))
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.host().expect("the block was of this processor when it was reserved")
    }

    /// Its bytes.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.host_mut().expect("the block was of this processor when it was reserved")
    }

    /// Its bytes, for several workers at once.
    pub(crate) fn share(&mut self) -> Shared<'_> {
        let memory = self.bytes_mut();
        Shared { base: memory.as_mut_ptr(), len: memory.len(), block: PhantomData }
    }
}

/// The bytes of an arena while workers use them.
///
/// Runs that are under way at once use bytes apart, but for those that all of them only read: the checker has shown that
/// data, mutations and fences order all others, and a worker begins a run when what it waits for is over.
pub(crate) struct Shared<'a> {
    base: *mut u8,
    len: usize,
    block: PhantomData<&'a mut [u8]>,
}

// SAFETY: it stands for the borrow of a block of bytes, which may be sent.
unsafe impl Send for Shared<'_> {}
// SAFETY: slices of it are made by runs alone, of which those under way at once are apart (see above).
unsafe impl Sync for Shared<'_> {}

impl Shared<'_> {
    /// Poisons bytes that no run uses now.
    ///
    /// # Panics
    /// If they are outside of the arena.
    pub(crate) fn poison(&self, range: Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} is outside");
        // SAFETY: the range is inside the block; all runs that use it are over, and what comes over it waits for the run
        // that is just ending.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(self.base.add(range.start), range.len()) };
        guard::fill(bytes, range.start);
    }

    /// Looks at all bytes between two runs of the only worker.
    pub(crate) fn between_runs<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        // SAFETY: no run is under way, so nobody writes, and the slice is gone before the next one begins.
        look(unsafe { std::slice::from_raw_parts(self.base, self.len) })
    }

    /// Gives a kernel the operands of a run.
    ///
    /// # Panics
    /// If the run was bound to a larger arena.
    pub(crate) fn with_operands<R>(
        &self,
        run: &BoundRun,
        given: Given<'_>,
        spare: &mut Spare,
        work: impl FnOnce(&mut Operands<'_>) -> R,
    ) -> R {
        let (base, len) = (self.base, self.len);
        let inside = |range: &Range<usize>| {
            assert!(
                range.start <= range.end && range.end <= len,
                "{range:?} is outside of {len} bytes"
            );
            range.clone()
        };
        let mut inputs = recycled(std::mem::take(&mut spare.inputs));
        inputs.extend(run.reads().iter().enumerate().map(|(at, read)| {
            read.as_ref().map(|read| {
                let place = match &read.source {
                    Source::Output { output, offset } => {
                        Place::In { output: *output, offset: *offset }
                    }
                    Source::Weight(id, range) => {
                        Place::Apart(&given.weights.bytes(*id)[range.clone()])
                    }
                    Source::Caller(number, range) => {
                        Place::Apart(&given.inputs[*number].bytes()[range.clone()])
                    }
                    Source::Arena(range) => {
                        let range = inside(range);
                        // SAFETY: the range is inside the block, which is borrowed for as long as the slice lives,
                        // and apart from every range that this run writes: the invariant of `BoundRun`.
                        Place::Apart(unsafe {
                            std::slice::from_raw_parts(base.add(range.start), range.len())
                        })
                    }
                };
                Input { at, dtype: read.dtype, dims: &given.shapes[read.tensor], place }
            })
        }));
        let writable = |range: &Range<usize>| {
            let range = inside(range);
            // SAFETY: the range is inside the block, which is borrowed for as long as the slice lives, and apart from
            // every other range that is read or written in this run: the invariant of `BoundRun`. Each is taken once.
            unsafe { std::slice::from_raw_parts_mut(base.add(range.start), range.len()) }
        };
        let mut outputs = recycled(std::mem::take(&mut spare.outputs));
        outputs.extend(run.writes().iter().enumerate().map(|(at, write)| {
            write.as_ref().map(|write| {
                let bytes = writable(&write.range);
                Output { at, dtype: write.dtype, dims: &given.shapes[write.tensor], bytes }
            })
        }));
        let scratch = writable(&run.scratch());
        let mut operands = Operands { inputs, outputs, scratch };
        let result = work(&mut operands);
        let Operands { inputs, outputs, .. } = operands;
        (spare.inputs, spare.outputs) = (recycled(inputs), recycled(outputs));
        result
    }
}
