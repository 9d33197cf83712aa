//! Rules of normalisations: the result is like the data; statistics have a place for each group of elements.
//!
//! ~~~text
//! x [n, 197, 768] ──LayerNormalization──>  y [n, 197, 768], mean [n, 197, 1], inverse deviation [n, 197, 1]
//! ~~~

use super::{like_first, whole};
use crate::call::{Call, Facts, Misfit, axis, dtype_of_number};
use crate::fact::{Extent, Fact};
use lowtide_core::DType;

/// `BatchNormalization`: in training also statistics of the channels.
pub(crate) fn batch(call: &Call<'_>) -> Facts {
    let mut facts = like_first(call)?;
    let channels = match call.dims(0) {
        Some(dims) if dims.len() > 1 => dims[1].clone(),
        Some(_) => whole(1),
        None => call.dim(1, 0),
    };
    for _ in 1..call.output_count().min(5) {
        facts.push(call.typed(3, Some(vec![channels.clone()])));
    }
    Ok(facts)
}

/// The shape of statistics of everything from an axis on.
fn statistics(call: &Call<'_>) -> Result<Option<Vec<Extent>>, Misfit> {
    let Some(dims) = call.dims(0) else { return Ok(None) };
    let from = axis(call.int_or("axis", -1), dims.len())?;
    let kept = |(at, dim): (usize, &Extent)| if at < from { dim.clone() } else { whole(1) };
    Ok(Some(dims.iter().enumerate().map(kept).collect()))
}

/// `LayerNormalization` and its simplified form: statistics of the type that `stash_type` names.
pub(crate) fn layer(call: &Call<'_>) -> Facts {
    let dims = statistics(call)?;
    let dtype = dtype_of_number(call.int_or("stash_type", 1));
    let statistic = Fact::new(dtype, dims);
    Ok([like_first(call)?, vec![statistic.clone(), statistic]].concat())
}

/// `RMSNormalization`: the type is that of the scale.
pub(crate) fn rms(call: &Call<'_>) -> Facts {
    statistics(call)?;
    Ok(vec![Fact::new(call.dtype(1).or(call.dtype(0)), call.input(0).dims.clone())])
}

/// `SkipLayerNormalization`: also statistics, and the sum that was normalised.
pub(crate) fn skip_layer(call: &Call<'_>) -> Facts {
    let first = like_first(call)?.remove(0);
    let statistic = Fact::new(Some(DType::F32), statistics(call)?);
    Ok(vec![first.clone(), statistic.clone(), statistic, first])
}

/// `SkipGroupNorm`: also the sum that was normalised.
pub(crate) fn skip_group(call: &Call<'_>) -> Facts {
    Ok([like_first(call)?, like_first(call)?].concat())
}

/// Along one axis, which the input must have.
pub(crate) fn along_axis(call: &Call<'_>) -> Facts {
    if let (Some(at), Some(rank)) = (call.int("axis"), call.rank(0)) {
        // The first versions took an axis behind the last one.
        let is_end = usize::try_from(at).is_ok_and(|at| at == rank) && call.opset < 13;
        if !is_end && rank > 0 {
            axis(at, rank)?;
        }
    }
    like_first(call)
}

#[cfg(test)]
mod tests {
    use crate::testing::{infers, misfits};

    #[test]
    fn statistics_have_a_place_for_each_group() {
        infers(
            &["input x n 197 768", "weight w 768", "y; m; d = LayerNormalization(x, w)"],
            "f32 [n, 197, 768]; f32 [n, 197, 1]; f32 [n, 197, 1]",
        );
        infers(
            &["input x f16 n 4 5", "weight w f16 4 5", "y; m = LayerNormalization(x, w) {axis=1}"],
            "f16 [n, 4, 5]; f32 [n, 1, 1]",
        );
    }

    #[test]
    fn in_training_channels_have_statistics() {
        infers(
            &[
                "input x n 3 4",
                "weight s 3",
                "y; m; v = BatchNormalization(x, s, s, s, s) {training_mode=1}",
            ],
            "f32 [n, 3, 4]; f32 [3]; f32 [3]",
        );
    }

    #[test]
    fn what_is_skipped_is_added_and_given_back() {
        infers(
            &[
                "input x n 4 8",
                "input k n 4 8",
                "weight w 8",
                "y; m; d; s = com.microsoft.SkipLayerNormalization(x, k, w)",
            ],
            "f32 [n, 4, 8]; f32 [n, 4, 1]; f32 [n, 4, 1]; f32 [n, 4, 8]",
        );
    }

    #[test]
    fn axes_exist() {
        misfits(
            &["input x n 3", "y = Softmax(x) {axis=2}"],
            "axis 2 is outside of a tensor of rank 2",
        );
        infers(&["input x n 3", "y = Softmax(x)"], "f32 [n, 3]");
    }
}
