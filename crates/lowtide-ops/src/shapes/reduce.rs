//! Rules of operators that fold, scan or rank along axes.
//!
//! ~~~text
//! x [n, c, h, w] ──ReduceMean over 2 and 3──>  [n, c, 1, 1]   or  [n, c] without keepdims
//! ~~~
//! Products and sums of small vectors are followed, as sizes are calculated with them.

use super::elementwise::fold;
use super::{number, of_rank, whole};
use crate::call::{Call, Facts, Misfit, NotKnown, axes, axis};
use crate::expr::Expr;
use crate::fact::{Element, Extent, Fact, Scalar};
use lowtide_core::DType;

/// The axes that go; `None` if they are not known before the model runs.
fn reduced_axes(call: &Call<'_>, rank: usize) -> Result<Option<Vec<usize>>, Misfit> {
    let is_empty = call.has(1) && call.input(1).element_count() == Some(0);
    let list = match call.ints_either("axes", 1) {
        Ok(list) => list.filter(|list| !list.is_empty()),
        Err(NotKnown) if is_empty => None,
        Err(NotKnown) => return Ok(None),
    };
    match list {
        Some(list) => axes(&list, rank).map(Some),
        None if call.flag("noop_with_empty_axes") => Ok(Some(Vec::new())),
        None => Ok(Some((0..rank).collect())),
    }
}

fn keeps(call: &Call<'_>) -> bool {
    call.int_or("keepdims", 1) != 0
}

/// A shape without some axes, or with 1 in their places.
fn without(dims: &[Extent], gone: &[usize], keeps: bool) -> Vec<Extent> {
    let is_gone = |at: usize| gone.binary_search(&at).is_ok();
    let kept = dims.iter().enumerate().filter(|&(at, _)| keeps || !is_gone(at));
    kept.map(|(at, dim)| if is_gone(at) { whole(1) } else { dim.clone() }).collect()
}

pub(crate) fn reduce(call: &Call<'_>) -> Facts {
    let Some(dims) = call.dims(0) else { return Ok(vec![rank_left(call)]) };
    let Some(gone) = reduced_axes(call, dims.len())? else {
        return Ok(vec![if keeps(call) {
            of_rank(call.dtype(0), Some(dims.len()))
        } else {
            let count = call.input(1).element_count();
            of_rank(call.dtype(0), count.and_then(|count| dims.len().checked_sub(count)))
        }]);
    };
    Ok(vec![call.typed(0, Some(without(dims, &gone, keeps(call))))])
}

/// Of an input without shape, all that goes leaves nothing behind.
fn rank_left(call: &Call<'_>) -> Fact {
    let is_all = !call.has(1) && call.ints("axes").is_none() && !call.flag("noop_with_empty_axes");
    of_rank(call.dtype(0), (is_all && !keeps(call)).then_some(0))
}

/// A reduction whose elements are followed: of a vector, all folded into one.
fn followed(call: &Call<'_>, with: fn(&[&Scalar]) -> Element) -> Facts {
    let mut facts = reduce(call)?;
    let is_one = facts.first().and_then(Fact::element_count) == Some(1);
    if let (true, Some(elements), Some(1)) = (is_one, call.elements(0), call.rank(0)) {
        let known: Option<Vec<&Scalar>> = elements.iter().map(Option::as_ref).collect();
        let one = known.filter(|known| !known.is_empty()).and_then(|known| with(&known));
        let fact = facts.remove(0);
        facts.push(fact.with(Some(vec![one])));
    }
    Ok(facts)
}

pub(crate) fn sum(call: &Call<'_>) -> Facts {
    followed(call, |values| fold(values, Expr::add, |a, b| a + b))
}

pub(crate) fn prod(call: &Call<'_>) -> Facts {
    followed(call, |values| fold(values, Expr::mul, |a, b| a * b))
}

pub(crate) fn max(call: &Call<'_>) -> Facts {
    followed(call, |values| fold(values, Expr::larger, f64::max))
}

pub(crate) fn min(call: &Call<'_>) -> Facts {
    followed(call, |values| fold(values, Expr::smaller, f64::min))
}

/// `ReduceSumInteger`: the type is that of a sum, which the file states.
pub(crate) fn integer_sum(call: &Call<'_>) -> Facts {
    let dims = reduce(call)?.pop().and_then(|fact| fact.dims);
    Ok(vec![Fact::new(None, dims)])
}

/// `ArgMax` and `ArgMin`: positions along one axis.
pub(crate) fn position(call: &Call<'_>) -> Facts {
    let dims = match call.dims(0) {
        Some(dims) => {
            let gone = axis(call.int_or("axis", 0), dims.len())?;
            Some(without(dims, &[gone], keeps(call)))
        }
        None => None,
    };
    Ok(vec![Fact::new(Some(DType::I64), dims)])
}

/// `TopK`: the first k along an axis, and where they were.
pub(crate) fn top_k(call: &Call<'_>) -> Facts {
    let k = call.int("k").map(Expr::Known).or_else(|| call.scalar_int(1));
    let dims = match call.dims(0) {
        Some(dims) => {
            let at = axis(call.int_or("axis", -1), dims.len())?;
            if let (Some(k), Some(len)) = (k.as_ref().and_then(Expr::known), number(&dims[at]))
                && k > len
            {
                return Err(Misfit(format!("the first {k} of {len} elements")));
            }
            let mut dims = dims.to_vec();
            dims[at] = k;
            Some(dims)
        }
        None => None,
    };
    Ok(vec![call.typed(0, dims.clone()), Fact::new(Some(DType::I64), dims)])
}

#[cfg(test)]
mod tests {
    use crate::testing::{infers, misfits};

    #[test]
    fn reduced_axes_are_1_or_gone() {
        infers(&["input x n 3 h w", "y = ReduceMean(x) {axes=[2, 3]}"], "f32 [n, 3, 1, 1]");
        infers(
            &["input x n 3 h w", "weight a i64 1 = -1", "y = ReduceSum(x, a) {keepdims=0}"],
            "f32 [n, 3, h]",
        );
    }

    #[test]
    fn without_axes_all_are_reduced_or_none() {
        infers(&["input x n 3", "y = ReduceMax(x) {keepdims=0}"], "f32 []");
        infers(&["input x n 3", "y = ReduceSum(x) {noop_with_empty_axes=1}"], "f32 [n, 3]");
    }

    #[test]
    fn axes_that_are_not_known_leave_the_rank() {
        infers(&["input x n 3", "input a i64 1", "y = ReduceSum(x, a)"], "f32 [?, ?]");
        infers(&["input x n 3", "input a i64 1", "y = ReduceSum(x, a) {keepdims=0}"], "f32 [?]");
    }

    #[test]
    fn sizes_are_calculated_with_products() {
        infers(
            &["input x n 3 4", "s = Shape(x)", "p = ReduceProd(s)", "y = Reshape(x, p)"],
            "f32 [12*n]",
        );
    }

    #[test]
    fn positions_are_integers() {
        infers(&["input x n 3", "y = ArgMax(x) {axis=1, keepdims=0}"], "i64 [n]");
        infers(
            &["input x n 30", "weight k i64 1 = 5", "y; i = TopK(x, k)"],
            "f32 [n, 5]; i64 [n, 5]",
        );
        infers(
            &["opset 9", "input x n 30", "y; i = TopK(x) {k=5, axis=0}"],
            "f32 [5, 30]; i64 [5, 30]",
        );
    }

    #[test]
    fn what_does_not_fit_is_said() {
        misfits(
            &["input x n 3", "y = ReduceSum(x) {axes=[2]}"],
            "axis 2 is outside of a tensor of rank 2",
        );
        misfits(
            &["input x n 3", "weight k i64 1 = 5", "y; i = TopK(x, k)"],
            "the first 5 of 3 elements",
        );
    }
}
