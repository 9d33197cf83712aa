//! Rules of operators that pick elements by position or by value.
//!
//! ~~~text
//! data [4, 5, 6]   indices [7, 2]   ──GatherND──>  [7, 6]       a row of indices names the first two axes
//! x [4, 5]                          ──NonZero──>   [2, ?]       how many depends on the data
//! ~~~

use super::{int, known, of_rank, product, whole};
use crate::call::{Call, Facts, Misfit, axis};
use crate::fact::{Element, Extent, Fact, Scalar};
use lowtide_core::DType;

pub(crate) fn gather_elements(call: &Call<'_>) -> Facts {
    Ok(vec![call.typed(0, call.input(1).dims.clone())])
}

pub(crate) fn gather_nd(call: &Call<'_>) -> Facts {
    let Some((data, indices)) = call.dims(0).zip(call.dims(1)) else {
        return Ok(vec![call.typed(0, None)]);
    };
    let Some((width, outer)) = indices.split_last() else {
        return Err(Misfit("the indices have rank 0, wanted 1 or more".to_owned()));
    };
    let batch = usize::try_from(call.int_or("batch_dims", 0)).unwrap_or(usize::MAX);
    let Some(width) = super::number(width) else { return Ok(vec![call.typed(0, None)]) };
    let used = usize::try_from(width).ok().and_then(|width| width.checked_add(batch));
    match used {
        Some(used) if used <= data.len() => {
            let dims = [outer, &data[used..]].concat();
            Ok(vec![call.typed(0, Some(dims))])
        }
        _ => {
            let rank = data.len();
            Err(Misfit(format!("indices of {width} axes into data of rank {rank}")))
        }
    }
}

/// `NonZero`: where they are. If all is known of a vector, so is the result.
pub(crate) fn non_zero(call: &Call<'_>) -> Facts {
    let places = places(call);
    let count = places.as_ref().and_then(|places| known(places.len()));
    let Some(rank) = call.rank(0) else { return Ok(vec![of_rank(Some(DType::I64), Some(2))]) };
    let fact = Fact::new(Some(DType::I64), Some(vec![known(rank), count]));
    Ok(vec![fact.with(places)])
}

fn places(call: &Call<'_>) -> Option<Vec<Element>> {
    let elements = call.elements(0).filter(|_| call.rank(0) == Some(1))?;
    let mut places = Vec::new();
    for (at, element) in elements.iter().enumerate() {
        let is_zero = match element.as_ref()? {
            Scalar::Int(value) => value.known()? == 0,
            Scalar::Float(value) => *value == 0.0,
        };
        places.extend((!is_zero).then(|| int(known(at))));
    }
    Some(places)
}

/// `Unique`: the values, where each stood first, which one each element is, how often each stands.
pub(crate) fn unique(call: &Call<'_>) -> Facts {
    let (values, total) = match (call.int("axis"), call.dims(0)) {
        (None, dims) => (Some(vec![None]), dims.and_then(product)),
        (Some(_), None) => (None, None),
        (Some(at), Some(dims)) => {
            let at = axis(at, dims.len())?;
            let mut values = dims.to_vec();
            values[at] = None;
            (Some(values), dims[at].clone())
        }
    };
    let list = |len: Extent| Fact::new(Some(DType::I64), Some(vec![len]));
    Ok(vec![call.typed(0, values), list(None), list(total), list(None)])
}

/// `Unique` of vectors, with the inverse before the counts.
pub(crate) fn unique_of_vector(call: &Call<'_>) -> Facts {
    let list = |len: Extent| Fact::new(Some(DType::I64), Some(vec![len]));
    Ok(vec![call.typed(0, Some(vec![None])), list(call.dim(0, 0)), list(None)])
}

/// `NonMaxSuppression`: batch, class and box of each that is kept.
pub(crate) fn non_max_suppression(_: &Call<'_>) -> Facts {
    Ok(vec![Fact::new(Some(DType::I64), Some(vec![None, whole(3)]))])
}

pub(crate) fn one_hot(call: &Call<'_>) -> Facts {
    let dims = match call.dims(0) {
        Some(dims) => {
            let at = axis(call.int_or("axis", -1), dims.len() + 1)?;
            let mut dims = dims.to_vec();
            dims.insert(at, depth(call));
            Some(dims)
        }
        None => None,
    };
    Ok(vec![call.typed(2, dims)])
}

/// How many classes there are; some files say so with a number that is no integer.
fn depth(call: &Call<'_>) -> Extent {
    match call.scalar(1)? {
        Scalar::Int(depth) => Some(depth.clone()),
        Scalar::Float(depth) if (0.0..2_f64.powi(53)).contains(depth) => {
            #[expect(clippy::cast_possible_truncation, reason = "the value is in range")]
            let depth = *depth as i64;
            whole(depth)
        }
        Scalar::Float(_) => None,
    }
}

/// `Compress`: what a condition lets through.
pub(crate) fn compress(call: &Call<'_>) -> Facts {
    let dims = match (call.int("axis"), call.dims(0)) {
        (None, _) => Some(vec![None]),
        (Some(_), None) => None,
        (Some(at), Some(dims)) => {
            let at = axis(at, dims.len())?;
            let mut dims = dims.to_vec();
            dims[at] = None;
            Some(dims)
        }
    };
    Ok(vec![call.typed(0, dims)])
}

/// `Gather` of rows of an embedding, indices second.
pub(crate) fn embedding(call: &Call<'_>) -> Facts {
    let dims = call.dims(1).map(|indices| [indices, &[call.dim(0, 1)]].concat());
    Ok(vec![call.typed(0, dims)])
}

#[cfg(test)]
mod tests {
    use crate::testing::{infers, misfits};

    #[test]
    fn rows_of_indices_name_leading_axes() {
        infers(&["input x 4 5 6", "input i i64 n 2", "y = GatherND(x, i)"], "f32 [n, 6]");
        infers(
            &["input x b 5 6", "input i i64 b 7 1", "y = GatherND(x, i) {batch_dims=1}"],
            "f32 [b, 7, 6]",
        );
        infers(&["input x 4 5", "input i i64 2 n", "y = GatherElements(x, i)"], "f32 [2, n]");
    }

    #[test]
    fn how_many_there_are_depends_on_the_data() {
        infers(&["input x n 5", "y = NonZero(x)"], "i64 [2, ?]");
        infers(&["input b 1 9 4", "input s 1 2 9", "y = NonMaxSuppression(b, s)"], "i64 [?, 3]");
        infers(
            &["input x n 5", "y; i; v; c = Unique(x) {axis=1}"],
            "f32 [n, ?]; i64 [?]; i64 [5]; i64 [?]",
        );
        infers(&["input x n 5", "y; i; v; c = Unique(x)"], "f32 [?]; i64 [?]; i64 [5*n]; i64 [?]");
        infers(&["input x n 5", "input c bool 5", "y = Compress(x, c) {axis=1}"], "f32 [n, ?]");
    }

    #[test]
    fn of_known_data_the_places_are_known() {
        infers(&["weight x i64 4 = 0 3 0 1", "y = NonZero(x)"], "i64 [1, 2]");
    }

    #[test]
    fn a_hot_axis_is_as_long_as_it_is_deep() {
        infers(
            &["input i i64 n 3", "weight d i64 1 = 10", "weight v f16 2", "y = OneHot(i, d, v)"],
            "f16 [n, 3, 10]",
        );
        infers(
            &[
                "input i i64 n 3",
                "weight d i64 1 = 10",
                "weight v 2",
                "y = OneHot(i, d, v) {axis=0}",
            ],
            "f32 [10, n, 3]",
        );
    }

    #[test]
    fn a_depth_may_be_no_integer() {
        infers(
            &["input i i64 n", "weight d 1 = 10.5", "weight v 2", "y = OneHot(i, d, v)"],
            "f32 [n, 10]",
        );
    }

    #[test]
    fn indices_have_no_more_axes_than_the_data() {
        misfits(
            &["input x 4 5", "input i i64 n 3", "y = GatherND(x, i)"],
            "indices of 3 axes into data of rank 2",
        );
    }
}
