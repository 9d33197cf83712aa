//! `Gather`, `GatherElements`, `GatherND`: elements by index.
//!
//! ~~~text
//! x [4, 3], indices [2]      Gather: rows            y [2, 3]
//! x [4, 3], indices [2, 3]   GatherElements          y[i, j] = x[indices[i, j], j]
//! x [4, 3], indices [2, 2]   GatherND: tuples        y[i] = x[indices[i, 0], indices[i, 1]]
//! ~~~

use super::index::{Lines, Tuples, place};
use crate::kernels::facts::input_dims;
use crate::kernels::function;
use crate::kernels::strides::{check_rank, count};
use crate::kernels::types::{Made, elements, elements_mut, with_type, with_width};
use bytemuck::Pod;
use lowtide_core::operator::call::axis;
use lowtide_core::operator::{Call, Fact, KernelError, KernelValue, Misfit, Operands};

pub(crate) fn gather(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    let dims = input_dims(call, 0)?;
    let at = axis(call.int_or("axis", 0), dims.len())?;
    let rows = Rows { axis: at, len: dims[at], below: count(&dims[at + 1..]) };
    with_type!(indices: call.dtype(1), I => with_width!(call.dtype(0), E => {
        Ok(function(move |operands| rows.gather::<E, I>(operands)))
    }))
}

/// The axis that indices are places on, and how many elements each place has.
#[derive(Clone, Copy)]
struct Rows {
    axis: usize,
    len: usize,
    below: usize,
}

impl Rows {
    fn gather<E: Pod, I: KernelValue + Into<i64>>(
        self,
        operands: &mut Operands<'_>,
    ) -> Result<(), KernelError> {
        let Self { axis, len, below } = self;
        let from = elements::<E>(operands.input(0)?)?;
        let indices = operands.input(1)?.values::<I>()?;
        let to = elements_mut::<E>(operands, 0)?;
        if to.is_empty() {
            return Ok(());
        }
        if len == 0 {
            return place(indices[0].into(), axis, len).map(|_| ());
        }
        let rows = from.chunks_exact(len * below);
        for (from, to) in rows.zip(to.chunks_exact_mut(indices.len() * below)) {
            if below == 1 {
                for (to, &index) in to.iter_mut().zip(indices) {
                    *to = from[place(index.into(), axis, len)?];
                }
                continue;
            }
            for (to, &index) in to.chunks_exact_mut(below).zip(indices) {
                let start = place(index.into(), axis, len)? * below;
                to.copy_from_slice(&from[start..start + below]);
            }
        }
        Ok(())
    }
}

pub(crate) fn gather_elements(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    let (dims, indices) = (input_dims(call, 0)?, input_dims(call, 1)?);
    check_rank(&dims)?;
    let lines = Lines::new(&dims, &indices, axis(call.int_or("axis", 0), dims.len())?)?;
    with_type!(indices: call.dtype(1), I => with_width!(call.dtype(0), E => {
        Ok(function(move |operands| {
            let from = elements::<E>(operands.input(0)?)?;
            let indices = operands.input(1)?.values::<I>()?;
            let to = elements_mut::<E>(operands, 0)?;
            lines.visit(indices, |at, place| to[at] = from[place])
        }))
    }))
}

pub(crate) fn gather_nd(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    let (dims, indices) = (input_dims(call, 0)?, input_dims(call, 1)?);
    let batch = usize::try_from(call.int_or("batch_dims", 0)).unwrap_or(usize::MAX);
    let Some((&width, outer)) = indices.split_last() else {
        return Err(Misfit("the indices have rank 0".to_owned()).into());
    };
    let tuples = Tuples::new(&dims, batch, width)?;
    if outer.get(..batch) != Some(&dims[..batch]) {
        return Err(Misfit(format!("indices of {indices:?} for batches of {dims:?}")).into());
    }
    let (batches, per_batch) = (count(&dims[..batch]), count(&outer[batch..]));
    with_width!(call.dtype(0), E => Ok(function(move |operands| {
        let from = elements::<E>(operands.input(0)?)?;
        let indices = operands.input(1)?.values::<i64>()?;
        let to = elements_mut::<E>(operands, 0)?;
        if to.is_empty() {
            return Ok(());
        }
        let pitch = from.len() / batches;
        for (at, to) in to.chunks_exact_mut(tuples.below).enumerate() {
            let tuple = &indices[at * tuples.width()..][..tuples.width()];
            let start = at / per_batch * pitch + tuples.place(tuple)?;
            to.copy_from_slice(&from[start..start + tuples.below]);
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{fails, refuses, runs};

    const X: &str = "weight x 2 3 = 1 2 3 4 5 6";

    #[test]
    fn rows_are_gathered_along_an_axis() {
        runs(&[X, "weight i i64 2 = 1 -2", "y = Gather(x, i)"], "float32 [2, 3] 4 5 6 1 2 3");
        let i = "weight i i32 2 2 = 0 2 -1 -1";
        runs(&[X, i, "y = Gather(x, i) {axis=1}"], "float32 [2, 2, 2] 1 3 3 3 4 6 6 6");
        runs(&["weight x u8 2 = 7 8", "weight i i64 = 1", "y = Gather(x, i)"], "uint8 [] 8");
        runs(&[X, "weight i i64 0 =", "y = Gather(x, i)"], "float32 [0, 3] ");
    }

    #[test]
    fn elements_are_gathered_one_by_one() {
        let i = "weight i i64 2 2 = 1 0 0 -1";
        runs(&[X, i, "y = GatherElements(x, i)"], "float32 [2, 2] 4 2 1 5");
        runs(&[X, i, "y = GatherElements(x, i) {axis=1}"], "float32 [2, 2] 2 1 4 6");
    }

    #[test]
    fn tuples_name_elements_or_rows() {
        let lines = [X, "weight i i64 2 2 = 0 0 1 -1", "y = GatherND(x, i)"];
        runs(&lines, "float32 [2] 1 6");
        runs(&[X, "weight i i64 1 1 = 1", "y = GatherND(x, i)"], "float32 [1, 3] 4 5 6");
        let lines = [X, "weight i i64 2 1 = 2 0", "y = GatherND(x, i) {batch_dims=1}"];
        runs(&lines, "float32 [2] 3 4");
    }

    #[test]
    fn an_index_outside_is_an_error() {
        let i = "weight i i64 1 = 2";
        fails(&[X, i, "y = Gather(x, i)"], "index 2 is outside of axis 0, whose length is 2");
        let lines = ["weight x 0 3 =", i, "y = Gather(x, i)"];
        fails(&lines, "index 2 is outside of axis 0, whose length is 0");
        let lines = [X, "weight i i64 1 2 = 0 -4", "y = GatherElements(x, i) {axis=1}"];
        fails(&lines, "index -4 is outside of axis 1, whose length is 3");
        let lines = [X, "weight i i64 1 2 = 0 3", "y = GatherND(x, i)"];
        fails(&lines, "index 3 is outside of axis 1, whose length is 3");
    }

    #[test]
    fn indices_are_integers() {
        let lines = [X, "weight i f64 1 = 0", "y = Gather(x, i)"];
        refuses(&lines, "1 operators have no kernel: 1 x Gather (type float64)");
    }
}
