//! `LayerNormalization`, `RMSNormalization` and the simplified form of it: rows scaled by their own statistics.
//!
//! ~~~text
//! [n, 197, 768], axis -1    each 768 elements: mean 0 and variance 1, or mean square 1;
//!                           then a scale, and a bias, for each place in the row
//! ~~~
//! Mean and inverse deviation of each row are outputs, if they are wanted.

use super::place::each_part;
use super::statistics::{mean_square, moments};
use crate::kernels::facts::{dims, input_dims, same_type, unsupported};
use crate::kernels::function;
use crate::kernels::number::{Real, by_type};
use crate::kernels::vectorise::vectorised;
use lowtide_core::operator::{Call, Fact, Input, Kernel, KernelError, NoKernel, Operands, call};

pub(crate) fn layer(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    make(call, outputs, Centre::Mean)
}

pub(crate) fn rms(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    make(call, outputs, Centre::Zero)
}

/// What deviations are measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Centre {
    Mean,
    Zero,
}

fn make(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
    centre: Centre,
) -> Result<Box<dyn Kernel>, NoKernel> {
    let shape = input_dims(call, 0)?;
    let axis = call::axis(call.int_or("axis", -1), shape.len())?;
    let row = &shape[axis..];
    let scale = Spread::new(call, 1, row)?;
    let bias = if call.has(2) { Some(Spread::new(call, 2, row)?) } else { None };
    for output in outputs.iter().skip(1).flatten() {
        if output.dtype != call.dtype(0) {
            return unsupported("statistics of another type");
        }
        dims(output)?;
    }
    let epsilon = call.float("epsilon").unwrap_or(1e-5);
    let layer = Layer { len: row.iter().product(), centre, epsilon, scale, bias };
    by_type!(call.dtype(0), [F32: f32, F64: f64], of(layer))
}

/// How a scale or bias is spread over a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// An element for each place.
    Each,
    /// One for all.
    One,
}

impl Spread {
    pub(super) fn new(call: &Call<'_>, at: usize, row: &[usize]) -> Result<Self, NoKernel> {
        same_type(call, at)?;
        let dims = input_dims(call, at)?;
        let ones = dims.len().saturating_sub(row.len());
        if dims.iter().product::<usize>() == 1 {
            return Ok(Self::One);
        }
        let (outer, inner) = dims.split_at(ones);
        let begin = row.len() - inner.len();
        let is_whole = inner == &row[begin..] && row[..begin].iter().all(|&len| len == 1);
        if is_whole && outer.iter().all(|&len| len == 1) {
            return Ok(Self::Each);
        }
        unsupported(format!("an input {at} of shape {dims:?} for rows of {row:?}"))
    }
}

fn of<T: Real>(layer: Layer) -> Box<dyn Kernel> {
    function(move |operands| layer.run::<T>(operands))
}

pub(super) struct Layer {
    /// Elements of a row.
    pub(super) len: usize,
    pub(super) centre: Centre,
    pub(super) epsilon: f32,
    pub(super) scale: Spread,
    pub(super) bias: Option<Spread>,
}

impl Layer {
    fn run<T: Real>(&self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let scale = operands.input(1)?.values::<T>()?;
        let bias = operands.optional(2).map(Input::values::<T>).transpose()?;
        self.write_statistics::<T>(operands)?;
        each_part::<T>(operands, self.len, |_, row| {
            let (mean, factor) = self.statistics(row);
            let (mean, factor) = (T::of_f64(mean), T::of_f64(factor));
            vectorised(
                #[inline(always)]
                || self.finish(row, (mean, factor), scale, bias),
            );
        })
    }

    /// The mean of a row, and what it is multiplied with.
    pub(super) fn statistics<T: Real>(&self, row: &[T]) -> (f64, f64) {
        let (mean, square) = match self.centre {
            Centre::Mean => moments(row),
            Centre::Zero => (0.0, mean_square(row)),
        };
        (mean, (square + f64::from(self.epsilon)).sqrt().recip())
    }

    #[expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]
    #[inline(always)]
    pub(super) fn finish<T: Real>(
        &self,
        row: &mut [T],
        (mean, factor): (T, T),
        scale: &[T],
        bias: Option<&[T]>,
    ) {
        let (all_scale, all_bias) = (scale.first().copied(), bias.and_then(<[T]>::first).copied());
        match (self.scale, all_scale) {
            (Spread::One, Some(scale)) => {
                for x in &mut *row {
                    *x = (*x - mean) * factor * scale;
                }
            }
            _ => {
                for (x, &scale) in row.iter_mut().zip(scale) {
                    *x = (*x - mean) * factor * scale;
                }
            }
        }
        match (self.bias, all_bias, bias) {
            (Some(Spread::One), Some(bias), _) => {
                for x in &mut *row {
                    *x += bias;
                }
            }
            (_, _, Some(bias)) => {
                for (x, &bias) in row.iter_mut().zip(bias) {
                    *x += bias;
                }
            }
            _ => {}
        }
    }

    /// Where they are wanted, before the rows are changed: of the simplified form the first one is already the factor.
    fn write_statistics<T: Real>(&self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let x = operands.input(0)?;
        let Some((first, rest)) = operands.outputs.split_first_mut() else { return Ok(()) };
        if rest.iter().all(Option::is_none) || self.len == 0 {
            return Ok(());
        }
        let x: &[T] = match first {
            Some(first) if x.is_in(0) => first.values_mut()?,
            _ => x.values()?,
        };
        for (at, row) in x.chunks_exact(self.len).enumerate() {
            let (mean, factor) = self.statistics(row);
            let values = match self.centre {
                Centre::Mean => [mean, factor],
                Centre::Zero => [factor, factor],
            };
            for (output, value) in rest.iter_mut().zip(values) {
                let Some(output) = output else { continue };
                if let Some(slot) = output.values_mut::<T>()?.get_mut(at) {
                    *slot = T::of_f64(value);
                }
            }
        }
        Ok(())
    }
}
