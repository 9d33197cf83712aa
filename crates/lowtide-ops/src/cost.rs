//! [`Cost`]: what an operator calculates and moves, where its shapes are known.
//!
//! ~~~text
//! MatMul  a [128, 768]  b [768, 64]   macs 128 * 64 * 768, flops twice that
//!                                     reads a and b, writes [128, 64]
//! ~~~
//! A view calculates and moves nothing, and neither does arithmetic on shapes, which is done before the run.

use crate::call::Call;
use crate::fact::Fact;
use crate::infer::Facts;
use crate::known::Known;
use lowtide_core::operator::Work;
use lowtide_core::{Bytes, IndexVec, ModelOp, OpId, Sharing, Size, Tensor, TensorId};
use std::collections::BTreeSet;

/// What an operator calculates and moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Multiplications whose products are added up.
    pub macs: u64,
    /// All calculations; a multiplication with an addition counts as two.
    pub flops: u64,
    /// Bytes of its inputs, each once.
    pub read_bytes: u64,
    /// Bytes of its outputs.
    pub written_bytes: u64,
}

/// From a call and its outputs to how much is calculated.
pub(crate) type CostRule = fn(&Call<'_>, &[&Fact]) -> Option<Work>;

/// The costs of all operators of a graph.
pub(crate) fn costs(
    known: Known<'_>,
    tensors: &IndexVec<TensorId, Tensor>,
    shares: &IndexVec<OpId, Vec<Sharing>>,
) -> IndexVec<OpId, Option<Cost>> {
    let one = |(op, shares): (&ModelOp, &Vec<Sharing>)| {
        if shares.iter().any(|sharing| matches!(sharing, Sharing::View { .. })) {
            return Some(Cost::default());
        }
        if is_done_before(op, known.facts) {
            return Some(Cost::default());
        }
        let work = work(known, op)?;
        let read: BTreeSet<TensorId> =
            op.inputs.iter().flatten().chain(&op.captured).copied().collect();
        let written: BTreeSet<TensorId> = op.outputs.iter().flatten().copied().collect();
        Some(Cost {
            macs: work.macs,
            flops: work.flops,
            read_bytes: bytes(tensors, &read)?,
            written_bytes: bytes(tensors, &written)?,
        })
    };
    let costs: Vec<Option<Cost>> = known.source.ops.iter().zip(shares).map(one).collect();
    IndexVec::from(costs)
}

/// Whether all that an operator gives is known before the run, as expressions at least.
fn is_done_before(op: &ModelOp, facts: &Facts) -> bool {
    let mut outputs = op.outputs.iter().flatten().peekable();
    outputs.peek().is_some() && outputs.all(|&id| facts[id].elements.is_some())
}

fn work(known: Known<'_>, op: &ModelOp) -> Option<Work> {
    let inputs = known.facts(&op.inputs);
    let outputs: Vec<&Fact> = known.facts(&op.outputs).into_iter().flatten().collect();
    known.operator(op)?.work(&known.call(op, &inputs), &outputs)
}

/// The sum of sizes that are all known.
fn bytes(tensors: &IndexVec<TensorId, Tensor>, ids: &BTreeSet<TensorId>) -> Option<u64> {
    ids.iter().try_fold(0_u64, |total, &id| match tensors[id].size {
        Size::Fixed(Bytes(bytes)) => total.checked_add(bytes),
        _ => None,
    })
}
