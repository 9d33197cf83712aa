//! Pools: an image in, a value for each window of each channel out.
//!
//! ~~~text
//! MaxPool 2x2, stride 2     1 5 | 0 2          5 2      and where each maximum was, if that is wanted
//!                           3 4 | 1 1    ──>
//! ~~~
//! The padding takes no part, unless an average counts it as zeros.

mod average;
mod max;

pub(crate) use average::{average_pool, lp_pool};
pub(crate) use max::max_pool;

use super::window::{self, Axis, SPATIAL, volume};
use crate::kernels::facts::{input_dims, output_dims};
use lowtide_core::operator::{Call, Fact, NoKernel};
use std::ops::Range;

/// Reads the windows of a pool.
fn read(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Result<[Axis; SPATIAL], NoKernel> {
    let (x, out) = (input_dims(call, 0)?, output_dims(outputs, 0)?);
    let kernel = call.ints("kernel_shape").unwrap_or_default();
    let kernel: Vec<usize> =
        kernel.iter().filter_map(|&len| u32::try_from(len).ok()).map(|len| len as usize).collect();
    if x.len() < 2 || kernel.len() + 2 != x.len() {
        return Err(NoKernel::Misfit(format!("a window {kernel:?} over {x:?}")));
    }
    window::read(call, &x[2..], &out[2..], &kernel)
}

/// Calls a function for each channel of each image, with its elements of the input and of the output.
fn each_plane<T, U>(
    axes: &[Axis; SPATIAL],
    x: &[T],
    out: &mut [U],
    mut pool: impl FnMut(usize, &[T], &mut [U]),
) {
    let (x_len, len) = (volume(axes, |axis| axis.input), volume(axes, |axis| axis.output));
    if len == 0 {
        return;
    }
    for (at, out) in out.chunks_exact_mut(len).enumerate() {
        pool(at, &x[at * x_len..][..x_len], out);
    }
}

/// Folds the elements of each window of a channel into what is there.
#[expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]
#[inline(always)]
fn fold_plane<T: Copy, U: Copy>(
    axes: &[Axis; SPATIAL],
    x: &[T],
    out: &mut [U],
    fold: impl Fn(U, T) -> U + Copy,
) {
    let [depth, height, width] = axes;
    for (at, out) in out.chunks_exact_mut(width.output).enumerate() {
        let (z, y) = (at / height.output, at % height.output);
        for (tap_z, tap_y) in pairs(depth.taps(z), height.taps(y)) {
            let place = depth.place(z, tap_z) * height.input + height.place(y, tap_y);
            let row = &x[place * width.input..][..width.input];
            for tap in 0..width.kernel {
                fold_tap(width, row, out, tap, fold);
            }
        }
    }
}

#[expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]
#[inline(always)]
fn fold_tap<T: Copy, U: Copy>(
    axis: &Axis,
    row: &[T],
    out: &mut [U],
    tap: usize,
    fold: impl Fn(U, T) -> U,
) {
    let windows = axis.windows(tap);
    if windows.is_empty() {
        return;
    }
    let row = &row[axis.place(windows.start, tap)..];
    let out = &mut out[windows];
    if axis.stride == 1 {
        out.iter_mut().zip(row).for_each(|(out, &x)| *out = fold(*out, x));
        return;
    }
    let row = row.iter().step_by(axis.stride);
    out.iter_mut().zip(row).for_each(|(out, &x)| *out = fold(*out, x));
}

#[inline]
fn pairs(a: Range<usize>, b: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
    a.flat_map(move |one| b.clone().map(move |other| (one, other)))
}
