//! [`Spread`]: how an input is broadcast to the output, and [`Reader`]: its elements, a piece of the output at a time.
//!
//! ~~~text
//! y [2, 3, 4]   pieces  |0 ...      |512 ...
//! a [2, 3, 4]   Same    a slice of it, without a copy
//! b []          One     a buffer full of it, filled once
//! c    [3, 1]   Steps   a buffer, filled run by run: c0 c0 c0 c0 c1 c1 ...
//! ~~~
//! With all inputs side by side, whatever is calculated is one loop over slices. The buffers stay in the nearest cache.

use crate::kernels::facts::{input_dims, output_dims};
use crate::kernels::strides::{Axis, Runs, Walk, check_rank, count, read_run};
use crate::kernels::types::elements;
use bytemuck::Pod;
use lowtide_core::operator::{Call, Fact, Input, KernelError, NoKernel, Operand, Operands};

/// Elements in a piece: small enough that those of all inputs stay in the nearest cache, large enough that a piece
/// costs nothing beside its elements.
pub(super) const PIECE: usize = 512;

/// How the elements of an input fall on those of the output.
#[derive(Clone, Debug)]
pub(super) enum Spread {
    /// Each on one.
    Same,
    /// One on all.
    One,
    /// In another way, which a walk through the input says.
    Steps(Box<Walk>),
}

/// How input `at` is broadcast to the first output.
pub(super) fn spread(
    call: &Call<'_>,
    at: usize,
    outputs: &[Option<&Fact>],
) -> Result<Spread, NoKernel> {
    let (mut from, to) = (input_dims(call, at)?, output_dims(outputs, 0)?);
    let behind = axes_behind(call, at, &from, &to);
    from.extend(std::iter::repeat_n(1, behind));
    check_rank(&to)?;
    let misfit = || NoKernel::Misfit(format!("{from:?} cannot be broadcast to {to:?}"));
    let walk = Walk::broadcast(&from, &to).ok_or_else(misfit)?;
    Ok(match (count(&from), count(&to)) {
        (from, to) if from == to => Spread::Same,
        (1, _) => Spread::One,
        _ => Spread::Steps(Box::new(walk)),
    })
}

/// How many axes of the output stand behind the last one of an input. None, but that before version 7 an attribute said
/// with which axis the second input begins, and slopes were those of channels.
fn axes_behind(call: &Call<'_>, at: usize, from: &[usize], to: &[usize]) -> usize {
    if call.opset >= 7 || at != 1 {
        return 0;
    }
    let is_slopes = call.op.kind == "PRelu" && from.len() == 1 && from != [1];
    let axis = if is_slopes { Some(1) } else { call.int("axis") };
    let begin = axis.and_then(|axis| usize::try_from(axis).ok());
    begin.and_then(|begin| to.len().checked_sub(from.len())?.checked_sub(begin)).unwrap_or(0)
}

/// The element of an input that is broadcast to all of the output, if it has one.
pub(super) fn one<T: Pod>(input: Input<'_>, spread: &Spread) -> Option<T> {
    match spread {
        Spread::One => elements(input).ok()?.first().copied(),
        _ => None,
    }
}

/// Elements side by side, as many as a piece has.
pub(super) type Buffer<T> = [T; PIECE];

/// Where the elements of an input are.
#[expect(clippy::large_enum_variant, reason = "a box would be allocated while the model runs")]
enum Place<'a, T> {
    /// In the output, each where it is needed.
    Output,
    Slice(&'a [T]),
    One(T),
    Steps(&'a [T], &'a Walk, Runs<'a>),
}

/// An input, read from some element on, as it is broadcast.
pub(super) struct Source<'a, T> {
    place: Place<'a, T>,
    /// The next element, or the next in a run.
    at: usize,
    /// What is left of the run.
    left: usize,
}

impl<'a, T: Pod> Source<'a, T> {
    /// From the element on that falls on element `start` of an output of type `Y`.
    pub(super) fn new<Y>(
        input: Input<'a>,
        spread: &'a Spread,
        start: usize,
    ) -> Result<Self, KernelError> {
        let of = |place| Self { place, at: start, left: 0 };
        if input.is_in(0) && matches!(spread, Spread::Same) && size_of::<T>() == size_of::<Y>() {
            return Ok(of(Place::Output));
        }
        let from = elements::<T>(input)?;
        Ok(match (spread, from) {
            (Spread::Same, _) => of(Place::Slice(from)),
            (Spread::One, [one, ..]) => of(Place::One(*one)),
            (Spread::One, []) => {
                let (operand, wanted) = (Operand::Input(input.at), size_of::<T>());
                return Err(KernelError::Bytes { operand, found: 0, wanted });
            }
            (Spread::Steps(walk), _) => Self::steps(from, walk, start),
        })
    }

    fn steps(from: &'a [T], walk: &'a Walk, start: usize) -> Self {
        let Axis { len, step } = walk.run();
        let (skipped, within) = (start / len.max(1), start % len.max(1));
        let mut runs = walk.runs_from(skipped);
        let (at, left) = runs.next().map_or((0, 0), |at| {
            (at.wrapping_add_signed(step.wrapping_mul(within.cast_signed())), len - within)
        });
        Self { place: Place::Steps(from, walk, runs), at, left }
    }

    /// The next elements, as many as this piece of the output has; in the buffer if they are not a slice already.
    #[inline]
    pub(super) fn read<'b, Y: Pod>(&mut self, piece: &[Y], buffer: &'b mut Buffer<T>) -> &'b [T]
    where
        'a: 'b,
    {
        let buffer = &mut buffer[..piece.len()];
        match &self.place {
            Place::Slice(from) => {
                self.at += piece.len();
                return &from[self.at - piece.len()..self.at];
            }
            Place::One(one) => buffer.fill(*one),
            Place::Output => {
                let bytes: &mut [u8] = bytemuck::cast_slice_mut(buffer);
                bytes.copy_from_slice(bytemuck::cast_slice(piece));
            }
            Place::Steps(..) => self.read_steps(buffer),
        }
        buffer
    }

    fn read_steps(&mut self, buffer: &mut [T]) {
        let Place::Steps(from, walk, runs) = &mut self.place else { return };
        let Axis { len, step } = walk.run();
        let mut rest = buffer;
        while !rest.is_empty() {
            if self.left == 0 {
                let Some(at) = runs.next() else { return };
                (self.at, self.left) = (at, len);
            }
            let count = self.left.min(rest.len());
            let (now, later) = rest.split_at_mut(count);
            read_run(from, self.at, step, now);
            self.at = self.at.wrapping_add_signed(step.wrapping_mul(count.cast_signed()));
            self.left -= count;
            rest = later;
        }
    }
}

/// An input with a buffer of its own, read from the first element to the last.
pub(super) struct Reader<'a, T> {
    source: Source<'a, T>,
    buffer: Buffer<T>,
}

impl<'a, T: Pod> Reader<'a, T> {
    /// Of input 0, which has to have as many elements as output 0, of type `Y`.
    pub(super) fn of_first<Y>(operands: &mut Operands<'a>) -> Result<Self, KernelError> {
        let (input, wanted) = (operands.input(0)?, operands.output(0)?.len());
        if input.len() != wanted {
            let found = input.len();
            let text = format!("input 0 has {found} elements, the output {wanted}");
            return Err(KernelError::Value(text));
        }
        Self::new::<Y>(input, &Spread::Same)
    }

    /// For an output with elements of type `Y`.
    pub(super) fn new<Y>(input: Input<'a>, spread: &'a Spread) -> Result<Self, KernelError> {
        let source = Source::new::<Y>(input, spread, 0)?;
        let all = if let Place::One(one) = source.place { one } else { T::zeroed() };
        Ok(Self { source, buffer: [all; PIECE] })
    }

    /// The next elements, as many as this piece of the output has.
    #[inline]
    pub(super) fn read<Y: Pod>(&mut self, piece: &[Y]) -> &[T] {
        match self.source.place {
            // It fills the buffer from the beginning.
            Place::One(_) => &self.buffer[..piece.len()],
            _ => self.source.read(piece, &mut self.buffer),
        }
    }
}
