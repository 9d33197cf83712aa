//! Rules of operators of ONNX Runtime that are put together from standard ones.
//!
//! ~~~text
//! QLinearAdd(a, scale, zero, b, ..)   ──>  as Add(a, b)        BiasSplitGelu(x [.., 2*d])  ──>  [.., d]
//! ~~~

use super::elementwise::broadcast;
use super::{add, like_first, number, sub, whole};
use crate::call::{Call, Facts, Misfit, axis, equal};
use crate::expr::Expr;
use crate::fact::{Extent, Fact};
use lowtide_core::DType;

fn both(call: &Call<'_>, (a, b): (usize, usize), dtype: Option<DType>) -> Facts {
    let dims = match call.dims(a).zip(call.dims(b)) {
        Some((a, b)) => Some(broadcast(a, b)?),
        None => None,
    };
    Ok(vec![Fact::new(dtype, dims)])
}

/// `QLinearAdd` and `QLinearMul`: each side with a scale and a zero point.
pub(crate) fn quantised_pair(call: &Call<'_>) -> Facts {
    both(call, (0, 3), call.dtype(0))
}

/// `MulInteger`: each side with a zero point.
pub(crate) fn mul_integer(call: &Call<'_>) -> Facts {
    both(call, (0, 2), Some(DType::I32))
}

/// `QLinearWhere`: a condition, and each side with a scale and a zero point.
pub(crate) fn quantised_choice(call: &Call<'_>) -> Facts {
    let mut fact = both(call, (1, 4), call.dtype(1))?.remove(0);
    fact.dims = match fact.dims.zip(call.dims(0)) {
        Some((dims, condition)) => Some(broadcast(&dims, condition)?),
        None => None,
    };
    Ok(vec![fact])
}

/// `QLinearConcat`: scale and zero point of the result, then each input with its own.
pub(crate) fn quantised_concat(call: &Call<'_>) -> Facts {
    let parts: Option<Vec<&[Extent]>> =
        (2..call.inputs.len()).step_by(3).map(|at| call.dims(at)).collect();
    let Some((first, rest)) = parts.as_deref().and_then(<[_]>::split_first) else {
        return Ok(vec![call.typed(1, None)]);
    };
    let at = axis(call.int_or("axis", 1), first.len())?;
    let mut dims = first.to_vec();
    for other in rest {
        if other.len() != dims.len() {
            return Err(Misfit(format!("inputs of rank {} and {}", dims.len(), other.len())));
        }
        for (index, dim) in dims.iter_mut().enumerate() {
            *dim = if index == at {
                add(dim, &other[at])
            } else {
                equal(dim, &other[index], "inputs")?
            };
        }
    }
    Ok(vec![call.typed(1, Some(dims))])
}

/// `BiasDropout`: also a mask.
pub(crate) fn bias_dropout(call: &Call<'_>) -> Facts {
    let mask = Fact::new(Some(DType::Bool), call.input(0).dims.clone());
    Ok([like_first(call)?, vec![mask]].concat())
}

/// `BiasSplitGelu`: one half of the last axis gates the other.
pub(crate) fn split_gelu(call: &Call<'_>) -> Facts {
    let dims = call.input(0).dims.clone().map(|mut dims| {
        if let Some(last) = dims.last_mut() {
            *last = super::div(last, 2);
        }
        dims
    });
    Ok(vec![call.typed(0, dims)])
}

/// `ExpandDims`: a new axis of 1.
pub(crate) fn expand_dims(call: &Call<'_>) -> Facts {
    let (Some(dims), Some(Expr::Known(at))) = (call.dims(0), call.scalar_int(1)) else {
        return Ok(vec![call.typed(0, None)]);
    };
    let mut dims = dims.to_vec();
    dims.insert(axis(at, dims.len() + 1)?, whole(1));
    Ok(vec![call.typed(0, Some(dims))])
}

/// `UnfoldTensor`: windows along an axis, their elements behind everything.
pub(crate) fn unfold(call: &Call<'_>) -> Facts {
    let Some(dims) = call.dims(0) else { return Ok(vec![call.typed(0, None)]) };
    let at = axis(call.int_or("dim", -1), dims.len())?;
    let (size, step) = (call.int_or("size", 1), call.int_or("step", 1));
    if size < 1 || step < 1 {
        return Err(Misfit(format!("size {size} and step {step}, wanted 1 or more")));
    }
    if let Some(len) = number(&dims[at]).filter(|&len| len < size) {
        return Err(Misfit(format!("a window of {size} does not fit into {len}")));
    }
    let mut dims = dims.to_vec();
    dims[at] = add(&super::div(&sub(&dims[at], &whole(size)), step), &whole(1));
    dims.push(whole(size));
    Ok(vec![call.typed(0, Some(dims))])
}

/// `CDist`: a distance for each pair of rows.
pub(crate) fn distances(call: &Call<'_>) -> Facts {
    Ok(vec![call.typed(0, Some(vec![call.dim(0, 0), call.dim(1, 0)]))])
}

/// `NGramRepeatBlock`: like the scores, its second input.
pub(crate) fn like_second(call: &Call<'_>) -> Facts {
    Ok(vec![call.typed(1, call.input(1).dims.clone())])
}

/// `GatherBlockQuantized`: rows of the data, as numbers of the type of the scales.
pub(crate) fn gather_blocks(call: &Call<'_>) -> Facts {
    let is_packed = matches!(call.dtype(0), None | Some(DType::U8));
    let dims = match call.dims(0).zip(call.dims(1)).filter(|_| !is_packed) {
        Some((data, indices)) => {
            let at = axis(call.int_or("gather_axis", 0), data.len())?;
            Some([&data[..at], indices, &data[at + 1..]].concat())
        }
        None => None,
    };
    Ok(vec![call.typed(2, dims)])
}

/// Searches give words: batch, perhaps beams, and as many as they find.
pub(crate) fn beams(call: &Call<'_>) -> Facts {
    Ok(vec![Fact::new(Some(DType::I32), Some(vec![call.dim(0, 0), None, None]))])
}

/// The same of one beam.
pub(crate) fn words(call: &Call<'_>) -> Facts {
    Ok(vec![Fact::new(Some(DType::I32), Some(vec![call.dim(0, 0), None]))])
}

/// `DynamicTimeWarping`: a path through a matrix.
pub(crate) fn path(_: &Call<'_>) -> Facts {
    Ok(vec![Fact::new(Some(DType::I32), Some(vec![whole(2), None]))])
}

/// The rank of the input, its type; more is not public.
pub(crate) fn same_rank(call: &Call<'_>) -> Facts {
    Ok(vec![super::of_rank(call.dtype(0), call.rank(0))])
}

#[cfg(test)]
mod tests {
    use crate::testing::infers;

    #[test]
    fn quantised_operators_are_as_their_models() {
        infers(
            &[
                "input a u8 n 1",
                "weight s",
                "weight z u8",
                "input b u8 4",
                "y = com.microsoft.QLinearAdd(a, s, z, b, s, z, s, z)",
            ],
            "u8 [n, 4]",
        );
        infers(
            &[
                "weight s",
                "weight z u8",
                "input a u8 1 n",
                "input b u8 1 4",
                "y = com.microsoft.QLinearConcat(s, z, a, s, z, b, s, z)",
            ],
            "u8 [1, n + 4]",
        );
    }

    #[test]
    fn fused_operators_are_as_what_they_replace() {
        infers(
            &["input x n 8", "weight b 8", "y = com.microsoft.BiasSplitGelu(x, b)"],
            "f32 [n, 4]",
        );
        infers(
            &["input x n 10", "y = com.microsoft.UnfoldTensor(x) {size=4, step=3}"],
            "f32 [n, 3, 4]",
        );
    }
}
