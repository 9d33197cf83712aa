//! Kernels, by family: what runs an operator, made once for its attributes, types and shapes.
//!
//! ~~~text
//! Call (attributes, types, shapes) ──rule──> Box<dyn Kernel> ──run──> reads inputs, writes outputs
//! ~~~
//! A rule refuses what its kernel cannot do, so that a model is refused when it is loaded and not in the middle of a
//! run. Kernels are safe code over slices of the arena; they allocate nothing when they run.

pub(crate) mod compute;
pub(crate) mod elementwise;
mod facts;
pub(crate) mod layout;
pub(crate) mod normalise;
mod number;
#[cfg(test)]
mod properties;
pub(crate) mod reduce;
mod strides;
#[cfg(test)]
pub(crate) mod testing;
mod types;
mod vectorise;

use lowtide_core::operator::{Call, Fact, Kernel, KernelError, NoKernel, Operands};

/// From a call and what is known of its outputs to what runs it.
pub(crate) type KernelRule = fn(&Call<'_>, &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel>;

/// A kernel that has nothing to remember between runs but what the function holds.
pub(crate) fn function(
    run: impl FnMut(&mut Operands<'_>) -> Result<(), KernelError> + Send + 'static,
) -> Box<dyn Kernel> {
    Box::new(run)
}
