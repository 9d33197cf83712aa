//! Mean and variance of a row, and what is done with them.
//!
//! ~~~text
//! row ──sum──> mean ──sum of squared differences──> variance          two passes: differences do not cancel out
//! row[i] ──> (row[i] - mean) * scale + bias
//! ~~~
//! They are added up in double precision.

#![expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]

use crate::kernels::number::Real;
use crate::kernels::vectorise::vectorised;

/// Sums that are kept at once.
const LANES: usize = 16;

/// The mean of a row and of the squared distances from it.
pub(super) fn moments<T: Real>(row: &[T]) -> (f64, f64) {
    vectorised(
        #[inline(always)]
        || {
            let count = length(row);
            let mean = sum_of(row, |x| x) / count;
            let variance = sum_of(row, |x| (x - mean) * (x - mean)) / count;
            (mean, variance)
        },
    )
}

/// The mean of the squares of a row.
pub(super) fn mean_square<T: Real>(row: &[T]) -> f64 {
    vectorised(
        #[inline(always)]
        || sum_of(row, |x| x * x) / length(row),
    )
}

/// The sum of a row.
pub(super) fn sum<T: Real>(row: &[T]) -> f64 {
    vectorised(
        #[inline(always)]
        || sum_of(row, |x| x),
    )
}

/// The sum of what a function makes of each element.
#[inline(always)]
fn sum_of<T: Real>(row: &[T], term: impl Fn(f64) -> f64) -> f64 {
    let mut sums = [0.0; LANES];
    let (pieces, rest) = row.as_chunks::<LANES>();
    for piece in pieces {
        for lane in 0..LANES {
            sums[lane] += term(piece[lane].to_f64());
        }
    }
    for (sum, x) in sums.iter_mut().zip(rest) {
        *sum += term(x.to_f64());
    }
    sums.into_iter().sum()
}

#[expect(clippy::cast_precision_loss, reason = "the nearest number will do")]
#[inline(always)]
fn length<T>(row: &[T]) -> f64 {
    row.len() as f64
}

/// `row * factor + shift`.
pub(super) fn scale<T: Real>(row: &mut [T], factor: T, shift: T) {
    vectorised(
        #[inline(always)]
        || {
            for x in row {
                *x = *x * factor + shift;
            }
        },
    );
}

/// `(row - mean) * factor`.
pub(super) fn centre<T: Real>(row: &mut [T], mean: T, factor: T) {
    vectorised(
        #[inline(always)]
        || {
            for x in row {
                *x = (*x - mean) * factor;
            }
        },
    );
}
