//! The orders that other compilers would choose, rebuilt from their public descriptions.
//!
//! ~~~text
//! Graph ──> Uses ──ort, xla, inductor──> Order ──our sharing, our peak──> bytes
//! ~~~
//! Only orders are compared: each gets the sharing and the evaluation that ours gets. The peers see what they
//! would see: storages with padded bytes, who writes and who uses them, and what runs before what. Weights and
//! inputs count nothing, tensors of unknown size neither. Cost: near-linear but for LPMF, which has a guard.

mod inductor;
mod ort;
#[cfg(test)]
mod tests;
mod xla;

use lowtide::core::{Align, Bytes, Id, IndexVec, Lists, OpId, Order, TensorId, TensorKind};
use lowtide::{Graph, PlanConfig};

/// Makes an order, or nothing where a graph is too large for it.
pub(crate) type Rule = fn(&Uses<'_>) -> Option<Order>;

/// What a peer ships: the best of its rules counts.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) rules: &'static [Rule],
}

/// All peers, in the order of the tables.
pub(crate) const PEERS: [Peer; 4] = [
    Peer { name: "ORT default", rules: &[ort::default_order] },
    Peer { name: "file order", rules: &[file] },
    Peer { name: "XLA", rules: &[xla::list, xla::dfs, xla::post_order] },
    Peer { name: "Inductor", rules: &[file, inductor::lpmf, inductor::bfs, inductor::dfs] },
];

#[expect(clippy::unnecessary_wraps, reason = "one type for all rules")]
fn file(uses: &Uses<'_>) -> Option<Order> {
    Some(uses.graph.file_order())
}

/// What the peers know of a graph.
pub(crate) struct Uses<'g> {
    pub(crate) graph: &'g Graph,
    /// Padded bytes of each storage; signed, as rules subtract them. Nothing for tensors that are none.
    bytes: IndexVec<TensorId, i64>,
    /// Who reads or changes each computed storage, through any tensor in it.
    users: Lists<TensorId, OpId>,
    /// The computed storages that an operator uses, each once.
    operands: Lists<OpId, TensorId>,
    /// The storages that an operator writes first.
    defined: Lists<OpId, TensorId>,
    /// Writers of what it reads in the order of its operands, then the readers that a mutation waits for.
    before: Lists<OpId, OpId>,
    /// The other way round.
    after: Lists<OpId, OpId>,
}

impl<'g> Uses<'g> {
    /// Cost: linear in the graph and its waits.
    pub(crate) fn new(graph: &'g Graph) -> Self {
        let (ops, tensors) = (graph.ops().len(), graph.tensors().len());
        let mut operands = Lists::new();
        let mut defined = Lists::new();
        let mut before = Lists::new();
        for op in graph.ops().ids() {
            operands
                .push(unique(graph.reads(op).iter().map(|&tensor| graph.storage(tensor)), |s| {
                    graph.tensors()[s].kind == TensorKind::Computed
                }));
            let outputs = graph.ops()[op].outputs.iter().copied();
            defined.push(outputs.filter(|&tensor| graph.is_storage(tensor)));
            before.push(unique(waits(graph, op), |other| other != op));
        }
        Self {
            graph,
            bytes: graph.tensors().ids().map(|tensor| padded(graph, tensor)).collect(),
            users: turned(&operands, tensors),
            operands,
            defined,
            after: turned(&before, ops),
            before,
        }
    }

    /// Bytes of the storages that an operator writes first.
    fn written(&self, op: OpId) -> i64 {
        self.defined[op].iter().map(|&storage| self.bytes[storage]).sum()
    }

    /// How often each storage is still used; what the caller gets has one use more, which never comes.
    fn uses_left(&self) -> IndexVec<TensorId, usize> {
        let kept = |storage| usize::from(self.graph.holds_output(storage));
        let tensors = self.graph.tensors().ids();
        tensors.map(|storage| self.users[storage].len() + kept(storage)).collect()
    }

    /// Operators that no other waits for, ascending.
    fn leaves(&self) -> impl DoubleEndedIterator<Item = OpId> + '_ {
        self.graph.ops().ids().filter(|&op| self.after[op].is_empty())
    }

    /// Proves what a rule made.
    fn order(&self, ops: Vec<OpId>) -> Order {
        Order::new(self.graph, ops).expect("a peer runs an operator after all it waits for")
    }

    /// Depth first from `roots`: each operator after those of `below`, all in the order in which they come.
    fn post_order(
        &self,
        roots: impl IntoIterator<Item = OpId>,
        below: impl Fn(OpId) -> Vec<OpId>,
    ) -> Order {
        let mut seen = IndexVec::filled(self.graph.ops().len(), false);
        let mut ops = Vec::with_capacity(seen.len());
        let mut stack: Vec<(OpId, bool)> = roots.into_iter().map(|op| (op, false)).collect();
        stack.reverse();
        while let Some((op, is_done)) = stack.pop() {
            if is_done {
                ops.push(op);
                continue;
            }
            if std::mem::replace(&mut seen[op], true) {
                continue;
            }
            stack.push((op, true));
            let next = below(op).into_iter().rev().filter(|&other| !seen[other]);
            stack.extend(next.map(|other| (other, false)));
        }
        self.order(ops)
    }
}

/// What an operator waits for, with repetitions.
fn waits(graph: &Graph, op: OpId) -> impl Iterator<Item = OpId> + '_ {
    let writers = graph.reads(op).iter().filter_map(|&tensor| graph.writer(tensor));
    writers
        .chain(graph.overwritten_by(op).iter().flat_map(|&tensor| graph.readers(tensor)).copied())
}

/// The first of each, of those that are wanted.
fn unique<I: Id + Ord>(ids: impl Iterator<Item = I>, is_wanted: impl Fn(I) -> bool) -> Vec<I> {
    let mut ids: Vec<(usize, I)> = ids.filter(|&id| is_wanted(id)).enumerate().collect();
    ids.sort_unstable_by_key(|&(place, id)| (id, place));
    ids.dedup_by_key(|&mut (_, id)| id);
    ids.sort_unstable();
    ids.into_iter().map(|(_, id)| id).collect()
}

/// The lists that name each of `len` ids, ascending.
fn turned<I: Id, T: Id>(lists: &Lists<I, T>, len: usize) -> Lists<T, I> {
    let rows = lists.iter().enumerate();
    let pairs: Vec<(T, I)> =
        rows.flat_map(|(id, row)| row.iter().map(move |&item| (item, I::from_index(id)))).collect();
    Lists::group(len, &pairs)
}

/// What a storage takes in an arena; nothing for what lies in another storage or outside.
fn padded(graph: &Graph, tensor: TensorId) -> i64 {
    let row = &graph.tensors()[tensor];
    if row.kind != TensorKind::Computed || !graph.is_storage(tensor) {
        return 0;
    }
    let align: Align = PlanConfig::default().align;
    let bytes: Bytes = row.size.bound().unwrap_or_default();
    let padded = bytes.align_up(align).expect("sizes fit with padding");
    i64::try_from(padded.0).expect("the sum of all sizes fits")
}
