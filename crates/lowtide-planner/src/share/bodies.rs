//! Parts and pieces to bodies: storages that lie at fixed distances from each other, whatever the order.
//!
//! ~~~text
//! W1 = concat(x0, x1)           byte 0       64      128     192
//! W2 = concat(x0, x1, x2)         │─── x0 ───│── x1 ──│── x2 ──│      one body of five storages
//!                                 │─────── W1 ────────│        │
//!                                 │──────────── W2 ────────────│
//! cells:                             c0          c1       c2
//! ~~~
//! Two storages of a body overlap only in bytes that are equal by declaration (a concat's whole and its parts, a
//! split's whole and its pieces), so no order can make them disturb each other. Wishes are granted by their bytes, the
//! largest operator first; one that contradicts what is granted (a tensor that is to lie in two wholes at different
//! places) is refused, and the operator copies it. A *cell* is a range of bytes between two ends of storages of a
//! body: it is held from its first write until the last reader of any storage over it has run.
//! Cost: O(n log n) in storages and parts, but for the cells that a storage covers: a tower of nested concats covers
//! its lowest part again and again, and is cut where that becomes too much.

use super::Links;
use crate::PlanConfig;
use lowtide_core::{Align, Bytes, Graph, IndexVec, Op, OpId, Reuse, Sharing, TensorId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Pairs of an input and an output in place of one operator that are looked at.
const MOST_PAIRS: usize = 1 << 16;
/// How often all is put together anew without what turned out to disturb others.
const MOST_ROUNDS: usize = 8;
/// Cells that all storages may cover, each storage once without being asked.
pub(super) const COVERED: usize = 1 << 20;

/// Where a storage lies in its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The storage that stands for the body.
    pub(crate) body: TensorId,
    /// Distance from the place of that storage.
    pub(crate) distance: i64,
}

/// What lies where, before any order is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bodies {
    pub(crate) places: IndexVec<TensorId, Place>,
    /// First byte and end of each body, at the storage that stands for it.
    pub(crate) extents: IndexVec<TensorId, Range<i64>>,
    /// Whether its bytes are there before it is written: it is a whole of parts in place, or a piece in place.
    pub(crate) is_filled: IndexVec<TensorId, bool>,
    /// Whether other storages lie in its body.
    pub(crate) is_joined: IndexVec<TensorId, bool>,
    /// The cells of each storage: a range of ids. Empty for what the arena does not hold.
    pub(crate) cells_of: IndexVec<TensorId, Range<u32>>,
    /// All cells, those of a body one behind the other.
    pub(crate) cells: Vec<Cell>,
}

/// Bytes of a body that come and go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Distance from the storage that stands for the body.
    pub(crate) start: i64,
    pub(crate) bytes: Bytes,
    /// What lies behind the last cell of a body, up to the next multiple of the alignment.
    pub(crate) padding: Bytes,
}

/// `inner` lies `distance` behind the start of `outer`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) inner: TensorId,
    pub(super) outer: TensorId,
    pub(super) distance: i64,
    /// What is filled by the other one.
    pub(super) filled: TensorId,
}

/// What all operators would like to leave where it is, whether or not one excludes another.
pub(super) fn all_wishes(graph: &Graph, config: &PlanConfig) -> Vec<Wish> {
    let (maker, mutated) = (Maker::new(graph, config), mutated(graph));
    let ops = graph.ops().ids();
    ops.flat_map(|op| maker.wishes(op, &mutated, Links::All)).collect()
}

impl Bodies {
    /// Without the parts and pieces of the operators in `copied`.
    pub(crate) fn new(
        graph: &Graph,
        config: &PlanConfig,
        links: Links,
        copied: &BTreeSet<OpId>,
    ) -> Self {
        if links == Links::None || config.reuse != Reuse::Pack {
            return Maker::new(graph, config).finish();
        }
        let mut refused = copied.clone();
        for _ in 0..MOST_ROUNDS {
            let mut maker = Maker::new(graph, config);
            maker.grant(links, &refused);
            let more = maker.disturbed();
            if more.is_empty() {
                return maker.finish();
            }
            refused.extend(more);
        }
        Maker::new(graph, config).finish()
    }

    /// Whether what lies in the place of a storage is padded there as it is by itself: at the end of its body, and at a
    /// multiple of the alignment.
    pub(crate) fn is_whole_end(&self, storage: TensorId, align: Align) -> bool {
        let Place { body, distance } = self.places[storage];
        let extent = &self.extents[body];
        let grid = i64::try_from(align.bytes().0).expect("an alignment is far below");
        let end = self.cells_of[storage].end.checked_sub(1).map(|last| {
            let cell = self.cells[last as usize];
            cell.start + i64::try_from(cell.bytes.0).expect("sizes of a graph are far below")
        });
        end.is_none_or(|end| end == extent.end) && (distance - extent.start) % grid == 0
    }
}

/// Whether an operator could leave something where it is.
pub(crate) fn has_links(op: &Op) -> bool {
    let is_link =
        |sharing: &Sharing| matches!(sharing, Sharing::PartOf { .. } | Sharing::PieceOf { .. });
    op.sharing.iter().any(is_link)
}

/// A body that is being put together.
#[derive(Clone, Debug, Default)]
struct Body {
    members: Vec<TensorId>,
    /// Disjoint ranges that are taken, by their start.
    taken: BTreeMap<i64, i64>,
}

struct Maker<'a> {
    graph: &'a Graph,
    config: &'a PlanConfig,
    places: IndexVec<TensorId, Place>,
    /// Bodies of more than one storage.
    bodies: BTreeMap<TensorId, Body>,
    is_filled: IndexVec<TensorId, bool>,
    covered: usize,
    /// The wishes that were granted, by operator.
    granted: BTreeMap<OpId, Vec<Wish>>,
}

impl<'a> Maker<'a> {
    fn new(graph: &'a Graph, config: &'a PlanConfig) -> Self {
        let places = graph.tensors().ids().map(|id| Place { body: id, distance: 0 }).collect();
        let is_filled = IndexVec::filled(graph.tensors().len(), false);
        let (bodies, granted) = (BTreeMap::new(), BTreeMap::new());
        Self { graph, config, places, bodies, is_filled, covered: 0, granted }
    }

    fn size(&self, storage: TensorId) -> i64 {
        let bytes = self.graph.tensors()[storage].size.bound().unwrap_or_default();
        i64::try_from(bytes.0).expect("sizes of a graph are far below")
    }

    /// Grants the wishes of all operators, those of most bytes first.
    fn grant(&mut self, links: Links, refused: &BTreeSet<OpId>) {
        let mutated = mutated(self.graph);
        let mut rows: Vec<(i64, OpId, Vec<Wish>)> = Vec::new();
        for op in self.graph.ops().ids().filter(|op| !refused.contains(op)) {
            let wishes = self.wishes(op, &mutated, links);
            if !wishes.is_empty() {
                let bytes = wishes.iter().map(|wish| self.size(wish.inner)).sum();
                rows.push((bytes, op, wishes));
            }
        }
        rows.sort_by_key(|&(bytes, op, _)| (std::cmp::Reverse(bytes), op));
        for (_, op, wishes) in &rows {
            self.join(*op, wishes);
        }
    }

    /// What an operator would like to leave where it is.
    fn wishes(&self, op: OpId, mutated: &IndexVec<TensorId, bool>, links: Links) -> Vec<Wish> {
        let row = &self.graph.ops()[op];
        if !has_links(row) {
            return Vec::new();
        }
        let mut storages: Vec<TensorId> =
            row.inputs.iter().map(|&t| self.graph.storage(t)).collect();
        storages.sort_unstable();
        let is_alone = |storage: TensorId| {
            let first = storages.partition_point(|&other| other < storage);
            storages.get(first + 1) != Some(&storage)
        };
        let can_lie = |storage: TensorId| {
            let size = self.graph.tensors()[storage].size.fixed();
            // What is smaller than its padding is not worth being tied to others.
            let is_worth = size.is_some_and(|size| size >= self.config.align.bytes());
            is_worth && !mutated[storage] && self.config.places(self.graph, storage)
        };
        let wish = |sharing: &Sharing| self.wish(op, *sharing, links);
        let wishes = row.sharing.iter().filter_map(wish);
        wishes.filter(|w| can_lie(w.inner) && can_lie(w.outer) && is_alone(w.inner)).collect()
    }

    fn wish(&self, op: OpId, sharing: Sharing, links: Links) -> Option<Wish> {
        let graph = self.graph;
        let signed = |bytes: Bytes| i64::try_from(bytes.0).ok();
        match sharing {
            Sharing::PartOf { input, output, offset } => {
                let (extent, inner) = (graph.extent(input), graph.storage(input));
                let is_whole =
                    extent.is_exact && extent.bytes == graph.tensors()[inner].size.fixed();
                let is_wanted = links == Links::All || dies_at(graph, inner, op);
                let distance = signed(offset)?;
                let wish = Wish { inner, outer: output, distance, filled: output };
                (is_whole && is_wanted && graph.is_storage(output)).then_some(wish)
            }
            Sharing::PieceOf { output, of, offset } => {
                let extent = graph.extent(of);
                let outer = graph.storage(of);
                let is_wanted = links == Links::All || dies_at(graph, outer, op);
                let distance = signed(extent.start)?.checked_add(signed(offset)?)?;
                let wish = Wish { inner: output, outer, distance, filled: output };
                (extent.is_exact && is_wanted && graph.is_storage(output)).then_some(wish)
            }
            _ => None,
        }
    }

    /// Joins the bodies of one operator's wishes, those together that move a body in the same way.
    fn join(&mut self, op: OpId, wishes: &[Wish]) {
        let mut groups: BTreeMap<(TensorId, TensorId, i64), Vec<Wish>> = BTreeMap::new();
        for &wish in wishes {
            let (inner, outer) = (self.places[wish.inner], self.places[wish.outer]);
            // How far the inner body moves against the outer one.
            let shift = outer.distance + wish.distance - inner.distance;
            groups.entry((outer.body, inner.body, shift)).or_default().push(wish);
        }
        let mut groups: Vec<Vec<Wish>> = groups.into_values().collect();
        let bytes = |group: &Vec<Wish>| group.iter().map(|w| self.size(w.inner)).sum::<i64>();
        groups.sort_by_key(|group| (std::cmp::Reverse(bytes(group)), group[0].inner));
        for group in groups {
            if self.join_group(&group) {
                for wish in &group {
                    self.is_filled[wish.filled] = true;
                }
                self.granted.entry(op).or_default().extend(group);
            }
        }
    }

    fn join_group(&mut self, group: &[Wish]) -> bool {
        let wish = group[0];
        let (inner, outer) = (self.places[wish.inner], self.places[wish.outer]);
        let shift = outer.distance + wish.distance - inner.distance;
        if inner.body == outer.body {
            return shift == 0;
        }
        let start = |w: &Wish| self.places[w.outer].distance + w.distance;
        let mut equal: Vec<(i64, i64)> =
            group.iter().map(|w| (start(w), start(w) + self.size(w.inner))).collect();
        equal.sort_unstable();
        let (one, other) = (self.take_body(inner.body), self.take_body(outer.body));
        // Each storage covers at most so many more cells as come to its body.
        let cells = one.members.len().min(other.members.len()) + group.len();
        if self.covered + cells > COVERED + 8 * self.places.len()
            || !overlaps_only_in(&one.taken, shift, &other.taken, &equal)
        {
            self.bodies.insert(inner.body, one);
            self.bodies.insert(outer.body, other);
            return false;
        }
        self.covered += cells;
        // The smaller one moves.
        if one.members.len() <= other.members.len() {
            self.merge((inner.body, one), (outer.body, other), shift);
        } else {
            self.merge((outer.body, other), (inner.body, one), -shift);
        }
        true
    }

    /// Operators with an output in place on whose bytes another operand lies than the operator says: kernels are not
    /// made for that.
    fn disturbed(&self) -> Vec<OpId> {
        let is_disturbed = |row: &(&OpId, &Vec<Wish>)| {
            let (op, wishes) = *row;
            let row = &self.graph.ops()[*op];
            let links: BTreeSet<(TensorId, TensorId)> =
                wishes.iter().flat_map(|w| [(w.inner, w.outer), (w.outer, w.inner)]).collect();
            let mut filled: Vec<TensorId> = wishes.iter().map(|wish| wish.filled).collect();
            filled.dedup();
            let inputs: BTreeSet<TensorId> =
                row.inputs.iter().map(|&input| self.graph.storage(input)).collect();
            inputs.len() * filled.len() > MOST_PAIRS
                || filled.iter().any(|&output| {
                    let meets = |&&input: &&TensorId| self.meet(input, output);
                    inputs.iter().filter(meets).any(|&input| !links.contains(&(input, output)))
                })
        };
        self.granted.iter().filter(is_disturbed).map(|(&op, _)| op).collect()
    }

    /// Whether two storages lie on some bytes of one body.
    fn meet(&self, one: TensorId, other: TensorId) -> bool {
        let (a, b) = (self.places[one], self.places[other]);
        a.body == b.body
            && a.distance < b.distance + self.size(other)
            && b.distance < a.distance + self.size(one)
    }

    fn take_body(&mut self, id: TensorId) -> Body {
        let size = self.size(id);
        let alone = || Body { members: vec![id], taken: BTreeMap::from([(0, size)]) };
        self.bodies.remove(&id).unwrap_or_else(alone)
    }

    fn merge(&mut self, from: (TensorId, Body), into: (TensorId, Body), shift: i64) {
        let (mut body, id) = (into.1, into.0);
        for member in from.1.members {
            let distance = self.places[member].distance + shift;
            self.places[member] = Place { body: id, distance };
            body.members.push(member);
        }
        for (start, end) in from.1.taken {
            take(&mut body.taken, start + shift, end + shift);
        }
        self.bodies.insert(id, body);
    }

    fn finish(self) -> Bodies {
        let len = self.places.len();
        let mut cells_of: IndexVec<TensorId, Range<u32>> = IndexVec::filled(len, 0..0);
        let mut extents: IndexVec<TensorId, Range<i64>> = IndexVec::filled(len, 0..0);
        let mut is_joined = IndexVec::filled(len, false);
        let mut cells: Vec<Cell> = Vec::new();
        for id in self.graph.tensors().ids() {
            if self.places[id].body != id || !is_held(self.graph, self.config, id) {
                continue;
            }
            let alone = [id];
            let members = self.bodies.get(&id).map_or(&alone[..], |body| &body.members);
            let first = u32::try_from(cells.len()).expect("cells fit u32");
            let ends = self.ends(members);
            let at = |end: i64| {
                let index = ends.partition_point(|&other| other < end);
                first + u32::try_from(index).expect("cells fit u32")
            };
            for &member in members {
                let start = self.places[member].distance;
                cells_of[member] = at(start)..at(start + self.size(member));
                is_joined[member] = members.len() > 1;
            }
            extents[id] = ends[0]..ends[ends.len() - 1];
            cells.extend(cells_between(&ends, self.config.align));
        }
        let (places, is_filled) = (self.places, self.is_filled);
        Bodies { places, extents, is_filled, is_joined, cells_of, cells }
    }

    /// Where storages begin and end, sorted.
    fn ends(&self, members: &[TensorId]) -> Vec<i64> {
        let start = |member: TensorId| self.places[member].distance;
        let both = |&member: &TensorId| [start(member), start(member) + self.size(member)];
        let mut ends: Vec<i64> = members.iter().flat_map(both).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }
}

fn cells_between(ends: &[i64], align: Align) -> Vec<Cell> {
    let bytes = |distance: i64| Bytes(u64::try_from(distance).expect("ends are sorted"));
    let cell = |pair: &[i64]| {
        let (start, bytes) = (pair[0], bytes(pair[1] - pair[0]));
        Cell { start, bytes, padding: Bytes::ZERO }
    };
    let mut cells: Vec<Cell> = ends.windows(2).map(cell).collect();
    let all = bytes(ends[ends.len() - 1] - ends[0]);
    let padded = all.align_up(align).expect("a graph's sizes fit with padding");
    if let Some(last) = cells.last_mut() {
        last.padding = padded.saturating_sub(all);
    }
    cells
}

/// Whether the arena holds a storage.
pub(super) fn is_held(graph: &Graph, config: &PlanConfig, storage: TensorId) -> bool {
    config.places(graph, storage)
        && graph.tensors()[storage].size.bound().is_some_and(|bytes| bytes > Bytes::ZERO)
}

/// Whether nothing but `op` uses a storage, so that it dies there in every order.
fn dies_at(graph: &Graph, storage: TensorId, op: OpId) -> bool {
    // A storage with views has other users, or its views have.
    graph.readers(storage) == [op] && !graph.holds_output(storage)
}

/// Storages in which values are changed in place.
fn mutated(graph: &Graph) -> IndexVec<TensorId, bool> {
    let mut mutated = IndexVec::filled(graph.tensors().len(), false);
    for sharing in graph.ops().iter().flat_map(|op| &op.sharing) {
        if let Sharing::Mutates { output, .. } = *sharing {
            mutated[graph.storage(output)] = true;
        }
    }
    mutated
}

/// Whether `one`, moved by `shift`, meets `other` only inside the sorted ranges `equal`.
fn overlaps_only_in(
    one: &BTreeMap<i64, i64>,
    shift: i64,
    other: &BTreeMap<i64, i64>,
    equal: &[(i64, i64)],
) -> bool {
    let (few, many, by) =
        if one.len() <= other.len() { (one, other, shift) } else { (other, one, -shift) };
    // Overlaps in the coordinates of `many`; `equal` is in those of `other`.
    let to_other = if one.len() <= other.len() { 0 } else { shift };
    few.iter().all(|(&start, &end)| {
        let (start, end) = (start + by, end + by);
        let before = many.range(..start).next_back();
        before.into_iter().chain(many.range(start..end)).all(|(&from, &to)| {
            let (from, to) = (from.max(start), to.min(end));
            from >= to || is_inside(from + to_other, to + to_other, equal)
        })
    })
}

/// Whether sorted, disjoint ranges cover `[from, to)`.
fn is_inside(mut from: i64, to: i64, ranges: &[(i64, i64)]) -> bool {
    let first = ranges.partition_point(|&(_, end)| end <= from);
    for &(start, end) in &ranges[first..] {
        if start > from || from >= to {
            break;
        }
        from = end;
    }
    from >= to
}

/// Adds a range to disjoint ones, joining those that it touches.
fn take(taken: &mut BTreeMap<i64, i64>, mut start: i64, mut end: i64) {
    while let Some((&from, &to)) = taken.range(..=end).next_back() {
        if to < start {
            break;
        }
        taken.remove(&from);
        (start, end) = (start.min(from), end.max(to));
    }
    taken.insert(start, end);
}
