//! [`Declaration`]: what is known of one type of operator; [`find`] gives it by domain and type.
//!
//! ~~~text
//! Relu     Overwrite(&[0])     x ─ Relu ─ y        y may lie where x lay
//! Reshape  View                x ─ Reshape ─ y     y is x, read in another shape
//! Conv     Copies              x ─ Conv ─ y        y lies elsewhere
//! ~~~
//! The tables are static and sorted; a type that stands in none of them is unknown, which is not the same as
//! known and without sharing.

use crate::call::ShapeRule;
use crate::cost::CostRule;
use crate::scratch::ScratchRule;
use crate::tables;
use lowtide_core::{ModelOp, Value};

/// One type of operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declaration {
    /// The type, such as `Conv`.
    pub(crate) kind: &'static str,
    /// How its first output relates to its inputs.
    pub(crate) rule: Rule,
    /// What is known of its outputs, if a rule tells.
    pub(crate) shape: Option<ShapeRule>,
    /// How much it calculates, if that is not what most types of its family do.
    pub(crate) cost: Option<CostRule>,
    /// Memory that it needs while it runs, if any.
    pub(crate) scratch: Option<ScratchRule>,
}

impl Declaration {
    /// The same type with a shape rule.
    pub(crate) const fn shape(mut self, rule: ShapeRule) -> Self {
        self.shape = Some(rule);
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
}

/// A row of a type with this sharing rule.
pub(crate) const fn row(kind: &'static str, rule: Rule) -> Declaration {
    Declaration { kind, rule, shape: None, cost: None, scratch: None }
}

/// How the first output of an operator relates to its inputs. Other outputs share nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The bytes of input 0, read in another way.
    View,
    /// [`Rule::View`], unless the operator is in training.
    ViewWhenInferring,
    /// Element i is written after everything that depends on element i (or on its row) of these inputs was
    /// read, so it may lie on any of them that matches it element for element. In order of preference.
    Overwrite(&'static [usize]),
    /// [`Rule::Overwrite`] of input 0, unless the operator is in training.
    OverwriteWhenInferring,
    /// [`Rule::Overwrite`] of any input.
    OverwriteAny,
    /// It lies elsewhere.
    Copies,
}

impl Rule {
    /// Whether the first output is a view of input 0 of this operator.
    pub(crate) fn is_view(self, op: &ModelOp) -> bool {
        match self {
            Self::View => true,
            Self::ViewWhenInferring => is_inferring(op),
            _ => false,
        }
    }

    /// The positions of the inputs that the first output of this operator may overwrite.
    pub(crate) fn overwrites(self, op: &ModelOp) -> Vec<usize> {
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

/// The declaration of an operator's type, if it has one.
pub(crate) fn find(domain: &str, kind: &str) -> Option<&'static Declaration> {
    tables::of_domain(domain).iter().find_map(|table| table.find(kind))
}

/// How much operators of a type calculate, by its own rule or that of its family.
pub(crate) fn cost_rule(domain: &str, kind: &str) -> Option<CostRule> {
    let tables = tables::of_domain(domain);
    tables.iter().find_map(|table| table.find(kind).map(|row| row.cost.or(table.cost)))?
}

/// A row of a type that shares nothing.
pub(crate) const fn copies(kind: &'static str) -> Declaration {
    row(kind, Rule::Copies)
}

/// A row of a type whose output may lie on these inputs.
pub(crate) const fn overwrites(kind: &'static str, inputs: &'static [usize]) -> Declaration {
    row(kind, Rule::Overwrite(inputs))
}
