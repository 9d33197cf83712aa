//! Inductor's three sorts; it keeps the one of the least peak, or the order that came in.
//!
//! ~~~text
//! LPMF  the ready operator that lifts the peak least, then that adds least after freeing, then by index
//! BFS   by the sorted positions of what it waits for, then by index
//! DFS   post-order; roots and predecessors by bytes read and written, then by index
//! ~~~
//! LPMF as it was meant: an early release subtracted the bytes of another operator than the selected one. Later
//! ones change the key where every ready operator is large, which is not rebuilt.

use super::Uses;
use lowtide::core::{IndexVec, OpId, Order, Readiness, TensorId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// LPMF looks at all ready operators at each step: above this many it is left out.
const LPMF_LIMIT: usize = 20_000;

pub(super) fn lpmf(uses: &Uses<'_>) -> Option<Order> {
    (uses.graph.ops().len() <= LPMF_LIMIT).then(|| Lpmf::new(uses).run())
}

struct Lpmf<'u> {
    uses: &'u Uses<'u>,
    left: IndexVec<TensorId, usize>,
    /// What each operator would free if it ran now.
    frees: IndexVec<OpId, i64>,
    live: i64,
    peak: i64,
}

impl<'u> Lpmf<'u> {
    fn new(uses: &'u Uses<'u>) -> Self {
        let left = uses.uses_left();
        let storages = |op| uses.operands[op].iter().map(|&storage| (storage, 1));
        let dead = |op| uses.defined[op].iter().map(|&storage| (storage, 0));
        let frees = |op| {
            let freed =
                storages(op).chain(dead(op)).filter(|&(storage, last)| left[storage] == last);
            freed.map(|(storage, _)| uses.bytes[storage]).sum()
        };
        let frees = uses.graph.ops().ids().map(frees).collect();
        // All outputs live together at the end: no order is below that.
        let kept = uses.graph.tensors().ids().filter(|&tensor| uses.graph.holds_output(tensor));
        let peak = kept.map(|tensor| uses.bytes[tensor]).sum();
        Self { uses, left, frees, live: 0, peak }
    }

    fn run(mut self) -> Order {
        let mut readiness = Readiness::new(self.uses.graph);
        let mut ready: Vec<OpId> = readiness.ready().collect();
        let mut ops = Vec::with_capacity(self.frees.len());
        while let Some(at) = (0..ready.len()).min_by_key(|&at| self.key(ready[at])) {
            let op = ready.swap_remove(at);
            ops.push(op);
            self.settle(op);
            readiness.run(op, |next| ready.push(next));
        }
        self.uses.order(ops)
    }

    fn key(&self, op: OpId) -> (i64, i64, OpId) {
        let size = self.uses.written(op);
        ((self.live + size).max(self.peak), size - self.frees[op], op)
    }

    fn settle(&mut self, op: OpId) {
        self.live += self.uses.written(op);
        self.peak = self.peak.max(self.live);
        self.live -= self.frees[op];
        for &storage in &self.uses.operands[op] {
            self.left[storage] -= 1;
            if self.left[storage] == 1 {
                for &user in &self.uses.users[storage] {
                    self.frees[user] += self.uses.bytes[storage];
                }
            }
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "one type for all rules")]
pub(super) fn bfs(uses: &Uses<'_>) -> Option<Order> {
    let mut readiness = Readiness::new(uses.graph);
    let mut queue: BinaryHeap<Reverse<(Vec<usize>, OpId)>> =
        readiness.ready().map(|op| Reverse((Vec::new(), op))).collect();
    let mut places = IndexVec::filled(uses.graph.ops().len(), 0);
    let mut ops = Vec::with_capacity(places.len());
    while let Some(Reverse((_, op))) = queue.pop() {
        places[op] = ops.len();
        ops.push(op);
        readiness.run(op, |next| {
            let mut waited: Vec<usize> = uses.before[next].iter().map(|&o| places[o]).collect();
            waited.sort_unstable();
            queue.push(Reverse((waited, next)));
        });
    }
    Some(uses.order(ops))
}

#[expect(clippy::unnecessary_wraps, reason = "one type for all rules")]
pub(super) fn dfs(uses: &Uses<'_>) -> Option<Order> {
    let read = |op: OpId| uses.operands[op].iter().map(|&storage| uses.bytes[storage]).sum::<i64>();
    let touched: IndexVec<OpId, i64> =
        uses.graph.ops().ids().map(|op| uses.written(op) + read(op)).collect();
    let sorted = |mut ops: Vec<OpId>| {
        ops.sort_by_key(|&op| (touched[op], op));
        ops
    };
    let roots = sorted(touched.ids().collect());
    Some(uses.post_order(roots, |op| sorted(uses.before[op].to_vec())))
}
