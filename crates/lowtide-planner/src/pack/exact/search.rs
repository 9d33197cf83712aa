//! Depth-first search over partial placements, with restarts.
//!
//! ~~~text
//! candidates, lowest first: those that start below every top     a ─ b ─ dead end, undo b ─ c ─ ...
//! nothing crosses a section any more: left and right are searched apart
//! ~~~
//! An item that starts above some top need not be tried: the item with that top would fit below it. An item that
//! overlaps nothing that is still to come can do no harm: if it does not help, nothing else does. How long a search
//! takes depends wildly on how ties are broken; so it is started again and again with other ranks, for times in the
//! sequence of Luby, Sinclair and Zuckerman (1993). A search that ends by itself has proven its answer.

use super::instance::Instance;
use super::state::{PLACED, Place, State};
use crate::pack::random;
use lowtide_core::{BufferId, Bytes, Id, IndexVec};
use std::cmp::Reverse;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The offset of each piece.
    Found(IndexVec<BufferId, Bytes>),
    /// There is no placement within the capacity.
    Impossible,
    /// The steps ran out.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Found,
    None,
    OutOfWork,
}

/// So often may the shortest search place each item.
const SHORTEST: u64 = 30;
/// For a new search, an item may move by one in so many of all ranks.
const PART_MOVED: u64 = 2;
/// What a failure counts one search later.
const FORGET: f64 = 0.9;

/// Looks for a placement within a capacity.
pub(super) fn place_within(instance: &Instance, capacity: u64, steps: &mut u64) -> Answer {
    let (items, pairs) = (instance.pieces.len() as u64, instance.overlaps.item_count() as u64);
    // To place an item, all are looked at about three times, and those that overlap it.
    let unit = SHORTEST * (3 * items * items + pairs + 64);
    let mut random = 1;
    let mut failures = vec![0.0; instance.live.len()];
    for round in 0.. {
        let turn = round / KEYS.len();
        let ranks = ranks_of_round(instance, round, &failures, &mut random);
        let mut state = State::new(instance, capacity, ranks, failures);
        let most = unit.saturating_mul(luby(turn as u64 + 1)).min(*steps);
        state.work = most;
        let end = start(&mut state);
        *steps -= most - state.work;
        match end {
            End::Found => return Answer::Found(state.offset.iter().map(|&at| Bytes(at)).collect()),
            End::None => return Answer::Impossible,
            End::OutOfWork if *steps == 0 => return Answer::Unknown,
            End::OutOfWork => {}
        }
        failures = state.failures;
        for weight in &mut failures {
            *weight *= FORGET;
        }
    }
    Answer::Unknown
}

/// Each key as it is; then, in turns, the keys with noise and what the failures say.
fn ranks_of_round(
    instance: &Instance,
    round: usize,
    failures: &[f64],
    random: &mut u64,
) -> IndexVec<BufferId, usize> {
    let moves = instance.pieces.len() as u64 / PART_MOVED;
    match (round / KEYS.len(), round % KEYS.len()) {
        (0, key) => ranks(instance, KEYS[key], 0, random),
        (turn, key) if key % 2 == 0 => {
            ranks(instance, KEYS[(key + turn) % KEYS.len()], moves, random)
        }
        (_, key) => ranks_by_failures(instance, failures, key % 4 == 1, random),
    }
}

fn start(state: &mut State<'_>) -> End {
    let mut all: Vec<BufferId> = state.instance.ids().collect();
    all.sort_unstable_by_key(|&item| state.rank[item]);
    let sections = 0..state.instance.live.len();
    if !state.fits(&sections, 0) {
        return End::None;
    }
    search_parts(state, &Place { among: &all, sections, at: 0, rank: 0 })
}

/// Searches each stretch that nothing crosses apart, those with the fewest items first.
fn search_parts(state: &mut State<'_>, place: &Place<'_>) -> End {
    let mut cuts = vec![place.sections.start];
    let inner = place.sections.start + 1..place.sections.end;
    cuts.extend(inner.filter(|&section| state.crossing[section] == 0));
    let mut parts: Vec<Vec<BufferId>> = vec![Vec::new(); cuts.len()];
    for &item in place.among {
        if state.low[item] != PLACED {
            let first = state.instance.pieces[item].sections.start;
            parts[cuts.partition_point(|&cut| cut <= first) - 1].push(item);
        }
    }
    let mut order: Vec<usize> = (0..parts.len()).filter(|&part| !parts[part].is_empty()).collect();
    order.sort_by_key(|&part| parts[part].len());
    for part in order {
        let end = cuts.get(part + 1).copied().unwrap_or(place.sections.end);
        let sections = cuts[part]..end;
        let end = search(state, &Place { among: &parts[part], sections, ..*place });
        if end != End::Found {
            return end;
        }
    }
    End::Found
}

/// Places all that is still to come among these items, at the offset and rank of `place` or after.
fn search(state: &mut State<'_>, place: &Place<'_>) -> End {
    let Some(roof) = lowest_top(state, place.among) else { return End::Found };
    let (height, mut last) = (state.height(), (place.at, place.rank));
    while let Some((at, rank, item)) = next(state, place.among, last, roof) {
        // Whoever comes now or later lies at this offset or above.
        if !state.fits(&place.sections, at) {
            return End::None;
        }
        if state.work == 0 {
            return End::OutOfWork;
        }
        last = (at, rank + 1);
        let is_free = state.open[item] == 0;
        let here = Place { at, rank, sections: place.sections.clone(), ..*place };
        let is_open = state.place(item, &here);
        let end = if is_open { go_on(state, &here, item) } else { End::None };
        if end == End::Found {
            return end;
        }
        state.undo_to(height);
        if end == End::OutOfWork || (is_open && is_free) {
            return end;
        }
    }
    End::None
}

/// Searches on behind an item, in parts if it was the last that crossed a section.
fn go_on(state: &mut State<'_>, place: &Place<'_>, item: BufferId) -> End {
    let own = &state.instance.pieces[item].sections;
    let from = own.start.max(place.sections.start + 1);
    let to = (own.end + 1).min(place.sections.end);
    let next = Place { rank: place.rank + 1, sections: place.sections.clone(), ..*place };
    if (from..to).any(|section| state.crossing[section] == 0) {
        return search_parts(state, &next);
    }
    search(state, &next)
}

/// The lowest top that an item still to come can have; `None` if there is none.
fn lowest_top(state: &mut State<'_>, among: &[BufferId]) -> Option<u64> {
    state.work = state.work.saturating_sub(among.len() as u64);
    let tops = among.iter().map(|&item| state.low[item] + state.instance.pieces[item].bytes);
    tops.min().filter(|&top| top < PLACED)
}

/// The first candidate at this offset and rank or after.
fn next(
    state: &mut State<'_>,
    among: &[BufferId],
    (at, rank): (u64, usize),
    roof: u64,
) -> Option<(u64, usize, BufferId)> {
    state.work = state.work.saturating_sub(among.len() as u64);
    let mut best = (roof, BufferId::from_index(0));
    // They come by rank, so that of those at one offset the first is the right one.
    for &item in among {
        let low = state.low[item];
        if low < best.0 && (low > at || (low == at && state.rank[item] >= rank)) {
            best = (low, item);
        }
    }
    (best.0 < roof).then(|| (best.0, state.rank[best.1], best.1))
}

/// What an item is sorted by: the largest first.
#[derive(Clone, Copy, Debug)]
enum By {
    Length,
    Area,
    Size,
    /// The most that is live while it is there.
    Load,
}

/// Orders that differ enough for one of them to do well.
const KEYS: [[By; 3]; 8] = [
    [By::Length, By::Area, By::Load],
    [By::Load, By::Area, By::Length],
    [By::Load, By::Length, By::Area],
    [By::Area, By::Length, By::Load],
    [By::Size, By::Length, By::Load],
    [By::Load, By::Size, By::Length],
    [By::Length, By::Size, By::Load],
    [By::Area, By::Load, By::Length],
];

/// The rank of each item by a key, some of them moved at random.
fn ranks(
    instance: &Instance,
    key: [By; 3],
    moves: u64,
    random: &mut u64,
) -> IndexVec<BufferId, usize> {
    let loads: Vec<u64> = instance
        .live
        .iter()
        .map(|live| live.iter().map(|&item| instance.pieces[item].bytes).sum())
        .collect();
    let value = |item: BufferId, by: By| {
        let piece = &instance.pieces[item];
        match by {
            By::Length => piece.duration,
            By::Area => piece.bytes.saturating_mul(piece.duration),
            By::Size => piece.bytes,
            By::Load => loads[piece.sections.clone()].iter().copied().max().unwrap_or(0),
        }
    };
    let mut items: Vec<BufferId> = instance.ids().collect();
    items.sort_by_key(|&item| (key.map(|by| Reverse(value(item, by))), item));
    let place = |(at, item): (u64, BufferId)| (1000 * at + below(1000 * moves + 1, random), item);
    let mut moved: Vec<(u64, BufferId)> = (0..).zip(items).map(place).collect();
    moved.sort_unstable();
    by_place(moved.into_iter().map(|(_, item)| item))
}

/// Who lives where searches failed comes first: the sum of the failures of an item's sections, or the most of one,
/// times a random number of 1 to 2. Learning from failures: Boussemart et al., "Boosting Systematic Search by
/// Weighting Constraints" (ECAI 2004).
fn ranks_by_failures(
    instance: &Instance,
    failures: &[f64],
    is_sum: bool,
    random: &mut u64,
) -> IndexVec<BufferId, usize> {
    let mut weight = |item: BufferId| {
        let own = failures[instance.pieces[item].sections.clone()].iter();
        let weight = if is_sum { own.sum::<f64>() } else { own.fold(0.0, |a: f64, &b| a.max(b)) };
        let chance = u32::try_from(below(1 << 20, random)).expect("it is below that");
        (weight + 1.0) * (1.0 + f64::from(chance) / f64::from(1 << 20))
    };
    let weighted = instance.ids().map(|item| (weight(item), item));
    let mut items: Vec<(f64, BufferId)> = weighted.collect();
    items.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    by_place(items.into_iter().map(|(_, item)| item))
}

/// The rank of each item of a list.
fn by_place(items: impl ExactSizeIterator<Item = BufferId>) -> IndexVec<BufferId, usize> {
    let mut ranks = IndexVec::filled(items.len(), 0);
    for (rank, item) in items.enumerate() {
        ranks[item] = rank;
    }
    ranks
}

/// A number below another one.
fn below(limit: u64, random: &mut u64) -> u64 {
    random::next(random) % limit
}

/// 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...
fn luby(mut index: u64) -> u64 {
    loop {
        let above = (index + 1).next_power_of_two();
        if above == index + 1 {
            return above / 2;
        }
        index -= above / 2 - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_follow_the_sequence() {
        let first: Vec<u64> = (1..=15).map(luby).collect();
        assert_eq!(first, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
    }
}
