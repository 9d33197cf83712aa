//! [`Operator`]: what one type of operator means, from its shapes to its kernel.
//!
//! ~~~text
//! Registry ──find(domain, type)──> Operator ── shapes ───> Fact of each output        (planning)
//!                                      │   ── sharing ──> may y lie on x?
//!                                      │   ── scratch ──> memory while it runs
//!                                      ├── measure ──> shapes that depend on data     (running)
//!                                      └── kernel ───> Kernel ── run(Operands)        (running)
//! ~~~
//! An operator is declared once: planner, checker and runtime hear of its sharing, its scratch and its kernel from the
//! same place, so they cannot disagree. Operators of other crates are declared in the same way and added to a
//! [`Registry`].

pub mod call;
pub mod expr;
pub mod fact;
mod kernel;
mod late;
mod program;
mod registry;

pub use call::{Call, Facts, Misfit};
pub use expr::Expr;
pub use fact::{Element, Extent, Fact, Scalar};
pub use kernel::{
    Input, Kernel, KernelError, NoKernel, Operand, Operands, Output, Place, Value as KernelValue,
    recycled,
};
pub use late::{Late, LateCall, Measured};
pub use program::{Prepared, Program};
pub use registry::Registry;

use crate::{Bytes, ModelOp, Value};
use std::fmt;

/// Shapes of outputs, by position.
pub type Dims = Result<Vec<Vec<usize>>, Misfit>;

/// One type of operator. Only its type has to be said; what an implementation leaves out is not known or not there.
pub trait Operator: fmt::Debug + Send + Sync {
    /// The domain of its type; empty for the standard one of ONNX.
    #[expect(clippy::unnecessary_literal_bound, reason = "an implementation may keep its domain")]
    fn domain(&self) -> &str {
        ""
    }

    /// Its type, such as `Conv`.
    fn kind(&self) -> &str;

    /// What is known of its outputs; `None` where no rule tells, and the outputs have the shapes that the file
    /// declares.
    fn shapes(&self, _call: &Call<'_>) -> Option<Facts> {
        None
    }

    /// The shapes of its outputs in this run, where they depend on elements of which there may be any number: `NonZero`
    /// counts. `None` where [`Operator::shapes`] tells them, once it is told sizes and the elements of small inputs.
    fn measure(&self, _call: &Call<'_>, _inputs: &[Option<Input<'_>>]) -> Option<Dims> {
        None
    }

    /// How its first output relates to its inputs.
    fn sharing(&self) -> SharingRule {
        SharingRule::Copies
    }

    /// Which operands may lie inside each other, since it only moves their bytes: told of the outputs that are wanted,
    /// by position.
    fn inside(&self, _call: &Call<'_>, _outputs: &[Option<&Fact>]) -> Vec<Inside> {
        Vec::new()
    }

    /// How much it calculates, given the outputs that are wanted.
    fn work(&self, _call: &Call<'_>, _outputs: &[&Fact]) -> Option<Work> {
        None
    }

    /// Memory that it needs while it runs, described as a tensor.
    fn scratch(&self, _call: &Call<'_>) -> Option<Fact> {
        None
    }

    /// Whether [`Operator::kernel`] gives one for some types and shapes. It is asked before the shapes of a run are known.
    fn has_kernel(&self) -> bool {
        true
    }

    /// What runs it, if it can be run: with these inputs, and outputs of these types and shapes, by position.
    /// All sizes are known by then.
    fn kernel(
        &self,
        _call: &Call<'_>,
        _outputs: &[Option<&Fact>],
    ) -> Result<Box<dyn Kernel>, NoKernel> {
        Err(NoKernel::NotWritten)
    }
}

/// An operand whose bytes are some of another one, as they are and in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// An input is these bytes of the first output.
    Part {
        /// Its position.
        input: usize,
        /// Where it lies in the output.
        offset: Bytes,
    },
    /// An output is these bytes of the first input.
    Piece {
        /// Its position.
        output: usize,
        /// Where it starts in the input.
        offset: Bytes,
    },
}

/// How the first output of an operator relates to its inputs, beside what lies inside what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingRule {
    /// The bytes of input 0, read in another way.
    View,
    /// [`SharingRule::View`], unless the operator is in training.
    ViewWhenInferring,
    /// Element i is written after everything that depends on element i (or on its row) of these inputs was
    /// read, so it may lie on any of them that matches it element for element. In order of preference.
    Overwrite(&'static [usize]),
    /// [`SharingRule::Overwrite`] of input 0, unless the operator is in training.
    OverwriteWhenInferring,
    /// [`SharingRule::Overwrite`] of any input.
    OverwriteAny,
    /// It lies elsewhere.
    Copies,
}

impl SharingRule {
    /// Whether the first output is a view of input 0 of this operator.
    pub fn is_view(self, op: &ModelOp) -> bool {
        match self {
            Self::View => true,
            Self::ViewWhenInferring => is_inferring(op),
            _ => false,
        }
    }

    /// The positions of the inputs that the first output of this operator may overwrite.
    pub fn overwrites(self, op: &ModelOp) -> Vec<usize> {
        match self {
            Self::Overwrite(positions) => positions.to_vec(),
            Self::OverwriteWhenInferring if is_inferring(op) => vec![0],
            Self::OverwriteAny => (0..op.inputs.len()).collect(),
            _ => Vec::new(),
        }
    }
}

/// In training, `Dropout` and `BatchNormalization` have more outputs, or say so by an input or an attribute.
/// Versions before the seventh say so by the absence of `is_test`; their graphs are taken for inference.
fn is_inferring(op: &ModelOp) -> bool {
    let says_so = op.kind == "Dropout" && op.inputs.get(2).is_some_and(Option::is_some);
    let is_set = !matches!(op.attribute("training_mode"), None | Some(Value::Int(0)));
    op.outputs.iter().flatten().count() == 1 && !says_so && !is_set
}

/// How much an operator calculates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Multiplications whose products are added up.
    pub macs: u64,
    /// All calculations; a multiplication with an addition counts as two.
    pub flops: u64,
}
