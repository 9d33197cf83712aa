//! Bounds of expressions: what names are at most in, what the whole is at least and at most out.
//!
//! ~~~text
//! a at most 10   ──>   3*a + 2 in 2..=32    floor(a / 4) in 0..=2    5 - a at most 5
//! ~~~
//! Where nothing is known of a name it is 0 or more. A bound that overflows is none.

use super::{Atom, Expr};

/// What names are at most.
type Most<'a> = &'a dyn Fn(&str) -> Option<i64>;

/// The least and the greatest value, where there is one.
type Interval = (Option<i128>, Option<i128>);

impl Expr {
    /// Whether this is not below `other` whatever the names stand for, as far as can be told.
    pub fn is_at_least(&self, other: &Self) -> bool {
        let difference = self.sub(other).map(|difference| difference.interval(&|_| None).0);
        difference.flatten().is_some_and(|low| low >= 0)
    }

    /// The most that the value can be when names stand for 0 up to a bound.
    pub fn most(&self, bounds: Most<'_>) -> Option<i64> {
        let (_, high) = self.interval(bounds);
        high.and_then(|high| i64::try_from(high).ok())
    }

    /// Least and greatest value; `None` where there is none.
    fn interval(&self, bounds: Most<'_>) -> Interval {
        let Self::Open(sum) = self else {
            let value = self.known().map(i128::from);
            return (value, value);
        };
        let mut total = (Some(0_i128), Some(0_i128));
        for (product, &factor) in &sum.terms {
            let (low, high) = product_interval(product, bounds);
            let scaled = |value: Option<i128>| value?.checked_mul(i128::from(factor));
            let (low, high) = if factor < 0 { (high, low) } else { (low, high) };
            total.0 = total.0.zip(scaled(low)).and_then(|(a, b)| a.checked_add(b));
            total.1 = total.1.zip(scaled(high)).and_then(|(a, b)| a.checked_add(b));
        }
        total
    }
}

impl Atom {
    fn interval(&self, bounds: Most<'_>) -> Interval {
        match self {
            Self::Name(name) => (Some(0), bounds(name).map(i128::from)),
            Self::Max(a, b) => {
                let ((a_low, a_high), (b_low, b_high)) = (a.interval(bounds), b.interval(bounds));
                (a_low.max(b_low), a_high.zip(b_high).map(|(a, b)| a.max(b)))
            }
            Self::Min(a, b) => {
                let ((a_low, a_high), (b_low, b_high)) = (a.interval(bounds), b.interval(bounds));
                let high = match (a_high, b_high) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (one, other) => one.or(other),
                };
                (a_low.zip(b_low).map(|(a, b)| a.min(b)), high)
            }
            Self::Broadcast(a, b) => {
                let ((a_low, a_high), (b_low, b_high)) = (a.interval(bounds), b.interval(bounds));
                let (low, high) = (a_low.zip(b_low), a_high.zip(b_high));
                (low.map(|(a, b)| a.min(b)), high.map(|(a, b)| a.max(b)))
            }
            Self::Quotient(a, b) => {
                let (a, b) = (a.interval(bounds), b.interval(bounds));
                quotient_interval(a, b)
            }
            Self::Remainder(_, b) => match b.interval(bounds) {
                (Some(low), high) if low > 0 => (Some(0), high.map(|high| high - 1)),
                _ => (None, None),
            },
        }
    }
}

/// The bounds of a product: where nothing is below 0 they multiply, else the extremes are among the products.
fn product_interval(product: &[Atom], bounds: Most<'_>) -> Interval {
    let mut total = (Some(1_i128), Some(1_i128));
    for atom in product {
        let next = atom.interval(bounds);
        let both = |a: Option<i128>, b: Option<i128>| a?.checked_mul(b?);
        let is_natural = |low: Option<i128>| low.is_some_and(|low| low >= 0);
        total = if is_natural(total.0) && is_natural(next.0) {
            (both(total.0, next.0), both(total.1, next.1))
        } else {
            let corners =
                [(total.0, next.0), (total.0, next.1), (total.1, next.0), (total.1, next.1)];
            let all: Option<Vec<i128>> = corners.into_iter().map(|(a, b)| both(a, b)).collect();
            let all = all.unwrap_or_default();
            (all.iter().min().copied(), all.iter().max().copied())
        };
    }
    total
}

/// Of a quotient whose divisor is 1 or more.
fn quotient_interval(a: Interval, b: Interval) -> Interval {
    let Some(least) = b.0.filter(|&low| low > 0) else { return (None, None) };
    let ends = |value: i128| -> (i128, i128) {
        let by_least = value.div_euclid(least);
        // Divided by something large, a number comes close to 0 or -1.
        let by_most = b.1.map_or(if value < 0 { -1 } else { 0 }, |most| value.div_euclid(most));
        (by_least.min(by_most), by_least.max(by_most))
    };
    (a.0.map(|low| ends(low).0), a.1.map(|high| ends(high).1))
}
