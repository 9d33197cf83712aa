//! `MaxPool`: the largest element of each window, and where it is.
//!
//! ~~~text
//! 1 5 | 0 2      5 2      1 3      places count through the whole input, row after row,
//! 3 4 | 1 1                        or column after column of each channel
//! ~~~
//! Of equal elements the first one counts.

use super::{each_plane, fold, pairs, read};
use crate::kernels::compute::window::{Plan, volume};
use crate::kernels::function;
use crate::kernels::number::{Number, by_type};
use lowtide_core::operator::{Call, Fact, Kernel, KernelError, NoKernel, Operands};

pub(crate) fn max_pool(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let plan = read(call, outputs)?;
    let pool = Pool { plan, by_column: call.flag("storage_order") };
    by_type!(call.dtype(0), [F32: f32, F64: f64, I8: i8, U8: u8], of(pool))
}

fn of<T: Number>(pool: Pool) -> Box<dyn Kernel> {
    function(move |operands| pool.run::<T>(operands))
}

struct Pool {
    plan: Plan,
    by_column: bool,
}

impl Pool {
    fn run<T: Number>(&self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let x = operands.input(0)?.values::<T>()?;
        each_plane(&self.plan, x, operands.values_mut::<T>(0)?, |_, x, out| {
            out.fill(T::LOWEST);
            fold(
                &self.plan,
                x,
                out,
                #[inline(always)]
                |most, x| if x > most { x } else { most },
            );
        });
        if operands.outputs.get(1).is_some_and(Option::is_some) {
            let len = volume(&self.plan.axes, |axis| axis.input);
            each_plane(&self.plan, x, operands.values_mut::<i64>(1)?, |at, x, out| {
                self.find(x, at * len, out);
            });
        }
        Ok(())
    }

    /// Where the maxima of a channel are, whose first place is known.
    fn find<T: Number>(&self, x: &[T], first: usize, out: &mut [i64]) {
        let [depth, height, width] = &self.plan.axes;
        for (at, out) in out.iter_mut().enumerate() {
            let (z, y) = (at / width.output / height.output, at / width.output % height.output);
            let mut most = (T::LOWEST, None);
            for (tap_z, tap_y) in pairs(depth.taps(z), height.taps(y)) {
                let row = depth.place(z, tap_z) * height.input + height.place(y, tap_y);
                for tap in width.taps(at % width.output) {
                    let place = row * width.input + width.place(at % width.output, tap);
                    if most.1.is_none() || x[place] > most.0 {
                        most = (x[place], Some(place));
                    }
                }
            }
            let place = first + most.1.map_or(0, |place| self.counted(place));
            *out = i64::try_from(place).unwrap_or(i64::MAX);
        }
    }

    /// A place in a channel, as the attribute wants it counted.
    fn counted(&self, place: usize) -> usize {
        if !self.by_column {
            return place;
        }
        let [depth, height, width] = &self.plan.axes;
        let (x, row) = (place % width.input, place / width.input);
        let (y, z) = (row % height.input, row / height.input);
        // The first axis that is there moves fastest; one that is not has one element.
        (x * height.input + y) * depth.input + z
    }
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{run, runs};

    const X: &str = "weight x 1 1 3 4 = 1 5 0 2 3 4 1 1 9 -1 2 7";

    #[test]
    fn the_largest_of_each_window_is_kept() {
        runs(
            &["weight x 1 1 2 2 = 1 2 3 4", "y = MaxPool(x) {kernel_shape=[2, 2]}"],
            "float32 [1, 1, 1, 1] 4",
        );
        runs(&[X, "y = MaxPool(x) {kernel_shape=[2, 2]}"], "float32 [1, 1, 2, 3] 5 5 2 9 4 7");
        runs(
            &[X, "y = MaxPool(x) {kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1}"],
            "float32 [1, 1, 2, 2] 5 2 9 7",
        );
        runs(
            &[X, "y = MaxPool(x) {kernel_shape=[2, 2], dilations=[2, 3]}"],
            "float32 [1, 1, 1, 1] 9",
        );
    }

    #[test]
    fn one_and_three_axes_are_pooled_too() {
        runs(
            &["weight x 1 2 3 = 1 2 3 6 5 4", "y = MaxPool(x) {kernel_shape=[2]}"],
            "float32 [1, 2, 2] 2 3 6 5",
        );
        runs(
            &["weight x u8 1 1 2 1 2 = 1 2 3 4", "y = MaxPool(x) {kernel_shape=[2, 1, 1]}"],
            "uint8 [1, 1, 1, 1, 2] 3 4",
        );
    }

    #[test]
    fn padding_is_never_the_largest() {
        runs(
            &["weight x 1 1 2 = -3 -4", "y = MaxPool(x) {kernel_shape=[2], pads=[1, 1]}"],
            "float32 [1, 1, 3] -3 -3 -4",
        );
    }

    #[test]
    fn places_count_through_rows_or_columns() {
        let all = |attribute: &str| {
            let pool = format!("y; i = MaxPool(x) {{kernel_shape=[2, 2]{attribute}}}");
            run(&[X, &pool], "i")
        };
        assert_eq!(all(""), ["int64 [1, 1, 2, 3] 1 1 3 8 5 11"]);
        assert_eq!(all(", storage_order=1"), ["int64 [1, 1, 2, 3] 3 3 9 2 4 11"]);
    }
}
