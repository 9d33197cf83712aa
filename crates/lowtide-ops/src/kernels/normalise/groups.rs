//! `InstanceNormalization` and `GroupNormalization`: channels, or groups of them, scaled by their own statistics.
//!
//! ~~~text
//! [n, c, h, w]    each channel of each image: mean 0, variance 1; then a scale and a bias a channel
//! [n, g*k, h, w]  each k channels of each image; then a scale and a bias a channel, in early versions a group
//! ~~~

use super::place::each_part;
use super::statistics::{centre, moments, scale};
use crate::kernels::facts::{input_dims, same_type};
use crate::kernels::function;
use crate::kernels::number::{Real, by_type};
use lowtide_core::operator::{Call, Fact, Kernel, KernelError, NoKernel, Operands};

pub(crate) fn instance(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    let channels = input_dims(call, 0)?.get(1).copied().unwrap_or(0);
    make(call, channels)
}

pub(crate) fn group(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    let groups = call.int("num_groups").and_then(|groups| usize::try_from(groups).ok());
    make(call, groups.unwrap_or(0))
}

fn make(call: &Call<'_>, groups: usize) -> Result<Box<dyn Kernel>, NoKernel> {
    let dims = input_dims(call, 0)?;
    let Some(&channels) = dims.get(1) else {
        return Err(NoKernel::Misfit(format!("{dims:?} has no channels")));
    };
    if channels != 0 && (groups == 0 || !channels.is_multiple_of(groups)) {
        return Err(NoKernel::Misfit(format!("{channels} channels in {groups} groups")));
    }
    let scales = input_dims(call, 1)?;
    for at in 1..3 {
        same_type(call, at)?;
        let dims = input_dims(call, at)?;
        if dims != scales || (dims != [channels] && dims != [groups]) {
            return Err(NoKernel::Misfit(format!(
                "input {at} is {dims:?}, for {channels} channels"
            )));
        }
    }
    let groups = Groups {
        count: groups.max(1),
        channels: channels.checked_div(groups).unwrap_or(0),
        len: dims.iter().skip(2).product(),
        by_channel: scales == [channels],
        epsilon: call.float("epsilon").unwrap_or(1e-5),
    };
    by_type!(call.dtype(0), [F32: f32, F64: f64], of(groups))
}

fn of<T: Real>(groups: Groups) -> Box<dyn Kernel> {
    function(move |operands| groups.run::<T>(operands))
}

struct Groups {
    count: usize,
    /// In a group.
    channels: usize,
    /// Elements of a channel.
    len: usize,
    /// Whether scale and bias have an element a channel, and not a group.
    by_channel: bool,
    epsilon: f32,
}

impl Groups {
    fn run<T: Real>(&self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let (scales, biases) = (operands.input(1)?.values::<T>()?, operands.input(2)?.values()?);
        each_part::<T>(operands, self.channels * self.len, |at, part| {
            let group = at % self.count;
            let (mean, variance) = moments(part);
            let factor = (variance + f64::from(self.epsilon)).sqrt().recip();
            for (channel, row) in part.chunks_exact_mut(self.len).enumerate() {
                let at = if self.by_channel { group * self.channels + channel } else { group };
                centre(row, T::of_f64(mean), T::of_f64(factor));
                scale(row, scales[at], biases[at]);
            }
        })
    }
}
