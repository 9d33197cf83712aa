//! XLA's three sequences; it keeps the one of the least peak.
//!
//! ~~~text
//! list        most bytes freed less defined, then most users; of equals the last that became ready
//! DFS         post-order; the operand with the most users above it first, then with the most bytes above it
//! post-order  post-order; operands as they come
//! ~~~
//! Several outputs hang from one root there, and so they do here. Ties of DFS go by name there, by id here.

use super::Uses;
use lowtide::core::{Dim, IndexVec, OpId, Order, Readiness, TensorId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What hangs from the one root: writers of outputs, and what nobody waits for.
fn roots(uses: &Uses<'_>) -> Vec<OpId> {
    let graph = uses.graph;
    let writes_output =
        |op: OpId| graph.ops()[op].outputs.iter().any(|&t| graph.tensors()[t].is_output);
    graph.ops().ids().filter(|&op| uses.after[op].is_empty() || writes_output(op)).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "one type for all rules")]
pub(super) fn post_order(uses: &Uses<'_>) -> Option<Order> {
    Some(uses.post_order(roots(uses), |op| uses.before[op].to_vec()))
}

#[expect(clippy::unnecessary_wraps, reason = "one type for all rules")]
pub(super) fn dfs(uses: &Uses<'_>) -> Option<Order> {
    let above = accumulated(uses);
    let sorted = |mut ops: Vec<OpId>| {
        ops.sort_by_key(|&op| (Reverse(above[op]), op));
        ops
    };
    let roots = sorted(roots(uses));
    Some(uses.post_order(roots, |op| sorted(uses.before[op].to_vec())))
}

/// For each operator, users but one and bytes of all on the paths to it. Paths that meet again count what is
/// above them twice, so both are capped by what there is.
fn accumulated(uses: &Uses<'_>) -> IndexVec<OpId, (usize, i64)> {
    let ops = uses.graph.ops().len();
    let mut above = IndexVec::filled(ops, (0, 0));
    let mut all_bytes = 0;
    for &op in uses.graph.file_order().schedule() {
        let mut users = uses.after[op].len().saturating_sub(1);
        let mut bytes = uses.written(op);
        all_bytes += bytes;
        for &other in &uses.before[op] {
            let (other_users, other_bytes): (usize, i64) = above[other];
            users = (users + other_users).min(ops);
            bytes = (bytes + other_bytes).min(all_bytes);
        }
        above[op] = (users, bytes);
    }
    above
}

#[expect(clippy::unnecessary_wraps, reason = "one type for all rules")]
pub(super) fn list(uses: &Uses<'_>) -> Option<Order> {
    Some(List::new(uses).run())
}

/// Bytes freed less defined, users, and when it came.
type Key = (i64, usize, u64);

struct List<'u> {
    uses: &'u Uses<'u>,
    left: IndexVec<TensorId, usize>,
    queue: BTreeMap<Key, OpId>,
    /// Under which key a ready operator stands.
    keys: IndexVec<OpId, Option<Key>>,
    came: u64,
}

impl<'u> List<'u> {
    fn new(uses: &'u Uses<'u>) -> Self {
        let keys = IndexVec::filled(uses.graph.ops().len(), None);
        Self { uses, left: uses.uses_left(), queue: BTreeMap::new(), keys, came: 0 }
    }

    fn run(mut self) -> Order {
        let uses = self.uses;
        let mut readiness = Readiness::new(uses.graph);
        readiness.ready().for_each(|op| self.add(op));
        let mut ops = Vec::with_capacity(self.keys.len());
        while let Some((_, op)) = self.queue.pop_last() {
            self.keys[op] = None;
            ops.push(op);
            self.run_one(op, &mut readiness);
        }
        uses.order(ops)
    }

    /// What a run frees raises those that are now the last to use a storage: they are put in again, after those
    /// that became ready.
    fn run_one(&mut self, op: OpId, readiness: &mut Readiness<'_>) {
        let uses = self.uses;
        for &storage in &uses.operands[op] {
            self.left[storage] -= 1;
        }
        readiness.run(op, |next| self.add(next));
        let raised = |storage: &&TensorId| self.left[**storage] == 1;
        let raised: Vec<TensorId> = uses.operands[op].iter().filter(raised).copied().collect();
        for &user in raised.iter().flat_map(|&storage| &uses.users[storage]) {
            let Some(key) = self.keys[user] else { continue };
            if self.priority(user) != (key.0, key.1) {
                self.queue.remove(&key);
                self.add(user);
            }
        }
    }

    fn priority(&self, op: OpId) -> (i64, usize) {
        if is_scalar(self.uses, op) {
            return (i64::MAX, usize::MAX);
        }
        let last = self.uses.operands[op].iter().filter(|&&storage| self.left[storage] == 1);
        let freed: i64 = last.map(|&storage| self.uses.bytes[storage]).sum();
        (freed - self.uses.written(op), self.uses.after[op].len())
    }

    fn add(&mut self, op: OpId) {
        let (bytes, users) = self.priority(op);
        let key = (bytes, users, self.came);
        self.came += 1;
        self.keys[op] = Some(key);
        self.queue.insert(key, op);
    }
}

/// Whether all that it writes has one element: such operators go first.
fn is_scalar(uses: &Uses<'_>, op: OpId) -> bool {
    let outputs = &uses.graph.ops()[op].outputs;
    let is_one = |&tensor: &TensorId| {
        let shape = uses.graph.tensors()[tensor].shape.as_deref();
        shape.and_then(Dim::element_count) == Some(1)
    };
    !outputs.is_empty() && outputs.iter().all(is_one)
}
