//! Blocks to slices, and bytes to where they are moved. The only unsafe code of the pool.
//!
//! ~~~text
//! block 17 ──entries──> address ──> &[u8], as long as the block is borrowed
//! moves     [ .. a .. b ] ──> [ a b .. .. ]       while nobody has such a slice
//! ~~~

#![expect(
    unsafe_code,
    reason = "slices of blocks, of which each is given out once, and of which none is borrowed while blocks are moved"
)]

use super::{Pool, PoolBlock};
use lowtide_core::Bytes;

/// What moving blocks together did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Blocks that lie elsewhere now.
    pub blocks: usize,
    /// Bytes of them.
    pub moved: Bytes,
    /// Bytes that were scattered over holes between blocks, before.
    pub scattered: Bytes,
}

impl Pool {
    /// The bytes of a block.
    ///
    /// # Panics
    /// If it is of another pool.
    pub fn bytes<'a>(&'a self, block: &'a PoolBlock) -> &'a [u8] {
        let (address, len) = self.range(block);
        // SAFETY: the block is of this pool (`range` has looked), was not given back, and is borrowed: nobody else has its
        // span, whose segment stays mapped as long as bytes of it are held, and which is at least as long as was asked for.
        // Memory of a segment is initialised when it is reserved. It is not moved: that takes the pool by `&mut`, or the
        // promise of `compact_shared`.
        unsafe { std::slice::from_raw_parts(address, len) }
    }

    /// The bytes of a block, to be written.
    ///
    /// # Panics
    /// If it is of another pool.
    pub fn bytes_mut<'a>(&'a self, block: &'a mut PoolBlock) -> &'a mut [u8] {
        let (address, len) = self.range(block);
        // SAFETY: as for `bytes`; and the block is borrowed by this slice alone.
        unsafe { std::slice::from_raw_parts_mut(address, len) }
    }

    /// Moves all blocks together, so that what is free lies together, if more than the configured part of the memory is
    /// scattered; none if not. Blocks stay what they are. Cost: O(blocks · log blocks), and the bytes that are moved.
    pub fn compact(&mut self) -> Option<Compaction> {
        // SAFETY: nobody else has the pool, so nobody has a slice of a block.
        unsafe { self.compact_shared(self.config.scattered) }
    }

    /// [`Pool::compact`] at a moment at which other threads have the pool, too, if more than so many percent are scattered.
    ///
    /// # Safety
    /// Nobody has a slice of a block, or makes one, before this returns; and what was written to blocks before happens before.
    pub(crate) unsafe fn compact_shared(&self, percent: u32) -> Option<Compaction> {
        let mut segments = self.lock();
        let (scattered, total) = (segments.spans.scattered().0, segments.spans.touched);
        if u128::from(scattered) * 100 <= u128::from(total) * u128::from(percent) {
            return None;
        }
        self.collect(&mut segments);
        let scattered = segments.spans.scattered();
        let before = segments.spans.total;
        let moves = segments.spans.compact();
        segments.peak = segments.peak.max(segments.spans.total);
        let mut done = Compaction { scattered, ..Compaction::default() };
        for row in moves {
            let (from, to) = (segments.address_of(row.from), segments.address_of(row.to));
            let len = usize::try_from(row.bytes).expect("it is mapped");
            // SAFETY: both ranges are inside of segments. The caller promises that no slice of a block exists. Moves come in
            // the order of places, each to a place that is not behind its own, and only over what is free or has been moved.
            unsafe { std::ptr::copy(from, to, len) };
            self.entries.move_to(row.id, to);
            done.blocks += 1;
            done.moved += Bytes(row.bytes);
        }
        // What was behind is free now, and may go back in the place of what was touched anew.
        segments.note_growth(before);
        segments.compactions += 1;
        segments.moved += done.moved.0;
        Some(done)
    }

    /// Where a block lies, and how many bytes were asked for.
    fn range(&self, block: &PoolBlock) -> (*mut u8, usize) {
        assert_eq!(block.pool, self.number, "the block is of another pool");
        (self.entries.address(block.id), block.len)
    }
}
