//! `Split`: parts of a tensor along an axis.
//!
//! ~~~text
//! x [2, 5]   axis 1, parts of 3 and 2     a [2, 3], b [2, 2]
//! ~~~

use super::concat::width;
use super::lists::check;
use crate::kernels::facts::input_dims;
use crate::kernels::function;
use crate::kernels::strides::{copy_run, count};
use crate::kernels::types::Made;
use lowtide_core::operator::call::axis;
use lowtide_core::operator::{Call, Fact, KernelError, Operands};

/// How long the parts are.
enum Sizes {
    /// An attribute, or equal parts of which the last one may be smaller.
    Known(Vec<i64>),
    /// The elements of input 1.
    Input,
}

/// The tensor, as rows of bytes.
#[derive(Clone, Copy)]
struct Rows {
    /// The axis that is split.
    axis: usize,
    /// Its length.
    len: usize,
    /// The bytes of one of its elements, with all axes behind it.
    below: usize,
}

pub(crate) fn split(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    let dims = input_dims(call, 0)?;
    let at = axis(call.int_or("axis", 0), dims.len())?;
    let below = width(call.dtype(0))?.saturating_mul(count(&dims[at + 1..]));
    let rows = Rows { axis: at, len: dims[at], below };
    let outputs = call.output_count();
    let sizes = match call.ints("split") {
        Some(sizes) => Sizes::Known(sizes.to_vec()),
        None if call.has(1) => Sizes::Input,
        None => Sizes::Known(equal_parts(rows.len, outputs)),
    };
    Ok(function(move |operands| {
        let from_input = match sizes {
            Sizes::Known(_) => None,
            Sizes::Input => Some(operands.input(1)?.values::<i64>()?),
        };
        let sizes =
            if let Sizes::Known(sizes) = &sizes { sizes } else { from_input.unwrap_or(&[]) };
        check("how many parts there are", &sizes.len(), &outputs)?;
        let mut start = 0_usize;
        for (output, &size) in sizes.iter().enumerate() {
            let end = start.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
            if end > rows.len {
                return Err(KernelError::Value(format!("parts up to {end} of {}", rows.len)));
            }
            rows.copy(operands, output, start..end)?;
            start = end;
        }
        Ok(())
    }))
}

fn equal_parts(len: usize, count: usize) -> Vec<i64> {
    let part = len.div_ceil(count.max(1));
    let rest = |at: usize| len.saturating_sub(part.saturating_mul(at)).min(part);
    (0..count).map(|at| i64::try_from(rest(at)).unwrap_or(i64::MAX)).collect()
}

impl Rows {
    /// Copies these elements of each row to an output, if it is wanted.
    fn copy(
        self,
        operands: &mut Operands<'_>,
        output: usize,
        part: std::ops::Range<usize>,
    ) -> Result<(), KernelError> {
        let from = operands.input(0)?.bytes()?;
        let Some(to) = operands.outputs.get_mut(output).and_then(Option::as_mut) else {
            return Ok(());
        };
        check("the length of a part", &Some(&part.len()), &to.dims.get(self.axis))?;
        if to.bytes.is_empty() {
            return Ok(());
        }
        let bytes = part.start * self.below..part.end * self.below;
        let rows = from.chunks_exact(self.len * self.below);
        for (from, to) in rows.zip(to.bytes.chunks_exact_mut(bytes.len())) {
            copy_run(&from[bytes.clone()], to);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{fails, run};
    use lowtide_core::DType;
    use lowtide_core::operator::{Input, Output, Place};

    #[track_caller]
    fn of(lines: &[&str], wanted: &[&str]) {
        assert_eq!(run(&[&["weight x 2 3 = 1 2 3 4 5 6"], lines].concat(), "a b"), wanted);
    }

    #[test]
    fn parts_are_as_long_as_is_said() {
        let wanted = ["float32 [2, 1] 1 4", "float32 [2, 2] 2 3 5 6"];
        of(&["opset 11", "a; b = Split(x) {axis=1, split=[1, 2]}"], &wanted);
        of(&["weight s i64 2 = 1 2", "a; b = Split(x, s) {axis=-1}"], &wanted);
        let wanted = ["float32 [0, 3] ", "float32 [2, 3] 1 2 3 4 5 6"];
        of(&["weight s i64 2 = 0 2", "a; b = Split(x, s)"], &wanted);
    }

    #[test]
    fn parts_are_equal_but_for_the_last_one() {
        of(&["a; b = Split(x)"], &["float32 [1, 3] 1 2 3", "float32 [1, 3] 4 5 6"]);
        let wanted = ["float32 [2, 2] 1 2 4 5", "float32 [2, 1] 3 6"];
        of(&["a; b = Split(x) {axis=1, num_outputs=2}"], &wanted);
    }

    #[test]
    fn a_part_that_lies_in_the_tensor_is_left_out() {
        let input = Input { at: 0, dtype: DType::U8, dims: &[3], place: Place::Apart(&[1, 2, 3]) };
        let mut bytes = [0; 2];
        let output = Output { at: 1, dtype: DType::U8, dims: &[2], bytes: &mut bytes };
        let (inputs, outputs) = (vec![Some(input)], vec![None, Some(output)]);
        let mut operands = Operands { inputs, outputs, scratch: &mut [] };
        let rows = Rows { axis: 0, len: 3, below: 1 };
        rows.copy(&mut operands, 0, 0..1).unwrap();
        rows.copy(&mut operands, 1, 1..3).unwrap();
        assert_eq!(bytes, [2, 3]);
    }

    #[test]
    fn parts_are_those_that_were_planned() {
        let lines = ["weight x 3 = 1 2 3", "weight s i64 3 = 1 1 1", "a; b = Split(x, s)"];
        fails(&lines, "how many parts there are: 3, wanted 2");
    }
}
