//! Sums, products and the like, of numbers of all types; and roundings.
//!
//! ~~~text
//! Add float32 [4, 3], [3]      zip(T::plus) with T = f32
//! Neg int8 [4]                 map(T::negated) with T = i8
//! ~~~

use super::apply::{map, pair};
use super::numeric::Numeric;
use crate::kernels::number::Number;
use crate::kernels::types::{Made, with_type};
use lowtide_core::operator::{Call, Fact};

/// Rules of operators with two inputs.
macro_rules! binary {
    ($($name:ident: $function:ident;)*) => {$(
        pub(crate) fn $name(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
            with_type!(numbers: call.dtype(0), T => pair(call, outputs, T::$function))
        }
    )*};
}

binary! {
    add: plus;
    sub: minus;
    mul: times;
    div: over;
}

/// `Mod`: the sign is that of the divisor, or with `fmod` that of the dividend.
pub(crate) fn modulo(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let is_of_dividend = call.flag("fmod");
    with_type!(numbers: call.dtype(0), T => if is_of_dividend {
        pair(call, outputs, T::remainder)
    } else {
        pair(call, outputs, T::modulo)
    })
}

/// Rules of operators with one input, by name and family of types.
macro_rules! unary {
    ($($name:ident $family:ident: $function:expr;)*) => {$(
        pub(crate) fn $name(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
            with_type!($family: call.dtype(0), T => map::<T, T>($function))
        }
    )*};
}

unary! {
    abs numbers: Number::magnitude;
    neg signed: Numeric::negated;
    sign numbers: Numeric::sign;
    sqrt floats: T::sqrt;
    reciprocal floats: T::recip;
    floor floats: T::floor;
    ceil floats: T::ceil;
    round floats: T::round_ties_even;
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{refuses, runs};

    #[test]
    fn inputs_are_broadcast() {
        let (a, b) = ("weight a 2 3 = 1 2 3 4 5 6", "weight b 3 = 10 20 30");
        runs(&[a, b, "y = Add(a, b)"], "float32 [2, 3] 11 22 33 14 25 36");
        runs(&[a, b, "y = Sub(b, a)"], "float32 [2, 3] 9 18 27 6 15 24");
        let (a, b) = ("weight a 2 1 = 1 2", "weight b 1 3 = 1 2 3");
        runs(&[a, b, "y = Mul(a, b)"], "float32 [2, 3] 1 2 3 2 4 6");
        runs(&["weight a = 6", "weight b 2 = 2 0", "y = Div(a, b)"], "float32 [2] 3 inf");
        runs(&["weight a 0 3 =", "weight b 3 = 1 2 3", "y = Add(a, b)"], "float32 [0, 3] ");
        runs(&["weight a 3 = 1 2 3", "y = Mul(a, a)"], "float32 [3] 1 4 9");
    }

    #[test]
    fn integers_of_any_width_are_calculated() {
        runs(
            &["weight a i8 2 = 127 -128", "weight b i8 = 1", "y = Add(a, b)"],
            "int8 [2] -128 -127",
        );
        runs(
            &["weight a i32 3 = 7 -7 7", "weight b i32 3 = 2 2 0", "y = Div(a, b)"],
            "int32 [3] 3 -3 0",
        );
        runs(
            &["weight a u64 2 = 7 1", "weight b u64 2 = 2 2", "y = Sub(a, b)"],
            "uint64 [2] 5 18446744073709551615",
        );
        runs(
            &["weight a f64 2 = 7 1", "weight b f64 2 = 2 2", "y = Mul(a, b)"],
            "float64 [2] 14 2",
        );
    }

    #[test]
    fn remainders_take_one_of_two_signs() {
        let inputs = ["weight a i64 4 = -4 7 5 7", "weight b i64 4 = 3 -3 8 0"];
        runs(&[inputs[0], inputs[1], "y = Mod(a, b)"], "int64 [4] 2 -2 5 0");
        runs(&[inputs[0], inputs[1], "y = Mod(a, b) {fmod=1}"], "int64 [4] -1 1 5 0");
        let inputs = ["weight a 3 = -4.5 7 5", "weight b 3 = 2 -2 inf"];
        runs(&[inputs[0], inputs[1], "y = Mod(a, b) {fmod=1}"], "float32 [3] -0.5 1 5");
        runs(&[inputs[0], inputs[1], "y = Mod(a, b)"], "float32 [3] 1.5 -1 5");
    }

    #[test]
    fn numbers_are_rounded_and_turned() {
        let x = "weight x 5 = -1.5 0.5 2.5 -0 nan";
        for (kind, wanted) in [
            ("Round", "-2 0 2 -0 NaN"),
            ("Floor", "-2 0 2 -0 NaN"),
            ("Ceil", "-1 1 3 -0 NaN"),
            ("Abs", "1.5 0.5 2.5 0 NaN"),
            ("Neg", "1.5 -0.5 -2.5 0 NaN"),
            ("Sign", "-1 1 1 0 NaN"),
            ("Sqrt", "NaN 0.70710677 1.5811388 -0 NaN"),
            ("Reciprocal", "-0.6666667 2 0.4 -inf NaN"),
        ] {
            runs(&[x, &format!("y = {kind}(x)")], &format!("float32 [5] {wanted}"));
        }
        runs(&["weight x i8 2 = -128 5", "y = Abs(x)"], "int8 [2] -128 5");
        runs(&["weight x u16 2 = 0 5", "y = Sign(x)"], "uint16 [2] 0 1");
    }

    #[test]
    fn in_old_versions_axes_begin_where_an_attribute_says() {
        let lines = ["opset 6", "weight a 2 2 = 1 2 3 4", "weight b 2 = 1 2"];
        let of = |axis: &str, wanted: &str| {
            let call = format!("y = Add(a, b) {{broadcast=1{axis}}}");
            runs(&[&lines[..], &[&call]].concat(), &format!("float32 [2, 2] {wanted}"));
        };
        of("", "2 4 4 6");
        of(", axis=1", "2 4 4 6");
        of(", axis=-1", "2 4 4 6");
        of(", axis=0", "2 3 5 6");
    }

    #[test]
    fn types_without_arithmetic_are_refused() {
        let lines = ["weight a bool 1 = 0", "y = Add(a, a)"];
        refuses(&lines, "1 operators have no kernel: 1 x Add (type bool)");
        refuses(
            &["weight a u8 1 = 0", "y = Neg(a)"],
            "1 operators have no kernel: 1 x Neg (type uint8)",
        );
    }
}
