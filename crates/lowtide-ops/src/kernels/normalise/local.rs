//! `LRN`: each element scaled by those at the same place of neighbouring channels.
//!
//! ~~~text
//! channels  0 1 2 3 4 5      size 3: channel 3 is divided by (bias + alpha/3 * (x2² + x3² + x4²)) ^ beta
//!               [---]
//! ~~~

use crate::kernels::facts::input_dims;
use crate::kernels::function;
use crate::kernels::number::{Real, by_type};
use crate::kernels::vectorise::vectorised;
use lowtide_core::operator::{Call, Fact, Kernel, KernelError, NoKernel, Operands};

pub(crate) fn local_response(
    call: &Call<'_>,
    _: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let dims = input_dims(call, 0)?;
    let size = call.int("size").and_then(|size| u32::try_from(size).ok()).filter(|&size| size > 0);
    let (Some(size), [_, channels, image @ ..]) = (size, &dims[..]) else {
        return Err(NoKernel::Misfit(format!("no window over the channels of {dims:?}")));
    };
    let local = Local {
        channels: *channels,
        len: image.iter().product(),
        before: (size as usize - 1) / 2,
        behind: size as usize / 2,
        alpha: f64::from(call.float("alpha").unwrap_or(1e-4)) / f64::from(size),
        beta: call.float("beta").unwrap_or(0.75).into(),
        bias: call.float("bias").unwrap_or(1.0).into(),
    };
    by_type!(call.dtype(0), [F32: f32, F64: f64], of(local))
}

fn of<T: Real>(local: Local) -> Box<dyn Kernel> {
    function(move |operands| local.run::<T>(operands))
}

struct Local {
    channels: usize,
    /// Elements of a channel.
    len: usize,
    /// Channels before and behind one that it is scaled by.
    before: usize,
    behind: usize,
    /// Of one channel.
    alpha: f64,
    beta: f64,
    bias: f64,
}

impl Local {
    fn run<T: Real>(&self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let x = operands.input(0)?.values::<T>()?;
        let out = operands.values_mut::<T>(0)?;
        let image = self.channels * self.len;
        if out.is_empty() {
            return Ok(());
        }
        for (x, out) in x.chunks_exact(image).zip(out.chunks_exact_mut(image)) {
            for (channel, out) in out.chunks_exact_mut(self.len).enumerate() {
                vectorised(
                    #[inline(always)]
                    || self.channel(channel, x, out),
                );
            }
        }
        Ok(())
    }

    #[expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]
    #[inline(always)]
    fn channel<T: Real>(&self, channel: usize, x: &[T], out: &mut [T]) {
        let of = |channel: usize| &x[channel * self.len..][..self.len];
        let last = (channel + self.behind).min(self.channels - 1);
        out.fill(T::ZERO);
        for near in channel.saturating_sub(self.before)..=last {
            for (sum, &x) in out.iter_mut().zip(of(near)) {
                *sum += x * x;
            }
        }
        let (alpha, bias) = (T::of_f64(self.alpha), T::of_f64(self.bias));
        let beta = T::of_f64(self.beta);
        // The usual power is two square roots, which are calculated side by side.
        let is_usual = beta == T::of_f64(0.75);
        for (out, &x) in out.iter_mut().zip(of(channel)) {
            let sum = bias + alpha * *out;
            let root = sum.sqrt();
            let power = if is_usual { root * root.sqrt() } else { sum.powf(beta) };
            *out = x / power;
        }
    }
}
