//! `Scatter`, `ScatterElements`, `ScatterND`: data with some elements replaced, or added to.
//!
//! ~~~text
//! data [4, 3]   ScatterElements, axis 0     y[indices[i, j], j] = updates[i, j]
//!               ScatterND                   y[indices[i, 0], indices[i, 1]] = updates[i]
//! ~~~
//! Where the output lies on the data, only what is replaced is written. Several updates of one element come in order.

use super::copy::copy_data;
use super::index::{Lines, Tuples};
use crate::kernels::elementwise::numeric::Numeric;
use crate::kernels::facts::{input_dims, unsupported};
use crate::kernels::function;
use crate::kernels::strides::{check_rank, copy_run, count};
use crate::kernels::types::{Made, elements, elements_mut, with_type, with_width};
use bytemuck::Pod;
use lowtide_core::operator::call::axis;
use lowtide_core::operator::{Call, Fact, Misfit, NoKernel};

/// Puts updates to as many elements.
type Put<E> = fn(&mut [E], &[E]);

/// How updates are combined with what is there.
fn reduction<T: Numeric>(name: &str) -> Result<Put<T>, NoKernel> {
    #[inline]
    fn each<T: Copy>(to: &mut [T], from: &[T], f: impl Fn(T, T) -> T) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = f(*to, *from));
    }
    match name {
        "add" => Ok(|to, from| each(to, from, T::plus)),
        "mul" => Ok(|to, from| each(to, from, T::times)),
        "max" => Ok(|to, from| each(to, from, T::larger)),
        "min" => Ok(|to, from| each(to, from, T::smaller)),
        other => unsupported(format!("the reduction {other}")),
    }
}

/// `ScatterElements`, and `Scatter`, as it was called before version 11.
pub(crate) fn scatter_elements(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    let (dims, indices) = (input_dims(call, 0)?, input_dims(call, 1)?);
    check_rank(&dims)?;
    check_updates(call, &indices)?;
    let lines = Lines::new(&dims, &indices, axis(call.int_or("axis", 0), dims.len())?)?;
    match call.text("reduction") {
        None | Some("none") => with_width!(call.dtype(0), E => {
            along::<E>(call, lines, |to, from| copy_run(from, to))
        }),
        Some(name) => with_type!(numbers: call.dtype(0), T => {
            along::<T>(call, lines, reduction(name)?)
        }),
    }
}

fn check_updates(call: &Call<'_>, wanted: &[usize]) -> Result<(), NoKernel> {
    let found = input_dims(call, 2)?;
    if found == wanted && call.dtype(2) == call.dtype(0) {
        return Ok(());
    }
    Err(Misfit(format!("updates of shape {found:?}, wanted {wanted:?}, of the type of the data"))
        .into())
}

fn along<E: Pod>(call: &Call<'_>, lines: Lines, put: Put<E>) -> Made {
    with_type!(indices: call.dtype(1), I => Ok(function(move |operands| {
        copy_data::<E>(operands)?;
        let indices = operands.input(1)?.values::<I>()?;
        let updates = elements::<E>(operands.input(2)?)?;
        let y = elements_mut::<E>(operands, 0)?;
        lines.visit(indices, |at, place| put(&mut y[place..=place], &updates[at..=at]))
    })))
}

pub(crate) fn scatter_nd(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    let (dims, indices) = (input_dims(call, 0)?, input_dims(call, 1)?);
    let Some((&width, outer)) = indices.split_last() else {
        return Err(Misfit("the indices have rank 0".to_owned()).into());
    };
    let tuples = Tuples::new(&dims, 0, width)?;
    check_updates(call, &[outer, &dims[width..]].concat())?;
    let count = count(outer);
    match call.text("reduction") {
        None | Some("none") => with_width!(call.dtype(0), E => {
            at_tuples::<E>(tuples, count, <[E]>::copy_from_slice)
        }),
        Some(name) => with_type!(numbers: call.dtype(0), T => {
            at_tuples::<T>(tuples, count, reduction(name)?)
        }),
    }
}

fn at_tuples<E: Pod>(tuples: Tuples, count: usize, put: Put<E>) -> Made {
    Ok(function(move |operands| {
        copy_data::<E>(operands)?;
        let indices = operands.input(1)?.values::<i64>()?;
        let updates = elements::<E>(operands.input(2)?)?;
        let y = elements_mut::<E>(operands, 0)?;
        for at in 0..count {
            let tuple = &indices[at * tuples.width()..][..tuples.width()];
            let start = tuples.place(tuple)?;
            let update = &updates[at * tuples.below..][..tuples.below];
            put(&mut y[start..start + tuples.below], update);
        }
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{fails, refuses, runs};

    const X: &str = "weight x 2 3 = 1 2 3 4 5 6";

    #[test]
    fn elements_are_replaced_along_an_axis() {
        let lines = [X, "weight i i64 1 2 = 1 -2", "weight u 1 2 = 10 20"];
        let of = |call: &str, wanted: &str| {
            runs(&[&lines[..], &[call]].concat(), &format!("float32 [2, 3] {wanted}"));
        };
        of("y = ScatterElements(x, i, u)", "1 20 3 10 5 6");
        of("y = ScatterElements(x, i, u) {axis=1}", "1 20 3 4 5 6");
        of("y = Scatter(x, i, u) {axis=1}", "1 20 3 4 5 6");
        of("y = ScatterElements(x, i, u) {axis=1, reduction=add}", "1 32 3 4 5 6");
    }

    #[test]
    fn rows_are_replaced_by_tuples() {
        let lines = [X, "weight i i64 2 1 = 1 1", "weight u 2 3 = 0 9 5 8 1 7"];
        let of = |call: &str, wanted: &str| {
            runs(&[&lines[..], &[call]].concat(), &format!("float32 [2, 3] {wanted}"));
        };
        of("y = ScatterND(x, i, u)", "1 2 3 8 1 7");
        of("y = ScatterND(x, i, u) {reduction=add}", "1 2 3 12 15 18");
        of("y = ScatterND(x, i, u) {reduction=mul}", "1 2 3 0 45 210");
        of("y = ScatterND(x, i, u) {reduction=max}", "1 2 3 8 9 7");
        of("y = ScatterND(x, i, u) {reduction=min}", "1 2 3 0 1 5");
        let lines = ["weight x f16 2 = 1 2", "weight i i64 1 1 = 0", "weight u f16 1 = 7"];
        runs(&[&lines[..], &["y = ScatterND(x, i, u)"]].concat(), "float16 [2] 7 2");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let lines = [X, "weight i i64 1 = 2", "weight u 1 3 = 1 2 3", "y = ScatterND(x, i, u)"];
        let i = "weight i i64 1 1 = 2";
        let found = [lines[0], i, lines[2], lines[3]];
        fails(&found, "index 2 is outside of axis 0, whose length is 2");
        let lines = ["weight x bool 1 = 1", "weight i i64 1 = 0", "weight u bool 1 = 1"];
        let call = "y = ScatterElements(x, i, u) {reduction=add}";
        let wanted = "1 operators have no kernel: 1 x ScatterElements (type bool)";
        refuses(&[&lines[..], &[call]].concat(), wanted);
    }
}
