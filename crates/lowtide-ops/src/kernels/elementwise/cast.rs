//! `Cast` and `CastLike`: elements as another type holds them.
//!
//! ~~~text
//! float32 3.9 -> int32 3         cut off toward zero; beyond the limits, the limit; NaN is 0
//! int64 300   -> uint8 44        wraps around
//! float32 0.5 -> bool 1          all but zero is true, NaN too
//! float32     -> float16         rounded to nearest, halves to even; beyond the limits, infinite
//!
//! 13 types ──> a piece of i64, u64 or f64, which hold them exactly ──> 13 types
//! ~~~
//! What becomes of numbers beyond the limits of an integer type, ONNX leaves open, and numpy to the machine.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "this is what the operators ask"
)]

use super::reader::PIECE;
use crate::kernels::function;
use crate::kernels::number::no_kernel_for;
use crate::kernels::types::Made;
use bytemuck::Pod;
use half::{bf16, f16};
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact, KernelError, Operand};

pub(crate) fn cast(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    between(call.dtype(0), call.dtype_of("to"))
}

pub(crate) fn cast_like(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    between(call.dtype(0), call.dtype(1))
}

fn between(from: Option<DType>, to: Option<DType>) -> Made {
    match source(from).ok_or_else(|| no_kernel_for(from))? {
        Source::Signed(widen) => kernel(widen, from_signed(to).ok_or_else(|| no_kernel_for(to))?),
        Source::Unsigned(widen) => {
            kernel(widen, from_unsigned(to).ok_or_else(|| no_kernel_for(to))?)
        }
        Source::Fractions(widen) => {
            kernel(widen, from_fractions(to).ok_or_else(|| no_kernel_for(to))?)
        }
    }
}

/// How a type is read or written: a function on a piece, and the bytes of an element.
#[derive(Clone, Copy)]
struct Step<F> {
    on_piece: F,
    width: usize,
}

type Widen<W> = Step<fn(&[u8], &mut [W])>;
type Narrow<W> = Step<fn(&[W], &mut [u8])>;

fn kernel<W: Pod + Send>(widen: Widen<W>, narrow: Narrow<W>) -> Made {
    Ok(function(move |operands| {
        let mut wide = [W::zeroed(); PIECE];
        let input = operands.input(0)?;
        let len = input.len();
        let is_in_place = input.is_in(0) && widen.width == narrow.width;
        let from = if is_in_place { None } else { Some(input.bytes()?) };
        let to = &mut *operands.output(0)?.bytes;
        check(from.map_or(to.len(), <[u8]>::len), len * widen.width, Operand::Input(0))?;
        check(to.len(), len * narrow.width, Operand::Output(0))?;
        for (at, to) in to.chunks_mut(PIECE * narrow.width).enumerate() {
            let count = to.len() / narrow.width;
            let start = at * PIECE * widen.width;
            let from = from.map_or(&*to, |from| &from[start..start + count * widen.width]);
            (widen.on_piece)(from, &mut wide[..count]);
            (narrow.on_piece)(&wide[..count], to);
        }
        Ok(())
    }))
}

fn check(found: usize, wanted: usize, operand: Operand) -> Result<(), KernelError> {
    if found == wanted { Ok(()) } else { Err(KernelError::Bytes { operand, found, wanted }) }
}

/// How elements of a type become wide ones.
#[derive(Clone, Copy)]
enum Source {
    Signed(Widen<i64>),
    Unsigned(Widen<u64>),
    Fractions(Widen<f64>),
}

#[inline]
fn widen<W, const N: usize>(from: &[u8], to: &mut [W], value: impl Fn([u8; N]) -> W) {
    to.iter_mut().zip(from.as_chunks().0).for_each(|(to, from)| *to = value(*from));
}

#[inline]
fn narrow<W: Copy, const N: usize>(from: &[W], to: &mut [u8], bytes: impl Fn(W) -> [u8; N]) {
    to.as_chunks_mut().0.iter_mut().zip(from).for_each(|(to, from)| *to = bytes(*from));
}

fn source(dtype: Option<DType>) -> Option<Source> {
    macro_rules! step {
        ($kind:ident $bits:ty: $value:expr) => {
            Source::$kind(Step {
                on_piece: |from, to| widen(from, to, |x| $value(<$bits>::from_ne_bytes(x))),
                width: size_of::<$bits>(),
            })
        };
    }
    Some(match dtype? {
        DType::Bool => step!(Unsigned u8: |x| u64::from(x != 0)),
        DType::I8 => step!(Signed i8: i64::from),
        DType::I16 => step!(Signed i16: i64::from),
        DType::I32 => step!(Signed i32: i64::from),
        DType::I64 => step!(Signed i64: i64::from),
        DType::U8 => step!(Unsigned u8: u64::from),
        DType::U16 => step!(Unsigned u16: u64::from),
        DType::U32 => step!(Unsigned u32: u64::from),
        DType::U64 => step!(Unsigned u64: u64::from),
        DType::F16 => step!(Fractions u16: |bits| f16::from_bits(bits).to_f64()),
        DType::BF16 => step!(Fractions u16: |bits| bf16::from_bits(bits).to_f64()),
        DType::F32 => step!(Fractions f32: f64::from),
        DType::F64 => step!(Fractions f64: f64::from),
        _ => return None,
    })
}

/// How wide elements become those of a type.
macro_rules! sinks {
    ($($name:ident $wide:ty, $zero:literal;)*) => {$(
        fn $name(dtype: Option<DType>) -> Option<Narrow<$wide>> {
            macro_rules! step {
                ($bits:ty: $value:expr) => {
                    Step {
                        on_piece: |from, to| narrow(from, to, |x| <$bits>::to_ne_bytes($value(x))),
                        width: size_of::<$bits>(),
                    }
                };
            }
            Some(match dtype? {
                DType::Bool => step!(u8: |x| u8::from(x != $zero)),
                DType::I8 => step!(i8: |x| x as i8),
                DType::I16 => step!(i16: |x| x as i16),
                DType::I32 => step!(i32: |x| x as i32),
                DType::I64 => step!(i64: |x| x as i64),
                DType::U8 => step!(u8: |x| x as u8),
                DType::U16 => step!(u16: |x| x as u16),
                DType::U32 => step!(u32: |x| x as u32),
                DType::U64 => step!(u64: |x| x as u64),
                DType::F16 => step!(u16: |x| f16::from_f64(x as f64).to_bits()),
                DType::BF16 => step!(u16: |x| bf16::from_f64(x as f64).to_bits()),
                DType::F32 => step!(f32: |x| x as f32),
                DType::F64 => step!(f64: |x| x as f64),
                _ => return None,
            })
        }
    )*};
}

sinks! {
    from_signed i64, 0;
    from_unsigned u64, 0;
    from_fractions f64, 0.0;
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{refuses, runs};

    #[track_caller]
    fn casts(x: &str, to: u32, wanted: &str) {
        runs(&[&format!("weight x {x}"), &format!("y = Cast(x) {{to={to}}}")], wanted);
    }

    #[test]
    fn fractions_are_cut_off_within_limits() {
        casts("5 = 3.9 -3.9 nan 1e20 -inf", 6, "int32 [5] 3 -3 0 2147483647 -2147483648");
        casts("4 = 255.5 256 -1 nan", 2, "uint8 [4] 255 255 0 0");
        casts("f64 2 = -0.9 9.3e18", 7, "int64 [2] 0 9223372036854775807");
        casts("4 = 0.1 0 -0 nan", 9, "bool [4] 1 0 0 1");
    }

    #[test]
    fn integers_wrap_around() {
        casts("i64 3 = 300 -1 128", 2, "uint8 [3] 44 255 128");
        casts("i64 2 = 4294967295 -2147483649", 6, "int32 [2] -1 2147483647");
        casts("i32 1 = -1", 13, "uint64 [1] 18446744073709551615");
        casts("u64 1 = 18446744073709551615", 7, "int64 [1] -1");
    }

    #[test]
    fn integers_become_the_nearest_fractions() {
        casts("i64 2 = 16777217 -9007199254740993", 1, "float32 [2] 16777216 -9007199000000000");
        casts("u64 1 = 18446744073709551615", 11, "float64 [1] 18446744073709552000");
        casts("bool 3 = 0 1 9", 1, "float32 [3] 0 1 1");
        casts("f64 2 = 0.1 1e300", 1, "float32 [2] 0.1 inf");
    }

    #[test]
    fn sixteen_bits_are_rounded() {
        casts("4 = 1 -2 65520 0.00001", 10, "float16 [4] 15360 49152 31744 168");
        casts("3 = 1 3e38 1.00390625", 16, "bfloat16 [3] 16256 32610 16256");
        casts("f16 2 = 15360 64512", 1, "float32 [2] 1 -inf");
        casts("f16 1 = 15360", 16, "bfloat16 [1] 16256");
    }

    #[test]
    fn a_type_may_be_that_of_another_tensor() {
        runs(&["weight x 2 = 1.5 2", "weight t i8 1 = 0", "y = CastLike(x, t)"], "int8 [2] 1 2");
    }

    #[test]
    fn long_tensors_are_cast_piece_by_piece() {
        let list = |range: std::ops::Range<u32>| {
            range.map(|x| x.to_string()).collect::<Vec<_>>().join(" ")
        };
        casts(
            &format!("i32 1500 = {}", list(0..1500)),
            7,
            &format!("int64 [1500] {}", list(0..1500)),
        );
        casts(
            &format!("i32 1500 = {}", list(0..1500)),
            1,
            &format!("float32 [1500] {}", list(0..1500)),
        );
    }

    #[test]
    fn packed_types_are_not_cast() {
        let lines = ["weight x u4 2", "y = Cast(x) {to=1}"];
        refuses(&lines, "1 operators have no kernel: 1 x Cast (type uint4)");
    }
}
