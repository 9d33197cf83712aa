//! Shape rules, by family. What each may use is in `lowtide_core::operator`.
//!
//! ~~~text
//! Conv(x [n, 3, h, w], w [64, 3, 7, 7])  ──conv──>  [n, 64, floor((h + 1)/2), floor((w + 1)/2)]
//! ~~~

#![expect(clippy::unnecessary_wraps, reason = "all rules have one signature")]

pub(crate) mod attention;
pub(crate) mod contrib;
pub(crate) mod conv;
pub(crate) mod einsum;
mod elements;
pub(crate) mod elementwise;
pub(crate) mod embed;
pub(crate) mod image;
pub(crate) mod layout;
pub(crate) mod loss;
pub(crate) mod matmul;
pub(crate) mod normalise;
pub(crate) mod pad;
pub(crate) mod pool;
pub(crate) mod quantise;
pub(crate) mod random;
pub(crate) mod recurrent;
pub(crate) mod reduce;
pub(crate) mod resize;
pub(crate) mod select;
pub(crate) mod signal;
pub(crate) mod slice;
pub(crate) mod text;
mod window;

use crate::call::{Call, Facts, Misfit};
use crate::expr::Expr;
use crate::fact::{Element, Extent, Fact, Scalar};
use lowtide_core::DType;

/// The output is like input 0: type and shape.
pub(crate) fn like_first(call: &Call<'_>) -> Facts {
    let Fact { dtype, dims, .. } = call.input(0).clone();
    Ok(vec![Fact::new(dtype, dims)])
}

/// Nothing is told: the outputs are no tensors, or depend on data in every way.
pub(crate) fn unknown(_: &Call<'_>) -> Facts {
    Ok(Vec::new())
}

/// One truth value.
pub(crate) fn one_bool(_: &Call<'_>) -> Facts {
    Ok(vec![Fact::of_dims(DType::Bool, &[])])
}

/// One whole number.
pub(crate) fn one_int(_: &Call<'_>) -> Facts {
    Ok(vec![Fact::of_dims(DType::I64, &[])])
}

fn product(dims: &[Extent]) -> Extent {
    dims.iter().try_fold(Expr::ONE, |product, dim| product.mul(dim.as_ref()?))
}

fn int(value: Extent) -> Element {
    value.map(Scalar::Int)
}

fn known(value: usize) -> Extent {
    i64::try_from(value).ok().map(Expr::Known)
}

pub(crate) fn whole(value: i64) -> Extent {
    Some(Expr::Known(value))
}

pub(crate) fn number(dim: &Extent) -> Option<i64> {
    dim.as_ref()?.known()
}

pub(crate) fn add(a: &Extent, b: &Extent) -> Extent {
    a.as_ref()?.add(b.as_ref()?)
}

fn sub(a: &Extent, b: &Extent) -> Extent {
    a.as_ref()?.sub(b.as_ref()?)
}

pub(crate) fn mul(a: &Extent, b: &Extent) -> Extent {
    a.as_ref()?.mul(b.as_ref()?)
}

/// The quotient, rounded down.
fn div(a: &Extent, b: i64) -> Extent {
    a.as_ref()?.div(&Expr::Known(b))
}

/// A tensor of unknown dimensions, if even their number is known.
fn of_rank(dtype: Option<DType>, rank: Option<usize>) -> Fact {
    Fact::new(dtype, rank.map(|rank| vec![None; rank]))
}

/// The shape of input `at`, which must have this rank if it is known.
fn ranked<'a>(call: &Call<'a>, at: usize, rank: usize) -> Result<Option<&'a [Extent]>, Misfit> {
    match call.dims(at) {
        Some(dims) if dims.len() != rank => {
            let found = dims.len();
            Err(Misfit(format!("input {at} has rank {found}, wanted {rank}")))
        }
        dims => Ok(dims),
    }
}

/// The shape of input `at`, which must have at least this rank if it is known.
fn ranked_at_least<'a>(
    call: &Call<'a>,
    at: usize,
    rank: usize,
) -> Result<Option<&'a [Extent]>, Misfit> {
    match call.dims(at) {
        Some(dims) if dims.len() < rank => {
            let found = dims.len();
            Err(Misfit(format!("input {at} has rank {found}, wanted {rank} or more")))
        }
        dims => Ok(dims),
    }
}

/// The number of elements of a vector, if it is small enough to be a rank.
fn rank_by(call: &Call<'_>, at: usize) -> Option<usize> {
    let dims = call.input(at).known_dims()?;
    usize::try_from(*dims.first()?).ok().filter(|&rank| rank <= 64)
}
