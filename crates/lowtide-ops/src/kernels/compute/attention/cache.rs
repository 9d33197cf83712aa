//! [`Joined`]: keys or values that were there before, and new ones behind them.
//!
//! ~~~text
//! past    [batch, heads, p, size] ─┐
//! current [batch, heads, n, size] ─┴─> present [batch, heads, p + n, size]      an output, or scratch of one head
//! ~~~

use super::heads::Layout;

/// Keys or values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joined<'a> {
    pub(super) past: Option<&'a [f32]>,
    pub(super) past_rows: usize,
    pub(super) current: &'a [f32],
    /// Of the current ones.
    pub(super) layout: Layout,
    pub(super) heads: usize,
    pub(super) rows: usize,
    pub(super) size: usize,
}

impl Joined<'_> {
    /// Copies one head of one sample.
    pub(super) fn copy(&self, (batch, head): (usize, usize), to: &mut [f32]) {
        let len = self.past_rows * self.size;
        let (before, behind) = to.split_at_mut(len);
        if let Some(past) = self.past {
            before.copy_from_slice(&past[(batch * self.heads + head) * len..][..len]);
        }
        for (row, to) in behind.chunks_exact_mut(self.size.max(1)).enumerate() {
            let from = self.layout.matrix(self.current, (batch, head), (row, 1), self.size);
            to.copy_from_slice(&from.data[..self.size]);
        }
    }

    /// Elements of one head.
    pub(super) fn len(&self) -> usize {
        (self.past_rows + self.rows) * self.size
    }

    /// Copies all of it.
    pub(super) fn copy_all(&self, to: &mut [f32]) {
        for (at, to) in to.chunks_exact_mut(self.len().max(1)).enumerate() {
            self.copy((at / self.heads, at % self.heads), to);
        }
    }
}
