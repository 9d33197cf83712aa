//! `LpNormalization`: lines as vectors of length 1.
//!
//! ~~~text
//! 3 4 ──p = 2──> 0.6 0.8      3 1 ──p = 1──> 0.75 0.25      0 0 ──> NaN NaN
//! ~~~
//! A vector without length has no direction; ONNX Runtime gives 0 0 there, the conformance suite wants what a division gives.

use super::place::each_part;
use crate::kernels::facts::unsupported;
use crate::kernels::function;
use crate::kernels::number::{Real, by_type};
use crate::kernels::reduce::Lines;
use lowtide_core::operator::{Call, Fact, Kernel, NoKernel};

pub(crate) fn lp(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    let lines = Lines::read(call, -1)?;
    let p = call.int_or("p", 2);
    if p != 1 && p != 2 {
        return unsupported(format!("p = {p}"));
    }
    by_type!(call.dtype(0), [F32: f32, F64: f64], of(lines, p))
}

fn of<T: Real>(lines: Lines, p: i64) -> Box<dyn Kernel> {
    function(move |operands| {
        each_part::<T>(operands, lines.slab(), |_, slab| {
            for col in 0..lines.inner {
                let line = slab.iter().skip(col).step_by(lines.inner);
                let length = T::of_f64(length(line.map(|x| x.to_f64()), p));
                for x in slab.iter_mut().skip(col).step_by(lines.inner) {
                    *x = *x / length;
                }
            }
        })
    })
}

fn length(line: impl Iterator<Item = f64>, p: i64) -> f64 {
    if p == 1 { line.map(f64::abs).sum() } else { line.map(|x| x * x).sum::<f64>().sqrt() }
}
