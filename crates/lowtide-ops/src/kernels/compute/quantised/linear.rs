//! `QuantizeLinear`, `DequantizeLinear`, `DynamicQuantizeLinear`: numbers to integers and back.
//!
//! ~~~text
//! 0.74 ──/ 0.5, round, + 128──> 129 ──- 128, * 0.5──> 0.5
//! ~~~

use super::scales::Scales;
use super::{Quantised, optional, quantised, scale_at, zero_at};
use crate::kernels::facts::{input_dims, unsupported};
use crate::kernels::function;
use crate::kernels::number::{by_type, no_kernel_for};
use crate::kernels::reduce::{Max, Min, fold_row};
use crate::kernels::vectorise::vectorised;
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact, Kernel, KernelError, NoKernel, Operands};

pub(crate) fn quantize(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let scales = Scales::read(call)?;
    for at in 0..2 {
        if call.dtype(at) != Some(DType::F32) {
            return Err(no_kernel_for(call.dtype(at)));
        }
    }
    let dtype = outputs.first().copied().flatten().and_then(|output| output.dtype);
    if call.has(2) && call.dtype(2) != dtype {
        return unsupported("a zero point of another type");
    }
    by_type!(dtype, [I8: i8, U8: u8, I16: i16, U16: u16], to_integers(scales))
}

fn to_integers<T: Quantised>(scales: Scales) -> Box<dyn Kernel> {
    function(move |operands| {
        let (x, scale) = (operands.input(0)?.values()?, operands.input(1)?.values()?);
        let zeros = optional::<T>(operands, 2)?;
        let out = operands.values_mut(0)?;
        vectorised(
            #[inline(always)]
            || {
                scales.each(x, out, |x: f32, at| {
                    quantised::<T>(x / scale_at(scale, at), zero_at(zeros, at))
                });
            },
        );
        Ok(())
    })
}

pub(crate) fn dequantize(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let scales = Scales::read(call)?;
    let dtype = outputs.first().copied().flatten().and_then(|output| output.dtype);
    if dtype != Some(DType::F32) || call.dtype(1) != dtype {
        return Err(no_kernel_for(call.dtype(1).filter(|&found| found != DType::F32).or(dtype)));
    }
    if call.has(2) && call.dtype(2) != call.dtype(0) {
        return unsupported("a zero point of another type");
    }
    if call.dtype(0) == Some(DType::I32) {
        return Ok(of_sums(scales));
    }
    by_type!(call.dtype(0), [I8: i8, U8: u8, I16: i16, U16: u16], to_numbers(scales))
}

#[expect(clippy::cast_precision_loss, reason = "the nearest number is wanted")]
fn number(value: i32) -> f32 {
    value as f32
}

fn to_numbers<T: Quantised>(scales: Scales) -> Box<dyn Kernel> {
    function(move |operands| {
        let (x, scale) = (operands.input(0)?.values()?, operands.input(1)?.values()?);
        let zeros = optional::<T>(operands, 2)?;
        let out = operands.values_mut(0)?;
        vectorised(
            #[inline(always)]
            || {
                scales.each(x, out, |x: T, at| {
                    number(x.to_i32() - zero_at(zeros, at)) * scale_at(scale, at)
                });
            },
        );
        Ok(())
    })
}

/// Sums of products have no zero point but 0.
fn of_sums(scales: Scales) -> Box<dyn Kernel> {
    function(move |operands| {
        let (x, scale) = (operands.input(0)?.values()?, operands.input(1)?.values()?);
        let zeros = optional::<i32>(operands, 2)?;
        if zeros.is_some_and(|zeros| zeros.iter().any(|&zero| zero != 0)) {
            return Err(KernelError::Value("a zero point of int32 is not 0".to_owned()));
        }
        scales.each(x, operands.values_mut(0)?, |x: i32, at| number(x) * scale_at(scale, at));
        Ok(())
    })
}

pub(crate) fn dynamic(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    input_dims(call, 0)?;
    if call.dtype(0) != Some(DType::F32) {
        return Err(no_kernel_for(call.dtype(0)));
    }
    Ok(function(by_own_range))
}

/// Scale and zero point so that all elements, and 0, are in the range of the integers.
pub(in crate::kernels::compute) fn own_range(x: &[f32]) -> (f32, u8) {
    let (least, most) = (fold_row::<f32, Min>(x).min(0.0), fold_row::<f32, Max>(x).max(0.0));
    let range = most - least;
    let scale = if range > 0.0 { range / 255.0 } else { 1.0 };
    (scale, quantised(-least / scale, 0))
}

fn by_own_range(operands: &mut Operands<'_>) -> Result<(), KernelError> {
    let x = operands.input(0)?.values::<f32>()?;
    let (scale, zero) = own_range(x);
    for (out, &x) in operands.values_mut::<u8>(0)?.iter_mut().zip(x) {
        *out = quantised(x / scale, zero.into());
    }
    if operands.outputs.get(1).is_some_and(Option::is_some) {
        operands.values_mut::<f32>(1)?.fill(scale);
    }
    if operands.outputs.get(2).is_some_and(Option::is_some) {
        operands.values_mut::<u8>(2)?.fill(zero);
    }
    Ok(())
}
