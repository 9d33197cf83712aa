//! [`GraphBuilder`]: tensors and operators in, a proven [`Graph`] out.
//!
//! ~~~
//! use lowtide_core::{Bytes, GraphBuilder, Op, Sharing, Size};
//! let mut b = GraphBuilder::new("two operators");
//! let x = b.input("x", Size::Fixed(Bytes(64)));
//! let y = b.computed("y", Size::Fixed(Bytes(64)));
//! let z = b.computed("z", Size::Fixed(Bytes(64)));
//! b.op(Op::new("first", "Conv", [x], [y]));
//! b.op(Op::new("second", "Relu", [y], [z]).sharing(Sharing::MayOverwrite { output: z, of: y }));
//! b.output(z);
//! let graph = b.finish()?;
//! # Ok::<(), lowtide_core::GraphError>(())
//! ~~~
//! Cost of `finish`: near-linear. Errors name operator and tensor.

use crate::alias::Storages;
use crate::index::Id;
use crate::order::Readiness;
use crate::origins::Origins;
use crate::{
    Align, Bytes, Fingerprint, Graph, IndexVec, Lists, Op, OpId, Sharing, Size, Tensor, TensorId,
    TensorKind,
};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Collects the parts of a graph.
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    name: Box<str>,
    ops: IndexVec<OpId, Op>,
    tensors: IndexVec<TensorId, Tensor>,
}

/// Why tensors and operators do not make a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum GraphError {
    /// An operator names a tensor beyond the table.
    #[error("operator `{op}` names tensor {tensor}, but there are {tensors} tensors")]
    NoSuchTensor { op: String, tensor: TensorId, tensors: usize },
    /// Two writes to one tensor.
    #[error("tensor `{tensor}` is written by operator `{first}` and again by operator `{second}`")]
    WrittenTwice { tensor: String, first: String, second: String },
    /// A write to an input or a weight.
    #[error("operator `{op}` writes `{tensor}`, which is {kind} of the graph")]
    WritesExternal { op: String, tensor: String, kind: &'static str },
    /// A computed tensor without writer.
    #[error("tensor `{tensor}` is neither input nor weight, and no operator writes it")]
    NeverWritten { tensor: String },
    /// Operators that wait for each other.
    #[error("operators wait for each other in a cycle: {cycle}")]
    Cycle { cycle: String },
    /// Sharing that names a tensor which is not there.
    #[error("operator `{op}`: a {sharing} names `{tensor}`, which is not one of its {wanted}")]
    ForeignSharing { op: String, sharing: &'static str, tensor: String, wanted: &'static str },
    /// A tensor that is a view or mutated value in two ways.
    #[error("operator `{op}`: output `{tensor}` is declared a view or a mutated value twice")]
    SharesTwice { op: String, tensor: String },
    /// A view that ends beyond its base.
    #[error("view `{view}` ends at byte {end} of `{base}`, which has {base_size}")]
    ViewOutside { view: String, base: String, end: u64, base_size: Size },
    /// One value changed in two ways.
    #[error(
        "tensor `{tensor}` is changed in place by `{first}` and by `{second}`, each of which needs the other to come later"
    )]
    MutatedTwice { tensor: String, first: String, second: String },
    /// More orderings than a graph may have.
    #[error(
        "operator `{op}` changes bytes that too many other tensors are views of: more than {limit} pairs have to wait for each other"
    )]
    TooManyWaits { op: String, limit: usize },
    /// A part that ends beyond its whole.
    #[error("part `{part}` ends at byte {end} of `{whole}`, which has {size}")]
    PartOutside { part: String, whole: String, end: u64, size: Size },
    /// A piece that ends beyond what it is a piece of.
    #[error("piece `{piece}` ends at byte {end} of `{base}`, which has {size}")]
    PieceOutside { piece: String, base: String, end: u64, size: Size },
    /// A piece that has no bytes of its own.
    #[error(
        "operator `{op}`: output `{tensor}` is declared a piece, and a view or a mutated value"
    )]
    PieceShares { op: String, tensor: String },
    /// A mutation that would change a tensor's size.
    #[error("mutated value `{tensor}` takes {size}, but `{of}` takes {of_size}")]
    MutationResizes { tensor: String, size: Size, of: String, of_size: Size },
    /// A graph output whose bytes are changed later.
    #[error("operator `{op}` changes the bytes of `{tensor}`, which is an output of the graph")]
    OutputMutated { tensor: String, op: String },
    /// Sizes whose sum is out of range.
    #[error("with `{name}` the sizes add up to more than {limit}")]
    TooLarge { name: String, limit: Bytes },
    /// A cost that is no time.
    #[error(
        "operator `{op}`: its cost is {cost} seconds; wanted a number from 0 to {MOST_SECONDS:e}"
    )]
    BadCost { op: String, cost: String },
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds a tensor given by the caller for each run.
    pub fn input(&mut self, name: impl Into<Box<str>>, size: Size) -> TensorId {
        self.tensor(Tensor::new(name, size, TensorKind::Input))
    }

    /// Adds a tensor that is the same in every run.
    pub fn weight(&mut self, name: impl Into<Box<str>>, size: Size) -> TensorId {
        self.tensor(Tensor::new(name, size, TensorKind::Weight))
    }

    /// Adds a tensor that an operator writes.
    pub fn computed(&mut self, name: impl Into<Box<str>>, size: Size) -> TensorId {
        self.tensor(Tensor::new(name, size, TensorKind::Computed))
    }

    /// Adds a tensor.
    pub fn tensor(&mut self, tensor: Tensor) -> TensorId {
        self.tensors.push(tensor)
    }

    /// Adds an operator; the order of these calls is the file order. Its sharing is kept by kind, so that the
    /// same permissions make the same graph wherever they come from; within a kind their order is preference.
    pub fn op(&mut self, mut op: Op) -> OpId {
        op.sharing.sort_by_key(|sharing| match sharing {
            Sharing::View { .. } => 0,
            Sharing::Mutates { .. } => 1,
            Sharing::MayOverwrite { .. } => 2,
            Sharing::PartOf { .. } => 3,
            Sharing::PieceOf { .. } => 4,
        });
        let mut seen = BTreeSet::new();
        op.sharing.retain(|&sharing| seen.insert(sharing));
        self.ops.push(op)
    }

    /// The caller gets this tensor: it lives to the end.
    pub fn output(&mut self, tensor: TensorId) {
        self.tensors[tensor].is_output = true;
    }

    /// Proves the invariants of a [`Graph`].
    pub fn finish(self) -> Result<Graph, GraphError> {
        let Self { name, ops, tensors } = self;
        ops.iter().try_for_each(|op| check_op(op, &tensors))?;
        check_total(&ops, &tensors)?;
        let writers = writers(&ops, &tensors)?;
        let reads = reads(&ops, tensors.len());
        let readers = readers(&reads, tensors.len());
        let fingerprint = Fingerprint::of(&ops, &tensors);
        let storages = Storages::without_waits(ops.len(), tensors.len());
        let mut graph = Graph {
            name,
            ops,
            tensors,
            writers,
            reads,
            readers,
            storages,
            parts: IndexVec::new(),
            origins: Origins::default(),
            kept: IndexVec::new(),
            file_order: Vec::new(),
            fingerprint,
        };
        graph.file_order = topological(&graph)?;
        graph.storages = Storages::build(&graph.ops, &graph.tensors, &graph.file_order)?;
        if graph.storages.has_waits() {
            graph.file_order = topological(&graph)?;
        }
        graph.parts = parts(&graph);
        graph.origins = Origins::build(&graph);
        graph.kept = kept(&graph);
        Ok(graph)
    }
}

/// See [`Graph::is_part`].
fn parts(graph: &Graph) -> IndexVec<TensorId, bool> {
    let len = graph.tensors.len();
    let mut over = Vec::new();
    for sharing in graph.ops.iter().flat_map(|op| &op.sharing) {
        if let Sharing::MayOverwrite { output, of } = *sharing {
            let (output, of) = (graph.storage(output), graph.storage(of));
            over.extend([(output, of), (of, output)]);
        }
    }
    let over = Lists::group(len, &over);
    let inners = inners(graph);
    let groups = groups(&over, len);
    // How often something of each group lies in another storage, or holds one.
    let mut related = IndexVec::filled(len, 0);
    for &(inner, outer) in &inners {
        related[groups[inner]] += 1;
        related[groups[outer]] += 1;
    }
    let is_elsewhere = |inner: TensorId| related[groups[inner]] > 1;
    let wholes = inners.iter().filter(|row| is_elsewhere(row.0)).map(|&(_, outer)| outer);
    let mut reached: Vec<TensorId> = inners.iter().map(|&(inner, _)| inner).chain(wholes).collect();
    let mut parts = IndexVec::filled(len, false);
    while let Some(storage) = reached.pop() {
        if !std::mem::replace(&mut parts[storage], true) {
            reached.extend_from_slice(&over[storage]);
        }
    }
    parts
}

/// For each storage one that stands for all that may come to lie in its place, one over the other.
fn groups(over: &Lists<TensorId, TensorId>, len: usize) -> IndexVec<TensorId, TensorId> {
    let mut groups: IndexVec<TensorId, Option<TensorId>> = IndexVec::filled(len, None);
    for first in groups.ids() {
        let mut reached = vec![first];
        while let Some(storage) = reached.pop() {
            if groups[storage].is_none() {
                groups[storage] = Some(first);
                reached.extend_from_slice(&over[storage]);
            }
        }
    }
    groups.iter().map(|group| group.expect("each storage has been reached")).collect()
}

/// The storage of each part or piece with the one that it may lie in.
fn inners(graph: &Graph) -> Vec<(TensorId, TensorId)> {
    let pair = |sharing: &Sharing| match *sharing {
        Sharing::PartOf { input, output, .. } => Some((input, output)),
        Sharing::PieceOf { output, of, .. } => Some((output, of)),
        Sharing::View { .. } | Sharing::Mutates { .. } | Sharing::MayOverwrite { .. } => None,
    };
    let pairs = graph.ops.iter().flat_map(|op| &op.sharing).filter_map(pair);
    let mut pairs: Vec<_> =
        pairs.map(|(inner, outer)| (graph.storage(inner), graph.storage(outer))).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Which storages hold an output.
fn kept(graph: &Graph) -> IndexVec<TensorId, bool> {
    let mut kept = IndexVec::filled(graph.tensors.len(), false);
    for (id, tensor) in graph.tensors.iter_enumerated() {
        kept[graph.storage(id)] |= tensor.is_output;
    }
    kept
}

impl Tensor {
    /// Its name, or its number where it has none.
    pub(crate) fn label(&self, id: TensorId) -> String {
        if self.name.is_empty() { id.to_string() } else { self.name.to_string() }
    }

    /// A tensor of which no more is known.
    pub fn new(name: impl Into<Box<str>>, size: Size, kind: TensorKind) -> Self {
        Self { name: name.into(), size, kind, is_output: false, dtype: None, shape: None }
    }
}

/// No operator takes longer than so many seconds, so that sums of times stay numbers.
pub const MOST_SECONDS: f64 = 1e12;

/// Whether an operator can take so many seconds: from 0 to [`MOST_SECONDS`].
pub fn is_time(seconds: f64) -> bool {
    (0.0..=MOST_SECONDS).contains(&seconds)
}

impl Op {
    /// A cost is a time.
    pub(crate) fn check_cost(&self) -> Result<(), GraphError> {
        match self.cost {
            Some(cost) if !is_time(cost) => {
                Err(GraphError::BadCost { op: self.label().to_owned(), cost: format!("{cost:e}") })
            }
            _ => Ok(()),
        }
    }
}

/// Ids in range, sharing between its own tensors, cost a time.
fn check_op(op: &Op, tensors: &IndexVec<TensorId, Tensor>) -> Result<(), GraphError> {
    for &tensor in op.inputs.iter().chain(&op.outputs) {
        if tensor.index() >= tensors.len() {
            let op = op.label().to_owned();
            return Err(GraphError::NoSuchTensor { op, tensor, tensors: tensors.len() });
        }
    }
    op.check_cost()?;
    if op.sharing.is_empty() {
        return Ok(());
    }
    let sorted = |list: &[TensorId]| {
        let mut list = list.to_vec();
        list.sort_unstable();
        list
    };
    let operands = (sorted(&op.inputs), sorted(&op.outputs));
    op.sharing.iter().try_for_each(|&sharing| check_sharing(op, &operands, sharing, tensors))
}

/// `operands` are the operator's inputs and outputs, sorted.
fn check_sharing(
    op: &Op,
    operands: &(Vec<TensorId>, Vec<TensorId>),
    sharing: Sharing,
    tensors: &IndexVec<TensorId, Tensor>,
) -> Result<(), GraphError> {
    let (kind, input, output) = match sharing {
        Sharing::View { output, of, .. } => ("view", of, output),
        Sharing::Mutates { output, of } => ("mutation", of, output),
        Sharing::MayOverwrite { output, of } => ("permission to overwrite", of, output),
        Sharing::PartOf { input, output, .. } => ("part", input, output),
        Sharing::PieceOf { output, of, .. } => ("piece", of, output),
    };
    for (list, tensor, wanted) in [(&operands.0, input, "inputs"), (&operands.1, output, "outputs")]
    {
        if list.binary_search(&tensor).is_err() {
            return Err(GraphError::ForeignSharing {
                op: op.label().to_owned(),
                sharing: kind,
                tensor: tensors
                    .get(tensor)
                    .map_or_else(|| tensor.to_string(), |t| t.name.to_string()),
                wanted,
            });
        }
    }
    match sharing {
        Sharing::PartOf { input, output, offset } => {
            let Err((end, size)) = lies_inside(tensors, input, output, offset) else {
                return Ok(());
            };
            let (part, whole) = (tensors[input].label(input), tensors[output].label(output));
            Err(GraphError::PartOutside { part, whole, end, size })
        }
        Sharing::PieceOf { output, of, offset } => {
            refuse_other_sharing(op, output, tensors)?;
            let Err((end, size)) = lies_inside(tensors, output, of, offset) else { return Ok(()) };
            let (piece, base) = (tensors[output].label(output), tensors[of].label(of));
            Err(GraphError::PieceOutside { piece, base, end, size })
        }
        Sharing::View { .. } | Sharing::Mutates { .. } | Sharing::MayOverwrite { .. } => Ok(()),
    }
}

/// That `inner` at `offset` ends inside `outer`, as far as sizes are known; otherwise where it ends, and where that does.
fn lies_inside(
    tensors: &IndexVec<TensorId, Tensor>,
    inner: TensorId,
    outer: TensorId,
    offset: Bytes,
) -> Result<(), (u64, Size)> {
    let size = tensors[outer].size;
    let (Some(bytes), Some(limit)) = (tensors[inner].size.bound(), size.bound()) else {
        return Ok(());
    };
    if offset.checked_add(bytes).is_some_and(|end| end <= limit) {
        return Ok(());
    }
    Err((offset.0.saturating_add(bytes.0), size))
}

/// A view or a mutated value has no bytes that could lie elsewhere. They come first among what an operator shares.
fn refuse_other_sharing(
    op: &Op,
    piece: TensorId,
    tensors: &IndexVec<TensorId, Tensor>,
) -> Result<(), GraphError> {
    let takes_bytes = |sharing: &Sharing| match *sharing {
        Sharing::View { output, .. } | Sharing::Mutates { output, .. } => output == piece,
        _ => false,
    };
    let mut obligations = op
        .sharing
        .iter()
        .take_while(|sharing| matches!(sharing, Sharing::View { .. } | Sharing::Mutates { .. }));
    if !obligations.any(takes_bytes) {
        return Ok(());
    }
    let tensor = tensors[piece].label(piece);
    Err(GraphError::PieceShares { op: op.label().to_owned(), tensor })
}

/// All sizes together, each padded to the largest alignment, stay below the limit.
fn check_total(
    ops: &IndexVec<OpId, Op>,
    tensors: &IndexVec<TensorId, Tensor>,
) -> Result<(), GraphError> {
    let sizes = tensors.iter().map(|tensor| (&tensor.name, tensor.size));
    let scratch = ops.iter().map(|op| (&op.name, op.scratch));
    let mut total = Bytes::ZERO;
    for (name, size) in sizes.chain(scratch) {
        let padded = size.bound().unwrap_or_default().align_up(Align::MAX);
        let sum = padded.and_then(|padded| total.checked_add(padded));
        total = sum.filter(|&sum| sum <= Bytes::MAX_TOTAL).ok_or_else(|| GraphError::TooLarge {
            name: name.to_string(),
            limit: Bytes::MAX_TOTAL,
        })?;
    }
    Ok(())
}

fn writers(
    ops: &IndexVec<OpId, Op>,
    tensors: &IndexVec<TensorId, Tensor>,
) -> Result<IndexVec<TensorId, Option<OpId>>, GraphError> {
    let mut writers: IndexVec<TensorId, Option<OpId>> = IndexVec::filled(tensors.len(), None);
    for (id, op) in ops.iter_enumerated() {
        for &output in &op.outputs {
            if let Some(first) = writers[output].replace(id) {
                return Err(GraphError::WrittenTwice {
                    tensor: tensors[output].label(output),
                    first: ops[first].label().to_owned(),
                    second: op.label().to_owned(),
                });
            }
            let kind = match tensors[output].kind {
                TensorKind::Computed => continue,
                TensorKind::Weight => "a weight",
                TensorKind::Input => "an input",
            };
            let tensor = tensors[output].label(output);
            return Err(GraphError::WritesExternal { op: op.label().to_owned(), tensor, kind });
        }
    }
    let unwritten = |(id, tensor): &(TensorId, &Tensor)| {
        tensor.kind == TensorKind::Computed && writers[*id].is_none()
    };
    match tensors.iter_enumerated().find(unwritten) {
        Some((id, tensor)) => Err(GraphError::NeverWritten { tensor: tensor.label(id) }),
        None => Ok(writers),
    }
}

/// Inputs of each operator without repetition, in the order of their first place.
fn reads(ops: &IndexVec<OpId, Op>, tensors: usize) -> Lists<OpId, TensorId> {
    let mut last_reader: IndexVec<TensorId, Option<OpId>> = IndexVec::filled(tensors, None);
    let mut reads = Lists::new();
    for (id, op) in ops.iter_enumerated() {
        let is_new = |&input: &TensorId| last_reader[input].replace(id) != Some(id);
        reads.push(op.inputs.iter().copied().filter(is_new).collect::<Vec<_>>());
    }
    reads
}

fn readers(reads: &Lists<OpId, TensorId>, tensors: usize) -> Lists<TensorId, OpId> {
    let pair = |(op, list): (usize, &[TensorId])| {
        list.iter().map(move |&tensor| (tensor, OpId::from_index(op))).collect::<Vec<_>>()
    };
    let pairs: Vec<(TensorId, OpId)> = reads.iter().enumerate().flat_map(pair).collect();
    Lists::group(tensors, &pairs)
}

/// The topological order nearest to the file's: always the first operator of the file that may run.
fn topological(graph: &Graph) -> Result<Vec<OpId>, GraphError> {
    let mut readiness = Readiness::new(graph);
    let mut ready: BinaryHeap<Reverse<OpId>> = readiness.ready().map(Reverse).collect();
    let mut order = Vec::with_capacity(graph.ops.len());
    while let Some(Reverse(op)) = ready.pop() {
        order.push(op);
        readiness.run(op, |next| ready.push(Reverse(next)));
    }
    if order.len() == graph.ops.len() {
        return Ok(order);
    }
    Err(GraphError::Cycle { cycle: cycle(graph, &readiness) })
}

/// Names the operators of one cycle, of a long one only the first few.
fn cycle(graph: &Graph, readiness: &Readiness<'_>) -> String {
    const SHOWN: usize = 8;
    let stuck = |&op: &OpId| !readiness.has_run(op);
    let before = |op: OpId| {
        let data = graph.reads(op).iter().filter_map(|&tensor| graph.writer(tensor)).find(stuck);
        let others = graph.overwritten_by(op).iter().flat_map(|&tensor| graph.readers(tensor));
        data.or_else(|| others.copied().filter(|&other| other != op).find(stuck))
            .expect("an operator that never runs waits for another one")
    };
    // Walking backward among stuck operators has to come round; where it first does, the cycle closes.
    let mut seen: IndexVec<OpId, bool> = IndexVec::filled(graph.ops.len(), false);
    let mut op = graph.ops.ids().find(stuck).expect("some operator never ran");
    while !std::mem::replace(&mut seen[op], true) {
        op = before(op);
    }
    let mut path = vec![op];
    let mut next = before(op);
    while next != op && path.len() < SHOWN {
        path.push(next);
        next = before(next);
    }
    let mut names: Vec<String> =
        path.iter().map(|&op| format!("`{}`", graph.op_label(op))).collect();
    names.push(if next == op { names[0].clone() } else { "...".to_owned() });
    names.reverse();
    names.join(" -> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size::Fixed(Bytes(64));

    /// `a -> p`, where `p` is a piece of `a` from here on, and more.
    fn piece(offset: u64, more: Option<Sharing>) -> Result<Graph, GraphError> {
        let mut b = GraphBuilder::new("piece");
        let (a, p) = (b.input("a", SIZE), b.computed("p", Size::Fixed(Bytes(16))));
        let piece = Sharing::PieceOf { output: p, of: a, offset: Bytes(offset) };
        let mut op = Op::new("slice", "Slice", [a], [p]).sharing(piece);
        op.sharing.extend(more);
        b.op(op);
        b.finish()
    }

    #[test]
    fn a_piece_lies_inside_its_base_and_has_bytes_of_its_own() {
        assert!(piece(48, None).is_ok());
        let message = |offset, more| piece(offset, more).unwrap_err().to_string();
        assert_eq!(message(49, None), "piece `p` ends at byte 65 of `a`, which has 64 B");
        let [of, output] = [0, 1].map(TensorId::new);
        let view = Sharing::View { output, of, offset: None };
        let wanted =
            "operator `slice`: output `p` is declared a piece, and a view or a mutated value";
        assert_eq!(message(0, Some(view)), wanted);
        let foreign = Sharing::PieceOf { output: of, of, offset: Bytes::ZERO };
        let wanted = "operator `slice`: a piece names `a`, which is not one of its outputs";
        assert_eq!(message(0, Some(foreign)), wanted);
    }

    /// `x -> a -> r -> w`: `r` is written over `a` and is a part of `w`; of which `p` is a piece, written over by `q`.
    #[test]
    fn what_lies_beside_others_and_what_shares_its_place_is_a_part() {
        let mut b = GraphBuilder::new("parts");
        let x = b.input("x", SIZE);
        let [a, r, w, p, q, y] = ["a", "r", "w", "p", "q", "y"].map(|name| b.computed(name, SIZE));
        let over = |output, of| Sharing::MayOverwrite { output, of };
        b.op(Op::new("a", "A", [x], [a]));
        b.op(Op::new("r", "R", [a], [r]).sharing(over(r, a)));
        let part = Sharing::PartOf { input: r, output: w, offset: Bytes::ZERO };
        b.op(Op::new("w", "W", [r], [w]).sharing(part));
        let piece = Sharing::PieceOf { output: p, of: w, offset: Bytes::ZERO };
        b.op(Op::new("p", "P", [w], [p]).sharing(piece));
        b.op(Op::new("q", "Q", [p], [q]).sharing(over(q, p)));
        b.op(Op::new("y", "Y", [q], [y]));
        let graph = b.finish().expect("a graph");
        let parts = [x, a, r, w, p, q, y].map(|tensor| graph.is_part(tensor));
        assert_eq!(parts, [false, true, true, false, true, true, false]);
    }
}
