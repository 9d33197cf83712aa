//! The rule of `Slice`.
//!
//! ~~~text
//! x [n, 8]   starts [0], ends [-1], axes [1]   ──>  [n, 7]      a slice of a small tensor keeps its elements
//! ~~~

use super::{elements, known, of_rank};
use crate::call::{Call, Facts, Misfit, axis};
use crate::expr::Expr;
use crate::fact::{Element, Extent, Fact};

/// Start, end and step along one axis of a slice; `None` where they are not known.
struct Cut {
    start: Extent,
    end: Extent,
    step: i64,
}

pub(crate) fn slice(call: &Call<'_>) -> Facts {
    let dtype = call.dtype(0);
    let Some(dims) = call.dims(0) else { return Ok(vec![Fact::of_type(dtype)]) };
    let Some(cuts) = cuts(call, dims.len())? else {
        return Ok(vec![of_rank(dtype, Some(dims.len()))]);
    };
    let mut result = dims.to_vec();
    for (at, cut) in &cuts {
        result[*at] = cut_length(dims[*at].as_ref(), cut);
    }
    let elements = sliced(call, &cuts);
    Ok(vec![Fact::new(dtype, Some(result)).with(elements)])
}

/// The cut of each axis that has one; `None` if not even the axes are known.
fn cuts(call: &Call<'_>, rank: usize) -> Result<Option<Vec<(usize, Cut)>>, Misfit> {
    let of_ints = |list: &[i64]| list.iter().map(|&value| Some(Expr::Known(value))).collect();
    let list = |name: &str, at: usize| -> Option<Vec<Extent>> {
        call.ints(name).map(of_ints).or_else(|| call.exprs(at))
    };
    let count = |at: usize| call.input(at).element_count();
    let starts = list("starts", 1).or_else(|| count(1).map(|count| vec![None; count.min(64)]));
    let Some(starts) = starts else { return Ok(None) };
    let ends = list("ends", 2).unwrap_or_else(|| vec![None; starts.len()]);
    let Ok(axes) = call.ints_either("axes", 3) else { return Ok(None) };
    let axes = axes.unwrap_or_else(|| (0_i64..).take(starts.len()).collect());
    let Ok(steps) = call.ints_either("steps", 4) else { return Ok(None) };
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()].iter().any(|&len| len != starts.len()) {
        return Err(Misfit("starts, ends, axes and steps have different lengths".to_owned()));
    }
    let mut cuts = Vec::with_capacity(starts.len());
    for (((start, end), at), step) in starts.into_iter().zip(ends).zip(axes).zip(steps) {
        if step == 0 {
            return Err(Misfit("a step is 0".to_owned()));
        }
        cuts.push((axis(at, rank)?, Cut { start, end, step }));
    }
    Ok(Some(cuts))
}

/// How many elements a cut takes out of `len`.
fn cut_length(len: Option<&Expr>, cut: &Cut) -> Extent {
    let (len, start, end) = (len?, cut.start.as_ref()?, cut.end.as_ref()?);
    if let (Some(len), Some(start), Some(end)) = (len.known(), start.known(), end.known()) {
        return known(cut_count(usize::try_from(len).ok()?, start, end, cut.step));
    }
    (cut.step == 1).then_some(())?;
    // From the start to the end is all; an end at or beyond the length is the length.
    let from = place(start, len)?;
    let to = if end.known() == Some(i64::MAX) || end.is_at_least(len) {
        len.clone()
    } else {
        place(end, len)?.smaller(len)?
    };
    let from = if to == *len { from } else { from.smaller(len)? };
    to.sub(&from)?.larger(&Expr::ZERO)
}

/// A position that may count from the end.
fn place(at: &Expr, len: &Expr) -> Extent {
    match at.known() {
        Some(value) if value < 0 => len.add(at)?.larger(&Expr::ZERO),
        Some(_) => Some(at.clone()),
        None => at.is_at_least(&Expr::ZERO).then(|| at.clone()),
    }
}

/// How many indices a cut takes.
fn cut_count(len: usize, start: i64, end: i64, step: i64) -> usize {
    if len == 0 {
        return 0;
    }
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let from_start = |at: i64| if at < 0 { at.saturating_add(len) } else { at };
    let (low, high) = if step > 0 { (0, len) } else { (-1, len.saturating_sub(1)) };
    let start = from_start(start).clamp(low.max(0), high.max(0));
    let end = if end < 0 && end.saturating_add(len) < 0 { low } else { from_start(end) };
    let distance = end.clamp(low, high).saturating_sub(start);
    let distance = if step > 0 { distance } else { -distance };
    let count =
        if distance > 0 { distance.unsigned_abs().div_ceil(step.unsigned_abs()) } else { 0 };
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Elements of a slice, axis by axis: where each takes its indices from.
fn sliced(call: &Call<'_>, cuts: &[(usize, Cut)]) -> Option<Vec<Element>> {
    let elements = call.elements(0)?;
    let dims = elements::sizes(&call.input(0).known_dims()?)?;
    let mut taken: Vec<Vec<usize>> = dims.iter().map(|&len| (0..len).collect()).collect();
    for (at, cut) in cuts {
        taken[*at] = indices(dims[*at], cut)?;
    }
    Some(elements::pick(elements, &dims, &taken))
}

/// The indices that a cut takes of an axis.
fn indices(size: usize, cut: &Cut) -> Option<Vec<usize>> {
    let (start, end) = (cut.start.as_ref()?.known()?, cut.end.as_ref()?.known()?);
    let len = i64::try_from(size).ok()?;
    let high = if cut.step > 0 { len } else { len - 1 };
    let first = (if start < 0 { start.saturating_add(len) } else { start }).clamp(0, high.max(0));
    let count = cut_count(size, start, end, cut.step);
    let at = |index: usize| {
        let step = i64::try_from(index).ok()?.checked_mul(cut.step)?;
        usize::try_from(first.checked_add(step)?).ok()
    };
    (0..count).map(at).collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::{infers, misfits};

    const FIRST: [&str; 3] =
        ["weight s i64 1 = 1", "weight e i64 1 = 9223372036854775807", "weight a i64 1 = 1"];

    #[test]
    fn nothing_is_cut_out_of_nothing_backward_either() {
        for (start, end, step) in [("5", "8", "-1"), ("-7", "-4", "-2"), ("0", "9", "1")] {
            let [s, e, t] = [("s", start), ("e", end), ("t", step)]
                .map(|(name, value)| format!("weight {name} i64 1 = {value}"));
            let lines = [&s, &e, "weight a i64 1 = 0", &t, "input x 0", "y = Slice(x, s, e, a, t)"];
            infers(&lines, "f32 [0]");
        }
    }

    #[test]
    fn a_slice_to_the_end_is_shorter_by_its_start() {
        let lines = [&FIRST[..], &["input x 2 n", "y = Slice(x, s, e, a)"]].concat();
        infers(&lines, "f32 [2, max(0, n - 1)]");
        let lines = [&FIRST[..], &["input x 2 8", "y = Slice(x, s, e, a)"]].concat();
        infers(&lines, "f32 [2, 7]");
    }

    #[test]
    fn steps_may_go_back() {
        let steps = ["weight s i64 1 = -1", "weight e i64 1 = -99", "weight a i64 1 = 0"];
        let lines = [&steps[..], &["input x 7", "weight t i64 1 = -2", "y = Slice(x, s, e, a, t)"]];
        infers(&lines.concat(), "f32 [4]");
        let zero = [&steps[..], &["input x 7", "weight t i64 1 = 0", "y = Slice(x, s, e, a, t)"]];
        misfits(&zero.concat(), "a step is 0");
    }
}
