//! [`Ground`]: bytes without places. Which cells does each storage hold, and what may be written over what?
//!
//! ~~~text
//! Wishes ──> Ground of one way to share       W = concat(x, y)    x: c0    y: c1    W: c0 c1
//! all wishes at once ──> relaxed Ground       (see `relaxed`)     needs no more than any mixture of ways
//! ~~~
//! It is all that an order's cost depends on. Cost: near-linear in storages and the cells that they cover.

use super::Wishes;
use super::overlays::Overlay;
use crate::PlanConfig;
use lowtide_core::{Graph, IndexVec, Lists, OpId, TensorId};

/// The cells of all storages: ranges of bytes that come and go together.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    /// Bytes of each cell, with its padding.
    pub(crate) bytes: Vec<u64>,
    /// The cells of each storage, ascending; none for what the arena does not hold.
    pub(crate) cells_of: Lists<TensorId, u32>,
    /// Whether others write bytes of a storage before its operator runs.
    pub(crate) is_filled: IndexVec<TensorId, bool>,
    pub(crate) overlays: Lists<OpId, Overlay>,
    /// Storages that may be written over when they themselves are not needed any more, whatever else lies there: the
    /// last of their cells then has no bytes and is theirs alone.
    pub(super) dies_alone: IndexVec<TensorId, bool>,
}

impl Ground {
    /// What an order costs that shares by `wishes`.
    pub(crate) fn new(graph: &Graph, config: &PlanConfig, wishes: &Wishes) -> Self {
        let bodies = &wishes.bodies;
        let mut cells_of = Lists::new();
        for cells in &bodies.cells_of {
            cells_of.push(cells.clone());
        }
        let mut groups = Groups::new(bodies.places.iter().map(|place| place.body).collect());
        let is_whole_end = |storage| bodies.is_whole_end(storage, config.align);
        groups.follow(graph, &wishes.overlays, is_whole_end);
        let mut bytes: Vec<u64> = bodies.cells.iter().map(|cell| cell.bytes.0).collect();
        for id in graph.tensors().ids() {
            if groups.is_loose(id) {
                continue;
            }
            for cell in cells_of[id].iter().map(|&cell| cell as usize) {
                bytes[cell] = (bodies.cells[cell].bytes + bodies.cells[cell].padding).0;
            }
        }
        Self {
            bytes,
            cells_of,
            is_filled: bodies.is_filled.clone(),
            overlays: wishes.overlays.clone(),
            dies_alone: IndexVec::filled(graph.tensors().len(), false),
        }
    }

    /// The cells that have to die before something is written over a storage.
    pub(crate) fn dying(&self, storage: TensorId) -> &[u32] {
        let cells = &self.cells_of[storage];
        if self.dies_alone[storage] { &cells[cells.len() - 1..] } else { cells }
    }
}

/// Storages that may come to lie in each other, and so at places that leave no room for padding.
pub(super) struct Groups {
    parents: IndexVec<TensorId, TensorId>,
    is_loose: IndexVec<TensorId, bool>,
}

impl Groups {
    /// `parents` leads from each storage to one of its group.
    pub(super) fn new(parents: IndexVec<TensorId, TensorId>) -> Self {
        let is_loose = IndexVec::filled(parents.len(), false);
        Self { parents, is_loose }
    }

    /// Joins what may be written over each other. Between others, a tensor takes its own bytes. Whether it comes to lie
    /// there depends on the order, so that no padding is counted of what may be handed a place inside a larger body:
    /// one that is no whole end.
    pub(super) fn follow(
        &mut self,
        graph: &Graph,
        overlays: &Lists<OpId, Overlay>,
        is_whole_end: impl Fn(TensorId) -> bool,
    ) {
        for overlay in graph.ops().ids().flat_map(|op| &overlays[op]) {
            self.join(overlay.output, overlay.over);
            if !(is_whole_end(overlay.output) && is_whole_end(overlay.over)) {
                self.loosen(overlay.over);
            }
        }
    }

    pub(super) fn join(&mut self, one: TensorId, other: TensorId) {
        let (one, other) = (self.root(one), self.root(other));
        self.parents[one] = other;
        self.is_loose[other] |= self.is_loose[one];
    }

    /// No padding is counted in the group of a storage.
    pub(super) fn loosen(&mut self, storage: TensorId) {
        let root = self.root(storage);
        self.is_loose[root] = true;
    }

    pub(super) fn is_loose(&mut self, storage: TensorId) -> bool {
        let root = self.root(storage);
        self.is_loose[root]
    }

    /// What stands for a group, with the ways there made short.
    fn root(&mut self, mut at: TensorId) -> TensorId {
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }
}
