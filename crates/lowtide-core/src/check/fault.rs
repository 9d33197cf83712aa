//! What can be wrong with a plan.

use crate::{BufferId, Bytes, ResidenceId, RunId, Size, Step};
use std::fmt;

/// One broken rule. Names are the graph's; ids are the plan's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum Fault {
    #[error(
        "the plan is for another graph, {found}; this one, with its dimensions as bound, is {wanted}"
    )]
    OtherGraph { found: String, wanted: String },
    #[error("{place} is {found}, but there are only {limit}")]
    OutOfRange { place: String, found: u32, limit: usize },
    #[error("{place} has {found} entries, wanted {wanted}")]
    WrongLength { place: String, found: usize, wanted: usize },
    #[error("buffer {buffer} claims residences {start} to {end}; wanted to go on at {wanted}")]
    PartsDoNotTile { buffer: BufferId, start: u32, end: u32, wanted: u32 },
    #[error("residence {residence} names buffer {found}, but is a part of {wanted}")]
    ForeignPart { residence: ResidenceId, found: BufferId, wanted: BufferId },
    #[error("buffer {buffer} {problem}")]
    OffsetKind { buffer: BufferId, problem: &'static str },
    #[error("buffer {buffer} lies at {offset}, wanted a multiple of {align}")]
    Misaligned { buffer: BufferId, offset: u64, align: u64 },
    #[error("buffer {buffer} promises alignment {found}, the plan {wanted}")]
    WeakAlignment { buffer: BufferId, found: u64, wanted: u64 },
    #[error(
        "`{what}` ({residence}) lies at {offset} in its buffer, not a multiple of its element size {element}"
    )]
    SplitElement { residence: ResidenceId, what: String, offset: u64, element: u64 },
    #[error(
        "`{what}` ({residence}) lies at {offset} in its buffer, wanted a multiple of {align}, as nothing lets it lie beside others"
    )]
    MisalignedPart { residence: ResidenceId, what: String, offset: u64, align: u64 },
    #[error("{what} is {found}, the limit is {limit}")]
    OverLimit { what: String, found: u64, limit: u64 },
    #[error("`{what}` ({residence}) ends at {end}, its space has {size} bytes")]
    OutsideSpace { residence: ResidenceId, what: String, end: u64, size: u64 },
    #[error("`{what}` ({residence}) is given {found}, the graph says {wanted}")]
    WrongSize { residence: ResidenceId, what: String, found: Size, wanted: Size },
    #[error("`{what}` ({residence}) is of {size} size and cannot lie in an arena")]
    UnboundedInArena { residence: ResidenceId, what: String, size: Size },
    #[error("`{what}` ({residence}) has no memory of its own in a plan: it is {why}")]
    NotPlaced { residence: ResidenceId, what: String, why: &'static str },
    #[error("in safe mode `{first}` and `{second}` share bytes")]
    SharedInSafeMode { first: String, second: String },

    #[error("event {event} executes {found}, wanted {wanted}")]
    OutOfTurn { event: usize, found: RunId, wanted: String },
    #[error("the events end after {found} of {wanted} runs")]
    MissingRuns { found: usize, wanted: usize },
    #[error("operator `{op}` never runs")]
    NeverRuns { op: String },
    #[error("operator `{op}` at step {step} reads `{tensor}`, which is not written before")]
    ReadBeforeWrite { op: String, step: Step, tensor: String },
    #[error("event {event} allocates `{what}` ({residence}) again")]
    AllocatedTwice { event: usize, residence: ResidenceId, what: String },
    #[error("event {event} allocates `{what}` ({residence}), but the next run does not use it")]
    EarlyAlloc { event: usize, residence: ResidenceId, what: String },
    #[error("event {event} allocates input `{what}` ({residence}) after the first run")]
    LateInput { event: usize, residence: ResidenceId, what: String },
    #[error("event {event} frees `{what}` ({residence}), which is not held")]
    FreeWithoutAlloc { event: usize, residence: ResidenceId, what: String },
    #[error("`{what}` ({residence}) is never allocated")]
    NeverAllocated { residence: ResidenceId, what: String },
    #[error("`{what}` ({residence}) is never freed")]
    NeverFreed { residence: ResidenceId, what: String },
    #[error("`{what}` ({residence}) says that it stays {found}, the events say {wanted}")]
    WrongSpan { residence: ResidenceId, what: String, found: String, wanted: String },
    #[error("operator `{op}` at step {step} binds {found} to `{operand}`, wanted {wanted}")]
    WrongBinding { op: String, step: Step, operand: String, found: String, wanted: String },
    #[error("operator `{op}` at step {step} uses `{what}` ({residence}), which is not held")]
    NotHeld { op: String, step: Step, residence: ResidenceId, what: String },

    #[error(
        "operator `{op}` at step {step} writes `{what}` ({residence}), but not all of its bytes are its own any more"
    )]
    BytesLost { op: String, step: Step, residence: ResidenceId, what: String },
    #[error("`{what}` ({residence}) was overwritten at step {step} and is not freed right after")]
    LateFree { step: Step, residence: ResidenceId, what: String },
    #[error("`{new}` ({new_id}) and `{old}` ({old_id}) hold the same bytes at step {step}: {why}")]
    HeldTwice {
        step: Step,
        new: String,
        new_id: ResidenceId,
        old: String,
        old_id: ResidenceId,
        why: &'static str,
    },
    #[error("operator `{op}` at step {step} reads `{tensor}`, but finds {found}")]
    WrongBytes { op: String, step: Step, tensor: String, found: String },
    #[error("event {event} is a fence for {found}, which does not come before {next}")]
    LateFence { event: usize, found: RunId, next: RunId },
    #[error("event {event} moves the pool after {found}, {why}")]
    MisplacedCompact { event: usize, found: RunId, why: &'static str },
    #[error(
        "operator `{op}` at step {step} uses bytes that `{other}` uses at step {other_step}, and neither data nor a fence makes it wait for that"
    )]
    Unordered { op: String, step: Step, other: String, other_step: Step },
    #[error("from event {event} on too much lies in too much for the checker to follow")]
    TooTangled { event: usize },
    #[error("output `{tensor}` is not held at the end")]
    OutputNotHeld { tensor: String },
    #[error("output `{tensor}` is overwritten at the end: it holds {found}")]
    OutputOverwritten { tensor: String, found: String },

    #[error("statistic {name} is {found}, recomputed {wanted}")]
    WrongStatistic { name: &'static str, found: u64, wanted: u64 },
    #[error("the {which} bound claims {found}, its certificate shows {shown}")]
    BoundNotShown { which: &'static str, found: Bytes, shown: Bytes },
    #[error("the {which} bound is {bound}, above the peak of the plan, {peak}")]
    BoundAbovePeak { which: &'static str, bound: Bytes, peak: Bytes },
    #[error("the {which} bound is {bound}, above the arena of the plan, {arena}")]
    BoundAboveArena { which: &'static str, bound: Bytes, arena: Bytes },
    #[error("the {which} bound claims {bound} for {items} buffers, which fit into less")]
    ItemsFit { which: &'static str, bound: Bytes, items: usize },
    #[error(
        "the {which} bound claims {bound} for {items} buffers, too hard for the checker to show"
    )]
    ProofTooHard { which: &'static str, bound: Bytes, items: usize },
    #[error("these are {kept} faults, and the check ends here; at least {more} more were found")]
    More { kept: usize, more: usize },
    #[error("the {which} bound has a proof of the wrong kind: {found}")]
    WrongProof { which: &'static str, found: String },
}

/// Faults as they are found. A hostile plan can have any number, each with names, so only so many are kept.
#[derive(Debug, Default)]
pub(super) struct FaultList {
    kept: Vec<Fault>,
    more: usize,
}

impl FaultList {
    /// How many are kept.
    const LIMIT: usize = 1000;

    pub(super) fn push(&mut self, fault: Fault) {
        if self.is_full() {
            self.more += 1;
        } else {
            self.kept.push(fault);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.kept.len() >= Self::LIMIT
    }

    pub(super) fn into_vec(mut self) -> Vec<Fault> {
        if self.is_full() {
            self.kept.push(Fault::More { kept: Self::LIMIT, more: self.more });
        }
        self.kept
    }
}

/// The faults of a plan; never empty. Of very many, the first thousand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        write!(f, "{} fault(s)", self.0.len())?;
        for fault in self.0.iter().take(SHOWN) {
            write!(f, "\n  {fault}")?;
        }
        if self.0.len() > SHOWN {
            write!(f, "\n  and {} more", self.0.len() - SHOWN)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}
