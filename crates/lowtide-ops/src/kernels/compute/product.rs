//! [`multiply`]: two matrices in, their product out, in single precision by rten-gemm.
//!
//! ~~~text
//! a [m, k] x b [k, n]   m = 1 or n = 1 ──> row times matrix, in an order of our own
//!                       else ──> rten-gemm: blocks of b, packed in memory of the thread
//! ~~~
//! rten-gemm gives one-row products to all threads in parts that depend on how many there are, and allocates for empty
//! ones; it is asked for neither.

use super::row_product::row_times;
use crate::kernels::number::Number;
use lowtide_core::Bytes;
use lowtide_core::operator::{Kernel, KernelError, Operands};
use rten_gemm::{BiasVector, GemmExecutor, GemmInputA, GemmInputB, GemmOptions};
use rten_tensor::NdTensorView;

/// A matrix in a slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix<'a, T> {
    /// From its first element on.
    pub(super) data: &'a [T],
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// From an element to the one below.
    pub(super) row_stride: usize,
    /// From an element to the one on its right.
    pub(super) col_stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// Row after row.
    pub(super) fn new(data: &'a [T], rows: usize, cols: usize) -> Self {
        Self { data, rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// The transpose.
    pub(super) fn turned(self) -> Self {
        let Self { data, rows, cols, row_stride, col_stride } = self;
        Self { data, rows: cols, cols: rows, row_stride: col_stride, col_stride: row_stride }
    }

    /// The transpose, if wanted.
    pub(super) fn turned_if(self, turns: bool) -> Self {
        if turns { self.turned() } else { self }
    }
}

/// `alpha * a * b + beta * out + bias`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    pub(super) alpha: f32,
    pub(super) beta: f32,
    pub(super) bias: Option<BiasVector<'a, f32>>,
}

impl Terms<'_> {
    /// The product alone.
    pub(super) const PRODUCT: Self = Self { alpha: 1.0, beta: 0.0, bias: None };
}

/// The product of two matrices whose inner dimensions are equal.
pub(super) fn multiply(
    out: &mut [f32],
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
    terms: Terms<'_>,
) -> Result<(), KernelError> {
    if out.is_empty() {
        return Ok(());
    }
    if a.cols == 0 {
        multiply_nothing(out, b.cols, terms);
        return Ok(());
    }
    if a.rows == 1 && a.col_stride == 1 {
        row_times(out, a.data, b, terms);
        return Ok(());
    }
    if b.cols == 1 && b.row_stride == 1 {
        row_times(out, b.data, a.turned(), terms.turned());
        return Ok(());
    }
    run(out, GemmInputA::Unpacked(view(a)?), GemmInputB::Unpacked(view(b)?), terms)
}

impl Terms<'_> {
    fn turned(self) -> Self {
        let turned = |bias| match bias {
            BiasVector::Row(bias) => BiasVector::Column(bias),
            BiasVector::Column(bias) => BiasVector::Row(bias),
        };
        Self { bias: self.bias.map(turned), ..self }
    }
}

/// Matrices of any kind that rten-gemm takes, none of them empty.
pub(super) fn run(
    out: &mut [f32],
    a: GemmInputA<'_, f32>,
    b: GemmInputB<'_, f32>,
    terms: Terms<'_>,
) -> Result<(), KernelError> {
    let Terms { alpha, beta, bias } = terms;
    let options = GemmOptions { alpha, beta, bias, ..GemmOptions::default() };
    // An executor holds nothing but which instructions there are: to make one allocates nothing.
    let done = GemmExecutor::<f32>::new().gemm(out, a, b, options);
    done.map_err(|error| KernelError::Value(format!("a product: {error}")))
}

fn view(matrix: Matrix<'_, f32>) -> Result<rten_tensor::Matrix<'_, f32>, KernelError> {
    let Matrix { data, rows, cols, row_stride, col_stride } = matrix;
    NdTensorView::from_slice_with_strides([rows, cols], data, [row_stride, col_stride])
        .map_err(|error| KernelError::Value(format!("a matrix of {rows} x {cols}: {error}")))
}

/// Without inner elements only the other terms are left.
fn multiply_nothing(out: &mut [f32], cols: usize, terms: Terms<'_>) {
    for (row, values) in out.chunks_mut(cols).enumerate() {
        for (col, value) in values.iter_mut().enumerate() {
            let left = if terms.beta == 0.0 { 0.0 } else { terms.beta * *value };
            *value = left + terms.bias.map_or(0.0, |bias| bias_at(bias, row, col));
        }
    }
}

/// The bias of an element.
pub(super) fn bias_at(bias: BiasVector<'_, f32>, row: usize, col: usize) -> f32 {
    match bias {
        BiasVector::Row(bias) => bias[col],
        BiasVector::Column(bias) => bias[row],
    }
}

/// Adds the product of two matrices of any type to what is there.
pub(super) fn add_product<T: Number>(out: &mut [T], a: Matrix<'_, T>, b: Matrix<'_, T>, alpha: T) {
    if b.cols == 0 {
        return;
    }
    for (row, out) in out.chunks_mut(b.cols).enumerate() {
        for inner in 0..a.cols {
            let factor = alpha.times(a.data[row * a.row_stride + inner * a.col_stride]);
            let from = &b.data[inner * b.row_stride..];
            for (out, &value) in out.iter_mut().zip(from.iter().step_by(b.col_stride)) {
                *out = out.plus(factor.times(value));
            }
        }
    }
}

/// How much memory of a thread rten-gemm packs products of this size in, at most: a block of `a`, if it is transposed,
/// and one of `b`. Its buffers grow to twice what they were or to what is wanted, so to less than twice the most that
/// was ever wanted. Where several threads share a product, one that waits for others may begin another block of
/// columns meanwhile, and holds more until that is done.
pub(super) fn hidden_bytes(rows: usize, inner: usize, cols: usize) -> Bytes {
    // The sizes of its blocks, and more rows in a tile than any of its kernels has.
    const ROWS: usize = 64 + 16;
    const INNER: usize = 1024 / size_of::<f32>();
    const COLS: usize = 1024;
    if rows == 0 || inner == 0 || cols == 0 {
        return Bytes::ZERO;
    }
    let tile = GemmExecutor::<f32>::new().im2col_col_count_step();
    let inner = inner.min(INNER);
    let packed = ROWS * inner + cols.min(COLS).next_multiple_of(tile) * inner;
    Bytes((2 * packed * size_of::<f32>()) as u64)
}

/// A kernel that calls rten-gemm.
pub(super) struct WithProducts<F> {
    pub(super) run: F,
    pub(super) hidden: Bytes,
}

impl<F> Kernel for WithProducts<F>
where
    F: FnMut(&mut Operands<'_>) -> Result<(), KernelError> + Send,
{
    fn run(&mut self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        (self.run)(operands)
    }

    fn hidden_bytes(&self) -> Bytes {
        self.hidden
    }
}
