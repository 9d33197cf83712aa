//! [`add_plane`]: one channel convolved with one kernel, added to a channel of the output.
//!
//! ~~~text
//! row of y   |  border  | interior, K taps at once          | border |
//!                         y[i] += w0*x[S*i] + w1*x[S*i+1] + w2*x[S*i+2]
//! ~~~
//! Rows of the kernel that lie in the padding are left out; in a row, each tap goes over the windows in which it lies
//! in the input. Where all taps do, they go together: for kernels of 3 and 5 and strides of 1 and 2, without checks.

#![expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]

use crate::kernels::compute::window::{Axis, SPATIAL};
use crate::kernels::number::Number;
use std::ops::Range;

#[inline(always)]
pub(super) fn add_plane<T: Number>(axes: &[Axis; SPATIAL], out: &mut [T], x: &[T], weight: &[T]) {
    let [depth, height, width] = axes;
    for (at, out) in out.chunks_exact_mut(width.output).enumerate() {
        let (z, y) = (at / height.output, at % height.output);
        for (tap_z, tap_y) in pairs(depth.taps(z), height.taps(y)) {
            let place = depth.place(z, tap_z) * height.input + height.place(y, tap_y);
            let row = &x[place * width.input..][..width.input];
            let taps = &weight[(tap_z * height.kernel + tap_y) * width.kernel..][..width.kernel];
            add_row(width, out, row, taps);
        }
    }
}

#[inline(always)]
fn pairs(a: Range<usize>, b: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
    a.flat_map(move |one| b.clone().map(move |other| (one, other)))
}

#[inline(always)]
fn add_row<T: Number>(axis: &Axis, out: &mut [T], x: &[T], taps: &[T]) {
    match (axis.dilation, axis.stride, taps) {
        (1, 1, &[a, b, c]) => add_interior::<T, 3, 1>(axis, out, x, [a, b, c]),
        (1, 2, &[a, b, c]) => add_interior::<T, 3, 2>(axis, out, x, [a, b, c]),
        (1, 1, &[a, b, c, d, e]) => add_interior::<T, 5, 1>(axis, out, x, [a, b, c, d, e]),
        (1, 2, &[a, b, c, d, e]) => add_interior::<T, 5, 2>(axis, out, x, [a, b, c, d, e]),
        _ => {
            for (tap, &weight) in taps.iter().enumerate() {
                add_tap(axis, out, x, (tap, weight), axis.windows(tap));
            }
        }
    }
}

/// One tap over some windows.
#[inline(always)]
fn add_tap<T: Number>(
    axis: &Axis,
    out: &mut [T],
    x: &[T],
    (tap, weight): (usize, T),
    windows: Range<usize>,
) {
    if windows.is_empty() {
        return;
    }
    let x = &x[axis.place(windows.start, tap)..];
    let out = &mut out[windows];
    if axis.stride == 1 {
        out.iter_mut().zip(x).for_each(|(out, &x)| *out = out.plus(weight.times(x)));
        return;
    }
    let x = x.iter().step_by(axis.stride);
    out.iter_mut().zip(x).for_each(|(out, &x)| *out = out.plus(weight.times(x)));
}

/// All `K` taps, `STRIDE` apart from window to window: at once where all lie in the input, else one by one.
#[inline(always)]
fn add_interior<T: Number, const K: usize, const STRIDE: usize>(
    axis: &Axis,
    out: &mut [T],
    x: &[T],
    taps: [T; K],
) {
    let (start, end) = (axis.windows(0).start, axis.windows(K - 1).end);
    let from = if start < end { axis.place(start, 0) } else { 0 };
    // Each tap reads a piece of `STRIDE` elements a window, the last ones of which need not be there for all.
    let pieces = |tap: usize| x.get(from + tap..).unwrap_or_default().as_chunks::<STRIDE>().0;
    let count = pieces(K - 1).len().min(end.saturating_sub(start));
    let x_of: [&[[T; STRIDE]]; K] = std::array::from_fn(|tap| &pieces(tap)[..count]);
    for (tap, &weight) in taps.iter().enumerate() {
        let windows = axis.windows(tap);
        let border = windows.start..windows.end.min(start);
        add_tap(axis, out, x, (tap, weight), border);
    }
    let inside = &mut out[start.min(end)..][..count];
    for (at, out) in inside.iter_mut().enumerate() {
        let mut sum = *out;
        for tap in 0..K {
            sum = sum.plus(taps[tap].times(x_of[tap][at][0]));
        }
        *out = sum;
    }
    for (tap, &weight) in taps.iter().enumerate() {
        let windows = axis.windows(tap);
        let border = windows.start.max(start + count).min(windows.end)..windows.end;
        add_tap(axis, out, x, (tap, weight), border);
    }
}
