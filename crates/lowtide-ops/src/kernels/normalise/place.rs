//! [`each_part`]: parts of the input copied to where the output has them, one at a time, and worked on there.
//!
//! ~~~text
//! apart      x [a a a|b b b] ──copy a──> y [a a a| ? ] ──work──> [A A A| ? ] ──copy b──> ..
//! in place                               y [a a a|b b b] ──work──> [A A A|b b b] ..
//! ~~~

use lowtide_core::operator::{KernelError, KernelValue, Operands};

/// Calls a function for each `len` elements of output 0, which hold what input 0 holds there.
pub(crate) fn each_part<T: KernelValue>(
    operands: &mut Operands<'_>,
    len: usize,
    mut work: impl FnMut(usize, &mut [T]),
) -> Result<(), KernelError> {
    let x = operands.input(0)?;
    x.check::<T>()?;
    let x = if x.is_in(0) { None } else { Some(x.values::<T>()?) };
    let out = operands.values_mut::<T>(0)?;
    if len == 0 || out.is_empty() {
        return Ok(());
    }
    for (at, out) in out.chunks_exact_mut(len).enumerate() {
        if let Some(x) = x {
            out.copy_from_slice(&x[at * len..][..len]);
        }
        work(at, out);
    }
    Ok(())
}
