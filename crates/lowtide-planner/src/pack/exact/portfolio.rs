//! Many searches for one capacity, in turns: some that go on, and ever new ones with other orders.
//!
//! ~~~text
//! goes on    A──   B──   C──   A──   B────   C────   ...      so that what one order finds late is found
//! anew         d     e     f     g      h       i    ...      so that no order has to be the right one
//! ~~~
//! How long a search takes depends wildly on the order of pieces at one offset. The new ones end after times in the
//! sequence of Luby, Sinclair and Zuckerman (1993); the others get as much. The first that ends by itself has the answer.

use super::instance::Instance;
use super::orders::Orders;
use super::search::{End, Search};
use crate::meter::Meter;
use lowtide_core::BufferId;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The offset of each piece.
    Found(Vec<u64>),
    /// There is no placement within the capacity.
    Impossible,
    /// The steps ran out, or the search does not see all placements and saw none.
    Unknown,
}

/// So often may the shortest search try each piece.
const SHORTEST: u64 = 10;
/// So often do those that go on at first: most problems need no other order, and no more than that.
const FIRST: u64 = 30;
/// So many searches go on.
const STEADY: usize = 3;
/// Where the end of a search proves nothing, so many of them are started that find nothing.
const MOST_IN_VAIN: u32 = 20;

/// Looks for a placement within a capacity.
pub(super) fn place_within(instance: &Instance, capacity: u64, meter: &mut Meter<'_>) -> Answer {
    let pieces = instance.pieces.len() as u64;
    let unit = SHORTEST * pieces;
    let mut orders = Orders::new(instance);
    let mut steady: Vec<Run> = Vec::new();
    let mut in_vain = 0;
    for round in 0.. {
        let most = unit.saturating_mul(luby((round / Orders::PLAIN) as u64 + 1));
        if round < STEADY {
            steady.push(Run::new(instance, orders.next(instance, round), capacity));
        } else {
            let mut run = Run::new(instance, orders.next(instance, round), capacity);
            match run.go_on(most, meter) {
                End::Found => return Answer::Found(run.offsets()),
                End::None if instance.stands => return Answer::Impossible,
                End::None => in_vain += 1,
                End::Unknown => orders.learn(&run.search.state.failures),
            }
        }
        let run = &mut steady[round % STEADY];
        let tries = if round < STEADY { FIRST * pieces } else { most };
        match run.go_on(tries, meter) {
            End::Found => return Answer::Found(run.offsets()),
            End::None if instance.stands => return Answer::Impossible,
            End::None | End::Unknown => {}
        }
        if meter.is_out() || in_vain == MOST_IN_VAIN {
            break;
        }
    }
    Answer::Unknown
}

/// A search with the order of its pieces.
struct Run {
    order: Vec<BufferId>,
    search: Search,
}

impl Run {
    fn new(instance: &Instance, order: Vec<BufferId>, capacity: u64) -> Self {
        let search = Search::new(instance.ordered(&order), capacity);
        Self { order, search }
    }

    fn go_on(&mut self, tries: u64, meter: &mut Meter<'_>) -> End {
        self.search.run(tries, meter)
    }

    fn offsets(&self) -> Vec<u64> {
        let mut offsets = vec![0; self.order.len()];
        for (&piece, &offset) in self.order.iter().zip(&self.search.state.offset) {
            offsets[piece.raw() as usize] = offset;
        }
        offsets
    }
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
