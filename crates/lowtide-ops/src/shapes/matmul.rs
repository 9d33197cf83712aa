//! Rules of products of matrices.
//!
//! ~~~text
//! a [batch, m, k]  x  b [k, n]  ──>  [batch, m, n]     a vector is a row on the left, a column on the
//! a [k]            x  b [k, n]  ──>  [n]               right, and leaves no axis behind
//! ~~~

use super::elementwise::broadcast;
use super::{of_rank, ranked};
use crate::call::{Call, Facts, Misfit, equal, shape_text};
use crate::expr::Expr;
use crate::fact::{Extent, Fact};
use lowtide_core::DType;

/// The shape of the product of two.
pub(crate) fn product(a: &[Extent], b: &[Extent]) -> Result<Vec<Extent>, Misfit> {
    if a.is_empty() || b.is_empty() {
        let (a, b) = (shape_text(a), shape_text(b));
        return Err(Misfit(format!("{a} and {b}: a single number is no matrix")));
    }
    let one = || Some(Expr::ONE);
    let row = if a.len() == 1 { vec![one(), a[0].clone()] } else { a.to_vec() };
    let column = if b.len() == 1 { vec![b[0].clone(), one()] } else { b.to_vec() };
    let (m, k) = (&row[row.len() - 2], &row[row.len() - 1]);
    let (l, n) = (&column[column.len() - 2], &column[column.len() - 1]);
    equal(k, l, "inner dimensions")?;
    let mut dims = broadcast(&row[..row.len() - 2], &column[..column.len() - 2])?;
    dims.extend((a.len() > 1).then(|| m.clone()));
    dims.extend((b.len() > 1).then(|| n.clone()));
    Ok(dims)
}

fn of(call: &Call<'_>, (a, b): (usize, usize), dtype: Option<DType>) -> Facts {
    let Some((a, b)) = call.dims(a).zip(call.dims(b)) else {
        return Ok(vec![Fact::of_type(dtype)]);
    };
    Ok(vec![Fact::new(dtype, Some(product(a, b)?))])
}

pub(crate) fn matmul(call: &Call<'_>) -> Facts {
    of(call, (0, 1), call.dtype(0).or(call.dtype(1)))
}

pub(crate) fn integer(call: &Call<'_>) -> Facts {
    of(call, (0, 1), Some(DType::I32))
}

/// `QLinearMatMul`: the type is that of the output's zero point.
pub(crate) fn qlinear(call: &Call<'_>) -> Facts {
    of(call, (0, 3), call.dtype(7).or(call.dtype(0)))
}

/// Products of integers that become numbers: `MatMulIntegerToFloat`, whose scale is the third input.
pub(crate) fn integer_to_float(call: &Call<'_>) -> Facts {
    of(call, (0, 1), call.dtype(2).or(Some(DType::F32)))
}

/// `DynamicQuantizeMatMul`: numbers on the left, integers on the right.
pub(crate) fn dynamic(call: &Call<'_>) -> Facts {
    of(call, (0, 1), call.dtype(0))
}

/// `FusedMatMul`: either side transposed, in its last two axes or with the first one moved behind the others.
pub(crate) fn fused(call: &Call<'_>) -> Facts {
    let dtype = call.dtype(0);
    let Some((a, b)) = call.dims(0).zip(call.dims(1)) else {
        return Ok(vec![Fact::of_type(dtype)]);
    };
    let a = turned(a, call.flag("transA"), call.flag("transBatchA"));
    let b = turned(b, call.flag("transB"), call.flag("transBatchB"));
    Ok(vec![Fact::new(dtype, Some(product(&a, &b)?))])
}

fn turned(dims: &[Extent], is_transposed: bool, batch_too: bool) -> Vec<Extent> {
    let mut dims = dims.to_vec();
    let rank = dims.len();
    if batch_too && rank >= 2 {
        dims[..rank - 1].rotate_left(1);
    }
    if is_transposed && rank >= 2 {
        dims.swap(rank - 2, rank - 1);
    }
    dims
}

pub(crate) fn gemm(call: &Call<'_>) -> Facts {
    gemm_of(call, 1, call.dtype(0).or(call.dtype(1)))
}

/// `QGemm`: with scales and zero points behind each side; without an output scale it gives numbers.
pub(crate) fn qgemm(call: &Call<'_>) -> Facts {
    let dtype = if call.has(7) { call.dtype(8).or(call.dtype(0)) } else { Some(DType::F32) };
    gemm_of(call, 3, dtype)
}

/// `GemmFloat8`: the type is an attribute.
pub(crate) fn gemm_float8(call: &Call<'_>) -> Facts {
    gemm_of(call, 1, call.dtype_of("dtype").or(Some(DType::F32)))
}

fn gemm_of(call: &Call<'_>, right: usize, dtype: Option<DType>) -> Facts {
    let (Some(a), Some(b)) = (flat(call, 0)?, ranked(call, right, 2)?) else {
        return Ok(vec![of_rank(dtype, Some(2))]);
    };
    let (a, b) = (turned(&a, call.flag("transA"), false), turned(b, call.flag("transB"), false));
    equal(&a[1], &b[0], "inner dimensions")?;
    Ok(vec![Fact::new(dtype, Some(vec![a[0].clone(), b[1].clone()]))])
}

/// A matrix. The first versions took any shape, and read it as a row for each entry of the first axis.
fn flat(call: &Call<'_>, at: usize) -> Result<Option<Vec<Extent>>, Misfit> {
    match call.dims(at) {
        Some(dims) if dims.len() > 2 && call.opset < 7 => {
            Ok(Some(vec![dims[0].clone(), super::product(&dims[1..])]))
        }
        _ => Ok(ranked(call, at, 2)?.map(<[Extent]>::to_vec)),
    }
}

/// A weight in blocks of few bits: the result has `N` columns.
pub(crate) fn packed(call: &Call<'_>) -> Facts {
    let dims = call.dims(0).filter(|dims| !dims.is_empty()).map(|dims| {
        let mut dims = dims.to_vec();
        let last = dims.len() - 1;
        dims[last] = call.int("N").map(Expr::Known);
        dims
    });
    Ok(vec![call.typed(0, dims)])
}

/// `Det`, and what else folds the last two axes away.
pub(crate) fn det(call: &Call<'_>) -> Facts {
    let dims = super::ranked_at_least(call, 0, 2)?;
    let Some(dims) = dims else { return Ok(vec![call.typed(0, None)]) };
    equal(&dims[dims.len() - 2], &dims[dims.len() - 1], "sides of a square matrix")?;
    Ok(vec![call.typed(0, Some(dims[..dims.len() - 2].to_vec()))])
}

/// `QOrderedMatMul`: integers with a scale behind each side.
pub(crate) fn qordered(call: &Call<'_>) -> Facts {
    of(call, (0, 2), call.dtype(0))
}

#[cfg(test)]
mod tests {
    use crate::testing::{infers, misfits};

    #[test]
    fn stacks_of_matrices_are_broadcast() {
        infers(&["input a n 1 4 5", "input b 7 5 6", "y = MatMul(a, b)"], "f32 [n, 7, 4, 6]");
        infers(&["input a u8 4 5", "input b u8 5 6", "y = MatMulInteger(a, b)"], "i32 [4, 6]");
    }

    #[test]
    fn a_vector_leaves_no_axis_behind() {
        infers(&["input a 5", "input b 5 6", "y = MatMul(a, b)"], "f32 [6]");
        infers(&["input a n 4 5", "input b 5", "y = MatMul(a, b)"], "f32 [n, 4]");
        infers(&["input a 5", "input b 5", "y = MatMul(a, b)"], "f32 []");
    }

    #[test]
    fn either_side_may_be_transposed() {
        infers(
            &["input a 5 m", "input b n 5", "y = Gemm(a, b) {transA=1, transB=1}"],
            "f32 [m, n]",
        );
        infers(
            &[
                "input a 2 5 m",
                "input b 2 n 5",
                "y = com.microsoft.FusedMatMul(a, b) {transA=1, transB=1}",
            ],
            "f32 [2, m, n]",
        );
        infers(
            &[
                "input a m 2 5",
                "input b 2 5 n",
                "y = com.microsoft.FusedMatMul(a, b) {transBatchA=1}",
            ],
            "f32 [2, m, n]",
        );
    }

    #[test]
    fn early_products_of_matrices_flatten_what_they_get() {
        infers(&["opset 6", "input a 2 3 4", "weight b 12 5", "y = Gemm(a, b)"], "f32 [2, 5]");
    }

    #[test]
    fn quantised_products_have_the_type_of_the_zero_point() {
        infers(
            &[
                "input a u8 2 4",
                "weight s",
                "weight z u8",
                "weight b u8 4 3",
                "weight o i8",
                "y = QLinearMatMul(a, s, z, b, s, z, s, o)",
            ],
            "i8 [2, 3]",
        );
        infers(
            &[
                "input a 2 32",
                "weight b u8 7 2 8",
                "weight s 14",
                "y = com.microsoft.MatMulNBits(a, b, s) {N=7, K=32, bits=4}",
            ],
            "f32 [2, 7]",
        );
    }

    #[test]
    fn inner_dimensions_are_equal() {
        misfits(
            &["input a 2 4", "input b 5 6", "y = MatMul(a, b)"],
            "inner dimensions: 4 and 5 should be equal",
        );
        misfits(
            &["input a 2 4", "input b 5 6", "y = Gemm(a, b)"],
            "inner dimensions: 4 and 5 should be equal",
        );
        misfits(
            &["input a 4 5", "y = Det(a)"],
            "sides of a square matrix: 4 and 5 should be equal",
        );
    }
}
