//! `Expand` and `Tile`: elements again and again.
//!
//! ~~~text
//! Expand [2, 1] to [2, 3]     a a a b b b         an axis with a step of 0
//! Tile [2] 3 times            a b a b a b         an axis with a step of 0 around the tensor's own
//! ~~~

use super::copy::copy;
use super::lists::{Numbers, check};
use super::slice::check_dims;
use crate::kernels::facts::{input_dims, output_dims, unsupported};
use crate::kernels::function;
use crate::kernels::strides::{Walk, check_rank, strides};
use crate::kernels::types::{Made, elements, elements_mut, with_width};
use lowtide_core::operator::{Call, Fact, KernelError, NoKernel};

pub(crate) fn expand(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let (dims, to) = (input_dims(call, 0)?, output_dims(outputs, 0)?);
    check_rank(&to)?;
    let misfit = || NoKernel::Misfit(format!("{dims:?} cannot become {to:?}"));
    let walk = Walk::broadcast(&dims, &to).ok_or_else(misfit)?;
    let shape = Numbers::new(call, "shape", 1)?;
    with_width!(call.dtype(0), E => Ok(function(move |operands| {
        let wanted = shape.get(operands, "the new shape")?;
        check_expanded(&dims, &wanted, &to)?;
        copy(&walk, elements::<E>(operands.input(0)?)?, elements_mut::<E>(operands, 0)?);
        Ok(())
    })))
}

/// That a shape, broadcast to the one that is wanted, is the one that was planned.
fn check_expanded(dims: &[usize], wanted: &[i64], planned: &[usize]) -> Result<(), KernelError> {
    let rank = dims.len().max(wanted.len());
    let from_right = |at: usize, len: usize| (at + len).checked_sub(rank);
    let fits = |(at, &planned): (usize, &usize)| {
        let own = from_right(at, dims.len()).map_or(1, |at| dims[at]);
        let wanted = from_right(at, wanted.len()).map_or(1, |at| wanted[at]);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        planned == if own == 1 { wanted } else { own } && (wanted == planned || wanted == 1)
    };
    if rank == planned.len() && planned.iter().enumerate().all(fits) {
        return Ok(());
    }
    Err(KernelError::Value(format!("{dims:?} expanded to {wanted:?}, wanted {planned:?}")))
}

pub(crate) fn tile(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    if call.opset < 6 {
        return unsupported("one axis, as before version 6");
    }
    let dims = input_dims(call, 0)?;
    check_rank(&dims)?;
    let (strides, repeats) = (strides(&dims), Numbers::new(call, "repeats", 1)?);
    with_width!(call.dtype(0), E => Ok(function(move |operands| {
        let repeats = repeats.get(operands, "repeats")?;
        check("how many repeats there are", &repeats.len(), &dims.len())?;
        let times = repeats.iter().map(|&times| usize::try_from(times).unwrap_or(usize::MAX));
        let grown = dims.iter().zip(times.clone()).map(|(len, times)| len.saturating_mul(times));
        check_dims(grown, operands.output(0)?.dims)?;
        let mut walk = Walk::at(0);
        for ((&len, times), stride) in dims.iter().zip(times).zip(&strides) {
            walk.push(times, 0);
            walk.push(len, stride.cast_signed());
        }
        copy(&walk, elements::<E>(operands.input(0)?)?, elements_mut::<E>(operands, 0)?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{fails, runs};

    #[test]
    fn axes_of_length_1_are_expanded() {
        let x = "weight x 2 1 = 1 2";
        runs(&[x, "weight s i64 2 = 1 3", "y = Expand(x, s)"], "float32 [2, 3] 1 1 1 2 2 2");
        runs(
            &[x, "weight s i64 3 = 2 1 2", "y = Expand(x, s)"],
            "float32 [2, 2, 2] 1 1 2 2 1 1 2 2",
        );
        runs(&["weight x u8 = 7", "weight s i64 1 = 3", "y = Expand(x, s)"], "uint8 [3] 7 7 7");
        runs(&["weight x u8 1 = 7", "weight s i64 1 = 0", "y = Expand(x, s)"], "uint8 [0] ");
    }

    #[test]
    fn tensors_are_laid_side_by_side() {
        let x = "weight x 2 2 = 1 2 3 4";
        let of = |repeats: &str, wanted: &str| {
            let repeats = format!("weight r i64 2 = {repeats}");
            runs(&[x, &repeats, "y = Tile(x, r)"], &format!("float32 {wanted}"));
        };
        of("1 2", "[2, 4] 1 2 1 2 3 4 3 4");
        of("2 1", "[4, 2] 1 2 3 4 1 2 3 4");
        of("2 3", "[4, 6] 1 2 1 2 1 2 3 4 3 4 3 4 1 2 1 2 1 2 3 4 3 4 3 4");
        of("0 1", "[0, 2] ");
    }

    #[test]
    fn shapes_that_were_not_planned_are_errors() {
        // Inference does not follow the bits of -3 to 2.
        let (x, s) = (["weight x 2 1 = 1 2", "weight t i64 2 = -2 -3"], "s = BitwiseNot(t)");
        let lines = [x[0], x[1], s, "y 2 3 = Expand(x, s)"];
        fails(&lines, "[2, 1] expanded to [1, 2], wanted [2, 3]");
        let lines = [x[0], x[1], s, "y 2 3 = Tile(x, s)"];
        fails(&lines, "the shape of the result: [2, 2], wanted [2, 3]");
    }
}
