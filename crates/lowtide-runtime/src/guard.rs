//! Poison: what stands in bytes that nobody holds in guard mode, so that a read of them shows.
//!
//! ~~~text
//! [ b ........ | poison ]      a is freed; b was written over the first half of it and is still held
//! ~~~
//! The poison is not a number in every floating type, a large negative number in every signed one, and true.

use lowtide_core::{Bytes, Plan, ResidenceId};
use std::ops::Range;

const POISON: [u8; 4] = [0xA5, 0xA5, 0xF7, 0xFF];

/// What poison is at an address.
pub(crate) fn poison_at(address: usize) -> u8 {
    POISON[address % POISON.len()]
}

/// Fills a range of memory with poison, in phase with its address.
pub(crate) fn poison(memory: &mut [u8], range: Range<usize>) {
    let phase = range.start;
    fill(&mut memory[range], phase);
}

/// Fills bytes with poison, of which the first lies at `phase`.
pub(crate) fn fill(bytes: &mut [u8], phase: usize) {
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = poison_at(phase + index);
    }
}

/// The bytes of a residence; `None` in a pool.
pub(crate) fn bytes_of(plan: &Plan, id: ResidenceId) -> Option<Range<usize>> {
    let (_, Bytes(start)) = plan.address(id)?;
    let Bytes(len) = plan.residences[id].size.bound()?;
    Some(usize::try_from(start).ok()?..usize::try_from(start.checked_add(len)?).ok()?)
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
