//! [`Heads::attend`]: one head of one sample, a block of queries at a time.
//!
//! ~~~text
//! [batch, heads, rows, size]   Layout { batch: heads * rows * size, head: rows * size, row: size }
//! [batch, rows, heads * size]  Layout { batch: rows * heads * size, head: size,        row: heads * size }
//! ~~~
//! Heads of queries share those of keys and values evenly, neighbours first.

use super::super::product::{Matrix, Terms, hidden_bytes, multiply};
use super::mask::Values;
use crate::kernels::normalise::row_of_shares;
use lowtide_core::Bytes;
use lowtide_core::operator::KernelError;

/// Rows of scores that exist at once.
pub(super) const BLOCK: usize = 64;

/// How many there are of everything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads {
    pub(super) batch: usize,
    /// Heads that queries have, and those that keys and values have.
    pub(super) of_queries: usize,
    pub(super) of_keys: usize,
    /// Rows of queries.
    pub(super) queries: usize,
    /// Rows of keys, with those that were there before.
    pub(super) keys: usize,
    pub(super) size: usize,
    pub(super) v_size: usize,
}

/// Where heads lie in a tensor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    batch: usize,
    head: usize,
    row: usize,
}

impl Layout {
    /// `[batch, heads, rows, size]`.
    pub(super) fn apart(heads: usize, rows: usize, size: usize) -> Self {
        Self { batch: heads * rows * size, head: rows * size, row: size }
    }

    /// `[batch, rows, heads * size]`.
    pub(super) fn folded(heads: usize, rows: usize, size: usize) -> Self {
        Self { batch: heads * rows * size, head: size, row: heads * size }
    }

    fn start(self, batch: usize, head: usize, row: usize) -> usize {
        batch * self.batch + head * self.head + row * self.row
    }

    /// Rows of one head as a matrix.
    pub(super) fn matrix(
        self,
        data: &[f32],
        (batch, head): (usize, usize),
        (first, rows): (usize, usize),
        size: usize,
    ) -> Matrix<'_, f32> {
        let data = data.get(self.start(batch, head, first)..).unwrap_or_default();
        Matrix { row_stride: self.row, ..Matrix::new(data, rows, size) }
    }
}

/// After which step scores are an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Product,
    Masked,
    Capped,
    Weights,
}

/// What is done to scores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scoring {
    pub(super) scale: f32,
    /// 0: none.
    pub(super) softcap: f32,
}

/// What one head reads and writes.
pub(super) struct Head<'a> {
    pub(super) q: (Layout, &'a [f32]),
    pub(super) k: Matrix<'a, f32>,
    pub(super) v: Matrix<'a, f32>,
    pub(super) y: (Layout, &'a mut [f32]),
    /// All scores of all heads, if they are wanted.
    pub(super) shown: Option<(Stage, &'a mut [f32])>,
    /// A block of rows of scores, and one of `y`.
    pub(super) scratch: &'a mut [f32],
}

impl Heads {
    /// Elements of scratch that [`Heads::attend`] needs.
    pub(super) fn scratch(&self) -> usize {
        self.queries.min(BLOCK) * (self.keys + self.v_size)
    }

    /// What its products keep on a thread.
    pub(super) fn hidden_bytes(&self) -> Bytes {
        let rows = self.queries.min(BLOCK);
        let of_scores = hidden_bytes(rows, self.size, self.keys);
        of_scores.max(hidden_bytes(rows, self.keys, self.v_size))
    }

    /// The head of keys and values that a head of queries looks at.
    pub(super) fn kv_head(&self, head: usize) -> usize {
        head * self.of_keys / self.of_queries
    }

    /// Fills one head of the output.
    pub(super) fn attend(
        &self,
        (batch, head): (usize, usize),
        scoring: Scoring,
        mask: &Values<'_>,
        of: &mut Head<'_>,
    ) -> Result<(), KernelError> {
        for first in (0..self.queries).step_by(BLOCK) {
            let rows = BLOCK.min(self.queries - first);
            let (scores, rest) = of.scratch.split_at_mut(rows * self.keys);
            let q = of.q.0.matrix(of.q.1, (batch, head), (first, rows), self.size);
            let terms = Terms { alpha: scoring.scale, ..Terms::PRODUCT };
            multiply(scores, q, of.k.turned(), terms)?;
            for row in 0..rows {
                let scores = &mut scores[row * self.keys..][..self.keys];
                let place = [batch, head, first + row];
                let at =
                    ((batch * self.of_queries + head) * self.queries + first + row) * self.keys;
                let shown =
                    of.shown.as_mut().map(|(stage, all)| (*stage, &mut all[at..][..self.keys]));
                weigh(scores, place, scoring, mask, shown);
            }
            let means = &mut rest[..rows * self.v_size];
            multiply(means, Matrix::new(scores, rows, self.keys), of.v, Terms::PRODUCT)?;
            let (layout, y) = &mut of.y;
            for (row, means) in means.chunks_exact(self.v_size.max(1)).enumerate() {
                y[layout.start(batch, head, first + row)..][..self.v_size].copy_from_slice(means);
            }
        }
        Ok(())
    }
}

/// Scores of one query to weights.
fn weigh(
    scores: &mut [f32],
    place: [usize; 3],
    scoring: Scoring,
    mask: &Values<'_>,
    mut shown: Option<(Stage, &mut [f32])>,
) {
    let mut show = |stage, scores: &[f32]| {
        if let Some((_, all)) = shown.as_mut().filter(|shown| shown.0 == stage) {
            all.copy_from_slice(scores);
        }
    };
    show(Stage::Product, scores);
    mask.apply(place, scores);
    show(Stage::Masked, scores);
    if scoring.softcap > 0.0 {
        let cap = scoring.softcap;
        for score in scores.iter_mut() {
            *score = (*score / cap).tanh() * cap;
        }
    }
    show(Stage::Capped, scores);
    row_of_shares(scores);
    show(Stage::Weights, scores);
}
