//! [`Weights`]: products of a recurrent layer, in numbers; those of bytes are in `quantised.rs`.
//!
//! ~~~text
//! gates  = x * transpose(w) + bias      of_input, for a block of steps
//! gates += h * transpose(r)             of_state, for one
//! ~~~

use super::shape::Shape;
use crate::kernels::compute::product::{Matrix, Terms, add_product, multiply};
use crate::kernels::elementwise::Float;
use lowtide_core::operator::KernelError;
use rten_gemm::BiasVector;
use rten_simd::SimdUnaryOp;

/// What the products of a layer are made with.
pub(super) trait Weights<T> {
    /// `x * transpose(w) + bias`.
    fn of_input(
        &mut self,
        direction: usize,
        out: &mut [T],
        x: Matrix<'_, T>,
        bias: Option<&[T]>,
    ) -> Result<(), KernelError>;

    /// `h * transpose(r)` of some gates, added to what is there or in its place.
    fn of_state(
        &mut self,
        gates: Gates,
        out: &mut [T],
        h: &[T],
        start: Start,
    ) -> Result<(), KernelError>;
}

/// Gates of a direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gates {
    pub(super) direction: usize,
    pub(super) from: usize,
    pub(super) count: usize,
}

/// What a product is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Kept,
    Zero,
}

/// A type that layers calculate in.
pub(super) trait Element: Float {
    /// The sigmoid of each.
    fn sigmoid_all(values: &mut [Self]);
    /// The hyperbolic tangent of each.
    fn tanh_all(values: &mut [Self]);
    /// `a * b`, added to a row, to what is there, or to nothing.
    fn product(
        out: &mut [Self],
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
        from: From<'_, Self>,
    ) -> Result<(), KernelError>;
}

/// What sums start from.
#[derive(Clone, Copy, Debug)]
pub(super) enum From<'a, T> {
    Kept,
    Zero,
    Row(&'a [T]),
}

impl Element for f32 {
    fn sigmoid_all(values: &mut [Self]) {
        SimdUnaryOp::map_mut(&rten_vecmath::Sigmoid {}, values);
    }

    fn tanh_all(values: &mut [Self]) {
        SimdUnaryOp::map_mut(&rten_vecmath::Tanh {}, values);
    }

    fn product(
        out: &mut [Self],
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
        from: From<'_, Self>,
    ) -> Result<(), KernelError> {
        let terms = match from {
            From::Zero => Terms::PRODUCT,
            From::Kept => Terms { beta: 1.0, ..Terms::PRODUCT },
            From::Row(row) => Terms { bias: Some(BiasVector::Row(row)), ..Terms::PRODUCT },
        };
        multiply(out, a, b, terms)
    }
}

impl Element for f64 {
    fn sigmoid_all(values: &mut [Self]) {
        for value in values {
            *value = 1.0 / (1.0 + (-*value).exp());
        }
    }

    fn tanh_all(values: &mut [Self]) {
        for value in values {
            *value = value.tanh();
        }
    }

    fn product(
        out: &mut [Self],
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
        from: From<'_, Self>,
    ) -> Result<(), KernelError> {
        match from {
            From::Kept => {}
            From::Zero => out.fill(0.0),
            From::Row(row) => {
                for out in out.chunks_exact_mut(row.len()) {
                    out.copy_from_slice(row);
                }
            }
        }
        add_product(out, a, b, 1.0);
        Ok(())
    }
}

/// Weights in the type of the layer.
pub(super) struct Numbers<'a, T> {
    pub(super) shape: &'a Shape,
    pub(super) w: &'a [T],
    pub(super) r: &'a [T],
}

impl<T: Element> Weights<T> for Numbers<'_, T> {
    fn of_input(
        &mut self,
        direction: usize,
        out: &mut [T],
        x: Matrix<'_, T>,
        bias: Option<&[T]>,
    ) -> Result<(), KernelError> {
        let Shape { input, gates, .. } = *self.shape;
        let w = &self.w[direction * gates * input..][..gates * input];
        let w = Matrix::new(w, gates, input).turned();
        T::product(out, x, w, bias.map_or(From::Zero, From::Row))
    }

    fn of_state(
        &mut self,
        gates: Gates,
        out: &mut [T],
        h: &[T],
        start: Start,
    ) -> Result<(), KernelError> {
        let Shape { batch, hidden, .. } = *self.shape;
        let first = gates.direction * self.shape.gates + gates.from;
        let r = &self.r[first * hidden..][..gates.count * hidden];
        let r = Matrix::new(r, gates.count, hidden).turned();
        let from = if start == Start::Kept { From::Kept } else { From::Zero };
        T::product(out, Matrix::new(h, batch, hidden), r, from)
    }
}
