//! `Where` and `Clip`: elements chosen among inputs.
//!
//! ~~~text
//! Where(c, x, y)      c[i] is not 0: x[i], else y[i]          moves elements of any type
//! Clip(x, low, high)  the larger of x[i] and low, then the smaller of that and high
//! ~~~

use super::apply::map_now;
use super::reader::{PIECE, Reader, spread};
use crate::kernels::facts::same_type;
use crate::kernels::function;
use crate::kernels::number::Number;
use crate::kernels::types::{Made, elements_mut, with_type, with_width};
use crate::kernels::vectorise::vectorised;
use bytemuck::Pod;
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact, KernelError, NoKernel, Operands};

pub(crate) fn choose(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    if call.dtype(0) != Some(DType::Bool) || call.dtype(1) != call.dtype(2) {
        return Err(NoKernel::Misfit(
            "it wants truth values, and two inputs of one type".to_owned(),
        ));
    }
    with_width!(call.dtype(1), E => choose_of::<E>(call, outputs))
}

fn choose_of<E: Pod>(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let of = |at| spread(call, at, outputs);
    let (by, left, right) = (of(0)?, of(1)?, of(2)?);
    Ok(function(move |operands| {
        let mut by = Reader::<u8>::new::<E>(operands.input(0)?, &by)?;
        let mut left = Reader::<E>::new::<E>(operands.input(1)?, &left)?;
        let mut right = Reader::<E>::new::<E>(operands.input(2)?, &right)?;
        let (by, left, right) = (&mut by, &mut left, &mut right);
        let y = elements_mut::<E>(operands, 0)?;
        vectorised(
            #[inline(always)]
            move || {
                for y in y.chunks_mut(PIECE) {
                    let pairs = left.read(y).iter().zip(right.read(y));
                    let choices = by.read(y).iter().zip(pairs);
                    for (y, (by, (left, right))) in y.iter_mut().zip(choices) {
                        *y = if *by != 0 { *left } else { *right };
                    }
                }
            },
        );
        Ok(())
    }))
}

/// `Clip`. Before version 11 the limits are attributes. Where they are the wrong way round, all becomes the upper one.
pub(crate) fn clip(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    if call.opset < 11 {
        let low = call.float("min").unwrap_or(f32::MIN);
        let high = call.float("max").unwrap_or(f32::MAX);
        return with_type!(floats: call.dtype(0), T => {
            let (low, high) = (T::of_f64(low.into()), T::of_f64(high.into()));
            Ok(function(move |operands| clip_now(operands, low, high)))
        });
    }
    same_type(call, 1).and(same_type(call, 2))?;
    with_type!(numbers: call.dtype(0), T => Ok(function(|operands| {
        let low = limit(operands, 1)?.unwrap_or(T::LOWEST);
        let high = limit(operands, 2)?.unwrap_or(T::HIGHEST);
        clip_now(operands, low, high)
    })))
}

/// The one element of an optional input.
fn limit<T: Number>(operands: &Operands<'_>, at: usize) -> Result<Option<T>, KernelError> {
    let Some(input) = operands.optional(at) else { return Ok(None) };
    match input.values::<T>()? {
        [one] => Ok(Some(*one)),
        other => {
            Err(KernelError::Value(format!("input {at} has {} elements, wanted 1", other.len())))
        }
    }
}

fn clip_now<T: Number>(operands: &mut Operands<'_>, low: T, high: T) -> Result<(), KernelError> {
    map_now(operands, move |x: T| {
        let above = if x < low { low } else { x };
        if above > high { high } else { above }
    })
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::runs;

    #[test]
    fn elements_are_chosen_one_by_one() {
        let lines = [
            "weight c bool 3 1 = 1 0 9",
            "weight x 2 = 1 2",
            "weight y 3 2 = 3 4 5 6 7 8",
            "z = Where(c, x, y)",
        ];
        runs(&lines, "float32 [3, 2] 1 2 5 6 1 2");
        let lines = [
            "weight c bool 2 = 1 0",
            "weight x u8 2 = 10 20",
            "weight y u8 2 = 30 40",
            "z = Where(c, x, y)",
        ];
        runs(&lines, "uint8 [2] 10 40");
        let lines = [
            "weight c bool 2 = 1 0",
            "weight x f16 2 = 7 8",
            "weight y f16 = 9",
            "z = Where(c, x, y)",
        ];
        runs(&lines, "float16 [2] 7 9");
    }

    #[test]
    fn each_limit_may_be_absent() {
        let x = ["weight x 4 = -3 nan 0.5 inf", "weight a = -1", "weight b = 2"];
        let of = |call: &str, wanted: &str| {
            runs(&[&x[..], &[call]].concat(), &format!("float32 [4] {wanted}"));
        };
        of("y = Clip(x, a, b)", "-1 NaN 0.5 2");
        of("y = Clip(x, _, b)", "-3 NaN 0.5 2");
        of("y = Clip(x, a)", "-1 NaN 0.5 inf");
        of("y = Clip(x)", "-3 NaN 0.5 inf");
        of("y = Clip(x, b, a)", "-1 NaN -1 -1");
    }

    #[test]
    fn integers_are_clipped_and_old_limits_are_attributes() {
        let lines = ["weight x i8 3 = -100 5 100", "weight a i8 = 0", "y = Clip(x, a)"];
        runs(&lines, "int8 [3] 0 5 100");
        let lines = ["opset 6", "weight x 3 = -1 5 9", "y = Clip(x) {min=0.0, max=6.0}"];
        runs(&lines, "float32 [3] 0 5 6");
    }
}
