//! [`Split`]: the axes of a tensor apart, those that are kept and those that go.
//!
//! ~~~text
//! [2, 3, 1, 5, 7], 3 and 4 go     kept  [6] every 35      gone  [35] every 1
//! [2, 3, 5], 0 and 2 go           kept  [3] every 5       gone  [2] every 15, [5] every 1
//! ~~~
//! Neighbours of one kind are one axis; axes of one element are none. It allocates nothing, since which axes go may be
//! known only when the model runs.

use crate::kernels::facts::unsupported;
use lowtide_core::operator::NoKernel;

/// The most axes that are told apart.
pub(crate) const MAX_RANK: usize = 8;

/// The axes of a dense tensor, in two kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) kept: Levels,
    pub(crate) gone: Levels,
}

/// Some axes of a tensor, outermost first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    count: usize,
    levels: [Level; MAX_RANK],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Level {
    len: usize,
    stride: usize,
}

/// That a tensor has not too many axes.
pub(crate) fn check_rank(dims: &[usize]) -> Result<(), NoKernel> {
    if dims.len() <= MAX_RANK { Ok(()) } else { unsupported(format!("rank {}", dims.len())) }
}

impl Split {
    /// At most [`MAX_RANK`] axes.
    pub(crate) fn new(dims: &[usize], goes: impl Fn(usize) -> bool) -> Self {
        let mut split = Self::default();
        let mut stride = 1;
        let mut last = None;
        for (at, &len) in dims.iter().enumerate().rev().filter(|&(_, &len)| len != 1) {
            let levels = if goes(at) { &mut split.gone } else { &mut split.kept };
            if last == Some(goes(at)) {
                levels.levels[levels.count - 1].len *= len;
            } else {
                levels.push(Level { len, stride });
            }
            stride *= len;
            last = Some(goes(at));
        }
        split.kept.turn();
        split.gone.turn();
        split
    }
}

impl Levels {
    fn push(&mut self, level: Level) {
        self.levels[self.count] = level;
        self.count += 1;
    }

    fn turn(&mut self) {
        self.levels[..self.count].reverse();
    }

    /// How many places there are.
    pub(crate) fn len(&self) -> usize {
        self.levels[..self.count].iter().map(|level| level.len).product()
    }

    /// The outer axes, and the length of the last one if its elements are neighbours (1 if they are not).
    pub(crate) fn inner(&self) -> (Self, usize) {
        match self.levels[..self.count].last() {
            Some(&Level { len, stride: 1 }) => (Self { count: self.count - 1, ..*self }, len),
            _ => (*self, 1),
        }
    }

    /// Where each place is, row after row.
    pub(crate) fn places(self) -> impl Iterator<Item = usize> {
        let mut index = [0; MAX_RANK];
        let mut place = 0;
        (0..self.len()).map(move |_| {
            let current = place;
            for (at, level) in self.levels[..self.count].iter().enumerate().rev() {
                index[at] += 1;
                place += level.stride;
                if index[at] < level.len {
                    break;
                }
                place -= level.len * level.stride;
                index[at] = 0;
            }
            current
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(dims: &[usize], gone: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let split = Split::new(dims, |at| gone.contains(&at));
        (split.kept.places().collect(), split.gone.places().collect())
    }

    #[test]
    fn neighbours_of_one_kind_are_one_axis() {
        let split = Split::new(&[2, 3, 1, 5, 7], |at| at >= 3);
        assert_eq!((split.kept.inner().1, split.gone.inner().1), (1, 35));
        assert_eq!((split.kept.len(), split.gone.len()), (6, 35));
    }

    #[test]
    fn places_go_row_after_row() {
        assert_eq!(places(&[2, 3, 2], &[0, 2]), (vec![0, 2, 4], vec![0, 1, 6, 7]));
        assert_eq!(places(&[2, 2], &[]), (vec![0, 1, 2, 3], vec![0]));
        assert_eq!(places(&[], &[]), (vec![0], vec![0]));
        assert_eq!(places(&[2, 0], &[1]), (vec![0, 0], vec![]));
    }
}
