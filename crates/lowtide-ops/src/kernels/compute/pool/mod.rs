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

use super::window::{self, Plan, SPATIAL, volume};
use crate::kernels::facts::{input_dims, output_dims};
use crate::kernels::vectorise::vectorised;
use lowtide_core::operator::{Call, Fact, NoKernel};
use std::ops::Range;

/// Reads the windows of a pool.
fn read(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Result<Plan, NoKernel> {
    let (x, out) = (input_dims(call, 0)?, output_dims(outputs, 0)?);
    let kernel = call.ints("kernel_shape").unwrap_or_default();
    let kernel: Vec<usize> =
        kernel.iter().filter_map(|&len| u32::try_from(len).ok()).map(|len| len as usize).collect();
    if x.len() < 2 || kernel.len() + 2 != x.len() {
        return Err(NoKernel::Misfit(format!("a window {kernel:?} over {x:?}")));
    }
    Ok(Plan::new(window::read(call, &x[2..], &out[2..], &kernel)?))
}

/// Calls a function for each channel of each image, with its elements of the input and of the output.
fn each_plane<T, U>(
    Plan { axes, .. }: &Plan,
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

/// Folds the elements of each window of a channel into what is there. Every other element of a row is picked out
/// faster with narrow vectors than with wide ones.
fn fold<T: Copy, U: Copy>(plan: &Plan, x: &[T], out: &mut [U], fold: impl Fn(U, T) -> U + Copy) {
    if plan.axes[SPATIAL - 1].stride > 1 {
        fold_plane(plan, x, out, fold);
        return;
    }
    vectorised(
        #[inline(always)]
        || fold_plane(plan, x, out, fold),
    );
}

/// The same, compiled with its caller.
#[expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]
#[inline(always)]
fn fold_plane<T: Copy, U: Copy>(
    plan: &Plan,
    x: &[T],
    out: &mut [U],
    fold: impl Fn(U, T) -> U + Copy,
) {
    let [_, height, width] = &plan.axes;
    plan.each_row(
        out,
        #[inline(always)]
        |out, rows| {
            for at in 0..rows.count {
                let x = &x[(rows.place + at * height.dilation) * width.input..][..width.input];
                for (tap, windows) in plan.windows.iter().enumerate() {
                    if !windows.is_empty() {
                        let x = &x[width.place(windows.start, tap)..];
                        fold_tap(&mut out[windows.clone()], x, width.stride, fold);
                    }
                }
            }
        },
    );
}

/// Folds every `stride`-th element of a row.
#[expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]
#[inline(always)]
fn fold_tap<T: Copy, U: Copy>(out: &mut [U], x: &[T], stride: usize, fold: impl Fn(U, T) -> U) {
    match stride {
        1 => {
            for (out, &x) in out.iter_mut().zip(x) {
                *out = fold(*out, x);
            }
        }
        2 => {
            // Pairs, of which the last window needs only the first element.
            let (pairs, _) = x.as_chunks::<2>();
            let count = out.len().min(pairs.len());
            let (most, last) = out.split_at_mut(count);
            for (out, x) in most.iter_mut().zip(pairs) {
                *out = fold(*out, x[0]);
            }
            for (out, &x) in last.iter_mut().zip(&x[2 * count..]) {
                *out = fold(*out, x);
            }
        }
        _ => {
            for (out, &x) in out.iter_mut().zip(x.iter().step_by(stride)) {
                *out = fold(*out, x);
            }
        }
    }
}

#[inline]
fn pairs(a: Range<usize>, b: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
    a.flat_map(move |one| b.clone().map(move |other| (one, other)))
}
