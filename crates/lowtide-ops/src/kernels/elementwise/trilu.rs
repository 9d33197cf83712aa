//! `Trilu`: one triangle of each matrix stays, the other becomes zero.
//!
//! ~~~text
//! upper, k = 0    a b c      k = 1    0 b c        lower, k = 0    a 0 0
//!                 0 e f               0 0 f                        d e 0
//! ~~~

use crate::kernels::facts::output_dims;
use crate::kernels::function;
use crate::kernels::layout::copy::copy_data;
use crate::kernels::types::{Made, elements_mut, with_width};
use bytemuck::Zeroable;
use lowtide_core::operator::{Call, Fact, KernelError, NoKernel, Operands};

pub(crate) fn trilu(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let dims = output_dims(outputs, 0)?;
    let [.., rows, columns] = dims[..] else {
        return Err(NoKernel::Misfit(format!("rank {}, wanted 2 or more", dims.len())));
    };
    let keeps_upper = call.int_or("upper", 1) != 0;
    with_width!(call.dtype(0), E => Ok(function(move |operands| {
        let diagonal = diagonal(operands)?;
        copy_data::<E>(operands)?;
        let y = elements_mut::<E>(operands, 0)?;
        for (row, y) in y.chunks_exact_mut(columns.max(1)).enumerate() {
            let on_diagonal = diagonal.saturating_add_unsigned((row % rows) as u64);
            let cleared = if keeps_upper {
                0..clamped(on_diagonal, columns)
            } else {
                clamped(on_diagonal.saturating_add(1), columns)..columns
            };
            y[cleared].fill(E::zeroed());
        }
        Ok(())
    })))
}

/// Which diagonal: that of input 1, or the main one.
fn diagonal(operands: &Operands<'_>) -> Result<i64, KernelError> {
    let Some(input) = operands.optional(1) else { return Ok(0) };
    let none = || KernelError::Value("input 1, the diagonal, has no element".to_owned());
    input.values::<i64>()?.first().copied().ok_or_else(none)
}

fn clamped(column: i64, columns: usize) -> usize {
    if column < 0 { 0 } else { usize::try_from(column).unwrap_or(columns).min(columns) }
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::runs;

    #[track_caller]
    fn of(k: &str, attributes: &str, wanted: &str) {
        let k = format!("weight k i64 = {k}");
        let call = format!("y = Trilu(x, k){attributes}");
        let lines = ["weight x 2 2 3 = 1 2 3 4 5 6 7 8 9 1 2 3", &k, &call];
        runs(&lines, &format!("float32 [2, 2, 3] {wanted}"));
    }

    #[test]
    fn one_triangle_stays() {
        of("0", "", "1 2 3 0 5 6 7 8 9 0 2 3");
        of("1", "", "0 2 3 0 0 6 0 8 9 0 0 3");
        of("0", " {upper=0}", "1 0 0 4 5 0 7 0 0 1 2 0");
        of("-1", " {upper=0}", "0 0 0 4 0 0 0 0 0 1 0 0");
    }

    #[test]
    fn any_diagonal_is_one() {
        of("9223372036854775807", "", "0 0 0 0 0 0 0 0 0 0 0 0");
        of("-9223372036854775808", "", "1 2 3 4 5 6 7 8 9 1 2 3");
        of("9223372036854775807", " {upper=0}", "1 2 3 4 5 6 7 8 9 1 2 3");
    }

    #[test]
    fn the_diagonal_may_be_absent() {
        runs(&["weight x i8 2 2 = 1 2 3 4", "y = Trilu(x)"], "int8 [2, 2] 1 2 0 4");
        runs(&["weight x 0 2 =", "y = Trilu(x)"], "float32 [0, 2] ");
    }
}
