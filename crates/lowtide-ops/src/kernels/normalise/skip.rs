//! `SkipLayerNormalization` of ONNX Runtime and its simplified form: a sum in front of a normalisation.
//!
//! ~~~text
//! x, skip, bias ──add──> row of the sum, an output if it is wanted ──normalise──> row of y
//! ~~~
//! Skip may have no batch of its own; then it is added to each sample. In the simplified form there is no bias behind the
//! normalisation.

use super::layer::{Centre, Layer, Spread};
use crate::kernels::facts::{input_dims, same_type, unsupported};
use crate::kernels::function;
use crate::kernels::number::{Real, by_type};
use crate::kernels::vectorise::vectorised;
use lowtide_core::operator::{Call, Fact, Input, Kernel, KernelError, NoKernel, Operands, Output};

pub(crate) fn skip_layer(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    make(call, outputs, (Centre::Mean, Some(3), 4))
}

pub(crate) fn skip_rms(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    make(call, outputs, (Centre::Zero, None, 3))
}

/// A normalisation whose last bias is input `after`, with input `before` in the sum.
fn make(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
    (centre, after, before): (Centre, Option<usize>, usize),
) -> Result<Box<dyn Kernel>, NoKernel> {
    if outputs.iter().skip(1).take(2).any(Option::is_some) {
        return unsupported("statistics as outputs");
    }
    let (x, skip) = (input_dims(call, 0)?, input_dims(call, 1)?);
    same_type(call, 1)?;
    let (found, wanted) = (skip.iter().product::<usize>(), x.iter().product::<usize>());
    let ends = skip.len() >= 2 && x.ends_with(&skip[skip.len() - 2..]);
    if !ends || (found != wanted && found != skip[skip.len() - 2..].iter().product()) {
        return Err(NoKernel::Misfit(format!("an input of {x:?} and a skip of {skip:?}")));
    }
    let row = &x[x.len() - 1..];
    let scale = Spread::new(call, 2, row)?;
    let spread =
        |at: usize| if call.has(at) { Spread::new(call, at, row).map(Some) } else { Ok(None) };
    let bias = after.map_or(Ok(None), spread)?;
    if matches!(spread(before)?, Some(Spread::One)) && row != [1] {
        return unsupported("one bias for a whole row");
    }
    let epsilon = call.float("epsilon").unwrap_or(1e-5);
    let layer = Layer { len: row[0], centre, epsilon, scale, bias };
    let skip = Skip { layer, period: found, after, before };
    by_type!(call.dtype(0), [F32: f32, F64: f64], of(skip))
}

fn of<T: Real>(skip: Skip) -> Box<dyn Kernel> {
    function(move |operands| skip.run::<T>(operands))
}

struct Skip {
    layer: Layer,
    period: usize,
    after: Option<usize>,
    before: usize,
}

impl Skip {
    fn run<T: Real>(&self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let (x, skip) = (operands.input(0)?.values::<T>()?, operands.input(1)?.values::<T>()?);
        let scale = operands.input(2)?.values::<T>()?;
        let optional = |at: Option<usize>| {
            at.and_then(|at| operands.optional(at)).map(Input::values::<T>).transpose()
        };
        let (after, before) = (optional(self.after)?, optional(Some(self.before))?);
        let mut outputs = operands.outputs.iter_mut().map(Option::as_mut);
        let mut take = |at| outputs.nth(at).flatten().map(Output::values_mut::<T>).transpose();
        let (y, mut sums) = (take(0)?, take(2)?);
        let len = self.layer.len;
        let Some(y) = y.filter(|y| !y.is_empty()) else { return Ok(()) };
        for (at, row) in y.chunks_exact_mut(len).enumerate() {
            let start = at * len;
            let skip = &skip[start % self.period..][..len];
            for ((y, x), skip) in row.iter_mut().zip(&x[start..]).zip(skip) {
                *y = *x + *skip;
            }
            for (y, bias) in row.iter_mut().zip(before.unwrap_or_default()) {
                *y += *bias;
            }
            if let Some(sums) = &mut sums {
                sums[start..][..len].copy_from_slice(row);
            }
            let (mean, factor) = self.layer.statistics(row);
            let (mean, factor) = (T::of_f64(mean), T::of_f64(factor));
            vectorised(
                #[inline(always)]
                || self.layer.finish(row, (mean, factor), scale, after),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{run, runs};

    const X: &str = "weight x 2 1 2 = 0 2 4 8";

    #[test]
    fn the_sum_is_normalised() {
        let lines = [X, "weight s 2 1 2 = 1 1 1 1", "weight g 2 = 1 2", "weight b 2 = 0 10"];
        let call =
            "y; _; _; sum = com.microsoft.SkipLayerNormalization(x, s, g, b, b) {epsilon=0.0}";
        let found = run(&[&lines[..], &[call]].concat(), "y sum");
        assert_eq!(found[0], "float32 [2, 1, 2] -1 12 -1 12");
        assert_eq!(found[1], "float32 [2, 1, 2] 1 13 5 19");
    }

    #[test]
    fn a_skip_may_be_the_same_for_all() {
        let lines = [X, "weight s 1 2 = 1 5", "weight g 2 = 1 2"];
        let call = "y = com.microsoft.SkipSimplifiedLayerNormalization(x, s, g) {epsilon=0.0}";
        runs(&[&lines[..], &[call]].concat(), "float32 [2, 1, 2] 0.2 2.8 0.5076731 2.6399002");
    }
}
