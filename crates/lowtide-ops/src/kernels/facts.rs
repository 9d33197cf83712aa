//! What kernel rules read off facts: shapes in numbers.
//!
//! ~~~text
//! Fact { dims: [1, 3, 8, 8], .. } ──dims──> [1, 3, 8, 8]      all sizes are known when kernels are made
//! ~~~

use lowtide_core::operator::{Call, Fact, NoKernel};

/// The shape of a tensor.
pub(crate) fn dims(fact: &Fact) -> Result<Vec<usize>, NoKernel> {
    let known = fact.known_dims();
    let dims = known.and_then(|dims| dims.iter().map(|&dim| usize::try_from(dim).ok()).collect());
    dims.ok_or_else(|| NoKernel::Unsupported("shapes that are not known".to_owned()))
}

/// The shape of input `at`.
pub(crate) fn input_dims(call: &Call<'_>, at: usize) -> Result<Vec<usize>, NoKernel> {
    if !call.has(at) {
        return Err(NoKernel::Misfit(format!("input {at} is absent")));
    }
    dims(call.input(at))
}

/// The shape of output `at`.
pub(crate) fn output_dims(outputs: &[Option<&Fact>], at: usize) -> Result<Vec<usize>, NoKernel> {
    let output = outputs.get(at).copied().flatten();
    dims(output.ok_or_else(|| NoKernel::Unsupported(format!("a missing output {at}")))?)
}

/// That an operator has no kernel for something.
pub(crate) fn unsupported<T>(what: impl Into<String>) -> Result<T, NoKernel> {
    Err(NoKernel::Unsupported(what.into()))
}

/// That input `at`, if it is there, has the type of input 0.
pub(crate) fn same_type(call: &Call<'_>, at: usize) -> Result<(), NoKernel> {
    if !call.has(at) || call.dtype(at) == call.dtype(0) {
        return Ok(());
    }
    unsupported("inputs of different types")
}
