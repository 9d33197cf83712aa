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
