//! [`Lines`]: the lines of a tensor along one axis.
//!
//! ~~~text
//! [outer, along, inner]     line (o, i): elements o*along*inner + i, then every inner-th
//! ~~~

use crate::kernels::facts::input_dims;
use lowtide_core::operator::{Call, NoKernel, call};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    pub(crate) outer: usize,
    pub(crate) along: usize,
    pub(crate) inner: usize,
}

impl Lines {
    pub(crate) fn of(dims: &[usize], axis: usize) -> Self {
        let product = |dims: &[usize]| dims.iter().product();
        Self { outer: product(&dims[..axis]), along: dims[axis], inner: product(&dims[axis + 1..]) }
    }

    /// Along the axis that an attribute names.
    pub(crate) fn read(call: &Call<'_>, default: i64) -> Result<Self, NoKernel> {
        let dims = input_dims(call, 0)?;
        let axis = call::axis(call.int_or("axis", default), dims.len())?;
        Ok(Self::of(&dims, axis))
    }

    /// Elements of all lines with one outer index.
    pub(crate) fn slab(&self) -> usize {
        self.along * self.inner
    }
}
