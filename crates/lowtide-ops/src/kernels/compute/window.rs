//! [`Axis`]: windows along one axis, in numbers: which of their taps lie in the input, and where.
//!
//! ~~~text
//! pad |x x x x x x| pad        kernel 3, stride 2, before 1
//!  [0 1 2]                     window 0: taps 1..3        tap 0: windows 1..
//!      [0 1 2]                 window 1: taps 0..3
//! ~~~
//! Of tensors with one or two spatial axes, the others have one element and one window.

use crate::kernels::facts::unsupported;
use lowtide_core::operator::{Call, NoKernel};
use std::ops::Range;

/// Spatial axes that kernels have loops for, the innermost last.
pub(super) const SPATIAL: usize = 3;

/// More windows, elements or steps of one axis than any image has: their products do not overflow, and tables of them
/// fit into memory.
const MOST: usize = 1 << 24;

/// Windows along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// Elements that they slide over.
    pub(super) input: usize,
    /// How many windows there are.
    pub(super) output: usize,
    /// Taps of a window.
    pub(super) kernel: usize,
    /// From a window to the next.
    pub(super) stride: usize,
    /// From a tap to the next.
    pub(super) dilation: usize,
    /// Padding before the first element.
    pub(super) before: usize,
    /// Padding behind the last element.
    pub(super) after: usize,
}

impl Axis {
    /// One window over one element.
    pub(super) const ONE: Self =
        Self { input: 1, output: 1, kernel: 1, stride: 1, dilation: 1, before: 0, after: 0 };

    /// The taps of a window that lie in the input.
    pub(super) fn taps(&self, window: usize) -> Range<usize> {
        self.within(window * self.stride, self.dilation, self.kernel)
    }

    /// The windows whose tap lies in the input.
    pub(super) fn windows(&self, tap: usize) -> Range<usize> {
        self.within(tap * self.dilation, self.stride, self.output)
    }

    /// Which of `count` places from `start` on, `step` apart in the padded input, are in the input itself.
    fn within(&self, start: usize, step: usize, count: usize) -> Range<usize> {
        let first = self.before.saturating_sub(start).div_ceil(step);
        let end = (self.before + self.input).saturating_sub(start).div_ceil(step).min(count);
        first.min(end)..end
    }

    /// Where in the input a tap of a window lies, if it does.
    pub(super) fn place(&self, window: usize, tap: usize) -> usize {
        window * self.stride + tap * self.dilation - self.before
    }

    /// How far a window reaches.
    pub(super) fn reach(&self) -> usize {
        self.kernel.saturating_sub(1) * self.dilation + 1
    }
}

/// Windows over all spatial axes, with what loops over them ask again and again.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) axes: [Axis; SPATIAL],
    /// The taps of each window that lie in the input, along the two outer axes.
    taps: [Vec<Range<usize>>; SPATIAL - 1],
    /// The windows of each tap that lies in the input, along the innermost axis.
    pub(super) windows: Vec<Range<usize>>,
    /// The windows along it all taps of which do, and where the first one begins.
    pub(super) interior: Range<usize>,
    pub(super) from: usize,
    /// The other ones, with the taps that do.
    pub(super) border: Vec<(usize, Range<usize>)>,
}

impl Plan {
    pub(super) fn new(axes: [Axis; SPATIAL]) -> Self {
        let [depth, height, width] = axes;
        let taps = |axis: Axis| (0..axis.output).map(|window| axis.taps(window)).collect();
        let windows: Vec<_> = (0..width.kernel).map(|tap| width.windows(tap)).collect();
        let start = windows.iter().map(|windows| windows.start).max().unwrap_or(0);
        let end = windows.iter().map(|windows| windows.end).min().unwrap_or(0);
        let interior = start.min(width.output)..end.max(start.min(width.output));
        let from = if interior.is_empty() { 0 } else { width.place(start, 0) };
        let outside = (0..width.output).filter(|window| !interior.contains(window));
        let border = outside.map(|window| (window, width.taps(window))).collect();
        Self { axes, taps: [taps(depth), taps(height)], windows, interior, from, border }
    }

    /// Calls a function with each row of the output, a row of the first tap of the inner of the two outer axes that
    /// lies in the input, the first tap of both, and how many taps follow along the inner one.
    #[expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]
    #[inline(always)]
    pub(super) fn each_row<U>(&self, out: &mut [U], mut call: impl FnMut(&mut [U], Rows)) {
        let [depth, height, width] = &self.axes;
        let mut out = out.chunks_exact_mut(width.output.max(1));
        for (z, taps_z) in self.taps[0].iter().enumerate() {
            for (y, taps_y) in self.taps[1].iter().enumerate() {
                let Some(out) = out.next() else { return };
                if taps_y.is_empty() {
                    continue;
                }
                for tap_z in taps_z.clone() {
                    let place =
                        depth.place(z, tap_z) * height.input + height.place(y, taps_y.start);
                    let tap = tap_z * height.kernel + taps_y.start;
                    call(out, Rows { place, tap, count: taps_y.len() });
                }
            }
        }
    }
}

/// Rows of the input that a row of the output is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// The first one; the others lie `dilation` rows apart.
    pub(super) place: usize,
    /// The row of taps that belongs to it; the others are its neighbours.
    pub(super) tap: usize,
    pub(super) count: usize,
}

/// The number of elements of the inputs, outputs and kernels of these axes.
pub(super) fn volume(axes: &[Axis; SPATIAL], of: fn(&Axis) -> usize) -> usize {
    axes.iter().map(of).product()
}

/// The windows of a call over spatial axes of these lengths, with so many of them, and of this size.
pub(super) fn read(
    call: &Call<'_>,
    input: &[usize],
    output: &[usize],
    kernel: &[usize],
) -> Result<[Axis; SPATIAL], NoKernel> {
    let rank = input.len();
    if rank > SPATIAL {
        return unsupported(format!("{rank} spatial axes"));
    }
    let is_large = |&len: &usize| len > MOST;
    if input.iter().chain(output).chain(kernel).any(is_large) {
        return unsupported(format!("windows of {kernel:?} over {input:?}"));
    }
    let mut axes = [Axis::ONE; SPATIAL];
    for (at, axis) in axes[SPATIAL - rank..].iter_mut().enumerate() {
        let entry = |name: &str, at: usize| call.ints(name).map(|list| list.get(at).copied());
        let (stride, dilation) = (entry("strides", at), entry("dilations", at));
        axis.input = input[at];
        axis.output = output[at];
        axis.kernel = kernel[at];
        axis.stride = size(stride.unwrap_or(Some(1)))?;
        axis.dilation = size(dilation.unwrap_or(Some(1)))?;
        if axis.kernel == 0 || axis.stride == 0 || axis.dilation == 0 {
            return Err(NoKernel::Misfit("a window, stride or dilation of 0".to_owned()));
        }
        let pads = (entry("pads", at), entry("pads", rank + at));
        let pads = (size(pads.0.unwrap_or(Some(0)))?, size(pads.1.unwrap_or(Some(0)))?);
        (axis.before, axis.after) = match call.text("auto_pad") {
            Some("SAME_UPPER") => shared(axis, |total| total / 2),
            Some("SAME_LOWER") => shared(axis, |total| total.div_ceil(2)),
            Some("VALID") => (0, 0),
            _ => pads,
        };
    }
    Ok(axes)
}

/// An attribute as a size.
fn size(value: Option<i64>) -> Result<usize, NoKernel> {
    let size = value.and_then(|value| usize::try_from(value).ok()).filter(|&size| size <= MOST);
    size.ok_or_else(|| NoKernel::Unsupported("such strides, dilations or pads".to_owned()))
}

/// Just as much padding as the windows need, so much of it before the first element.
fn shared(axis: &Axis, before: fn(usize) -> usize) -> (usize, usize) {
    let end = axis.output.saturating_sub(1) * axis.stride + axis.reach();
    let total = end.saturating_sub(axis.input);
    (before(total), total - before(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_and_windows_are_two_sides_of_the_same() {
        let axis =
            Axis { input: 6, output: 3, kernel: 3, stride: 2, before: 1, after: 1, ..Axis::ONE };
        assert_eq!((axis.taps(0), axis.taps(1)), (1..3, 0..3));
        assert_eq!((axis.windows(0), axis.windows(2)), (1..3, 0..3));
        assert_eq!((axis.place(0, 1), axis.place(2, 2)), (0, 5));
    }

    #[test]
    fn a_window_in_the_padding_has_no_tap() {
        let axis = Axis { input: 1, output: 4, kernel: 2, before: 3, after: 1, ..Axis::ONE };
        assert_eq!((axis.taps(0), axis.taps(2)), (2..2, 1..2));
        assert_eq!(Axis { input: 0, ..axis }.windows(0), 3..3);
    }
}
