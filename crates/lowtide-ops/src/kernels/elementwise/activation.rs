//! Activation functions.
//!
//! ~~~text
//! LeakyRelu(alpha = 0.1)   if x < 0 { alpha * x } else { x }
//!                          └──────── one closure, which holds its attributes
//! ~~~
//! Each is written once for single and double precision, and without calls and branches that would keep its loop from
//! becoming vector instructions. NaN stays NaN where ONNX does not say otherwise.

use super::apply::{map, pair};
use super::functions::Float;
use super::numeric::Numeric;
use crate::kernels::number::Number;
use crate::kernels::types::{Made, with_type};
use lowtide_core::operator::{Call, Fact, NoKernel};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

pub(crate) fn relu(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    with_type!(signed: call.dtype(0), T => {
        map::<T, T>(|x| if x < T::default() { T::default() } else { x })
    })
}

/// `PRelu`, whose slopes are an input that is broadcast.
pub(crate) fn prelu(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    with_type!(numbers: call.dtype(0), T => {
        pair(call, outputs, |x: T, slope: T| if x < T::default() { x.times(slope) } else { x })
    })
}

/// Rules of operators, each with its attributes, their defaults, and its function in terms of them.
macro_rules! activations {
    ($($name:ident($($attribute:ident = $default:expr),*): |$x:ident| $y:expr;)*) => {$(
        pub(crate) fn $name(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
            with_type!(floats: call.dtype(0), T => {
                $(let $attribute: T = call.float(stringify!($attribute)).unwrap_or($default).into();)*
                map::<T, T>(#[inline(always)] move |$x| $y)
            })
        }
    )*};
}

activations! {
    celu(alpha = 1.0): |x| if x > 0.0 { x } else { alpha * Float::exp_m1(x / alpha) };
    elu(alpha = 1.0): |x| if x > 0.0 { x } else { alpha * Float::exp_m1(x) };
    hard_sigmoid(alpha = 0.2, beta = 0.5): |x| (alpha * x + beta).smaller(1.0).larger(0.0);
    hard_swish(): |x| x * (x / 6.0 + 0.5).smaller(1.0).larger(0.0);
    leaky_relu(alpha = 0.01): |x| if x < 0.0 { alpha * x } else { x };
    mish(): |x| {
        // x * tanh(ln(1 + e^x)), with e = e^x; from 20 on it is x.
        let e = Float::exp(x.smaller(20.0));
        let n = e * (e + 2.0);
        x * (n / (n + 2.0))
    };
    quick_gelu(alpha = 1.702): |x| x / (1.0 + Float::exp(-alpha * x));
    selu(alpha = 1.673_263_2, gamma = 1.050_701): |x| {
        gamma * if x > 0.0 { x } else { alpha * Float::exp_m1(x) }
    };
    shrink(lambd = 0.5, bias = 0.0): |x| {
        let of_rest = if x > lambd { x - bias } else { 0.0 };
        if x < -lambd { x + bias } else { of_rest }
    };
    sigmoid(): |x| 1.0 / (1.0 + Float::exp(-x));
    softplus(): |x| x.larger(0.0) + Float::ln_1p(Float::exp(-x.abs()));
    softsign(): |x| x / (1.0 + x.abs());
    swish(alpha = 1.0): |x| x / (1.0 + Float::exp(-alpha * x));
    thresholded_relu(alpha = 1.0): |x| if x > alpha { x } else { 0.0 };
    gelu_exact(): |x| exact(x);
    gelu_tanh(): |x| by_tanh(x);
}

/// The rules of `BiasGelu` and `FastGelu`, whose bias is broadcast.
macro_rules! biased {
    ($($name:ident: |$x:ident| $y:expr;)*) => {$(
        fn $name(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
            with_type!(floats: call.dtype(0), T => {
                pair(call, outputs, #[inline(always)] |x: T, bias: T| {
                    let $x = x + bias;
                    $y
                })
            })
        }
    )*};
}

biased! {
    exact_with_bias: |x| exact(x);
    tanh_with_bias: |x| by_tanh(x);
}

#[expect(clippy::inline_always, reason = "compiled with the loops that it stands in")]
#[inline(always)]
fn exact<T: Float>(x: T) -> T {
    T::of_f64(0.5) * x * (T::ONE + Float::erf(x * T::of_f64(FRAC_1_SQRT_2)))
}

#[expect(clippy::inline_always, reason = "compiled with the loops that it stands in")]
#[inline(always)]
fn by_tanh<T: Float>(x: T) -> T {
    let inner = T::of_f64(FRAC_1_SQRT_2 * FRAC_2_SQRT_PI) * (x + T::of_f64(0.044_715) * x * x * x);
    T::of_f64(0.5) * x * (T::ONE + Float::tanh(inner))
}

/// `BiasGelu` of ONNX Runtime.
pub(crate) fn bias_gelu(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    exact_with_bias(call, outputs)
}

/// `FastGelu` of ONNX Runtime, whose bias may be absent.
pub(crate) fn fast_gelu(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    if call.has(1) { tanh_with_bias(call, outputs) } else { gelu_tanh(call, outputs) }
}

pub(crate) fn gelu(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    match call.text("approximate") {
        None | Some("none") => gelu_exact(call, outputs),
        Some("tanh") => gelu_tanh(call, outputs),
        Some(other) => Err(NoKernel::Unsupported(format!("the approximation {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::runs;

    #[test]
    fn negative_numbers_are_damped() {
        runs(&["weight x 2 2 = nan -2 3 -inf", "y = Relu(x)"], "float32 [2, 2] NaN 0 3 0");
        runs(&["weight x i8 3 = -128 0 7", "y = Relu(x)"], "int8 [3] 0 0 7");
        runs(&["weight x 2 = -2 3", "y = LeakyRelu(x) {alpha=0.5}"], "float32 [2] -1 3");
        let lines = ["weight x 2 2 = -1 -2 -3 4", "weight s 2 = 0.5 2", "y = PRelu(x, s)"];
        runs(&lines, "float32 [2, 2] -0.5 -4 -1.5 4");
        runs(&["weight x 3 = -1 1 2", "y = ThresholdedRelu(x)"], "float32 [3] 0 0 2");
        runs(&["weight x 3 = -1 0.1 2", "y = Shrink(x) {bias=0.5}"], "float32 [3] -0.5 0 1.5");
    }

    #[test]
    fn a_bias_comes_before_the_function() {
        let lines = ["weight x 2 2 = -1 0 0 1", "weight b 2 = 1 -1"];
        let biased = |call: &str, wanted: &str| runs(&[lines[0], lines[1], call], wanted);
        biased("y = com.microsoft.BiasGelu(x, b)", "float32 [2, 2] 0 -0.15865526 0.8413447 0");
        biased("y = com.microsoft.FastGelu(x, b)", "float32 [2, 2] 0 -0.158808 0.841192 0");
        runs(
            &["weight x 2 = 1 -1", "y = com.microsoft.FastGelu(x)"],
            "float32 [2] 0.841192 -0.158808",
        );
        runs(
            &["weight x 2 = 1 -1", "y = com.microsoft.Gelu(x)"],
            "float32 [2] 0.8413447 -0.15865526",
        );
        runs(&["weight x 1 = 1", "y = com.microsoft.QuickGelu(x)"], "float32 [1] 0.8457958");
    }

    #[test]
    fn negative_numbers_saturate() {
        runs(&["weight x 3 = -1 2 -inf", "y = Elu(x) {alpha=2.0}"], "float32 [3] -1.2642411 2 -2");
        runs(
            &["weight x 3 = -1 2 nan", "y = Celu(x) {alpha=2.0}"],
            "float32 [3] -0.78693867 2 NaN",
        );
        runs(&["weight x 2 = -1 2", "y = Selu(x)"], "float32 [2] -1.1113307 2.101402");
    }

    #[test]
    fn sigmoids_go_from_0_to_1() {
        runs(&["weight x 4 = 0 -inf 1 nan", "y = Sigmoid(x)"], "float32 [4] 0.5 0 0.7310586 NaN");
        runs(&["weight x 4 = 0 -9 1 nan", "y = HardSigmoid(x)"], "float32 [4] 0.5 0 0.7 NaN");
        runs(&["weight x 3 = -4 1.5 9", "y = HardSwish(x)"], "float32 [3] -0 1.125 9");
        runs(&["weight x 2 = -1 inf", "y = Swish(x)"], "float32 [2] -0.26894143 inf");
        runs(&["weight x 2 = -3 1", "y = Softsign(x)"], "float32 [2] -0.75 0.5");
    }

    #[test]
    fn smooth_steps_are_exact_far_away() {
        runs(
            &["weight x 4 = -110 0 1 100", "y = Softplus(x)"],
            "float32 [4] 0 0.6931472 1.3132617 100",
        );
        runs(
            &["weight x 4 = -30 1 100 nan", "y = Mish(x)"],
            "float32 [4] -0.000000000002807287 0.86509836 100 NaN",
        );
        runs(&["weight x 3 = -1 0 4", "y = Gelu(x)"], "float32 [3] -0.15865526 0 3.9998732");
        runs(
            &["weight x 2 = -1 4", "y = Gelu(x) {approximate=tanh}"],
            "float32 [2] -0.158808 3.99993",
        );
    }

    #[test]
    fn in_old_versions_slopes_are_those_of_channels() {
        let lines = ["opset 6", "weight x 1 2 2 = -1 -2 -3 -4", "weight s 2 = 1 2"];
        runs(&[&lines[..], &["y = PRelu(x, s)"]].concat(), "float32 [1, 2, 2] -1 -2 -6 -8");
    }
}
