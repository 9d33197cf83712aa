//! The arena: ranges of bytes in, slices out. Unsafe, as all memory that is planned is reached here.
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
#![expect(clippy::inline_always, reason = "they are part of the loop over the operands of a run")]

use crate::bind::{BoundRun, Read, Source, Target};
use crate::guard;
use crate::memory::{Block, Memory, MemoryError};
use crate::tensor::TensorRef;
use crate::weights::Weights;
use lowtide_core::operator::{Input, Operands, Output, Place, recycled};
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

/// What a run has of its own, if it is late: shapes, and bytes in the pool. Stands at the positions of its operands.
#[derive(Debug, Default)]
pub(crate) struct Lent<'a> {
    pub(crate) inputs: &'a [Option<LentInput<'a>>],
    /// Each is taken as it is given to the kernel.
    pub(crate) outputs: &'a mut [Option<LentOutput<'a>>],
    /// Instead of what the plan has for it.
    pub(crate) scratch: Option<&'a mut [u8]>,
}

/// An input as it is in this run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LentInput<'a> {
    pub(crate) dims: &'a [usize],
    /// How many bytes it has; no more than the range of its source.
    pub(crate) len: usize,
    /// All of them, if they lie in the pool.
    pub(crate) bytes: Option<&'a [u8]>,
}

/// An output as it is in this run.
#[derive(Debug)]
pub(crate) struct LentOutput<'a> {
    pub(crate) dims: &'a [usize],
    /// How many bytes it has; no more than the range of its target.
    pub(crate) len: usize,
    /// All of them, if they lie in the pool.
    pub(crate) bytes: Option<&'a mut [u8]>,
}

/// The first `len` bytes of a range.
#[inline(always)]
fn cut(range: &Range<usize>, len: Option<usize>) -> Range<usize> {
    let Some(len) = len else { return range.clone() };
    assert!(len <= range.len(), "{len} bytes are more than {range:?}");
    range.start..range.start + len
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

    /// Shows the inputs of a run before it writes anything: also those that lie in an output are apart then.
    ///
    /// # Panics
    /// If the run was bound to a larger arena.
    pub(crate) fn with_inputs<R>(
        &self,
        run: &BoundRun,
        given: Given<'_>,
        lent: &[Option<LentInput<'_>>],
        look: impl FnOnce(&[Option<Input<'_>>]) -> R,
    ) -> R {
        let input = |(at, read): (usize, &Option<Read>)| {
            let read = read.as_ref()?;
            let lent = lent.get(at).copied().flatten();
            let place = match &read.source {
                Source::Output { output, offset } => {
                    let range = run.writes()[*output].as_ref().and_then(|write| write.range());
                    let start = range.expect("inputs lie in outputs of the arena").start + offset;
                    let len = lent.map_or(0, |lent| lent.len);
                    Place::Apart(self.readable(&(start..start + len)))
                }
                source => self.place(source, given, lent),
            };
            let dims = lent.map_or(&*given.shapes[read.tensor], |lent| lent.dims);
            Some(Input { at, dtype: read.dtype, dims, place })
        };
        look(&run.reads().iter().enumerate().map(input).collect::<Vec<_>>())
    }

    /// Bytes that nobody writes as long as the slice lives: of a run that is under way, what it reads and does not write,
    /// and before it writes, all that it reads.
    #[inline(always)]
    fn readable(&self, range: &Range<usize>) -> &[u8] {
        let range = self.inside(range);
        // SAFETY: the range is inside the block, which is borrowed for as long as the slice lives, and apart from every
        // range that this run writes meanwhile: the invariant of `BoundRun`.
        unsafe { std::slice::from_raw_parts(self.base.add(range.start), range.len()) }
    }

    #[inline(always)]
    fn inside(&self, range: &Range<usize>) -> Range<usize> {
        let len = self.len;
        assert!(
            range.start <= range.end && range.end <= len,
            "{range:?} is outside of {len} bytes"
        );
        range.clone()
    }

    /// Where an input is for a kernel.
    #[inline(always)]
    fn place<'s>(
        &'s self,
        source: &Source,
        given: Given<'s>,
        lent: Option<LentInput<'s>>,
    ) -> Place<'s> {
        let len = lent.map(|lent| lent.len);
        match source {
            Source::Output { output, offset } => Place::In { output: *output, offset: *offset },
            Source::Weight(id, range) => Place::Apart(&given.weights.bytes(*id)[cut(range, len)]),
            Source::Caller(number, range) => {
                Place::Apart(&given.inputs[*number].bytes()[cut(range, len)])
            }
            Source::Arena(range) => Place::Apart(self.readable(&cut(range, len))),
            Source::Pool(_) => {
                let bytes = lent.and_then(|lent| lent.bytes);
                Place::Apart(bytes.expect("what lies in the pool is lent"))
            }
        }
    }

    /// Gives a kernel the operands of a run. A late one brings along what is known of them only now.
    ///
    /// # Panics
    /// If the run was bound to a larger arena, or what is lent is larger than its place.
    pub(crate) fn with_operands<R>(
        &self,
        run: &BoundRun,
        (given, lent): (Given<'_>, Lent<'_>),
        spare: &mut Spare,
        work: impl FnOnce(&mut Operands<'_>) -> R,
    ) -> R {
        let Lent { inputs: lent_inputs, outputs: lent_outputs, scratch: lent_scratch } = lent;
        let mut inputs = recycled(std::mem::take(&mut spare.inputs));
        inputs.extend(run.reads().iter().enumerate().map(|(at, read)| {
            read.as_ref().map(|read| {
                let lent = lent_inputs.get(at).copied().flatten();
                let place = self.place(&read.source, given, lent);
                let dims = lent.map_or(&*given.shapes[read.tensor], |lent| lent.dims);
                Input { at, dtype: read.dtype, dims, place }
            })
        }));
        let writable = |range: &Range<usize>| {
            let range = self.inside(range);
            // SAFETY: the range is inside the block, which is borrowed for as long as the slice lives, and apart from
            // every other range that is read or written in this run: the invariant of `BoundRun`. Each is taken once.
            unsafe { std::slice::from_raw_parts_mut(self.base.add(range.start), range.len()) }
        };
        let mut outputs = recycled(std::mem::take(&mut spare.outputs));
        outputs.extend(run.writes().iter().enumerate().map(|(at, write)| {
            write.as_ref().map(|write| {
                let lent = lent_outputs.get_mut(at).and_then(Option::take);
                let len = lent.as_ref().map(|lent| lent.len);
                let dims = lent.as_ref().map_or(&*given.shapes[write.tensor], |lent| lent.dims);
                let bytes = match &write.target {
                    Target::Arena(range) => writable(&cut(range, len)),
                    Target::Pool(_) => {
                        let bytes = lent.and_then(|lent| lent.bytes);
                        bytes.expect("what lies in the pool is lent")
                    }
                };
                Output { at, dtype: write.dtype, dims, bytes }
            })
        }));
        let scratch = lent_scratch.unwrap_or_else(|| writable(&run.scratch()));
        let mut operands = Operands { inputs, outputs, scratch };
        let result = work(&mut operands);
        let Operands { inputs, outputs, .. } = operands;
        (spare.inputs, spare.outputs) = (recycled(inputs), recycled(outputs));
        result
    }
}
