//! Rows of the output from rows of the input, with the tables of taps of all axes.
//!
//! ~~~text
//! outer axes   row a * 0.25 + row b * 0.75     each combination of taps names a row of the input
//! last axis    x[3] * 0.5 + x[4] * 0.5         within it
//! ~~~

use super::taps::Taps;
use crate::kernels::number::{Number, Real};

/// Each element is one of the input.
pub(super) fn nearest<T: Number>(axes: &[Taps], x: &[T], out: &mut [T], outside: T) {
    let Some((last, outer)) = axes.split_last() else {
        out.copy_from_slice(x);
        return;
    };
    if out.is_empty() {
        return;
    }
    for (at, row) in out.chunks_exact_mut(last.output).enumerate() {
        let place = |(rows, at, row): (usize, usize, usize), axis: &Taps| {
            let index = axis.index[at % axis.output];
            (rows * axis.input, at / axis.output, row + index * rows)
        };
        let (_, _, place) = outer.iter().rev().fold((1, at, 0), place);
        let from = &x[place * last.input..][..last.input];
        if last.is_plain {
            row.copy_from_slice(from);
        } else {
            row.iter_mut().zip(&last.index).for_each(|(out, &index)| *out = from[index]);
        }
        set_outside(axes, at, row, outside);
    }
}

/// Each element is made of several of the input.
pub(super) fn interpolate<T: Real>(axes: &[Taps], x: &[T], out: &mut [T], outside: T) {
    let Some((last, outer)) = axes.split_last() else {
        out.copy_from_slice(x);
        return;
    };
    if out.is_empty() {
        return;
    }
    for (at, row) in out.chunks_exact_mut(last.output).enumerate() {
        row.fill(T::ZERO);
        add_rows(outer, at, &mut |place, weight| {
            let from = &x[place * last.input..][..last.input];
            add_row(last, from, row, T::of_f64(weight.into()));
        });
        set_outside(axes, at, row, outside);
    }
}

/// Calls a function for each row of the input that a row of the output is made of, with its weight.
fn add_rows(outer: &[Taps], at: usize, add: &mut dyn FnMut(usize, f32)) {
    let Some((axis, outer)) = outer.split_last() else {
        add(0, 1.0);
        return;
    };
    for (index, weight) in axis.of(at % axis.output) {
        add_rows(outer, at / axis.output, &mut |place, more| {
            add(place * axis.input + index, weight * more);
        });
    }
}

fn add_row<T: Real>(axis: &Taps, from: &[T], row: &mut [T], weight: T) {
    if axis.is_plain {
        row.iter_mut().zip(from).for_each(|(out, &x)| *out += weight * x);
        return;
    }
    let (index, weights) =
        (axis.index.chunks_exact(axis.count), axis.weight.chunks_exact(axis.count));
    for ((out, index), weights) in row.iter_mut().zip(index).zip(weights) {
        let mut sum = T::ZERO;
        for (&index, &weight) in index.iter().zip(weights) {
            sum += T::of_f64(weight.into()) * from[index];
        }
        *out += weight * sum;
    }
}

/// Elements that are taken from beyond the input have a value of their own.
fn set_outside<T: Copy>(axes: &[Taps], at: usize, row: &mut [T], outside: T) {
    let Some((last, outer)) = axes.split_last() else { return };
    let beyond = |(at, is): (usize, bool), axis: &Taps| {
        (at / axis.output, is || axis.is_outside[at % axis.output])
    };
    if outer.iter().rev().fold((at, false), beyond).1 {
        row.fill(outside);
        return;
    }
    for (out, &is_outside) in row.iter_mut().zip(&last.is_outside) {
        if is_outside {
            *out = outside;
        }
    }
}
