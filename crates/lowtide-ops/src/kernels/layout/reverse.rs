//! `ReverseSequence`: the beginning of each sequence of a batch turned around.
//!
//! ~~~text
//! lengths 3, 2     a b c d ──> c b a d
//!                  e f g h ──> f e g h
//! ~~~

use super::lists::check;
use crate::kernels::facts::input_dims;
use crate::kernels::function;
use crate::kernels::strides::count;
use crate::kernels::types::{Made, elements, elements_mut, with_width};
use bytemuck::Pod;
use lowtide_core::operator::{Call, Fact, KernelError, Misfit, Operands};

pub(crate) fn reverse_sequence(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    let dims = input_dims(call, 0)?;
    let (batch, time) = (call.int_or("batch_axis", 1), call.int_or("time_axis", 0));
    let ([outer, inner, rest @ ..], (0, 1) | (1, 0)) = (&dims[..], (batch, time)) else {
        let message = format!("batches along axis {batch} and times along {time} of {dims:?}");
        return Err(Misfit(message).into());
    };
    let block =
        Block { outer: *outer, inner: *inner, below: count(rest), is_time_outer: time == 0 };
    with_width!(call.dtype(0), E => {
        Ok(function(move |operands| block.reverse::<E>(operands)))
    })
}

/// The first two axes, and how many elements each of their places has.
#[derive(Clone, Copy)]
struct Block {
    outer: usize,
    inner: usize,
    below: usize,
    is_time_outer: bool,
}

impl Block {
    fn reverse<E: Pod>(self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let Self { outer, inner, below, is_time_outer } = self;
        let (times, batches) = if is_time_outer { (outer, inner) } else { (inner, outer) };
        let from = elements::<E>(operands.input(0)?)?;
        let lengths = operands.input(1)?.values::<i64>()?;
        check("how many lengths there are", &lengths.len(), &batches)?;
        let to = elements_mut::<E>(operands, 0)?;
        for (at, to) in to.chunks_exact_mut(below.max(1)).enumerate() {
            let (row, column) = (at / inner, at % inner);
            let (time, batch) = if is_time_outer { (row, column) } else { (column, row) };
            let time = turned(time, lengths[batch], times)?;
            let (row, column) = if is_time_outer { (time, batch) } else { (batch, time) };
            let start = (row * inner + column) * below;
            to.copy_from_slice(&from[start..start + below]);
        }
        Ok(())
    }
}

/// The time that comes to this one.
fn turned(time: usize, length: i64, times: usize) -> Result<usize, KernelError> {
    let within = usize::try_from(length).ok().filter(|&length| length <= times);
    let length = within.ok_or_else(|| {
        KernelError::Value(format!("a sequence of length {length}, where there are {times} times"))
    })?;
    Ok(if time < length { length - 1 - time } else { time })
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{fails, runs};

    const LENGTHS: &str = "weight l i64 2 = 3 2";

    #[test]
    fn the_beginning_of_each_sequence_is_turned() {
        let lines = ["weight x 2 4 = 1 2 3 4 5 6 7 8", LENGTHS];
        let call = "y = ReverseSequence(x, l) {batch_axis=0, time_axis=1}";
        runs(&[&lines[..], &[call]].concat(), "float32 [2, 4] 3 2 1 4 6 5 7 8");
        let lines = ["weight x i8 3 2 1 = 1 2 3 4 5 6", LENGTHS, "y = ReverseSequence(x, l)"];
        runs(&lines, "int8 [3, 2, 1] 5 4 3 2 1 6");
    }

    #[test]
    fn a_sequence_is_no_longer_than_there_are_times() {
        let lines = ["weight x 2 2 = 1 2 3 4", LENGTHS, "y = ReverseSequence(x, l)"];
        fails(&lines, "a sequence of length 3, where there are 2 times");
    }
}
