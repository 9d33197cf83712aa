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
use crate::kernels::elementwise::{
    activation, arithmetic, cast, choose, logic, math, power, trilu, variadic,
};
use crate::kernels::layout::view;
use crate::shapes::{elementwise, like_first, quantise};
use crate::work;

/// The rows.
pub(super) static TABLE: Table = Table {
    cost: Some(work::one_each),
    rows: &[
        overwrites("Abs", &[0]).shape(elementwise::abs).kernel(arithmetic::abs),
        overwrites("Acos", &[0]).shape(like_first).cost(work::some_each).kernel(math::acos),
        overwrites("Acosh", &[0]).shape(like_first).cost(work::some_each).kernel(math::acosh),
        overwrites("Add", &[0, 1]).shape(elementwise::add).kernel(arithmetic::add),
        overwrites("And", &[0, 1]).shape(elementwise::and).kernel(logic::and),
        overwrites("Asin", &[0]).shape(like_first).cost(work::some_each).kernel(math::asin),
        overwrites("Asinh", &[0]).shape(like_first).cost(work::some_each).kernel(math::asinh),
        overwrites("Atan", &[0]).shape(like_first).cost(work::some_each).kernel(math::atan),
        overwrites("Atanh", &[0]).shape(like_first).cost(work::some_each).kernel(math::atanh),
        overwrites("BitCast", &[0])
            .shape(quantise::to_named)
            .cost(work::nothing)
            .kernel(view::view)
            .moves(),
        overwrites("BitShift", &[0, 1]).shape(elementwise::same_type).kernel(logic::bit_shift),
        overwrites("BitwiseAnd", &[0, 1]).shape(elementwise::same_type).kernel(logic::bitwise_and),
        overwrites("BitwiseNot", &[0]).shape(like_first).kernel(logic::bitwise_not),
        overwrites("BitwiseOr", &[0, 1]).shape(elementwise::same_type).kernel(logic::bitwise_or),
        overwrites("BitwiseXor", &[0, 1]).shape(elementwise::same_type).kernel(logic::bitwise_xor),
        overwrites("Cast", &[0])
            .shape(elementwise::cast)
            .cost(work::nothing)
            .kernel(cast::cast)
            .moves(),
        overwrites("CastLike", &[0])
            .shape(elementwise::cast)
            .cost(work::nothing)
            .kernel(cast::cast_like)
            .moves(),
        overwrites("Ceil", &[0]).shape(elementwise::ceil).kernel(arithmetic::ceil),
        overwrites("Celu", &[0]).shape(like_first).cost(work::some_each).kernel(activation::celu),
        overwrites("Clip", &[0]).shape(like_first).kernel(choose::clip),
        overwrites("Cos", &[0]).shape(like_first).cost(work::some_each).kernel(math::cos),
        overwrites("Cosh", &[0]).shape(like_first).cost(work::some_each).kernel(math::cosh),
        overwrites("Div", &[0, 1]).shape(elementwise::div).kernel(arithmetic::div),
        overwrites("Elu", &[0]).shape(like_first).cost(work::some_each).kernel(activation::elu),
        overwrites("Equal", &[0, 1]).shape(elementwise::equal).kernel(logic::equal),
        overwrites("Erf", &[0]).shape(like_first).cost(work::some_each).kernel(math::erf),
        overwrites("Exp", &[0]).shape(like_first).cost(work::some_each).kernel(math::exp),
        overwrites("Floor", &[0]).shape(elementwise::floor).kernel(arithmetic::floor),
        overwrites("Gelu", &[0]).shape(like_first).cost(work::some_each).kernel(activation::gelu),
        overwrites("Greater", &[0, 1]).shape(elementwise::greater).kernel(logic::greater),
        overwrites("GreaterOrEqual", &[0, 1])
            .shape(elementwise::greater_or_equal)
            .kernel(logic::greater_or_equal),
        overwrites("HardSigmoid", &[0])
            .shape(like_first)
            .cost(work::some_each)
            .kernel(activation::hard_sigmoid),
        overwrites("HardSwish", &[0])
            .shape(like_first)
            .cost(work::some_each)
            .kernel(activation::hard_swish),
        overwrites("IsInf", &[0]).shape(elementwise::predicate).kernel(logic::is_inf),
        overwrites("IsNaN", &[0]).shape(elementwise::predicate).kernel(logic::is_nan),
        overwrites("LeakyRelu", &[0]).shape(like_first).kernel(activation::leaky_relu),
        overwrites("Less", &[0, 1]).shape(elementwise::less).kernel(logic::less),
        overwrites("LessOrEqual", &[0, 1])
            .shape(elementwise::less_or_equal)
            .kernel(logic::less_or_equal),
        overwrites("Log", &[0]).shape(like_first).cost(work::some_each).kernel(math::log),
        row("Max", Rule::OverwriteAny).shape(elementwise::max).kernel(variadic::max),
        row("Mean", Rule::OverwriteAny).shape(elementwise::same_type).kernel(variadic::mean),
        row("Min", Rule::OverwriteAny).shape(elementwise::min).kernel(variadic::min),
        overwrites("Mish", &[0]).shape(like_first).cost(work::some_each).kernel(activation::mish),
        overwrites("Mod", &[0, 1]).shape(elementwise::modulo).kernel(arithmetic::modulo),
        overwrites("Mul", &[0, 1]).shape(elementwise::mul).kernel(arithmetic::mul),
        overwrites("Neg", &[0]).shape(elementwise::neg).kernel(arithmetic::neg),
        overwrites("Not", &[0]).shape(elementwise::not).kernel(logic::not),
        overwrites("Or", &[0, 1]).shape(elementwise::or).kernel(logic::or),
        overwrites("PRelu", &[0]).shape(like_first).kernel(activation::prelu),
        overwrites("Pow", &[0, 1]).shape(elementwise::pow).cost(work::some_each).kernel(power::pow),
        overwrites("Reciprocal", &[0]).shape(like_first).kernel(arithmetic::reciprocal),
        overwrites("Relu", &[0]).shape(like_first).kernel(activation::relu),
        overwrites("Round", &[0]).shape(elementwise::round).kernel(arithmetic::round),
        overwrites("Selu", &[0]).shape(like_first).cost(work::some_each).kernel(activation::selu),
        overwrites("Shrink", &[0]).shape(like_first).kernel(activation::shrink),
        overwrites("Sigmoid", &[0])
            .shape(like_first)
            .cost(work::some_each)
            .kernel(activation::sigmoid),
        overwrites("Sign", &[0]).shape(like_first).kernel(arithmetic::sign),
        overwrites("Sin", &[0]).shape(like_first).cost(work::some_each).kernel(math::sin),
        overwrites("Sinh", &[0]).shape(like_first).cost(work::some_each).kernel(math::sinh),
        overwrites("Softplus", &[0])
            .shape(like_first)
            .cost(work::some_each)
            .kernel(activation::softplus),
        overwrites("Softsign", &[0])
            .shape(like_first)
            .cost(work::some_each)
            .kernel(activation::softsign),
        overwrites("Sqrt", &[0]).shape(elementwise::sqrt).kernel(arithmetic::sqrt),
        overwrites("Sub", &[0, 1]).shape(elementwise::sub).kernel(arithmetic::sub),
        row("Sum", Rule::OverwriteAny).shape(elementwise::sum).kernel(variadic::sum),
        overwrites("Swish", &[0]).shape(like_first).cost(work::some_each).kernel(activation::swish),
        overwrites("Tan", &[0]).shape(like_first).cost(work::some_each).kernel(math::tan),
        overwrites("Tanh", &[0]).shape(like_first).cost(work::some_each).kernel(math::tanh),
        overwrites("ThresholdedRelu", &[0]).shape(like_first).kernel(activation::thresholded_relu),
        overwrites("Trilu", &[0]).shape(like_first).kernel(trilu::trilu).moves(),
        overwrites("Where", &[1, 2, 0]).shape(elementwise::choose).kernel(choose::choose).moves(),
        overwrites("Xor", &[0, 1]).shape(elementwise::xor).kernel(logic::xor),
    ],
};
