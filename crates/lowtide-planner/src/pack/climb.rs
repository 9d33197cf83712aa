//! A placement in, a smaller one out: local search on the order in which items are placed.
//!
//! ~~~text
//! order   a b c d e f        placed one after the other, each into the lowest hole
//!               ▲   │        f ends at the top: it, or one that lives with it, comes earlier
//!         a b f c d e        as small or smaller: kept
//! ~~~
//! For shapes that hang over, which the exact search does not see all placements of, and for what it does not take at all.
//! Cost: one first fit a try. Idea: the hill climb of TVM's memory planner, which swaps, and starts from sizes.

use super::fit::first_fit;
use crate::meter::Meter;
use crate::random;
use lowtide_core::{BufferId, Bytes, Placement, Problem};

/// So many tries in vain end it.
const PATIENCE: u32 = 1000;
/// What a try costs for each item, beside the pairs that first fit looks at.
const TRY: u64 = 64;

/// A placement smaller than the incumbent, if one is found before the steps run out.
pub(super) fn improve(
    problem: &Problem,
    incumbent: &Placement,
    goal: Bytes,
    meter: &mut Meter<'_>,
) -> Option<Placement> {
    let mut order = by_offset(problem, incumbent);
    let mut now = incumbent.clone();
    let (mut best, mut patience, mut random) = (None, PATIENCE, 1);
    while patience > 0 && now.size > goal && !meter.is_out() {
        meter.spend(TRY * order.len() as u64);
        let tried = earlier(problem, &order, &now, &mut random);
        let limit = Bytes(now.size.0 + 1);
        let Some(placement) = first_fit(problem, &tried, limit, meter) else {
            patience -= 1;
            continue;
        };
        patience = if placement.size < now.size { PATIENCE } else { patience - 1 };
        (order, now) = (tried, placement);
        if now.size < incumbent.size {
            best = Some(now.clone());
        }
    }
    best
}

/// Fixed offsets first, then the lowest.
fn by_offset(problem: &Problem, placement: &Placement) -> Vec<BufferId> {
    let mut order: Vec<BufferId> = problem.items().ids().collect();
    order.sort_by_key(|&id| (problem.items()[id].pin.is_none(), placement.offsets[id], id));
    order
}

/// The order with one item earlier: one that ends at the top, or one that lives with it.
fn earlier(
    problem: &Problem,
    order: &[BufferId],
    now: &Placement,
    random: &mut u64,
) -> Vec<BufferId> {
    let items = problem.items();
    let pinned = order.iter().take_while(|&&id| items[id].pin.is_some()).count();
    let end = |id: BufferId| now.offsets[id] + items[id].extent();
    let high: Vec<BufferId> =
        order[pinned..].iter().copied().filter(|&id| end(id) >= now.size).collect();
    let mut order = order.to_vec();
    let Some(&top) = pick(&high, random) else { return order };
    let span = items[top].span();
    let near: Vec<usize> =
        (pinned..order.len()).filter(|&at| items[order[at]].span().overlaps(span)).collect();
    let from = if random::below(2, random) == 0 {
        order.iter().position(|&id| id == top)
    } else {
        pick(&near, random).copied()
    };
    let sooner: Vec<usize> = near.into_iter().filter(|&at| Some(at) < from).collect();
    if let (Some(from), Some(&to)) = (from, pick(&sooner, random)) {
        order[to..=from].rotate_right(1);
    }
    order
}

fn pick<'a, T>(list: &'a [T], random: &mut u64) -> Option<&'a T> {
    let at = random::below(list.len().max(1) as u64, random);
    list.get(usize::try_from(at).expect("an index"))
}
