//! Guard mode: what is freed is poisoned, so that a read of it shows.
//!
//! ~~~text
//! FREE a     b was written over the first half of a and is still held:    [ b ........ | poison ]
//! ~~~
//! The poison is not a number in every floating type, a large negative number in every signed one, and true.

use lowtide_core::{Bytes, Event, IndexVec, Plan, ResidenceId};
use std::ops::Range;

const POISON: [u8; 4] = [0xA5, 0xA5, 0xF7, 0xFF];

/// What poison is at an address.
pub(crate) fn poison_at(address: usize) -> u8 {
    POISON[address % POISON.len()]
}

/// Fills a range of memory with poison, in phase with its address.
pub(crate) fn poison(memory: &mut [u8], range: Range<usize>) {
    let phase = range.start;
    for (index, byte) in memory[range].iter_mut().enumerate() {
        *byte = poison_at(phase + index);
    }
}

/// The bytes of a residence; `None` in a pool.
pub(crate) fn bytes_of(plan: &Plan, id: ResidenceId) -> Option<Range<usize>> {
    let (_, Bytes(start)) = plan.address(id)?;
    let Bytes(len) = plan.residences[id].size.bound()?;
    Some(usize::try_from(start).ok()?..usize::try_from(start.checked_add(len)?).ok()?)
}

/// For each event: the bytes that nobody holds after it and that were held before. Empty for what frees nothing.
pub(crate) fn freed(plan: &Plan) -> Vec<Vec<Range<usize>>> {
    let mut is_held = IndexVec::filled(plan.residences.len(), false);
    let mut of_event = |event: &Event| match *event {
        Event::Alloc(residence) => {
            is_held[residence] = true;
            Vec::new()
        }
        Event::Free(residence) => {
            is_held[residence] = false;
            no_longer_held(plan, residence, &is_held)
        }
        _ => Vec::new(),
    };
    plan.events.iter().map(&mut of_event).collect()
}

/// The bytes of a residence, without those of others in its buffer that are held: only such share its bytes.
fn no_longer_held(
    plan: &Plan,
    residence: ResidenceId,
    is_held: &IndexVec<ResidenceId, bool>,
) -> Vec<Range<usize>> {
    let Some(own) = bytes_of(plan, residence) else { return Vec::new() };
    let parts = &plan.buffers[plan.residences[residence].buffer].parts;
    let others = (parts.start.raw()..parts.end.raw()).map(ResidenceId::new);
    let held = others.filter(|&id| is_held[id]).filter_map(|id| bytes_of(plan, id));
    let mut held: Vec<Range<usize>> = held.collect();
    held.sort_by_key(|range| range.start);
    without(own, &held)
}

/// A range without others, which are sorted by their starts.
pub(crate) fn without(range: Range<usize>, held: &[Range<usize>]) -> Vec<Range<usize>> {
    let (mut free, mut start) = (Vec::new(), range.start);
    for other in held {
        if start < other.start.min(range.end) {
            free.push(start..other.start.min(range.end));
        }
        start = start.max(other.end);
    }
    if start < range.end {
        free.push(start..range.end);
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poison_is_in_phase_and_no_number() {
        let mut memory = [0_u8; 16];
        poison(&mut memory, 4..12);
        assert!(f32::from_le_bytes(memory[4..8].try_into().unwrap()).is_nan());
        assert!(f64::from_le_bytes(memory[4..12].try_into().unwrap()).is_nan());
        assert!(i64::from_le_bytes(memory[4..12].try_into().unwrap()) < -1_000_000);
        assert_eq!((memory[3], memory[12]), (0, 0));
    }

    #[test]
    fn what_is_held_is_left_alone() {
        let left = |range, held: &[Range<usize>]| format!("{:?}", without(range, held));
        assert_eq!(left(0..10, &[]), "[0..10]");
        assert_eq!(left(0..10, &[0..4, 2..6, 8..12]), "[6..8]");
        assert_eq!(left(4..10, &[5..6, 20..30]), "[4..5, 6..10]");
        assert_eq!(left(4..10, &[0..12, 20..30]), "[]");
    }
}
