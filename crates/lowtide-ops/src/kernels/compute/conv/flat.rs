//! [`Flat`]: a kernel of 3 x 3 over one channel whose rows stay as long as they are, without regard to where rows end.
//!
//! ~~~text
//! x  a a a a|b b b b|c c c c        one long loop over all rows that have neighbours above and below;
//! y          ? B B|B B B ?          at the ends of rows it takes elements of other rows: these are done again
//! ~~~
//! Rows of small images are too short for vectors, and each costs as much to begin as to do.

#![expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]

use super::rows::add_row;
use crate::kernels::compute::window::{Axis, Plan};
use crate::kernels::number::Number;
use std::ops::Range;

/// The taps of such a kernel, row after row.
pub(super) type Taps<T> = [[T; 3]; 3];

/// Whether windows are such that [`convolve`] can be used.
pub(super) fn is_flat(plan: &Plan) -> bool {
    let [depth, height, width] = &plan.axes;
    let is_dense = |axis: &Axis| axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1;
    let keeps = width.before == 1 && width.output == width.input && width.input >= 2;
    *depth == Axis::ONE && is_dense(height) && is_dense(width) && keeps
}

/// Convolves one channel.
#[inline(always)]
pub(super) fn convolve<T: Number>(plan: &Plan, out: &mut [T], x: &[T], taps: &Taps<T>, bias: T) {
    let [_, height, width] = &plan.axes;
    let len = width.input;
    let (start, end) = (height.windows(0).start, height.windows(2).end);
    let inside = start..end.max(start);
    for (row, out) in out.chunks_exact_mut(len).enumerate() {
        if inside.contains(&row) {
            continue;
        }
        out.fill(bias);
        for tap in height.taps(row) {
            let x = &x[height.place(row, tap) * len..][..len];
            add_row::<T, 1, 3, 1>(plan, out, [(x, taps[tap])]);
        }
    }
    if inside.is_empty() {
        return;
    }
    let x = &x[height.place(start, 0) * len..];
    let out = &mut out[start * len..end * len];
    long_row(out, x, len, taps, bias);
    for (row, out) in out.chunks_exact_mut(len).enumerate() {
        let x = &x[row * len..][..3 * len];
        out[0] = at_end(x, len, taps, (0..2, 1), bias);
        out[len - 1] = at_end(x, len, taps, (len - 2..len, 0), bias);
    }
}

/// All elements but the first and the last.
#[inline(always)]
fn long_row<T: Number>(out: &mut [T], x: &[T], len: usize, taps: &Taps<T>, bias: T) {
    let count = out.len() - 2;
    let out = &mut out[1..][..count];
    let part = |row: usize, tap: usize| &x[row * len + tap..][..count];
    let (a, b, c) = (part(0, 0), part(0, 1), part(0, 2));
    let (d, e, f) = (part(1, 0), part(1, 1), part(1, 2));
    let (g, h, i) = (part(2, 0), part(2, 1), part(2, 2));
    for at in 0..count {
        let first = taps[0][0].times(a[at]).plus(taps[0][1].times(b[at]));
        let first = first.plus(taps[0][2].times(c[at]));
        let second = taps[1][0].times(d[at]).plus(taps[1][1].times(e[at]));
        let second = second.plus(taps[1][2].times(f[at]));
        let third = taps[2][0].times(g[at]).plus(taps[2][1].times(h[at]));
        let third = third.plus(taps[2][2].times(i[at]));
        out[at] = bias.plus(first).plus(second.plus(third));
    }
}

/// The first or last element of a row, where only two columns of taps lie in the input.
#[inline(always)]
fn at_end<T: Number>(
    x: &[T],
    len: usize,
    taps: &Taps<T>,
    (columns, first): (Range<usize>, usize),
    bias: T,
) -> T {
    let mut sum = bias;
    for (row, taps) in taps.iter().enumerate() {
        let x = &x[row * len..][columns.clone()];
        sum = sum.plus(taps[first].times(x[0])).plus(taps[first + 1].times(x[1]));
    }
    sum
}
