//! [`Rises`]: how far above the base of a piece the base of another has to be, if that comes after it.
//!
//! ~~~text
//! offset ^  ┌──┐b           a hat above a foot: b's base may be as low as a's foot is high
//!        |  │  └──┐
//!        | a┌──┐──┘         rise(a, b): the most, over the sections of both, of a's top less b's bottom
//!        |  └──┘
//! ~~~
//! Of pieces that are as high wherever they are, that is the size of the lower one, and no table is needed.

use super::instance::{Piece, Run};
use lowtide_core::{BufferId, IndexVec, Lists};

/// Rises of all pairs that overlap, side by side with their list.
#[derive(Clone, Debug)]
pub(super) struct Rises {
    /// How far each of the others has to be above.
    pub(super) over: Lists<BufferId, u64>,
    /// How far above each of the others it has to be.
    pub(super) under: Lists<BufferId, u64>,
}

impl Rises {
    /// `None` if all pieces are as high wherever they are.
    pub(super) fn new(
        pieces: &IndexVec<BufferId, Piece>,
        overlaps: &Lists<BufferId, BufferId>,
    ) -> Option<Self> {
        let is_flat =
            |piece: &Piece| piece.runs.iter().all(|run| run.bottom == 0 && run.top == piece.bytes);
        if pieces.iter().all(is_flat) {
            return None;
        }
        let (mut over, mut under) = (Lists::new(), Lists::new());
        for (id, piece) in pieces.iter_enumerated() {
            let others = || overlaps[id].iter().map(|&other| &pieces[other]);
            over.push(others().map(|other| rise(piece, other)));
            under.push(others().map(|other| rise(other, piece)));
        }
        Some(Self { over, under })
    }

    /// The same with the pieces in another order.
    pub(super) fn ordered(&self, order: &[BufferId]) -> Self {
        let (mut over, mut under) = (Lists::new(), Lists::new());
        for &piece in order {
            over.push(self.over[piece].iter().copied());
            under.push(self.under[piece].iter().copied());
        }
        Self { over, under }
    }
}

fn rise(lower: &Piece, upper: &Piece) -> u64 {
    let meet =
        |a: &Run, b: &Run| a.sections.start < b.sections.end && b.sections.start < a.sections.end;
    let rises = lower.runs.iter().flat_map(|low| {
        let above = upper.runs.iter().filter(move |high| meet(low, high));
        above.map(|high| low.top.saturating_sub(high.bottom))
    });
    rises.max().unwrap_or(0)
}
