//! `OneHot`: a new axis, along which one element is on and the others are off.
//!
//! ~~~text
//! indices [2] = 1 -1, depth 3, values off on     y [2, 3] = off on off | off off on
//! ~~~
//! An index outside of the new axis turns none on.

use super::lists::check;
use crate::kernels::facts::{input_dims, output_dims};
use crate::kernels::function;
use crate::kernels::number::Number;
use crate::kernels::strides::count;
use crate::kernels::types::{Made, elements, elements_mut, with_type, with_width};
use bytemuck::Pod;
use lowtide_core::DType;
use lowtide_core::operator::call::axis;
use lowtide_core::operator::{Call, Fact, KernelError, NoKernel, Operands};

/// Reads the only element of an input of some type.
type Read = fn(&Operands<'_>) -> Result<f64, KernelError>;

/// The new axis.
#[derive(Clone, Copy)]
struct Hot {
    depth: usize,
    /// How many elements there are behind it.
    below: usize,
    read_depth: Read,
}

pub(crate) fn one_hot(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let (indices, planned) = (input_dims(call, 0)?, output_dims(outputs, 0)?);
    let at = axis(call.int_or("axis", -1), indices.len() + 1)?;
    let read_depth = reader(call.dtype(1))?;
    let hot = Hot { depth: planned[at], below: count(&indices[at..]), read_depth };
    with_type!(numbers: call.dtype(0), I => with_width!(call.dtype(2), E => {
        Ok(function(move |operands| hot.fill::<E, I>(operands)))
    }))
}

fn reader(dtype: Option<DType>) -> Result<Read, NoKernel> {
    with_type!(numbers: dtype, D => Ok(read_depth::<D> as Read))
}

fn read_depth<D: Number>(operands: &Operands<'_>) -> Result<f64, KernelError> {
    let depth = operands.input(1)?.values::<D>()?.first().map(|depth| depth.to_f64());
    depth.ok_or_else(|| KernelError::Value("input 1, the depth, has no element".to_owned()))
}

impl Hot {
    fn fill<E: Pod, I: Number>(self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let Self { depth, below, read_depth } = self;
        check("the depth", &read_depth(operands)?.trunc(), &of_count(depth))?;
        let indices = operands.input(0)?.values::<I>()?;
        let &[off, on] = elements::<E>(operands.input(2)?)? else {
            return Err(KernelError::Value(
                "input 2 is not one value for off and one for on".to_owned(),
            ));
        };
        let y = elements_mut::<E>(operands, 0)?;
        y.fill(off);
        for (at, index) in indices.iter().enumerate().take(y.len()) {
            if let Some(hot) = hot_place(index.to_f64(), depth) {
                y[(at / below * depth + hot) * below + at % below] = on;
            }
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "no axis is so long")]
fn of_count(count: usize) -> f64 {
    count as f64
}

/// Where an index, which may count from the end, turns an element on.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is in range"
)]
fn hot_place(index: f64, depth: usize) -> Option<usize> {
    let (index, len) = (index.trunc(), of_count(depth));
    let from_start = if index < 0.0 { index + len } else { index };
    (from_start >= 0.0 && from_start < len).then_some(from_start as usize)
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::runs;

    #[track_caller]
    fn of(attributes: &str, wanted: &str) {
        let call = format!("y = OneHot(i, d, v){attributes}");
        let lines = ["weight i i64 2 = 1 -1", "weight d i64 1 = 3", "weight v 2 = 5 7", &call];
        runs(&lines, &format!("float32 {wanted}"));
    }

    #[test]
    fn one_element_of_the_new_axis_is_on() {
        of("", "[2, 3] 5 7 5 5 5 7");
        of(" {axis=0}", "[3, 2] 5 5 7 5 5 7");
    }

    #[test]
    fn indices_outside_turn_nothing_on() {
        let lines = ["weight i 3 = 2 -3 nan", "weight d = 2", "weight v u8 2 = 0 1"];
        runs(&[&lines[..], &["y = OneHot(i, d, v)"]].concat(), "uint8 [3, 2] 0 0 0 0 0 0");
    }
}
