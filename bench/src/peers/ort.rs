//! ONNX Runtime's default order: depth first backward from the leaves, no bytes in the key at all.
//!
//! Predecessors are pushed by ascending index, so the highest is explored first; an operator is emitted after
//! all it reads. Not rebuilt: `Shape` and `Size` moved behind their parent (later releases), and what the
//! optimiser fuses before.

use super::Uses;
use lowtide::core::{OpId, Order};

#[expect(clippy::unnecessary_wraps, reason = "one type for all rules")]
pub(super) fn default_order(uses: &Uses<'_>) -> Option<Order> {
    let below = |op: OpId| {
        let mut before = uses.before[op].to_vec();
        before.sort_unstable_by(|a, b| b.cmp(a));
        before
    };
    Some(uses.post_order(uses.leaves().rev(), below))
}
