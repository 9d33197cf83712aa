//! Graph to [`Reach`]: does one operator come before another whatever the order?
//!
//! ~~~text
//! chains   a ─> b ─────> e      of each operator, for each chain, how many of it come before:   e: 2 of a's, 1 of c's
//!          c ─> d        ^      b ≺ e, as b is among those two; d is not among the one
//!          └─────────────┘
//! ~~~
//! The operators are cut into chains of which each one waits for the one before it; what comes before an operator is then a
//! first part of every chain. Cost: O(edges · chains) time, O(operators · chains) memory, limited: of a graph with more
//! chains only the longest are looked at, and what lies on others counts as not ordered, which is always safe.
//! Source: Jagadish, A compression technique to materialize transitive closure, 1990, with greedy chains.

use crate::{Graph, Id, IndexVec, OpId};
use std::cmp::Reverse;

/// Numbers that are kept at most: 256 MiB of them.
const MOST_NUMBERS: usize = 1 << 26;

/// A chain, and how many are on it up to and with this one.
type Place = (usize, u32);

/// What is before what by data and mutations alone.
#[derive(Clone, Debug)]
pub struct Reach {
    /// On which chain an operator is, and how many are on it up to and with it; none where nothing comes after, and on chains
    /// that are not kept.
    places: IndexVec<OpId, Option<Place>>,
    /// For each operator a row: of each chain that is kept, how many come before it.
    before: Vec<u32>,
    chains: usize,
    is_complete: bool,
}

impl Reach {
    /// Of all operators of a graph.
    pub fn new(graph: &Graph) -> Self {
        let order = graph.file_order();
        let waits: IndexVec<OpId, Vec<OpId>> =
            graph.ops().ids().map(|op| graph.predecessors(op)).collect();
        let (chain_of, lengths) = chains(order.schedule().as_slice(), &waits);
        let kept = lengths.len().min(MOST_NUMBERS / graph.ops().len().max(1));
        let mut longest: Vec<usize> = (0..lengths.len()).collect();
        longest.sort_by_key(|&chain| (Reverse(lengths[chain]), chain));
        let mut names = vec![None; lengths.len()];
        for (name, &chain) in longest[..kept].iter().enumerate() {
            names[chain] = Some(name);
        }
        let named =
            |place: &Option<Place>| place.and_then(|(chain, place)| Some((names[chain]?, place)));
        let places: IndexVec<OpId, Option<Place>> = chain_of.iter().map(named).collect();
        let mut before = vec![0; kept * graph.ops().len()];
        let mut row = vec![0_u32; kept];
        for &op in order.schedule() {
            row.fill(0);
            for &other in &waits[op] {
                let start = other.index() * kept;
                for (mine, &theirs) in row.iter_mut().zip(&before[start..start + kept]) {
                    *mine = (*mine).max(theirs);
                }
                if let Some((chain, place)) = places[other] {
                    row[chain] = row[chain].max(place);
                }
            }
            before[op.index() * kept..(op.index() + 1) * kept].copy_from_slice(&row);
        }
        Self { places, before, chains: kept, is_complete: kept == lengths.len() }
    }

    /// Whether `one` is over before `other` begins in every run.
    pub fn is_before(&self, one: OpId, other: OpId) -> bool {
        let Some((chain, place)) = self.places[one] else { return false };
        place <= self.before[other.index() * self.chains + chain]
    }

    /// Whether what is not known to be ordered is not ordered.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether it is over before any other begins in every run, as far as is known.
    pub fn is_before_any(&self, op: OpId) -> bool {
        self.places[op].is_some()
    }
}

/// The chain and place of each operator that any other waits for, and how long the chains are.
fn chains(
    order: &[OpId],
    waits: &IndexVec<OpId, Vec<OpId>>,
) -> (IndexVec<OpId, Option<Place>>, Vec<u32>) {
    let mut is_waited_for = IndexVec::<OpId, bool>::filled(order.len(), false);
    for &op in waits.iter().flatten() {
        is_waited_for[op] = true;
    }
    let mut places: IndexVec<OpId, Option<Place>> = IndexVec::filled(order.len(), None);
    let mut lengths: Vec<u32> = Vec::new();
    for &op in order.iter().filter(|&&op| is_waited_for[op]) {
        // The latest first: it is the nearest.
        let ends = waits[op].iter().rev().filter_map(|&other| places[other]);
        let end = { ends }.find(|&(chain, place): &Place| lengths[chain] == place);
        let (chain, place) = end.unwrap_or((lengths.len(), 0));
        if place == 0 {
            lengths.push(0);
        }
        lengths[chain] = place + 1;
        places[op] = Some((chain, place + 1));
    }
    (places, lengths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Limits, graph, layered_random, random_bytes};
    use arbitrary::Unstructured;

    /// All that comes before, by walking.
    fn walked(graph: &Graph, op: OpId) -> Vec<bool> {
        let mut seen = vec![false; graph.ops().len()];
        let mut ways = graph.predecessors(op);
        while let Some(at) = ways.pop() {
            if !std::mem::replace(&mut seen[at.index()], true) {
                ways.extend(graph.predecessors(at));
            }
        }
        seen
    }

    fn judge(graph: &Graph) {
        let reach = Reach::new(graph);
        let mut is_before_any = vec![false; graph.ops().len()];
        for other in graph.ops().ids() {
            let seen = walked(graph, other);
            for one in graph.ops().ids() {
                assert_eq!(reach.is_before(one, other), seen[one.index()], "{one} {other}");
                is_before_any[one.index()] |= seen[one.index()];
            }
        }
        for op in graph.ops().ids() {
            assert_eq!(reach.is_before_any(op), is_before_any[op.index()], "{op}");
        }
    }

    #[test]
    fn it_says_what_a_walk_says() {
        for seed in 0..200 {
            let bytes = random_bytes(seed, 1 << 11);
            if let Ok(graph) = graph(&mut Unstructured::new(&bytes), Limits::all(12)) {
                judge(&graph);
            }
        }
        judge(&layered_random(150, 12, 1));
    }
}
