//! `DynamicQuantizeLSTM`: an LSTM whose weights are bytes, and whose inputs and states become bytes on the way.
//!
//! ~~~text
//! x ──range of all of it──> scale, zero point ──> bytes ──product with w──> sums * scale of x * scale of w ──> gates
//! h ──range of a step─────> ...
//! ~~~
//! Weights are `[directions, inner, gates]`. Their scales and zero points are one a direction or one a gate. Sums are
//! exact in 32 bits. What lies outside of [`Bytes`] is that of `LSTM`.

use super::at;
use super::layer::{Given, Layer, scratch};
use super::lstm::Lstm;
use super::shape::{Order, Shape};
use super::weights::{Gates, Start, Weights};
use crate::kernels::compute::product::Matrix;
use crate::kernels::compute::quantised::{
    Quantised, by_bytes, each_block, own_range, quantised, scale_at,
};
use crate::kernels::facts::{input_dims, unsupported};
use crate::kernels::function;
use crate::kernels::types::Made;
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact, Kernel, KernelError, NoKernel, Operand, Operands};

const W_SCALE: usize = 8;
const W_ZERO: usize = 9;
const R_SCALE: usize = 10;
const R_ZERO: usize = 11;

pub(crate) fn dynamic_quantize_lstm(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let shape = Shape::new(call, outputs, 4, Order::InnerFirst)?;
    if shape.is_batch_first {
        return unsupported("the batch as the first axis");
    }
    for at in [at::X, at::BIAS, at::H, at::C, at::PEEPHOLES, W_SCALE, R_SCALE] {
        if call.has(at) && call.dtype(at) != Some(DType::F32) {
            return unsupported(format!("an input {at} that is not float32"));
        }
    }
    check_scales(call, &shape, [at::W, W_SCALE, W_ZERO])?;
    check_scales(call, &shape, [at::R, R_SCALE, R_ZERO])?;
    let cell = Lstm::read(call, shape.directions)?;
    by_bytes!(call.dtype(at::W), call.dtype(at::R), kernel(shape, cell))
}

/// That scales and zero points are one a direction or one a gate.
fn check_scales(
    call: &Call<'_>,
    shape: &Shape,
    [of, scale, zero]: [usize; 3],
) -> Result<(), NoKernel> {
    let Shape { directions, gates, .. } = *shape;
    let scales = input_dims(call, scale)?;
    if scales != [directions] && scales != [directions, gates] {
        let wanted = format!("[{directions}] or [{directions}, {gates}]");
        return Err(NoKernel::Misfit(format!("input {scale} is {scales:?}, wanted {wanted}")));
    }
    if !call.has(zero) {
        return Ok(());
    }
    if input_dims(call, zero)? != scales || call.dtype(zero) != call.dtype(of) {
        return unsupported(
            "zero points of another shape than scales, or another type than weights",
        );
    }
    Ok(())
}

fn kernel<W: Quantised, R: Quantised>(shape: Shape, cell: Lstm) -> Box<dyn Kernel> {
    function(move |operands| {
        let given = Given::<f32>::read(operands, &shape)?;
        let w = Weight::read(operands, [at::W, W_SCALE, W_ZERO])?;
        let r = Weight::read(operands, [at::R, R_SCALE, R_ZERO])?;
        let (memory, room) = split(&shape, operands.scratch)?;
        let mut weights = Bytes::<W, R> { shape: &shape, x: own_range(given.x), w, r, room };
        let layer = Layer { shape: &shape, cell: &cell, given };
        layer.run(&mut weights, scratch(memory)?, &mut operands.outputs)
    })
}

/// The memory of the layer, and room for bytes.
fn split<'a>(
    shape: &Shape,
    memory: &'a mut [u8],
) -> Result<(&'a mut [u8], &'a mut [u8]), KernelError> {
    let Shape { batch, input, hidden, .. } = *shape;
    let (found, wanted) = (memory.len(), room(shape.block() * batch * input, batch * hidden));
    let short = KernelError::Bytes { operand: Operand::Scratch, found, wanted };
    // What comes first is whole numbers, whatever is left over at the end.
    let before = found.checked_sub(wanted).ok_or(short)?;
    Ok(memory.split_at_mut(before - before % size_of::<f32>()))
}

fn room(of_input: usize, of_state: usize) -> usize {
    of_input.max(of_state)
}

/// A weight with its scales.
#[derive(Clone, Copy)]
struct Weight<'a, T> {
    values: &'a [T],
    scales: &'a [f32],
    zeros: Option<&'a [T]>,
}

impl<'a, T: Quantised> Weight<'a, T> {
    fn read(operands: &Operands<'a>, [of, scale, zero]: [usize; 3]) -> Result<Self, KernelError> {
        Ok(Self {
            values: operands.input(of)?.values()?,
            scales: operands.input(scale)?.values()?,
            zeros: crate::kernels::compute::quantised::optional(operands, zero)?,
        })
    }

    /// That of one direction of so many.
    fn of(self, direction: usize, directions: usize) -> Self {
        let part = |len: usize| len / directions * direction..len / directions * (direction + 1);
        Self {
            values: &self.values[part(self.values.len())],
            scales: &self.scales[part(self.scales.len())],
            zeros: self.zeros.map(|zeros| &zeros[part(zeros.len())]),
        }
    }
}

struct Bytes<'a, W, R> {
    shape: &'a Shape,
    /// Scale and zero point of all inputs.
    x: (f32, u8),
    w: Weight<'a, W>,
    r: Weight<'a, R>,
    /// For one operand of a product, as bytes.
    room: &'a mut [u8],
}

impl<W: Quantised, R: Quantised> Weights<f32> for Bytes<'_, W, R> {
    fn of_input(
        &mut self,
        direction: usize,
        out: &mut [f32],
        x: Matrix<'_, f32>,
        bias: Option<&[f32]>,
    ) -> Result<(), KernelError> {
        let gates = self.shape.gates;
        match bias {
            Some(bias) => out.chunks_exact_mut(gates).for_each(|out| out.copy_from_slice(bias)),
            None => out.fill(0.0),
        }
        let bytes = to_bytes(self.room, x.data, self.x);
        let w = self.w.of(direction, self.shape.directions);
        add_product(out, Matrix::new(bytes, x.rows, x.cols), self.x, w);
        Ok(())
    }

    fn of_state(
        &mut self,
        gates: Gates,
        out: &mut [f32],
        h: &[f32],
        start: Start,
    ) -> Result<(), KernelError> {
        if start == Start::Zero {
            out.fill(0.0);
        }
        let range = own_range(h);
        let bytes = to_bytes(self.room, h, range);
        let r = self.r.of(gates.direction, self.shape.directions);
        add_product(out, Matrix::new(bytes, self.shape.batch, self.shape.hidden), range, r);
        Ok(())
    }
}

fn to_bytes<'a>(room: &'a mut [u8], values: &[f32], (scale, zero): (f32, u8)) -> &'a [u8] {
    let out = &mut room[..values.len()];
    for (out, &value) in out.iter_mut().zip(values) {
        *out = quantised(value / scale, zero.into());
    }
    out
}

/// Adds a product of bytes, in numbers, to what is there.
fn add_product<T: Quantised>(
    out: &mut [f32],
    a: Matrix<'_, u8>,
    (scale, zero): (f32, u8),
    b: Weight<'_, T>,
) {
    let cols = out.len() / a.rows.max(1);
    let matrix = Matrix::new(b.values, a.cols, cols);
    each_block((a, Some(&[zero])), (matrix, b.zeros), |place, sums| {
        let from = place % cols;
        for (at, (out, &sum)) in out[place..].iter_mut().zip(sums).enumerate() {
            #[expect(clippy::cast_precision_loss, reason = "the nearest number will do")]
            let sum = sum as f32;
            *out += sum * (scale * scale_at(b.scales, from + at));
        }
    });
}
