//! `Transpose`: axes in another order.
//!
//! ~~~text
//! x [2, 8, 8, 3], perm [0, 3, 1, 2]     y [2, 3, 8, 8]: 64 rows of 3 are turned, twice
//! ~~~
//! Axes that stay side by side are one; what is left is a copy of long runs, or the turning of matrices, see `copy`.

use super::copy::copy;
use crate::kernels::facts::input_dims;
use crate::kernels::function;
use crate::kernels::strides::{Walk, check_rank, strides};
use crate::kernels::types::{Made, elements, elements_mut, with_width};
use lowtide_core::operator::call::axis;
use lowtide_core::operator::{Call, Fact, Misfit};

pub(crate) fn transpose(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    let dims = input_dims(call, 0)?;
    check_rank(&dims)?;
    let order: Vec<usize> = match call.ints("perm") {
        Some(list) => list.iter().map(|&at| axis(at, dims.len())).collect::<Result<_, _>>()?,
        None => (0..dims.len()).rev().collect(),
    };
    let walk = permuted(&dims, &order)?;
    with_width!(call.dtype(0), E => Ok(function(move |operands| {
        let from = elements::<E>(operands.input(0)?)?;
        copy(&walk, from, elements_mut::<E>(operands, 0)?);
        Ok(())
    })))
}

/// A walk through a tensor of this shape whose axes are visited in another order.
pub(super) fn permuted(dims: &[usize], order: &[usize]) -> Result<Walk, Misfit> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..dims.len()) {
        return Err(Misfit(format!("{order:?} does not order {} axes", dims.len())));
    }
    let strides = strides(dims);
    let mut walk = Walk::at(0);
    for &at in order {
        walk.push(dims[at], strides[at].cast_signed());
    }
    Ok(walk)
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{refuses, runs};

    #[test]
    fn axes_change_places() {
        runs(&["weight x 2 3 = 1 2 3 4 5 6", "y = Transpose(x)"], "float32 [3, 2] 1 4 2 5 3 6");
        let x = "weight x i8 2 1 3 2 = 1 2 3 4 5 6 7 8 9 10 11 12";
        let lines = [x, "y = Transpose(x) {perm=[0, 3, 2, 1]}"];
        runs(&lines, "int8 [2, 2, 3, 1] 1 3 5 2 4 6 7 9 11 8 10 12");
        runs(&["weight x f16 1 2 = 1 2", "y = Transpose(x)"], "float16 [2, 1] 1 2");
        runs(&["weight x = 5", "y = Transpose(x)"], "float32 [] 5");
        runs(&["weight x 0 2 =", "y = Transpose(x)"], "float32 [2, 0] ");
    }

    #[test]
    fn packed_elements_are_not_moved() {
        let lines = ["weight x u4 1 2", "y = Transpose(x)"];
        refuses(&lines, "1 operators have no kernel: 1 x Transpose (type uint4)");
    }
}
