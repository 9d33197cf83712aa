//! [`row_times`]: a row and a matrix in, a row out.
//!
//! ~~~text
//! row after row      v0 * [b b b b b b b]        sums of a block of columns stay in the cache while
//!                  + v1 * [b b b b b b b] ...    all rows are added to them
//! column after column    v . [b b b b b]         32 sums side by side, added up at the end
//! ~~~
//! The order of additions depends on the sizes alone. Memory is read once, from front to back: it is what takes time.

#![expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]

use super::product::{Matrix, Terms, bias_at};
use crate::kernels::vectorise::vectorised;

/// Columns whose sums are kept at once.
const BLOCK: usize = 1024;
/// Sums of one product of two vectors that are kept at once.
const LANES: usize = 32;

/// `alpha * row * b + beta * out + bias`.
pub(super) fn row_times(out: &mut [f32], row: &[f32], b: Matrix<'_, f32>, terms: Terms<'_>) {
    let row = &row[..b.rows];
    if b.row_stride == 1 && b.col_stride != 1 {
        vectorised(
            #[inline(always)]
            || by_columns(out, row, b, terms),
        );
        return;
    }
    for (block, out) in out.chunks_mut(BLOCK).enumerate() {
        vectorised(
            #[inline(always)]
            || by_rows(out, row, b, block * BLOCK, terms),
        );
    }
}

#[inline(always)]
fn by_columns(out: &mut [f32], row: &[f32], b: Matrix<'_, f32>, terms: Terms<'_>) {
    for (at, out) in out.iter_mut().enumerate() {
        let column = &b.data[at * b.col_stride..][..row.len()];
        *out = finished(dot(row, column), *out, at, terms);
    }
}

#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    for (lane, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        sums[lane] += a * b;
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

#[inline(always)]
fn by_rows(out: &mut [f32], row: &[f32], b: Matrix<'_, f32>, from: usize, terms: Terms<'_>) {
    let mut sums = [0.0; BLOCK];
    let sums = &mut sums[..out.len()];
    let part =
        |inner: usize| (b.data[inner * b.row_stride..].iter().step_by(b.col_stride)).skip(from);
    if b.col_stride == 1 {
        add_rows(sums, row, b, from);
    } else {
        for (inner, &factor) in row.iter().enumerate() {
            sums.iter_mut().zip(part(inner)).for_each(|(sum, value)| *sum += factor * value);
        }
    }
    for (at, (out, &sum)) in out.iter_mut().zip(&*sums).enumerate() {
        *out = finished(sum, *out, from + at, terms);
    }
}

/// Four rows at a time, so that the sums are read and written a quarter as often.
#[inline(always)]
fn add_rows(sums: &mut [f32], row: &[f32], b: Matrix<'_, f32>, from: usize) {
    let count = sums.len();
    let part = |inner: usize| &b.data[inner * b.row_stride + from..][..count];
    let (fours, rest) = row.as_chunks::<4>();
    for (at, v) in fours.iter().enumerate() {
        let rows = [part(4 * at), part(4 * at + 1), part(4 * at + 2), part(4 * at + 3)];
        for col in 0..count {
            let pairs = (v[0] * rows[0][col] + v[1] * rows[1][col])
                + (v[2] * rows[2][col] + v[3] * rows[3][col]);
            sums[col] += pairs;
        }
    }
    for (at, &factor) in rest.iter().enumerate() {
        let values = part(4 * fours.len() + at);
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
    }
}

#[inline(always)]
fn finished(sum: f32, old: f32, col: usize, terms: Terms<'_>) -> f32 {
    let Terms { alpha, beta, bias } = terms;
    // What was there is not read unless it counts: it may be anything.
    let left = if beta == 0.0 { 0.0 } else { beta * old };
    alpha * sum + left + bias.map_or(0.0, |bias| bias_at(bias, 0, col))
}
