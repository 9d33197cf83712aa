//! `Softmax`, `LogSoftmax` and `Hardmax`: lines of shares that add up to 1.
//!
//! ~~~text
//! line of neighbours      row by row
//! line across rows        x x x x     a block of columns at a time: largest, exponentials and sums of each
//!                         x x x x
//! before version 13       everything from the axis on is one line
//! ~~~

use super::place::each_part;
use super::statistics::{centre, scale, sum};
use crate::kernels::facts::input_dims;
use crate::kernels::function;
use crate::kernels::number::{Real, by_type};
use crate::kernels::reduce::{Lines, Max, fold_row};
use lowtide_core::operator::{Call, Fact, Kernel, NoKernel, call};
use std::ops::Range;

/// Columns that are worked on at once.
const BLOCK: usize = 64;

pub(crate) fn softmax(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    let lines = lines(call)?;
    by_type!(call.dtype(0), [F32: f32, F64: f64], shares(lines))
}

pub(crate) fn log_softmax(
    call: &Call<'_>,
    _: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let lines = lines(call)?;
    by_type!(call.dtype(0), [F32: f32, F64: f64], logarithms(lines))
}

pub(crate) fn hardmax(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    let lines = lines(call)?;
    by_type!(call.dtype(0), [F32: f32, F64: f64], winners(lines))
}

fn lines(call: &Call<'_>) -> Result<Lines, NoKernel> {
    let dims = input_dims(call, 0)?;
    if dims.is_empty() {
        return Ok(Lines { outer: 1, along: 1, inner: 1 });
    }
    if call.opset >= 13 {
        return Ok(Lines::of(&dims, call::axis(call.int_or("axis", -1), dims.len())?));
    }
    let axis = call.int_or("axis", 1);
    let is_end = usize::try_from(axis).is_ok_and(|axis| axis == dims.len());
    let axis = if is_end { dims.len() } else { call::axis(axis, dims.len())? };
    let (outer, along) = dims.split_at(axis);
    Ok(Lines { outer: outer.iter().product(), along: along.iter().product(), inner: 1 })
}

fn shares<T: Real>(lines: Lines) -> Box<dyn Kernel> {
    each_slab::<T>(lines, |slab, inner| match inner {
        1 => row_of_shares(slab),
        _ => each_block(slab, inner, |block| {
            let most = block.largest();
            block.each(|x, col| x - most[col]);
            block.rows().for_each(T::exp_all);
            let sums = block.sums();
            block.each(|x, col| x / sums[col]);
        }),
    })
}

fn logarithms<T: Real>(lines: Lines) -> Box<dyn Kernel> {
    each_slab::<T>(lines, |slab, inner| match inner {
        1 => row_of_logarithms(slab),
        _ => each_block(slab, inner, |block| {
            let most = block.largest();
            let sums = block.sums_of_exponentials(&most).map(|sum| T::of_f64(sum.to_f64().ln()));
            block.each(|x, col| x - most[col] - sums[col]);
        }),
    })
}

fn winners<T: Real>(lines: Lines) -> Box<dyn Kernel> {
    each_slab::<T>(lines, |slab, inner| {
        each_block(slab, inner, |block| {
            let mut most = block.largest().map(Some);
            block.each(|x, col| {
                // Of equals the first one wins.
                let wins = most[col].take_if(|most| *most == x).is_some();
                if wins { T::ONE } else { T::ZERO }
            });
        });
    })
}

/// A kernel that does something with each part of the tensor that whole lines lie in.
fn each_slab<T: Real>(
    lines: Lines,
    work: impl Fn(&mut [T], usize) + Send + 'static,
) -> Box<dyn Kernel> {
    function(move |operands| each_part(operands, lines.slab(), |_, slab| work(slab, lines.inner)))
}

pub(crate) fn row_of_shares<T: Real>(row: &mut [T]) {
    centre(row, fold_row::<T, Max>(row), T::ONE);
    T::exp_all(row);
    scale(row, T::of_f64(sum(row).recip()), T::ZERO);
}

fn row_of_logarithms<T: Real>(row: &mut [T]) {
    let most = fold_row::<T, Max>(row);
    let mut buffer = [T::ZERO; BLOCK];
    let parts = row.chunks(BLOCK).map(|part| {
        let buffer = &mut buffer[..part.len()];
        buffer.copy_from_slice(part);
        centre(buffer, most, T::ONE);
        T::exp_all(buffer);
        sum(buffer)
    });
    let logarithm = T::of_f64(parts.sum::<f64>().ln());
    centre(row, most, T::ONE);
    centre(row, logarithm, T::ONE);
}

/// Some columns of lines that lie across rows.
struct Block<'a, T> {
    slab: &'a mut [T],
    inner: usize,
    cols: Range<usize>,
}

fn each_block<T: Real>(slab: &mut [T], inner: usize, work: impl Fn(&mut Block<'_, T>)) {
    for start in (0..inner).step_by(BLOCK) {
        let cols = start..inner.min(start + BLOCK);
        work(&mut Block { slab: &mut *slab, inner, cols });
    }
}

impl<T: Real> Block<'_, T> {
    fn rows(&mut self) -> impl Iterator<Item = &mut [T]> {
        let cols = self.cols.clone();
        self.slab.chunks_exact_mut(self.inner).map(move |row| &mut row[cols.clone()])
    }

    /// Replaces each element.
    fn each(&mut self, mut new: impl FnMut(T, usize) -> T) {
        for row in self.rows() {
            for (col, x) in row.iter_mut().enumerate() {
                *x = new(*x, col);
            }
        }
    }

    fn largest(&mut self) -> [T; BLOCK] {
        let mut most = [T::LOWEST; BLOCK];
        for row in self.rows() {
            for (most, &mut x) in most.iter_mut().zip(row) {
                *most = if x > *most || x.is_nan() { x } else { *most };
            }
        }
        most
    }

    fn sums(&mut self) -> [T; BLOCK] {
        let mut sums = [T::ZERO; BLOCK];
        for row in self.rows() {
            for (sum, &mut x) in sums.iter_mut().zip(row) {
                *sum += x;
            }
        }
        sums
    }

    fn sums_of_exponentials(&mut self, most: &[T; BLOCK]) -> [T; BLOCK] {
        let mut sums = [T::ZERO; BLOCK];
        for row in self.rows() {
            let mut buffer = [T::ZERO; BLOCK];
            let buffer = &mut buffer[..row.len()];
            for ((buffer, &mut x), &most) in buffer.iter_mut().zip(row).zip(most) {
                *buffer = x - most;
            }
            T::exp_all(buffer);
            for (sum, &x) in sums.iter_mut().zip(&*buffer) {
                *sum += x;
            }
        }
        sums
    }
}
