//! `Compress`: what a condition lets through.
//!
//! ~~~text
//! x a b c d   condition 0 1 1     b c      as many as were planned, or counted in the run
//! ~~~

use super::concat::width;
use super::lists::check;
use crate::kernels::facts::{input_dims, output_dims};
use crate::kernels::function;
use crate::kernels::strides;
use crate::kernels::types::Made;
use lowtide_core::operator::call::axis;
use lowtide_core::operator::{Call, Dims, Fact, Input, Misfit};

/// How many pass in this run.
pub(crate) fn count(call: &Call<'_>, inputs: &[Option<Input<'_>>]) -> Dims {
    let (Some(Some(input)), Some(Some(condition))) = (inputs.first(), inputs.get(1)) else {
        return Err(Misfit("an input is absent".to_owned()));
    };
    let condition = condition.values::<u8>().map_err(|error| Misfit(error.to_string()))?;
    let passing = |len: usize| condition.iter().take(len).filter(|&&one| one != 0).count();
    let Some(at) = call.int("axis") else {
        return Ok(vec![vec![passing(input.len())]]);
    };
    let mut dims = input.dims.to_vec();
    let at = axis(at, dims.len())?;
    dims[at] = passing(dims[at]);
    Ok(vec![dims])
}

pub(crate) fn compress(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let (dims, planned) = (input_dims(call, 0)?, output_dims(outputs, 0)?);
    let width = width(call.dtype(0))?;
    // Without an axis, the tensor is a list.
    let (len, below, kept) = match call.int("axis") {
        None => (strides::count(&dims), width, planned[0]),
        Some(at) => {
            let at = axis(at, dims.len())?;
            (dims[at], width.saturating_mul(strides::count(&dims[at + 1..])), planned[at])
        }
    };
    Ok(function(move |operands| {
        let from = operands.input(0)?.bytes()?;
        let condition = operands.input(1)?.values::<u8>()?;
        let passing = || (0..len.min(condition.len())).filter(|&at| condition[at] != 0);
        check("how many pass", &passing().count(), &kept)?;
        let to = &mut *operands.output(0)?.bytes;
        if to.is_empty() {
            return Ok(());
        }
        for (from, to) in from.chunks_exact(len * below).zip(to.chunks_exact_mut(kept * below)) {
            for (at, to) in passing().zip(to.chunks_exact_mut(below)) {
                to.copy_from_slice(&from[at * below..(at + 1) * below]);
            }
        }
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{fails, runs};

    const LINES: [&str; 2] = ["weight x 2 3 = 1 2 3 4 5 6", "weight c bool 3 = 0 1 1"];

    #[test]
    fn what_passes_stands_side_by_side() {
        runs(&[LINES[0], LINES[1], "y 2 2 = Compress(x, c) {axis=1}"], "float32 [2, 2] 2 3 5 6");
        runs(&[LINES[0], LINES[1], "y 1 3 = Compress(x, c) {axis=0}"], "float32 [1, 3] 4 5 6");
        runs(&[LINES[0], LINES[1], "y 2 = Compress(x, c)"], "float32 [2] 2 3");
    }

    #[test]
    fn as_many_pass_as_were_planned() {
        let lines = [LINES[0], LINES[1], "y 3 = Compress(x, c)"];
        fails(&lines, "how many pass: 2, wanted 3");
    }
}
