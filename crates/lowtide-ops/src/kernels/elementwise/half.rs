//! The 16-bit floating-point types, which Rust does not have: bits to a double and back.
//!
//! ~~~text
//! float16    s eeeee mmmmmmmmmm      double  s eeeeeeeeeee mmmmmmmmmm...
//! bfloat16   s eeeeeeee mmmmmmm                            └─ rounded here, to even
//! ~~~

/// How many bits stand for what.
#[derive(Clone, Copy)]
pub(super) struct Format {
    /// Bits of the fraction.
    fraction: u32,
    /// What is added to exponents.
    bias: u16,
}

pub(super) const HALF: Format = Format { fraction: 10, bias: 15 };
pub(super) const BRAIN: Format = Format { fraction: 7, bias: 127 };

const SIGN: u16 = 0x8000;

impl Format {
    /// The bits of infinity: all of the exponent.
    fn infinity(self) -> u16 {
        (2 * self.bias + 1) << self.fraction
    }

    /// From the last bit of a double's fraction to the last one here.
    fn shift(self) -> u32 {
        f64::MANTISSA_DIGITS - 1 - self.fraction
    }

    /// The difference of the exponents, where they stand here.
    fn offset(self) -> u64 {
        (1023 - u64::from(self.bias)) << self.fraction
    }

    /// The smallest number that is not 0, inverted.
    fn steps_in_one(self) -> f64 {
        let exponent = 1022 + u64::from(self.bias) + u64::from(self.fraction);
        f64::from_bits(exponent << (f64::MANTISSA_DIGITS - 1))
    }

    /// The value of some bits.
    #[inline]
    pub(super) fn value(self, bits: u16) -> f64 {
        let size = bits & !SIGN;
        let value = if size > self.infinity() {
            f64::NAN
        } else if size == self.infinity() {
            f64::INFINITY
        } else if size < 1 << self.fraction {
            f64::from(size) / self.steps_in_one()
        } else {
            f64::from_bits((u64::from(size) + self.offset()) << self.shift())
        };
        if bits & SIGN == 0 { value } else { -value }
    }

    /// The bits of the nearest value.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is left is below infinity, or cut to it"
    )]
    #[expect(clippy::cast_sign_loss, reason = "the sign is put on at the end")]
    pub(super) fn bits(self, value: f64) -> u16 {
        let (size, shift) = (value.abs(), self.shift());
        let bits = if value.is_nan() {
            u64::from(self.infinity()) | 1 << (self.fraction - 1)
        } else if size * self.steps_in_one() < f64::from(1 << self.fraction) {
            (size * self.steps_in_one()).round_ties_even() as u64
        } else {
            let bits = size.to_bits();
            let half = (1 << (shift - 1)) - 1 + (bits >> shift & 1);
            let rounded = ((bits + half) >> shift).saturating_sub(self.offset());
            rounded.min(self.infinity().into())
        };
        bits as u16 | if value.is_sign_negative() { SIGN } else { 0 }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "all values here are exact")]
mod tests {
    use super::*;

    #[test]
    fn all_bits_come_back() {
        for format in [HALF, BRAIN] {
            for bits in 0..=u16::MAX {
                let value = format.value(bits);
                assert!(value.is_nan() || format.bits(value) == bits, "{bits:x} is {value}");
            }
        }
    }

    #[test]
    fn values_are_what_the_standard_says() {
        assert_eq!(
            (HALF.value(0x3C00), HALF.value(0xC000), HALF.value(0x7BFF)),
            (1.0, -2.0, 65504.0)
        );
        assert_eq!((HALF.value(1), HALF.value(0x0400)), (2_f64.powi(-24), 2_f64.powi(-14)));
        assert_eq!((BRAIN.value(0x3F80), BRAIN.value(1)), (1.0, 2_f64.powi(-133)));
        for bits in [0, 1, 0x7F, 0x80, 0x3F81, 0x7F7F, 0xFF80] {
            assert_eq!(BRAIN.value(bits), f64::from(f32::from_bits(u32::from(bits) << 16)));
        }
    }

    #[test]
    fn values_between_are_rounded_to_even() {
        assert_eq!((HALF.bits(2049.0), HALF.bits(2051.0)), (HALF.bits(2048.0), HALF.bits(2052.0)));
        assert_eq!((HALF.bits(65519.0), HALF.bits(65520.0)), (0x7BFF, 0x7C00));
        assert_eq!((HALF.bits(1e300), HALF.bits(f64::NEG_INFINITY)), (0x7C00, 0xFC00));
        assert_eq!((HALF.bits(-0.0), HALF.bits(2_f64.powi(-25)), HALF.bits(3e-8)), (0x8000, 0, 1));
        assert!(HALF.value(HALF.bits(f64::NAN)).is_nan());
    }
}
