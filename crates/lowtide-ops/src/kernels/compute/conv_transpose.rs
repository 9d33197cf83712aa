//! `ConvTranspose`: each element of the input puts a scaled copy of each filter down on the output.
//!
//! ~~~text
//! filters [taps, channels] x image [channels, places]  ──>  columns [taps, places]     some filters, some rows of the
//!                                                               │ each added where     image at a time: in scratch
//! output  [filters, windows spread]  <──────────────────────────┘ its tap lies
//! ~~~
//! It is the convolution whose windows slide over the output of this one.

use super::product::{Matrix, Terms, WithProducts, hidden_bytes, multiply};
use super::window::{self, Axis, SPATIAL, volume};
use crate::call::Call;
use crate::fact::Fact;
use crate::kernels::facts::{input_dims, output_dims, same_type, unsupported};
use crate::kernels::number::no_kernel_for;
use lowtide_core::DType;
use lowtide_core::operator::{Input, Kernel, KernelError, NoKernel, Operands};
use std::ops::Range;

/// Elements of scratch that are enough for good products.
const ENOUGH: usize = 1 << 18;

pub(crate) fn conv_transpose(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    same_type(call, 1)?;
    same_type(call, 2)?;
    if call.dtype(0) != Some(DType::F32) {
        return Err(no_kernel_for(call.dtype(0)));
    }
    let shape = Shape::new(call, &output_dims(outputs, 0)?)?;
    if call.has(2) && input_dims(call, 2)? != [shape.filters * shape.groups] {
        return unsupported("a bias that has not one element a filter");
    }
    let places = shape.block.0 * shape.row();
    let hidden = hidden_bytes(shape.block.1 * shape.taps(), shape.channels, places);
    let run = move |operands: &mut Operands<'_>| shape.run(operands);
    Ok(Box::new(WithProducts { run, hidden }))
}

/// The columns of one block.
pub(crate) fn columns(call: &Call<'_>) -> Fact {
    let size = || -> Option<i64> {
        let out = crate::shapes::conv::conv_transpose(call).ok()?.first()?.known_dims()?;
        let out: Vec<usize> = out.iter().filter_map(|&dim| usize::try_from(dim).ok()).collect();
        let shape = Shape::new(call, &out).ok()?;
        let column = shape.block.1.checked_mul(shape.taps())?;
        let len = column.checked_mul(shape.block.0)?.checked_mul(shape.row())?;
        i64::try_from(len).ok()
    };
    match size() {
        Some(size) => Fact::of_dims(DType::F32, &[size]),
        None => Fact::new(Some(DType::F32), Some(vec![None])),
    }
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    groups: usize,
    /// Of the input, in a group.
    channels: usize,
    /// Of the output, in a group.
    filters: usize,
    /// Those of the convolution the other way: its input is this one's output.
    axes: [Axis; SPATIAL],
    /// So many rows of the image and so many filters at a time.
    block: (usize, usize),
}

impl Shape {
    fn new(call: &Call<'_>, out: &[usize]) -> Result<Self, NoKernel> {
        let (x, w) = (input_dims(call, 0)?, input_dims(call, 1)?);
        let groups = usize::try_from(call.int_or("group", 1)).unwrap_or(0);
        let counts =
            [&x[..], &w, out].map(|dims| dims.iter().try_fold(1_usize, |a, &b| a.checked_mul(b)));
        if counts.contains(&None) {
            return unsupported("sizes that overflow");
        }
        let is_whole = x.len() == w.len() && x.len() == out.len() && x.len() >= 2;
        if groups == 0 || !is_whole || !x[1].is_multiple_of(groups) {
            return Err(NoKernel::Misfit(format!("{groups} groups of {w:?} and {x:?}")));
        }
        let mut axes = window::read(call, &out[2..], &x[2..], &w[2..])?;
        let extra = call.ints("output_padding").unwrap_or_default();
        let first = SPATIAL - (x.len() - 2);
        for (at, axis) in axes[first..].iter_mut().enumerate() {
            let extra = extra.get(at).map_or(0, |&extra| usize::try_from(extra).unwrap_or(0));
            pad(call, axis, extra);
        }
        let mut shape =
            Self { groups, channels: x[1] / groups, filters: w[1], axes, block: (1, 1) };
        let [depth, height, _] = axes;
        let row = shape.taps().saturating_mul(shape.row()).max(1);
        let places = depth.output.saturating_mul(height.output);
        let rows = (ENOUGH / row).clamp(1, places.max(1));
        let filters = (ENOUGH / row.saturating_mul(rows)).clamp(1, shape.filters.max(1));
        shape.block = (rows, filters);
        Ok(shape)
    }

    /// Elements of a filter, for one channel.
    fn taps(&self) -> usize {
        volume(&self.axes, |axis| axis.kernel)
    }

    /// Elements of a row of the image.
    fn row(&self) -> usize {
        self.axes[SPATIAL - 1].output
    }

    fn run(&self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let (x, weight) = (operands.input(0)?.values()?, operands.input(1)?.values()?);
        let bias = operands.optional(2).map(Input::values).transpose()?;
        let (out, scratch) = operands.values_and_scratch::<f32, f32>(0)?;
        let image = self.channels * volume(&self.axes, |axis| axis.output);
        let filters = self.channels * self.filters * self.taps();
        let plane = volume(&self.axes, |axis| axis.input);
        if out.is_empty() || plane == 0 {
            return Ok(());
        }
        for (at, out) in out.chunks_exact_mut(self.filters * plane).enumerate() {
            let group = at % self.groups;
            let bias = bias.map(|bias: &[f32]| &bias[group * self.filters..][..self.filters]);
            for (filter, out) in out.chunks_exact_mut(plane).enumerate() {
                out.fill(bias.map_or(0.0, |bias| bias[filter]));
            }
            let weight = &weight[group * filters..][..filters];
            self.group(&x[at * image..][..image], weight, out, scratch)?;
        }
        Ok(())
    }

    /// One group of one image.
    fn group(
        &self,
        x: &[f32],
        weight: &[f32],
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), KernelError> {
        let (taps, row) = (self.taps(), self.row());
        let plane = volume(&self.axes, |axis| axis.input);
        let rows = self.axes[0].output * self.axes[1].output;
        if taps * row * rows * self.channels == 0 {
            return Ok(());
        }
        for (block, out) in out.chunks_mut(self.block.1 * plane).enumerate() {
            let first = block * self.block.1 * taps;
            let count = out.len() / plane * taps;
            for start in (0..rows).step_by(self.block.0) {
                let some = start..rows.min(start + self.block.0);
                let places = some.len() * row;
                let columns = &mut scratch[..count * places];
                let (filters, image) = (&weight[first..], &x[start * row..]);
                let strides = (self.filters * taps, rows * row);
                let filters = part(filters, (self.channels, count), strides.0).turned();
                let image = part(image, (self.channels, places), strides.1);
                multiply(columns, filters, image, Terms::PRODUCT)?;
                for (out, columns) in out.chunks_mut(plane).zip(columns.chunks(taps * places)) {
                    self.put_down(columns, some.clone(), out);
                }
            }
        }
        Ok(())
    }

    /// Adds the columns of one filter, of some rows of the image, where they lie in the output.
    fn put_down(&self, columns: &[f32], rows: Range<usize>, out: &mut [f32]) {
        let [depth, height, width] = &self.axes;
        let len = rows.len() * width.output;
        for (tap, columns) in columns.chunks_exact(len).enumerate() {
            let (tap_z, tap_y) =
                (tap / width.kernel / height.kernel, tap / width.kernel % height.kernel);
            let tap_x = tap % width.kernel;
            let windows = width.windows(tap_x);
            for (row, values) in rows.clone().zip(columns.chunks_exact(width.output)) {
                let (z, y) = (row / height.output, row % height.output);
                let lies = depth.windows(tap_z).contains(&z) && height.windows(tap_y).contains(&y);
                if !lies || windows.is_empty() {
                    continue;
                }
                let place = depth.place(z, tap_z) * height.input + height.place(y, tap_y);
                let first = place * width.input + width.place(windows.start, tap_x);
                let out = out[first..].iter_mut().step_by(width.stride);
                out.zip(&values[windows.clone()]).for_each(|(out, value)| *out += value);
            }
        }
    }
}

/// Some columns of a matrix whose rows are further apart.
fn part(data: &[f32], (rows, cols): (usize, usize), row_stride: usize) -> Matrix<'_, f32> {
    Matrix { row_stride, ..Matrix::new(data, rows, cols) }
}

/// The padding of the output, as attributes have it, or what is left over where they say how large it is.
fn pad(call: &Call<'_>, axis: &mut Axis, extra: usize) {
    let auto = call.text("auto_pad").filter(|&auto| auto != "NOTSET");
    if call.ints("output_shape").is_none() && !matches!(auto, Some("SAME_UPPER" | "SAME_LOWER")) {
        return;
    }
    let end = axis.output.saturating_sub(1) * axis.stride + axis.reach() + extra;
    let total = end.saturating_sub(axis.input);
    axis.before = if auto == Some("SAME_UPPER") { total / 2 } else { total - total / 2 };
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::runs;

    const X: &str = "weight x 1 1 2 2 = 1 2 3 4";
    const W: &str = "weight w 1 1 2 2 = 1 10 100 1000";

    #[test]
    fn filters_are_put_down() {
        runs(
            &[X, W, "y = ConvTranspose(x, w) {strides=[2, 2]}"],
            "float32 [1, 1, 4, 4] 1 10 2 20 100 1000 200 2000 3 30 4 40 300 3000 400 4000",
        );
        runs(
            &[X, W, "weight b 1 = 0.5", "y = ConvTranspose(x, w, b)"],
            "float32 [1, 1, 3, 3] 1.5 12.5 20.5 103.5 1234.5 2040.5 300.5 3400.5 4000.5",
        );
    }

    #[test]
    fn padding_is_cut_off() {
        runs(&[X, W, "y = ConvTranspose(x, w) {pads=[1, 1, 1, 1]}"], "float32 [1, 1, 1, 1] 1234");
        runs(
            &[X, W, "y = ConvTranspose(x, w) {strides=[2, 2], output_shape=[3, 3]}"],
            "float32 [1, 1, 3, 3] 1000 200 2000 30 4 40 3000 400 4000",
        );
        runs(
            &[
                "weight x 1 1 2 = 1 2",
                "weight w 1 1 2 = 1 10",
                "y = ConvTranspose(x, w) {strides=[2], output_padding=[1]}",
            ],
            "float32 [1, 1, 5] 1 10 2 20 0",
        );
    }

    #[test]
    fn groups_and_filters_are_apart() {
        runs(
            &[
                "weight x 1 2 2 = 1 2 3 4",
                "weight w 2 2 1 = 1 10 100 1000",
                "y = ConvTranspose(x, w) {group=2}",
            ],
            "float32 [1, 4, 2] 1 2 10 20 300 400 3000 4000",
        );
        runs(
            &[
                "weight x 1 2 2 = 1 2 3 4",
                "weight w 2 2 1 = 1 10 100 1000",
                "y = ConvTranspose(x, w)",
            ],
            "float32 [1, 2, 2] 301 402 3010 4020",
        );
    }
}
