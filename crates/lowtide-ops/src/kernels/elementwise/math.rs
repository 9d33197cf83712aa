//! Exponentials, logarithms, angles.
//!
//! ~~~text
//! Exp float32 [4]      map(Float::exp): a loop of vector instructions
//! Acos float32 [4]     map(f32::acos): rare, a call an element
//! Sin float32 [4]      vector instructions, but for large angles
//! ~~~

use super::apply::{map, map_unless};
use super::functions::{self, Float, LARGE_ANGLE};
use crate::kernels::number::no_kernel_for;
use crate::kernels::types::{Made, with_type};
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact};

/// Rules of operators with one input.
macro_rules! unary {
    ($($name:ident: $function:expr;)*) => {$(
        pub(crate) fn $name(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
            with_type!(floats: call.dtype(0), T => map::<T, T>($function))
        }
    )*};
}

unary! {
    acos: T::acos;
    acosh: T::acosh;
    asin: T::asin;
    asinh: T::asinh;
    atan: T::atan;
    atanh: T::atanh;
    cosh: T::cosh;
    erf: Float::erf;
    exp: Float::exp;
    log: Float::ln;
    sinh: T::sinh;
    tan: T::tan;
    tanh: Float::tanh;
}

pub(crate) fn sin(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    of_angle(call, functions::sin, f32::sin, f64::sin)
}

pub(crate) fn cos(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    of_angle(call, functions::cos, f32::cos, f64::cos)
}

fn of_angle(
    call: &Call<'_>,
    fast: impl Fn(f32) -> f32 + Copy + Send + 'static,
    of_large: fn(f32) -> f32,
    double: fn(f64) -> f64,
) -> Made {
    match call.dtype(0) {
        Some(DType::F32) => map_unless(|x: f32| x.abs() > LARGE_ANGLE, of_large, fast),
        Some(DType::F64) => map(double),
        other => Err(no_kernel_for(other)),
    }
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::runs;

    #[test]
    fn functions_of_one_number_are_applied_to_each() {
        runs(&["weight x 3 = 0 1 -inf", "y = Exp(x)"], "float32 [3] 1 2.7182817 0");
        runs(&["weight x 4 = 0 1 inf -1", "y = Log(x)"], "float32 [4] -inf 0 inf NaN");
        runs(&["weight x f64 2 = 0 -99", "y = Tanh(x)"], "float64 [2] 0 -1");
        runs(&["weight x 3 = 0.5 inf nan", "y = Erf(x)"], "float32 [3] 0.5204999 1 NaN");
        runs(&["weight x 3 = 1 2 -2", "y = Acos(x)"], "float32 [3] 0 NaN NaN");
    }

    #[test]
    fn large_angles_are_turned_back_exactly() {
        let lines = ["weight x 4 = 0.5 1e22 inf 3.1415927", "y = Sin(x)"];
        runs(&lines, "float32 [4] 0.47942555 -0.7340815 NaN -0.00000008742278");
        runs(&["weight x 2 = 0 1e22", "y = Cos(x)"], "float32 [2] 1 0.67906135");
    }
}
