//! `BatchNormalization` in inference: each channel scaled by statistics that are given.
//!
//! ~~~text
//! y = (x - mean) / sqrt(variance + epsilon) * scale + bias = x * factor + shift      once a channel
//! ~~~

use super::place::each_part;
use super::statistics::scale;
use crate::kernels::facts::{input_dims, same_type, unsupported};
use crate::kernels::function;
use crate::kernels::number::{Real, by_type};
use lowtide_core::operator::{Call, Fact, Kernel, KernelError, NoKernel, Operands};

pub(crate) fn batch(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let is_training = call.flag("training_mode") || outputs.iter().skip(1).any(Option::is_some);
    if is_training {
        return unsupported("training");
    }
    if call.int("spatial") == Some(0) {
        return unsupported("statistics of single elements");
    }
    let dims = input_dims(call, 0)?;
    let channels = dims.get(1).copied().unwrap_or(1);
    for at in 1..5 {
        same_type(call, at)?;
        if input_dims(call, at)? != [channels] {
            return Err(NoKernel::Misfit(format!("input {at} has not one element a channel")));
        }
    }
    let len = dims.iter().skip(2).product();
    let batch = Batch { channels, len, epsilon: call.float("epsilon").unwrap_or(1e-5) };
    by_type!(call.dtype(0), [F32: f32, F64: f64], of(batch))
}

fn of<T: Real>(batch: Batch) -> Box<dyn Kernel> {
    function(move |operands| batch.run::<T>(operands))
}

struct Batch {
    channels: usize,
    /// Elements of a channel.
    len: usize,
    epsilon: f32,
}

impl Batch {
    fn run<T: Real>(&self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let of = |at: usize| operands.input(at)?.values::<T>();
        let (scales, biases, means, variances) = (of(1)?, of(2)?, of(3)?, of(4)?);
        let epsilon = T::of_f64(self.epsilon.into());
        each_part::<T>(operands, self.len, |at, channel| {
            let at = at % self.channels;
            let factor = scales[at] / (variances[at] + epsilon).sqrt();
            scale(channel, factor, biases[at] - means[at] * factor);
        })
    }
}
