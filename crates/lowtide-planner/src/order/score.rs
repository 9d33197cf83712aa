//! The base rule: always run the ready operator with the highest score.
//!
//! ~~~text
//! score = alpha * (bytes freed / seconds) / most over all operators
//!       + beta  * (distance to the end of the critical path) / longest distance
//! ~~~
//!
//! Bytes freed are the sizes of the storages whose last remaining user the operator is; views of a storage,
//! and readers of those, are its users too. The score of an operator only rises while the order grows, once
//! for each storage whose other users have all run, so a heap with outdated entries is enough.
//! Where costs are known they are the seconds; an operator of unknown cost counts as the mean of the known
//! ones, or as 1 where none is known. Ties go to the operator that comes first in the file.
//! Cost: O((operators + edges) log n). Not optimal: what an operator allocates does not count.
//! From the seed text, section 3.3, with both terms scaled.

use crate::PlanConfig;
use lowtide_core::{Bytes, Graph, IndexVec, Lists, OpId, Order, Readiness, TensorId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The order that the score rule finds.
///
/// # Panics
/// If a weight is negative or not finite; [`plan`](crate::plan()) refuses such weights.
pub fn score_order(graph: &Graph, config: &PlanConfig) -> Order {
    let mut rule = Rule::new(graph, config);
    let mut readiness = Readiness::new(graph);
    readiness.ready().for_each(|op| rule.offer(op));
    let mut ops = Vec::with_capacity(graph.ops().len());
    while let Some(op) = rule.take(&readiness) {
        ops.push(op);
        readiness.run(op, |next| rule.offer(next));
        rule.used(op, &readiness);
    }
    Order::new(graph, ops).expect("only ready operators were taken")
}

/// A score as a number that compares like it: not negative, so the bits are in order.
type Key = (u64, Reverse<OpId>);

struct Rule {
    /// Freed bytes by seconds, and their scale.
    seconds: IndexVec<OpId, f64>,
    freed: IndexVec<OpId, Bytes>,
    freed_scale: f64,
    /// The second term, which does not change.
    urgency: IndexVec<OpId, f64>,
    /// Storages that each operator uses and that can be freed.
    uses: Lists<OpId, TensorId>,
    /// For each storage its size, how many users have not run, and the xor of their ids.
    bytes: IndexVec<TensorId, Bytes>,
    users: IndexVec<TensorId, (u32, u32)>,
    heap: BinaryHeap<Key>,
}

impl Rule {
    fn new(graph: &Graph, config: &PlanConfig) -> Self {
        let weights = config.score;
        let seconds = seconds(graph);
        let bytes = freeable_bytes(graph, config);
        let uses = uses(graph, &bytes);
        let mut users: IndexVec<TensorId, (u32, u32)> = IndexVec::filled(bytes.len(), (0, 0));
        let mut most: f64 = 0.0;
        for op in graph.ops().ids() {
            for &storage in &uses[op] {
                let (count, xor) = users[storage];
                users[storage] = (count + 1, xor ^ op.raw());
            }
            let all: Bytes = uses[op].iter().map(|&storage| bytes[storage]).sum();
            most = most.max(as_f64(all) / seconds[op]);
        }
        let freed_scale = if most > 0.0 { weights.alpha / most } else { 0.0 };
        let urgency = urgency(graph, &seconds, weights.beta);
        let freed = IndexVec::filled(graph.ops().len(), Bytes::ZERO);
        let heap = BinaryHeap::new();
        let mut rule = Self { seconds, freed, freed_scale, urgency, uses, bytes, users, heap };
        for storage in graph.tensors().ids() {
            if let Some(op) = rule.last_user(storage) {
                rule.freed[op] += rule.bytes[storage];
            }
        }
        rule
    }

    fn key(&self, op: OpId) -> Key {
        let freed = as_f64(self.freed[op]) / self.seconds[op] * self.freed_scale;
        ((freed + self.urgency[op]).to_bits(), Reverse(op))
    }

    fn offer(&mut self, op: OpId) {
        self.heap.push(self.key(op));
    }

    /// The best ready operator; entries that a better one has replaced come later and are dropped.
    fn take(&mut self, readiness: &Readiness<'_>) -> Option<OpId> {
        loop {
            let (_, Reverse(op)) = self.heap.pop()?;
            if readiness.is_ready(op) {
                return Some(op);
            }
        }
    }

    /// An operator has run: some storages may now have one user left.
    fn used(&mut self, op: OpId, readiness: &Readiness<'_>) {
        for at in 0..self.uses[op].len() {
            let storage = self.uses[op][at];
            let (count, xor) = self.users[storage];
            self.users[storage] = (count - 1, xor ^ op.raw());
            let Some(last) = self.last_user(storage) else { continue };
            self.freed[last] += self.bytes[storage];
            if readiness.is_ready(last) {
                self.offer(last);
            }
        }
    }

    fn last_user(&self, storage: TensorId) -> Option<OpId> {
        let (count, xor) = self.users[storage];
        (count == 1).then(|| OpId::new(xor))
    }
}

fn as_f64(bytes: Bytes) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a score needs no exact bytes")]
    let value = bytes.0 as f64;
    value
}

/// Estimated seconds of each operator, all positive.
fn seconds(graph: &Graph) -> IndexVec<OpId, f64> {
    let known = || graph.ops().iter().filter_map(|op| op.cost).filter(|&cost| cost > 0.0);
    #[expect(clippy::cast_precision_loss, reason = "a mean needs no exact count")]
    let count = known().count() as f64;
    let mean = if count > 0.0 { known().sum::<f64>() / count } else { 1.0 };
    graph.ops().iter().map(|op| op.cost.filter(|&cost| cost > 0.0).unwrap_or(mean)).collect()
}

/// Bytes that come free with the last user of each storage; zero for what the plan never frees.
fn freeable_bytes(graph: &Graph, config: &PlanConfig) -> IndexVec<TensorId, Bytes> {
    let mut bytes: IndexVec<TensorId, Bytes> = IndexVec::filled(graph.tensors().len(), Bytes::ZERO);
    for (id, tensor) in graph.tensors().iter_enumerated() {
        if config.places(graph, id) {
            bytes[id] = tensor.size.bound().unwrap_or_default();
        }
    }
    for (id, tensor) in graph.tensors().iter_enumerated() {
        if tensor.is_output {
            bytes[graph.storage(id)] = Bytes::ZERO;
        }
    }
    bytes
}

/// Storages with freeable bytes that each operator reads, each once.
fn uses(graph: &Graph, bytes: &IndexVec<TensorId, Bytes>) -> Lists<OpId, TensorId> {
    let mut uses = Lists::new();
    let mut storages = Vec::new();
    for op in graph.ops().ids() {
        storages.clear();
        storages.extend(graph.reads(op).iter().map(|&tensor| graph.storage(tensor)));
        storages.retain(|&storage| bytes[storage] > Bytes::ZERO);
        storages.sort_unstable();
        storages.dedup();
        uses.push(storages.iter().copied());
    }
    uses
}

/// The weighted distance of each operator to the end, along the data, in seconds of the longest path.
fn urgency(graph: &Graph, seconds: &IndexVec<OpId, f64>, beta: f64) -> IndexVec<OpId, f64> {
    let mut distance: IndexVec<OpId, f64> = IndexVec::filled(graph.ops().len(), 0.0);
    let mut longest: f64 = 0.0;
    for &op in graph.file_order().schedule().as_slice().iter().rev() {
        let outputs = graph.ops()[op].outputs.iter();
        let readers = outputs.flat_map(|&output| graph.readers(output));
        let rest = readers.map(|&reader| distance[reader]).fold(0.0, f64::max);
        distance[op] = rest + seconds[op];
        longest = longest.max(distance[op]);
    }
    let scale = if longest > 0.0 && longest.is_finite() { beta / longest } else { 0.0 };
    distance.iter().map(|&distance| distance * scale).collect()
}
