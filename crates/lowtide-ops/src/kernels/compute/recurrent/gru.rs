//! `GRU`: gated recurrent unit, whose state is a mean of what it was and what is new.
//!
//! ~~~text
//! z = f(..)   r = f(..)                              .. = x w + h r + bias
//! n = g(x w + (r * h) r + bias)                      or g(x w + wb + r * (h r + rb)), linear before the reset
//! H = (1 - z) * n + z * h
//! ~~~
//! The gates lie as z, r, n. Products with the state are made apart, as they are not merely added:
//!
//! ~~~text
//! room [batch, 3 * hidden]    | products of z and r, then of n | r * h |       or | products of z, r and n |
//! ~~~

use super::activation::{Activation, clip, read, read_clip};
use super::at;
use super::layer::{Cell, Step};
use super::lstm::{add_products, multiply_pairs, with_numbers};
use super::shape::{Order, Shape};
use super::weights::{Element, Gates, Start, Weights};
use crate::kernels::facts::same_type;
use crate::kernels::types::{Made, with_type};
use crate::kernels::vectorise::vectorised;
use lowtide_core::operator::{Call, Fact, KernelError};

pub(crate) fn gru(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let shape = Shape::new(call, outputs, 3, Order::GatesFirst)?;
    for at in [at::W, at::R, at::BIAS, at::H] {
        same_type(call, at)?;
    }
    let activations = read(call, shape.directions, ["Sigmoid", "Tanh"])?;
    let resets_late = call.flag("linear_before_reset");
    let cell = Gru { activations, clip: read_clip(call)?, resets_late };
    with_type!(floats: call.dtype(0), T => Ok(Box::new(with_numbers::<T, _>(shape, cell))))
}

struct Gru {
    /// Of gates and state, a direction each.
    activations: Vec<[Activation; 2]>,
    clip: Option<f32>,
    /// Whether the state is reset after its product.
    resets_late: bool,
}

impl Cell for Gru {
    fn add_bias<T: Element>(&self, out: &mut [T], given: &[T]) {
        let (w, r) = given.split_at(out.len());
        let of_gates = out.len() / 3 * 2;
        for (at, (out, (w, r))) in out.iter_mut().zip(w.iter().zip(r)).enumerate() {
            let is_apart = self.resets_late && at >= of_gates;
            *out = if is_apart { *w } else { *w + *r };
        }
    }

    fn step<T: Element>(
        &self,
        mut step: Step<'_, T>,
        weights: &mut impl Weights<T>,
    ) -> Result<(), KernelError> {
        if self.resets_late {
            return self.step_late(&mut step, weights);
        }
        self.step_early(&mut step, weights)
    }
}

impl Gru {
    fn step_early<T: Element>(
        &self,
        step: &mut Step<'_, T>,
        weights: &mut impl Weights<T>,
    ) -> Result<(), KernelError> {
        let Shape { batch, hidden, gates: count, .. } = *step.shape;
        let (products, reset) = step.rest[..step.gates.len()].split_at_mut(2 * batch * hidden);
        let gates = Gates { direction: step.direction, from: 0, count: 2 * hidden };
        weights.of_state(gates, products, step.h, Start::Zero)?;
        let rows = step.gates.chunks_exact_mut(count).zip(products.chunks_exact(2 * hidden));
        let states = step.h.chunks_exact(hidden).zip(reset.chunks_exact_mut(hidden));
        for ((gates, products), (h, reset)) in rows.zip(states) {
            self.open(step.direction, &mut gates[..2 * hidden], products);
            multiply_pairs(reset, &gates[hidden..2 * hidden], h);
        }
        let products = &mut products[..batch * hidden];
        let gates = Gates { from: 2 * hidden, count: hidden, ..gates };
        weights.of_state(gates, products, reset, Start::Zero)?;
        let rows = step.gates.chunks_exact_mut(count).zip(products.chunks_exact(hidden));
        for (row, ((gates, products), h)) in rows.zip(step.h.chunks_exact_mut(hidden)).enumerate() {
            let (z, new) = gates.split_at_mut(2 * hidden);
            if step.rows.has(row) {
                add(new, products);
                self.move_row(step.direction, h, z, new);
            }
        }
        Ok(())
    }

    fn step_late<T: Element>(
        &self,
        step: &mut Step<'_, T>,
        weights: &mut impl Weights<T>,
    ) -> Result<(), KernelError> {
        let Shape { hidden, gates: count, .. } = *step.shape;
        let products = &mut step.rest[..step.gates.len()];
        let gates = Gates { direction: step.direction, from: 0, count };
        weights.of_state(gates, products, step.h, Start::Zero)?;
        let of_new = step.direction * 2 * count + count + 2 * hidden;
        let bias = step.given.bias.map(|bias| &bias[of_new..][..hidden]);
        let rows = step.gates.chunks_exact_mut(count).zip(products.chunks_exact_mut(count));
        for (row, ((gates, products), h)) in rows.zip(step.h.chunks_exact_mut(hidden)).enumerate() {
            if !step.rows.has(row) {
                continue;
            }
            let (of_gates, of_new) = products.split_at_mut(2 * hidden);
            let (z_and_r, new) = gates.split_at_mut(2 * hidden);
            self.open(step.direction, z_and_r, of_gates);
            if let Some(bias) = bias {
                add(of_new, bias);
            }
            add_products(new, &z_and_r[hidden..], of_new);
            self.move_row(step.direction, h, z_and_r, new);
        }
        Ok(())
    }

    /// Sets the gates.
    fn open<T: Element>(&self, direction: usize, gates: &mut [T], products: &[T]) {
        add(gates, products);
        clip(gates, self.clip);
        self.activations[direction][0].apply(gates);
    }

    /// Moves a state by the first gate; `new` holds what its activation is of.
    fn move_row<T: Element>(&self, direction: usize, h: &mut [T], z: &[T], new: &mut [T]) {
        clip(new, self.clip);
        self.activations[direction][1].apply(new);
        vectorised(
            #[inline(always)]
            || {
                for (h, (z, new)) in h.iter_mut().zip(z.iter().zip(&*new)) {
                    *h = (T::ONE - *z) * *new + *z * *h;
                }
            },
        );
    }
}

/// `out += of`
fn add<T: Element>(out: &mut [T], of: &[T]) {
    vectorised(
        #[inline(always)]
        || {
            for (out, of) in out.iter_mut().zip(of) {
                *out += *of;
            }
        },
    );
}
