//! [`Fold`]: what a reduction does with the elements that become one.
//!
//! ~~~text
//! empty ─add x0─> ─add x1─> .. ─┐
//! empty ─add x8─> ─add x9─> .. ─┴merge──> ──finish──> element       several sums at once, merged at the end
//! ~~~
//! Sums of single precision are added up in double: rows may be long.

#![expect(
    clippy::inline_always,
    reason = "compiled for the vectors of the loop that they stand in"
)]

use crate::kernels::number::Number;

/// One kind of reduction.
pub(crate) trait Fold: 'static {
    /// What is known of the elements so far.
    type Sum<T: Number>: Copy;

    /// Nothing so far.
    fn empty<T: Number>() -> Self::Sum<T>;
    /// One element more.
    fn add<T: Number>(sum: Self::Sum<T>, x: T) -> Self::Sum<T>;
    /// Two parts together.
    fn merge<T: Number>(a: Self::Sum<T>, b: Self::Sum<T>) -> Self::Sum<T>;
    /// The result, of so many elements.
    fn finish<T: Number>(sum: Self::Sum<T>, count: usize) -> T;
}

macro_rules! folds {
    ($($(#[$doc:meta])* $name:ident: $empty:ident, |$x:ident| $term:expr, $merge:ident, |$sum:ident, $count:pat_param| $finish:expr;)+) => {
        $($(#[$doc])*
        pub(crate) struct $name;

        impl Fold for $name {
            type Sum<T: Number> = T::Wide;

            #[inline(always)]
            fn empty<T: Number>() -> T::Wide {
                T::Wide::$empty
            }

            #[inline(always)]
            fn add<T: Number>(sum: T::Wide, x: T) -> T::Wide {
                let $x = x.widen();
                sum.$merge($term)
            }

            #[inline(always)]
            fn merge<T: Number>(a: T::Wide, b: T::Wide) -> T::Wide {
                a.$merge(b)
            }

            #[inline(always)]
            fn finish<T: Number>($sum: T::Wide, $count: usize) -> T {
                $finish
            }
        })+
    };
}

folds! {
    /// The sum.
    Sum: ZERO, |x| x, plus, |sum, _| T::narrow(sum);
    /// The mean.
    Mean: ZERO, |x| x, plus, |sum, count| T::of_f64(sum.to_f64() / number(count));
    /// The product.
    Product: ONE, |x| x, times, |sum, _| T::narrow(sum);
    /// The sum of the distances from 0.
    LengthL1: ZERO, |x| x.magnitude(), plus, |sum, _| T::narrow(sum);
    /// The length as a vector.
    LengthL2: ZERO, |x| x.times(x), plus, |sum, _| T::of_f64(sum.to_f64().sqrt());
    /// The sum of the squares.
    SumSquare: ZERO, |x| x.times(x), plus, |sum, _| T::narrow(sum);
    /// The logarithm of the sum.
    LogSum: ZERO, |x| x, plus, |sum, _| T::of_f64(sum.to_f64().ln());
}

#[expect(clippy::cast_precision_loss, reason = "the nearest number will do")]
fn number(count: usize) -> f64 {
    count as f64
}

/// The largest element; what is not a number is larger than all.
pub(crate) struct Max;

/// The smallest element; what is not a number is smaller than all.
pub(crate) struct Min;

impl Fold for Max {
    type Sum<T: Number> = T;

    #[inline(always)]
    fn empty<T: Number>() -> T {
        T::LOWEST
    }

    #[inline(always)]
    fn add<T: Number>(most: T, x: T) -> T {
        if x > most || x.is_nan() { x } else { most }
    }

    #[inline(always)]
    fn merge<T: Number>(a: T, b: T) -> T {
        Self::add(a, b)
    }

    #[inline(always)]
    fn finish<T: Number>(most: T, _: usize) -> T {
        most
    }
}

impl Fold for Min {
    type Sum<T: Number> = T;

    #[inline(always)]
    fn empty<T: Number>() -> T {
        T::HIGHEST
    }

    #[inline(always)]
    fn add<T: Number>(least: T, x: T) -> T {
        if x < least || x.is_nan() { x } else { least }
    }

    #[inline(always)]
    fn merge<T: Number>(a: T, b: T) -> T {
        Self::add(a, b)
    }

    #[inline(always)]
    fn finish<T: Number>(least: T, _: usize) -> T {
        least
    }
}

/// The logarithm of the sum of the exponentials, which are taken of differences to the largest so far: they do not
/// overflow.
pub(crate) struct LogSumExp;

impl Fold for LogSumExp {
    type Sum<T: Number> = (f64, f64);

    #[inline(always)]
    fn empty<T: Number>() -> (f64, f64) {
        (f64::NEG_INFINITY, 0.0)
    }

    #[inline(always)]
    fn add<T: Number>(sum: (f64, f64), x: T) -> (f64, f64) {
        Self::merge::<T>(sum, (x.to_f64(), 1.0))
    }

    #[inline(always)]
    fn merge<T: Number>((a, a_sum): (f64, f64), (b, b_sum): (f64, f64)) -> (f64, f64) {
        // Between infinities of one sign there is no difference.
        if a.to_bits() == b.to_bits() {
            return (a, a_sum + b_sum);
        }
        if b <= a {
            return (a, a_sum + b_sum * (b - a).exp());
        }
        (b, a_sum * (a - b).exp() + b_sum)
    }

    #[inline(always)]
    fn finish<T: Number>((most, sum): (f64, f64), _: usize) -> T {
        T::of_f64(most + sum.ln())
    }
}
