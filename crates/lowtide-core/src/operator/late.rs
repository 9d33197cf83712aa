//! [`Late`]: an operator of one graph whose operands have no size before the run.
//!
//! ~~~text
//! x [2, 5], as it is in this run ──measure──> Measured { shapes: [[2, 7]], scratch }      memory is found for them
//!                                             kernel ──> Kernel ── run(Operands)           made for just these shapes
//! ~~~
//! The runtime knows nothing of shape rules, so whoever prepares a program brings them along in this form.

use super::{Input, Kernel, NoKernel};
use crate::{Bytes, TensorId};
use std::fmt;
use std::sync::Arc;

/// An operator that learns its shapes from the inputs of each run. What it found last is kept, so that equal inputs cost
/// a comparison only.
pub trait Late: Send {
    /// What the outputs will be. Inputs stand at their positions, all of them apart from what will be written.
    fn measure(&mut self, inputs: &[Option<Input<'_>>]) -> Result<Measured, NoKernel>;

    /// What runs it on what was measured last; `None` if there is nothing to calculate, as all its outputs are views.
    fn kernel(&mut self) -> Option<&mut dyn Kernel>;
}

/// What an operator needs in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// The shape of each output, by position; `None` for one that nobody wants.
    pub shapes: Vec<Option<Arc<[usize]>>>,
    /// Memory that it needs while it runs.
    pub scratch: Bytes,
}

/// A late operator with its operands.
pub struct LateCall {
    /// What it means.
    pub late: Box<dyn Late>,
    /// What it reads, by position; `None` for an optional input that is absent.
    pub inputs: Vec<Option<TensorId>>,
    /// What it writes or is a view of an input, by position; `None` for an output that nobody wants.
    pub outputs: Vec<Option<TensorId>>,
}

impl fmt::Debug for LateCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inputs, outputs, .. } = self;
        f.debug_struct("LateCall").field("inputs", inputs).field("outputs", outputs).finish()
    }
}
