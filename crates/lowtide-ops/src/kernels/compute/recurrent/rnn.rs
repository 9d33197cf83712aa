//! `RNN`: the plain cell.
//!
//! ~~~text
//! H = f(x w + h r + bias)
//! ~~~

use super::activation::{Activation, clip, read, read_clip};
use super::at;
use super::layer::{Cell, Step};
use super::lstm::with_numbers;
use super::shape::{Order, Shape};
use super::weights::{Element, Gates, Start, Weights};
use crate::kernels::facts::same_type;
use crate::kernels::types::{Made, with_type};
use lowtide_core::operator::{Call, Fact, KernelError};

pub(crate) fn rnn(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let shape = Shape::new(call, outputs, 1, Order::GatesFirst)?;
    for at in [at::W, at::R, at::BIAS, at::H] {
        same_type(call, at)?;
    }
    let activations = read(call, shape.directions, ["Tanh"])?;
    let cell = Rnn { activations, clip: read_clip(call)? };
    with_type!(floats: call.dtype(0), T => Ok(Box::new(with_numbers::<T, _>(shape, cell))))
}

struct Rnn {
    activations: Vec<[Activation; 1]>,
    clip: Option<f32>,
}

impl Cell for Rnn {
    fn step<T: Element>(
        &self,
        step: Step<'_, T>,
        weights: &mut impl Weights<T>,
    ) -> Result<(), KernelError> {
        let count = step.shape.hidden;
        let gates = Gates { direction: step.direction, from: 0, count };
        weights.of_state(gates, step.gates, step.h, Start::Kept)?;
        let [activation] = self.activations[step.direction];
        let rows = step.gates.chunks_exact_mut(count).zip(step.h.chunks_exact_mut(count));
        for (_, (gate, h)) in rows.enumerate().filter(|(row, _)| step.rows.has(*row)) {
            clip(gate, self.clip);
            activation.apply(gate);
            h.copy_from_slice(gate);
        }
        Ok(())
    }
}
