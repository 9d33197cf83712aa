//! [`Bound`]: a number of bytes that no plan can beat, with its [`Proof`].
//!
//! ~~~text
//! certificate ──the checker works it out by itself──> certified
//! search      ──nobody can look it up──────────────> quoted
//! ~~~
//! A proof is a certificate that the checker verifies by itself, or a finished search that it can only quote.

use crate::{Align, BufferId, Bytes, OpId, Step};
use std::fmt;

/// A lower bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// At least this many bytes are needed.
    pub bytes: Bytes,
    /// Why.
    pub proof: Proof,
}

impl Bound {
    /// Nothing is claimed.
    pub const NONE: Self = Self { bytes: Bytes::ZERO, proof: Proof::Trivial };
}

/// Why a bound holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Proof {
    /// Memory is not negative.
    Trivial,
    /// Certificate, for every order: while this operator runs, all that it reads, writes and uses as
    /// scratch is there, less what it may overwrite.
    WorkingSet(OpId),
    /// Certificate, for every order: at the end all outputs of the graph are there.
    Outputs,
    /// Certificate, for one schedule: what is live at this step.
    LiveSum(Step),
    /// Certificate, for one schedule: what is live at this step, with the bytes that are lost between what
    /// has to start at multiples of `align`.
    Stacked {
        /// When.
        step: Step,
        /// What starts at multiples of this leaves holes.
        align: Align,
    },
    /// Certificate, for one schedule: these buffers alone need that much, as trying all placements shows.
    Items(Box<[BufferId]>),
    /// No certificate: a search of the planner has found nothing below, and came to its end; or, without fences, buffers
    /// of which data orders no two need that much.
    Search,
}

impl fmt::Display for Proof {
    /// In a few words, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trivial => f.write_str("trivial"),
            Self::WorkingSet(op) => write!(f, "working set of operator {op}"),
            Self::Outputs => f.write_str("outputs"),
            Self::LiveSum(step) => write!(f, "live at step {step}"),
            Self::Stacked { step, align } => {
                write!(f, "live at step {step}, stacked at multiples of {align}")
            }
            Self::Items(items) if items.len() == 1 => f.write_str("one buffer alone"),
            Self::Items(items) => write!(f, "{} buffers alone", items.len()),
            Self::Search => f.write_str("proven by search, without a certificate"),
        }
    }
}
