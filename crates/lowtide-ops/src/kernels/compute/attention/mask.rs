//! [`Mask`]: which keys a query may look at, and what is added to their scores.
//!
//! ~~~text
//! scores of query i   s s s s s s s s
//! mask, broadcast   + m m m m m            a shorter one hides the rest; of truth values, false hides
//! causal            + 0 0 0 0 - - - -      keys behind the query's own place are hidden
//! padding           + 0 0 0 0 0 0 - -      keys beyond what a sample of the batch has are hidden
//! ~~~

use super::heads::Heads;
use crate::kernels::facts::{input_dims, unsupported};
use lowtide_core::DType;
use lowtide_core::operator::{Call, KernelError, NoKernel, Operands};

const HIDDEN: f32 = f32::NEG_INFINITY;

/// A mask as it is broadcast to `[batch, heads, queries, keys]`.
#[derive(Clone, Copy, Debug)]
struct Given {
    at: usize,
    /// From one batch, head and query to the next; 0 where the same is taken again.
    strides: [usize; 3],
    len: usize,
}

/// What hides keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mask {
    given: Option<Given>,
    /// The input that says how many keys each sample has.
    lens: Option<usize>,
    /// Keys that come before the first query, if those behind a query are hidden from it.
    causal: Option<usize>,
}

impl Mask {
    /// Of a call whose mask is input `at` and whose numbers of keys are input `lens`, where they are there.
    pub(super) fn new(
        call: &Call<'_>,
        (at, lens): (usize, usize),
        heads: &Heads,
        causal: Option<usize>,
    ) -> Result<Self, NoKernel> {
        let given = if call.has(at) { Some(Given::new(call, at, heads)?) } else { None };
        if call.has(lens) && input_dims(call, lens)? != [heads.batch] {
            let text = format!("input {lens} does not hold one number for each of {}", heads.batch);
            return Err(NoKernel::Misfit(text));
        }
        Ok(Self { given, lens: call.has(lens).then_some(lens), causal })
    }

    /// Its values in a run.
    pub(super) fn values<'a>(&self, operands: &Operands<'a>) -> Result<Values<'a>, KernelError> {
        let rows = match self.given {
            None => Rows::None,
            Some(Given { at, .. }) if operands.input(at)?.dtype == DType::Bool => {
                Rows::Truths(operands.input(at)?.values()?)
            }
            Some(Given { at, .. }) => Rows::Floats(operands.input(at)?.values()?),
        };
        let lens = self.lens.map(|at| operands.input(at)?.values()).transpose()?;
        Ok(Values { mask: *self, rows, lens })
    }
}

impl Given {
    fn new(call: &Call<'_>, at: usize, heads: &Heads) -> Result<Self, NoKernel> {
        if !matches!(call.dtype(at), Some(DType::Bool | DType::F32)) {
            return unsupported("a mask of this type");
        }
        let dims = input_dims(call, at)?;
        let wanted = [heads.batch, heads.of_queries, heads.queries];
        let misfit = || NoKernel::Misfit(format!("a mask of shape {dims:?} does not fit"));
        let (&len, outer) = dims.split_last().ok_or_else(misfit)?;
        if outer.len() > 3 || len > heads.keys {
            return Err(misfit());
        }
        let mut strides = [0; 3];
        let mut stride = len;
        for (back, &dim) in outer.iter().rev().enumerate() {
            let axis = 2 - back;
            if dim != 1 && dim != wanted[axis] {
                return Err(misfit());
            }
            strides[axis] = if dim == 1 { 0 } else { stride };
            stride *= dim;
        }
        Ok(Self { at, strides, len })
    }
}

#[derive(Clone, Copy, Debug)]
enum Rows<'a> {
    None,
    Truths(&'a [u8]),
    Floats(&'a [f32]),
}

/// A mask with its values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a> {
    mask: Mask,
    rows: Rows<'a>,
    lens: Option<&'a [i64]>,
}

impl Values<'_> {
    /// Applies it to the scores of one query.
    pub(super) fn apply(&self, place: [usize; 3], scores: &mut [f32]) {
        if let Some(given) = self.mask.given {
            let start: usize =
                given.strides.iter().zip(place).map(|(stride, at)| stride * at).sum();
            let range = start..start + given.len;
            match self.rows {
                Rows::None => {}
                Rows::Truths(rows) => hide(scores, &rows[range]),
                Rows::Floats(rows) => add(scores, &rows[range]),
            }
            scores[given.len..].fill(HIDDEN);
        }
        if let Some(before) = self.mask.causal {
            let seen = scores.len().min(before + place[2] + 1);
            scores[seen..].fill(HIDDEN);
        }
        if let Some(lens) = self.lens {
            let seen = usize::try_from(lens[place[0]]).unwrap_or(0).min(scores.len());
            scores[seen..].fill(HIDDEN);
        }
    }
}

fn hide(scores: &mut [f32], seen: &[u8]) {
    for (score, &seen) in scores.iter_mut().zip(seen) {
        *score = if seen == 0 { HIDDEN } else { *score };
    }
}

fn add(scores: &mut [f32], more: &[f32]) {
    for (score, more) in scores.iter_mut().zip(more) {
        *score += more;
    }
}
