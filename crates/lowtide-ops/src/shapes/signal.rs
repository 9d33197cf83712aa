//! Rules of operators on signals.
//!
//! ~~~text
//! size 8 ──HannWindow──> [8]
//! x [n, len, 1] ──DFT──> [n, len, 2], one-sided [n, floor(len/2) + 1, 2]
//! x [n, len] ──STFT, frames of f every s──> [n, floor((len - f)/s) + 1, floor(f/2) + 1, 2]
//! ~~~

use super::{add, div, of_rank, sub, whole};
use crate::call::{Call, Facts, Misfit, axis, dtype_of_number};
use crate::expr::Expr;
use crate::fact::{Extent, Fact};

fn half(len: &Extent) -> Extent {
    add(&div(len, 2), &whole(1))
}

fn output_type(call: &Call<'_>) -> Option<lowtide_core::DType> {
    dtype_of_number(call.int_or("output_datatype", 1))
}

/// `HannWindow`, `HammingWindow`, `BlackmanWindow`.
pub(crate) fn window(call: &Call<'_>) -> Facts {
    Ok(vec![Fact::new(output_type(call), Some(vec![call.scalar_int(0)]))])
}

pub(crate) fn mel_weights(call: &Call<'_>) -> Facts {
    let dims = vec![half(&call.scalar_int(1)), call.scalar_int(0)];
    Ok(vec![Fact::new(output_type(call), Some(dims))])
}

pub(crate) fn dft(call: &Call<'_>) -> Facts {
    let Some(dims) = call.dims(0) else { return Ok(vec![call.typed(0, None)]) };
    let unknown = || Ok(vec![of_rank(call.dtype(0), Some(dims.len()))]);
    let at = if call.opset < 20 {
        call.int_or("axis", 1)
    } else if !call.has(2) {
        -2
    } else {
        match call.scalar_int(2) {
            Some(Expr::Known(at)) => at,
            _ => return unknown(),
        }
    };
    let (at, last) = (axis(at, dims.len())?, dims.len() - 1);
    let len = if call.has(1) { call.scalar_int(1) } else { dims[at].clone() };
    let mut result = dims.to_vec();
    result[last] = whole(2);
    result[at] = if call.flag("onesided") { half(&len) } else { len };
    Ok(vec![call.typed(0, Some(result))])
}

pub(crate) fn stft(call: &Call<'_>) -> Facts {
    let frame = if call.has(3) { call.scalar_int(3) } else { call.dim(2, 0) };
    let frames = call.scalar_int(1).and_then(|step| {
        let room = sub(&call.dim(0, 1), &frame)?;
        (step.known() != Some(0)).then(|| add(&room.div(&step), &whole(1)))?
    });
    let bins = if call.int_or("onesided", 1) != 0 { half(&frame) } else { frame };
    Ok(vec![call.typed(0, Some(vec![call.dim(0, 0), frames, bins, whole(2)]))])
}

/// How many of the last axes a transform runs over.
fn signal_rank(call: &Call<'_>, rank: usize) -> Result<usize, Misfit> {
    let stated = call.int_or("signal_ndim", 1);
    let found = usize::try_from(stated).ok().filter(|&count| count > 0 && count <= rank);
    found.ok_or_else(|| Misfit(format!("a signal of {stated} axes in a tensor of rank {rank}")))
}

/// `Rfft` of numbers: complex values behind, half of the last axis.
pub(crate) fn rfft(call: &Call<'_>) -> Facts {
    let Some(dims) = call.dims(0) else { return Ok(vec![call.typed(0, None)]) };
    signal_rank(call, dims.len())?;
    let mut result = dims.to_vec();
    if let Some(last) = result.last_mut() {
        *last = half(last);
    }
    result.push(whole(2));
    Ok(vec![call.typed(0, Some(result))])
}

/// `Irfft`, its inverse.
pub(crate) fn irfft(call: &Call<'_>) -> Facts {
    let Some(dims) = call.dims(0).filter(|dims| dims.len() >= 2) else {
        return Ok(vec![call.typed(0, None)]);
    };
    signal_rank(call, dims.len() - 1)?;
    let mut result = dims[..dims.len() - 1].to_vec();
    if let Some(last) = result.last_mut() {
        *last = super::mul(&sub(last, &whole(1)), &whole(2));
    }
    Ok(vec![call.typed(0, Some(result))])
}

#[cfg(test)]
mod tests {
    use crate::testing::infers;

    #[test]
    fn windows_are_as_long_as_asked_for() {
        infers(&["weight n i64 = 8", "y = HannWindow(n) {output_datatype=11}"], "f64 [8]");
    }

    #[test]
    fn one_side_is_a_half_and_one() {
        infers(&["input x n 9 1", "y = DFT(x) {onesided=1}"], "f32 [n, 5, 2]");
        infers(
            &["opset 17", "input x n 9 1", "weight l i64 = 16", "y = DFT(x, l)"],
            "f32 [n, 16, 2]",
        );
        infers(
            &["input x n 128 1", "weight s i64 = 8", "weight l i64 = 16", "y = STFT(x, s, _, l)"],
            "f32 [n, 15, 9, 2]",
        );
        infers(&["input x n 9", "y = com.microsoft.Rfft(x)"], "f32 [n, 5, 2]");
    }
}
