//! [`Graph`]: one resolved graph, frozen. The planner and the checker see this and no operator semantics.
//!
//! ~~~text
//! weights w ─┐                        Sharing says which outputs may or must lie on inputs:
//! input   x ─ Conv ─ a ─ Relu ─ b       Relu    may overwrite a with b
//!                         Reshape ─ c   Reshape c is a view of b: same bytes, no memory of its own
//! ~~~
//!
//! Invariants, proven by [`GraphBuilder::finish`](crate::GraphBuilder::finish): every computed tensor has
//! one writer and every other none; sharing names an output and an input of its own operator; a tensor
//! shares its storage in one way at most; views lie inside their base; some order of the operators
//! satisfies data and mutations; the sum of all sizes stays below [`Bytes::MAX_TOTAL`].

use crate::alias::{Extent, Storages};
use crate::origins::Origins;
use crate::{
    Bytes, DType, Dim, Fingerprint, GraphError, IndexVec, Lists, OpId, Order, Size, TensorId,
};

/// Where the value of a tensor comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TensorKind {
    /// The same in every run; never in the arena.
    Weight,
    /// Given by the caller for each run.
    Input,
    /// Written by an operator.
    Computed,
}

/// One tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// For people; need not be unique.
    pub name: Box<str>,
    /// How many bytes it takes.
    pub size: Size,
    /// Where its value comes from.
    pub kind: TensorKind,
    /// Whether the caller gets it: it lives to the end.
    pub is_output: bool,
    /// Element type, if known.
    pub dtype: Option<DType>,
    /// Shape, if known; names in it say on what an open size depends.
    pub shape: Option<Box<[Dim]>>,
}

/// One operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// For people; need not be unique.
    pub name: Box<str>,
    /// Its type, such as `Conv`; for people.
    pub kind: Box<str>,
    /// What it reads; absent optional inputs are left out, values that its bodies capture come last.
    pub inputs: Vec<TensorId>,
    /// What it writes; absent outputs are left out.
    pub outputs: Vec<TensorId>,
    /// Which outputs may or must lie on inputs.
    pub sharing: Vec<Sharing>,
    /// Memory that it needs while it runs.
    pub scratch: Size,
    /// Estimated seconds, if known; finite and not negative.
    pub cost: Option<f64>,
}

impl Op {
    /// An operator without sharing, scratch or known cost.
    pub fn new(
        name: impl Into<Box<str>>,
        kind: impl Into<Box<str>>,
        inputs: impl Into<Vec<TensorId>>,
        outputs: impl Into<Vec<TensorId>>,
    ) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
            inputs: inputs.into(),
            outputs: outputs.into(),
            sharing: Vec::new(),
            scratch: Size::Fixed(Bytes::ZERO),
            cost: None,
        }
    }

    /// The same operator with one more sharing.
    #[must_use]
    pub fn sharing(mut self, sharing: Sharing) -> Self {
        self.sharing.push(sharing);
        self
    }

    /// The same operator with scratch memory.
    #[must_use]
    pub fn scratch(mut self, size: Size) -> Self {
        self.scratch = size;
        self
    }

    /// The same operator with an estimated time in seconds.
    #[must_use]
    pub fn cost(mut self, seconds: f64) -> Self {
        self.cost = Some(seconds);
        self
    }

    /// Its name, or its type where it has none.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { &self.kind } else { &self.name }
    }

    /// The scratch, unless it is known to be nothing.
    pub fn needed_scratch(&self) -> Option<Size> {
        (self.scratch != Size::Fixed(Bytes::ZERO)).then_some(self.scratch)
    }
}

/// How an output of an operator relates to the bytes of one of its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sharing {
    /// Obligation: `output` is bytes of `of`, read in another way; it takes no memory.
    View {
        /// The view.
        output: TensorId,
        /// Its base.
        of: TensorId,
        /// Where it starts in its base; `None`: it may touch all of it (a transpose, an expanded view,
        /// which may even claim more bytes than its base has).
        offset: Option<Bytes>,
    },
    /// Obligation: `output` is the storage of `of`, changed. Readers of the old value come before.
    Mutates {
        /// The new value.
        output: TensorId,
        /// The value that it replaces.
        of: TensorId,
    },
    /// Permission: `output` may be written over `of` if `of` is not needed afterwards.
    MayOverwrite {
        /// What is written.
        output: TensorId,
        /// What may be overwritten.
        of: TensorId,
    },
    /// Permission: `input` may lie inside `output` at `offset`, so that the operator need not copy it.
    PartOf {
        /// The part.
        input: TensorId,
        /// The whole.
        output: TensorId,
        /// Where the part lies in the whole.
        offset: Bytes,
    },
    /// Permission: `output` may lie inside `of` at `offset`, so that the operator need not copy it.
    PieceOf {
        /// The piece.
        output: TensorId,
        /// What it is a piece of.
        of: TensorId,
        /// Where it starts in that.
        offset: Bytes,
    },
}

/// One resolved graph. Made by [`GraphBuilder`](crate::GraphBuilder), never changed.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) name: Box<str>,
    pub(crate) ops: IndexVec<OpId, Op>,
    pub(crate) tensors: IndexVec<TensorId, Tensor>,
    pub(crate) writers: IndexVec<TensorId, Option<OpId>>,
    pub(crate) reads: Lists<OpId, TensorId>,
    pub(crate) readers: Lists<TensorId, OpId>,
    pub(crate) storages: Storages,
    pub(crate) parts: IndexVec<TensorId, bool>,
    pub(crate) origins: Origins,
    pub(crate) kept: IndexVec<TensorId, bool>,
    pub(crate) file_order: Vec<OpId>,
    pub(crate) fingerprint: Fingerprint,
}

impl Graph {
    /// Its name, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All operators in file order.
    pub fn ops(&self) -> &IndexVec<OpId, Op> {
        &self.ops
    }

    /// All tensors.
    pub fn tensors(&self) -> &IndexVec<TensorId, Tensor> {
        &self.tensors
    }

    /// The operator that writes a tensor; `None` for inputs and weights.
    pub fn writer(&self, tensor: TensorId) -> Option<OpId> {
        self.writers[tensor]
    }

    /// What an operator reads, each tensor once.
    pub fn reads(&self, op: OpId) -> &[TensorId] {
        &self.reads[op]
    }

    /// Who reads a tensor, each operator once, ascending.
    pub fn readers(&self, tensor: TensorId) -> &[OpId] {
        &self.readers[tensor]
    }

    /// The tensor whose memory this one lies in: itself, unless it is a view or a mutated value.
    pub fn storage(&self, tensor: TensorId) -> TensorId {
        self.storages.extent(tensor).root
    }

    /// Which bytes of its storage a tensor takes.
    pub fn extent(&self, tensor: TensorId) -> Extent {
        self.storages.extent(tensor)
    }

    /// Whether a tensor has memory of its own (it may still be the caller's).
    pub fn is_storage(&self, tensor: TensorId) -> bool {
        self.storage(tensor) == tensor
    }

    /// The tensor whose write put the bytes there that a read of `tensor` wants to see: itself, or what it
    /// is a view of.
    pub fn content(&self, tensor: TensorId) -> TensorId {
        self.storages.content(tensor)
    }

    /// Values that must have been read before this operator runs, because it changes their bytes.
    pub fn overwritten_by(&self, op: OpId) -> &[TensorId] {
        self.storages.overwritten_by(op)
    }

    /// Mutations that have to wait until a tensor has been read.
    pub fn overwriters(&self, tensor: TensorId) -> &[OpId] {
        self.storages.overwriters(tensor)
    }

    /// The operators that have to run before `op`, ascending: those that write what it reads, and the other readers of
    /// what it changes. Cost: linear in those.
    pub fn predecessors(&self, op: OpId) -> Vec<OpId> {
        let writers = self.reads(op).iter().filter_map(|&tensor| self.writer(tensor));
        let readers = self.overwritten_by(op).iter().flat_map(|&tensor| self.readers(tensor));
        let others = readers.copied().filter(|&reader| reader != op);
        let mut found: Vec<OpId> = writers.chain(others).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The order of the file, or the one nearest to it if the file's is not topological.
    pub fn file_order(&self) -> Order {
        Order::proven(self.file_order.clone())
    }

    /// Depends on everything but names and times.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The same graph with other times, in seconds; operators without one keep theirs. The fingerprint stays.
    ///
    /// # Panics
    /// If there is not one row for each operator.
    pub fn with_costs(mut self, seconds: &IndexVec<OpId, Option<f64>>) -> Result<Self, GraphError> {
        assert_eq!(seconds.len(), self.ops.len(), "each operator has a row");
        for (id, &cost) in seconds.iter_enumerated() {
            let op = &mut self.ops[id];
            op.cost = cost.or(op.cost);
            op.check_cost()?;
        }
        Ok(self)
    }

    /// Bytes of all weights.
    pub fn weights_bytes(&self) -> Bytes {
        let weights = self.tensors.iter().filter(|tensor| tensor.kind == TensorKind::Weight);
        weights.filter_map(|tensor| tensor.size.bound()).sum()
    }

    /// Whether this storage may lie beside others inside a buffer: then it may begin there at any multiple of its
    /// element, and is not padded. So may parts and pieces, what is written over one or overwritten by one, and a
    /// whole (or base) of which a part, or what is written over that, also belongs to another whole, which can go on where the
    /// first one ends.
    pub fn is_part(&self, tensor: TensorId) -> bool {
        self.parts[tensor]
    }

    /// The least bytes that these storages, each with its value, take together, if each that cannot share bytes takes
    /// `reserved`. What is the same by the declarations of parts and pieces may lie in one place, so it counts once.
    pub fn least_bytes(
        &self,
        mut storages: Vec<TensorId>,
        reserved: impl Fn(TensorId) -> Bytes,
    ) -> Bytes {
        storages.sort_unstable();
        storages.dedup();
        let is_placed = |&storage: &TensorId| reserved(storage) > Bytes::ZERO;
        let (named, others): (Vec<TensorId>, Vec<TensorId>) =
            storages.into_iter().filter(is_placed).partition(|&t| self.origins.is_named(t));
        let padding = |&storage: &TensorId| {
            reserved(storage).saturating_sub(self.tensors[storage].size.bound().unwrap_or_default())
        };
        let apart: Bytes = others.into_iter().map(&reserved).sum();
        let padding: Bytes = named.iter().map(padding).sum();
        apart + padding + self.origins.distinct(self, &named)
    }

    /// Whether an output of the graph lies in this storage, so that it is kept to the end.
    pub fn holds_output(&self, storage: TensorId) -> bool {
        self.kept[storage]
    }

    /// The tensor's name, or its number where it has none.
    pub fn tensor_label(&self, tensor: TensorId) -> String {
        self.tensors[tensor].label(tensor)
    }

    /// The operator's name, or its type and number where it has none.
    pub fn op_label(&self, op: OpId) -> String {
        let row = &self.ops[op];
        if row.name.is_empty() { format!("{} ({op})", row.kind) } else { row.name.to_string() }
    }
}
