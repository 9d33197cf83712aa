//! Operators that compute element i of the output from element i of each input.
//!
//! ~~~text
//! a[i] ──┐
//!        Add ──> y[i]     a[i] and b[i] are read before y[i] is written, so y may lie on a or on b
//! b[i] ──┘
//! ~~~
//! An input that is broadcast does not match the output, and is left alone; see `sharing`.

use super::Table;
use crate::declaration::{Rule, overwrites, row};
use crate::shapes::{elementwise, like_first, quantise};
use crate::work;

/// The rows.
pub(super) static TABLE: Table = Table {
    cost: Some(work::one_each),
    rows: &[
        overwrites("Abs", &[0]).shape(elementwise::abs),
        overwrites("Acos", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Acosh", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Add", &[0, 1]).shape(elementwise::add),
        overwrites("And", &[0, 1]).shape(elementwise::and),
        overwrites("Asin", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Asinh", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Atan", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Atanh", &[0]).shape(like_first).cost(work::some_each),
        overwrites("BitCast", &[0]).shape(quantise::to_named).cost(work::nothing),
        overwrites("BitShift", &[0, 1]).shape(elementwise::same_type),
        overwrites("BitwiseAnd", &[0, 1]).shape(elementwise::same_type),
        overwrites("BitwiseNot", &[0]).shape(like_first),
        overwrites("BitwiseOr", &[0, 1]).shape(elementwise::same_type),
        overwrites("BitwiseXor", &[0, 1]).shape(elementwise::same_type),
        overwrites("Cast", &[0]).shape(elementwise::cast).cost(work::nothing),
        overwrites("CastLike", &[0]).shape(elementwise::cast).cost(work::nothing),
        overwrites("Ceil", &[0]).shape(elementwise::ceil),
        overwrites("Celu", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Clip", &[0]).shape(like_first),
        overwrites("Cos", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Cosh", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Div", &[0, 1]).shape(elementwise::div),
        overwrites("Elu", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Equal", &[0, 1]).shape(elementwise::equal),
        overwrites("Erf", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Exp", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Floor", &[0]).shape(elementwise::floor),
        overwrites("Gelu", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Greater", &[0, 1]).shape(elementwise::greater),
        overwrites("GreaterOrEqual", &[0, 1]).shape(elementwise::greater_or_equal),
        overwrites("HardSigmoid", &[0]).shape(like_first).cost(work::some_each),
        overwrites("HardSwish", &[0]).shape(like_first).cost(work::some_each),
        overwrites("IsInf", &[0]).shape(elementwise::predicate),
        overwrites("IsNaN", &[0]).shape(elementwise::predicate),
        overwrites("LeakyRelu", &[0]).shape(like_first),
        overwrites("Less", &[0, 1]).shape(elementwise::less),
        overwrites("LessOrEqual", &[0, 1]).shape(elementwise::less_or_equal),
        overwrites("Log", &[0]).shape(like_first).cost(work::some_each),
        row("Max", Rule::OverwriteAny).shape(elementwise::max),
        row("Mean", Rule::OverwriteAny).shape(elementwise::same_type),
        row("Min", Rule::OverwriteAny).shape(elementwise::min),
        overwrites("Mish", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Mod", &[0, 1]).shape(elementwise::modulo),
        overwrites("Mul", &[0, 1]).shape(elementwise::mul),
        overwrites("Neg", &[0]).shape(elementwise::neg),
        overwrites("Not", &[0]).shape(elementwise::not),
        overwrites("Or", &[0, 1]).shape(elementwise::or),
        overwrites("PRelu", &[0]).shape(like_first),
        overwrites("Pow", &[0, 1]).shape(elementwise::pow).cost(work::some_each),
        overwrites("Reciprocal", &[0]).shape(like_first),
        overwrites("Relu", &[0]).shape(like_first),
        overwrites("Round", &[0]).shape(elementwise::round),
        overwrites("Selu", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Shrink", &[0]).shape(like_first),
        overwrites("Sigmoid", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Sign", &[0]).shape(like_first),
        overwrites("Sin", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Sinh", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Softplus", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Softsign", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Sqrt", &[0]).shape(elementwise::sqrt),
        overwrites("Sub", &[0, 1]).shape(elementwise::sub),
        row("Sum", Rule::OverwriteAny).shape(elementwise::sum),
        overwrites("Swish", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Tan", &[0]).shape(like_first).cost(work::some_each),
        overwrites("Tanh", &[0]).shape(like_first).cost(work::some_each),
        overwrites("ThresholdedRelu", &[0]).shape(like_first),
        overwrites("Trilu", &[0]).shape(like_first),
        overwrites("Where", &[1, 2, 0]).shape(elementwise::choose),
        overwrites("Xor", &[0, 1]).shape(elementwise::xor),
    ],
};
