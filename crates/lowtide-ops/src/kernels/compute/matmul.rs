//! `MatMul`: stacks of matrices in, the stack of their products out.
//!
//! ~~~text
//! a [8, 5, m, k] x b [k, n]      one product of [8*5*m, k] and [k, n]
//! a [8, 1, m, k] x b [5, k, n]   40 products; along an axis of 1 the same matrix is taken again
//! a [k]                          a row on the left, a column on the right
//! ~~~

use super::product::{Matrix, Terms, WithProducts, add_product, hidden_bytes, multiply};
use crate::kernels::facts::{input_dims, same_type};
use crate::kernels::function;
use crate::kernels::number::{Number, by_type, no_kernel_for};
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact, Kernel, KernelError, NoKernel, Operands};

pub(crate) fn matmul(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    same_type(call, 1)?;
    let stack = Stack::new(&input_dims(call, 0)?, &input_dims(call, 1)?)?;
    if call.dtype(0) == Some(DType::F32) {
        return Ok(in_single_precision(stack));
    }
    by_type!(call.dtype(0), [F64: f64, I32: i32, I64: i64, U32: u32, U64: u64], plain(stack))
}

/// `FusedMatMul` of ONNX Runtime: matrices that may be transposed first, and a factor.
pub(crate) fn fused(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    same_type(call, 1)?;
    if call.dtype(0) != Some(DType::F32) {
        return Err(no_kernel_for(call.dtype(0)));
    }
    if call.flag("transBatchA") || call.flag("transBatchB") {
        return Err(NoKernel::Unsupported("transposed batches".to_owned()));
    }
    let turns = ["transA", "transB"].map(|name| call.flag(name));
    let [a, b] = [0, 1].map(|at| input_dims(call, at));
    let stack = Stack::stacked(&turned(a?, turns[0]), &turned(b?, turns[1]))?;
    let hidden = hidden_bytes(stack.m, stack.k, stack.n);
    let terms = Terms { alpha: call.float("alpha").unwrap_or(1.0), ..Terms::PRODUCT };
    let run = move |operands: &mut Operands<'_>| -> Result<(), KernelError> {
        let (a, b) = (operands.input(0)?.values()?, operands.input(1)?.values()?);
        let out = operands.values_mut(0)?;
        stack.each(out, a, b, |out, a, b| {
            multiply(out, as_stored(a, turns[0]), as_stored(b, turns[1]), terms)
        })
    };
    Ok(Box::new(WithProducts { run, hidden }))
}

/// The shape of matrices that are transposed; a vector stays what it is.
fn turned(mut dims: Vec<usize>, turns: bool) -> Vec<usize> {
    let rank = dims.len();
    if turns && rank >= 2 {
        dims.swap(rank - 2, rank - 1);
    }
    dims
}

/// A matrix whose elements lie column after column, if it is to be transposed.
fn as_stored(matrix: Matrix<'_, f32>, turns: bool) -> Matrix<'_, f32> {
    if turns { Matrix::new(matrix.data, matrix.cols, matrix.rows).turned() } else { matrix }
}

fn in_single_precision(stack: Stack) -> Box<dyn Kernel> {
    let hidden = hidden_bytes(stack.m, stack.k, stack.n);
    let run = move |operands: &mut Operands<'_>| -> Result<(), KernelError> {
        let (a, b) = (operands.input(0)?.values()?, operands.input(1)?.values()?);
        let out = operands.values_mut(0)?;
        stack.each(out, a, b, |out, a, b| multiply(out, a, b, Terms::PRODUCT))
    };
    Box::new(WithProducts { run, hidden })
}

fn plain<T: Number>(stack: Stack) -> Box<dyn Kernel> {
    function(move |operands| {
        let (a, b) = (operands.input(0)?.values::<T>()?, operands.input(1)?.values::<T>()?);
        let out = operands.values_mut::<T>(0)?;
        stack.each(out, a, b, |out, a, b| {
            out.fill(T::ZERO);
            add_product(out, a, b, T::ONE);
            Ok(())
        })
    })
}

/// A stack of products of `[m, k]` and `[k, n]`.
#[derive(Debug)]
pub(super) struct Stack {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    /// The axes along which the matrices are stacked, outermost first.
    axes: Vec<Level>,
}

/// One axis of a stack.
#[derive(Debug)]
struct Level {
    len: usize,
    /// From a matrix of `a` to the next along this axis; 0 where it is taken again.
    a_stride: usize,
    b_stride: usize,
}

impl Stack {
    pub(super) fn new(a: &[usize], b: &[usize]) -> Result<Self, NoKernel> {
        let mut stack = Self::stacked(a, b)?;
        stack.collapse();
        Ok(stack)
    }

    /// The same, where no two of the products are taken together.
    pub(super) fn stacked(a: &[usize], b: &[usize]) -> Result<Self, NoKernel> {
        let ([.., k], [.., l]) = (a, if b.len() < 2 { b } else { &b[..b.len() - 1] }) else {
            return Err(NoKernel::Misfit("a single number is no matrix".to_owned()));
        };
        if k != l {
            return Err(NoKernel::Misfit(format!("inner dimensions {k} and {l}")));
        }
        let m = if a.len() < 2 { 1 } else { a[a.len() - 2] };
        let n = if b.len() < 2 { 1 } else { b[b.len() - 1] };
        let (a, b) = (&a[..a.len().saturating_sub(2)], &b[..b.len().saturating_sub(2)]);
        Ok(Self { m, k: *k, n, axes: levels(a, b, (m * k, k * n)) })
    }

    /// Where all products share `b`, their rows are those of one product.
    fn collapse(&mut self) {
        let is_dense = {
            let mut inner = self.m * self.k;
            self.axes.iter().rev().all(|level| {
                let fits = level.len == 1 || level.a_stride == inner;
                inner *= level.len;
                fits
            })
        };
        if is_dense && self.axes.iter().all(|level| level.b_stride == 0) {
            self.m *= self.axes.drain(..).map(|level| level.len).product::<usize>();
        }
    }

    /// Calls a function for each product.
    pub(super) fn each<T, U, V>(
        &self,
        out: &mut [V],
        a: &[T],
        b: &[U],
        mut product: impl FnMut(&mut [V], Matrix<'_, T>, Matrix<'_, U>) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let Self { m, k, n, .. } = *self;
        if m * n == 0 {
            return Ok(());
        }
        for (at, out) in out.chunks_mut(m * n).enumerate() {
            let (a_at, b_at) = self.places(at);
            let (a, b) = (&a[a_at..][..m * k], &b[b_at..][..k * n]);
            product(out, Matrix::new(a, m, k), Matrix::new(b, k, n))?;
        }
        Ok(())
    }

    /// Where the matrices of a product begin.
    fn places(&self, mut at: usize) -> (usize, usize) {
        let mut places = (0, 0);
        for level in self.axes.iter().rev() {
            let index = at % level.len;
            at /= level.len;
            places.0 += index * level.a_stride;
            places.1 += index * level.b_stride;
        }
        places
    }
}

/// The axes of a stack of matrices of so many elements, broadcast.
fn levels(a: &[usize], b: &[usize], (a_len, b_len): (usize, usize)) -> Vec<Level> {
    let rank = a.len().max(b.len());
    let mut strides = (a_len, b_len);
    let mut levels = Vec::new();
    let of = |dims: &[usize], back: usize| dims.len().checked_sub(back).map_or(1, |at| dims[at]);
    for back in 1..=rank {
        let (a, b) = (of(a, back), of(b, back));
        let stride = |len: usize, stride: usize| if len == 1 { 0 } else { stride };
        let len = if a == 1 { b } else { a };
        levels.push(Level { len, a_stride: stride(a, strides.0), b_stride: stride(b, strides.1) });
        strides = (strides.0 * a, strides.1 * b);
    }
    levels.reverse();
    levels
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{refuses, runs};

    const A: &str = "weight a 2 3 = 1 2 3 4 5 6";
    const B: &str = "weight b 3 2 = 1 0 0 1 1 1";

    #[test]
    fn rows_meet_columns() {
        runs(&[A, B, "y = MatMul(a, b)"], "float32 [2, 2] 4 5 10 11");
        runs(
            &["weight a i64 1 2 = 3 4", "weight b i64 2 1 = 5 6", "y = MatMul(a, b)"],
            "int64 [1, 1] 39",
        );
    }

    #[test]
    fn matrices_may_be_transposed_first() {
        let fused = |call: &str, wanted: &str| runs(&[A, B, call], wanted);
        fused("y = com.microsoft.FusedMatMul(a, b) {alpha=2.0}", "float32 [2, 2] 8 10 20 22");
        fused("y = com.microsoft.FusedMatMul(a, a) {transB=1}", "float32 [2, 2] 14 32 32 77");
        fused(
            "y = com.microsoft.FusedMatMul(b, a) {transA=1, transB=1}",
            "float32 [2, 2] 4 10 5 11",
        );
    }

    #[test]
    fn a_vector_is_a_row_or_a_column() {
        runs(&["weight v 3 = 1 2 3", B, "y = MatMul(v, b)"], "float32 [2] 4 5");
        runs(&["weight v 3 = 1 2 3", A, "y = MatMul(a, v)"], "float32 [2] 14 32");
        runs(&["weight v 3 = 1 2 3", "weight w 3 = 1 0 2", "y = MatMul(v, w)"], "float32 [] 7");
    }

    #[test]
    fn matrices_are_taken_again_along_axes_of_1() {
        runs(
            &["weight a 2 1 1 2 = 1 2 3 4", "weight b 2 2 1 = 1 0 0 1", "y = MatMul(a, b)"],
            "float32 [2, 2, 1, 1] 1 2 3 4",
        );
        runs(
            &["weight a 2 1 2 = 1 2 3 4", "weight b 1 2 2 = 1 0 0 2", "y = MatMul(a, b)"],
            "float32 [2, 1, 2] 1 4 3 8",
        );
    }

    #[test]
    fn what_is_empty_has_no_product_or_the_product_0() {
        runs(&["weight a 2 0 = ", "weight b 0 2 = ", "y = MatMul(a, b)"], "float32 [2, 2] 0 0 0 0");
        runs(
            &["weight a 0 2 = ", "weight b 2 3 = 1 2 3 4 5 6", "y = MatMul(a, b)"],
            "float32 [0, 3] ",
        );
    }

    #[test]
    fn bytes_are_not_multiplied() {
        refuses(
            &["input a u8 2 3", "input b u8 3 2", "y = MatMul(a, b)"],
            "1 operators have no kernel: 1 x MatMul (type uint8)",
        );
    }
}
