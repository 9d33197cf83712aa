//! [`Numeric`] and [`Integer`]: what elements can do beyond sums and products, the same for all types that can do it.
//!
//! ~~~text
//! Number     sums, products                         f32 f64 i8 .. i64 u8 .. u64
//! Numeric    differences, quotients, remainders     f32 f64 i8 .. i64 u8 .. u64
//! Integer    bits, shifts, powers                           i8 .. i64 u8 .. u64
//! ~~~
//! Integers wrap around. What is divided by the integer 0 is 0, as numpy has it: data may not stop a model.

use crate::kernels::number::Number;
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// What all elements can do that are no truth values.
pub(crate) trait Numeric: Number {
    fn minus(self, other: Self) -> Self;
    /// The quotient; of integers toward zero.
    fn over(self, other: Self) -> Self;
    /// What is left of a division toward zero: it has the sign of the dividend.
    fn remainder(self, other: Self) -> Self;
    /// What is left of a division down: it has the sign of the divisor.
    fn modulo(self, other: Self) -> Self;
    fn negated(self) -> Self;

    /// The greater one; NaN if one is.
    #[inline]
    fn larger(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
    }

    /// The smaller one; NaN if one is.
    #[inline]
    fn smaller(self, other: Self) -> Self {
        if self < other || self.is_nan() { self } else { other }
    }

    /// -1, 0 or 1; NaN of NaN.
    #[inline]
    fn sign(self) -> Self {
        let of_rest = if self < Self::ZERO { Self::ONE.negated() } else { self };
        if self > Self::ZERO {
            Self::ONE
        } else if self == Self::ZERO {
            Self::ZERO
        } else {
            of_rest
        }
    }
}

/// What whole numbers can do.
pub(crate) trait Integer:
    Numeric + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    /// Shifted toward the greater bits; nothing is left if there are no more bits than that.
    fn up(self, by: Self) -> Self;
    /// Shifted toward the smaller bits.
    fn down(self, by: Self) -> Self;
    /// To the power of an integer. What would be a fraction is cut off; of 0, which would be infinite, it is 0.
    fn power(self, exponent: i64) -> Self;
}

macro_rules! integers {
    ($($t:ident)*) => {$(
        impl Numeric for $t {
            #[inline]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline]
            fn over(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }

            #[inline]
            fn remainder(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }

            #[inline]
            fn modulo(self, other: Self) -> Self {
                let rest = self.remainder(other);
                let zero = Self::ZERO;
                let is_across = rest != zero && (rest < zero) != (other < zero);
                if is_across { rest.wrapping_add(other) } else { rest }
            }

            #[inline]
            fn negated(self) -> Self {
                self.wrapping_neg()
            }
        }

        impl Integer for $t {
            #[inline]
            fn up(self, by: Self) -> Self {
                self.checked_shl(u32::try_from(by).unwrap_or(u32::MAX)).unwrap_or(0)
            }

            #[inline]
            fn down(self, by: Self) -> Self {
                self.checked_shr(u32::try_from(by).unwrap_or(u32::MAX)).unwrap_or(0)
            }

            fn power(self, exponent: i64) -> Self {
                let is_one = self.magnitude() == 1;
                if exponent < 0 && !is_one {
                    return 0;
                }
                let (mut result, mut square, mut rest): (Self, _, _) = (1, self, exponent.unsigned_abs());
                while rest != 0 {
                    if rest % 2 == 1 {
                        result = result.wrapping_mul(square);
                    }
                    square = square.wrapping_mul(square);
                    rest /= 2;
                }
                result
            }
        }
    )*};
}

integers! { i8 i16 i32 i64 u8 u16 u32 u64 }

macro_rules! floats {
    ($($t:ident)*) => {$(
        impl Numeric for $t {
            #[inline]
            fn minus(self, other: Self) -> Self {
                self - other
            }

            #[inline]
            fn over(self, other: Self) -> Self {
                self / other
            }

            #[inline]
            fn remainder(self, other: Self) -> Self {
                self % other
            }

            #[inline]
            fn modulo(self, other: Self) -> Self {
                let rest = self % other;
                if rest == 0.0 {
                    return rest.copysign(other);
                }
                if (rest < 0.0) != (other < 0.0) { rest + other } else { rest }
            }

            #[inline]
            fn negated(self) -> Self {
                -self
            }
        }
    )*};
}

floats! { f32 f64 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_around_and_divide_by_zero_to_zero() {
        assert_eq!((i8::MAX.plus(1), i8::MIN.negated(), i8::MIN.magnitude()), (-128, -128, -128));
        assert_eq!((i8::MIN.over(-1), i8::MIN.remainder(-1), i8::MIN.modulo(-1)), (-128, 0, 0));
        assert_eq!((7_i32.over(0), 7_i32.modulo(0), 7_u8.remainder(0)), (0, 0, 0));
        assert_eq!(((-7_i32).over(2), 7_u8.over(2)), (-3, 3));
    }

    #[test]
    fn remainders_have_the_sign_of_one_of_the_two() {
        assert_eq!(((-4_i64).remainder(3), (-4_i64).modulo(3), 4_i64.modulo(-3)), (-1, 2, -2));
        assert_eq!(((-4.5_f32).remainder(3.0), (-4.5_f32).modulo(3.0)), (-1.5, 1.5));
        assert_eq!(4.0_f32.modulo(-2.0).to_bits(), (-0.0_f32).to_bits());
        assert!(4.0_f64.modulo(0.0).is_nan());
    }

    #[test]
    fn of_a_number_and_nan_neither_is_larger() {
        let nan = f32::NAN;
        assert!(nan.larger(1.0).is_nan() && 1.0_f32.larger(nan).is_nan());
        assert!(nan.smaller(1.0).is_nan() && 1.0_f32.smaller(nan).is_nan());
        assert!(nan.sign().is_nan());
        assert_eq!(((-0.0_f32).sign().to_bits(), (-3.0_f32).sign(), 9_u8.sign()), (0, -1.0, 1));
    }

    #[test]
    fn integers_are_raised_to_any_power() {
        assert_eq!(
            (3_i32.power(4), 2_i32.power(40), (-2_i64).power(3), 0_u8.power(0)),
            (81, 0, -8, 1)
        );
        assert_eq!(
            (1_i32.power(-9), (-1_i32).power(-3), 5_i32.power(-1), 0_i32.power(-1)),
            (1, -1, 0, 0)
        );
        assert_eq!(1_i64.power(i64::MIN), 1);
    }

    #[test]
    fn nothing_is_left_after_a_long_shift() {
        assert_eq!((3_u8.up(7), 3_u8.up(8), 255_u8.down(7), 255_u8.down(200)), (128, 0, 1, 0));
        assert_eq!(1_u64.up(u64::MAX), 0);
    }
}
