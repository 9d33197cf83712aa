//! Amounts of memory: [`Bytes`] and [`Align`].
//!
//! A [`Graph`](crate::Graph) refuses sizes whose sum could pass [`Bytes::MAX_TOTAL`], so sums over one
//! graph do not overflow; what comes from a plan file or a flag goes through `checked_add`.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A size or an offset, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);
    /// What all tensors of a graph together may take, each rounded up to the largest alignment.
    pub const MAX_TOTAL: Self = Self(1 << 62);

    /// The sum, unless it passes `u64::MAX`.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The product, unless it passes `u64::MAX`.
    pub fn checked_mul(self, count: u64) -> Option<Self> {
        self.0.checked_mul(count).map(Self)
    }

    /// The difference, or zero.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Rounded up to a multiple of `align`, unless that passes `u64::MAX`.
    pub fn align_up(self, align: Align) -> Option<Self> {
        let mask = align.bytes().0 - 1;
        Some(Self(self.0.checked_add(mask)? & !mask))
    }

    /// Whether this is a multiple of `align`.
    pub fn is_aligned(self, align: Align) -> bool {
        self.0 & (align.bytes().0 - 1) == 0
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        Self(items.map(|item| item.0).sum())
    }
}

impl fmt::Display for Bytes {
    /// `640 B`, `1.50 KiB`, `48.00 MiB`: for people. Files carry the integer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        #[expect(clippy::cast_precision_loss, reason = "three digits are printed")]
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 1024.0 {
            value /= 1024.0;
            unit += 1;
        }
        f.pad(&format!("{value:.2} {}", UNITS[unit]))
    }
}

/// An alignment: a power of two, at most [`Align::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Align(u8);

impl Align {
    /// Any offset will do.
    pub const ONE: Self = Self(0);
    /// A cache line, the default for buffers.
    pub const CACHE_LINE: Self = Self(6);
    /// The largest one: a huge page, 2 MiB.
    pub const MAX: Self = Self(21);

    /// The alignment of `bytes`, if that is a power of two up to [`Align::MAX`].
    pub fn new(bytes: u64) -> Option<Self> {
        let shift = u8::try_from(bytes.trailing_zeros()).ok()?;
        (bytes.is_power_of_two() && shift <= Self::MAX.0).then_some(Self(shift))
    }

    /// Offsets are multiples of this many bytes.
    pub const fn bytes(self) -> Bytes {
        Bytes(1 << self.0)
    }
}

impl Default for Align {
    fn default() -> Self {
        Self::CACHE_LINE
    }
}

impl fmt::Debug for Align {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Align({})", self.bytes().0)
    }
}

impl fmt::Display for Align {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_powers_of_two_up_to_a_huge_page_are_alignments() {
        let made: Vec<_> = [0, 1, 3, 64, 1 << 21, 1 << 22, 1 << 63].map(Align::new).to_vec();
        let wanted = [None, Some(Align(0)), None, Some(Align(6)), Some(Align::MAX), None, None];
        assert_eq!(made, wanted);
    }

    #[test]
    fn align_up_reports_overflow() {
        let up = |n| Bytes(n).align_up(Align::CACHE_LINE);
        assert_eq!([up(0), up(1), up(64)], [0, 64, 64].map(|n| Some(Bytes(n))));
        assert_eq!(up(u64::MAX - 5), None);
    }

    #[test]
    fn people_read_three_digits() {
        let shown = [0, 1023, 1536, 48 << 20, u64::MAX].map(|n| Bytes(n).to_string());
        assert_eq!(shown, ["0 B", "1023 B", "1.50 KiB", "48.00 MiB", "16.00 EiB"]);
    }
}
