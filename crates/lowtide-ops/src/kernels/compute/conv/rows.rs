//! [`add_plane`]: one channel convolved with one kernel, added to a channel of the output.
//!
//! ~~~text
//! row of y   |  border  | interior, all taps at once        | border |
//!                         y[i] += w0*x[S*i] + w1*x[S*i+1] + w2*x[S*i+2] + taps of the rows below
//! ~~~
//! Rows of the kernel that lie in the padding are left out. Kernels of 3 and 5 with strides of 1 and 2 go over the
//! interior without checks; others tap by tap over the windows in which it lies in the input.

#![expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]

use crate::kernels::compute::window::{Axis, Plan, Rows};
use crate::kernels::number::Number;
use std::ops::Range;

#[inline(always)]
pub(super) fn add_plane<T: Number>(plan: &Plan, out: &mut [T], x: &[T], weight: &[T]) {
    let [_, _, width] = &plan.axes;
    match (width.dilation, width.stride, width.kernel) {
        (1, 1, 3) => add_rows::<T, 3, 1>(plan, out, x, weight),
        (1, 2, 3) => add_rows::<T, 3, 2>(plan, out, x, weight),
        (1, 1, 5) => add_rows::<T, 5, 1>(plan, out, x, weight),
        (1, 2, 5) => add_rows::<T, 5, 2>(plan, out, x, weight),
        _ => plan.each_row(
            out,
            #[inline(always)]
            |out, rows| {
                for at in 0..rows.count {
                    let (x, taps) = row_and_taps(plan, x, weight, rows, at);
                    add_taps(plan, out, x, taps);
                }
            },
        ),
    }
}

/// One row of the input, and the taps that go over it.
#[inline(always)]
fn row_and_taps<'a, T>(
    plan: &Plan,
    x: &'a [T],
    weight: &'a [T],
    rows: Rows,
    at: usize,
) -> (&'a [T], &'a [T]) {
    let [_, height, width] = &plan.axes;
    let x = &x[(rows.place + at * height.dilation) * width.input..][..width.input];
    (x, &weight[(rows.tap + at) * width.kernel..][..width.kernel])
}

/// Taps of any number and distance.
#[inline(always)]
fn add_taps<T: Number>(plan: &Plan, out: &mut [T], x: &[T], taps: &[T]) {
    let [_, _, width] = &plan.axes;
    for (tap, (&weight, windows)) in taps.iter().zip(&plan.windows).enumerate() {
        if windows.is_empty() {
            continue;
        }
        let x = &x[width.place(windows.start, tap)..];
        let out = &mut out[windows.clone()];
        if width.stride == 1 {
            for (out, &x) in out.iter_mut().zip(x) {
                *out = out.plus(weight.times(x));
            }
            continue;
        }
        for (out, &x) in out.iter_mut().zip(x.iter().step_by(width.stride)) {
            *out = out.plus(weight.times(x));
        }
    }
}

/// Rows of `K` neighbouring taps; three rows at once where there are so many.
#[inline(always)]
fn add_rows<T: Number, const K: usize, const STRIDE: usize>(
    plan: &Plan,
    out: &mut [T],
    x: &[T],
    weight: &[T],
) {
    plan.each_row(
        out,
        #[inline(always)]
        |out, rows| {
            let mut at = 0;
            if K == 3 && rows.count == 3 {
                add_row::<T, 3, K, STRIDE>(plan, out, rows_of(plan, x, weight, rows, at));
                at = 3;
            }
            for at in at..rows.count {
                add_row::<T, 1, K, STRIDE>(plan, out, rows_of(plan, x, weight, rows, at));
            }
        },
    );
}

/// Rows of the input from one on, each with its taps.
#[inline(always)]
fn rows_of<'a, T: Number, const ROWS: usize, const K: usize>(
    plan: &Plan,
    x: &'a [T],
    weight: &'a [T],
    rows: Rows,
    at: usize,
) -> [(&'a [T], [T; K]); ROWS] {
    // No closures here: what is not inlined is compiled for other vectors, and switching takes longer than the work.
    let mut found: [(&[T], [T; K]); ROWS] = [(&[], [T::ZERO; K]); ROWS];
    for (row, (from, own)) in found.iter_mut().enumerate() {
        let (x, taps) = row_and_taps(plan, x, weight, rows, at + row);
        *from = x;
        own.copy_from_slice(&taps[..K]);
    }
    found
}

/// One window of the border.
#[inline(always)]
fn add_one<T: Number, const ROWS: usize, const K: usize>(
    width: &Axis,
    out: &mut [T],
    rows: &[(&[T], [T; K]); ROWS],
    (window, taps): (usize, Range<usize>),
) {
    for (x, weight) in rows {
        for tap in taps.clone() {
            out[window] = out[window].plus(weight[tap].times(x[width.place(window, tap)]));
        }
    }
}

#[inline(always)]
pub(super) fn add_row<T: Number, const ROWS: usize, const K: usize, const STRIDE: usize>(
    plan: &Plan,
    out: &mut [T],
    rows: [(&[T], [T; K]); ROWS],
) {
    let [_, _, width] = &plan.axes;
    for (window, taps) in &plan.border {
        add_one(width, out, &rows, (*window, taps.clone()));
    }
    // Each tap reads a piece of `STRIDE` elements a window, the last ones of which need not be there for all.
    let first = plan.from;
    let left = rows[0].0.len().saturating_sub(first + K - 1);
    let count = plan.interior.len().min(left / STRIDE);
    let mut x_of: [[&[[T; STRIDE]]; K]; ROWS] = [[&[]; K]; ROWS];
    for (x_of, (x, _)) in x_of.iter_mut().zip(&rows) {
        for (tap, x_of) in x_of.iter_mut().enumerate() {
            let from = &x[(first + tap).min(x.len())..];
            *x_of = &from.as_chunks::<STRIDE>().0[..count];
        }
    }
    let inside = &mut out[plan.interior.start..][..count];
    for (at, out) in inside.iter_mut().enumerate() {
        let mut sum = *out;
        for (x_of, (_, taps)) in x_of.iter().zip(&rows) {
            for (x, &weight) in x_of.iter().zip(taps) {
                sum = sum.plus(weight.times(x[at][0]));
            }
        }
        *out = sum;
    }
    for window in plan.interior.start + count..plan.interior.end {
        add_one(width, out, &rows, (window, 0..K));
    }
}
