//! `Pad` and `CenterCropPad`: axes that become longer or shorter at their ends.
//!
//! ~~~text
//! x  1 2 3    pads 2 and 2    constant  0 0 1 2 3 0 0      first what stays is copied; then, for each axis,
//!                             edge      1 1 1 2 3 3 3      the fastest one first, what is outside is copied
//!                             reflect   3 2 1 2 3 2 1      from inside, within the output
//!                             wrap      2 3 1 2 3 1 2
//! ~~~
//! Pads below 0 cut off; what is then outside comes from what is left.

use super::index::axis;
use super::lists::{Numbers, check};
use super::slice::check_dims;
use crate::kernels::facts::{input_dims, output_dims, same_type, unsupported};
use crate::kernels::function;
use crate::kernels::number::no_kernel_for;
use crate::kernels::strides::{MAX_RANK, Walk, check_rank, strides};
use crate::kernels::types::{Made, elements, elements_mut, with_width};
use bytemuck::{Pod, Zeroable};
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact, KernelError, NoKernel, Operands, call};

/// What stands outside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Constant,
    Edge,
    Reflect,
    Wrap,
}

impl Mode {
    fn new(call: &Call<'_>) -> Result<Self, NoKernel> {
        match call.text("mode") {
            None | Some("constant") => Ok(Self::Constant),
            Some("edge") => Ok(Self::Edge),
            Some("reflect") => Ok(Self::Reflect),
            Some("wrap") => Ok(Self::Wrap),
            Some(other) => unsupported(format!("mode {other}")),
        }
    }

    /// The place inside, of `len`, that a place outside is like; places are counted from the first one inside.
    fn inside(self, at: i64, len: i64) -> i64 {
        let period = (2 * (len - 1)).max(1);
        match self {
            Self::Constant | Self::Edge => at.clamp(0, len - 1),
            Self::Wrap => at.rem_euclid(len),
            Self::Reflect if at.rem_euclid(period) < len => at.rem_euclid(period),
            Self::Reflect => period - at.rem_euclid(period),
        }
    }
}

/// What becomes of an axis.
#[derive(Clone, Copy, Default)]
struct Side {
    /// Its length in the output.
    len: usize,
    /// Where in the input what stays begins.
    from: usize,
    /// Where in the output that is.
    to: usize,
    /// How much stays.
    kept: usize,
}

impl Side {
    fn new(len: usize, before: i64, after: i64) -> Result<Self, KernelError> {
        let sum =
            i64::try_from(len).ok().and_then(|len| len.checked_add(before)?.checked_add(after));
        let sum = sum.and_then(|sum| usize::try_from(sum).ok());
        let cut = |pad: i64| usize::try_from(pad.min(0).unsigned_abs()).unwrap_or(usize::MAX);
        let (from, end) = (cut(before), len.checked_sub(cut(after)));
        let kept = end.and_then(|end| end.checked_sub(from));
        let to = usize::try_from(before.max(0)).unwrap_or(usize::MAX);
        let outside = || KernelError::Value(format!("pads of {before} and {after} for {len}"));
        let (len, kept) = sum.zip(kept).ok_or_else(outside)?;
        Ok(Self { len, from, to, kept })
    }
}

/// The axes of a tensor that is padded.
struct Padding {
    mode: Mode,
    dims: Vec<usize>,
    /// From element to element along each axis of the input and of the output.
    strides: [Vec<usize>; 2],
}

impl Padding {
    fn new(call: &Call<'_>, outputs: &[Option<&Fact>], mode: Mode) -> Result<Self, NoKernel> {
        let (dims, planned) = (input_dims(call, 0)?, output_dims(outputs, 0)?);
        check_rank(&dims)?;
        let strides = [strides(&dims), strides(&planned)];
        Ok(Self { mode, dims, strides })
    }

    fn run<E: Pod>(
        &self,
        operands: &mut Operands<'_>,
        sides: &[Side],
        value: E,
    ) -> Result<(), KernelError> {
        check_dims(sides.iter().map(|side| side.len), operands.output(0)?.dims)?;
        let from = elements::<E>(operands.input(0)?)?;
        let to = elements_mut::<E>(operands, 0)?;
        if to.is_empty() {
            return Ok(());
        }
        if self.mode == Mode::Constant {
            to.fill(value);
        }
        if sides.iter().all(|side| side.kept > 0) {
            self.copy_kept(sides, from, to);
        }
        if self.mode != Mode::Constant {
            for (axis, side) in sides.iter().enumerate().rev() {
                self.copy_outside(axis, side, to)?;
            }
        }
        Ok(())
    }

    /// Copies what stays. What is beyond the last axis that changes is in one piece.
    fn copy_kept<E: Pod>(&self, sides: &[Side], from: &[E], to: &mut [E]) {
        let [inner, outer] = &self.strides;
        let start = |strides: &[usize], of: fn(&Side) -> usize| -> usize {
            sides.iter().zip(strides).map(|(side, stride)| of(side) * stride).sum()
        };
        let mut places = Walk::at(start(inner, |side| side.from));
        let mut targets = Walk::at(start(outer, |side| side.to));
        let is_whole =
            |at: usize| sides[at].kept == self.dims[at] && sides[at].kept == sides[at].len;
        let last = (0..sides.len()).rposition(|at| !is_whole(at)).unwrap_or(0);
        for (at, side) in sides.iter().enumerate().take(last) {
            places.push(side.kept, inner[at].cast_signed());
            targets.push(side.kept, outer[at].cast_signed());
        }
        let run = sides.get(last).map_or(1, |side| side.kept * inner[last]);
        for (place, target) in places.places().zip(targets.places()) {
            to[target..target + run].copy_from_slice(&from[place..place + run]);
        }
    }

    /// Fills what is outside along one axis from what is inside.
    fn copy_outside<E: Pod>(
        &self,
        axis: usize,
        side: &Side,
        to: &mut [E],
    ) -> Result<(), KernelError> {
        let end = side.to + side.kept;
        if side.kept == 0 {
            return Err(KernelError::Value(format!("axis {axis} has nothing to be padded with")));
        }
        let signed = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
        let below = self.strides[1][axis];
        for rows in to.chunks_exact_mut(side.len * below) {
            for at in (0..side.to).chain(end..side.len) {
                let inside = self.mode.inside(signed(at) - signed(side.to), signed(side.kept));
                let start = (side.to + usize::try_from(inside).unwrap_or(0)) * below;
                rows.copy_within(start..start + below, at * below);
            }
        }
        Ok(())
    }
}

pub(crate) fn pad(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let padding = Padding::new(call, outputs, Mode::new(call)?)?;
    let name = if call.ints("pads").is_some() { "pads" } else { "paddings" };
    let (pads, axes) = (Numbers::new(call, name, 1)?, Numbers::new(call, "axes", 3)?);
    let value = old_value(call)?;
    same_type(call, 2)?;
    with_width!(call.dtype(0), E => Ok(function(move |operands| {
        let pads = pads.get(operands, "pads")?;
        let sides = sides(&pads, axes.read(operands)?.as_deref(), &padding.dims)?;
        let value = match operands.optional(2) {
            Some(input) => elements::<E>(input)?.first().copied().unwrap_or(E::zeroed()),
            None => bytemuck::pod_read_unaligned(&value[..size_of::<E>()]),
        };
        padding.run::<E>(operands, &sides[..padding.dims.len()], value)
    })))
}

/// The bytes of the constant where it is an attribute, as before version 11.
fn old_value(call: &Call<'_>) -> Result<[u8; 16], NoKernel> {
    let (value, mut bytes) = (call.float("value").unwrap_or(0.0), [0; 16]);
    match call.dtype(0) {
        _ if value == 0.0 => {}
        Some(DType::F32) => bytes[..4].copy_from_slice(&value.to_ne_bytes()),
        Some(DType::F64) => bytes[..8].copy_from_slice(&f64::from(value).to_ne_bytes()),
        other => return Err(no_kernel_for(other)),
    }
    Ok(bytes)
}

/// What becomes of each axis: first all pads before, then all pads behind, of all axes or of some.
fn sides(
    pads: &[i64],
    axes: Option<&[i64]>,
    dims: &[usize],
) -> Result<[Side; MAX_RANK], KernelError> {
    let mut sides = [Side::default(); MAX_RANK];
    for (side, &len) in sides.iter_mut().zip(dims) {
        *side = Side::new(len, 0, 0)?;
    }
    let count = axes.map_or(dims.len(), <[i64]>::len);
    check("how many pads there are", &pads.len(), &(2 * count))?;
    let (before, after) = pads.split_at(count);
    for (at, (&before, &after)) in before.iter().zip(after).enumerate() {
        let axis = axes.map_or(Ok(at), |axes| axis(axes[at], dims.len()))?;
        sides[axis] = Side::new(dims[axis], before, after)?;
    }
    Ok(sides)
}

/// `CenterCropPad`: as much is added or cut off before as behind; where that is odd, one more behind.
pub(crate) fn center_crop_pad(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let padding = Padding::new(call, outputs, Mode::Constant)?;
    let planned = output_dims(outputs, 0)?;
    let difference = |(&from, &to): (&usize, &usize)| {
        let [from, to] = [from, to].map(|len| i64::try_from(len).unwrap_or(i64::MAX));
        (to - from) / 2
    };
    let before: Vec<i64> = padding.dims.iter().zip(&planned).map(difference).collect();
    let side = |at: usize| {
        let [from, to] = [padding.dims[at], planned[at]].map(|len| i64::try_from(len).unwrap_or(0));
        Side::new(padding.dims[at], before[at], to - from - before[at])
    };
    let sides: Result<Vec<Side>, _> = (0..planned.len()).map(side).collect();
    let sides = sides.map_err(|error| NoKernel::Misfit(error.to_string()))?;
    let shape = Numbers::new(call, "shape", 1)?;
    let axes: Vec<usize> = match call.ints("axes") {
        Some(list) => {
            list.iter().map(|&at| call::axis(at, planned.len())).collect::<Result<_, _>>()?
        }
        None => (0..planned.len()).collect(),
    };
    with_width!(call.dtype(0), E => Ok(function(move |operands| {
        let wanted = shape.get(operands, "lengths")?;
        let found = wanted.iter().map(|&len| usize::try_from(len).ok());
        if !found.eq(axes.iter().map(|&at| Some(sides[at].len))) {
            return Err(KernelError::Value(format!("lengths {:?}, planned was another shape", &*wanted)));
        }
        padding.run::<E>(operands, &sides, E::zeroed())
    })))
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{fails, refuses, runs};

    #[track_caller]
    fn of(pads: &str, mode: &str, wanted: &str) {
        let pads = format!("weight p i64 2 = {pads}");
        let call = format!("y = Pad(x, p) {{mode={mode}}}");
        runs(&["weight x 3 = 1 2 3", &pads, &call], &format!("float32 {wanted}"));
    }

    #[test]
    fn what_is_outside_depends_on_the_mode() {
        of("2 2", "constant", "[7] 0 0 1 2 3 0 0");
        of("2 2", "edge", "[7] 1 1 1 2 3 3 3");
        of("2 2", "reflect", "[7] 3 2 1 2 3 2 1");
        of("2 2", "wrap", "[7] 2 3 1 2 3 1 2");
    }

    #[test]
    fn pads_may_be_longer_than_what_they_are_like() {
        of("5 0", "reflect", "[8] 2 1 2 3 2 1 2 3");
        of("0 7", "wrap", "[10] 1 2 3 1 2 3 1 2 3 1");
    }

    #[test]
    fn pads_below_0_cut_off() {
        of("-1 2", "constant", "[4] 2 3 0 0");
        of("-1 2", "reflect", "[4] 2 3 2 3");
        of("-2 -1", "constant", "[0] ");
    }

    #[test]
    fn all_axes_are_padded_with_a_value() {
        let lines = ["weight x i8 2 2 = 1 2 3 4", "weight p i64 4 = 1 0 0 1", "weight v i8 = 9"];
        runs(&[&lines[..], &["y = Pad(x, p, v)"]].concat(), "int8 [3, 3] 9 9 9 1 2 9 3 4 9");
        let wanted = "int8 [3, 3] 1 2 2 1 2 2 3 4 4";
        runs(&[&lines[..], &["y = Pad(x, p, _) {mode=edge}"]].concat(), wanted);
        let call = "y = Pad(x) {pads=[0, 0, 0, 1], value=7.5}";
        let x = "weight x 2 2 = 1 2 3 4";
        runs(&["opset 10", x, call], "float32 [2, 3] 1 2 7.5 3 4 7.5");
    }

    #[test]
    fn only_some_axes_are_padded() {
        let lines = ["weight x 2 2 = 1 2 3 4", "weight p i64 2 = 1 0", "weight a i32 1 = -1"];
        let call = "y = Pad(x, p, _, a)";
        runs(&[&lines[..], &[call]].concat(), "float32 [2, 3] 0 1 2 0 3 4");
    }

    #[test]
    fn the_centre_stays() {
        let lines = ["weight x 1 5 = 1 2 3 4 5", "weight s i64 2 = 3 2", "y = CenterCropPad(x, s)"];
        runs(&lines, "float32 [3, 2] 0 0 2 3 0 0");
        let lines =
            ["weight x 2 = 1 2", "weight s i64 1 = 5", "y = CenterCropPad(x, s) {axes=[0]}"];
        runs(&lines, "float32 [5] 0 1 2 0 0");
    }

    #[test]
    fn nothing_is_like_nothing() {
        let lines = ["weight x 0 =", "weight p i64 2 = 1 1", "y = Pad(x, p) {mode=edge}"];
        fails(&lines, "axis 0 has nothing to be padded with");
        let lines = ["weight x 1 = 1", "weight p i64 2 = 1 1", "y = Pad(x, p) {mode=blur}"];
        refuses(&lines, "1 operators have no kernel: 1 x Pad (mode blur)");
    }
}
