//! `Max`, `Min`, `Sum`, `Mean`: any number of inputs, folded into one.
//!
//! ~~~text
//! a piece of y:   a ──> result <── f(result, b) <── f(result, c)      then to its place in y
//! ~~~
//! The result of a piece lies beside the output until all inputs were read, as one of them may lie in the output. Two
//! inputs, which is what models have, are a [`pair`].

use super::apply::pair;
use super::numeric::Numeric;
use super::reader::{PIECE, Source, Spread, spread};
use crate::kernels::facts::same_type;
use crate::kernels::function;
use crate::kernels::number::Number;
use crate::kernels::types::{Made, with_type};
use crate::kernels::vectorise::vectorised;
use lowtide_core::operator::{Call, Fact, KernelError, Operands};

pub(crate) fn max(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    with_type!(numbers: call.dtype(0), T => fold::<T>(call, outputs, Numeric::larger, |all| all))
}

pub(crate) fn min(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    with_type!(numbers: call.dtype(0), T => fold::<T>(call, outputs, Numeric::smaller, |all| all))
}

pub(crate) fn sum(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    with_type!(numbers: call.dtype(0), T => fold::<T>(call, outputs, Number::plus, |all| all))
}

pub(crate) fn mean(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let count = u32::try_from(call.inputs.len()).unwrap_or(u32::MAX);
    with_type!(floats: call.dtype(0), T => {
        let count = T::of_f64(count.into());
        fold::<T>(call, outputs, Number::plus, move |all| all / count)
    })
}

fn fold<T: Number>(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
    f: impl Fn(T, T) -> T + Copy + Send + 'static,
    finish: impl Fn(T) -> T + Copy + Send + 'static,
) -> Made {
    if call.inputs.len() == 2 {
        return pair(call, outputs, move |a, b| finish(f(a, b)));
    }
    (1..call.inputs.len()).try_for_each(|at| same_type(call, at))?;
    let spreads: Vec<Spread> =
        (0..call.inputs.len()).map(|at| spread(call, at, outputs)).collect::<Result<_, _>>()?;
    Ok(function(move |operands| {
        let pieces = operands.values_mut::<T>(0)?.len().div_ceil(PIECE);
        (0..pieces).try_for_each(|piece| fold_piece(operands, &spreads, piece * PIECE, f, finish))
    }))
}

/// Folds the inputs for the piece of the output that begins at `start`.
fn fold_piece<T: Number>(
    operands: &mut Operands<'_>,
    spreads: &[Spread],
    start: usize,
    f: impl Fn(T, T) -> T + Copy,
    finish: impl Fn(T) -> T + Copy,
) -> Result<(), KernelError> {
    let mut result = [T::default(); PIECE];
    let mut buffer = [T::default(); PIECE];
    for (at, spread) in spreads.iter().enumerate() {
        let mut source = Source::<T>::new::<T>(operands.input(at)?, spread, start)?;
        let y = &operands.values_mut::<T>(0)?[start..];
        let x = source.read(&y[..y.len().min(PIECE)], &mut buffer);
        if at == 0 {
            result[..x.len()].copy_from_slice(x);
            continue;
        }
        let (before, result) = (result, &mut result);
        vectorised(
            #[inline(always)]
            move || {
                for ((all, before), x) in result.iter_mut().zip(&before).zip(x) {
                    *all = f(*before, *x);
                }
            },
        );
    }
    let y = &mut operands.values_mut::<T>(0)?[start..];
    y.iter_mut().zip(&result).for_each(|(y, all)| *y = finish(*all));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::runs;

    const INPUTS: [&str; 4] =
        ["weight a 2 2 = 1 -2 nan 4", "weight b 2 = 3 0", "weight c 2 1 = 2 -9", "weight d = 0.5"];

    #[track_caller]
    fn of(call: &str, wanted: &str) {
        runs(&[&INPUTS[..], &[call]].concat(), &format!("float32 [2, 2] {wanted}"));
    }

    #[test]
    fn any_number_of_inputs_is_folded() {
        of("y = Max(a)", "1 -2 NaN 4");
        of("y = Max(a, b)", "3 0 NaN 4");
        of("y = Max(b, c, a, d)", "3 2 NaN 4");
        of("y = Min(a, b, c)", "1 -2 NaN -9");
        of("y = Sum(a, b, c, d)", "6.5 0.5 NaN -4.5");
        of("y = Mean(a, b)", "2 -1 NaN 2");
        of("y = Mean(a, b, c, d)", "1.625 0.125 NaN -1.125");
    }

    #[test]
    fn integers_are_folded_too() {
        let inputs = ["weight a i8 2 = -1 7", "weight b i8 2 = 3 2", "weight c i8 1 = 2"];
        runs(&[&inputs[..], &["y = Max(a, b, c)"]].concat(), "int8 [2] 3 7");
        runs(&[&inputs[..], &["y = Min(a, b)"]].concat(), "int8 [2] -1 2");
    }

    #[test]
    fn an_output_of_many_pieces_is_folded_piece_by_piece() {
        let many = |word: &'static str, count| vec![word; count].join(" ");
        let a = format!("weight a 2 600 = {}", many("1", 1200));
        let lines = [a.as_str(), "weight b 2 1 = 1 2", "y = Sum(b, a, a)"];
        let wanted = format!("float32 [2, 600] {} {}", many("3", 600), many("4", 600));
        runs(&lines, &wanted);
    }
}
