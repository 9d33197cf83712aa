//! [`PlanConfig`]: everything that a plan depends on besides the graph.

use lowtide_core::{Align, Bytes, Graph, Owner, Reuse, TensorId, TensorKind};
use std::num::NonZeroUsize;

/// How to plan. Equal graph and equal config give equal plans, byte for byte.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanConfig {
    /// How the order of the operators is found.
    pub order: OrderRule,
    /// Weights of the score rule.
    pub score: ScoreWeights,
    /// How memory is reused.
    pub reuse: Reuse,
    /// In which order buffers are coloured, in mode [`Reuse::Colour`].
    pub colour_by: ColourBy,
    /// Whether an output may be written over a dying input.
    pub in_place: bool,
    /// Whether the parts of a concat may be written straight into it, and the pieces of a split stay where they are.
    pub parts: bool,
    /// Who owns the memory of graph inputs: by default the caller.
    pub inputs: Owner,
    /// Who owns the memory of graph outputs: by default the arena.
    pub outputs: Owner,
    /// Offsets are multiples of this, and sizes are padded to it.
    pub align: Align,
    /// At least so many bytes of nobody's between any two buffers that live together, and behind the topmost: in them a
    /// write beyond an end shows. Rounded up to `align`; 0: none.
    pub red_zone: Bytes,
    /// Whether bytes may be used again where only the order of the plan allows it, so that several workers have to wait at
    /// fences; else only where data orders it ([`Reuse::Pack`] and [`Reuse::Safe`]).
    pub fences: bool,
    /// After so many operators blocks of the pool may be moved together, where a plan uses the pool; 0: never. It is done only if
    /// enough is scattered, at a moment when no operator runs.
    pub compact_every: u32,
    /// How many pairs of buffers that live together packing may look at; see [`Effort`]. Parts of it are spent on one
    /// order after the other. One rule, whose cost does not depend on these pairs, always runs.
    pub pack_steps: u64,
    /// How many steps the search for an order may take; see [`Effort`].
    pub order_steps: u64,
    /// Workers that run operators side by side, for which makespans are counted.
    pub workers: NonZeroUsize,
    /// How much longer than the fastest order that is tried the plan's may take on the workers, as in 0.05 for 5 %:
    /// 0 or more; none: memory alone counts. Of the orders within it the smallest arena is kept. Only for
    /// [`OrderRule::Rules`] and [`OrderRule::Search`].
    pub slowdown: Option<f64>,
}

impl Default for PlanConfig {
    fn default() -> Self {
        Self {
            order: OrderRule::default(),
            score: ScoreWeights::default(),
            reuse: Reuse::default(),
            colour_by: ColourBy::default(),
            in_place: true,
            parts: true,
            inputs: Owner::Caller,
            outputs: Owner::Arena,
            align: Align::default(),
            red_zone: Bytes::ZERO,
            fences: true,
            compact_every: 64,
            pack_steps: Effort::default().pack_steps(),
            order_steps: Effort::default().order_steps(),
            workers: NonZeroUsize::MIN,
            slowdown: None,
        }
    }
}

impl PlanConfig {
    /// Whether a plan gives `tensor` memory of its own: it is a storage, and not in the caller's memory.
    pub(crate) fn places(&self, graph: &Graph, tensor: TensorId) -> bool {
        if self.outputs == Owner::Caller && graph.holds_output(tensor) {
            return false;
        }
        match graph.tensors()[tensor].kind {
            TensorKind::Computed => graph.is_storage(tensor),
            TensorKind::Input => self.inputs == Owner::Arena && !graph.ops().is_empty(),
            TensorKind::Weight => false,
        }
    }
}

/// How long the searches for an order and for a smaller arena may take. It counts steps and not seconds, so that the
/// same effort gives the same plan on every machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Rules, and searches of some milliseconds.
    Fast,
    /// Where rules do not meet the bound, a search of up to a second for an order, and of up to two for its placement.
    #[default]
    Default,
    /// Searches of a minute or so.
    Max,
}

impl Effort {
    /// Steps of the search for an order.
    pub const fn order_steps(self) -> u64 {
        match self {
            Self::Fast => 8_000_000,
            Self::Default => 50_000_000,
            Self::Max => 2_000_000_000,
        }
    }

    /// Pairs of buffers that may be looked at.
    pub const fn pack_steps(self) -> u64 {
        match self {
            Self::Fast => 4_000_000,
            Self::Default => 400_000_000,
            Self::Max => 10_000_000_000,
        }
    }
}

/// How the order of the operators is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrderRule {
    /// The order of the file.
    File,
    /// The score rule: memory freed soon, and the critical path.
    Score,
    /// The best of many simple rules.
    Rules,
    /// Simple rules, lower bounds, and a search that ends when they meet.
    #[default]
    Search,
}

/// The two weights of the score rule, finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreWeights {
    /// Of the bytes freed per second of the operator.
    pub alpha: f64,
    /// Of the distance to the end of the critical path.
    pub beta: f64,
}

impl Default for ScoreWeights {
    fn default() -> Self {
        Preset::Inference.weights()
    }
}

/// What a model is run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Memory first.
    Inference,
    /// Throughput first.
    Training,
    /// One graph driven for many rounds: memory first.
    Dataflow,
}

impl Preset {
    /// The weights of the score rule.
    pub const fn weights(self) -> ScoreWeights {
        match self {
            Self::Inference | Self::Dataflow => ScoreWeights { alpha: 0.7, beta: 0.3 },
            Self::Training => ScoreWeights { alpha: 0.3, beta: 0.7 },
        }
    }
}

/// In which order buffers are coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColourBy {
    /// Both ways; the one whose blocks take fewer bytes is kept.
    #[default]
    Best,
    /// By the first step: uses the fewest colours.
    Start,
    /// By the last step: may use more colours, though often fewer bytes.
    End,
}
