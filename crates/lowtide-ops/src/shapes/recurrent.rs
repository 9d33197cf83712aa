//! Rules of recurrent layers.
//!
//! ~~~text
//! x [steps, batch, input] ──LSTM──>  y [steps, directions, batch, hidden]
//!                                    last states, hidden and cell: [directions, batch, hidden]
//! layout 1: the batch comes first everywhere
//! ~~~

use super::{ranked, whole};
use crate::call::{Call, Facts};
use crate::expr::Expr;
use crate::fact::Extent;

/// `LSTM`, `GRU` and `RNN`: the last axis of the recurrence weight is the hidden one.
pub(crate) fn recurrent(call: &Call<'_>) -> Facts {
    outputs(call, call.dim(2, 2))
}

/// `DynamicQuantizeLSTM`: the weights are transposed.
pub(crate) fn quantised(call: &Call<'_>) -> Facts {
    outputs(call, call.dim(2, 1))
}

/// How many directions it runs in.
pub(crate) fn directions(call: &Call<'_>) -> i64 {
    if call.text("direction") == Some("bidirectional") { 2 } else { 1 }
}

fn outputs(call: &Call<'_>, hidden: Extent) -> Facts {
    ranked(call, 0, 3)?;
    let hidden = call.int("hidden_size").map(Expr::Known).or(hidden);
    let directions = whole(directions(call));
    let is_batch_first = call.flag("layout");
    let (steps, batch) = if is_batch_first { (1, 0) } else { (0, 1) };
    let (steps, batch) = (call.dim(0, steps), call.dim(0, batch));
    let (all, last) = if is_batch_first {
        (
            vec![batch.clone(), steps, directions.clone(), hidden.clone()],
            vec![batch, directions, hidden],
        )
    } else {
        (
            vec![steps, directions.clone(), batch.clone(), hidden.clone()],
            vec![directions, batch, hidden],
        )
    };
    let facts = [Some(all), Some(last.clone()), Some(last)].map(|dims| call.typed(0, dims));
    Ok(facts.into_iter().take(call.output_count()).collect())
}
