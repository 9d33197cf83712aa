//! [`Number`] and [`Real`]: what kernels that calculate ask of an element type.
//!
//! ~~~text
//! f32 f64   Number + Real        i8 .. u64   Number: what does not fit wraps around, as it does elsewhere
//! ~~~

#![expect(clippy::inline_always, reason = "these are compiled with the loops that they stand in")]

use lowtide_core::DType;
use lowtide_core::operator::{KernelValue, NoKernel};
use std::convert::identity;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// An element type that can be added and multiplied.
pub(crate) trait Number: KernelValue {
    /// The neutral element of addition.
    const ZERO: Self;
    /// The neutral element of multiplication.
    const ONE: Self;
    /// No value is smaller.
    const LOWEST: Self;
    /// No value is larger.
    const HIGHEST: Self;
    /// What long sums of it are added up in.
    type Wide: Number;

    /// The same value.
    fn widen(self) -> Self::Wide;
    /// The nearest value.
    fn narrow(wide: Self::Wide) -> Self;
    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
    /// The distance from 0.
    fn magnitude(self) -> Self;
    /// The nearest number in double precision.
    fn to_f64(self) -> f64;
    /// The nearest value of this type, rounded towards 0 if it is an integer.
    fn of_f64(value: f64) -> Self;
    /// Whether it is not a number.
    fn is_nan(self) -> bool;
}

/// An element type of numbers with fractions.
pub(crate) trait Real:
    Number
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
{
    /// The square root.
    fn sqrt(self) -> Self;
    /// A power.
    fn powf(self, by: Self) -> Self;
}

macro_rules! reals {
    ($($t:ty: $of:expr;)+) => {
        $(impl Number for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = <$t>::NEG_INFINITY;
            const HIGHEST: Self = <$t>::INFINITY;
            type Wide = f64;

            #[inline(always)]
            fn widen(self) -> f64 {
                self.into()
            }

            #[inline(always)]
            fn narrow(wide: f64) -> Self {
                $of(wide)
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self * other
            }

            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }

            #[inline(always)]
            fn of_f64(value: f64) -> Self {
                $of(value)
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                self.is_nan()
            }
        })+
    };
}

reals! {
    f32: rounded;
    f64: identity;
}

#[expect(clippy::cast_possible_truncation, reason = "rounds as the type does")]
#[inline(always)]
fn rounded(value: f64) -> f32 {
    value as f32
}

macro_rules! integers {
    ($($t:ty: $magnitude:expr, $to:expr $(, $sign:meta)?;)+) => {
        $(impl Number for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = <$t>::MIN;
            const HIGHEST: Self = <$t>::MAX;
            type Wide = Self;

            #[inline(always)]
            fn widen(self) -> Self {
                self
            }

            #[inline(always)]
            fn narrow(wide: Self) -> Self {
                wide
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn magnitude(self) -> Self {
                $magnitude(self)
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to(self)
            }

            #[inline(always)]
            #[expect(clippy::cast_possible_truncation, reason = "the nearest value is wanted")]
            $(#[$sign])?
            fn of_f64(value: f64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
        })+
    };
}

integers! {
    i8: i8::wrapping_abs, f64::from;
    i16: i16::wrapping_abs, f64::from;
    i32: i32::wrapping_abs, f64::from;
    i64: i64::wrapping_abs, of_i64;
    u8: identity, f64::from, expect(clippy::cast_sign_loss, reason = "what is below 0 becomes 0");
    u16: identity, f64::from, expect(clippy::cast_sign_loss, reason = "what is below 0 becomes 0");
    u32: identity, f64::from, expect(clippy::cast_sign_loss, reason = "what is below 0 becomes 0");
    u64: identity, of_u64, expect(clippy::cast_sign_loss, reason = "what is below 0 becomes 0");
}

#[expect(clippy::cast_precision_loss, reason = "the nearest number is wanted")]
#[inline(always)]
fn of_i64(value: i64) -> f64 {
    value as f64
}

#[expect(clippy::cast_precision_loss, reason = "the nearest number is wanted")]
#[inline(always)]
fn of_u64(value: u64) -> f64 {
    value as f64
}

impl Real for f32 {
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.sqrt()
    }

    #[inline(always)]
    fn powf(self, by: Self) -> Self {
        self.powf(by)
    }
}

impl Real for f64 {
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.sqrt()
    }

    #[inline(always)]
    fn powf(self, by: Self) -> Self {
        self.powf(by)
    }
}

/// That there is no kernel for elements of this type.
pub(crate) fn no_kernel_for(dtype: Option<DType>) -> NoKernel {
    NoKernel::Unsupported(format!("type {}", dtype.map_or("?", DType::name)))
}

/// Calls a function with the type that holds elements of a [`DType`], if it is one of those listed.
macro_rules! by_type {
    ($dtype:expr, [$($name:ident: $t:ty),+], $function:ident $arguments:tt) => {
        match $dtype {
            $(Some(lowtide_core::DType::$name) => Ok($function::<$t> $arguments),)+
            other => Err($crate::kernels::number::no_kernel_for(other)),
        }
    };
}
pub(crate) use by_type;
