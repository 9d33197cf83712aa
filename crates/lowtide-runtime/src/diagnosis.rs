//! [`Diagnosis`]: what a comparison of a plan with safe mode has shown, as plain data.
//!
//! ~~~text
//! Finding   `a` is not what it should be when `Add` reads it in step 9
//!   victim    `a`: residence 3, bytes 64..128, held from step 2 to 7, read in steps 4 and 9
//!   culprit   `b`: residence 12, bytes 64..192, held from step 8 to 10, written in step 8
//!   cause     freed after step 7, two steps short
//! ~~~
//! Steps count what the events execute. Names are those of the graph; texts of a finding are for others to make.

use lowtide_core::{BufferId, Bytes, Interval, ResidenceId, Step};

/// What was compared, and the first thing that was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Runs that were made, up to the one where the finding shows.
    pub runs: usize,
    /// Operands and outputs that were compared and agreed.
    pub compared: usize,
    /// The first that differs.
    pub finding: Option<Finding>,
}

/// The first tensor that differs, and who is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The run in which it shows; `None` for the caller, who reads the outputs in the end.
    pub seen: Option<Use>,
    /// Which operand of that run, as in `input 0`, or which output of the graph.
    pub operand: String,
    /// The tensor that differs.
    pub tensor: String,
    /// How; `None` where nothing could be compared, as the run cannot be made.
    pub difference: Option<Difference>,
    /// Whose bytes are wrong; `None` for what has no place in the plan.
    pub victim: Option<Stay>,
    /// Whose use of memory made them so, if it is another's.
    pub culprit: Option<Stay>,
    /// The run that wrote those bytes last, if one did.
    pub writer: Option<Use>,
    /// In what way.
    pub cause: Cause,
}

/// The first element that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its index in the tensor.
    pub element: usize,
    /// Where that lies in the arena.
    pub address: Option<Bytes>,
    /// What is there.
    pub found: String,
    /// What safe mode has.
    pub wanted: String,
    /// How many bytes of the tensor differ.
    pub bytes: usize,
}

/// A run of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// When; `None` if the events never run it.
    pub step: Option<Step>,
    /// The operator's name.
    pub op: String,
    /// Its type.
    pub kind: String,
}

/// A residence, and what happens with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stay {
    /// Which.
    pub residence: ResidenceId,
    /// What stays there.
    pub name: String,
    /// In which buffer.
    pub buffer: BufferId,
    /// Its first byte in the arena.
    pub start: Bytes,
    /// The byte after its last.
    pub end: Bytes,
    /// When the events hold it; `None` if they never allocate it.
    pub held: Option<Interval>,
    /// When the graph needs it: from its first writer to its last reader.
    pub needed: Option<Interval>,
    /// Who writes into its storage.
    pub writers: Vec<Use>,
    /// Who reads it, or a view of it.
    pub readers: Vec<Use>,
    /// Whether an output of the graph lies there.
    pub is_output: bool,
}

/// In what way a plan is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The victim is freed before its last reader; who takes the bytes then is the culprit, if anybody does.
    FreedEarly {
        /// The first step at which it is free.
        free: Step,
        /// How many steps are missing up to the last reader.
        short: u32,
    },
    /// The victim is allocated after it is written; whoever had the bytes then is the culprit, if anybody had.
    AllocatedLate {
        /// The first step at which it is held; `None` for never.
        held: Option<Step>,
        /// How many steps late that is; 0 for an ALLOC between the write and the next step.
        late: u32,
    },
    /// A run writes the culprit over the victim, its own input, which others still need.
    InPlace,
    /// Both are held and both have these bytes of the arena.
    Overlap {
        /// The first byte of both.
        start: Bytes,
        /// The byte after the last.
        end: Bytes,
    },
    /// Two operands of one run lie on each other in a way that its operator cannot do.
    OneRun {
        /// Which two.
        operands: [String; 2],
    },
    /// The run is bound to the culprit, where it has to read or write the victim.
    Bound {
        /// Which run.
        by: Use,
    },
    /// The tensor was not yet written when it was read: one operator runs before the other.
    Order {
        /// The operator that writes it.
        writer: Use,
    },
    /// The victim's bytes were changed by an operator that had to wait for this reader.
    Changed {
        /// The operator that changes it.
        by: Use,
    },
    /// The operator does not do what it does in safe mode, though its inputs are right.
    Kernel {
        /// What it says.
        message: String,
    },
}

impl Cause {
    /// As machines read it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::FreedEarly { .. } => "freed_early",
            Self::AllocatedLate { .. } => "allocated_late",
            Self::InPlace => "in_place",
            Self::Overlap { .. } => "overlap",
            Self::OneRun { .. } => "one_run",
            Self::Bound { .. } => "bound",
            Self::Order { .. } => "order",
            Self::Changed { .. } => "changed",
            Self::Kernel { .. } => "kernel",
        }
    }
}
