//! [`Walk`]: the elements of one tensor in the order of another, as axes with steps.
//!
//! ~~~text
//! Transpose of x [2, 3]:    axes (3, step 1), (2, step 3)      x[0] x[3] | x[1] x[4] | x[2] x[5]
//! x [3] broadcast to [2,3]: axes (2, step 0), (3, step 1)      x[0] x[1] x[2] | x[0] x[1] x[2]
//!                                             └─ a run ─┘
//! ~~~
//! Neighbouring axes that one step could walk are one axis, and axes of length 1 are none: what is left of most shapes
//! is one or two axes with long runs. A walk lies on the stack, so that it can be made while a model runs.

use super::facts::unsupported;
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use lowtide_core::operator::NoKernel;

/// Tensors have at most so many axes. Models in use have 6.
pub(crate) const MAX_RANK: usize = 16;

/// Some walks have two axes for one of a tensor.
const MAX_AXES: usize = 2 * MAX_RANK;

/// That a tensor of this shape has no more axes than walks can have.
pub(crate) fn check_rank(dims: &[usize]) -> Result<(), NoKernel> {
    if dims.len() <= MAX_RANK { Ok(()) } else { unsupported(format!("rank {}", dims.len())) }
}

/// How far apart neighbours along each axis are, where rows lie one behind the other.
pub(crate) fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; dims.len()];
    for at in (1..dims.len()).rev() {
        // Of an empty tensor, whose other dimensions may be huge, no stride is used.
        strides[at - 1] = strides[at].saturating_mul(dims[at]);
    }
    strides
}

/// How many elements a tensor of this shape has.
pub(crate) fn count(dims: &[usize]) -> usize {
    if dims.contains(&0) { 0 } else { dims.iter().fold(1, |len, &dim| len.saturating_mul(dim)) }
}

/// A length, and how far apart neighbours are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Axis {
    /// How many there are.
    pub(crate) len: usize,
    /// From one to the next.
    pub(crate) step: isize,
}

/// Places in a tensor, visited axis by axis; the last axis is the fastest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    axes: [Axis; MAX_AXES],
    rank: usize,
    start: usize,
}

impl Walk {
    /// A visit of one place.
    pub(crate) fn at(start: usize) -> Self {
        Self { axes: [Axis::default(); MAX_AXES], rank: 0, start }
    }

    /// Does the whole walk `len` times, each time `step` further: an axis that is faster than all others.
    pub(crate) fn push(&mut self, len: usize, step: isize) {
        if len == 1 {
            return;
        }
        let whole = step.wrapping_mul(len.cast_signed());
        match self.axes[..self.rank].last_mut() {
            Some(outer) if outer.step == whole && outer.len != 0 => {
                *outer = Axis { len: outer.len.saturating_mul(len), step };
            }
            _ => {
                self.axes[self.rank] = Axis { len, step };
                self.rank += 1;
            }
        }
    }

    /// A tensor of shape `from` as it is broadcast to the shape `to`; `None` if it cannot be.
    pub(crate) fn broadcast(from: &[usize], to: &[usize]) -> Option<Self> {
        let added = to.len().checked_sub(from.len())?;
        let strides = strides(from);
        let mut walk = Self::at(0);
        for (axis, &len) in to.iter().enumerate() {
            let own = axis.checked_sub(added).map(|own| (from[own], strides[own]));
            match own {
                None | Some((1, _)) => walk.push(len, 0),
                Some((own, stride)) if own == len => walk.push(len, stride.cast_signed()),
                Some(_) => return None,
            }
        }
        Some(walk)
    }

    /// The first place.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// The axes, slowest first.
    pub(crate) fn axes(&self) -> &[Axis] {
        &self.axes[..self.rank]
    }

    /// The fastest axis: what a run consists of.
    pub(crate) fn run(&self) -> Axis {
        self.axes().last().copied().unwrap_or(Axis { len: 1, step: 1 })
    }

    /// How many places are visited.
    pub(crate) fn len(&self) -> usize {
        self.axes().iter().fold(1, |len, axis| len.saturating_mul(axis.len))
    }

    /// All places, one by one.
    pub(crate) fn places(&self) -> Runs<'_> {
        Runs { outer: self.axes(), index: [0; MAX_AXES], place: self.start, left: self.len() }
    }

    /// The elements of `from` at all places, into `to`, which has as many.
    pub(crate) fn read<E: Pod>(&self, from: &[E], to: &mut [E]) {
        let Axis { len, step } = self.run();
        for (to, at) in to.chunks_exact_mut(len.max(1)).zip(self.runs_from(0)) {
            read_run(from, at, step, to);
        }
    }

    /// Where the runs begin, without the first `skipped` ones.
    pub(crate) fn runs_from(&self, skipped: usize) -> Runs<'_> {
        let outer = &self.axes[..self.rank.saturating_sub(1)];
        let count = self.len() / self.run().len.max(1);
        let (mut index, mut place, mut rest) = ([0; MAX_AXES], self.start, skipped);
        for (index, Axis { len, step }) in index.iter_mut().zip(outer).rev() {
            *index = rest % len.max(&1);
            rest /= len.max(&1);
            place = place.wrapping_add_signed(step.wrapping_mul(index.cast_signed()));
        }
        Runs { outer, index, place, left: count.saturating_sub(skipped) }
    }
}

/// Copies as many elements as `to` has. Runs of a few bytes are common, and a call each would take longer than they.
#[inline]
pub(crate) fn copy_run<E: Pod>(from: &[E], to: &mut [E]) {
    let (from, to): (&[u8], &mut [u8]) = (cast_slice(from), cast_slice_mut(to));
    match to.len() {
        2 => copy_bytes::<2>(from, to),
        4 => copy_bytes::<4>(from, to),
        8 => copy_bytes::<8>(from, to),
        16 => copy_bytes::<16>(from, to),
        _ => to.copy_from_slice(from),
    }
}

#[inline]
fn copy_bytes<const N: usize>(from: &[u8], to: &mut [u8]) {
    if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut()) {
        *to = *from;
    }
}

/// Fills `to` with elements of `from`, the first from `at`, each `step` from the one before.
#[inline]
pub(crate) fn read_run<E: Pod>(from: &[E], at: usize, step: isize, to: &mut [E]) {
    match step {
        1 => copy_run(&from[at..at + to.len()], to),
        0 => to.fill(from[at]),
        _ => {
            let mut at = at;
            for to in to {
                *to = from[at];
                at = at.wrapping_add_signed(step);
            }
        }
    }
}

/// Where the runs of a walk begin, in order.
#[derive(Clone, Debug)]
pub(crate) struct Runs<'a> {
    outer: &'a [Axis],
    index: [usize; MAX_AXES],
    /// The next one.
    place: usize,
    left: usize,
}

impl Iterator for Runs<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let place = self.place;
        for (index, &Axis { len, step }) in self.index.iter_mut().zip(self.outer).rev() {
            self.place = self.place.wrapping_add_signed(step);
            *index += 1;
            if *index < len {
                break;
            }
            *index = 0;
            let back = step.wrapping_mul(len.cast_signed()).wrapping_neg();
            self.place = self.place.wrapping_add_signed(back);
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(walk: &Walk, len: usize) -> Vec<usize> {
        let from: Vec<usize> = (0..len).collect();
        let mut to = vec![usize::MAX; walk.len()];
        walk.read(&from, &mut to);
        assert_eq!(to, walk.places().collect::<Vec<_>>());
        to
    }

    fn walk(start: usize, axes: &[(usize, isize)]) -> Walk {
        let mut walk = Walk::at(start);
        for &(len, step) in axes {
            walk.push(len, step);
        }
        walk
    }

    #[test]
    fn axes_that_continue_each_other_are_one() {
        let whole = walk(0, &[(2, 12), (3, 4), (1, 99), (4, 1)]);
        assert_eq!(whole.axes(), [Axis { len: 24, step: 1 }]);
        assert_eq!(walk(0, &[(3, 1), (2, 3)]).axes().len(), 2);
        assert_eq!(walk(0, &[(3, 0), (2, 0)]).axes(), [Axis { len: 6, step: 0 }]);
    }

    #[test]
    fn steps_may_be_of_any_size_and_sign() {
        assert_eq!(read(&walk(0, &[(3, 1), (2, 3)]), 6), [0, 3, 1, 4, 2, 5]);
        assert_eq!(read(&walk(5, &[(2, -3), (2, -1)]), 6), [5, 4, 2, 1]);
        assert_eq!(read(&walk(0, &[(2, 0), (2, 1), (2, 0)]), 2), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(read(&walk(3, &[]), 4), [3]);
        assert_eq!(read(&walk(0, &[(0, 3), (2, 1)]), 0), [0; 0]);
    }

    #[test]
    fn shapes_are_broadcast_from_the_right() {
        let places = |from: &[usize], to: &[usize]| {
            let from_len = from.iter().product();
            Walk::broadcast(from, to).map(|walk| read(&walk, from_len))
        };
        assert_eq!(places(&[2], &[2, 2]), Some(vec![0, 1, 0, 1]));
        assert_eq!(places(&[2, 1], &[2, 2]), Some(vec![0, 0, 1, 1]));
        assert_eq!(places(&[], &[3]), Some(vec![0, 0, 0]));
        assert_eq!(places(&[3], &[2]), None);
        assert_eq!(places(&[1, 1], &[1]), None);
    }
}
