//! [`Layer`]: runs a cell over sequences, from either end.
//!
//! ~~~text
//! time       0 1 2 3 4        sequences of 5 and of 3 steps
//! row 0      > > > > >        forward: row 1 ends after time 2, and keeps its state
//! row 1      > > > 0 0        backward: row 1 begins at time 2, and until then keeps the state that it begins with
//! ~~~
//! So at a time a row is in its sequence or not, whatever the direction. Where it is not, `y` is 0. A sequence without
//! steps has last states of 0, as ONNX Runtime has it; the text of the operators does not say.

use super::at;
use super::shape::Shape;
use super::weights::{Element, Weights};
use crate::kernels::compute::product::Matrix;
use lowtide_core::operator::{Input, KernelError, KernelValue, Operand, Operands, Output};

/// What differs between the operators.
pub(super) trait Cell {
    /// The bias of a direction, as it is added to the products with the input: all of it, if it may be.
    fn add_bias<T: Element>(&self, out: &mut [T], given: &[T]) {
        let (w, r) = given.split_at(out.len());
        for (out, (w, r)) in out.iter_mut().zip(w.iter().zip(r)) {
            *out = *w + *r;
        }
    }

    /// Moves the states of all rows that are in their sequences to the next step.
    fn step<T: Element>(
        &self,
        step: Step<'_, T>,
        weights: &mut impl Weights<T>,
    ) -> Result<(), KernelError>;
}

/// What a cell works on.
pub(super) struct Step<'a, T> {
    pub(super) shape: &'a Shape,
    pub(super) direction: usize,
    /// Products with the input, `[batch, gates]`; room to work in, too.
    pub(super) gates: &'a mut [T],
    /// `[batch, hidden]`
    pub(super) h: &'a mut [T],
    /// `[batch, states - 1, hidden]` or room of that size.
    pub(super) rest: &'a mut [T],
    pub(super) rows: Rows<'a>,
    pub(super) given: Given<'a, T>,
}

/// Which rows are in their sequences at a time.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    lens: Option<&'a [i32]>,
    time: usize,
}

impl Rows<'_> {
    pub(super) fn has(self, row: usize) -> bool {
        let Some(&len) = self.lens.and_then(|lens| lens.get(row)) else { return true };
        usize::try_from(len).is_ok_and(|len| self.time < len)
    }
}

/// What is read, beside weights.
#[derive(Clone, Copy)]
pub(super) struct Given<'a, T> {
    pub(super) x: &'a [T],
    pub(super) bias: Option<&'a [T]>,
    lens: Option<&'a [i32]>,
    h: Option<&'a [T]>,
    c: Option<&'a [T]>,
    peepholes: Option<&'a [T]>,
}

impl<'a, T: KernelValue> Given<'a, T> {
    pub(super) fn read(operands: &Operands<'a>, shape: &Shape) -> Result<Self, KernelError> {
        let of = |at| operands.optional(at).map(Input::values::<T>).transpose();
        let lens = operands.optional(at::LENS).map(Input::values::<i32>).transpose()?;
        let fits = |&len: &i32| usize::try_from(len).is_ok_and(|len| len <= shape.steps);
        if let Some(len) = lens.unwrap_or_default().iter().find(|len| !fits(len)) {
            let message = format!("a sequence of {len} steps, wanted 0 to {}", shape.steps);
            return Err(KernelError::Value(message));
        }
        Ok(Self {
            x: operands.input(at::X)?.values()?,
            bias: of(at::BIAS)?,
            lens,
            h: of(at::H)?,
            c: of(at::C)?,
            peepholes: of(at::PEEPHOLES)?,
        })
    }

    /// Whether a row is in no sequence at any time.
    fn is_empty(&self, row: usize) -> bool {
        !Rows { lens: self.lens, time: 0 }.has(row)
    }

    /// Those of input, output and forget gate of a direction.
    pub(super) fn peepholes(&self, direction: usize, hidden: usize) -> Option<[&'a [T]; 3]> {
        let all = &self.peepholes?[direction * 3 * hidden..][..3 * hidden];
        let (input, rest) = all.split_at(hidden);
        let (output, forget) = rest.split_at(hidden);
        Some([input, output, forget])
    }
}

/// What is written.
struct Outputs<'a, T> {
    y: Option<&'a mut [T]>,
    h: Option<&'a mut [T]>,
    c: Option<&'a mut [T]>,
}

impl<'a, T: KernelValue> Outputs<'a, T> {
    fn of(outputs: &'a mut [Option<Output<'_>>]) -> Result<Self, KernelError> {
        let mut all = outputs.iter_mut();
        let mut next = || all.next().and_then(Option::as_mut).map(Output::values_mut).transpose();
        Ok(Self { y: next()?, h: next()?, c: next()? })
    }
}

/// The memory of a direction.
struct Memory<'a, T> {
    bias: Option<&'a mut [T]>,
    gates: &'a mut [T],
    h: &'a mut [T],
    rest: &'a mut [T],
}

/// A run of a layer.
pub(super) struct Layer<'a, T, C> {
    pub(super) shape: &'a Shape,
    pub(super) cell: &'a C,
    pub(super) given: Given<'a, T>,
}

/// Scratch memory as elements.
pub(super) fn scratch<T: KernelValue>(bytes: &mut [u8]) -> Result<&mut [T], KernelError> {
    let found = bytes.len();
    let whole = found - found % size_of::<T>();
    let cast = bytemuck::try_cast_slice_mut(&mut bytes[..whole]);
    cast.map_err(|_| KernelError::Bytes { operand: Operand::Scratch, found, wanted: whole })
}

impl<T: Element, C: Cell> Layer<'_, T, C> {
    /// Runs all directions; of `states` times the hidden size is what it remembers of a row.
    pub(super) fn run(
        &self,
        weights: &mut impl Weights<T>,
        memory: &mut [T],
        outputs: &mut [Option<Output<'_>>],
    ) -> Result<(), KernelError> {
        let mut outputs = Outputs::of(outputs)?;
        if self.shape.batch * self.shape.hidden == 0 {
            return Ok(());
        }
        let mut memory = self.split(memory)?;
        for direction in 0..self.shape.directions {
            self.begin(direction, &mut memory);
            self.run_direction(direction, weights, &mut memory, &mut outputs)?;
            self.finish(direction, &memory, &mut outputs);
        }
        Ok(())
    }

    fn split<'m>(&self, memory: &'m mut [T]) -> Result<Memory<'m, T>, KernelError> {
        let Shape { batch, hidden, gates, .. } = *self.shape;
        let of_bias = if self.given.bias.is_some() { gates } else { 0 };
        let sizes = [of_bias, self.shape.block() * batch * gates, batch * hidden];
        let (found, wanted) = (memory.len(), sizes.iter().sum::<usize>());
        let short = KernelError::Bytes { operand: Operand::Scratch, found, wanted };
        let Some((bias, memory)) = memory.split_at_mut_checked(sizes[0]) else { return Err(short) };
        let Some((gates, memory)) = memory.split_at_mut_checked(sizes[1]) else {
            return Err(short);
        };
        let Some((h, rest)) = memory.split_at_mut_checked(sizes[2]) else { return Err(short) };
        let bias = (of_bias > 0).then_some(bias);
        Ok(Memory { bias, gates, h, rest })
    }

    /// Sets the states to what a direction begins with.
    fn begin(&self, direction: usize, memory: &mut Memory<'_, T>) {
        let Shape { hidden, gates, .. } = *self.shape;
        if let (Some(out), Some(given)) = (&mut memory.bias, self.given.bias) {
            self.cell.add_bias(out, &given[direction * 2 * gates..][..2 * gates]);
        }
        memory.h.fill(T::ZERO);
        memory.rest.fill(T::ZERO);
        let states = [(&mut memory.h, self.given.h), (&mut memory.rest, self.given.c)];
        for (state, given) in states {
            let Some(given) = given else { continue };
            for (row, state) in state.chunks_exact_mut(hidden).take(self.shape.batch).enumerate() {
                let from = self.shape.state_at(direction, row);
                state.copy_from_slice(&given[from..][..hidden]);
            }
        }
    }

    fn run_direction(
        &self,
        direction: usize,
        weights: &mut impl Weights<T>,
        memory: &mut Memory<'_, T>,
        outputs: &mut Outputs<'_, T>,
    ) -> Result<(), KernelError> {
        let Shape { steps, batch, gates, .. } = *self.shape;
        let (block, is_backward) = (self.shape.block().max(1), self.shape.is_backward(direction));
        for at in turned(steps.div_ceil(block), is_backward) {
            let from = at * block;
            let count = block.min(steps - from);
            let out = &mut memory.gates[..count * batch * gates];
            weights.of_input(direction, out, self.input(from, count), memory.bias.as_deref())?;
            for at in turned(count, is_backward) {
                let rows = Rows { lens: self.given.lens, time: from + at };
                let step = Step {
                    shape: self.shape,
                    direction,
                    gates: &mut memory.gates[at * batch * gates..][..batch * gates],
                    h: memory.h,
                    rest: memory.rest,
                    rows,
                    given: self.given,
                };
                self.cell.step(step, weights)?;
                self.write(direction, rows, memory.h, outputs);
            }
        }
        Ok(())
    }

    /// The inputs of so many steps, a row a sequence and step.
    fn input(&self, from: usize, count: usize) -> Matrix<'_, T> {
        let Shape { steps, batch, input, is_batch_first, .. } = *self.shape;
        if is_batch_first && batch != 1 {
            let data = &self.given.x[from * input..];
            return Matrix { row_stride: steps * input, ..Matrix::new(data, batch, input) };
        }
        let x = &self.given.x[from * batch * input..][..count * batch * input];
        Matrix::new(x, count * batch, input)
    }

    fn write(&self, direction: usize, rows: Rows<'_>, h: &[T], outputs: &mut Outputs<'_, T>) {
        let Some(y) = &mut outputs.y else { return };
        let hidden = self.shape.hidden;
        for (row, h) in h.chunks_exact(hidden).enumerate() {
            let y = &mut y[self.shape.y_at(direction, rows.time, row)..][..hidden];
            if rows.has(row) { y.copy_from_slice(h) } else { y.fill(T::ZERO) }
        }
    }

    /// Writes the last states of a direction.
    fn finish(&self, direction: usize, memory: &Memory<'_, T>, outputs: &mut Outputs<'_, T>) {
        let Shape { batch, hidden, .. } = *self.shape;
        for (out, state) in [(&mut outputs.h, &*memory.h), (&mut outputs.c, &*memory.rest)] {
            let Some(out) = out else { continue };
            for (row, state) in state.chunks_exact(hidden).take(batch).enumerate() {
                let out = &mut out[self.shape.state_at(direction, row)..][..hidden];
                out.copy_from_slice(state);
                if self.given.is_empty(row) {
                    out.fill(T::ZERO);
                }
            }
        }
    }
}

/// Places from the first to the last, or from the last to the first.
fn turned(count: usize, is_backward: bool) -> impl Iterator<Item = usize> {
    (0..count).map(move |at| if is_backward { count - 1 - at } else { at })
}
