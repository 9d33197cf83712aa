//! `Slice`: every n-th element of each axis between two places, forward or backward.
//!
//! ~~~text
//! x 0 1 2 3 4 5   start 4, end 0, step -2     4 2       a walk from place 4 with steps of -2
//! ~~~

use super::copy::copy;
use super::index::axis;
use super::lists::{List, Numbers, check};
use crate::kernels::facts::input_dims;
use crate::kernels::function;
use crate::kernels::strides::{MAX_RANK, Walk, check_rank, strides};
use crate::kernels::types::{Made, elements, elements_mut, with_width};
use lowtide_core::operator::{Call, Fact, KernelError, Operands};

pub(crate) fn slice(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    let dims = input_dims(call, 0)?;
    check_rank(&dims)?;
    let strides = strides(&dims);
    let lists = Lists {
        starts: Numbers::new(call, "starts", 1)?,
        ends: Numbers::new(call, "ends", 2)?,
        axes: Numbers::new(call, "axes", 3)?,
        steps: Numbers::new(call, "steps", 4)?,
    };
    with_width!(call.dtype(0), E => Ok(function(move |operands| {
        let cuts = lists.cuts(operands, &dims)?;
        let walk = walk(&cuts[..dims.len()], &strides);
        let counts = cuts[..dims.len()].iter().map(|cut| cut.count);
        check_dims(counts, operands.output(0)?.dims)?;
        copy(&walk, elements::<E>(operands.input(0)?)?, elements_mut::<E>(operands, 0)?);
        Ok(())
    })))
}

/// That a result has the shape that was planned.
pub(super) fn check_dims(
    found: impl Iterator<Item = usize> + Clone,
    planned: &[usize],
) -> Result<(), KernelError> {
    if found.clone().eq(planned.iter().copied()) {
        return Ok(());
    }
    check("the shape of the result", &found.collect::<Vec<_>>()[..], planned)
}

struct Lists {
    starts: Numbers,
    ends: Numbers,
    axes: Numbers,
    steps: Numbers,
}

/// What is taken of an axis.
#[derive(Clone, Copy, Default)]
struct Cut {
    start: usize,
    step: i64,
    count: usize,
}

impl Lists {
    /// What is taken of each axis.
    fn cuts(
        &self,
        operands: &Operands<'_>,
        dims: &[usize],
    ) -> Result<[Cut; MAX_RANK], KernelError> {
        let starts = self.starts.get(operands, "starts")?;
        let ends = self.ends.get(operands, "ends")?;
        let (axes, steps) = (self.axes.read(operands)?, self.steps.read(operands)?);
        let has_length = |list: &Option<List>| list.is_none_or(|list| list.len() == starts.len());
        if ends.len() != starts.len() || !has_length(&axes) || !has_length(&steps) {
            let message = "starts, ends, axes and steps have different lengths";
            return Err(KernelError::Value(message.to_owned()));
        }
        let mut cuts = [Cut::default(); MAX_RANK];
        for (cut, &count) in cuts.iter_mut().zip(dims) {
            *cut = Cut { start: 0, step: 1, count };
        }
        for (at, (&start, &end)) in starts.iter().zip(&*ends).enumerate() {
            let at_axis =
                axes.map_or_else(|| i64::try_from(at).unwrap_or(i64::MAX), |axes| axes[at]);
            let axis = axis(at_axis, dims.len())?;
            cuts[axis] = cut(dims[axis], start, end, steps.map_or(1, |steps| steps[at]))?;
        }
        Ok(cuts)
    }
}

/// What is taken of an axis of this length; places may count from the end, and lie beyond it.
fn cut(len: usize, start: i64, end: i64, step: i64) -> Result<Cut, KernelError> {
    if step == 0 {
        return Err(KernelError::Value("a step is 0".to_owned()));
    }
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    if len == 0 {
        return Ok(Cut { start: 0, step: 1, count: 0 });
    }
    let from_start = |at: i64| if at < 0 { at.saturating_add(len) } else { at };
    let (start, end) = (from_start(start), from_start(end));
    let (start, distance) = if step > 0 {
        let start = start.clamp(0, len);
        (start, end.clamp(0, len) - start)
    } else {
        let start = start.clamp(0, len - 1);
        (start, start - end.clamp(-1, len - 1))
    };
    let count = u64::try_from(distance).unwrap_or(0).div_ceil(step.unsigned_abs());
    let [start, count] = [start.unsigned_abs(), count].map(|one| usize::try_from(one).unwrap_or(0));
    Ok(Cut { start, step, count })
}

fn walk(cuts: &[Cut], strides: &[usize]) -> Walk {
    let start = cuts.iter().zip(strides).map(|(cut, stride)| cut.start.wrapping_mul(*stride));
    let mut walk = Walk::at(start.fold(0, usize::wrapping_add));
    for (cut, stride) in cuts.iter().zip(strides) {
        let step = isize::try_from(cut.step).unwrap_or(isize::MAX);
        walk.push(cut.count, step.wrapping_mul(stride.cast_signed()));
    }
    walk
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{fails, refuses, runs};

    /// Cuts one axis of `x`, after the axis, start, end and step.
    fn lines(x: &'static str, cut: [&str; 4]) -> Vec<String> {
        let list = |name: &str, value: &str| format!("weight {name} i64 1 = {value}");
        let [axis, start, end, step] = cut;
        let lists = [list("a", axis), list("s", start), list("e", end), list("t", step)];
        [&[x.to_owned()], &lists[..], &["y = Slice(x, s, e, a, t)".to_owned()]].concat()
    }

    #[track_caller]
    fn of(x: &'static str, cut: [&str; 4], wanted: &str) {
        let lines = lines(x, cut);
        runs(&lines.iter().map(String::as_str).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn places_count_from_both_ends() {
        let x = "weight x 6 = 0 1 2 3 4 5";
        of(x, ["0", "1", "4", "1"], "float32 [3] 1 2 3");
        of(x, ["-1", "-2", "9223372036854775807", "1"], "float32 [2] 4 5");
        of(x, ["0", "0", "6", "4"], "float32 [2] 0 4");
        of(x, ["0", "4", "2", "1"], "float32 [0] ");
        of(x, ["0", "9", "12", "1"], "float32 [0] ");
    }

    #[test]
    fn steps_may_go_back() {
        let x = "weight x i16 2 3 = 0 1 2 3 4 5";
        of(x, ["1", "-1", "-9", "-1"], "int16 [2, 3] 2 1 0 5 4 3");
        of(x, ["1", "99", "0", "-1"], "int16 [2, 2] 2 1 5 4");
        of(x, ["0", "1", "-9223372036854775808", "-9223372036854775808"], "int16 [1, 3] 3 4 5");
    }

    #[test]
    fn attributes_are_lists_too() {
        let x = "weight x 2 3 = 0 1 2 3 4 5";
        let call = "y = Slice(x) {starts=[0, 1], ends=[1, -1]}";
        runs(&["opset 9", x, call], "float32 [1, 1] 1");
        let lists = ["weight s i32 1 = 1", "weight e i32 1 = 2"];
        runs(&[x, lists[0], lists[1], "y = Slice(x, s, e)"], "float32 [1, 3] 3 4 5");
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        // Inference does not follow the bits of -2 to 1.
        let lists = ["weight x 2 = 1 2", "weight s i64 1 = 0", "weight t i64 1 = -2"];
        let calls = ["e = BitwiseNot(t)", "y 2 = Slice(x, s, e)"];
        fails(&[&lists[..], &calls].concat(), "the shape of the result: [1], wanted [2]");
        refuses(
            &["weight x u4 2", "y = Slice(x) {starts=[0], ends=[1]}"],
            "1 operators have no kernel: 1 x Slice (type uint4)",
        );
    }
}
