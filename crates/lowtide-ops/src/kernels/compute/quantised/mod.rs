//! Kernels of quantised numbers: small integers, each with a scale and a zero point that it is counted from.
//!
//! ~~~text
//! number = (integer - zero point) * scale         integer = round(number / scale) + zero point, within its type
//! ~~~
//! Sums of products are exact in 32 bits: none of the tricks that saturate.

mod linear;
mod product;
mod scales;
#[cfg(test)]
mod tests;

pub(super) use linear::own_range;
pub(crate) use linear::{dequantize, dynamic, quantize};
pub(super) use product::each_block;
pub(crate) use product::{integer_product, quantised_product};

use crate::kernels::number::Number;
use lowtide_core::operator::{Input, KernelError, Operands};

/// An integer that numbers are quantised to.
pub(super) trait Quantised: Number {
    fn to_i32(self) -> i32;
    /// The nearest value of this type.
    fn of_i32(value: i32) -> Self;
}

macro_rules! quantised {
    ($($t:ty),+) => {
        $(impl Quantised for $t {
            #[inline]
            fn to_i32(self) -> i32 {
                self.into()
            }

            #[inline]
            fn of_i32(value: i32) -> Self {
                value.clamp(Self::MIN.into(), Self::MAX.into()).try_into().unwrap_or_default()
            }
        })+
    };
}

quantised!(i8, u8, i16, u16);

/// A number over its scale, as an integer of this type.
#[inline]
pub(super) fn quantised<T: Quantised>(ratio: f32, zero: i32) -> T {
    // A value of 32 bits is saturated, and not a number is 0.
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    let whole = ratio.round_ties_even() as i32;
    T::of_i32(whole.saturating_add(zero))
}

/// The elements of an input that may be absent.
pub(super) fn optional<'a, T: Number>(
    operands: &Operands<'a>,
    at: usize,
) -> Result<Option<&'a [T]>, KernelError> {
    operands.optional(at).map(Input::values::<T>).transpose()
}

/// The zero point of row, column or filter `at`, of which there is one for all, one for each, or none.
pub(super) fn zero_at<T: Quantised>(zeros: Option<&[T]>, at: usize) -> i32 {
    match zeros {
        Some(&[zero]) => zero.to_i32(),
        Some(zeros) => zeros.get(at).map_or(0, |zero| zero.to_i32()),
        None => 0,
    }
}

/// The same of a scale; 1 if there is none.
pub(super) fn scale_at(scales: &[f32], at: usize) -> f32 {
    if let &[scale] = scales { scale } else { scales.get(at).copied().unwrap_or(1.0) }
}

/// Calls a function with the two types of bytes.
macro_rules! by_bytes {
    ($a:expr, $b:expr, $function:ident $arguments:tt) => {
        match ($a, $b) {
            (Some(DType::U8), Some(DType::U8)) => Ok($function::<u8, u8> $arguments),
            (Some(DType::U8), Some(DType::I8)) => Ok($function::<u8, i8> $arguments),
            (Some(DType::I8), Some(DType::U8)) => Ok($function::<i8, u8> $arguments),
            (Some(DType::I8), Some(DType::I8)) => Ok($function::<i8, i8> $arguments),
            (Some(DType::U8 | DType::I8), other) | (other, _) => {
                Err(crate::kernels::number::no_kernel_for(other))
            }
        }
    };
}
pub(super) use by_bytes;
