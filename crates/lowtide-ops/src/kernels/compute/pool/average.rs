//! `AveragePool` and `LpPool`: the mean of each window, the length of each as a vector.
//!
//! ~~~text
//! 1 5 | 0 2      13/4 4/4        a window that hangs over the end is divided by the elements that it has,
//! 3 4 | 1 1                      padding counted in or not
//! ~~~

use super::{each_plane, fold, fold_plane, read};
use crate::kernels::compute::window::{Axis, Plan, SPATIAL};
use crate::kernels::function;
use crate::kernels::number::{Real, by_type};
use lowtide_core::operator::{Call, Fact, Kernel, NoKernel};

pub(crate) fn average_pool(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let plan = read(call, outputs)?;
    let counts = if call.flag("count_include_pad") { padded_count } else { own_count };
    let counts =
        plan.axes.map(|axis| (0..axis.output).map(|window| counts(&axis, window)).collect());
    by_type!(call.dtype(0), [F32: f32, F64: f64], averages(plan, counts))
}

/// The elements of a window that lie in the input.
fn own_count(axis: &Axis, window: usize) -> usize {
    axis.taps(window).len()
}

/// The elements of a window that lie in the input or in the padding.
fn padded_count(axis: &Axis, window: usize) -> usize {
    let input = axis.before + axis.input + axis.after;
    Axis { input, before: 0, after: 0, ..*axis }.taps(window).len()
}

fn averages<T: Real>(plan: Plan, counts: [Vec<usize>; SPATIAL]) -> Box<dyn Kernel> {
    #[expect(clippy::cast_precision_loss, reason = "windows are small")]
    let counts = counts.map(|counts| counts.iter().map(|&count| T::of_f64(count as f64)).collect());
    function(move |operands| {
        let x = operands.input(0)?.values::<T>()?;
        each_plane(&plan, x, operands.values_mut::<T>(0)?, |_, x, out| {
            out.fill(T::ZERO);
            fold(
                &plan,
                x,
                out,
                #[inline(always)]
                |sum, x| sum + x,
            );
            divide(out, &counts);
        });
        Ok(())
    })
}

fn divide<T: Real>(out: &mut [T], counts: &[Vec<T>; SPATIAL]) {
    let [depth, height, width] = counts;
    for (at, row) in out.chunks_exact_mut(width.len()).enumerate() {
        let rows = depth[at / height.len()] * height[at % height.len()];
        for (out, &width) in row.iter_mut().zip(width) {
            let count = rows * width;
            // A window in the padding has no element, and the mean 0.
            *out = if count > T::ZERO { *out / count } else { T::ZERO };
        }
    }
}

pub(crate) fn lp_pool(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let plan = read(call, outputs)?;
    let power = call.int("p").and_then(|p| u16::try_from(p).ok()).unwrap_or(2);
    by_type!(call.dtype(0), [F32: f32, F64: f64], lengths(plan, f64::from(power)))
}

fn lengths<T: Real>(plan: Plan, power: f64) -> Box<dyn Kernel> {
    let (power, root) = (T::of_f64(power), T::of_f64(power.recip()));
    let is_euclidean = power == T::ONE + T::ONE;
    function(move |operands| {
        let x = operands.input(0)?.values::<T>()?;
        each_plane(&plan, x, operands.values_mut::<T>(0)?, |_, x, out| {
            out.fill(T::ZERO);
            if is_euclidean {
                fold_plane(&plan, x, out, |sum, x| sum + x * x);
                for out in out {
                    *out = out.sqrt();
                }
                return;
            }
            fold_plane(&plan, x, out, |sum, x| sum + x.magnitude().powf(power));
            for out in out {
                *out = out.powf(root);
            }
        });
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::runs;

    const X: &str = "weight x 1 1 2 4 = 1 5 0 2 3 4 1 1";

    #[test]
    fn windows_are_divided_by_their_elements() {
        runs(
            &[X, "y = AveragePool(x) {kernel_shape=[2, 2], strides=[2, 2]}"],
            "float32 [1, 1, 1, 2] 3.25 1",
        );
        runs(
            &["weight x 1 1 3 = 2 4 6", "y = AveragePool(x) {kernel_shape=[2], pads=[1, 1]}"],
            "float32 [1, 1, 4] 2 3 5 6",
        );
        runs(
            &[
                "weight x 1 1 3 = 2 4 6",
                "y = AveragePool(x) {kernel_shape=[2], pads=[1, 1], count_include_pad=1}",
            ],
            "float32 [1, 1, 4] 1 3 5 3",
        );
    }

    #[test]
    fn what_hangs_over_the_padding_does_not_count() {
        runs(
            &[
                "weight x 1 1 4 = 1 2 3 4",
                "y = AveragePool(x) {kernel_shape=[3], strides=[2], ceil_mode=1, count_include_pad=1}",
            ],
            "float32 [1, 1, 2] 2 3.5",
        );
    }

    #[test]
    fn windows_are_vectors_with_a_length() {
        runs(
            &["weight x 1 1 3 = 3 -4 0", "y = LpPool(x) {kernel_shape=[2]}"],
            "float32 [1, 1, 2] 5 4",
        );
        runs(
            &["weight x 1 1 3 = 3 -4 0", "y = LpPool(x) {kernel_shape=[2], p=1}"],
            "float32 [1, 1, 2] 7 4",
        );
    }
}
