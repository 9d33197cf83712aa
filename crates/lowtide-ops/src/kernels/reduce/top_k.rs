//! `TopK`: the largest or smallest elements of each line, in order, and where they were.
//!
//! ~~~text
//! 3 9 1 7 ──2──> 9 7, from 1 3      scratch: the places of one line, the first k of which are found and sorted
//! ~~~
//! Of equal elements the one with the lower place comes first.

use super::lines::Lines;
use crate::kernels::facts::output_dims;
use crate::kernels::function;
use crate::kernels::number::{Number, by_type};
use lowtide_core::operator::{Call, Fact, Kernel, KernelError, NoKernel, Operand, Operands, call};
use std::cmp::Ordering;

pub(crate) fn top_k(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let lines = Lines::read(call, -1)?;
    if u32::try_from(lines.along).is_err() {
        return Err(NoKernel::Unsupported("lines of 4294967296 elements".to_owned()));
    }
    let wanted = outputs.iter().position(Option::is_some).unwrap_or(0);
    let out = output_dims(outputs, wanted)?;
    let axis = call::axis(call.int_or("axis", -1), out.len())?;
    let k = out[axis];
    if k > lines.along {
        return Err(NoKernel::Misfit(format!("the first {k} of {} elements", lines.along)));
    }
    let smallest = call.int_or("largest", 1) == 0;
    let top = Top { lines, k, before: if smallest { Ordering::Less } else { Ordering::Greater } };
    by_type!(
        call.dtype(0),
        [F32: f32, F64: f64, I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64],
        of(top)
    )
}

fn of<T: Number>(top: Top) -> Box<dyn Kernel> {
    function(move |operands| top.run::<T>(operands))
}

struct Top {
    lines: Lines,
    k: usize,
    /// How an element compares to those that come after it.
    before: Ordering,
}

impl Top {
    fn run<T: Number>(&self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        check_k(operands, self.k)?;
        let x = operands.input(0)?.values::<T>()?;
        let found = operands.scratch.len();
        let wanted = self.lines.along * size_of::<u32>();
        let (values, places) = match operands.outputs.split_first_mut() {
            Some((values, rest)) => (values.as_mut(), rest.first_mut().and_then(Option::as_mut)),
            None => (None, None),
        };
        let values = values.map(|values| values.values_mut::<T>()).transpose()?;
        let places = places.map(|places| places.values_mut::<i64>()).transpose()?;
        let scratch = operands.scratch.get_mut(..wanted);
        let order = scratch.and_then(|scratch| bytemuck::try_cast_slice_mut(scratch).ok());
        let order = order.ok_or(KernelError::Bytes { operand: Operand::Scratch, found, wanted })?;
        self.all(x, order, values.unwrap_or_default(), places.unwrap_or_default());
        Ok(())
    }

    fn all<T: Number>(&self, x: &[T], order: &mut [u32], values: &mut [T], places: &mut [i64]) {
        let Lines { outer, inner, .. } = self.lines;
        for line in 0..outer * inner {
            let (slab, col) = (line / inner, line % inner);
            let x = &x[slab * self.lines.slab()..][..self.lines.slab()];
            self.select(x, col, order);
            let out = slab * self.k * inner + col;
            for (at, &place) in order[..self.k].iter().enumerate() {
                if let Some(value) = values.get_mut(out + at * inner) {
                    *value = x[place as usize * inner + col];
                }
                if let Some(slot) = places.get_mut(out + at * inner) {
                    *slot = place.into();
                }
            }
        }
    }

    /// Brings the first places to the front, in order.
    fn select<T: Number>(&self, x: &[T], col: usize, order: &mut [u32]) {
        let inner = self.lines.inner;
        let compare = |&a: &u32, &b: &u32| {
            let at = |place: u32| x[place as usize * inner + col];
            let ordering = compared(at(a), at(b));
            let forth = if self.before == Ordering::Less { ordering } else { ordering.reverse() };
            forth.then(a.cmp(&b))
        };
        for (place, at) in order.iter_mut().zip(0..) {
            *place = at;
        }
        if self.k == 0 {
            return;
        }
        if self.k < order.len() {
            order.select_nth_unstable_by(self.k - 1, compare);
        }
        order[..self.k].sort_unstable_by(compare);
    }
}

/// An order of all elements: what is not a number is larger than all others.
fn compared<T: Number>(a: T, b: T) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// That the k of this run is the one that was planned for.
fn check_k(operands: &Operands<'_>, planned: usize) -> Result<(), KernelError> {
    let Some(input) = operands.optional(1) else { return Ok(()) };
    match input.values::<i64>()? {
        &[k] if usize::try_from(k) == Ok(planned) => Ok(()),
        other => Err(KernelError::Value(format!("k is {other:?}, planned for {planned}"))),
    }
}
