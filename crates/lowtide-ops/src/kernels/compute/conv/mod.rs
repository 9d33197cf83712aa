//! `Conv`: an image of channels and filters in, an image with a channel for each filter out.
//!
//! ~~~text
//! kernel 1, stride 1      x is a matrix [channels, h*w] as it is           ──> product
//! channel by channel      windows of one channel into one                  ──> taps along rows
//! else                    windows of x are the columns of a matrix that is
//!                         never whole: made block by block, when packed    ──> product
//! three axes, too large   one channel after the other                      ──> taps along rows
//! ~~~
//! Each group of channels is a convolution of its own.

mod columns;
mod flat;
mod quantised;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use quantised::{channel_sums, integer_conv, quantised_conv};

use self::columns::Columns;
use self::rows::add_plane;
use super::product::{Matrix, Terms, WithProducts, hidden_bytes, multiply};
use super::window::{self, Axis, Plan, SPATIAL, volume};
use crate::kernels::facts::{input_dims, output_dims, same_type, unsupported};
use crate::kernels::function;
use crate::kernels::number::{Number, by_type};
use crate::kernels::vectorise::vectorised;
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact, Input, Kernel, KernelError, NoKernel, Operands};
use rten_gemm::BiasVector;

pub(crate) fn conv(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    same_type(call, 1)?;
    same_type(call, 2)?;
    let shape = Shape::new(call, outputs, 1)?;
    if call.has(2) && input_dims(call, 2)? != [shape.all_filters()] {
        return unsupported("a bias that has not one element a filter");
    }
    if call.dtype(0) != Some(DType::F32) || shape.goes_by_rows() {
        return by_type!(call.dtype(0), [F32: f32, F64: f64], by_rows(shape));
    }
    let windows = volume(&shape.axes, |axis| axis.output);
    let hidden = hidden_bytes(shape.filters, shape.taps(), windows);
    if shape.is_pointwise() {
        let run = move |operands: &mut Operands<'_>| pointwise(&shape, operands);
        return Ok(Box::new(WithProducts { run, hidden }));
    }
    let Some(mut columns) = Columns::new(&shape) else {
        return Ok(by_rows::<f32>(shape));
    };
    let run = move |operands: &mut Operands<'_>| {
        shape.each(operands, |part, out: &mut [f32]| columns.run(&shape, &part, out))
    };
    Ok(Box::new(WithProducts { run, hidden }))
}

/// Sizes of a convolution.
#[derive(Clone, Copy, Debug)]
struct Shape {
    groups: usize,
    /// Of the input, in a group.
    channels: usize,
    /// Of the output, in a group.
    filters: usize,
    axes: [Axis; SPATIAL],
}

/// What one group of one image is convolved with.
struct Part<'a, T> {
    x: &'a [T],
    weight: &'a [T],
    bias: Option<&'a [T]>,
}

impl Shape {
    /// Of a call whose filters are input `weight`.
    fn new(call: &Call<'_>, outputs: &[Option<&Fact>], weight: usize) -> Result<Self, NoKernel> {
        let (x, w) = (input_dims(call, 0)?, input_dims(call, weight)?);
        let out = output_dims(outputs, 0)?;
        let groups = usize::try_from(call.int_or("group", 1)).unwrap_or(0);
        if groups == 0 || !w[0].is_multiple_of(groups) || x[1] != w[1] * groups {
            return Err(NoKernel::Misfit(format!("{groups} groups of {w:?} and {x:?}")));
        }
        let axes = window::read(call, &x[2..], &out[2..], &w[2..])?;
        Ok(Self { groups, channels: w[1], filters: w[0] / groups, axes })
    }

    /// Of all groups.
    fn all_filters(&self) -> usize {
        self.filters * self.groups
    }

    /// Elements of a filter.
    fn taps(&self) -> usize {
        self.channels * volume(&self.axes, |axis| axis.kernel)
    }

    /// Whether windows are elements, and all of them.
    fn is_pointwise(&self) -> bool {
        self.axes.iter().all(|axis| {
            // With padding behind the end there may be as many windows as elements, but further apart.
            let is_dense = axis.stride == 1 || axis.output == 1;
            axis.kernel == 1 && axis.input == axis.output && axis.before == 0 && is_dense
        })
    }

    /// Whether it is better, or only possible, to go along rows: one channel is not worth a product, and empty images
    /// have none.
    fn goes_by_rows(&self) -> bool {
        let is_empty = self.taps() == 0 || volume(&self.axes, |axis| axis.input) == 0;
        let is_small = self.channels == 1 && self.filters <= 2;
        is_empty || is_small || self.axes[0] != Axis::ONE && !self.is_pointwise()
    }

    /// Calls a function for each group of each image.
    fn each<T: Number>(
        &self,
        operands: &mut Operands<'_>,
        mut convolve: impl FnMut(Part<'_, T>, &mut [T]) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let (x, weight) = (operands.input(0)?.values()?, operands.input(1)?.values()?);
        let bias = operands.optional(2).map(Input::values).transpose()?;
        let out = operands.values_mut(0)?;
        let x_len = self.channels * volume(&self.axes, |axis| axis.input);
        let out_len = self.filters * volume(&self.axes, |axis| axis.output);
        let weight_len = self.filters * self.taps();
        if out_len == 0 {
            return Ok(());
        }
        for (at, out) in out.chunks_exact_mut(out_len).enumerate() {
            let group = at % self.groups;
            let part = Part {
                x: &x[at * x_len..][..x_len],
                weight: &weight[group * weight_len..][..weight_len],
                bias: bias.map(|bias: &[T]| &bias[group * self.filters..][..self.filters]),
            };
            convolve(part, out)?;
        }
        Ok(())
    }
}

fn pointwise(shape: &Shape, operands: &mut Operands<'_>) -> Result<(), KernelError> {
    let places = volume(&shape.axes, |axis| axis.output);
    shape.each(operands, |part, out| {
        let filters = Matrix::new(part.weight, shape.filters, shape.channels);
        let image = Matrix::new(part.x, shape.channels, places);
        let terms = Terms { bias: part.bias.map(BiasVector::Column), ..Terms::PRODUCT };
        multiply(out, filters, image, terms)
    })
}

fn by_rows<T: Number>(shape: Shape) -> Box<dyn Kernel> {
    let plane = volume(&shape.axes, |axis| axis.output);
    let plan = Plan::new(shape.axes);
    let is_flat = shape.channels == 1 && flat::is_flat(&plan);
    function(move |operands| {
        shape.each::<T>(operands, |part, out| {
            for (filter, out) in out.chunks_exact_mut(plane).enumerate() {
                let bias = part.bias.map_or(T::ZERO, |bias| bias[filter]);
                let len = shape.taps();
                let weight = &part.weight[filter * len..][..len];
                if let (true, [taps]) = (is_flat, weight.as_chunks().0.as_chunks().0) {
                    vectorised(
                        #[inline(always)]
                        || flat::convolve(&plan, out, part.x, taps, bias),
                    );
                    continue;
                }
                out.fill(bias);
                vectorised(
                    #[inline(always)]
                    || add_planes(&shape, &plan, out, part.x, weight),
                );
            }
            Ok(())
        })
    })
}

/// Adds what all channels of a group contribute to one channel of the output.
#[expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]
#[inline(always)]
fn add_planes<T: Number>(shape: &Shape, plan: &Plan, out: &mut [T], x: &[T], weight: &[T]) {
    let (len, taps) =
        (volume(&shape.axes, |axis| axis.input), volume(&shape.axes, |axis| axis.kernel));
    for channel in 0..shape.channels {
        add_plane(plan, out, &x[channel * len..][..len], &weight[channel * taps..][..taps]);
    }
}
