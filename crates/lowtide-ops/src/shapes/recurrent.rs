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

#[cfg(test)]
mod tests {
    use crate::testing::{infers, misfits};

    #[test]
    fn directions_are_an_axis() {
        infers(
            &[
                "input x s n 8",
                "weight w 2 64 8",
                "weight r 2 64 16",
                "y; h; c = LSTM(x, w, r) {hidden_size=16, direction=bidirectional}",
            ],
            "f32 [s, 2, n, 16]; f32 [2, n, 16]; f32 [2, n, 16]",
        );
        infers(
            &["input x s n 8", "weight w 1 48 8", "weight r 1 48 16", "y; h = GRU(x, w, r)"],
            "f32 [s, 1, n, 16]; f32 [1, n, 16]",
        );
    }

    #[test]
    fn the_batch_may_come_first() {
        infers(
            &[
                "input x n s 8",
                "weight w 1 16 8",
                "weight r 1 16 16",
                "y; h = RNN(x, w, r) {layout=1}",
            ],
            "f32 [n, s, 1, 16]; f32 [n, 1, 16]",
        );
    }

    #[test]
    fn quantised_weights_are_transposed() {
        infers(
            &[
                "input x s n 8",
                "weight w u8 1 8 64",
                "weight r u8 1 16 64",
                "y = com.microsoft.DynamicQuantizeLSTM(x, w, r)",
            ],
            "f32 [s, 1, n, 16]",
        );
    }

    #[test]
    fn a_sequence_has_three_axes() {
        misfits(
            &["input x 5 8", "weight w 1 16 8", "weight r 1 16 16", "y = RNN(x, w, r)"],
            "input 0 has rank 2, wanted 3",
        );
    }
}
