//! In which order pieces come that lie at the same offset: keys, noise, and what failures teach.
//!
//! ~~~text
//! key ──> longest, largest, busiest first        turn 0: as they are
//!                                                 later: pieces moved at random | where searches failed comes first
//! ~~~

use super::instance::Instance;
use crate::random;
use lowtide_core::BufferId;
use std::cmp::Reverse;

/// What a piece is sorted by: the largest first.
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

/// For a new search, a piece may move by one in so many of all.
const PART_MOVED: u64 = 2;
/// What a failure counts one search later.
const FORGET: f64 = 0.9;

/// Gives one order after the other.
#[derive(Debug)]
pub(super) struct Orders {
    keyed: Vec<Vec<BufferId>>,
    failures: Vec<f64>,
    random: u64,
}

impl Orders {
    /// So many orders need neither noise nor failures.
    pub(super) const PLAIN: usize = KEYS.len();

    pub(super) fn new(instance: &Instance) -> Self {
        let keyed = KEYS.map(|key| sorted(instance, key)).into();
        Self { keyed, failures: vec![0.0; instance.live.len()], random: 1 }
    }

    /// Each key as it is; then, in turns, the keys with noise and what the failures say.
    pub(super) fn next(&mut self, instance: &Instance, round: usize) -> Vec<BufferId> {
        let (turn, key) = (round / KEYS.len(), round % KEYS.len());
        if turn == 0 {
            return self.keyed[key].clone();
        }
        if key % 2 == 0 {
            return self.moved((key + turn) % KEYS.len());
        }
        self.by_failures(instance, key % 4 == 1)
    }

    /// Learns how often each section was the one with no room for the rest.
    pub(super) fn learn(&mut self, failures: &[u32]) {
        for (weight, &failed) in self.failures.iter_mut().zip(failures) {
            *weight = (*weight + f64::from(failed)) * FORGET;
        }
    }

    /// The order of a key, pieces moved at random.
    fn moved(&mut self, key: usize) -> Vec<BufferId> {
        let most = 1000 * (self.keyed[key].len() as u64 / PART_MOVED) + 1;
        let random = &mut self.random;
        let place = |(at, &item): (u64, &BufferId)| (1000 * at + random::below(most, random), item);
        let mut moved: Vec<(u64, BufferId)> = (0..).zip(&self.keyed[key]).map(place).collect();
        moved.sort_unstable();
        moved.into_iter().map(|(_, item)| item).collect()
    }

    /// Who lives where searches failed comes first: the sum of the failures of a piece's sections, or the most of one,
    /// times a random number of 1 to 2. Learning from failures: Boussemart et al., "Boosting Systematic Search by
    /// Weighting Constraints" (ECAI 2004).
    fn by_failures(&mut self, instance: &Instance, is_sum: bool) -> Vec<BufferId> {
        let Self { failures, random, .. } = self;
        let mut weight = |item: BufferId| {
            let own = failures[instance.pieces[item].sections.clone()].iter();
            let weight =
                if is_sum { own.sum::<f64>() } else { own.fold(0.0, |a: f64, &b| a.max(b)) };
            let chance = u32::try_from(random::below(1 << 20, random)).expect("it is below that");
            (weight + 1.0) * (1.0 + f64::from(chance) / f64::from(1 << 20))
        };
        let weighted = instance.pieces.ids().map(|item| (weight(item), item));
        let mut items: Vec<(f64, BufferId)> = weighted.collect();
        items.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        items.into_iter().map(|(_, item)| item).collect()
    }
}

fn sorted(instance: &Instance, key: [By; 3]) -> Vec<BufferId> {
    let sum = |live: &Vec<BufferId>| live.iter().map(|&item| instance.pieces[item].bytes).sum();
    let loads: Vec<u64> = instance.live.iter().map(sum).collect();
    let value = |item: BufferId, by: By| {
        let piece = &instance.pieces[item];
        match by {
            By::Length => piece.duration,
            By::Area => piece.bytes.saturating_mul(piece.duration),
            By::Size => piece.bytes,
            By::Load => loads[piece.sections.clone()].iter().copied().max().unwrap_or(0),
        }
    };
    let rows = instance.pieces.ids().map(|item| (key.map(|by| Reverse(value(item, by))), item));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    rows.into_iter().map(|(_, item)| item).collect()
}
