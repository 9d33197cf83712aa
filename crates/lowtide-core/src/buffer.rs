//! Where values stay: [`Residence`], [`Buffer`], [`Space`].
//!
//! A residence is one stay of one value; a buffer holds residences at fixed distances, so that they are
//! placed as a whole; a space is a memory in which buffers have offsets.
//!
//! ~~~text
//! offset ^                            buffer: two residences, the second written over the first
//!        |  [ a: steps 0-3 ][ b: 3-7 ]     (in place: both hold the bytes during step 3)
//!        |  [        c: steps 1-9        ]  buffer: one residence
//!        +-------------------------------> step
//! ~~~

use crate::{Align, BufferId, Bytes, Interval, ResidenceId, RunId, Size, SpaceId, TensorId};
use std::ops::Range;

/// What stays in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Occupant {
    /// The storage of a tensor: its own value, and all views and mutated values that lie in it.
    Tensor(TensorId),
    /// The scratch memory of one run.
    Scratch(RunId),
}

/// One stay of one value in one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residence {
    /// Whose bytes they are.
    pub what: Occupant,
    /// In which buffer.
    pub buffer: BufferId,
    /// Where in the buffer.
    pub offset: Bytes,
    /// How many bytes.
    pub size: Size,
    /// From the step of its ALLOC to the step after its FREE.
    pub span: Interval,
}

/// A piece of memory that is placed as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The memory in which it lies.
    pub space: SpaceId,
    /// Its offset is a multiple of this.
    pub align: Align,
    /// The residences in it: a range of ids.
    pub parts: Range<ResidenceId>,
    /// Where it lies in its space; `None` in the pool, which finds a place when the model runs.
    pub offset: Option<Bytes>,
}

/// What kind of memory a space is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpaceKind {
    /// One block; every buffer has a planned offset.
    Arena,
    /// Blocks found when the model runs.
    Pool,
}

/// A memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Of which kind.
    pub kind: SpaceKind,
    /// Bytes that the plan needs in it; of a pool nothing is known.
    pub size: Bytes,
}
