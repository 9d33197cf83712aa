//! [`Bound`]: a number of bytes that no plan can beat, with its [`Proof`].
//!
//! A proof is a certificate that the checker verifies by itself, or a finished search that it can only quote.

use crate::{Bytes, OpId, Step};

/// A lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}
