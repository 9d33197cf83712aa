//! Kernels that move elements, or make them, but calculate nothing with them.
//!
//! ~~~text
//! x [2, 3] ─ Transpose ─ y [3, 2]     a walk through x in the order of y ──copy──> y
//! indices  ─ Gather                   where elements are depends on data; checked, one by one
//! ~~~
//! Elements are bytes here, as many as their type is wide; only types whose elements share a byte are left out. Shapes,
//! axes, pads and the like are read when the kernel runs, as a model may calculate them, and must give the shape that
//! was planned.

#![expect(clippy::unnecessary_wraps, reason = "what makes a kernel has the signature of a rule")]

pub(crate) mod blocks;
pub(crate) mod compress;
pub(crate) mod concat;
pub(crate) mod copy;
pub(crate) mod gather;
mod index;
mod lists;
pub(crate) mod make;
pub(crate) mod non_zero;
pub(crate) mod one_hot;
pub(crate) mod pad;
#[cfg(test)]
mod properties;
pub(crate) mod repeat;
pub(crate) mod reverse;
pub(crate) mod scatter;
pub(crate) mod slice;
pub(crate) mod split;
pub(crate) mod transpose;
pub(crate) mod view;
