//! Scratch: memory that an operator needs only while it runs.
//!
//! ~~~text
//! LSTM   x [steps, batch, input]   gates of one step: [batch, 4 * hidden], direction after direction
//! ~~~
//! A row declares what any kernel needs beyond inputs and outputs; most types need nothing. What a kernel of ours
//! needs on top of that comes with the kernel.

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

/// `LSTM`, `GRU` and `RNN`: what enters the gates of one step.
pub(crate) fn gates(call: &Call<'_>) -> Fact {
    let batch = if call.flag("layout") { call.dim(0, 0) } else { call.dim(0, 1) };
    Fact::new(call.dtype(0), Some(vec![batch, call.dim(1, 1)]))
}

/// `DynamicQuantizeLSTM`: the same in full precision; the weights are transposed.
pub(crate) fn quantised_gates(call: &Call<'_>) -> Fact {
    Fact::new(Some(DType::F32), Some(vec![call.dim(0, 1), call.dim(1, 2)]))
}

/// `TopK`: the places of one line.
pub(crate) fn line(call: &Call<'_>) -> Fact {
    let axis = call.rank(0).map(|rank| axis(call.int_or("axis", -1), rank));
    let len = axis.and_then(Result::ok).and_then(|axis| call.dim(0, axis));
    Fact::new(Some(DType::U32), Some(vec![len]))
}

#[cfg(test)]
mod tests {
    use crate::ResolveConfig;
    use crate::testing::{bounds, resolve_with};
    use lowtide_core::{Bytes, Size};

    fn scratch(call: &str, config: &ResolveConfig) -> Size {
        let inputs = ["input x 7 n 8", "weight w 2 64 8", "weight r 2 64 16"];
        let lines = [&inputs[..], &[call]].concat();
        resolve_with(&lines, "", config).unwrap().graph.ops().as_slice()[0].scratch
    }

    #[test]
    fn a_recurrent_layer_needs_the_gates_of_one_step() {
        let lstm = "y; h; c = LSTM(x, w, r) {hidden_size=16, direction=bidirectional}";
        assert_eq!(scratch(lstm, &bounds("n", 3)), Size::AtMost(Bytes(4 * 3 * 64)));
        assert_eq!(scratch(lstm, &ResolveConfig::default()), Size::Unknown);
        assert_eq!(scratch("y = Relu(x)", &ResolveConfig::default()), Size::Fixed(Bytes(0)));
    }
}
