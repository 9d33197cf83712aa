//! [`copy`]: the elements along a walk, side by side; and data to the output, unless it lies there.
//!
//! ~~~text
//! the fastest axis lies in one piece     runs are copied
//! another axis does                      a matrix is turned:   a b c d      a e
//!                                        squares of 16 by 16   e f g h ──>  b f
//!                                        on the stack, so that              c g
//!                                        whole lines are read and written   d h
//! ~~~
//! Where there are only a few rows or columns, they are read or written one after the other.

use super::lists::check;
use crate::kernels::strides::{Axis, Walk};
use crate::kernels::types::{elements, elements_mut};
use bytemuck::Pod;
use lowtide_core::operator::{KernelError, Operands};

/// Elements along each side of a square.
const SIDE: usize = 16;

/// Of fewer rows or columns, squares would be mostly empty.
const FEW: usize = 8;

/// Fills `to` with the elements of `from` along a walk, which has as many places.
pub(super) fn copy<E: Pod>(walk: &Walk, from: &[E], to: &mut [E]) {
    if to.is_empty() {
        return;
    }
    match turned(walk) {
        Some(turned) => turned.copy(from, to),
        None => walk.read(from, to),
    }
}

/// Rows and columns that change places, and the walk through all such matrices.
struct Turned {
    /// Far apart in the output, side by side in the input.
    rows: usize,
    /// Side by side in the output, far apart in the input.
    columns: Axis,
    /// From row to row of the output.
    pitch: usize,
    from: Walk,
    to: Walk,
}

/// If another axis than the fastest one is in one piece in the input: that axis and the fastest one.
fn turned(walk: &Walk) -> Option<Turned> {
    let axes = walk.axes();
    let (&columns, outer) = axes.split_last()?;
    let at = outer.iter().position(|axis| axis.step == 1)?;
    if matches!(columns.step, 0 | 1) || axes[at].len < FEW {
        return None;
    }
    let (mut from, mut to) = (Walk::at(walk.start()), Walk::at(0));
    let pitch = |at: usize| axes[at + 1..].iter().map(|axis| axis.len).product::<usize>();
    for (index, axis) in outer.iter().enumerate().filter(|row| row.0 != at) {
        from.push(axis.len, axis.step);
        to.push(axis.len, pitch(index).cast_signed());
    }
    Some(Turned { rows: axes[at].len, columns, pitch: pitch(at), from, to })
}

impl Turned {
    fn copy<E: Pod>(&self, from: &[E], to: &mut [E]) {
        let Self { rows, columns, pitch, .. } = *self;
        for (start, target) in self.from.places().zip(self.to.places()) {
            if columns.len < FEW {
                self.interleave(from, start, &mut to[target..]);
                continue;
            }
            for row in (0..rows).step_by(SIDE) {
                for column in (0..columns.len).step_by(SIDE) {
                    let step = columns.step.wrapping_mul(column.cast_signed());
                    let at = (start + row).wrapping_add_signed(step);
                    let size = (SIDE.min(rows - row), SIDE.min(columns.len - column));
                    self.square(from, at, &mut to[target + row * pitch + column..], size);
                }
            }
        }
    }

    /// Lays a few long columns side by side: each is read in one piece, and rows are written while they are near.
    fn interleave<E: Pod>(&self, from: &[E], start: usize, to: &mut [E]) {
        let Self { rows, columns, pitch, .. } = *self;
        let block = SIDE * SIDE;
        let rows = &mut to[..(rows - 1) * pitch + columns.len];
        for (index, rows) in rows.chunks_mut(block * pitch).enumerate() {
            let mut at = start + index * block;
            for column in 0..columns.len {
                let targets = rows[column..].iter_mut().step_by(pitch);
                targets.zip(&from[at..]).for_each(|(to, from)| *to = *from);
                at = at.wrapping_add_signed(columns.step);
            }
        }
    }

    /// Turns one square: its columns from `at` on, to the beginning of `to`.
    fn square<E: Pod>(&self, from: &[E], at: usize, to: &mut [E], size: (usize, usize)) {
        let (height, width) = size;
        let mut square = [[E::zeroed(); SIDE]; SIDE];
        let mut at = at;
        for column in &mut square[..width] {
            column[..height].copy_from_slice(&from[at..at + height]);
            at = at.wrapping_add_signed(self.columns.step);
        }
        for (row, to) in to.chunks_mut(self.pitch).enumerate().take(height) {
            for (to, column) in to.iter_mut().zip(&square[..width]) {
                *to = column[row];
            }
        }
    }
}

/// Copies input 0 to output 0, unless it lies there already.
pub(crate) fn copy_data<E: Pod>(operands: &mut Operands<'_>) -> Result<(), KernelError> {
    let input = operands.input(0)?;
    if input.is_in(0) {
        return Ok(());
    }
    let (from, to) = (elements::<E>(input)?, elements_mut::<E>(operands, 0)?);
    check("elements", &from.len(), &to.len())?;
    to.copy_from_slice(from);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies along a walk as a whole, and compares with an element at a time.
    #[track_caller]
    fn check(start: usize, axes: &[(usize, isize)], len: u32) {
        let mut walk = Walk::at(start);
        for &(len, step) in axes {
            walk.push(len, step);
        }
        let from: Vec<u32> = (0..len).collect();
        let mut to = vec![u32::MAX; walk.len()];
        copy(&walk, &from, &mut to);
        assert_eq!(to, walk.places().map(|at| from[at]).collect::<Vec<_>>());
    }

    #[test]
    fn matrices_of_any_size_are_turned() {
        check(0, &[(3, 1), (2, 3)], 6);
        check(0, &[(16, 1), (32, 16)], 512);
        check(0, &[(17, 1), (33, 17)], 561);
        check(0, &[(2, 600), (20, 1), (30, 20)], 1200);
        check(0, &[(20, 1), (2, 600), (30, 20)], 1200);
        check(0, &[(600, 1), (3, 600)], 1800);
        check(0, &[(3, 1), (600, 3)], 1800);
        check(0, &[(20, 1), (3, 60), (3, 20)], 180);
    }

    #[test]
    fn axes_may_run_backward_or_stand_still() {
        check(560, &[(17, -1), (33, -17)], 561);
        check(544, &[(17, 1), (33, -17)], 561);
        check(0, &[(17, 1), (3, 0), (33, 17)], 561);
        check(0, &[(4, 0), (5, 1)], 5);
        check(0, &[(0, 1), (5, 7)], 5);
    }
}
