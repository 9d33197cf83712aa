//! `RotaryEmbedding`: pairs of elements of each head, turned by an angle that grows with the position.
//!
//! ~~~text
//! head [a0 a1 a2 | b0 b1 b2 | rest]        halves: a, b = a cos - b sin, a sin + b cos; the rest stays
//!      [a0 b0 a1 b1 a2 b2   | rest]        interleaved
//! cos, sin [positions, pairs] looked up by position, or [batch, rows, pairs]
//! ~~~
//! Each head is turned where it will stand, so the output may lie on the input.
//! Source: Su and others, `RoFormer`: Enhanced Transformer with Rotary Position Embedding, 2021.

use crate::kernels::facts::{input_dims, same_type, unsupported};
use crate::kernels::function;
use crate::kernels::normalise::each_part;
use crate::kernels::number::{Real, by_type};
use lowtide_core::operator::{Call, Fact, Kernel, KernelError, NoKernel, Operands};

/// Where the operands are.
#[derive(Clone, Copy, Debug)]
struct Inputs {
    cos: usize,
    sin: usize,
    positions: usize,
}

/// The standard operator.
pub(crate) fn rotary(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    with(call, Inputs { cos: 1, sin: 2, positions: 3 })
}

/// The one of ONNX Runtime, whose positions come before the tables, and may be one for all.
#[expect(clippy::float_cmp, reason = "one is exact")]
pub(crate) fn contributed(
    call: &Call<'_>,
    _: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    if call.flag("is_packed_batching") || call.float("scale").is_some_and(|scale| scale != 1.0) {
        return unsupported("packed batches, or a scale");
    }
    with(call, Inputs { cos: 2, sin: 3, positions: 1 })
}

fn with(call: &Call<'_>, inputs: Inputs) -> Result<Box<dyn Kernel>, NoKernel> {
    same_type(call, inputs.cos)?;
    same_type(call, inputs.sin)?;
    let turn = Turn::new(call, inputs)?;
    by_type!(call.dtype(0), [F32: f32, F64: f64], kernel(turn))
}

fn kernel<T: Real>(turn: Turn) -> Box<dyn Kernel> {
    function(move |operands| turn.run::<T>(operands))
}

/// How rows are looked up in the tables.
#[derive(Clone, Copy, Debug)]
enum Lookup {
    /// The tables have one for each row of the batch.
    Row,
    /// By position: of each row, or of the first one, from which the others count.
    Position { is_first: bool },
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    inputs: Inputs,
    lookup: Lookup,
    rows: usize,
    heads: usize,
    size: usize,
    /// Rows of the tables.
    table: usize,
    /// Pairs that are turned.
    pairs: usize,
    is_interleaved: bool,
    /// Whether heads are an axis before the rows.
    heads_first: bool,
}

impl Turn {
    fn new(call: &Call<'_>, inputs: Inputs) -> Result<Self, NoKernel> {
        let tables = input_dims(call, inputs.cos)?;
        let (&pairs, outer) =
            tables.split_last().ok_or_else(|| misfit("a table without axes".to_owned()))?;
        let x = input_dims(call, 0)?;
        let (batch, heads, rows, size) = match *x.as_slice() {
            [batch, heads, rows, size] => (batch, heads, rows, size),
            [batch, rows, folded] => {
                let heads = heads_of(call, folded, pairs)?;
                (batch, heads, rows, folded / heads)
            }
            _ => return Err(misfit(format!("input 0 has rank {}, wanted 3 or 4", x.len()))),
        };
        let turned = usize::try_from(call.int_or("rotary_embedding_dim", 0)).unwrap_or(0);
        let turned = if turned == 0 { size } else { turned };
        if turned > size || pairs * 2 != turned || input_dims(call, inputs.sin)? != tables {
            let text = format!("tables of {tables:?} do not turn {turned} of {size} elements");
            return Err(misfit(text));
        }
        let lookup = lookup(call, inputs, (batch, rows), outer)?;
        let table = outer.iter().product();
        let is_interleaved = call.flag("interleaved");
        let heads_first = x.len() == 4;
        Ok(Self { inputs, lookup, rows, heads, size, table, pairs, is_interleaved, heads_first })
    }

    fn run<T: Real>(&self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let cos = operands.input(self.inputs.cos)?.values::<T>()?;
        let sin = operands.input(self.inputs.sin)?.values::<T>()?;
        let positions = match self.lookup {
            Lookup::Row => None,
            Lookup::Position { is_first } => Some((self.positions(operands, is_first)?, is_first)),
        };
        each_part::<T>(operands, self.size, |at, head| {
            let (batch, row) = self.place(at);
            let index = match positions {
                None => batch * self.rows + row,
                Some((positions, true)) => index(positions[0]) + row,
                Some((positions, false)) => index(positions[batch * self.rows + row]),
            };
            let [cos, sin] = [cos, sin].map(|table| &table[index * self.pairs..][..self.pairs]);
            self.turn(&mut head[..2 * self.pairs], cos, sin);
        })
    }

    /// The positions, all of which are in the tables.
    fn positions<'a>(
        &self,
        operands: &Operands<'a>,
        is_first: bool,
    ) -> Result<&'a [i64], KernelError> {
        let positions = operands.input(self.inputs.positions)?.values::<i64>()?;
        let more = if is_first { self.rows.saturating_sub(1) } else { 0 };
        let is_in = |&position: &i64| {
            usize::try_from(position)
                .is_ok_and(|position| position.saturating_add(more) < self.table)
        };
        match positions.iter().find(|position| !is_in(position)) {
            Some(position) if self.rows > 0 => Err(KernelError::Value(format!(
                "position {position} is not in tables of {} rows",
                self.table
            ))),
            _ => Ok(positions),
        }
    }

    /// The sample and the row of the head that comes as number `at`.
    fn place(&self, at: usize) -> (usize, usize) {
        if self.heads_first {
            return (at / (self.heads * self.rows), at % self.rows);
        }
        let row = at / self.heads;
        (row / self.rows, row % self.rows)
    }

    fn turn<T: Real>(&self, head: &mut [T], cos: &[T], sin: &[T]) {
        let turned = |a: T, b: T, at: usize| (a * cos[at] - b * sin[at], a * sin[at] + b * cos[at]);
        if self.is_interleaved {
            for (at, pair) in head.chunks_exact_mut(2).enumerate() {
                (pair[0], pair[1]) = turned(pair[0], pair[1], at);
            }
            return;
        }
        let (first, second) = head.split_at_mut(self.pairs);
        for (at, (a, b)) in first.iter_mut().zip(second).enumerate() {
            (*a, *b) = turned(*a, *b, at);
        }
    }
}

/// A position that was found to be in the tables.
fn index(position: i64) -> usize {
    usize::try_from(position).unwrap_or(0)
}

fn misfit(text: String) -> NoKernel {
    NoKernel::Misfit(text)
}

/// Heads in an axis: as stated, or else as many as tables for whole heads say.
fn heads_of(call: &Call<'_>, folded: usize, pairs: usize) -> Result<usize, NoKernel> {
    let stated = usize::try_from(call.int_or("num_heads", 0)).unwrap_or(0);
    let heads = if stated > 0 { stated } else { folded / (2 * pairs).max(1) };
    if heads == 0 || !folded.is_multiple_of(heads) {
        return Err(misfit(format!("num_heads of {heads} do not divide an axis of {folded}")));
    }
    Ok(heads)
}

fn lookup(
    call: &Call<'_>,
    inputs: Inputs,
    (batch, rows): (usize, usize),
    outer: &[usize],
) -> Result<Lookup, NoKernel> {
    if !call.has(inputs.positions) {
        let fits = *outer == [batch, rows];
        let error = || misfit(format!("tables of {outer:?} rows for {batch} times {rows}"));
        return if fits { Ok(Lookup::Row) } else { Err(error()) };
    }
    let positions = input_dims(call, inputs.positions)?;
    if outer.len() != 1 {
        return Err(misfit(format!("tables of {outer:?} rows are not looked up by position")));
    }
    match *positions.as_slice() {
        [1] if call.op.domain == "com.microsoft" => Ok(Lookup::Position { is_first: true }),
        [found, of] if (found, of) == (batch, rows) => Ok(Lookup::Position { is_first: false }),
        _ => Err(misfit(format!("positions {positions:?} for {batch} times {rows}"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{fails, refuses, runs};

    const QUARTER: [&str; 2] = ["weight c 2 1 = 1 0", "weight s 2 1 = 0 1"];

    fn turned(x: &str, call: &str, wanted: &str) {
        runs(&[x, QUARTER[0], QUARTER[1], "weight p i64 1 2 = 0 1", call], wanted);
    }

    #[test]
    fn heads_are_turned_by_their_position() {
        turned(
            "weight x 1 1 2 2 = 3 4 3 4",
            "y = RotaryEmbedding(x, c, s, p)",
            "float32 [1, 1, 2, 2] 3 4 -4 3",
        );
        turned(
            "weight x 1 2 4 = 1 2 3 4 1 2 3 4",
            "y = RotaryEmbedding(x, c, s, p) {num_heads=2}",
            "float32 [1, 2, 4] 1 2 3 4 -2 1 -4 3",
        );
    }

    #[test]
    fn what_is_behind_the_turned_ones_stays() {
        turned(
            "weight x 1 1 2 3 = 3 4 5 3 4 5",
            "y = RotaryEmbedding(x, c, s, p) {rotary_embedding_dim=2, interleaved=1}",
            "float32 [1, 1, 2, 3] 3 4 5 -4 3 5",
        );
    }

    #[test]
    fn tables_may_have_a_row_for_each_of_the_batch() {
        let tables = ["weight c 1 2 1 = 0 1", "weight s 1 2 1 = 1 0"];
        let x = "weight x 1 1 2 2 = 3 4 3 4";
        runs(
            &[x, tables[0], tables[1], "y = RotaryEmbedding(x, c, s)"],
            "float32 [1, 1, 2, 2] -4 3 3 4",
        );
    }

    #[test]
    fn one_position_may_stand_for_the_first() {
        let x = "weight x 1 1 2 2 = 3 4 3 4";
        runs(
            &[
                x,
                QUARTER[0],
                QUARTER[1],
                "weight p i64 1 = 0",
                "y = com.microsoft.RotaryEmbedding(x, p, c, s)",
            ],
            "float32 [1, 1, 2, 2] 3 4 -4 3",
        );
    }

    #[test]
    fn positions_outside_of_the_tables_are_refused() {
        let x = "weight x 1 1 2 2 = 3 4 3 4";
        let lines = [x, QUARTER[0], QUARTER[1], "weight p i64 1 2 = 0 2"];
        fails(
            &[&lines[..], &["y = RotaryEmbedding(x, c, s, p)"]].concat(),
            "position 2 is not in tables of 2 rows",
        );
        refuses(
            &[
                "input x 1 1 2 4",
                "input c 2 1",
                "input s 2 1",
                "input p i64 1 2",
                "y = RotaryEmbedding(x, c, s, p)",
            ],
            "operator `RotaryEmbedding (op0)`: tables of [2, 1] do not turn 4 of 4 elements",
        );
    }
}
