//! [`Declaration`]: what is known of one type of operator of ONNX: the row of a table, and an [`Operator`].
//!
//! ~~~text
//! Relu     Overwrite(&[0])     x ─ Relu ─ y        y may lie where x lay
//! Reshape  View                x ─ Reshape ─ y     y is x, read in another shape
//! Conv     Copies              x ─ Conv ─ y        y lies elsewhere
//! ~~~
//! The tables are static and sorted; a type that stands in none of them is unknown, which is not the same as
//! known and without sharing.

use crate::call::{Call, Facts, ShapeRule};
use crate::cost::CostRule;
use crate::fact::Fact;
use crate::inside::InsideRule;
use crate::kernels::KernelRule;
use crate::scratch::ScratchRule;
use crate::widened::{self, has_halves};
use lowtide_core::Operator;
use lowtide_core::operator::{Dims, Input, Inside, Kernel, NoKernel, Work};

pub(crate) use lowtide_core::operator::SharingRule as Rule;

/// From a call and the inputs of a run to the shapes of its outputs.
pub(crate) type MeasureRule = fn(&Call<'_>, &[Option<Input<'_>>]) -> Dims;

/// One type of operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declaration {
    /// The domain of the type; set where its table is registered.
    pub(crate) domain: &'static str,
    /// The type, such as `Conv`.
    pub(crate) kind: &'static str,
    /// How its first output relates to its inputs.
    pub(crate) rule: Rule,
    /// What lies inside what, if it only moves bytes.
    pub(crate) inside: Option<InsideRule>,
    /// What is known of its outputs, if a rule tells.
    pub(crate) shape: Option<ShapeRule>,
    /// The shapes of its outputs in a run, if they depend on many elements.
    pub(crate) measure: Option<MeasureRule>,
    /// How much it calculates, if that is not what most types of its family do.
    pub(crate) cost: Option<CostRule>,
    /// Memory that it needs while it runs, if any.
    pub(crate) scratch: Option<ScratchRule>,
    /// What runs it, if a kernel is written.
    pub(crate) kernel: Option<KernelRule>,
    /// Whether its kernel takes 16-bit fractions as they are, as it only moves them.
    pub(crate) moves: bool,
}

impl Declaration {
    /// The same type with a shape rule.
    pub(crate) const fn shape(mut self, rule: ShapeRule) -> Self {
        self.shape = Some(rule);
        self
    }

    /// The same type with a rule of what lies inside what.
    pub(crate) const fn inside(mut self, rule: InsideRule) -> Self {
        self.inside = Some(rule);
        self
    }

    /// The same type with a rule of what its outputs are in a run.
    pub(crate) const fn measure(mut self, rule: MeasureRule) -> Self {
        self.measure = Some(rule);
        self
    }

    /// The same type with a rule of how much it calculates.
    pub(crate) const fn cost(mut self, rule: CostRule) -> Self {
        self.cost = Some(rule);
        self
    }

    /// The same type with scratch memory.
    pub(crate) const fn scratch(mut self, rule: ScratchRule) -> Self {
        self.scratch = Some(rule);
        self
    }

    /// The same type with a kernel.
    pub(crate) const fn kernel(mut self, rule: KernelRule) -> Self {
        self.kernel = Some(rule);
        self
    }

    /// The same type, of which it is said that it only moves elements; reductions are not meant.
    pub(crate) const fn moves(mut self) -> Self {
        self.moves = true;
        self
    }

    /// Whether a call is calculated in float32, as its operands are 16-bit fractions.
    fn is_widened(&self, call: &Call<'_>, outputs: &[Fact]) -> bool {
        let moves = self.moves && matches!(call.text("reduction"), None | Some("none"));
        self.kernel.is_some()
            && !moves
            && has_halves(call.inputs.iter().copied().flatten().chain(outputs))
    }
}

/// A row of a type with this sharing rule.
pub(crate) const fn row(kind: &'static str, rule: Rule) -> Declaration {
    let domain = "";
    let (inside, shape, measure, cost, scratch, kernel) = (None, None, None, None, None, None);
    let moves = false;
    Declaration { domain, kind, rule, inside, shape, measure, cost, scratch, kernel, moves }
}

impl Operator for Declaration {
    fn domain(&self) -> &str {
        self.domain
    }

    fn kind(&self) -> &str {
        self.kind
    }

    fn shapes(&self, call: &Call<'_>) -> Option<Facts> {
        self.shape.map(|rule| rule(call))
    }

    fn measure(&self, call: &Call<'_>, inputs: &[Option<Input<'_>>]) -> Option<Dims> {
        self.measure.map(|rule| rule(call, inputs))
    }

    fn sharing(&self) -> Rule {
        self.rule
    }

    fn inside(&self, call: &Call<'_>, outputs: &[Option<&Fact>]) -> Vec<Inside> {
        self.inside.and_then(|rule| rule(call, outputs)).unwrap_or_default()
    }

    fn work(&self, call: &Call<'_>, outputs: &[&Fact]) -> Option<Work> {
        self.cost.and_then(|rule| rule(call, outputs))
    }

    fn scratch(&self, call: &Call<'_>) -> Option<Fact> {
        let outputs = self.shapes(call).and_then(Result::ok).unwrap_or_default();
        if !self.is_widened(call, &outputs) {
            return self.scratch.map(|rule| rule(call));
        }
        let own = self.scratch.map(|rule| widened::with_wide(call, rule));
        let operands = call.inputs.iter().copied().flatten().chain(&outputs);
        Some(widened::scratch(operands, own.as_ref()))
    }

    fn has_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    fn kernel(
        &self,
        call: &Call<'_>,
        outputs: &[Option<&Fact>],
    ) -> Result<Box<dyn Kernel>, NoKernel> {
        let rule = self.kernel.ok_or(NoKernel::NotWritten)?;
        let told: Vec<Fact> = outputs.iter().copied().flatten().cloned().collect();
        if self.is_widened(call, &told) {
            return widened::kernel(rule, call, outputs);
        }
        rule(call, outputs)
    }
}

/// A row of a type that shares nothing.
pub(crate) const fn copies(kind: &'static str) -> Declaration {
    row(kind, Rule::Copies)
}

/// A row of a type whose output may lie on these inputs.
pub(crate) const fn overwrites(kind: &'static str, inputs: &'static [usize]) -> Declaration {
    row(kind, Rule::Overwrite(inputs))
}
