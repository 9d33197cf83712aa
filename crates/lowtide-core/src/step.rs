//! Time: [`Step`] and half-open [`Interval`]s of steps.
//!
//! Step `s` is the run of the `s`-th entry of a schedule. Within a step the order is: allocations, the
//! operator, frees. A tensor written at step 2 and last read at step 5 lives in `[2, 6)`.

use std::fmt;

/// A point of time: an index into a schedule (or, in a bare placement problem, into its time axis).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step(pub u32);

impl Step {
    /// The first step.
    pub const ZERO: Self = Self(0);

    /// The step after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// As an index into a table of steps.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The step at `index`.
    ///
    /// # Panics
    /// If `index` exceeds `u32::MAX`.
    pub fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("at most u32::MAX steps"))
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The steps from `start` up to, but without, `end`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    /// The first step.
    pub start: Step,
    /// The step after the last one.
    pub end: Step,
}

impl Interval {
    /// `[start, end)`.
    pub const fn new(start: Step, end: Step) -> Self {
        Self { start, end }
    }

    /// Whether no step is inside.
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// Number of steps.
    pub fn len(self) -> u32 {
        self.end.0.saturating_sub(self.start.0)
    }

    /// Whether a step is inside.
    pub fn contains(self, step: Step) -> bool {
        self.start <= step && step < self.end
    }

    /// Whether some step is in both.
    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// The smallest interval that holds both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_intervals_do_not_overlap() {
        let of = |a, b| Interval::new(Step(a), Step(b));
        assert!(!of(0, 2).overlaps(of(2, 4)));
        assert!(of(0, 3).overlaps(of(2, 4)));
        assert_eq!(of(0, 2).hull(of(5, 7)), of(0, 7));
    }
}
