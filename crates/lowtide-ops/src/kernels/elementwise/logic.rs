//! Comparisons, truth values, bits, and questions about numbers.
//!
//! ~~~text
//! Less float32 [4], [4]      bool [4]: a byte of 0 or 1
//! And bool [4], [4]          any byte that is not 0 is true
//! BitShift uint8 [4], [4]    nothing is left after 8 bits
//! ~~~

use super::apply::{map, pair};
use super::numeric::Integer;
use crate::kernels::number::no_kernel_for;
use crate::kernels::types::{Made, with_type};
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact, NoKernel};
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// Rules of comparisons, by name and family of types.
macro_rules! comparisons {
    ($($name:ident $family:ident: $function:ident;)*) => {$(
        pub(crate) fn $name(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
            with_type!($family: call.dtype(0), T => {
                pair(call, outputs, |a: T, b: T| u8::from(a.$function(&b)))
            })
        }
    )*};
}

comparisons! {
    greater numbers: gt;
    greater_or_equal numbers: ge;
    less numbers: lt;
    less_or_equal numbers: le;
}

/// `Equal`, where truth values are equal if both are true, whatever their bytes.
pub(crate) fn equal(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    if call.dtype(0) == Some(DType::Bool) {
        return pair(call, outputs, |a: u8, b: u8| u8::from((a != 0) == (b != 0)));
    }
    #[expect(clippy::float_cmp, reason = "this is what the operator asks")]
    let made = with_type!(numbers: call.dtype(0), T => {
        pair(call, outputs, |a: T, b: T| u8::from(a == b))
    });
    made
}

fn check_bool(call: &Call<'_>) -> Result<(), NoKernel> {
    match call.dtype(0) {
        Some(DType::Bool) => Ok(()),
        other => Err(no_kernel_for(other)),
    }
}

/// Rules of operators on truth values.
macro_rules! truths {
    ($($name:ident: $function:expr;)*) => {$(
        pub(crate) fn $name(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
            check_bool(call)?;
            pair(call, outputs, |a: u8, b: u8| u8::from($function(a != 0, b != 0)))
        }
    )*};
}

truths! {
    and: bool::bitand;
    or: bool::bitor;
    xor: bool::bitxor;
}

pub(crate) fn not(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    check_bool(call)?;
    map(|x: u8| u8::from(x == 0))
}

/// Rules of operators on the bits of integers.
macro_rules! bits {
    ($($name:ident: $function:ident;)*) => {$(
        pub(crate) fn $name(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
            with_type!(integers: call.dtype(0), T => pair::<T, T>(call, outputs, T::$function))
        }
    )*};
}

bits! {
    bitwise_and: bitand;
    bitwise_or: bitor;
    bitwise_xor: bitxor;
}

pub(crate) fn bitwise_not(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    with_type!(integers: call.dtype(0), T => map::<T, T>(T::not))
}

pub(crate) fn bit_shift(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let direction = call.text("direction");
    with_type!(unsigned: call.dtype(0), T => match direction {
        Some("LEFT") => pair(call, outputs, <T as Integer>::up),
        Some("RIGHT") => pair(call, outputs, <T as Integer>::down),
        other => Err(NoKernel::Misfit(format!("direction {other:?}, wanted LEFT or RIGHT"))),
    })
}

pub(crate) fn is_nan(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    with_type!(floats: call.dtype(0), T => map(|x: T| u8::from(x.is_nan())))
}

pub(crate) fn is_inf(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    let finds = |name: &str| call.int_or(name, 1) != 0;
    let (positive, negative) = (finds("detect_positive"), finds("detect_negative"));
    with_type!(floats: call.dtype(0), T => map(move |x: T| {
        u8::from(positive && x == T::INFINITY || negative && x == T::NEG_INFINITY)
    }))
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{refuses, runs};

    #[test]
    fn numbers_of_any_type_are_compared() {
        let lines = ["weight a 2 2 = 1 2 nan -0", "weight b 2 = 2 0", "y = Less(a, b)"];
        runs(&lines, "bool [2, 2] 1 0 0 0");
        let lines =
            ["weight a u8 3 = 200 1 5", "weight b u8 3 = 100 1 9", "y = GreaterOrEqual(a, b)"];
        runs(&lines, "bool [3] 1 1 0");
        runs(&["weight a i64 2 = 4 5", "weight b i64 = 5", "y = Equal(a, b)"], "bool [2] 0 1");
        runs(
            &["weight a bool 2 = 7 0", "weight b bool 2 = 1 1", "y = Equal(a, b)"],
            "bool [2] 1 0",
        );
    }

    #[test]
    fn every_byte_but_zero_is_true() {
        let inputs = ["weight a bool 4 = 0 0 9 9", "weight b bool 4 = 0 2 0 2"];
        for (kind, wanted) in [("And", "0 0 0 1"), ("Or", "0 1 1 1"), ("Xor", "0 1 1 0")] {
            let lines = [inputs[0], inputs[1], &format!("y = {kind}(a, b)")];
            runs(&lines, &format!("bool [4] {wanted}"));
        }
        runs(&[inputs[0], "y = Not(a)"], "bool [4] 1 1 0 0");
    }

    #[test]
    fn bits_are_joined_turned_and_shifted() {
        let inputs = ["weight a u8 2 = 12 255", "weight b u8 2 = 10 9"];
        let of = |call: &str, wanted: &str| {
            runs(&[inputs[0], inputs[1], call], &format!("uint8 [2] {wanted}"));
        };
        of("y = BitwiseAnd(a, b)", "8 9");
        of("y = BitwiseOr(a, b)", "14 255");
        of("y = BitwiseXor(a, b)", "6 246");
        of("y = BitwiseNot(a)", "243 0");
        of("y = BitShift(b, a) {direction=LEFT}", "0 0");
        of("y = BitShift(a, b) {direction=RIGHT}", "0 0");
        runs(&["weight a i32 1 = 5", "y = BitwiseNot(a)"], "int32 [1] -6");
    }

    #[test]
    fn what_is_no_number_is_found() {
        let x = "weight x 4 = nan inf -inf 1";
        runs(&[x, "y = IsNaN(x)"], "bool [4] 1 0 0 0");
        runs(&[x, "y = IsInf(x)"], "bool [4] 0 1 1 0");
        runs(&[x, "y = IsInf(x) {detect_negative=0}"], "bool [4] 0 1 0 0");
    }

    #[test]
    fn truth_values_have_no_order() {
        let lines = ["weight a bool 1 = 1", "y = Less(a, a)"];
        refuses(&lines, "1 operators have no kernel: 1 x Less (type bool)");
    }
}
