//! [`Layout`]: residences and buffers without offsets, and the items that a packer sees.
//!
//! ~~~text
//! cells of one buffer over time            rectangles of its item
//!   │ c1 [2,6)  │                            ┌────────┐      cells of one time that touch are one rectangle,
//!   │ c0 [1,6)  │        ──>              ┌──┘        │      and so are cells of the same bytes that follow
//!                                         └───────────┘      each other
//! ~~~

use super::Wishes;
use super::forest::Forest;
use crate::PlanConfig;
use lowtide_core::{
    Align, Buffer, BufferId, Bytes, Graph, Id, IndexVec, Interval, Item, Lifetimes, Lists,
    Occupant, Order, Problem, Rect, Rects, Residence, ResidenceId, RunId, Size, Space, SpaceId,
    SpaceKind, TensorId, TensorKind,
};

/// The space of planned offsets.
pub(crate) const ARENA: SpaceId = SpaceId::new(0);
/// The space for what has no bound; only there if something needs it.
pub(crate) const POOL: SpaceId = SpaceId::new(1);

/// Residences and buffers without offsets.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) residences: IndexVec<ResidenceId, Residence>,
    pub(crate) buffers: IndexVec<BufferId, Buffer>,
    /// Where each storage stays.
    pub(crate) of_tensor: IndexVec<TensorId, Option<ResidenceId>>,
    /// Where the scratch of each run stays.
    pub(crate) of_scratch: IndexVec<RunId, Option<ResidenceId>>,
    /// What each buffer takes, if it lies in the arena.
    items: IndexVec<BufferId, Option<Item>>,
}

/// What was decided under an order.
pub(super) struct Shared<'a> {
    pub(super) lifetimes: &'a Lifetimes,
    pub(super) forest: Forest,
    /// When each cell is held.
    pub(super) lives: Vec<Interval>,
}

/// Buffers in the order of their first step: inputs, then what each run writes, then its scratch.
pub(super) fn lay_out(
    graph: &Graph,
    order: &Order,
    config: &PlanConfig,
    wishes: &Wishes,
    mut shared: Shared<'_>,
) -> Layout {
    let placed = graph.tensors().ids().filter(|&id| shared.lifetimes[id].is_some());
    let pairs: Vec<(TensorId, TensorId)> =
        placed.map(|id| (shared.forest.place(id).body, id)).collect();
    let members = Lists::group(graph.tensors().len(), &pairs);
    let layout = Layout {
        residences: IndexVec::new(),
        buffers: IndexVec::new(),
        of_tensor: IndexVec::filled(graph.tensors().len(), None),
        of_scratch: IndexVec::filled(order.len(), None),
        items: IndexVec::new(),
    };
    let mut maker = Maker { graph, align: config.align, wishes, shared, members, layout };
    for (id, tensor) in graph.tensors().iter_enumerated() {
        if tensor.kind == TensorKind::Input {
            maker.body_of(id);
        }
    }
    for (run, &op) in order.schedule().iter_enumerated() {
        for &output in &graph.ops()[op].outputs {
            maker.body_of(output);
        }
        if let Some(size) = graph.ops()[op].needed_scratch() {
            maker.scratch(run, size);
        }
    }
    maker.layout
}

struct Maker<'a> {
    graph: &'a Graph,
    align: Align,
    wishes: &'a Wishes,
    shared: Shared<'a>,
    /// The storages of each body, at the one that stands for it.
    members: Lists<TensorId, TensorId>,
    layout: Layout,
}

impl Maker<'_> {
    /// Makes a buffer of the body in which a storage lies, unless that has been done.
    fn body_of(&mut self, storage: TensorId) {
        if self.shared.lifetimes[storage].is_none() || self.layout.of_tensor[storage].is_some() {
            return;
        }
        let body = self.shared.forest.place(storage).body;
        let mut members = self.members[body].to_vec();
        members.sort_by_key(|&id| (self.shared.lifetimes[id].map(|life| life.start), id));
        let start = self.shared.forest.extent(body).start;
        for &id in &members {
            let span = self.shared.lifetimes[id].expect("a member is placed");
            let offset = self.shared.forest.place(id).distance - start;
            let offset = Bytes(u64::try_from(offset).expect("a body begins at its first byte"));
            let size = self.graph.tensors()[id].size;
            let residence = self.residence(Occupant::Tensor(id), offset, size, span);
            self.layout.of_tensor[id] = Some(residence);
        }
        let size = self.graph.tensors()[storage].size;
        let item = size.bound().map(|_| self.item(body, &members));
        self.close(item);
    }

    fn scratch(&mut self, run: RunId, size: Size) {
        let span = Interval::new(run.step(), run.step().next());
        let residence = self.residence(Occupant::Scratch(run), Bytes::ZERO, size, span);
        self.layout.of_scratch[run] = Some(residence);
        let item = size.bound().map(|bytes| Item::new(self.padded(bytes), span, self.align));
        self.close(item);
    }

    fn padded(&self, bytes: Bytes) -> Bytes {
        bytes.align_up(self.align).expect("a graph's sizes fit with padding")
    }

    fn residence(
        &mut self,
        what: Occupant,
        offset: Bytes,
        size: Size,
        span: Interval,
    ) -> ResidenceId {
        let buffer = BufferId::from_index(self.layout.buffers.len());
        self.layout.residences.push(Residence { what, buffer, offset, size, span })
    }

    /// Makes a buffer of the residences since the last one.
    fn close(&mut self, item: Option<Item>) {
        let start = self.layout.buffers.iter().last().map_or(ResidenceId::new(0), |b| b.parts.end);
        let end = ResidenceId::from_index(self.layout.residences.len());
        let space = if item.is_some() { ARENA } else { POOL };
        let (align, parts) = (self.align, start..end);
        self.layout.buffers.push(Buffer { space, align, parts, offset: None });
        self.layout.items.push(item);
    }

    /// What a body takes over time.
    fn item(&mut self, body: TensorId, members: &[TensorId]) -> Item {
        let extent = self.shared.forest.extent(body);
        let bodies = &self.wishes.bodies;
        let mut cells: Vec<(u32, i64)> = Vec::new();
        for &member in members {
            // How far its cells have moved with it.
            let moved = self.shared.forest.place(member).distance - bodies.places[member].distance;
            cells.extend(bodies.cells_of[member].clone().map(|cell| (cell, moved)));
        }
        cells.sort_unstable();
        cells.dedup();
        let all = Bytes(u64::try_from(extent.end - extent.start).expect("an extent is no hole"));
        let end = self.padded(all);
        let rect = |&(cell, moved): &(u32, i64)| {
            let row = bodies.cells[cell as usize];
            let offset = row.start + moved - extent.start;
            let offset = Bytes(u64::try_from(offset).expect("a cell lies in its body"));
            let is_last = offset + row.bytes == all;
            let bytes = if is_last { end.saturating_sub(offset) } else { row.bytes };
            Rect { offset, bytes, span: self.shared.lives[cell as usize] }
        };
        let rects = joined(cells.iter().map(rect).collect());
        if rects.is_empty() {
            let span = members.iter().filter_map(|&id| self.shared.lifetimes[id]);
            let span = span.reduce(Interval::hull).unwrap_or_default();
            return Item::new(Bytes::ZERO, span, self.align);
        }
        Item { rects: Rects::from(rects), align: self.align, pin: None }
    }
}

/// The same bytes and times in fewer rectangles.
pub(crate) fn joined(mut rects: Vec<Rect>) -> Vec<Rect> {
    rects.retain(Rect::takes_bytes);
    rects.sort_unstable_by_key(|rect| (rect.offset, rect.bytes, rect.span.start));
    rects.dedup_by(|next, last| {
        let follows =
            (last.offset, last.bytes, last.span.end) == (next.offset, next.bytes, next.span.start);
        if follows {
            last.span.end = next.span.end;
        }
        follows
    });
    rects.sort_unstable_by_key(|rect| (rect.span.start, rect.span.end, rect.offset));
    rects.dedup_by(|next, last| {
        let lies_on = last.span == next.span && last.end() == next.offset;
        if lies_on {
            last.bytes += next.bytes;
        }
        lies_on
    });
    rects
}

impl Layout {
    /// The placement problem of the arena, and which buffer each of its items is.
    pub(crate) fn problem(&self) -> (Problem, Vec<BufferId>) {
        let in_arena = self.items.iter_enumerated();
        let (ids, items): (Vec<BufferId>, Vec<Item>) =
            in_arena.filter_map(|(id, item)| Some((id, item.clone()?))).unzip();
        let problem = Problem::new(IndexVec::from(items));
        (problem.expect("a graph's sizes fit with padding"), ids)
    }

    /// The memories, the pool only if it is used.
    pub(crate) fn spaces(&self, arena: Bytes) -> IndexVec<SpaceId, Space> {
        let mut spaces = vec![Space { kind: SpaceKind::Arena, size: arena }];
        if self.buffers.iter().any(|buffer| buffer.space == POOL) {
            spaces.push(Space { kind: SpaceKind::Pool, size: Bytes::ZERO });
        }
        IndexVec::from(spaces)
    }
}
