//! [`Forest`]: bodies that are tied together while an order is followed.
//!
//! ~~~text
//! unite(p, r):   body of p  │─────── p ───────│── q ──│        r fits into p, so all that lies in the body of r
//!                body of r  │── r0 ──│── r1 ──│                moves along, and nothing else of p's body meets it
//! ~~~
//! Cost: nearly constant for each union (union by path compression, with distances).

use super::bodies::{Bodies, Place};
use crate::PlanConfig;
use lowtide_core::{DType, Graph, IndexVec, TensorId};
use std::ops::Range;

#[derive(Clone, Debug)]
pub(super) struct Forest {
    places: IndexVec<TensorId, Place>,
    sizes: IndexVec<TensorId, i64>,
    /// At the storage that stands for a body: its extent, and the grid on which it may move.
    extents: IndexVec<TensorId, Range<i64>>,
    grids: IndexVec<TensorId, i64>,
}

impl Forest {
    pub(super) fn new(graph: &Graph, config: &PlanConfig, bodies: &Bodies) -> Self {
        let align = i64::try_from(config.align.bytes().0).expect("an alignment is far below");
        let mut grids: IndexVec<TensorId, i64> = IndexVec::filled(graph.tensors().len(), 1);
        let mut sizes = IndexVec::filled(graph.tensors().len(), 0);
        for (id, tensor) in graph.tensors().iter_enumerated() {
            let bits = tensor.dtype.and_then(DType::bits).unwrap_or(8);
            let grid = if graph.is_part(id) { i64::from(bits.div_ceil(8)) } else { align };
            let body = bodies.places[id].body;
            grids[body] = grids[body].max(grid);
            let bytes = tensor.size.bound().unwrap_or_default();
            sizes[id] = i64::try_from(bytes.0).expect("sizes of a graph are far below");
        }
        Self { places: bodies.places.clone(), sizes, extents: bodies.extents.clone(), grids }
    }

    /// Where a storage lies, in the coordinates of the storage that stands for its body.
    pub(super) fn place(&mut self, storage: TensorId) -> Place {
        let mut path = Vec::new();
        let mut at = storage;
        while self.places[at].body != at {
            path.push(at);
            at = self.places[at].body;
        }
        let mut distance = self.places[at].distance;
        for &storage in path.iter().rev() {
            distance += self.places[storage].distance;
            self.places[storage] = Place { body: at, distance };
        }
        Place { body: at, distance }
    }

    pub(super) fn extent(&self, body: TensorId) -> Range<i64> {
        self.extents[body].clone()
    }

    /// Lets two storages of one size lie on the same bytes, if the body of one lies within it.
    pub(super) fn unite(&mut self, one: TensorId, other: TensorId) -> bool {
        let (a, b) = (self.place(one), self.place(other));
        if a.body == b.body {
            return false;
        }
        let fits = |forest: &Self, place: Place, storage: TensorId| {
            forest.extents[place.body] == (place.distance..place.distance + forest.sizes[storage])
        };
        let (inner, outer) = if fits(self, a, one) {
            (a, b)
        } else if fits(self, b, other) {
            (b, a)
        } else {
            return false;
        };
        let offset = outer.distance - self.extents[outer.body].start;
        if offset % self.grids[inner.body] != 0 {
            return false;
        }
        let distance = outer.distance - inner.distance;
        self.places[inner.body] = Place { body: outer.body, distance };
        self.grids[outer.body] = self.grids[outer.body].max(self.grids[inner.body]);
        true
    }
}
