//! [`Origins`]: which bytes of which tensors are the same by declaration, whoever wrote them.
//!
//! ~~~text
//! concat(x0, x1) -> w1        w1 [0 ── x0 ── 16)[16 ── x1 ── 64)
//! slice(w1)      -> y         y  [0 ── w1 [16..) ── 48)          so byte 3 of y is byte 3 of x1: one origin
//! ~~~
//! Each part of a whole, and each piece of a base, is a row that leads from bytes of a tensor to bytes of one written
//! before it. Only fixed sizes, and views whose elements stand in order, have rows; a mutated value is its own origin.
//! Cost: O(n log n) to build; two runs of bytes are compared a row at a time, the later written first, so that they
//! meet where they come from one another. Long ways are cut off: what is not shown is not the same.

use crate::{Bytes, Graph, IndexVec, Lists, OpId, Sharing, TensorId};

/// Bytes of a storage while it holds the value of `tensor`: from `at` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) tensor: TensorId,
    pub(crate) at: u64,
}

impl Origin {
    fn plus(self, bytes: u64) -> Self {
        Self { at: self.at + bytes, ..self }
    }
}

/// The bytes `[start, end)` of a tensor are those of `from`.
#[derive(Clone, Copy, Debug)]
struct Row {
    start: u64,
    end: u64,
    from: Origin,
}

/// The rows of all tensors. Part of a [`Graph`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins {
    /// Of each tensor, by ascending start.
    rows: Lists<TensorId, Row>,
    /// When it is written in the order of the file; what is not written comes first.
    ranks: IndexVec<TensorId, usize>,
    /// Storages that a row leads from or to: the only ones that can hold the same bytes.
    named: IndexVec<TensorId, bool>,
}

impl Origins {
    /// Reads the rows off a graph whose storages and order are known.
    pub(crate) fn build(graph: &Graph) -> Self {
        let len = graph.tensors().len();
        let mut ranks = IndexVec::filled(len, 0);
        let mut named = IndexVec::filled(len, false);
        let mut rows = Vec::new();
        for (rank, &op) in graph.file_order.iter().enumerate() {
            for &output in &graph.ops()[op].outputs {
                ranks[output] = rank + 1;
            }
            rows.extend(rows_of(graph, op));
        }
        rows.sort_by_key(|&(tensor, row)| (tensor, row.start));
        for (tensor, row) in &rows {
            named[*tensor] = true;
            named[graph.storage(row.from.tensor)] = true;
        }
        Self { rows: Lists::group(len, &rows), ranks, named }
    }

    /// Whether other storages may hold bytes of this one at the same time.
    pub(crate) fn is_named(&self, storage: TensorId) -> bool {
        self.named[storage]
    }

    /// Whether the bytes of `a` and those of `b` are the same by declaration; each row followed costs one of `budget`.
    pub(crate) fn same(&self, a: Origin, b: Origin, bytes: u64, budget: &mut u64) -> bool {
        let mut done = 0;
        while done < bytes {
            match self.meet(a.plus(done), b.plus(done), bytes - done, budget) {
                Some(run) => done += run,
                None => return false,
            }
        }
        true
    }

    /// How many bytes from here on have one origin; `None` if the first has not.
    fn meet(&self, mut a: Origin, mut b: Origin, bytes: u64, budget: &mut u64) -> Option<u64> {
        let mut run = bytes;
        while a != b {
            *budget = budget.checked_sub(1)?;
            // What is written first cannot come from what is written later.
            let later = if self.ranks[a.tensor] >= self.ranks[b.tensor] { &mut a } else { &mut b };
            let (from, left) = self.below(*later)?;
            run = run.min(left);
            *later = from;
        }
        Some(run)
    }

    /// The row at a byte: where it leads, and how many bytes it goes on.
    fn below(&self, origin: Origin) -> Option<(Origin, u64)> {
        let rows = &self.rows[origin.tensor];
        let next = rows.partition_point(|row| row.start <= origin.at);
        let row = next.checked_sub(1).map(|at| &rows[at]).filter(|row| origin.at < row.end)?;
        let end = rows.get(next).map_or(row.end, |next| next.start.min(row.end));
        Some((row.from.plus(origin.at - row.start), end - origin.at))
    }

    /// How many bytes go on as the first one does, and where they come from in the end.
    fn bottom(&self, graph: &Graph, origin: Origin, bytes: u64, budget: &mut u64) -> (Origin, u64) {
        let (mut bottom, mut run) = (origin, bytes);
        loop {
            // A mutated value may lie on what shares bytes with the value before it.
            bottom.tensor = graph.storage(bottom.tensor);
            let Some((from, left)) = self.below(bottom) else { break };
            (bottom, run) = (from, run.min(left));
            if budget.checked_sub(1).map(|left| *budget = left).is_none() {
                break;
            }
        }
        let rows = &self.rows[bottom.tensor];
        let next = rows.get(rows.partition_point(|row| row.start <= bottom.at));
        (bottom, next.map_or(run, |next| run.min(next.start - bottom.at)))
    }

    /// How many different bytes these storages have at least.
    pub(crate) fn distinct(&self, graph: &Graph, storages: &[TensorId]) -> Bytes {
        /// Rows followed for one sum; what lies behind more of them adds nothing.
        const MOST_ROWS: u64 = 2048;
        if let [only] = storages {
            return graph.tensors()[*only].size.bound().unwrap_or_default();
        }
        let mut budget = MOST_ROWS;
        let mut found: Vec<(TensorId, u64, u64)> = Vec::new();
        let mut largest = 0;
        for &storage in storages {
            let bytes = graph.tensors()[storage].size.bound().unwrap_or_default().0;
            largest = largest.max(bytes);
            let mut at = 0;
            while at < bytes && budget > 0 {
                let here = Origin { tensor: storage, at };
                budget -= 1;
                let (bottom, run) = self.bottom(graph, here, bytes - at, &mut budget);
                if budget > 0 {
                    found.push((bottom.tensor, bottom.at, bottom.at + run));
                }
                at += run;
            }
        }
        found.sort_unstable();
        Bytes(covered(&found).max(largest))
    }
}

/// How many bytes sorted ranges cover.
fn covered(ranges: &[(TensorId, u64, u64)]) -> u64 {
    let (mut sum, mut reached) = (0, None);
    for &(tensor, start, end) in ranges {
        let start = match reached {
            Some((of, reached)) if of == tensor => start.max(reached),
            _ => start,
        };
        sum += end.saturating_sub(start);
        reached = Some((tensor, end.max(start)));
    }
    sum
}

/// What an operator says of the bytes of its outputs.
fn rows_of(graph: &Graph, op: OpId) -> impl Iterator<Item = (TensorId, Row)> + '_ {
    graph.ops()[op].sharing.iter().filter_map(|&sharing| match sharing {
        Sharing::PartOf { input, output, offset } => {
            let (bytes, from) = place(graph, input)?;
            let is_own = graph.is_storage(output) && bytes > 0;
            graph.tensors()[output].size.fixed().filter(|_| is_own)?;
            Some((output, Row { start: offset.0, end: offset.0 + bytes, from }))
        }
        Sharing::PieceOf { output, of, offset } => {
            let (bytes, from) = (graph.tensors()[output].size.fixed()?.0, place(graph, of)?.1);
            let row = Row { start: 0, end: bytes, from: from.plus(offset.0) };
            (graph.is_storage(output) && bytes > 0).then_some((output, row))
        }
        Sharing::View { .. } | Sharing::Mutates { .. } | Sharing::MayOverwrite { .. } => None,
    })
}

/// How many bytes a tensor has, and where they are; `None` if either is not known, or they stand in another order.
fn place(graph: &Graph, tensor: TensorId) -> Option<(u64, Origin)> {
    let (extent, size) = (graph.extent(tensor), graph.tensors()[tensor].size.fixed()?);
    graph.tensors()[extent.root].size.fixed()?;
    let is_exact = extent.is_exact && extent.bytes == Some(size);
    let origin = Origin { tensor: graph.content(tensor), at: extent.start.0 };
    is_exact.then_some((size.0, origin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GraphBuilder, Op, Size};

    fn fixed(bytes: u64) -> Size {
        Size::Fixed(Bytes(bytes))
    }

    fn origin(tensor: TensorId, at: u64) -> Origin {
        Origin { tensor, at }
    }

    /// `w1 = x0 x1` (16 and 48 bytes), `w2 = w1 x2`, nested so often, and a piece of the last from byte 8 on.
    fn nested(depth: u64) -> (Graph, Vec<TensorId>) {
        let mut b = GraphBuilder::new("nested");
        let mut whole = b.input("x0", fixed(16));
        let mut made = vec![whole];
        for level in 0..depth {
            let more = b.computed("x", fixed(48));
            b.op(Op::new("make", "Make", [whole], [more]));
            let output = b.computed("w", fixed(16 + 48 * (level + 1)));
            let part = |input, offset| Sharing::PartOf { input, output, offset: Bytes(offset) };
            b.op(Op::new("concat", "Concat", [whole, more], [output])
                .sharing(part(whole, 0))
                .sharing(part(more, 16 + 48 * level)));
            whole = output;
            made.extend([more, output]);
        }
        let piece = b.computed("y", fixed(16));
        let sharing = Sharing::PieceOf { output: piece, of: whole, offset: Bytes(8) };
        b.op(Op::new("slice", "Slice", [whole], [piece]).sharing(sharing));
        b.output(piece);
        made.push(piece);
        (b.finish().expect("a graph"), made)
    }

    #[test]
    fn bytes_are_followed_through_parts_and_pieces() {
        let (graph, made) = nested(2);
        let [x0, x1, w1, x2, w2, y] = made.try_into().expect("six tensors");
        let same = |a, b, bytes| graph.origins.same(a, b, bytes, &mut 100);
        assert!(same(origin(w2, 0), origin(w1, 0), 64) && same(origin(w2, 0), origin(x0, 0), 16));
        assert!(same(origin(y, 0), origin(x0, 8), 8) && same(origin(y, 8), origin(x1, 0), 8));
        assert!(!same(origin(y, 0), origin(x0, 8), 9) && !same(origin(w2, 64), origin(x1, 0), 1));
        assert!(same(origin(x2, 0), origin(w2, 64), 48));
    }

    #[test]
    fn a_long_way_is_cut_off() {
        let (graph, made) = nested(200);
        let (first, last) = (origin(made[0], 0), origin(made[made.len() - 2], 0));
        assert!(graph.origins.same(first, last, 16, &mut 200));
        assert!(!graph.origins.same(first, last, 16, &mut 199));
        // Every level leads once to the one below, and what is cut off only makes the sum smaller.
        let all: Vec<TensorId> = graph.tensors().ids().collect();
        assert_eq!(graph.least_bytes(all, |_| Bytes(16)), Bytes(16 + 48 * 200));
    }

    #[test]
    fn bytes_of_one_origin_count_once() {
        let (graph, made) = nested(2);
        let [x0, x1, w1, x2, w2, y] = made.try_into().expect("six tensors");
        let least = |tensors: &[TensorId]| {
            let size = |id: TensorId| graph.tensors()[id].size.bound().unwrap_or_default();
            graph.least_bytes(tensors.to_vec(), size).0
        };
        assert_eq!((least(&[x0, x1]), least(&[x0, w1]), least(&[w1, x2])), (64, 64, 112));
        assert_eq!((least(&[w1, w2, y]), least(&[x2, y]), least(&[x2, x2])), (112, 64, 48));
    }
}
