//! Rules of operators that add to the ends of axes, or cut them off.
//!
//! ~~~text
//! x [h, w]   pads [1, 0, 2, -3]   ──>  [h + 3, w - 3]      all beginnings, then all ends
//! ~~~

use super::window::check_len;
use super::{add, number, of_rank, rank_by, whole};
use crate::call::{Call, Facts, Misfit, NotKnown, axis, shape_text};
use crate::fact::Extent;

pub(crate) fn pad(call: &Call<'_>) -> Facts {
    let Some(dims) = call.dims(0) else { return Ok(vec![call.typed(0, None)]) };
    let list = call.ints("pads").or_else(|| call.ints("paddings"));
    let pads = match list {
        Some(list) => Some(list.iter().map(|&one| whole(one)).collect()),
        None => call.exprs(1),
    };
    let axes = match axes(call, dims.len()) {
        Ok(axes) => axes?,
        Err(NotKnown) => return Ok(vec![of_rank(call.dtype(0), Some(dims.len()))]),
    };
    let pads: Vec<Extent> = pads.unwrap_or_else(|| vec![None; 2 * axes.len()]);
    check_len("pads", pads.len(), 2 * axes.len())?;
    let (before, after) = pads.split_at(axes.len());
    let mut result = dims.to_vec();
    for ((&at, before), after) in axes.iter().zip(before).zip(after) {
        result[at] = add(&add(&result[at], before), after);
    }
    if result.iter().any(|dim| number(dim).is_some_and(|len| len < 0)) {
        let (from, to) = (shape_text(dims), shape_text(&result));
        return Err(Misfit(format!("the pads make {to} of {from}")));
    }
    Ok(vec![call.typed(0, Some(result))])
}

/// The axes that have pads: all, unless an input lists them.
fn axes(call: &Call<'_>, rank: usize) -> Result<Result<Vec<usize>, Misfit>, NotKnown> {
    if !call.has(3) {
        return Ok(Ok((0..rank).collect()));
    }
    let list = call.ints_of(3).ok_or(NotKnown)?;
    Ok(list.iter().map(|&at| axis(at, rank)).collect())
}

/// `CenterCropPad`: some axes get the lengths that an input gives.
pub(crate) fn center_crop_pad(call: &Call<'_>) -> Facts {
    let Some(dims) = call.dims(0) else {
        let rank = rank_by(call, 1).filter(|_| call.ints("axes").is_none());
        return Ok(vec![of_rank(call.dtype(0), rank)]);
    };
    let axes = match call.ints("axes") {
        Some(list) => list.iter().map(|&at| axis(at, dims.len())).collect::<Result<_, _>>()?,
        None => (0..dims.len()).collect::<Vec<_>>(),
    };
    let wanted = call.exprs(1).unwrap_or_else(|| vec![None; axes.len()]);
    check_len("shape", wanted.len(), axes.len())?;
    let mut result = dims.to_vec();
    axes.iter().zip(wanted).for_each(|(&at, len)| result[at] = len);
    Ok(vec![call.typed(0, Some(result))])
}

#[cfg(test)]
mod tests {
    use crate::testing::{infers, misfits};

    #[test]
    fn pads_are_added_at_both_ends() {
        infers(
            &["input x h w", "weight p i64 4 = 1 0 2 -3", "y = Pad(x, p)"],
            "f32 [h + 3, w - 3]",
        );
        infers(&["opset 2", "input x 3 4", "y = Pad(x) {pads=[1, 0, 2, 0]}"], "f32 [6, 4]");
    }

    #[test]
    fn only_some_axes_may_have_pads() {
        infers(
            &[
                "input x n 3 4",
                "weight p i64 2 = 1 1",
                "weight v",
                "weight a i64 1 = -1",
                "y = Pad(x, p, v, a)",
            ],
            "f32 [n, 3, 6]",
        );
        infers(
            &["input x 9 8 7", "weight s i64 2 = 4 10", "y = CenterCropPad(x, s) {axes=[0, 2]}"],
            "f32 [4, 8, 10]",
        );
    }

    #[test]
    fn pads_that_are_not_known_leave_the_rank() {
        infers(&["input x 3 4", "input p i64 4", "y = Pad(x, p)"], "f32 [?, ?]");
    }

    #[test]
    fn no_axis_is_shorter_than_nothing() {
        misfits(
            &["input x 3 4", "weight p i64 4 = -2 0 -2 0", "y = Pad(x, p)"],
            "the pads make [-1, 4] of [3, 4]",
        );
        misfits(
            &["input x 3 4", "weight p i64 2 = 0 0", "y = Pad(x, p)"],
            "pads has 2 entries, wanted 4",
        );
    }
}
