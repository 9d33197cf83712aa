//! Layout to a placement that needs no fences: bytes are used again only where data orders it.
//!
//! ~~~text
//! x ─ f ─ a ─ g ─ b           on one worker k may come over a, when g is over.
//!  └─ h ─ c ─ k ─ d           On several, k may run before g: a and d lie apart. b and a do anyway, and what
//!                             follows after both, that has both ways behind it, may come over any.
//! ~~~
//! Two residences are apart unless all that use one come before whoever writes the other, in the graph and so in every
//! run. That depends on no order, so the order is only a heuristic here: buffers are placed one after the other, each at the
//! lowest offset that is free, by several rules, of which the best is kept; then orders that are changed a little, as long as
//! steps are left. No placement comes below the bytes of a set of which no two are ordered; a heavy one is found by taking the
//! largest first, and the search ends when it is met. Cost: O(pairs of buffers), each a look at the last users, limited by [`PlanConfig::pack_steps`]; what is
//! not placed when the steps are used up comes on top.

use crate::candidate::Candidate;
use crate::meter::Meter;
use crate::share::Layout;
use crate::{PlanConfig, random};
use lowtide_core::{
    Align, BufferId, Bytes, Graph, Id, IndexVec, Occupant, OpId, Order, Placement, Reach,
    ResidenceId, TensorKind,
};
use std::cmp::Reverse;

/// Bytes of a buffer, and who uses them.
#[derive(Clone, Debug)]
struct Part {
    start: u64,
    end: u64,
    /// Comes before all other users; none for the caller, who writes inputs before the first operator.
    first: Option<OpId>,
    /// All others come before one of these; none if it stays to the end.
    lasts: Option<Vec<OpId>>,
}

/// What a buffer takes.
struct Item {
    parts: Vec<Part>,
    align: Align,
    extent: u64,
}

/// Places the buffers of a candidate; also the bytes below which no placement of them without fences comes.
pub(crate) fn place_apart(
    graph: &Graph,
    of: &Candidate,
    config: &PlanConfig,
    meter: &mut Meter<'_>,
) -> (Placement, Bytes) {
    let reach = Reach::new(graph);
    let items = items(graph, of, config, &reach);
    let heavy = heavy_set(&items, &reach, meter);
    let goal = of.bound.bytes.0.max(heavy);
    let mut search = Search { items: &items, reach: &reach, meter, goal, best: None };
    search.run();
    let (offsets, size) = search.best.expect("the first rule always comes to its end");
    let offsets: Vec<Bytes> = offsets.into_iter().map(Bytes).collect();
    (Placement { offsets: IndexVec::from(offsets), size: Bytes(size) }, Bytes(goal))
}

/// The operators that use each residence.
fn users(graph: &Graph, order: &Order, layout: &Layout) -> IndexVec<ResidenceId, Vec<OpId>> {
    let mut users: IndexVec<ResidenceId, Vec<OpId>> =
        IndexVec::filled(layout.residences.len(), Vec::new());
    for (run, &op) in order.schedule().iter_enumerated() {
        let row = &graph.ops()[op];
        let operands = row.inputs.iter().chain(&row.outputs);
        let places = operands.filter_map(|&tensor| layout.of_tensor[graph.storage(tensor)]);
        for id in places.chain(layout.of_scratch[run]) {
            if users[id].last() != Some(&op) {
                users[id].push(op);
            }
        }
    }
    users
}

fn items(graph: &Graph, of: &Candidate, config: &PlanConfig, reach: &Reach) -> Vec<Item> {
    let layout = &of.layout;
    let users = users(graph, &of.order, layout);
    let part = |id: ResidenceId| {
        let row = &layout.residences[id];
        let storage = match row.what {
            Occupant::Tensor(tensor) => Some(tensor),
            Occupant::Scratch(_) => None,
        };
        let is_input = storage.is_some_and(|id| graph.tensors()[id].kind == TensorKind::Input);
        let stays = storage.is_some_and(|id| graph.holds_output(id));
        let start = row.offset.0;
        Part {
            start,
            end: start + row.size.bound().unwrap_or_default().0,
            // By the order: the writer, as all others read what it wrote.
            first: users[id].first().copied().filter(|_| !is_input),
            lasts: (!stays).then(|| lasts(&users[id], reach)),
        }
    };
    let item = |&id: &BufferId| {
        let row = &layout.buffers[id];
        let residences = row.parts.start.index()..row.parts.end.index();
        let mut parts: Vec<Part> = residences.map(|at| part(ResidenceId::from_index(at))).collect();
        let end = parts.iter().map(|part| part.end).max().unwrap_or_default();
        let padded = |bytes: u64| {
            Bytes(bytes).align_up(row.align).expect("a graph's sizes fit with padding").0
        };
        // Zones only have to be behind what is there at once; behind all is simpler, and enough.
        for part in &mut parts {
            let end = if part.end == end { padded(end) } else { part.end };
            part.end = end + padded(config.red_zone.0);
        }
        parts.retain(|part| part.start < part.end);
        Item { parts, align: row.align, extent: padded(end) + padded(config.red_zone.0) }
    };
    of.buffers.iter().map(item).collect()
}

/// Those of some operators, in an order, that come before none of the others.
fn lasts(users: &[OpId], reach: &Reach) -> Vec<OpId> {
    let mut lasts: Vec<OpId> = Vec::new();
    for &op in users.iter().rev() {
        if !lasts.iter().any(|&last| reach.is_before(op, last)) {
            lasts.push(op);
        }
    }
    lasts
}

/// Changed orders that are tried at most.
const CHANGES: usize = 20_000;

/// Largest parts from which a set is grown.
const SEEDS: usize = 16;

/// The most bytes that were found to need places of their own: parts of different buffers of which no two are ordered, the
/// largest that still fits taken next. No placement without fences is smaller.
fn heavy_set(items: &[Item], reach: &Reach, meter: &mut Meter<'_>) -> u64 {
    let largest = |item: &Item| item.parts.iter().max_by_key(|part| part.end - part.start).cloned();
    let mut parts: Vec<Part> = items.iter().filter_map(largest).collect();
    parts.sort_by_key(|part| Reverse(part.end - part.start));
    let mut best = 0;
    for seed in 0..parts.len().min(SEEDS) {
        let mut set = vec![&parts[seed]];
        for part in &parts {
            meter.spend(set.len() as u64);
            if meter.is_out() {
                return best;
            }
            if set
                .iter()
                .all(|other| !std::ptr::eq(*other, part) && !is_ordered(part, other, reach))
            {
                set.push(part);
            }
        }
        best = best.max(set.iter().map(|part| part.end - part.start).sum());
    }
    best
}

struct Search<'a, 'm, 'w> {
    items: &'a [Item],
    reach: &'a Reach,
    meter: &'m mut Meter<'w>,
    /// No placement is smaller.
    goal: u64,
    best: Option<(Vec<u64>, u64)>,
}

impl Search<'_, '_, '_> {
    /// The best of the rules, then of orders that are changed a little.
    fn run(&mut self) {
        let all: Vec<usize> = (0..self.items.len()).collect();
        let mut by_size = all.clone();
        by_size.sort_by_key(|&at| Reverse(self.items[at].extent));
        let mut best = if self.attempt(&by_size) { by_size } else { all.clone() };
        if self.attempt(&all) {
            best = all;
        }
        let mut state = 1;
        for _ in 0..CHANGES {
            let is_least = self.best.as_ref().is_some_and(|&(_, size)| size <= self.goal);
            if is_least || self.meter.is_out() || self.items.len() < 2 {
                break;
            }
            let mut next = best.clone();
            let from = random::index(next.len(), &mut state);
            let moved = next.remove(from);
            next.insert(random::index(from + 1, &mut state), moved);
            if self.attempt(&next) {
                best = next;
            }
        }
    }

    /// Places in this order; whether that is no worse than the best so far.
    fn attempt(&mut self, order: &[usize]) -> bool {
        let limit = self.best.as_ref().map_or(u64::MAX, |&(_, size)| size);
        let (mut offsets, mut size) = (vec![0; self.items.len()], 0);
        let mut taken = Vec::new();
        for (at, &item) in order.iter().enumerate() {
            let align = self.items[item].align;
            let is_out = self.meter.is_out();
            if is_out && limit < u64::MAX {
                return false;
            }
            offsets[item] = if is_out {
                Bytes(size).align_up(align).expect("a graph's sizes fit with padding").0
            } else {
                taken.clear();
                for &other in &order[..at] {
                    self.forbid(item, other, offsets[other], &mut taken);
                }
                self.meter.spend(1 + at as u64);
                lowest(&mut taken, align)
            };
            size = size.max(offsets[item] + self.items[item].extent);
            if size > limit {
                return false;
            }
        }
        self.best = Some((offsets, size));
        true
    }

    /// Adds the offsets at which an item would meet another one that lies at `base`: ranges without their ends.
    fn forbid(&self, item: usize, other: usize, base: u64, taken: &mut Vec<(u64, u64)>) {
        for mine in &self.items[item].parts {
            for theirs in &self.items[other].parts {
                if !is_ordered(mine, theirs, self.reach) {
                    let low = (base + theirs.start + 1).saturating_sub(mine.end);
                    let high = (base + theirs.end).saturating_sub(mine.start);
                    if low < high {
                        taken.push((low, high));
                    }
                }
            }
        }
    }
}

/// Whether all that use one are over before the other is written.
fn is_ordered(one: &Part, other: &Part, reach: &Reach) -> bool {
    let is_over = |earlier: &Part, later: &Part| match (&earlier.lasts, later.first) {
        (Some(lasts), Some(first)) => lasts.iter().all(|&op| reach.is_before(op, first)),
        _ => false,
    };
    is_over(one, other) || is_over(other, one)
}

/// The lowest offset outside of half-open ranges.
fn lowest(taken: &mut [(u64, u64)], align: Align) -> u64 {
    taken.sort_unstable();
    let mut base = 0;
    for &(low, high) in &*taken {
        if low > base {
            break;
        }
        if high > base {
            base = Bytes(high).align_up(align).expect("a graph's sizes fit with padding").0;
        }
    }
    base
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::{Budget, Watched};
    use crate::share::{Links, Wishes};
    use arbitrary::Unstructured;
    use lowtide_core::testing::{Limits, describe, graph, permutations, random_bytes};

    /// Where each item is one part, the best of all orders is the least arena: each item of a least one can be let down.
    #[test]
    fn the_search_and_the_bound_beside_all_orders() {
        let (mut graphs, mut least_found, mut bound_met) = (0, 0, 0);
        for seed in 0..2_000 {
            let bytes = random_bytes(seed, 1 << 10);
            let limits = Limits { sharing: false, ..Limits::all(6) };
            let Ok(graph) = graph(&mut Unstructured::new(&bytes), limits) else { continue };
            let config = PlanConfig { align: Align::ONE, fences: false, ..PlanConfig::default() };
            let wishes = Wishes::new(&graph, &config, Links::None);
            let of = Candidate::new("file", graph.file_order(), &graph, &config, &wishes);
            let reach = Reach::new(&graph);
            let items = items(&graph, &of, &config, &reach);
            let watched = Watched::new(Budget::of(0).watch);
            if items.len() > 6 {
                continue;
            }
            let mut meter = Meter::new(u64::MAX, &watched);
            let mut search =
                Search { items: &items, reach: &reach, meter: &mut meter, goal: 0, best: None };
            let ids: Vec<OpId> = (0..items.len()).map(OpId::from_index).collect();
            permutations(&ids, &mut |order| {
                search.attempt(&order.iter().map(|id| id.index()).collect::<Vec<_>>());
            });
            let least = search.best.unwrap().1;
            let mut meter = Meter::new(100_000, &watched);
            let (placement, bound) = place_apart(&graph, &of, &config, &mut meter);
            assert!(bound.0 <= least && least <= placement.size.0, "{seed} {}", describe(&graph));
            graphs += 1;
            least_found += usize::from(placement.size.0 == least);
            bound_met += usize::from(bound.0 == least);
        }
        assert!(graphs > 300 && least_found * 50 > graphs * 49, "{least_found} of {graphs}");
        assert!(bound_met * 10 > graphs * 9, "{bound_met} of {graphs}");
    }
}
