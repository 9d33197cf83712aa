//! [`prepare`]: a model and its graph in, a [`Program`] out: a kernel for every operator, or a list of what is missing.
//!
//! ~~~text
//! Relu (x [1,64], y [1,64]) ──registry──> Operator ──kernel──> Prepared { kernel, inputs, outputs }
//! Relu (x [n,64], y [n,64]) ─────────────────────────────────> LateCall: a kernel once n is known, in the run
//! Reshape, whose output is a view                              nothing to do
//! ~~~
//! All that stands in the way is said at once: operators without a kernel, with counts, then elements without a size.
//! Cost: linear in the graph, and what the kernels take to be made.

use crate::infer::Facts;
use crate::known::Known;
use crate::late::{LateOp, is_late};
use crate::resolve::type_name;
use lowtide_core::operator::{Fact, Kernel, LateCall, Misfit, NoKernel, Prepared, Program};
use lowtide_core::{
    DType, Dim, Graph, IndexVec, Model, ModelGraph, ModelOp, OpId, Registry, Sharing, TensorId,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names in a message; a model may have thousands to name.
const MOST_NAMES: usize = 8;

/// Why a graph cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// Elements have no size: their type is not known, or text.
    #[error("{count} tensors have elements of unknown or changing size: {names}")]
    OpenTypes {
        /// How many tensors.
        count: usize,
        /// The first of them, with their shapes.
        names: String,
    },
    /// Operators cannot be run.
    #[error("{count} operators have no kernel: {kinds}")]
    NoKernels {
        /// How many operators.
        count: usize,
        /// Their types, each with how many there are, and why where there is a kernel for other cases.
        kinds: String,
    },
    /// An operator's inputs do not fit together.
    #[error("operator `{op}`: {reason}")]
    Misfit {
        /// Which.
        op: String,
        /// Why not.
        reason: String,
    },
}

/// Makes the main graph of a model ready to run. `graph` and `facts` are what it was resolved to.
///
/// # Panics
/// If the graph is not that of the model.
pub fn prepare(
    model: &Model,
    graph: Graph,
    facts: &IndexVec<TensorId, Fact>,
    registry: &Registry,
) -> Result<Program, PrepareError> {
    let source = model.main_graph();
    let known = Known { model, source, facts, registry };
    let shared = Arc::new(registry.clone());
    let mut missing = Missing::default();
    let mut calls = IndexVec::new();
    let mut late = BTreeMap::new();
    for (id, op) in source.ops.iter_enumerated() {
        let is_view = is_view(&graph, id);
        if is_late(&graph, id) {
            calls.push(None);
            match late_call(known, &shared, op, is_view) {
                Ok(call) => drop(late.insert(id, call)),
                Err(reason) => missing.add(op, &reason),
            }
            continue;
        }
        if is_view {
            calls.push(None);
            continue;
        }
        let operands = (op.inputs.clone(), op.outputs.clone());
        match kernel(known, op) {
            Ok(kernel) => {
                let (inputs, outputs) = operands;
                calls.push(Some(Prepared { kernel, inputs, outputs }));
            }
            Err(NoKernel::Misfit(reason)) => {
                return Err(PrepareError::Misfit { op: graph.op_label(id), reason });
            }
            Err(reason) => missing.add(op, &reason),
        }
    }
    missing.into_result()?;
    let shapes = shapes(&graph, source, facts)?;
    let weights = source.tensors.ids().map(|id| source.data.get(&id).cloned()).collect();
    let (inputs, outputs) = (source.inputs.clone(), source.outputs.clone());
    Ok(Program { graph, calls, late, shapes, weights, inputs, outputs })
}

/// Whether an operator has nothing to do: each output is bytes of an input, read in another way.
fn is_view(graph: &Graph, id: OpId) -> bool {
    let op = &graph.ops()[id];
    let is_view_of = |output| {
        let is_it = |sharing: &Sharing| matches!(sharing, Sharing::View { output: view, .. } if *view == output);
        op.sharing.iter().any(is_it)
    };
    op.outputs.iter().all(|&output| is_view_of(output))
}

fn late_call(
    known: Known<'_>,
    registry: &Arc<Registry>,
    op: &ModelOp,
    is_view: bool,
) -> Result<LateCall, NoKernel> {
    let late = Box::new(LateOp::new(known, registry, op, is_view)?);
    Ok(LateCall { late, inputs: op.inputs.clone(), outputs: op.outputs.clone() })
}

fn kernel(known: Known<'_>, op: &ModelOp) -> Result<Box<dyn Kernel>, NoKernel> {
    let operator = known.operator(op).ok_or(NoKernel::NotWritten)?;
    let (inputs, outputs) = (known.facts(&op.inputs), known.facts(&op.outputs));
    let call = known.call(op, &inputs);
    check_outputs(operator.shapes(&call), &outputs)?;
    inputs.iter().chain(&outputs).flatten().try_for_each(|fact| check_size(fact))?;
    operator.kernel(&call, &outputs)
}

/// That kernels can multiply the dimensions of an operand in any order and groups: also those beside an empty one.
pub(crate) fn check_size(fact: &Fact) -> Result<(), NoKernel> {
    const MOST: i64 = 1 << 48;
    let dims = fact.known_dims().unwrap_or_default();
    let product = dims.iter().try_fold(1_i64, |product, &dim| product.checked_mul(dim.max(1)));
    if product.is_some_and(|product| product <= MOST) {
        return Ok(());
    }
    Err(NoKernel::Unsupported("shapes too large to calculate with".to_owned()))
}

/// That the outputs have the shapes that the operator's rule gives them: where a file contradicts itself, the kernel
/// would not fit its operands.
fn check_outputs(
    told: Option<Result<Vec<Fact>, Misfit>>,
    outputs: &[Option<&Fact>],
) -> Result<(), NoKernel> {
    let Some(told) = told.transpose()? else { return Ok(()) };
    for (told, found) in told.iter().zip(outputs) {
        let Some(found) = found else { continue };
        let differ =
            told.known_dims().zip(found.known_dims()).is_some_and(|(told, found)| told != found);
        if differ || (told.dtype.is_some() && told.dtype != found.dtype) {
            return Err(NoKernel::Misfit(format!("its output is {found:?}, wanted {told:?}")));
        }
    }
    Ok(())
}

/// The shapes of all tensors, as far as they are fixed; the rest is empty. An error if a run touches elements of no size.
fn shapes(
    graph: &Graph,
    source: &ModelGraph,
    facts: &Facts,
) -> Result<IndexVec<TensorId, Box<[usize]>>, PrepareError> {
    let mut touched = IndexVec::filled(graph.tensors().len(), false);
    let of_ops = graph.ops().iter().flat_map(|op| op.inputs.iter().chain(&op.outputs));
    for &id in of_ops.chain(&source.inputs).chain(&source.outputs) {
        touched[id] = true;
    }
    let has_size = |id: TensorId| graph.tensors()[id].dtype.and_then(DType::bits).is_some();
    let is_open = |&id: &TensorId| touched[id] && !has_size(id);
    let open: Vec<TensorId> = graph.tensors().ids().filter(is_open).collect();
    if !open.is_empty() {
        return Err(open_types(graph, &open));
    }
    let dims = |fact: &Fact| -> Option<Box<[usize]>> {
        fact.known_dims()?.iter().map(|&dim| usize::try_from(dim).ok()).collect()
    };
    Ok(facts.iter().map(|fact| dims(fact).unwrap_or_default()).collect())
}

fn open_types(graph: &Graph, open: &[TensorId]) -> PrepareError {
    let name = |&id: &TensorId| {
        let shape = graph.tensors()[id].shape.as_deref().map(Dim::shape_text);
        let dtype = graph.tensors()[id].dtype.map_or("?", |dtype| dtype.name());
        format!("`{}` {dtype} {}", graph.tensor_label(id), shape.unwrap_or_else(|| "?".to_owned()))
    };
    let mut names: Vec<String> = open.iter().take(MOST_NAMES).map(name).collect();
    if open.len() > MOST_NAMES {
        names.push("...".to_owned());
    }
    PrepareError::OpenTypes { count: open.len(), names: names.join(", ") }
}

/// Types without a kernel, each with the reason.
#[derive(Default)]
struct Missing(BTreeMap<String, usize>);

impl Missing {
    fn add(&mut self, op: &ModelOp, reason: &NoKernel) {
        let kind = match reason {
            NoKernel::Unsupported(what) => format!("{} ({what})", type_name(op)),
            _ => type_name(op),
        };
        *self.0.entry(kind).or_insert(0) += 1;
    }

    fn into_result(self) -> Result<(), PrepareError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let kinds: Vec<String> =
            self.0.iter().map(|(kind, count)| format!("{count} x {kind}")).collect();
        Err(PrepareError::NoKernels { count: self.0.values().sum(), kinds: kinds.join(", ") })
    }
}
