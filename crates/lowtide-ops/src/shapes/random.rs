//! Rules of operators that make tensors out of a shape: random numbers, identity matrices.
//!
//! ~~~text
//! RandomNormal(shape = [2, 3])       ──>  [2, 3]
//! x [n, 4]  ──RandomNormalLike──>         [n, 4], of the type of x unless an attribute names one
//! ~~~

use super::{ranked, whole};
use crate::call::{Call, Facts, dtype_of_number};
use crate::fact::Fact;
use lowtide_core::DType;

/// The shape is an attribute.
pub(crate) fn of_shape(call: &Call<'_>) -> Facts {
    let dims = call.ints("shape").map(|dims| dims.iter().map(|&dim| whole(dim)).collect());
    Ok(vec![Fact::new(dtype_of_number(call.int_or("dtype", 1)), dims)])
}

/// The shape is that of the input.
pub(crate) fn like(call: &Call<'_>) -> Facts {
    let dtype = if call.int("dtype").is_some() { call.dtype_of("dtype") } else { call.dtype(0) };
    Ok(vec![Fact::new(dtype, call.input(0).dims.clone())])
}

/// `Multinomial`: samples for each row.
pub(crate) fn multinomial(call: &Call<'_>) -> Facts {
    ranked(call, 0, 2)?;
    let dtype = call.int("dtype").map_or(Some(DType::I32), dtype_of_number);
    let dims = vec![call.dim(0, 0), whole(call.int_or("sample_size", 1))];
    Ok(vec![Fact::new(dtype, Some(dims))])
}

#[cfg(test)]
mod tests {
    use crate::testing::infers;

    #[test]
    fn a_shape_is_given_or_that_of_another_tensor() {
        infers(&["y = RandomNormal() {shape=[2, 3], dtype=10}"], "f16 [2, 3]");
        infers(&["input x i32 n 4", "y = RandomUniformLike(x)"], "i32 [n, 4]");
        infers(&["input x n 4", "y = Bernoulli(x) {dtype=9}"], "bool [n, 4]");
    }

    #[test]
    fn each_row_has_samples() {
        infers(&["input x n 4", "y = Multinomial(x) {sample_size=9}"], "i32 [n, 9]");
    }
}
