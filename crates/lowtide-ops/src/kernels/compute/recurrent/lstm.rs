//! `LSTM`: long short-term memory, whose state is a sum that gates let in, let out and forget.
//!
//! ~~~text
//! i = f(.. + pi * c)   o = f(.. + po * C)   g = f(.. + pf * c), or 1 - i if they are coupled     .. = x w + h r + bias
//! C = g * c + i * g(..)                     H = o * h(C)
//! ~~~
//! The gates lie as i, o, forget, cell. `clip` bounds what the gates are of; C itself is not clipped before h, as ONNX
//! Runtime has it.

use super::activation::{Activation, clip, read, read_clip};
use super::at;
use super::layer::{Cell, Given, Layer, Step, scratch};
use super::shape::{Order, Shape};
use super::weights::{Element, Gates, Numbers, Start, Weights};
use crate::kernels::compute::product::{WithProducts, hidden_bytes};
use crate::kernels::facts::same_type;
use crate::kernels::types::{Made, with_type};
use crate::kernels::vectorise::vectorised;
use lowtide_core::operator::{Call, Fact, KernelError, NoKernel, Operands};

pub(crate) fn lstm(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let shape = Shape::new(call, outputs, 4, Order::GatesFirst)?;
    for at in [at::W, at::R, at::BIAS, at::H, at::C, at::PEEPHOLES] {
        same_type(call, at)?;
    }
    let cell = Lstm::read(call, shape.directions)?;
    with_type!(floats: call.dtype(0), T => Ok(Box::new(with_numbers::<T, _>(shape, cell))))
}

/// A kernel whose weights have the type of all else.
pub(super) fn with_numbers<T: Element, C: Cell + Send>(
    shape: Shape,
    cell: C,
) -> WithProducts<impl FnMut(&mut Operands<'_>) -> Result<(), KernelError> + Send> {
    let of = |rows, inner| hidden_bytes(rows, inner, shape.gates);
    let rows = shape.block() * shape.batch;
    let hidden = of(rows, shape.input).max(of(shape.batch, shape.hidden));
    let run = move |operands: &mut Operands<'_>| {
        let given = Given::<T>::read(operands, &shape)?;
        let (w, r) = (operands.input(at::W)?.values()?, operands.input(at::R)?.values()?);
        let layer = Layer { shape: &shape, cell: &cell, given };
        let memory = scratch(operands.scratch)?;
        layer.run(&mut Numbers { shape: &shape, w, r }, memory, &mut operands.outputs)
    };
    WithProducts { run, hidden }
}

pub(super) struct Lstm {
    /// Of gates, cell and output, a direction each.
    activations: Vec<[Activation; 3]>,
    clip: Option<f32>,
    is_coupled: bool,
}

impl Lstm {
    pub(super) fn read(call: &Call<'_>, directions: usize) -> Result<Self, NoKernel> {
        let activations = read(call, directions, ["Sigmoid", "Tanh", "Tanh"])?;
        Ok(Self { activations, clip: read_clip(call)?, is_coupled: call.flag("input_forget") })
    }
}

impl Cell for Lstm {
    fn step<T: Element>(
        &self,
        step: Step<'_, T>,
        weights: &mut impl Weights<T>,
    ) -> Result<(), KernelError> {
        let Shape { hidden, gates: count, .. } = *step.shape;
        let gates = Gates { direction: step.direction, from: 0, count };
        weights.of_state(gates, step.gates, step.h, Start::Kept)?;
        let peepholes = step.given.peepholes(step.direction, hidden);
        let states = step.h.chunks_exact_mut(hidden).zip(step.rest.chunks_exact_mut(hidden));
        for (row, (gates, (h, c))) in step.gates.chunks_exact_mut(count).zip(states).enumerate() {
            if step.rows.has(row) {
                self.move_row(self.activations[step.direction], gates, (h, c), peepholes);
            }
        }
        Ok(())
    }
}

impl Lstm {
    fn move_row<T: Element>(
        &self,
        [of_gates, of_cell, of_output]: [Activation; 3],
        gates: &mut [T],
        (h, c): (&mut [T], &mut [T]),
        peepholes: Option<[&[T]; 3]>,
    ) {
        let (input, rest) = gates.split_at_mut(c.len());
        let (output, rest) = rest.split_at_mut(c.len());
        let (forget, cell) = rest.split_at_mut(c.len());
        if let Some([of_input, _, of_forget]) = peepholes {
            add_products(input, of_input, c);
            add_products(forget, of_forget, c);
        }
        let limited = |activation: Activation, values: &mut [T]| {
            clip(values, self.clip);
            activation.apply(values);
        };
        limited(of_gates, input);
        limited(of_cell, cell);
        if self.is_coupled {
            complement(forget, input);
        } else {
            limited(of_gates, forget);
        }
        blend(c, (forget, input, cell));
        if let Some([_, of_output, _]) = peepholes {
            add_products(output, of_output, c);
        }
        limited(of_gates, output);
        cell.copy_from_slice(c);
        of_output.apply(cell);
        multiply_pairs(h, output, cell);
    }
}

/// `out += a * b`
pub(super) fn add_products<T: Element>(out: &mut [T], a: &[T], b: &[T]) {
    vectorised(
        #[inline(always)]
        || {
            for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
                *out += *a * *b;
            }
        },
    );
}

/// `out = a * b`
pub(super) fn multiply_pairs<T: Element>(out: &mut [T], a: &[T], b: &[T]) {
    vectorised(
        #[inline(always)]
        || {
            for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
                *out = *a * *b;
            }
        },
    );
}

/// `c = forget * c + input * cell`
fn blend<T: Element>(c: &mut [T], (forget, input, cell): (&[T], &[T], &[T])) {
    vectorised(
        #[inline(always)]
        || {
            for ((c, forget), (input, cell)) in c.iter_mut().zip(forget).zip(input.iter().zip(cell))
            {
                *c = *forget * *c + *input * *cell;
            }
        },
    );
}

/// `out = 1 - of`
fn complement<T: Element>(out: &mut [T], of: &[T]) {
    for (out, of) in out.iter_mut().zip(of) {
        *out = T::ONE - *of;
    }
}
