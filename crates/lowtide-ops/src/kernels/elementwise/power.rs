//! `Pow`, whose exponents may have another type than what is raised.
//!
//! ~~~text
//! float ^ anything    the library's power; of 2 and 3, which are what models have, a product
//! int ^ int           products that wrap around
//! int ^ float         by way of doubles, cut off
//! ~~~

use super::apply::{zip, zip_now};
use super::functions::Float;
use super::numeric::Integer;
use super::reader::{one, spread};
use crate::kernels::function;
use crate::kernels::number::Number;
use crate::kernels::types::{Made, with_type};
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact};

pub(crate) fn pow(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    match call.dtype(0) {
        base @ Some(DType::F32 | DType::F64) => with_type!(floats: base, T => {
            with_type!(numbers: call.dtype(1), E => of_float::<T, E>(call, outputs, T::powf))
        }),
        base => with_type!(indices: base, T => of_integer::<T>(call, outputs)),
    }
}

fn of_float<T: Float, E: Number>(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
    power: fn(T, T) -> T,
) -> Made {
    let spreads = [spread(call, 0, outputs)?, spread(call, 1, outputs)?];
    let (two, three) = (E::of_f64(2.0), E::of_f64(3.0));
    let any = move |x: T, exponent: E| match exponent {
        exponent if exponent == two => x * x,
        exponent if exponent == three => x * x * x,
        exponent => power(x, T::of_f64(exponent.to_f64())),
    };
    Ok(function(move |operands| match one::<E>(operands.input(1)?, &spreads[1]) {
        Some(all) if all == two => zip_now(operands, &spreads, |x: T, _: E| x * x),
        Some(all) if all == three => zip_now(operands, &spreads, |x: T, _: E| x * x * x),
        _ => zip_now(operands, &spreads, any),
    }))
}

fn of_integer<T: Integer>(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    match call.dtype(1) {
        exponent @ Some(DType::F32 | DType::F64) => with_type!(floats: exponent, E => {
            zip(call, outputs, |x: T, y: E| T::of_f64(x.to_f64().powf(y.to_f64())))
        }),
        exponent => with_type!(integers: exponent, E => of_integers::<T, E>(call, outputs)),
    }
}

fn of_integers<T: Integer, E: Integer + TryInto<i64>>(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Made {
    zip(call, outputs, |x: T, y: E| x.power(y.try_into().unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{refuses, runs};

    #[test]
    fn fractions_are_raised_to_anything() {
        let x = "weight x 2 2 = -3 0.5 4 nan";
        runs(&[x, "weight e = 2", "y = Pow(x, e)"], "float32 [2, 2] 9 0.25 16 NaN");
        runs(&[x, "weight e i64 = 3", "y = Pow(x, e)"], "float32 [2, 2] -27 0.125 64 NaN");
        runs(&[x, "weight e 2 = 2 -0.5", "y = Pow(x, e)"], "float32 [2, 2] 9 1.4142135 16 NaN");
        runs(&[x, "weight e i32 2 = -1 0", "y = Pow(x, e)"], "float32 [2, 2] -0.33333334 1 0.25 1");
    }

    #[test]
    fn integers_stay_integers() {
        let x = "weight x i32 3 = 2 -3 100000";
        runs(&[x, "weight e i64 = 2", "y = Pow(x, e)"], "int32 [3] 4 9 1410065408");
        runs(&[x, "weight e = 0.5", "y = Pow(x, e)"], "int32 [3] 1 0 316");
        runs(&[x, "weight e i32 3 = -1 3 0", "y = Pow(x, e)"], "int32 [3] 0 -27 1");
    }

    #[test]
    fn narrow_integers_are_not_raised() {
        let lines = ["weight x i8 1 = 2", "y = Pow(x, x)"];
        refuses(&lines, "1 operators have no kernel: 1 x Pow (type int8)");
    }
}
