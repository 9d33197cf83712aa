//! All wishes at once, also those that exclude each other: a [`Ground`] that no plan has, and that bounds them all.
//!
//! ~~~text
//! x, y ─ concat ─ V       V ← x, y      No place suits both V and W. Yet any plan holds, of each byte of x, one copy
//! y, x ─ concat ─ W       W ← y, x      while any of x, V, W lives: cell x: of x, V, W;  cell y: of y, V, W
//! ~~~
//! Every byte of a whole or a piece comes from one byte that was written before it, so the bytes that could be one form
//! a tree, with a *root* that is written first; a cell is a range of roots. Of a tree at least one byte is held while
//! any storage of it lives: the ends of a wish live at the same step, so it is held from the root's writer to the last
//! reader of all, without a gap. Where a storage holds several bytes of one tree, it holds them all: the others are
//! cells of their own, of that storage and of those that take all of them from it.
//!
//! A storage may be written over as if it had its own bytes, as soon as it is not needed itself. Cost: near-linear in
//! storages and the cells that they cover; where that is too much, there is none.

use super::Links;
use super::bodies::{Bodies, COVERED, Wish, all_wishes, is_held};
use super::ground::{Ground, Groups};
use super::overlays::{Overlay, overlays};
use crate::PlanConfig;
use lowtide_core::{Align, Graph, IndexVec, Lists, OpId, TensorId};
use std::collections::{BTreeMap, BTreeSet};

impl Ground {
    /// What needs no more than any mixture of parts in place and copies. None if it would be too large.
    pub(crate) fn relaxed(graph: &Graph, config: &PlanConfig) -> Option<Self> {
        let takes = takes(graph, config);
        let roots = roots(graph, config, &takes)?;
        let cells = Cells::new(graph, &takes, &roots);
        let apart = Bodies::new(graph, config, Links::None, &BTreeSet::new());
        let overlays = overlays(graph, config, &apart);
        let mut bytes = cells.bytes();
        let mut lists: IndexVec<TensorId, Vec<u32>> =
            graph.tensors().ids().map(|id| cells.of(id).collect()).collect();
        let mut again = Again::default();
        for storage in written(graph).filter(|&id| !into(&takes, id).is_empty()) {
            again.tell_apart(storage, &mut lists[storage], into(&takes, storage), &mut bytes);
        }
        cells.pad(config.align, &overlays, &mut bytes);
        let (is_filled, dies_alone) = alone(graph, &takes, &overlays);
        for storage in graph.tensors().ids().filter(|&id| dies_alone[id]) {
            lists[storage].push(new_cell(0, &mut bytes));
        }
        let mut cells_of = Lists::new();
        for list in &lists {
            cells_of.push(list.iter().copied());
        }
        Some(Self { bytes, cells_of, is_filled, overlays, dies_alone })
    }
}

/// What operators write, in the order of the file.
fn written(graph: &Graph) -> impl Iterator<Item = TensorId> {
    let ops = graph.file_order().schedule().iter().copied().collect::<Vec<OpId>>();
    ops.into_iter().flat_map(|op| graph.ops()[op].outputs.iter().copied())
}

/// What takes from others, and what is written over although others may lie on its bytes.
fn alone(
    graph: &Graph,
    takes: &[Take],
    overlays: &Lists<OpId, Overlay>,
) -> (IndexVec<TensorId, bool>, IndexVec<TensorId, bool>) {
    let len = graph.tensors().len();
    let (mut takes_some, mut is_linked) =
        (IndexVec::filled(len, false), IndexVec::filled(len, false));
    for take in takes {
        takes_some[take.to] = true;
        is_linked[take.to] = true;
        is_linked[take.from] = true;
    }
    let mut dies_alone = IndexVec::filled(len, false);
    for overlay in graph.ops().ids().flat_map(|op| &overlays[op]) {
        dies_alone[overlay.over] = is_linked[overlay.over];
    }
    (takes_some, dies_alone)
}

fn new_cell(size: u64, bytes: &mut Vec<u64>) -> u32 {
    bytes.push(size);
    u32::try_from(bytes.len() - 1).expect("cells fit u32")
}

/// Bytes of a storage that come from one written before it.
#[derive(Clone, Copy, Debug)]
struct Take {
    to: TensorId,
    at: i64,
    from: TensorId,
    start: i64,
    bytes: i64,
}

/// What every wish would take, by where it goes.
fn takes(graph: &Graph, config: &PlanConfig) -> Vec<Take> {
    let take = |Wish { inner, outer, distance, filled }: Wish| {
        let bytes = size(graph, inner);
        if filled == outer {
            Take { to: outer, at: distance, from: inner, start: 0, bytes }
        } else {
            Take { to: inner, at: 0, from: outer, start: distance, bytes }
        }
    };
    let mut takes: Vec<Take> = all_wishes(graph, config).into_iter().map(take).collect();
    takes.sort_unstable_by_key(|take| (take.to, take.at));
    takes
}

fn size(graph: &Graph, storage: TensorId) -> i64 {
    let bytes = graph.tensors()[storage].size.bound().unwrap_or_default();
    i64::try_from(bytes.0).expect("sizes of a graph are far below")
}

/// Bytes `[at, at + bytes)` of a storage are bytes of a root, from `start` on.
#[derive(Clone, Copy, Debug)]
struct Segment {
    at: i64,
    bytes: i64,
    root: TensorId,
    start: i64,
}

impl Segment {
    fn end(self) -> i64 {
        self.at + self.bytes
    }

    /// What of it lies in `[start, end)`, moved to `start - moved`.
    fn cut(self, start: i64, end: i64, moved: i64) -> Self {
        let (from, to) = (self.at.max(start), self.end().min(end));
        let start = self.start + from - self.at;
        Self { at: from + moved, bytes: to - from, start, ..self }
    }
}

/// The roots of the bytes of each storage.
type Roots = IndexVec<TensorId, Vec<Segment>>;

/// Follows all takes to the roots; none if two fill one byte, or there is too much.
fn roots(graph: &Graph, config: &PlanConfig, takes: &[Take]) -> Option<Roots> {
    let whole = |id: TensorId| Segment { at: 0, bytes: size(graph, id), root: id, start: 0 };
    let ids = graph.tensors().ids();
    let own = ids.map(|id| if is_held(graph, config, id) { vec![whole(id)] } else { Vec::new() });
    let mut roots: Roots = own.collect();
    let mut left = COVERED + 8 * roots.len();
    for storage in written(graph).filter(|&id| !into(takes, id).is_empty()) {
        roots[storage] = filled(into(takes, storage), whole(storage), &roots, &mut left)?;
    }
    Some(roots)
}

/// What a storage takes.
fn into(takes: &[Take], to: TensorId) -> &[Take] {
    let first = takes.partition_point(|take| take.to < to);
    &takes[first..][..takes[first..].partition_point(|take| take.to == to)]
}

/// The roots of a storage that takes some of its bytes, each of which costs one of `left`.
fn filled(takes: &[Take], own: Segment, roots: &Roots, left: &mut usize) -> Option<Vec<Segment>> {
    let (mut segments, mut at) = (Vec::new(), 0);
    for take in takes {
        if take.at < at {
            return None;
        }
        segments.push(own.cut(at, take.at, 0));
        at = take.at + take.bytes;
        let (start, end) = (take.start, take.start + take.bytes);
        let from = &roots[take.from];
        let first = from.partition_point(|segment| segment.end() <= start);
        for segment in from[first..].iter().take_while(|segment| segment.at < end) {
            *left = left.checked_sub(1)?;
            segments.push(segment.cut(start, end, take.at - start));
        }
    }
    segments.push(own.cut(at, own.bytes, 0));
    segments.retain(|segment| segment.bytes > 0);
    Some(segments)
}

/// Ranges of roots that no segment cuts.
struct Cells<'a> {
    graph: &'a Graph,
    takes: &'a [Take],
    roots: &'a Roots,
    /// Where cells begin; behind the last of a root lies one that nobody holds.
    points: Vec<(TensorId, i64)>,
}

impl<'a> Cells<'a> {
    fn new(graph: &'a Graph, takes: &'a [Take], roots: &'a Roots) -> Self {
        let ends = |s: &Segment| [(s.root, s.start), (s.root, s.start + s.bytes)];
        let mut points: Vec<(TensorId, i64)> = roots.iter().flatten().flat_map(ends).collect();
        points.sort_unstable();
        points.dedup();
        Self { graph, takes, roots, points }
    }

    fn bytes(&self) -> Vec<u64> {
        let length = |at: usize| {
            let (root, start) = self.points[at];
            let next = self.points.get(at + 1).filter(|(other, _)| *other == root);
            next.map_or(0, |(_, end)| end.abs_diff(start))
        };
        (0..self.points.len()).map(length).collect()
    }

    /// The cells of a storage in the order of its bytes; those of one tree can come several times.
    fn of(&self, storage: TensorId) -> impl Iterator<Item = u32> {
        let at = |root: TensorId, start: i64| {
            let index = self.points.partition_point(|&point| point < (root, start));
            u32::try_from(index).expect("cells fit u32")
        };
        let segments = self.roots[storage].iter();
        segments.flat_map(move |s| at(s.root, s.start)..at(s.root, s.start + s.bytes))
    }

    /// Adds to each cell the padding that it has in every mixture: at the end of all its storages, in a body whose
    /// storages all begin at multiples of the alignment.
    fn pad(&self, align: Align, overlays: &Lists<OpId, Overlay>, bytes: &mut [u64]) {
        let (mut is_inside, lasts) = self.ends(bytes.len());
        let is_whole_end = |id: TensorId| lasts[id].is_none_or(|cell| !is_inside[cell as usize]);
        let mut groups = Groups::new(self.roots.ids().collect());
        groups.follow(self.graph, overlays, is_whole_end);
        let grid = align.bytes().0;
        for take in self.takes {
            groups.join(take.to, take.from);
            if take.at.abs_diff(take.start) % grid != 0 {
                groups.loosen(take.to);
            }
        }
        for (id, &cell) in lasts.iter_enumerated() {
            let Some(cell) = cell.map(|cell| cell as usize) else { continue };
            // Once for all storages that end with it.
            if !std::mem::replace(&mut is_inside[cell], true) && !groups.is_loose(id) {
                let size = size(self.graph, id).unsigned_abs();
                bytes[cell] += size.next_multiple_of(grid) - size;
            }
        }
    }

    /// Which cells lie before another of a storage, and the last one of each.
    fn ends(&self, len: usize) -> (Vec<bool>, IndexVec<TensorId, Option<u32>>) {
        let mut is_inside = vec![false; len];
        let mut lasts = IndexVec::filled(self.roots.len(), None);
        for storage in self.roots.ids() {
            for cell in self.of(storage) {
                if let Some(before) = lasts[storage].replace(cell) {
                    is_inside[before as usize] = true;
                }
            }
        }
        (is_inside, lasts)
    }
}

/// Cells that a storage holds again, and what holds each as often.
#[derive(Debug, Default)]
struct Again {
    rows: BTreeMap<(u32, usize), (u32, BTreeSet<TensorId>)>,
}

impl Again {
    /// Tells the cells of `storage` apart, of which some can be there several times.
    fn tell_apart(
        &mut self,
        storage: TensorId,
        list: &mut Vec<u32>,
        takes: &[Take],
        bytes: &mut Vec<u64>,
    ) {
        list.sort_unstable();
        let mut found = Vec::with_capacity(list.len());
        let mut times = 0;
        for (at, &cell) in list.iter().enumerate() {
            times = if at > 0 && list[at - 1] == cell { times + 1 } else { 0 };
            if times == 0 {
                found.push(cell);
            } else {
                found.extend(self.cell((cell, times), storage, takes, bytes));
            }
        }
        *list = found;
    }

    /// The cell for one that is there so many times more; none if others hold it that this storage has not taken it
    /// from, as there could be a time between them when nobody does.
    fn cell(
        &mut self,
        key: (u32, usize),
        storage: TensorId,
        takes: &[Take],
        bytes: &mut Vec<u64>,
    ) -> Option<u32> {
        let size = bytes[key.0 as usize];
        let (cell, holders) =
            self.rows.entry(key).or_insert_with(|| (new_cell(size, bytes), BTreeSet::new()));
        let is_taken = takes.iter().any(|take| holders.contains(&take.from));
        if !holders.is_empty() && !is_taken {
            return None;
        }
        holders.insert(storage);
        Some(*cell)
    }
}
