//! `MeanVarianceNormalization`: elements along some axes with mean 0 and variance 1.
//!
//! ~~~text
//! [n, c, h, w], axes 0, 2, 3      each channel over all images: (x - mean) / (deviation + 1e-9)
//! ~~~

use super::place::each_part;
use crate::kernels::facts::input_dims;
use crate::kernels::function;
use crate::kernels::number::{Real, by_type};
use crate::kernels::reduce::{Split, check_rank};
use lowtide_core::operator::{Call, Fact, Kernel, NoKernel, call};

/// What keeps a deviation of 0 from being divided by.
const EPSILON: f64 = 1e-9;

pub(crate) fn mean_variance(
    call: &Call<'_>,
    _: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let dims = input_dims(call, 0)?;
    check_rank(&dims)?;
    let axes = call::axes(call.ints("axes").unwrap_or(&[0, 2, 3]), dims.len())?;
    let split = Split::new(&dims, |at| axes.contains(&at));
    by_type!(call.dtype(0), [F32: f32, F64: f64], of(Box::new(split), dims.iter().product()))
}

fn of<T: Real>(split: Box<Split>, len: usize) -> Box<dyn Kernel> {
    function(move |operands| {
        each_part::<T>(operands, len, |_, x| {
            for place in split.kept.places() {
                normalise(&split, x, place);
            }
        })
    })
}

/// The elements that share statistics, from the one at `place` on.
fn normalise<T: Real>(split: &Split, x: &mut [T], place: usize) {
    let (outer, row) = split.gone.inner();
    #[expect(clippy::cast_precision_loss, reason = "the nearest number will do")]
    let count = split.gone.len() as f64;
    let rows = || outer.places().map(|gone| place + gone..place + gone + row);
    let total = |x: &[T], term: &dyn Fn(f64) -> f64| -> f64 {
        rows().map(|row| x[row].iter().map(|x| term(x.to_f64())).sum::<f64>()).sum()
    };
    let mean = total(x, &|x| x) / count;
    let variance = total(x, &|x| (x - mean) * (x - mean)) / count;
    let factor = (variance.sqrt() + EPSILON).recip();
    let (mean, factor) = (T::of_f64(mean), T::of_f64(factor));
    for row in rows() {
        for x in &mut x[row] {
            *x = (*x - mean) * factor;
        }
    }
}
