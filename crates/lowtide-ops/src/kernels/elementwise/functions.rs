//! [`Float`]: exponentials, logarithms, angles; of single precision as loops of them are vectorised.
//!
//! ~~~text
//! exp(x) = 2^k * exp(r)     k = round(x / ln 2)    |r| <= ln 2 / 2, where a short polynomial is exact
//! ~~~
//! Without a branch, table or call, a loop of such functions becomes vector instructions; the library's functions are
//! called an element at a time. All are within three units of the last place, and have no other steps than sums and
//! products, so they give the same on every machine. Double precision is rare in models: there the library is used.
//!
//! The polynomials are those of the Cephes library (Moshier), of FreeBSD's `k_sinf.c` and `k_cosf.c`, and of `erff` as
//! published by N. Juffa.
#![expect(clippy::inline_always, reason = "only what stands in the loop itself is vectorised")]
#![expect(clippy::excessive_precision, reason = "as the sources write them")]
#![expect(clippy::unreadable_literal, reason = "as the sources write them")]

use super::numeric::Numeric;
use crate::kernels::number::Real;
use std::f64::consts::FRAC_2_SQRT_PI;

/// What fractions can do.
pub(crate) trait Float: Numeric + Real {
    fn exp(self) -> Self;
    /// `exp(x) - 1` of what is not above 0.
    fn exp_m1(self) -> Self;
    fn ln(self) -> Self;
    /// `ln(1 + x)` of 0 to 1.
    fn ln_1p(self) -> Self;
    fn tanh(self) -> Self;
    fn erf(self) -> Self;
}

impl Float for f64 {
    fn exp(self) -> Self {
        self.exp()
    }

    fn exp_m1(self) -> Self {
        self.exp_m1()
    }

    fn ln(self) -> Self {
        self.ln()
    }

    fn ln_1p(self) -> Self {
        self.ln_1p()
    }

    fn tanh(self) -> Self {
        self.tanh()
    }

    /// The sum of `2^n x^(2n+1) / (1 * 3 * ... * (2n+1))`, whose terms have one sign.
    fn erf(self) -> Self {
        if self.abs() > 6.0 {
            return self.signum();
        }
        let (mut term, mut sum, mut odd) = (self, self, 1.0);
        while term.abs() > sum.abs() * Self::EPSILON {
            odd += 2.0;
            term *= 2.0 * self * self / odd;
            sum += term;
        }
        FRAC_2_SQRT_PI * (-self * self).exp() * sum
    }
}

impl Float for f32 {
    #[inline(always)]
    fn exp(self) -> Self {
        // What is beyond becomes 0 or infinite in the products below.
        let low = if self < -104.0 { -104.0 } else { self };
        let (r, k) = reduced(if low > 89.0 { 89.0 } else { low });
        // In two factors, because the power alone may be too great or too small.
        (1.0 + exp_rest(r)) * power_of_two(k >> 1) * power_of_two(k.wrapping_sub(k >> 1))
    }

    #[inline(always)]
    fn exp_m1(self) -> Self {
        // Below, the result is -1.
        let (r, k) = reduced(if self < -30.0 { -30.0 } else { self });
        let power = power_of_two(k);
        power * exp_rest(r) + (power - 1.0)
    }

    #[inline(always)]
    fn ln(self) -> Self {
        let is_tiny = self < Self::MIN_POSITIVE;
        let bits = if is_tiny { self * 8388608.0 } else { self }.to_bits();
        // A power of two, and a factor between the square roots of one half and two.
        let exponent = bits.wrapping_sub(0x3F3504F3).cast_signed() >> 23;
        let factor = Self::from_bits(bits.wrapping_sub(exponent.cast_unsigned() << 23));
        #[expect(clippy::cast_precision_loss, reason = "exponents are small")]
        let exponent = exponent as Self - if is_tiny { 23.0 } else { 0.0 };
        let f = factor - 1.0;
        let tail = polynomial(
            f,
            &[
                7.0376836292e-2,
                -1.1514610310e-1,
                1.1676998740e-1,
                -1.2420140846e-1,
                1.4249322787e-1,
                -1.6668057665e-1,
                2.0000714765e-1,
                -2.4999993993e-1,
                3.3333331174e-1,
            ],
        );
        let tail = tail * f * (f * f) - 2.12194440e-4 * exponent - 0.5 * (f * f);
        let result = f + tail + 0.693359375 * exponent;
        let result = if self < Self::INFINITY { result } else { self };
        let of_rest = if self == 0.0 { Self::NEG_INFINITY } else { Self::NAN };
        if self > 0.0 { result } else { of_rest }
    }

    #[inline(always)]
    fn ln_1p(self) -> Self {
        let sum = 1.0 + self;
        // With what rounding took away from the sum.
        Float::ln(sum) + (self - (sum - 1.0)) / sum
    }

    #[inline(always)]
    fn tanh(self) -> Self {
        let square = self * self;
        let small = polynomial(
            square,
            &[
                -5.70498872745e-3,
                2.06390887954e-2,
                -5.37397155531e-2,
                1.33314422036e-1,
                -3.33332819422e-1,
            ],
        );
        let small = small * square * self + self;
        let large = 1.0 - 2.0 / (Float::exp(2.0 * self.abs()) + 1.0);
        if self.abs() < 0.625 { small } else { large.copysign(self) }
    }

    #[inline(always)]
    fn erf(self) -> Self {
        let (size, square) = (self.abs(), self * self);
        let small = polynomial(
            square,
            &[
                -5.96761703e-4,
                4.99119423e-3,
                -2.67681349e-2,
                1.12819925e-1,
                -3.76125336e-1,
                1.28379166e-1,
            ],
        );
        let small = small * self + self;
        // Beyond 4 the result is 1; and so far the polynomial holds.
        let size = if size > 4.0 { 4.0 } else { size };
        let large = polynomial(
            size,
            &[
                -1.72853470e-5,
                3.83197126e-4,
                -3.88396438e-3,
                2.42546219e-2,
                -1.06777877e-1,
                -6.34846687e-1,
                -1.28717512e-1,
            ],
        );
        let large = 1.0 - Float::exp(large * size - size);
        if size > 0.927734375 { large.copysign(self) } else { small }
    }
}

/// What is left of x after `k` times ln 2, and `k`. Of NaN, `k` is any number.
#[inline(always)]
fn reduced(x: f32) -> (f32, i32) {
    // Adding this leaves a whole number in the low bits.
    const MAGIC: f32 = 12582912.0;
    let shifted = x * std::f32::consts::LOG2_E + MAGIC;
    let whole = shifted - MAGIC;
    let k = shifted.to_bits().wrapping_sub(MAGIC.to_bits()).cast_signed();
    // ln 2 in two parts, of which the first has so few bits that its product is exact.
    (x - whole * 0.693359375 + whole * 2.12194440e-4, k)
}

/// `exp(r) - 1` of a reduced number.
#[inline(always)]
fn exp_rest(r: f32) -> f32 {
    let tail = polynomial(
        r,
        &[
            1.9875691500e-4,
            1.3981999507e-3,
            8.3334519073e-3,
            4.1665795894e-2,
            1.6666665459e-1,
            5.0000001201e-1,
        ],
    );
    tail * (r * r) + r
}

#[inline(always)]
fn power_of_two(k: i32) -> f32 {
    f32::from_bits(k.wrapping_add(127).cast_unsigned() << 23)
}

/// Greatest power first.
#[inline(always)]
fn polynomial<T: Float, const N: usize>(x: T, factors: &[T; N]) -> T {
    factors[1..].iter().fold(factors[0], |sum, &factor| sum * x + factor)
}

/// Beyond this, what is left of an angle in whole turns is not exact enough.
pub(super) const LARGE_ANGLE: f32 = 1e8;

/// The sine of an angle that is not large.
#[inline(always)]
pub(super) fn sin(x: f32) -> f32 {
    turned(x, 0)
}

/// The cosine of an angle that is not large.
#[inline(always)]
pub(super) fn cos(x: f32) -> f32 {
    turned(x, 1)
}

/// The sine of an angle and some quarters of a turn. In double precision, so that what is left of an angle near a
/// whole number of quarters is exact.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "rounds to single precision")]
fn turned(x: f32, quarters: u64) -> f32 {
    const MAGIC: f64 = 6755399441055744.0;
    let x = f64::from(x);
    let shifted = x * std::f64::consts::FRAC_2_PI + MAGIC;
    let whole = shifted - MAGIC;
    // A quarter in two parts, of which the first has so few bits that its product is exact.
    let r = x - whole * 1.57079631090164184570 - whole * 1.58932547735281966916e-08;
    let quarters = shifted.to_bits().wrapping_add(quarters);
    let square = r * r;
    let sine = polynomial(
        square,
        &[
            2.7183114939898219064e-6,
            -1.98393348360966317347e-4,
            8.3333293858894631756e-3,
            -1.66666666416265235595e-1,
        ],
    );
    let cosine = polynomial(
        square,
        &[
            2.43904487962774090654e-5,
            -1.38867637746099294692e-3,
            4.16666233237390631894e-2,
            -4.99999997251031003120e-1,
        ],
    );
    let value =
        if quarters.is_multiple_of(2) { r + r * square * sine } else { 1.0 + square * cosine };
    (if quarters % 4 < 2 { value } else { -value }) as f32
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "special values are exact")]
mod tests {
    use super::*;

    /// The largest error over many numbers of a range, in units of the last place of the result.
    #[expect(clippy::cast_possible_truncation, reason = "rounds to single precision")]
    fn worst(range: std::ops::Range<f32>, of: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        let count = 20_000_u16;
        let step = (range.end - range.start) / f32::from(count);
        let error = |at: u16| {
            let x = range.start + step * f32::from(at);
            let wanted = exact(f64::from(x));
            let unit =
                f64::from((wanted as f32).abs().next_up()) - f64::from((wanted as f32).abs());
            (f64::from(of(x)) - wanted).abs() / unit
        };
        (0..count).map(error).fold(0.0, f64::max)
    }

    #[test]
    fn results_are_within_units_of_the_last_place() {
        let one = |error: f64| assert!(error < 1.5, "{error}");
        one(worst(-87.0..88.0, Float::exp, f64::exp));
        one(worst(-103.0..-87.0, Float::exp, f64::exp));
        one(worst(1e-3..100.0, Float::ln, f64::ln));
        one(worst(0.5..2.0, Float::ln, f64::ln));
        one(worst(1e-40..1e-37, Float::ln, f64::ln));
        one(worst(-1e8..1e8, sin, f64::sin));
        one(worst(-1e6..1e6, cos, f64::cos));
        one(worst(-10.0..10.0, sin, f64::sin));
        one(worst(-10.0..10.0, cos, f64::cos));
        let some = |error: f64| assert!(error < 3.0, "{error}");
        some(worst(-40.0..0.0, Float::exp_m1, f64::exp_m1));
        some(worst(-0.5..0.0, Float::exp_m1, f64::exp_m1));
        some(worst(0.0..1.0, Float::ln_1p, f64::ln_1p));
        some(worst(-1e-6..1e-6, Float::tanh, f64::tanh));
        some(worst(-10.0..10.0, Float::tanh, f64::tanh));
        some(worst(-1e-6..1e-6, Float::erf, Float::erf));
        some(worst(-5.0..5.0, Float::erf, Float::erf));
    }

    #[test]
    fn the_error_function_of_doubles_is_known_at_some_places() {
        for (x, wanted) in
            [(0.5, 0.520499877813046537), (2.0, 0.995322265018952734), (5.5, 0.999999999999992642)]
        {
            let error: f64 = Float::erf(x) - wanted;
            assert!(error.abs() < 1e-15, "{x}: {error}");
            assert_eq!(Float::erf(-x), -Float::erf(x));
        }
        assert!(Float::erf(f64::NAN).is_nan());
        assert_eq!((Float::erf(f64::INFINITY), Float::erf(0.0_f64)), (1.0, 0.0));
    }

    type Function = fn(f32) -> f32;

    #[test]
    fn special_values_are_as_the_library_has_them() {
        let pairs: [(Function, Function); 5] = [
            (Float::exp, f32::exp),
            (Float::exp_m1, f32::exp_m1),
            (Float::ln, f32::ln),
            (Float::tanh, f32::tanh),
            (sin, |x| if x.is_infinite() { f32::NAN } else { x }),
        ];
        for (at, (of, library)) in pairs.into_iter().enumerate() {
            for x in [f32::NAN, f32::NEG_INFINITY, 0.0, -0.0, f32::INFINITY, 1e-45, -1e-45, 1e-30] {
                let (found, wanted) = (of(x), library(x));
                let is_same = found == wanted || (found.is_nan() && wanted.is_nan());
                assert!(is_same || (at == 1 && x > 1.0), "function {at} of {x}: {found}, {wanted}");
            }
        }
        assert_eq!(Float::exp(88.72283_f32), f32::exp(88.72283));
        assert_eq!((Float::exp(88.73_f32), Float::exp(1e38_f32)), (f32::INFINITY, f32::INFINITY));
        assert_eq!((Float::exp(-104.5_f32), Float::exp(-1e38_f32)), (0.0, 0.0));
        assert_eq!((Float::erf(f32::INFINITY), Float::erf(-9.0_f32)), (1.0, -1.0));
        assert!(Float::erf(f32::NAN).is_nan() && Float::ln(-1.0_f32).is_nan());
    }
}
