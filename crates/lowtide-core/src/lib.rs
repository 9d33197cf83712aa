//! The nouns of Lowtide, and the checker that judges plans.
//!
//! ~~~text
//! Model ──resolve──> Graph ──order──> Order ──share──> residences, buffers ──place──> Plan ──check──> CheckedPlan
//! (file)            (frozen)        (topological)        (Problem, Placement)     (plain data)     (runs safely)
//! ~~~
//!
//! | word | meaning |
//! |---|---|
//! | operator, tensor | vertices and values of a graph |
//! | storage | a tensor with memory of its own, and all views and mutated values in it |
//! | lifetime | from the step that writes a tensor to the last that reads it, half-open |
//! | residence | one stay of one value in one buffer |
//! | buffer | residences at fixed distances, placed as a whole |
//! | arena, pool | memory with planned offsets; memory found when the model runs |
//! | live, peak | bytes held at a step; the most over all steps |
//!
//! This crate does no I/O, reads no clock, spawns no thread, has no unsafe code, and serialises nothing.

#![forbid(unsafe_code)]

mod alias;
mod bound;
mod buffer;
mod builder;
mod bytes;
pub mod check;
mod fingerprint;
mod graph;
mod index;
mod model;
pub mod operator;
mod order;
mod origins;
mod plan;
mod problem;
mod ran;
mod reach;
mod shape;
mod spaces;
mod step;
#[cfg(feature = "testing")]
pub mod testing;

pub use alias::Extent;
pub use bound::{Bound, Proof};
pub use buffer::{Buffer, Occupant, Residence, Space, SpaceKind};
pub use builder::{GraphBuilder, GraphError, MOST_SECONDS, is_time};
pub use bytes::{Align, Bytes};
pub use check::{CheckedPlan, Fault, Faults, check};
pub use fingerprint::Fingerprint;
pub use graph::{Graph, Op, Sharing, Tensor, TensorKind};
pub use index::{
    BufferId, GraphId, Id, IndexVec, Lists, OpId, ResidenceId, RunId, SpaceId, TensorId,
};
pub use model::{
    Attribute, Body, Data, Model, ModelGraph, ModelOp, ModelTensor, Source, TensorValue, Value,
};
pub use operator::{Operator, Registry};
pub use order::{Order, OrderError, Readiness, Schedule};
pub use plan::{Event, Owner, Plan, PlanStats, Reuse};
pub use problem::{Item, Placement, Problem, ProblemError, Rect, Rects};
pub use ran::Ran;
pub use reach::Reach;
pub use shape::{DType, Dim, Size, element_count};
pub use spaces::{
    MAX_SPACES, SpacesError, SpacesPlacement, SpacesProblem, Spill, SpillReason, Stay,
};
pub use step::{Interval, Step};

/// The lifetime of each tensor under some order: from the step that writes it (for inputs and weights: that
/// first reads it) to the step after the last that reads it. `None`: nothing reads or writes it.
pub type Lifetimes = IndexVec<TensorId, Option<Interval>>;
