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
use crate::share::bodies::has_links;
use crate::share::{Links, Wishes};
use crate::{PlanConfig, Watch};
use lowtide_core::{Bytes, Graph, OpId};
use std::collections::BTreeSet;

/// The part of the steps of packing that a walk takes.
const WALK: u64 = 16;
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
    let ops = graph.ops().iter_enumerated();
    let links: Vec<OpId> = ops.filter(|(_, op)| has_links(op)).map(|(id, _)| id).collect();
    if links.is_empty() {
        return None;
    }
    let watched = Watched::new(watch);
    watched.tell(from.placement.size, bound);
    let mut meter = Meter::new(config.pack_steps / WALK, &watched);
    let cost = CHANGE * (graph.ops().len() + graph.tensors().len()) as u64;
    let mut copied = BTreeSet::new();
    let mut best = packed(graph, config, from, &copied, watch);
    let mut state = 1;
    for _ in 0..CHANGES * links.len() {
        meter.spend(cost + config.pack_steps / PACKING);
        if meter.is_out() || best.placement.size <= bound.max(best.live.bytes) {
            break;
        }
        let op = links[random::index(links.len(), &mut state)];
        flip(&mut copied, op);
        let next = packed(graph, config, from, &copied, watch);
        if next.placement.size <= best.placement.size {
            best = next;
        } else {
            flip(&mut copied, op);
        }
    }
    Some(best)
}

/// The order of `from` where the operators in `copied` leave nothing in place, packed in little time.
fn packed(
    graph: &Graph,
    config: &PlanConfig,
    from: &Candidate,
    copied: &BTreeSet<OpId>,
    watch: &Watch<'_>,
) -> Candidate {
    let wishes = Wishes::without(graph, config, Links::All, copied);
    let mut new = Candidate::new(from.rule, from.order.clone(), graph, config, &wishes);
    new.makespan = from.makespan;
    new.pack(config.pack_steps / PACKING, config, watch);
    new
}

fn flip(copied: &mut BTreeSet<OpId>, op: OpId) {
    if !copied.remove(&op) {
        copied.insert(op);
    }
}
