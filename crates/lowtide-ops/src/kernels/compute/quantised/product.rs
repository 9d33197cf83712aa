//! `MatMulInteger` and `QLinearMatMul`: products of matrices of bytes.
//!
//! ~~~text
//! row of a, a block of columns of b ──> sums in 32 bits, on the stack ──> as they are, or rounded to bytes
//! ~~~

use super::{Quantised, by_bytes, optional, quantised, scale_at, zero_at};
use crate::kernels::compute::matmul::Stack;
use crate::kernels::compute::product::Matrix;
use crate::kernels::facts::{input_dims, unsupported};
use crate::kernels::function;
use crate::kernels::vectorise::vectorised;
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact, Kernel, KernelError, NoKernel};

/// Columns whose sums are kept at once.
const BLOCK: usize = 256;

pub(crate) fn integer_product(
    call: &Call<'_>,
    _: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let stack = stack(call, [0, 1])?;
    check_zero(call, 2, 0, stack.m)?;
    check_zero(call, 3, 1, stack.n)?;
    by_bytes!(call.dtype(0), call.dtype(1), sums(stack))
}

fn stack(call: &Call<'_>, [a, b]: [usize; 2]) -> Result<Stack, NoKernel> {
    Stack::stacked(&input_dims(call, a)?, &input_dims(call, b)?)
}

/// That a zero point, if it is there, has the type of what it belongs to, and one element or one for each of so many.
fn check_zero(call: &Call<'_>, at: usize, of: usize, count: usize) -> Result<(), NoKernel> {
    if !call.has(at) {
        return Ok(());
    }
    let dims = input_dims(call, at)?;
    let found: usize = dims.iter().product();
    let is_line = dims.iter().filter(|&&len| len != 1).count() <= 1;
    if call.dtype(at) == call.dtype(of) && is_line && (found == 1 || found == count) {
        return Ok(());
    }
    unsupported(format!("an input {at} of shape {dims:?}"))
}

fn sums<A: Quantised, B: Quantised>(stack: Stack) -> Box<dyn Kernel> {
    function(move |operands| {
        let (a, b) = (operands.input(0)?.values()?, operands.input(1)?.values()?);
        let (a_zeros, b_zeros) = (optional::<A>(operands, 2)?, optional::<B>(operands, 3)?);
        let out = operands.values_mut(0)?;
        stack.each(out, a, b, |out, a, b| {
            each_block((a, a_zeros), (b, b_zeros), |place, sums| {
                out[place..][..sums.len()].copy_from_slice(sums);
            });
            Ok(())
        })
    })
}

pub(crate) fn quantised_product(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let stack = stack(call, [0, 3])?;
    check_zero(call, 2, 0, stack.m)?;
    check_zero(call, 5, 3, stack.n)?;
    for (at, count) in [(1, stack.m), (4, stack.n), (6, 1)] {
        if call.dtype(at) != Some(DType::F32) {
            return unsupported(format!(
                "scales of type {}",
                call.dtype(at).map_or("?", DType::name)
            ));
        }
        check_zero(call, at, at, count)?;
    }
    let out = outputs.first().copied().flatten().and_then(|output| output.dtype);
    match out {
        Some(DType::U8) => by_bytes!(call.dtype(0), call.dtype(3), bytes_u8(stack)),
        Some(DType::I8) => by_bytes!(call.dtype(0), call.dtype(3), bytes_i8(stack)),
        other => Err(crate::kernels::number::no_kernel_for(other)),
    }
}

fn bytes_u8<A: Quantised, B: Quantised>(stack: Stack) -> Box<dyn Kernel> {
    bytes::<A, B, u8>(stack)
}

fn bytes_i8<A: Quantised, B: Quantised>(stack: Stack) -> Box<dyn Kernel> {
    bytes::<A, B, i8>(stack)
}

fn bytes<A: Quantised, B: Quantised, Y: Quantised>(stack: Stack) -> Box<dyn Kernel> {
    function(move |operands| {
        let (a, b) = (operands.input(0)?.values()?, operands.input(3)?.values()?);
        let (a_zeros, b_zeros) = (optional::<A>(operands, 2)?, optional::<B>(operands, 5)?);
        let y_zero = zero_at(optional::<Y>(operands, 7)?, 0);
        let scales = |at: usize| operands.input(at)?.values::<f32>();
        let (a_scales, b_scales, y_scale) = (scales(1)?, scales(4)?, scale_at(scales(6)?, 0));
        let out = operands.values_mut::<Y>(0)?;
        stack.each(out, a, b, |out, a, b| -> Result<(), KernelError> {
            each_block((a, a_zeros), (b, b_zeros), |place, sums| {
                let (row, from) = (place / b.cols, place % b.cols);
                for (col, (out, &sum)) in out[place..].iter_mut().zip(sums).enumerate() {
                    let scale = scale_at(a_scales, row) * scale_at(b_scales, from + col) / y_scale;
                    #[expect(clippy::cast_precision_loss, reason = "the nearest number will do")]
                    let ratio = sum as f32 * scale;
                    *out = quantised(ratio, y_zero);
                }
            });
            Ok(())
        })
    })
}

/// Calls a function with the sums of each block of columns of each row, and where they begin in the product.
pub(in crate::kernels::compute) fn each_block<A: Quantised, B: Quantised>(
    (a, a_zeros): (Matrix<'_, A>, Option<&[A]>),
    (b, b_zeros): (Matrix<'_, B>, Option<&[B]>),
    mut call: impl FnMut(usize, &[i32]),
) {
    for row in 0..a.rows {
        let (zero, values) = (zero_at(a_zeros, row), &a.data[row * a.cols..][..a.cols]);
        for from in (0..b.cols).step_by(BLOCK) {
            let mut sums = [0_i32; BLOCK];
            let sums = &mut sums[..BLOCK.min(b.cols - from)];
            let mut zeros = [0_i32; BLOCK];
            for (at, zero) in zeros.iter_mut().enumerate() {
                *zero = zero_at(b_zeros, from + at);
            }
            vectorised(
                #[inline(always)]
                || {
                    for (inner, a) in values.iter().enumerate() {
                        let factor = a.to_i32() - zero;
                        let b = &b.data[inner * b.cols + from..][..sums.len()];
                        for ((sum, b), zero) in sums.iter_mut().zip(b).zip(&zeros) {
                            *sum = sum.wrapping_add(factor * (b.to_i32() - zero));
                        }
                    }
                },
            );
            call(row * b.cols + from, sums);
        }
    }
}
