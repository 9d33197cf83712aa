//! [`Shape`]: the sizes of a recurrent layer, and where the pieces of its tensors are.
//!
//! ~~~text
//! layout 0   x [steps, batch, input]   y [steps, directions, batch, hidden]   h, c [directions, batch, hidden]
//! layout 1   x [batch, steps, input]   y [batch, steps, directions, hidden]   h, c [batch, directions, hidden]
//! w [directions, gates * hidden, input]   r [directions, gates * hidden, hidden]     transposed if they are bytes
//! ~~~

use super::at;
use super::scratch::block_steps;
use crate::kernels::facts::{dims, input_dims};
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact, NoKernel};

#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) steps: usize,
    pub(super) batch: usize,
    pub(super) input: usize,
    pub(super) hidden: usize,
    pub(super) directions: usize,
    /// Of one sequence in one step: so many times the hidden size.
    pub(super) gates: usize,
    pub(super) is_batch_first: bool,
    /// Whether the first direction is from the end.
    is_reverse: bool,
}

/// How the weights lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// `[directions, gates, inner]`
    GatesFirst,
    /// `[directions, inner, gates]`
    InnerFirst,
}

impl Shape {
    /// Of a layer whose cell has so many gates. All operands fit together then.
    pub(super) fn new(
        call: &Call<'_>,
        outputs: &[Option<&Fact>],
        gates: usize,
        order: Order,
    ) -> Result<Self, NoKernel> {
        let shape = Self::read(call, gates, order)?;
        shape.check_inputs(call, order)?;
        shape.check_outputs(outputs)?;
        Ok(shape)
    }

    fn read(call: &Call<'_>, gates: usize, order: Order) -> Result<Self, NoKernel> {
        let (x, r) = (input_dims(call, at::X)?, input_dims(call, at::R)?);
        let (&[outer, inner, input], &[_, first, second]) = (&x[..], &r[..]) else {
            return Err(NoKernel::Misfit(format!("inputs of shapes {x:?} and {r:?}")));
        };
        let is_batch_first = call.flag("layout");
        let (steps, batch) = if is_batch_first { (inner, outer) } else { (outer, inner) };
        let hidden = if order == Order::GatesFirst { second } else { first };
        let (directions, is_reverse) = match call.text("direction") {
            None | Some("forward") => (1, false),
            Some("reverse") => (1, true),
            Some("bidirectional") => (2, false),
            Some(other) => return Err(NoKernel::Misfit(format!("the direction {other}"))),
        };
        let all = gates.checked_mul(hidden);
        let gates = all.ok_or_else(|| NoKernel::Misfit(format!("a hidden size of {hidden}")))?;
        Ok(Self { steps, batch, input, hidden, directions, gates, is_batch_first, is_reverse })
    }

    fn check_inputs(&self, call: &Call<'_>, order: Order) -> Result<(), NoKernel> {
        let Self { batch, input, hidden, directions, gates, .. } = *self;
        let weight = |inner| match order {
            Order::GatesFirst => [directions, gates, inner],
            Order::InnerFirst => [directions, inner, gates],
        };
        check(call, at::W, &weight(input))?;
        check(call, at::R, &weight(hidden))?;
        check(call, at::BIAS, &[directions, gates.saturating_mul(2)])?;
        check(call, at::LENS, &[batch])?;
        check(call, at::H, &self.state())?;
        if call.op.kind.ends_with("LSTM") {
            check(call, at::C, &self.state())?;
            check(call, at::PEEPHOLES, &[directions, 3 * hidden])?;
        } else if call.has(at::C) || call.has(at::PEEPHOLES) || call.output_count() > 2 {
            return Err(NoKernel::Misfit("operands that only an LSTM has".to_owned()));
        }
        let attribute = call.int("hidden_size").map(usize::try_from);
        if attribute.is_some_and(|size| size != Ok(hidden)) {
            return Err(NoKernel::Misfit(format!("hidden_size is not {hidden}")));
        }
        if call.has(at::LENS) && call.dtype(at::LENS) != Some(DType::I32) {
            return Err(NoKernel::Unsupported("lengths of sequences of another type".to_owned()));
        }
        Ok(())
    }

    fn check_outputs(&self, outputs: &[Option<&Fact>]) -> Result<(), NoKernel> {
        let Self { steps, batch, hidden, directions, is_batch_first, .. } = *self;
        let all = if is_batch_first {
            vec![batch, steps, directions, hidden]
        } else {
            vec![steps, directions, batch, hidden]
        };
        let wanted = [all, self.state().to_vec(), self.state().to_vec()];
        for (output, wanted) in outputs.iter().zip(wanted) {
            let Some(output) = output else { continue };
            if dims(output)? != wanted {
                return Err(NoKernel::Misfit(format!("an output that is not {wanted:?}")));
            }
        }
        Ok(())
    }

    fn state(&self) -> [usize; 3] {
        let Self { batch, hidden, directions, .. } = *self;
        if self.is_batch_first { [batch, directions, hidden] } else { [directions, batch, hidden] }
    }

    /// Whether a direction is from the end.
    pub(super) fn is_backward(&self, direction: usize) -> bool {
        self.is_reverse || direction == 1
    }

    /// Steps whose inputs are multiplied together.
    pub(super) fn block(&self) -> usize {
        block_steps(self.steps, self.batch, self.is_batch_first)
    }

    /// Where a sequence's state of a direction is in `h` and `c`.
    pub(super) fn state_at(&self, direction: usize, row: usize) -> usize {
        let Self { batch, hidden, directions, .. } = *self;
        let place = if self.is_batch_first {
            row * directions + direction
        } else {
            direction * batch + row
        };
        place * hidden
    }

    /// Where its state at a time is in `y`.
    pub(super) fn y_at(&self, direction: usize, time: usize, row: usize) -> usize {
        let Self { steps, batch, hidden, directions, .. } = *self;
        let place = if self.is_batch_first {
            (row * steps + time) * directions + direction
        } else {
            (time * directions + direction) * batch + row
        };
        place * hidden
    }
}

/// That an input, if it is there, has this shape.
pub(super) fn check(call: &Call<'_>, at: usize, wanted: &[usize]) -> Result<(), NoKernel> {
    if at > at::R && !call.has(at) {
        return Ok(());
    }
    let found = input_dims(call, at)?;
    if found == wanted {
        return Ok(());
    }
    Err(NoKernel::Misfit(format!("input {at} is {found:?}, wanted {wanted:?}")))
}
