//! Layout to a placement that needs no fences: bytes are used again only where data orders it.
//!
//! ~~~text
//! x ─ f ─ a ─ g ─ b           on one worker k may come over a, when g is over.
//!  └─ h ─ c ─ k ─ d           On several, k may run before g: a and d lie apart. b and a do anyway, and what
//!                             follows after both, that has both ways behind it, may come over any.
//! ~~~
//! Two residences are apart unless all that use one come before whoever writes the other, in the graph and so in every
//! run. That depends on no order, so the order is only a heuristic here: sweeps in the order of time ([`sweep`]) always run;
//! then buffers are placed one after the other, each at the lowest offset that is free, by other rules, of which the best is
//! kept; then by orders that are changed a little, as long as steps are left. No placement comes below the bytes of a set of
//! which no two are ordered; a heavy one is found by taking the largest first, and the search ends when it is met. Cost: the
//! sweeps', and O(pairs of buffers), each a look at the last users, limited by [`PlanConfig::pack_steps`].

use crate::candidate::Candidate;
use crate::meter::Meter;
use crate::share::Layout;
use crate::skyline::sweep;
use crate::{PlanConfig, random};
use lowtide_core::{
    Align, BufferId, Bytes, Graph, Id, IndexVec, Occupant, OpId, Order, Placement, Reach,
    ResidenceId, TensorKind,
};
use std::cmp::Reverse;

/// Bytes of a buffer, and who uses them.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Comes before all other users; none for the caller, who writes inputs before the first operator.
    first: Option<OpId>,
    /// All others come before one of these; none if it is never over for others: it is an output, or one of these comes
    /// before nothing.
    lasts: Option<Vec<OpId>>,
}

/// What a buffer takes.
pub(crate) struct Item {
    pub(crate) parts: Vec<Part>,
    pub(crate) align: Align,
    pub(crate) extent: u64,
    /// The first step of the order that uses it.
    pub(crate) begins: u32,
}

impl Item {
    /// Whether it is over for nobody.
    pub(crate) fn stays(&self) -> bool {
        self.parts.iter().all(|part| part.lasts.is_none())
    }
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
    let share = meter.left() / HEAVY_SET;
    let heavy = meter.with_at_most(share, |meter| heavy_set(&items, &reach, meter));
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
            lasts: (!stays)
                .then(|| lasts(&users[id], reach))
                .filter(|lasts| lasts.iter().all(|&op| reach.is_before_any(op))),
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
        let begins = |part: &Part| part.first.map_or(0, |op| of.order.step(op).0);
        Item {
            begins: parts.iter().map(begins).min().unwrap_or_default(),
            parts,
            align: row.align,
            extent: padded(end) + padded(config.red_zone.0),
        }
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

/// The bound may take such a part of the steps.
const HEAVY_SET: u64 = 4;

/// A sweep may take so many looks for each buffer, whatever is left of the steps.
const SWEEP: u64 = 1024;

/// Largest parts from which a set is grown.
const SEEDS: usize = 16;

/// The most bytes that were found to need places of their own: parts of different buffers of which no two are ordered. All that
/// is never over is one such set, of the rest the largest that still fits is taken next; or the largest of all come first. No
/// placement without fences is smaller. 0 where it is not known for all what is ordered.
fn heavy_set(items: &[Item], reach: &Reach, meter: &mut Meter<'_>) -> u64 {
    if !reach.is_complete() {
        return 0;
    }
    let largest = |item: &Item| item.parts.iter().max_by_key(|part| part.end - part.start).cloned();
    let mut parts: Vec<Part> = items.iter().filter_map(largest).collect();
    parts.sort_by_key(|part| Reverse(part.end - part.start));
    let bytes = |set: &[&Part]| set.iter().map(|part| part.end - part.start).sum::<u64>();
    let stay: Vec<&Part> = parts.iter().filter(|part| part.lasts.is_none()).collect();
    let seeds = parts.iter().take(SEEDS).map(|part| vec![part]);
    let mut best = bytes(&stay);
    for mut set in std::iter::once(stay).chain(seeds) {
        for part in &parts {
            let is_met =
                |other: &&Part| std::ptr::eq(*other, part) || is_ordered(part, other, reach);
            let met = set.iter().position(is_met);
            meter.spend(1 + met.unwrap_or(set.len()) as u64);
            if meter.is_out() {
                return best.max(bytes(&set));
            }
            if met.is_none() {
                set.push(part);
            }
        }
        best = best.max(bytes(&set));
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
        self.sweep(true);
        self.sweep(false);
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

    /// One sweep, kept if it is better.
    fn sweep(&mut self, stay_below: bool) {
        let allowed = (SWEEP * self.items.len() as u64).max(self.meter.left() / 4);
        let mut looks = allowed;
        let found = sweep(self.items, self.reach, stay_below, &mut looks);
        self.meter.spend(allowed - looks);
        if self.best.as_ref().is_none_or(|&(_, size)| found.1 < size) {
            self.best = Some(found);
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
    is_over(one, other, reach) || is_over(other, one, reach)
}

/// Whether all that use the earlier one are over before the later one is written.
pub(crate) fn is_over(earlier: &Part, later: &Part, reach: &Reach) -> bool {
    match (&earlier.lasts, later.first) {
        (Some(lasts), Some(first)) => lasts.iter().all(|&op| reach.is_before(op, first)),
        _ => false,
    }
}

/// The lowest offset outside of half-open ranges.
pub(crate) fn lowest(taken: &mut [(u64, u64)], align: Align) -> u64 {
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
    use lowtide_core::testing::{
        Limits, describe, graph, layered_random, permutations, random_bytes,
    };

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
            for stay_below in [true, false] {
                let (_, size) = swept(&items, &reach, stay_below, u64::MAX);
                assert!(least <= size, "{seed} {stay_below}");
            }
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

    /// Items of a graph in the order of its file, with parts in place if any.
    fn items_of(graph: &Graph) -> (Vec<Item>, Reach) {
        let config = PlanConfig { fences: false, ..PlanConfig::default() };
        let wishes = Wishes::new(graph, &config, Links::Dying);
        let of = Candidate::new("file", graph.file_order(), graph, &config, &wishes);
        let reach = Reach::new(graph);
        (items(graph, &of, &config, &reach), reach)
    }

    /// A sweep, of which no two parts meet that are not ordered.
    fn swept(items: &[Item], reach: &Reach, stay_below: bool, mut looks: u64) -> (Vec<u64>, u64) {
        let (offsets, size) = sweep(items, reach, stay_below, &mut looks);
        let placed: Vec<(usize, u64, u64, &Part)> = (0..items.len())
            .flat_map(|at| items[at].parts.iter().map(move |part| (at, part)))
            .map(|(at, part)| (at, offsets[at] + part.start, offsets[at] + part.end, part))
            .collect();
        for &(one, start, end, mine) in &placed {
            assert!(end <= size);
            for &(other, from, to, theirs) in &placed {
                let meets = one < other && start < to && from < end;
                assert!(!meets || is_ordered(mine, theirs, reach), "{one} {other}");
            }
        }
        (offsets, size)
    }

    #[test]
    fn a_sweep_needs_no_fence() {
        let mut with_parts = 0;
        for seed in 0..1_000 {
            let bytes = random_bytes(seed, 1 << 11);
            let Ok(graph) = graph(&mut Unstructured::new(&bytes), Limits::all(16)) else {
                continue;
            };
            let (items, reach) = items_of(&graph);
            with_parts += usize::from(items.iter().any(|item| item.parts.len() > 1));
            for looks in [u64::MAX, 40] {
                swept(&items, &reach, true, looks);
                swept(&items, &reach, false, looks);
            }
        }
        assert!(with_parts > 100, "{with_parts}");
    }

    #[test]
    fn a_sweep_is_as_small_as_looks_at_all_pairs() {
        let graph = layered_random(3_000, 10, 1);
        let (items, reach) = items_of(&graph);
        let (_, size) = swept(&items, &reach, true, 1_000 * items.len() as u64);
        let watched = Watched::new(Budget::of(0).watch);
        let mut meter = Meter::new(u64::MAX, &watched);
        let mut search =
            Search { items: &items, reach: &reach, meter: &mut meter, goal: 0, best: None };
        assert!(search.attempt(&(0..items.len()).collect::<Vec<_>>()));
        let by_pairs = search.best.unwrap().1;
        assert!(size * 50 < by_pairs * 51, "{size} {by_pairs}");
    }
}
