//! `ConvInteger` and `QLinearConv`: convolutions of bytes.
//!
//! ~~~text
//! channel after channel, tap after tap ──> sums of one channel of the output in 32 bits ──> as they are
//!                                          (in scratch, where the output is bytes)         or rounded to bytes
//! ~~~
//! The padding is the zero point of the input, so it adds nothing.

use super::Shape;
use crate::call::Call;
use crate::fact::Fact;
use crate::kernels::compute::quantised::{
    Quantised, by_bytes, optional, quantised, scale_at, zero_at,
};
use crate::kernels::compute::window::volume;
use crate::kernels::facts::{input_dims, unsupported};
use crate::kernels::function;
use crate::kernels::number::no_kernel_for;
use crate::kernels::vectorise::vectorised;
use lowtide_core::DType;
use lowtide_core::operator::{Kernel, KernelError, NoKernel, Operands};

pub(crate) fn integer_conv(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let shape = Shape::new(call, outputs, 1)?;
    check_count(call, 2, 0, 1)?;
    check_count(call, 3, 1, shape.all_filters())?;
    by_bytes!(call.dtype(0), call.dtype(1), sums(shape))
}

fn sums<X: Quantised, W: Quantised>(shape: Shape) -> Box<dyn Kernel> {
    function(move |operands| {
        let part = Bytes::<X, W>::read(operands, [0, 1, 2, 3])?;
        let out = operands.values_mut::<i32>(0)?;
        let plane = volume(&shape.axes, |axis| axis.output);
        if out.is_empty() {
            return Ok(());
        }
        for (at, out) in out.chunks_exact_mut(plane).enumerate() {
            out.fill(0);
            part.add(&shape, at, out);
        }
        Ok(())
    })
}

/// That an input, if it is there, has the type of another and one element or so many.
fn check_count(call: &Call<'_>, at: usize, of: usize, count: usize) -> Result<(), NoKernel> {
    if !call.has(at) {
        return Ok(());
    }
    let found: usize = input_dims(call, at)?.iter().product();
    if call.dtype(at) == call.dtype(of) && (found == 1 || found == count) {
        return Ok(());
    }
    unsupported(format!("an input {at} of {found} elements"))
}

pub(crate) fn quantised_conv(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let shape = Shape::new(call, outputs, 3)?;
    let filters = shape.all_filters();
    for (at, of, count) in [(2, 0, 1), (5, 3, filters), (1, 1, 1), (4, 4, filters), (6, 6, 1)] {
        check_count(call, at, of, count)?;
    }
    if [1, 4, 6].iter().any(|&at| call.dtype(at) != Some(DType::F32)) {
        return unsupported("scales of another type than float32");
    }
    if call.has(8) && (call.dtype(8) != Some(DType::I32) || input_dims(call, 8)? != [filters]) {
        return unsupported("a bias that has not one int32 a filter");
    }
    match outputs.first().copied().flatten().and_then(|output| output.dtype) {
        Some(DType::U8) => by_bytes!(call.dtype(0), call.dtype(3), bytes_u8(shape)),
        Some(DType::I8) => by_bytes!(call.dtype(0), call.dtype(3), bytes_i8(shape)),
        other => Err(no_kernel_for(other)),
    }
}

fn bytes_u8<X: Quantised, W: Quantised>(shape: Shape) -> Box<dyn Kernel> {
    function(move |operands| bytes::<X, W, u8>(&shape, operands))
}

fn bytes_i8<X: Quantised, W: Quantised>(shape: Shape) -> Box<dyn Kernel> {
    function(move |operands| bytes::<X, W, i8>(&shape, operands))
}

/// Scratch: the sums of one channel.
pub(crate) fn channel_sums(call: &Call<'_>) -> Fact {
    let out = crate::shapes::conv::qlinear_conv(call).ok().and_then(|mut facts| facts.pop()?.dims);
    let plane = out.and_then(|dims| dims.get(2..).map(<[_]>::to_vec));
    Fact::new(Some(DType::I32), Some(plane.unwrap_or_else(|| vec![None])))
}

fn bytes<X: Quantised, W: Quantised, Y: Quantised>(
    shape: &Shape,
    operands: &mut Operands<'_>,
) -> Result<(), KernelError> {
    let part = Bytes::<X, W>::read(operands, [0, 3, 2, 5])?;
    let bias = optional::<i32>(operands, 8)?;
    let zero = zero_at(optional::<Y>(operands, 7)?, 0);
    let scales = |at: usize| operands.input(at)?.values::<f32>();
    let (x_scale, w_scales, y_scale) =
        (scale_at(scales(1)?, 0), scales(4)?, scale_at(scales(6)?, 0));
    let (out, sums) = operands.values_and_scratch::<Y, i32>(0)?;
    let plane = volume(&shape.axes, |axis| axis.output);
    if out.is_empty() {
        return Ok(());
    }
    let sums = &mut sums[..plane];
    for (at, out) in out.chunks_exact_mut(plane).enumerate() {
        let filter = at % shape.all_filters();
        sums.fill(bias.map_or(0, |bias| bias[filter]));
        part.add(shape, at, sums);
        let scale = x_scale * scale_at(w_scales, filter) / y_scale;
        for (out, &sum) in out.iter_mut().zip(&*sums) {
            #[expect(clippy::cast_precision_loss, reason = "the nearest number will do")]
            let ratio = sum as f32 * scale;
            *out = quantised(ratio, zero);
        }
    }
    Ok(())
}

/// What is convolved.
struct Bytes<'a, X, W> {
    x: &'a [X],
    weight: &'a [W],
    x_zero: i32,
    w_zeros: Option<&'a [W]>,
}

impl<'a, X: Quantised, W: Quantised> Bytes<'a, X, W> {
    /// From the inputs at these positions: both sides, then their zero points.
    fn read(
        operands: &Operands<'a>,
        [x, w, x_zero, w_zero]: [usize; 4],
    ) -> Result<Self, KernelError> {
        Ok(Self {
            x: operands.input(x)?.values()?,
            weight: operands.input(w)?.values()?,
            x_zero: zero_at(optional::<X>(operands, x_zero)?, 0),
            w_zeros: optional(operands, w_zero)?,
        })
    }

    /// Adds the sums of channel `at` of the output, counted through all images.
    fn add(&self, shape: &Shape, at: usize, sums: &mut [i32]) {
        let (image, filter) = (at / shape.all_filters(), at % shape.all_filters());
        let first = (image * shape.groups + filter / shape.filters) * shape.channels;
        let (len, taps) =
            (volume(&shape.axes, |axis| axis.input), volume(&shape.axes, |axis| axis.kernel));
        let zero = zero_at(self.w_zeros, filter);
        for channel in 0..shape.channels {
            let x = &self.x[(first + channel) * len..][..len];
            let weight = &self.weight[(filter * shape.channels + channel) * taps..][..taps];
            for (tap, weight) in weight.iter().enumerate() {
                let weight = weight.to_i32() - zero;
                vectorised(
                    #[inline(always)]
                    || add_tap(shape, sums, x, (tap, weight), self.x_zero),
                );
            }
        }
    }
}

/// Adds what one tap contributes to all windows.
#[expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]
#[inline(always)]
fn add_tap<X: Quantised>(
    shape: &Shape,
    sums: &mut [i32],
    x: &[X],
    (tap, weight): (usize, i32),
    zero: i32,
) {
    let [depth, height, width] = &shape.axes;
    let (tap_y, tap_x) = (tap / width.kernel % height.kernel, tap % width.kernel);
    let tap_z = tap / width.kernel / height.kernel;
    let windows = width.windows(tap_x);
    if weight == 0 || windows.is_empty() {
        return;
    }
    for z in depth.windows(tap_z) {
        for y in height.windows(tap_y) {
            let row = depth.place(z, tap_z) * height.input + height.place(y, tap_y);
            let x = &x[row * width.input + width.place(windows.start, tap_x)..];
            let sums = &mut sums[(z * height.output + y) * width.output..][windows.clone()];
            for (sum, x) in sums.iter_mut().zip(x.iter().step_by(width.stride)) {
                *sum = sum.wrapping_add(weight * (x.to_i32() - zero));
            }
        }
    }
}
