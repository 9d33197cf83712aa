//! [`Entries`]: where each block lies now and what it is, read without a lock.
//!
//! ~~~text
//! block 70 ──> chunk 1 [64, 192) ──> row 6 ──> address        chunks double, and never move
//! ~~~

use super::spans::SpanId;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

const FIRST: usize = 64;

#[derive(Debug, Default)]
struct Entry {
    address: AtomicPtr<u8>,
    class: AtomicU8,
}

/// Addresses and classes by number.
#[derive(Debug)]
pub(super) struct Entries([OnceLock<Box<[Entry]>>; 27]);

impl Entries {
    pub(super) fn new() -> Self {
        Self([const { OnceLock::new() }; 27])
    }

    /// The chunk, its length, and the row in it.
    fn at(id: SpanId) -> (usize, usize, usize) {
        let moved = id as usize + FIRST;
        let chunk = (moved / FIRST).ilog2() as usize;
        let len = FIRST << chunk;
        (chunk, len, moved - len)
    }

    /// From now on a block of this class lies here. Whoever hands its number on afterwards hands this on, too.
    pub(super) fn set(&self, id: SpanId, address: *mut u8, class: usize) {
        let (chunk, len, row) = Self::at(id);
        let rows = self.0[chunk].get_or_init(|| (0..len).map(|_| Entry::default()).collect());
        rows[row].address.store(address, Ordering::Relaxed);
        rows[row].class.store(u8::try_from(class).expect("classes are few"), Ordering::Relaxed);
    }

    /// From now on a block lies here, as what it is.
    pub(super) fn move_to(&self, id: SpanId, address: *mut u8) {
        self.row(id).address.store(address, Ordering::Relaxed);
    }

    fn row(&self, id: SpanId) -> &Entry {
        let (chunk, _, row) = Self::at(id);
        let rows = self.0[chunk].get();
        &rows.expect("whoever has the number was given it after the address")[row]
    }

    /// Where a block lies.
    pub(super) fn address(&self, id: SpanId) -> *mut u8 {
        self.row(id).address.load(Ordering::Relaxed)
    }

    /// The class of a block.
    pub(super) fn class(&self, id: SpanId) -> u8 {
        self.row(id).class.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_apart() {
        let entries = Entries::new();
        let mut bytes = vec![0_u8; 1000];
        let base = bytes.as_mut_ptr();
        let ids = (0..1000).chain([u32::MAX - 1]);
        for (at, id) in ids.clone().enumerate().filter(|&(_, id)| id < 1000) {
            entries.set(id, base.wrapping_add(at), at % 7);
        }
        for (at, id) in ids.enumerate().filter(|&(_, id)| id < 1000) {
            assert_eq!(entries.address(id), base.wrapping_add(at));
            assert_eq!(usize::from(entries.class(id)), at % 7);
        }
        assert_eq!(Entries::at(u32::MAX - 1).0, 26);
    }
}
