//! Indices from data to places in a tensor, or an error that names them.
//!
//! ~~~text
//! place    axis of length 4       0 .. 3 ──> 0 .. 3,  -4 .. -1 ──> 0 .. 3     else an error
//! Tuples   x [4, 3, 5]            (2, 1) ──> place 2 * 15 + 1 * 5             5 elements from there on
//! Lines    x [4, 3], axis 0       indices [2, 3]: that at (i, j) ──> place (index, j)
//! ~~~

use crate::kernels::strides::{Axis, Walk, count, strides};
use lowtide_core::operator::{KernelError, Misfit, call};

/// The place that an index, which may count from the end, has on an axis of this length.
#[inline]
pub(super) fn place(index: i64, axis: usize, len: usize) -> Result<usize, KernelError> {
    let from_start = if index < 0 { index.wrapping_add_unsigned(len as u64) } else { index };
    match usize::try_from(from_start) {
        Ok(at) if at < len => Ok(at),
        _ => Err(outside(index, axis, len)),
    }
}

#[cold]
fn outside(index: i64, axis: usize, len: usize) -> KernelError {
    KernelError::Value(format!("index {index} is outside of axis {axis}, whose length is {len}"))
}

/// An axis that was read when the kernel runs, which may count from the end.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize, KernelError> {
    call::axis(axis, rank).map_err(|misfit| KernelError::Value(misfit.0))
}

/// Places by tuples of indices, one for each of some axes.
pub(super) struct Tuples {
    /// The first of these axes.
    first: usize,
    /// Their lengths, and from element to element.
    axes: Vec<(usize, usize)>,
    /// How many elements each place has.
    pub(super) below: usize,
}

impl Tuples {
    /// Of `width` axes of a tensor from the axis `first` on.
    pub(super) fn new(dims: &[usize], first: usize, width: usize) -> Result<Self, Misfit> {
        let end = first.checked_add(width).filter(|&end| end <= dims.len());
        let misfit = || Misfit(format!("tuples of {width} indices from axis {first} of {dims:?}"));
        let end = end.ok_or_else(misfit)?;
        let axes = (first..end).map(|at| (dims[at], strides(dims)[at])).collect();
        Ok(Self { first, axes, below: count(&dims[end..]) })
    }

    /// How many indices a tuple has.
    pub(super) fn width(&self) -> usize {
        self.axes.len()
    }

    /// Where the elements of a tuple begin.
    pub(super) fn place(&self, tuple: &[i64]) -> Result<usize, KernelError> {
        let mut all = 0;
        for (at, (&index, &(len, stride))) in tuple.iter().zip(&self.axes).enumerate() {
            all += place(index, self.first + at, len)? * stride;
        }
        Ok(all)
    }
}

/// Places by an index along one axis, and along the others by where the index stands.
pub(super) struct Lines {
    axis: usize,
    len: usize,
    stride: usize,
    /// The places of indices of 0.
    walk: Walk,
}

impl Lines {
    /// Of a tensor and indices of these shapes.
    pub(super) fn new(dims: &[usize], indices: &[usize], axis: usize) -> Result<Self, Misfit> {
        let fits = |at: usize| at == axis || indices[at] <= dims[at];
        if indices.len() != dims.len() || !(0..dims.len()).all(fits) {
            return Err(Misfit(format!("indices of shape {indices:?} into data of {dims:?}")));
        }
        let (strides, mut walk) = (strides(dims), Walk::at(0));
        for (at, &len) in indices.iter().enumerate() {
            walk.push(len, if at == axis { 0 } else { strides[at].cast_signed() });
        }
        Ok(Self { axis, len: dims[axis], stride: strides[axis], walk })
    }

    /// Visits the number of each index with its place.
    #[inline]
    pub(super) fn visit<I: Copy + Into<i64>>(
        &self,
        indices: &[I],
        mut visit: impl FnMut(usize, usize),
    ) -> Result<(), KernelError> {
        let Axis { len, step } = self.walk.run();
        let runs = indices.chunks_exact(len.max(1)).zip(self.walk.runs_from(0));
        for (run, (indices, start)) in runs.enumerate() {
            let mut other = start;
            for (at, &index) in indices.iter().enumerate() {
                let along = place(index.into(), self.axis, self.len)? * self.stride;
                visit(run * len + at, other + along);
                other = other.wrapping_add_signed(step);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_may_count_from_the_end() {
        let of = |index| place(index, 1, 4).ok();
        assert_eq!([of(0), of(3), of(-1), of(-4)], [Some(0), Some(3), Some(3), Some(0)]);
        assert_eq!([of(4), of(-5), of(i64::MIN), of(i64::MAX)], [None; 4]);
        let message = "index -5 is outside of axis 1, whose length is 4";
        assert_eq!(place(-5, 1, 4).unwrap_err().to_string(), message);
        assert!(place(0, 0, 0).is_err());
    }

    #[test]
    fn tuples_name_some_axes() {
        let tuples = Tuples::new(&[2, 4, 3, 5], 1, 2).unwrap();
        assert_eq!((tuples.width(), tuples.below, tuples.place(&[2, -2])), (2, 5, Ok(35)));
        let message = "index 3 is outside of axis 2, whose length is 3";
        assert_eq!(tuples.place(&[0, 3]).unwrap_err().to_string(), message);
        assert!(Tuples::new(&[2, 4], 1, 2).is_err() && Tuples::new(&[2], usize::MAX, 2).is_err());
    }

    #[test]
    fn lines_lie_along_an_axis() {
        let lines = Lines::new(&[4, 3], &[2, 2], 0).unwrap();
        let mut found = Vec::new();
        lines.visit(&[3, 0, -1, 2], |at, place| found.push((at, place))).unwrap();
        assert_eq!(found, [(0, 9), (1, 1), (2, 9), (3, 7)]);
        assert!(Lines::new(&[4, 3], &[2, 4], 0).is_err() && Lines::new(&[4], &[1, 1], 0).is_err());
    }
}
