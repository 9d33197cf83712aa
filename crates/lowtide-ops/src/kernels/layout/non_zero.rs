//! `NonZero`: where a tensor is not 0, one row an axis.
//!
//! ~~~text
//! x 0 5     rows    0 1        x[0,1] and x[1,0] are not 0, in the order of x;
//!   6 0     columns 1 0        how many there are is counted before the kernel is made
//! ~~~

use super::lists::check;
use crate::kernels::facts::{input_dims, output_dims};
use crate::kernels::function;
use crate::kernels::number::no_kernel_for;
use crate::kernels::types::{Made, elements};
use bytemuck::Pod;
use lowtide_core::DType;
use lowtide_core::operator::{Call, Dims, Fact, Input, KernelError, Misfit, NoKernel};

/// How many elements of an input of this run are not 0.
pub(crate) fn count(call: &Call<'_>, inputs: &[Option<Input<'_>>]) -> Dims {
    let misfit = |error: KernelError| Misfit(error.to_string());
    let test = Test::of(call.dtype(0)).map_err(|error| Misfit(error.to_string()))?;
    let Some(Some(input)) = inputs.first() else {
        return Err(Misfit("input 0 is absent".to_owned()));
    };
    let mut count = 0;
    test.visit(*input, |_| count += 1).map_err(misfit)?;
    Ok(vec![vec![input.dims.len(), count]])
}

pub(crate) fn non_zero(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let (dims, planned) = (input_dims(call, 0)?, output_dims(outputs, 0)?);
    let test = Test::of(call.dtype(0))?;
    let &[_, planned] = &planned[..] else {
        return Err(Misfit("the output has not two axes".to_owned()).into());
    };
    Ok(function(move |operands| {
        let input = operands.input(0)?;
        let mut count = 0;
        test.visit(input, |_| count += 1)?;
        check("how many are not zero", &count, &planned)?;
        let y = operands.values_mut::<i64>(0)?;
        check("elements", &y.len(), &(dims.len() * planned))?;
        let mut column = 0;
        test.visit(input, |at| {
            let mut rest = at;
            for (axis, &dim) in dims.iter().enumerate().rev() {
                y[axis * planned + column] = i64::try_from(rest % dim).unwrap_or(i64::MAX);
                rest /= dim;
            }
            column += 1;
        })
    }))
}

/// How an element is looked at: its bits below these count. The sign of a 0 does not.
#[derive(Clone, Copy)]
struct Test {
    width: usize,
    mask: u64,
}

impl Test {
    fn of(dtype: Option<DType>) -> Result<Self, NoKernel> {
        let is_float = matches!(dtype, Some(DType::F16 | DType::BF16 | DType::F32 | DType::F64));
        let width = match dtype.and_then(DType::bits) {
            Some(bits @ (8 | 16 | 32 | 64)) => bits as usize / 8,
            _ => return Err(no_kernel_for(dtype)),
        };
        let mask = if is_float { (1 << (8 * width - 1)) - 1 } else { u64::MAX };
        Ok(Self { width, mask })
    }

    /// Tells the place of each element that is not 0.
    fn visit(self, input: Input<'_>, tell: impl FnMut(usize)) -> Result<(), KernelError> {
        match self.width {
            1 => self.visit_all::<u8>(input, tell),
            2 => self.visit_all::<u16>(input, tell),
            4 => self.visit_all::<u32>(input, tell),
            _ => self.visit_all::<u64>(input, tell),
        }
    }

    fn visit_all<E: Pod + Into<u64>>(
        self,
        input: Input<'_>,
        mut tell: impl FnMut(usize),
    ) -> Result<(), KernelError> {
        for (at, &element) in elements::<E>(input)?.iter().enumerate() {
            if element.into() & self.mask != 0 {
                tell(at);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{fails, runs};

    #[test]
    fn places_stand_in_the_order_of_the_elements() {
        let x = "weight x 2 3 = 0 5 0 6 0 -7";
        runs(&[x, "y i64 2 3 = NonZero(x)"], "int64 [2, 3] 0 1 1 1 0 2");
        runs(&["weight x i64 4 = 0 3 0 1", "y = NonZero(x)"], "int64 [1, 2] 1 3");
        runs(&["weight x bool 1 2 = 0 0", "y i64 2 0 = NonZero(x)"], "int64 [2, 0] ");
        runs(&["weight x 0 3 =", "y i64 2 0 = NonZero(x)"], "int64 [2, 0] ");
    }

    #[test]
    fn a_negative_zero_is_zero_and_no_number_is_not() {
        runs(&["weight x 3 = -0 nan 1", "y i64 1 2 = NonZero(x)"], "int64 [1, 2] 1 2");
        runs(&["weight x f16 1 3 = 32768 1 0", "y i64 2 1 = NonZero(x)"], "int64 [2, 1] 0 1");
        runs(&["weight x i8 1 2 = -128 0", "y i64 2 1 = NonZero(x)"], "int64 [2, 1] 0 0");
    }

    #[test]
    fn a_scalar_has_no_axis() {
        runs(&["weight x = 2", "y i64 0 1 = NonZero(x)"], "int64 [0, 1] ");
    }

    #[test]
    fn as_many_are_found_as_were_planned() {
        let lines = ["weight x 2 2 = 1 2 3 0", "y i64 2 2 = NonZero(x)"];
        fails(&lines, "how many are not zero: 3, wanted 2");
    }
}
