//! How much memory recurrent layers need while they run.
//!
//! ~~~text
//! | bias | gates of a block of steps | h | what the cell needs: c of LSTM, products of GRU |   | bytes of x or h |
//!   gates  block * batch * gates       batch * hidden * states                                 quantised only
//! ~~~
//! A product of 32 rows reads a weight once where 32 products of one row read it 32 times; more rows gain little. So a
//! block has 32 rows or one step, and the memory does not grow with the sequence. It is used again for each direction.

use super::at;
use crate::call::Call;
use crate::expr::Expr;
use crate::fact::{Extent, Fact};
use lowtide_core::DType;

/// Rows of a product with the inputs.
const ROWS: usize = 32;

/// Steps whose inputs are multiplied together. Where the batch comes first, the rows of several steps lie in another
/// order than those of one, so it is one step at a time.
pub(super) fn block_steps(steps: usize, batch: usize, is_batch_first: bool) -> usize {
    let most = if is_batch_first && batch != 1 { 1 } else { (ROWS / batch.max(1)).max(1) };
    most.min(steps)
}

/// Gates, and states of a sequence, in units of the hidden size.
#[derive(Clone, Copy)]
pub(super) struct Units {
    pub(super) gates: i64,
    pub(super) states: i64,
}

/// The last states `h` and `c`.
pub(super) const LSTM: Units = Units { gates: 4, states: 2 };
/// The last state, and three products with it.
pub(super) const GRU: Units = Units { gates: 3, states: 4 };
/// The last state.
pub(super) const RNN: Units = Units { gates: 1, states: 1 };

/// Of `LSTM`.
pub(crate) fn lstm_scratch(call: &Call<'_>) -> Fact {
    of_type(call.dtype(0), elements(call, LSTM, call.dim(at::R, 2)))
}

/// Of `GRU`.
pub(crate) fn gru_scratch(call: &Call<'_>) -> Fact {
    of_type(call.dtype(0), elements(call, GRU, call.dim(at::R, 2)))
}

/// Of `RNN`.
pub(crate) fn rnn_scratch(call: &Call<'_>) -> Fact {
    of_type(call.dtype(0), elements(call, RNN, call.dim(at::R, 2)))
}

/// Of `DynamicQuantizeLSTM`: its weights are transposed, and behind the rest are the bytes that inputs become.
pub(crate) fn quantised_scratch(call: &Call<'_>) -> Fact {
    let all = || {
        let hidden = call.dim(at::R, 1)?;
        let bytes = rows(call)?.mul(&call.dim(at::X, 2)?)?;
        let bytes = bytes.larger(&call.dim(at::X, 1)?.mul(&hidden)?)?;
        let numbers = elements(call, LSTM, Some(hidden))?;
        numbers.mul(&Expr::Known(4))?.add(&bytes)
    };
    of_type(Some(DType::U8), all())
}

fn of_type(dtype: Option<DType>, count: Extent) -> Fact {
    Fact::new(dtype, Some(vec![count]))
}

fn elements(call: &Call<'_>, units: Units, hidden: Extent) -> Extent {
    let hidden = hidden?;
    let gates = hidden.mul(&Expr::Known(units.gates))?;
    let of_bias = if call.has(at::BIAS) { gates.clone() } else { Expr::Known(0) };
    let states = batch(call)?.mul(&hidden)?.mul(&Expr::Known(units.states))?;
    rows(call)?.mul(&gates)?.add(&states)?.add(&of_bias)
}

fn batch(call: &Call<'_>) -> Extent {
    if call.flag("layout") { call.dim(at::X, 0) } else { call.dim(at::X, 1) }
}

/// Rows of the largest product with inputs; no fewer, as long as sizes have no numbers.
fn rows(call: &Call<'_>) -> Extent {
    let steps = if call.flag("layout") { call.dim(at::X, 1) } else { call.dim(at::X, 0) };
    let batch = batch(call)?;
    let known = |dim: &Extent| usize::try_from(dim.as_ref()?.known()?).ok();
    if let (Some(steps), Some(rows)) = (known(&steps), known(&Some(batch.clone()))) {
        let rows = block_steps(steps, rows, call.flag("layout")).checked_mul(rows)?;
        return Some(Expr::Known(i64::try_from(rows).ok()?));
    }
    let most = Expr::Known(i64::try_from(ROWS).ok()?);
    let all = steps.and_then(|steps| steps.mul(&batch)).and_then(|all| all.smaller(&most));
    batch.larger(&all.unwrap_or(most))
}

#[cfg(test)]
mod tests {
    use crate::ResolveConfig;
    use crate::testing::{bounds, resolve_with};
    use lowtide_core::{Bytes, Size};

    const W: &str = "weight w 2 64 8";
    const R: &str = "weight r 2 64 16";
    const LSTM: &str = "y; h; c = LSTM(x, w, r) {hidden_size=16, direction=bidirectional}";

    fn scratch(lines: &[&str], config: &ResolveConfig) -> Size {
        resolve_with(lines, "", config).unwrap().graph.ops().as_slice()[0].scratch
    }

    #[test]
    fn a_layer_needs_the_gates_of_a_block_and_its_states() {
        let of = |x: &str| scratch(&[x, W, R, LSTM], &ResolveConfig::default());
        assert_eq!(of("input x 7 3 8"), Size::Fixed(Bytes(4 * (7 * 3 * 64 + 3 * 2 * 16))));
        assert_eq!(of("input x 70 3 8"), Size::Fixed(Bytes(4 * (10 * 3 * 64 + 3 * 2 * 16))));
        assert_eq!(of("input x 70 99 8"), Size::Fixed(Bytes(4 * (99 * 64 + 99 * 2 * 16))));
    }

    #[test]
    fn a_bias_is_added_up_first() {
        let gru = ["weight w 1 48 8", "weight r 1 48 16", "weight b 1 96", "y = GRU(x, w, r, b)"];
        let lines = [&["input x 2 3 8"], &gru[..]].concat();
        let wanted = Size::Fixed(Bytes(4 * (48 + 6 * 48 + 3 * 4 * 16)));
        assert_eq!(scratch(&lines, &ResolveConfig::default()), wanted);
    }

    #[test]
    fn an_open_size_has_a_bound_or_none() {
        let lines = ["input x 7 n 8", W, R, LSTM];
        let wanted = Size::AtMost(Bytes(4 * (32 * 64 + 16 * 2 * 16)));
        assert_eq!(scratch(&lines, &bounds("n", 16)), wanted);
        assert_eq!(scratch(&lines, &ResolveConfig::default()), Size::Unknown);
    }
}
