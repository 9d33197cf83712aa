//! `NegativeLogLikelihoodLoss` and `SoftmaxCrossEntropyLoss`: how far scores are from labels.
//!
//! ~~~text
//! scores [n, c, d]    label t of (n, d)      likelihood:    -w[t] * x[n, t, d]
//!                                            cross entropy: -w[t] * (x[n, t, d] - log sum of exp x[n, .., d])
//!   ──none──> [n, d]    ──sum──> []    ──mean──> [], over the sum of the weights
//! ~~~
//! A label that is to be ignored weighs nothing; one that names no class is an error. Sums are in double precision.
//! Cost: one walk over the scores; of likelihood one look for each label.

use crate::kernels::facts::{input_dims, same_type};
use crate::kernels::function;
use crate::kernels::number::{Real, by_type};
use lowtide_core::DType;
use lowtide_core::operator::{
    Call, Fact, Input, Kernel, KernelError, KernelValue, NoKernel, Operands,
};

pub(crate) fn likelihood(
    call: &Call<'_>,
    _: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let loss = Loss::new(call, false)?;
    by_type!(call.dtype(0), [F32: f32, F64: f64], kernel(loss))
}

pub(crate) fn cross_entropy(
    call: &Call<'_>,
    _: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let loss = Loss::new(call, true)?;
    by_type!(call.dtype(0), [F32: f32, F64: f64], kernel(loss))
}

fn kernel<T: Real>(loss: Loss) -> Box<dyn Kernel> {
    function(move |operands| match operands.input(1)?.dtype {
        DType::I32 => loss.run::<T, i32>(operands),
        _ => loss.run::<T, i64>(operands),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduction {
    None,
    Sum,
    Mean,
}

#[derive(Clone, Copy, Debug)]
struct Loss {
    classes: usize,
    inner: usize,
    ignored: Option<i64>,
    reduction: Reduction,
    /// Whether scores become logarithms of shares first.
    is_entropy: bool,
}

impl Loss {
    fn new(call: &Call<'_>, is_entropy: bool) -> Result<Self, NoKernel> {
        same_type(call, 2)?;
        let (x, labels) = (input_dims(call, 0)?, input_dims(call, 1)?);
        let misfit = || NoKernel::Misfit(format!("scores {x:?} and labels {labels:?}"));
        let [batch, classes, inner @ ..] = x.as_slice() else { return Err(misfit()) };
        if labels.split_first() != Some((batch, inner)) {
            return Err(misfit());
        }
        if call.has(2) && input_dims(call, 2)? != [*classes] {
            return Err(NoKernel::Misfit(format!("not one weight for each of {classes} classes")));
        }
        let reduction = match call.text("reduction").unwrap_or("mean") {
            "none" => Reduction::None,
            "sum" => Reduction::Sum,
            "mean" => Reduction::Mean,
            other => return Err(NoKernel::Misfit(format!("reduction is `{other}`"))),
        };
        let inner = if inner.contains(&0) { 0 } else { inner.iter().product() };
        let ignored = call.int("ignore_index");
        Ok(Self { classes: *classes, inner, ignored, reduction, is_entropy })
    }

    fn run<T: Real, L: KernelValue + Into<i64>>(
        &self,
        operands: &mut Operands<'_>,
    ) -> Result<(), KernelError> {
        let x = operands.input(0)?.values::<T>()?;
        let labels = operands.input(1)?.values::<L>()?;
        let weights = operands.optional(2).map(Input::values::<T>).transpose()?;
        let mut outputs = operands.outputs.iter_mut().map(Option::as_mut);
        let mut next =
            || outputs.next().flatten().map(|output| output.values_mut::<T>()).transpose();
        let (mut loss, mut logarithms) = (next()?, next()?);
        let (mut sum, mut weight_sum) = (0.0, 0.0);
        for (at, &label) in labels.iter().enumerate() {
            let start = at / self.inner * self.classes * self.inner + at % self.inner;
            let shift = if self.is_entropy { self.shift(x, start) } else { 0.0 };
            if let Some(all) = logarithms.as_deref_mut() {
                self.shift_all(x, all, (start, shift));
            }
            let class = self.class(label.into())?;
            let weight = class.map_or(0.0, |c| weights.map_or(1.0, |w| w[c].to_f64()));
            // What is ignored is not even looked at: it may be no number.
            let of = |class: usize| weight * (shift - x[start + class * self.inner].to_f64());
            let one = class.map_or(0.0, of);
            (sum, weight_sum) = (sum + one, weight_sum + weight);
            if let Some(loss) = loss.as_deref_mut().filter(|_| self.reduction == Reduction::None) {
                loss[at] = T::of_f64(one);
            }
        }
        let folded = if self.reduction == Reduction::Mean { sum / weight_sum } else { sum };
        if let Some(loss) = loss.filter(|_| self.reduction != Reduction::None) {
            loss[0] = T::of_f64(folded);
        }
        Ok(())
    }

    /// The class of a label; none if it is to be ignored.
    fn class(&self, label: i64) -> Result<Option<usize>, KernelError> {
        if Some(label) == self.ignored {
            return Ok(None);
        }
        let class = usize::try_from(label).ok().filter(|&class| class < self.classes);
        let error = || KernelError::Value(format!("label {label}, of {} classes", self.classes));
        class.map(Some).ok_or_else(error)
    }

    /// The logarithm of the sum of the exponentials of one line of scores.
    fn shift<T: Real>(&self, x: &[T], start: usize) -> f64 {
        let line = || (0..self.classes).map(|class| x[start + class * self.inner].to_f64());
        let most = line().fold(f64::NEG_INFINITY, f64::max);
        most + line().map(|score| (score - most).exp()).sum::<f64>().ln()
    }

    fn shift_all<T: Real>(&self, x: &[T], out: &mut [T], (start, shift): (usize, f64)) {
        for at in (0..self.classes).map(|class| start + class * self.inner) {
            out[at] = T::of_f64(x[at].to_f64() - shift);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{fails, refuses, run, runs};

    const X: &str = "weight x 2 3 = 1 2 4 8 16 32";

    fn likelihood(labels: &str, call: &str, wanted: &str) {
        let labels = format!("weight t i64 2 = {labels}");
        runs(
            &[X, &labels, "weight w 3 = 1 2 3", &format!("y = NegativeLogLikelihoodLoss({call}")],
            wanted,
        );
    }

    #[test]
    fn a_likelihood_is_weighed() {
        likelihood("0 2", "x, t) {reduction=none}", "float32 [2] -1 -32");
        likelihood("0 2", "x, t)", "float32 [] -16.5");
        likelihood("0 2", "x, t, w) {reduction=sum}", "float32 [] -97");
        likelihood("0 2", "x, t, w)", "float32 [] -24.25");
        likelihood("1 2", "x, t) {ignore_index=2}", "float32 [] -2");
    }

    #[test]
    fn an_entropy_is_the_likelihood_of_shares() {
        let lines = ["weight x 1 2 2 = 0 9 0 9", "weight t i32 1 2 = 0 1"];
        let found = run(&[lines[0], lines[1], "y; l = SoftmaxCrossEntropyLoss(x, t)"], "y l");
        assert_eq!(found[0], "float32 [] 0.6931472");
        assert_eq!(found[1], "float32 [1, 2, 2] -0.6931472 -0.6931472 -0.6931472 -0.6931472");
    }

    #[test]
    fn labels_name_classes() {
        let call = "y = NegativeLogLikelihoodLoss(x, t)";
        fails(&[X, "weight t i64 2 = 0 3", call], "label 3, of 3 classes");
        refuses(
            &["input x 2 3", "input t i64 3", call],
            "operator `NegativeLogLikelihoodLoss (op0)`: scores [2, 3] and labels [3]",
        );
    }
}
