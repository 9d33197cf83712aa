//! [`Columns`]: windows of an image as the columns of a matrix that is never whole.
//!
//! ~~~text
//!                 window 0   window 1 ..          element = image[row offset + column offset],
//! c0, tap (0,0)    x x x      x x x               0 where that is in the padding
//! c0, tap (0,1)    x x x      x x x
//! ..
//! ~~~
//! rten-gemm reads it when it packs blocks of it; here are the offsets, which are made once.

use super::{Part, Shape};
use crate::kernels::compute::product::{self, Terms};
use crate::kernels::compute::window::{Axis, volume};
use lowtide_core::operator::KernelError;
use rten_gemm::{BiasVector, ColOffsets, GemmExecutor, GemmInputA, GemmInputB, Im2Col, RowOffsets};
use rten_tensor::NdTensorView;
use std::mem::take;

/// More offsets than this are not worth their memory.
const MOST: usize = 1 << 24;

pub(super) struct Columns {
    rows: RowOffsets,
    cols: ColOffsets,
    /// The last places in the image, times the distance of its elements.
    last: (i32, i32),
}

impl Columns {
    /// `None` if offsets do not fit into the integers that rten-gemm takes.
    pub(super) fn new(shape: &Shape) -> Option<Self> {
        let [_, y, x] = shape.axes;
        let row = x.input;
        if shape.taps() > MOST || y.output * x.output > MOST {
            return None;
        }
        // The furthest that any sum of offsets reaches, with padding.
        let furthest = (y.input + y.before + y.after + y.reach()).checked_mul(row)?;
        let furthest = furthest.checked_add(x.before + x.after + x.reach() + row)?;
        i32::try_from(furthest.checked_add(shape.channels.checked_mul(y.input * row)?)?).ok()?;
        let gemm = GemmExecutor::<f32>::new();
        Some(Self {
            rows: row_offsets(shape, gemm.im2col_row_count_step()),
            cols: col_offsets(shape, gemm.im2col_col_count_step()),
            last: (offset((y.input - 1) * row, 0), offset(x.input - 1, 0)),
        })
    }

    /// Convolves one group of one image.
    pub(super) fn run(
        &mut self,
        shape: &Shape,
        part: &Part<'_, f32>,
        out: &mut [f32],
    ) -> Result<(), KernelError> {
        let [_, y, x] = shape.axes;
        let failed = |error| KernelError::Value(format!("a convolution: {error}"));
        let view = |dims, data| NdTensorView::try_from_data(dims, data);
        let image = view([shape.channels, y.input, x.input], part.x).map_err(failed)?;
        let filters = NdTensorView::try_from_data([shape.filters, shape.taps()], part.weight);
        let filters = GemmInputA::Unpacked(filters.map_err(failed)?);
        // It wants to own the offsets; they are lent to it and taken back.
        let columns = Im2Col {
            image,
            row_offsets: RowOffsets {
                chan: take(&mut self.rows.chan),
                y: take(&mut self.rows.y),
                x: take(&mut self.rows.x),
            },
            col_offsets: ColOffsets { y: take(&mut self.cols.y), x: take(&mut self.cols.x) },
            n_cols: volume(&shape.axes, |axis| axis.output),
            n_rows: shape.taps(),
            max_y_offset: self.last.0,
            max_x_offset: self.last.1,
        };
        let terms = Terms { bias: part.bias.map(BiasVector::Column), ..Terms::PRODUCT };
        let done = product::run(out, filters, GemmInputB::Im2Col(&columns), terms);
        self.rows = columns.row_offsets;
        self.cols = columns.col_offsets;
        done
    }
}

/// A distance in the image. All of them were found to fit.
fn offset(place: usize, before: usize) -> i32 {
    let signed = |value: usize| i32::try_from(value).expect("offsets fit");
    signed(place) - signed(before)
}

fn row_offsets(shape: &Shape, step: usize) -> RowOffsets {
    let [_, y, x] = shape.axes;
    let mut rows = RowOffsets { chan: Vec::new(), y: Vec::new(), x: Vec::new() };
    let len = shape.taps().next_multiple_of(step);
    for at in 0..len {
        let (tap, channel) = (at % (y.kernel * x.kernel), at / (y.kernel * x.kernel));
        // Rows behind the last one only fill up a step.
        let channel = channel.min(shape.channels - 1);
        rows.chan.push(offset(channel * y.input * x.input, 0));
        rows.y.push(offset(tap / x.kernel * y.dilation * x.input, 0));
        rows.x.push(offset(tap % x.kernel * x.dilation, 0));
    }
    rows
}

fn col_offsets(shape: &Shape, step: usize) -> ColOffsets {
    let [_, y, x] = shape.axes;
    let mut cols = ColOffsets { y: Vec::new(), x: Vec::new() };
    let begin = |axis: &Axis, window: usize| (window * axis.stride, axis.before);
    let count = y.output * x.output;
    for at in 0..count.next_multiple_of(step) {
        // Columns behind the last one lie below the image, where all is padding.
        let (place, before) = if at < count { begin(&y, at / x.output) } else { (y.input, 0) };
        cols.y.push(offset(place * x.input, before * x.input));
        let (place, before) = begin(&x, at % x.output);
        cols.x.push(offset(place, before));
    }
    cols
}
