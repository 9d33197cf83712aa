//! `Concat`: tensors one behind the other along an axis.
//!
//! ~~~text
//! a [2, 3] ──┐   axis 1    a a a b b        row by row: the part of each input, then the next row
//! b [2, 2] ──┴──>          a a a b b
//! ~~~
//! An input that lies in the output already is left where it is, if that is where it belongs.

use super::lists::check;
use crate::kernels::facts::{input_dims, output_dims, same_type};
use crate::kernels::function;
use crate::kernels::number::no_kernel_for;
use crate::kernels::strides::{copy_run, count};
use crate::kernels::types::Made;
use lowtide_core::DType;
use lowtide_core::operator::call::axis;
use lowtide_core::operator::{Call, Fact, KernelError, NoKernel, Operands, Place};

/// The bytes of an element.
pub(super) fn width(dtype: Option<DType>) -> Result<usize, NoKernel> {
    let bits = dtype.and_then(DType::bits).filter(|bits| bits % 8 == 0);
    let bytes = bits.and_then(|bits| usize::try_from(bits / 8).ok());
    bytes.ok_or_else(|| no_kernel_for(dtype))
}

pub(crate) fn concat(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let dims = output_dims(outputs, 0)?;
    // Before version 4 the axis had a default.
    let at = axis(call.int_or("axis", 1), dims.len())?;
    let width = width(call.dtype(0))?;
    let below = width.saturating_mul(count(&dims[at + 1..]));
    let mut parts = Vec::new();
    for input in 0..call.inputs.len() {
        same_type(call, input)?;
        parts.push(input_dims(call, input)?[at].saturating_mul(below));
    }
    let rows = count(&dims[..at]);
    let row = dims[at].saturating_mul(below);
    Ok(function(move |operands| {
        let mut start = 0_usize;
        for (at, &part) in parts.iter().enumerate() {
            let end = start.saturating_add(part);
            copy_part(operands, at, start..end, (rows, row))?;
            start = end;
        }
        Ok(())
    }))
}

/// Copies an input to these bytes of each row.
fn copy_part(
    operands: &mut Operands<'_>,
    at: usize,
    part: std::ops::Range<usize>,
    (rows, row): (usize, usize),
) -> Result<(), KernelError> {
    let input = operands.input(at)?;
    let is_in_place = rows == 1 || part.len() == row;
    match input.place {
        _ if part.is_empty() || rows == 0 => Ok(()),
        Place::In { output: 0, offset } if is_in_place && offset == part.start => Ok(()),
        _ => {
            let (from, to) = (input.bytes()?, &mut *operands.output(0)?.bytes);
            check("bytes", &(from.len(), to.len()), &(rows * part.len(), rows * row))?;
            for (from, to) in from.chunks_exact(part.len()).zip(to.chunks_exact_mut(row)) {
                copy_run(from, &mut to[part.clone()]);
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{refuses, runs};
    use lowtide_core::operator::{Input, Output};

    #[test]
    fn tensors_stand_one_behind_the_other() {
        let lines = ["weight a 2 1 = 1 2", "weight b 2 2 = 3 4 5 6", "weight c 2 0 ="];
        let of = |call: &str, wanted: &str| {
            runs(&[&lines[..], &[call]].concat(), &format!("float32 {wanted}"));
        };
        of("y = Concat(a, c, b) {axis=1}", "[2, 3] 1 3 4 2 5 6");
        of("y = Concat(b, a, b) {axis=-1}", "[2, 5] 3 4 1 3 4 5 6 2 5 6");
        of("y = Concat(b, b) {axis=0}", "[4, 2] 3 4 5 6 3 4 5 6");
        of("y = Concat(c) {axis=1}", "[2, 0] ");
        runs(&["weight a bf16 1 = 7", "y = Concat(a, a) {axis=0}"], "bfloat16 [2] 7 7");
    }

    #[test]
    fn inputs_have_one_type() {
        let lines = ["weight a 1 = 1", "weight b f64 1 = 1", "y = Concat(a, b) {axis=0}"];
        refuses(&lines, "1 operators have no kernel: 1 x Concat (inputs of different types)");
    }

    /// Puts 3 bytes at `start` of an output of 5 where they lie at `offset` already.
    fn put(start: usize, offset: usize) -> Result<[u8; 5], KernelError> {
        let mut bytes = [1, 2, 3, 4, 5];
        let place = Place::In { output: 0, offset };
        let input = Input { at: 0, dtype: DType::U8, dims: &[3], place };
        let output = Output { at: 0, dtype: DType::U8, dims: &[5], bytes: &mut bytes };
        let (inputs, outputs) = (vec![Some(input)], vec![Some(output)]);
        let mut operands = Operands { inputs, outputs, scratch: &mut [] };
        copy_part(&mut operands, 0, start..start + 3, (1, 5)).map(|()| bytes)
    }

    #[test]
    fn what_lies_where_it_belongs_stays() {
        assert_eq!(put(2, 2), Ok([1, 2, 3, 4, 5]));
        let message = "input 0 lies in an output, which this kernel cannot do";
        assert_eq!(put(1, 2).unwrap_err().to_string(), message);
    }
}
