//! `CumSum` and `CumProd`: each element with all before it on its line.
//!
//! ~~~text
//! 1 2 3 ──> 1 3 6      exclusive: 0 1 3      reverse: 6 5 3
//! ~~~

use super::lines::Lines;
use crate::kernels::facts::input_dims;
use crate::kernels::function;
use crate::kernels::number::{Number, by_type};
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact, Kernel, KernelError, NoKernel, Operands, call};

pub(crate) fn cum_sum(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    let scan = Scan::read(call)?;
    by_type!(call.dtype(0), [F32: f32, F64: f64, I32: i32, I64: i64, U32: u32, U64: u64], sums(scan))
}

pub(crate) fn cum_prod(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    let scan = Scan::read(call)?;
    by_type!(call.dtype(0), [F32: f32, F64: f64, I32: i32, I64: i64, U32: u32, U64: u64], products(scan))
}

fn sums<T: Number>(scan: Scan) -> Box<dyn Kernel> {
    function(move |operands| scan.run(operands, Chain { empty: T::ZERO, link: T::plus }))
}

fn products<T: Number>(scan: Scan) -> Box<dyn Kernel> {
    function(move |operands| scan.run(operands, Chain { empty: T::ONE, link: T::times }))
}

/// How elements are linked.
#[derive(Clone, Copy)]
struct Chain<T> {
    empty: T,
    link: fn(T, T) -> T,
}

struct Scan {
    is_exclusive: bool,
    is_reverse: bool,
}

impl Scan {
    fn read(call: &Call<'_>) -> Result<Self, NoKernel> {
        input_dims(call, 0)?;
        Ok(Self { is_exclusive: call.flag("exclusive"), is_reverse: call.flag("reverse") })
    }

    fn run<T: Number>(
        &self,
        operands: &mut Operands<'_>,
        chain: Chain<T>,
    ) -> Result<(), KernelError> {
        let x = operands.input(0)?;
        let axis = call::axis(axis(operands)?, x.dims.len());
        let lines = Lines::of(x.dims, axis.map_err(|misfit| KernelError::Value(misfit.0))?);
        let x = x.values::<T>()?;
        let out = operands.values_mut::<T>(0)?;
        if x.is_empty() {
            return Ok(());
        }
        let slabs = x.chunks_exact(lines.slab()).zip(out.chunks_exact_mut(lines.slab()));
        for (x, out) in slabs {
            self.slab(&lines, x, out, chain);
        }
        Ok(())
    }

    /// Goes along all lines of a slab at once: each row is the row before it and more.
    fn slab<T: Number>(&self, lines: &Lines, x: &[T], out: &mut [T], chain: Chain<T>) {
        let Chain { empty, link } = chain;
        let inner = lines.inner;
        for step in 0..lines.along {
            let forth = |step: usize| if self.is_reverse { lines.along - 1 - step } else { step };
            for col in 0..inner {
                let at = |step: usize| forth(step) * inner + col;
                let before = if step == 0 { empty } else { out[at(step - 1)] };
                out[at(step)] = match (self.is_exclusive, step) {
                    (true, 0) => empty,
                    (true, _) => link(before, x[at(step - 1)]),
                    (false, _) => link(before, x[at(step)]),
                };
            }
        }
    }
}

/// The axis, which is an input.
fn axis(operands: &Operands<'_>) -> Result<i64, KernelError> {
    let input = operands.input(1)?;
    let only = |count| KernelError::Value(format!("the axis has {count} elements, wanted 1"));
    if input.dtype == DType::I32 {
        let values = input.values::<i32>()?;
        return values.first().map(|&axis| axis.into()).ok_or_else(|| only(values.len()));
    }
    let values = input.values::<i64>()?;
    values.first().copied().ok_or_else(|| only(values.len()))
}
