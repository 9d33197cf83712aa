//! Scratch: memory that an operator needs only while it runs.
//!
//! ~~~text
//! TopK   x [batch, classes]   the places of one line: [classes], line after line
//! ~~~
//! A row declares what its kernel needs beyond inputs and outputs; most types need nothing. Rules that ask how a kernel
//! works stand beside it.

use crate::call::{Call, axis};
use crate::fact::Fact;
use crate::known::Known;
use crate::{ResolveConfig, ResolveError, sizes};
use lowtide_core::{Bytes, DType, ModelOp, Size};

/// From a call to the scratch, described as a tensor.
pub(crate) type ScratchRule = fn(&Call<'_>) -> Fact;

/// The size of an operator's scratch.
pub(crate) fn size(
    known: Known<'_>,
    op: &ModelOp,
    config: &ResolveConfig,
) -> Result<Size, ResolveError> {
    let inputs = known.facts(&op.inputs);
    let operator = known.operator(op);
    let fact = operator.and_then(|operator| operator.scratch(&known.call(op, &inputs)));
    let of_fact = |fact| sizes::size(&format!("scratch of {}", op.name), &fact, config);
    fact.map_or(Ok(Size::Fixed(Bytes::ZERO)), of_fact)
}

/// `TopK`: the places of one line.
pub(crate) fn line(call: &Call<'_>) -> Fact {
    let axis = call.rank(0).map(|rank| axis(call.int_or("axis", -1), rank));
    let len = axis.and_then(Result::ok).and_then(|axis| call.dim(0, axis));
    Fact::new(Some(DType::U32), Some(vec![len]))
}
