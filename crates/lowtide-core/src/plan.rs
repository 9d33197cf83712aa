//! [`Plan`]: everything a runtime needs to know about memory, as plain data.
//!
//! ~~~text
//! ALLOC r0   EXEC run0   ALLOC r1   EXEC run1   FREE r0   ...        events, mechanically followed
//!       |         |
//!       |         └ bindings: for each operand of the operator, the residence that it uses
//!       └ residence: whose bytes, in which buffer, where, how many, when
//! ~~~
//!
//! A plan may come from a planner or from a file; nothing in it is trusted until
//! [`check`](crate::check()) has made a [`CheckedPlan`](crate::CheckedPlan) of it.

use crate::{
    Align, Bound, Buffer, BufferId, Bytes, Fingerprint, Graph, Id, IndexVec, Lists, OpId,
    Residence, ResidenceId, RunId, Schedule, Space, SpaceId, Step,
};

/// How memory is reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reuse {
    /// Each buffer gets an offset in one arena.
    #[default]
    Pack,
    /// Buffers of one colour share one block.
    Colour,
    /// Every tensor has its own memory, to find out whether a fault lies in the reuse.
    Safe,
}

impl Reuse {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Pack, Self::Colour, Self::Safe];

    /// As written in files and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pack => "pack",
            Self::Colour => "colour",
            Self::Safe => "safe",
        }
    }
}

/// Who owns the memory of the inputs, or of the outputs, of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The caller: they take no arena. Inputs are never overwritten; outputs are written where the caller
    /// wants them.
    Caller,
    /// The arena: inputs are copied in before the first step; outputs are copied out, or read there.
    Arena,
}

impl Owner {
    /// As written in files and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Arena => "arena",
        }
    }
}

/// One row of the event table. Rows of one step: ALLOCs, FENCEs, the EXEC, FREEs, perhaps a COMPACT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Event {
    /// The residence's bytes are its own from here, before the run that needs them first.
    Alloc(ResidenceId),
    /// The next run waits until this one is over, which neither data nor other fences say: it comes over bytes that this
    /// one uses. One worker has no need of it.
    Fence(RunId),
    /// The operator runs.
    Exec(RunId),
    /// The residence's bytes are free, after the run that needs them last.
    Free(ResidenceId),
    /// After this run, the one before: blocks of the pool may be moved together while no operator runs.
    Compact(RunId),
}

/// What a plan costs, and against what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanStats {
    /// Every tensor in memory of its own: padded sizes; views and weights count nothing.
    pub no_reuse_bytes: Bytes,
    /// The most that is live at one step: padded sizes of all residences held, where those of one buffer
    /// that lie on the same bytes count once.
    pub peak_live_bytes: Bytes,
    /// The first step at which that much is live.
    pub peak_step: Step,
    /// Size of the arena.
    pub arena_bytes: Bytes,
    /// Tensors of unknown size, which live in the pool.
    pub pool_tensors: usize,
}

/// A schedule with a place for every value.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The graph it is for.
    pub fingerprint: Fingerprint,
    /// How memory is reused.
    pub reuse: Reuse,
    /// Who owns the inputs.
    pub inputs: Owner,
    /// Who owns the outputs, and all that lies in their storages.
    pub outputs: Owner,
    /// Offsets of buffers are multiples of this, and sizes are padded to it.
    pub align: Align,
    /// Which rule found the order; for people.
    pub order_rule: String,
    /// Which operator runs at which step.
    pub schedule: Schedule,
    /// For each run, an entry for each input, each output and, where the operator needs it, the scratch of
    /// its operator: the residence that it uses, or `None` for the caller's memory and for weights.
    pub bindings: Lists<RunId, Option<ResidenceId>>,
    /// The memories.
    pub spaces: IndexVec<SpaceId, Space>,
    /// The pieces that are placed.
    pub buffers: IndexVec<BufferId, Buffer>,
    /// What lies in them.
    pub residences: IndexVec<ResidenceId, Residence>,
    /// What happens, in order.
    pub events: Vec<Event>,
    /// Below this no order can come.
    pub order_bound: Bound,
    /// Below this no placement of this plan's schedule and sharing can come.
    pub placement_bound: Bound,
    /// What it costs.
    pub stats: PlanStats,
}

impl Plan {
    /// Whether no other order could have a smaller peak.
    pub fn order_proven(&self) -> bool {
        self.stats.peak_live_bytes <= self.order_bound.bytes
    }

    /// Whether no other placement of this schedule could be smaller.
    pub fn placement_proven(&self) -> bool {
        self.stats.arena_bytes <= self.placement_bound.bytes
    }

    /// How many fences there are.
    pub fn fences(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Fence(_))).count()
    }

    /// Pairs of runs of which the second waits for the first, for data, a mutation or a fence, sorted. An operator that runs
    /// again waits for its last time. Cost: near-linear.
    pub fn waits(&self, graph: &Graph) -> Vec<(RunId, RunId)> {
        let mut waits = Vec::new();
        let mut runs = IndexVec::filled(graph.ops().len(), None);
        for (run, &op) in self.schedule.iter_enumerated() {
            let before = graph.predecessors(op).into_iter().chain([op]);
            waits.extend(before.filter_map(|op| runs[op]).map(|before| (before, run)));
            runs[op] = Some(run);
        }
        let mut next = RunId::new(0);
        for &event in &self.events {
            match event {
                Event::Exec(run) => next = RunId::from_index(run.index() + 1),
                Event::Fence(before) => waits.push((before, next)),
                Event::Alloc(_) | Event::Free(_) | Event::Compact(_) => {}
            }
        }
        waits.sort_unstable();
        waits.dedup();
        waits
    }

    /// Which operator a run executes.
    pub fn op(&self, run: RunId) -> OpId {
        self.schedule[run]
    }

    /// The address of a residence: its space and its first byte there; `None` in a pool.
    pub fn address(&self, residence: ResidenceId) -> Option<(SpaceId, Bytes)> {
        let row = &self.residences[residence];
        let buffer = &self.buffers[row.buffer];
        Some((buffer.space, buffer.offset? + row.offset))
    }
}
