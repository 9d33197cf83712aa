//! Bytes lost to placement: which parts and pieces stay in place, and which are copied after all?
//!
//! ~~~text
//! concats   a   b   c   d       arena        A whole in place needs its bytes in one stretch, from the first part to
//!           in  in  in  in      5.1 MiB      the last reader. The more of them, the fewer bytes are live, and the
//!           in  --  in  in      5.0 MiB      harder they are to pack.
//!           in  --  in  --      4.2 MiB
//! ~~~
//! A walk at random over what is copied, under one order: a change that makes no larger arena is kept, and each is
//! packed anew in little time. Cost: a part of [`PlanConfig::pack_steps`], of which a change takes [`CHANGE`] for each
//! operator and tensor.

use crate::candidate::Candidate;
use crate::meter::{Meter, Watched};
use crate::random;
use crate::share::{Links, Wishes};
use crate::{PlanConfig, Watch};
use lowtide_core::{Bytes, Graph, OpId, Sharing};
use std::collections::BTreeSet;

/// The part of the steps of packing that a walk takes.
const WALK: u64 = 8;
/// Steps for each operator and tensor when what shares is worked out anew.
const CHANGE: u64 = 256;
/// The part of the steps with which what comes out is packed.
const PACKING: u64 = 65_536;
/// So many changes are tried for each operator that could copy.
const CHANGES: usize = 16;

/// The order of `from` with the smallest arena that was found; none if nothing can be left in place. Ends at `bound`.
pub(crate) fn mix(
    graph: &Graph,
    config: &PlanConfig,
    from: &Candidate,
    bound: Bytes,
    watch: &Watch<'_>,
) -> Option<Candidate> {
    let links = linked(graph);
    let watched = Watched::new(watch);
    watched.tell(from.placement.size, bound);
    let mut meter = Meter::new(config.pack_steps / WALK, &watched);
    let cost = CHANGE * (graph.ops().len() + graph.tensors().len()) as u64;
    let mut packed = |copied: &BTreeSet<OpId>| {
        meter.spend(cost + config.pack_steps / PACKING);
        let wishes = Wishes::without(graph, config, Links::All, copied);
        let mut new = Candidate::new(from.rule, from.order.clone(), graph, config, &wishes);
        new.makespan = from.makespan;
        new.pack(config.pack_steps / PACKING, config, watch);
        (new, !meter.is_out())
    };
    let mut copied = BTreeSet::new();
    let (mut best, mut has_time) = if links.is_empty() { return None } else { packed(&copied) };
    let mut state = 1;
    for _ in 0..CHANGES * links.len() {
        if !has_time || best.placement.size <= bound.max(best.live.bytes) {
            break;
        }
        let op = links[random::index(links.len(), &mut state)];
        flip(&mut copied, op);
        let next = packed(&copied);
        has_time = next.1;
        if next.0.placement.size <= best.placement.size {
            best = next.0;
        } else {
            flip(&mut copied, op);
        }
    }
    Some(best)
}

/// Operators that could leave something where it is.
fn linked(graph: &Graph) -> Vec<OpId> {
    let is_link =
        |sharing: &Sharing| matches!(sharing, Sharing::PartOf { .. } | Sharing::PieceOf { .. });
    let ops = graph.ops().iter_enumerated();
    ops.filter(|(_, op)| op.sharing.iter().any(is_link)).map(|(id, _)| id).collect()
}

fn flip(copied: &mut BTreeSet<OpId>, op: OpId) {
    if !copied.remove(&op) {
        copied.insert(op);
    }
}
