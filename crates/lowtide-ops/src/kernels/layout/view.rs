//! Operators whose output is a view of the input, where it has to be a copy: at the borders of a model, and beside a mask.
//!
//! ~~~text
//! x (the caller's) ─ Reshape ─ y (the caller's)     the same bytes in two places
//! x ─ Dropout ─ y, mask                             y is x, and the mask is all true: nothing is dropped
//! ~~~

use super::lists::check;
use crate::kernels::facts::unsupported;
use crate::kernels::function;
use crate::kernels::number::no_kernel_for;
use crate::kernels::types::Made;
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact, KernelError, NoKernel, Operands, Scalar};

/// `Reshape`, `Flatten`, `Squeeze`, `Unsqueeze`, `Identity`, `BitCast`.
pub(crate) fn view(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    check_type(call)?;
    Ok(function(copy_bytes))
}

fn check_type(call: &Call<'_>) -> Result<(), NoKernel> {
    let dtype = call.dtype(0);
    dtype.and_then(DType::bits).map(|_| ()).ok_or_else(|| no_kernel_for(dtype))
}

fn copy_bytes(operands: &mut Operands<'_>) -> Result<(), KernelError> {
    let input = operands.input(0)?;
    if input.is_in(0) {
        return Ok(());
    }
    let (from, to) = (input.bytes()?, &mut *operands.output(0)?.bytes);
    check("bytes", &from.len(), &to.len())?;
    to.copy_from_slice(from);
    Ok(())
}

/// `Dropout` when nothing is trained. In the ratio of 0, nothing is dropped in training either.
pub(crate) fn dropout(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    check_type(call)?;
    let is_training = call.has(2) && call.scalar_int(2).and_then(|one| one.known()) != Some(0);
    let ratio = if call.has(1) { call.scalar(1).and_then(Scalar::number) } else { Some(0.5) };
    if is_training && ratio != Some(0.0) {
        return unsupported("training");
    }
    let has_data = outputs.first().is_some_and(Option::is_some);
    let mask = outputs.get(1).copied().flatten().map(|mask| one(mask.dtype)).transpose()?;
    Ok(function(move |operands| {
        if has_data {
            copy_bytes(operands)?;
        }
        if let Some((one, width)) = mask {
            for to in operands.output(1)?.bytes.chunks_exact_mut(width) {
                to.copy_from_slice(&one[..width]);
            }
        }
        Ok(())
    }))
}

/// The bytes of a one, and how many they are: before version 10, a mask had the type of the data.
fn one(dtype: Option<DType>) -> Result<([u8; 8], usize), NoKernel> {
    let mut bytes = [0; 8];
    let mut put = |all: &[u8]| {
        bytes[..all.len()].copy_from_slice(all);
        all.len()
    };
    let width = match dtype {
        Some(DType::Bool) => put(&[1]),
        Some(DType::F16) => put(&0x3C00_u16.to_ne_bytes()),
        Some(DType::BF16) => put(&0x3F80_u16.to_ne_bytes()),
        Some(DType::F32) => put(&1_f32.to_ne_bytes()),
        Some(DType::F64) => put(&1_f64.to_ne_bytes()),
        other => return Err(no_kernel_for(other)),
    };
    Ok((bytes, width))
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{refuses, run, runs};

    #[test]
    fn a_copy_has_the_same_elements() {
        let x = "weight x 2 3 = 1 2 3 4 5 6";
        runs(&[x, "weight s i64 2 = 3 -1", "y = Reshape(x, s)"], "float32 [3, 2] 1 2 3 4 5 6");
        runs(&[x, "y = Flatten(x) {axis=0}"], "float32 [1, 6] 1 2 3 4 5 6");
        runs(&[x, "y = Unsqueeze(x) {axes=[1]}"], "float32 [2, 1, 3] 1 2 3 4 5 6");
        runs(&["weight x bf16 1 2 = 7 8", "y = Squeeze(x)"], "bfloat16 [2] 7 8");
        runs(&["weight x 0 =", "y = Identity(x)"], "float32 [0] ");
    }

    #[test]
    fn bytes_are_read_as_another_type() {
        runs(&["weight x 2 = 1 -0", "y = BitCast(x) {to=6}"], "int32 [2] 1065353216 -2147483648");
    }

    #[test]
    fn nothing_is_dropped() {
        let x = "weight x 2 = 3 4";
        assert_eq!(run(&[x, "y; m = Dropout(x)"], "y m"), ["float32 [2] 3 4", "bool [2] 1 1"]);
        let found = run(&["opset 9", x, "y; m = Dropout(x)"], "y m");
        assert_eq!(found, ["float32 [2] 3 4", "float32 [2] 1 1"]);
        let lines = [x, "weight r = 0", "weight t bool = 1", "y; m = Dropout(x, r, t)"];
        assert_eq!(run(&lines, "y m"), ["float32 [2] 3 4", "bool [2] 1 1"]);
    }

    #[test]
    fn training_is_refused() {
        let lines =
            ["weight x 2 = 3 4", "weight r = 0.5", "weight t bool = 1", "y = Dropout(x, r, t)"];
        refuses(&lines, "1 operators have no kernel: 1 x Dropout (training)");
    }
}
