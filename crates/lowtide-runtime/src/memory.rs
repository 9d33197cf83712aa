//! [`Memory`]: where the arena comes from.
//!
//! ~~~text
//! reserve(4.88 MiB, aligned to 64) ──> Block ── host_mut ──> &mut [u8]     memory of this processor
//!                                            └─ address ───> 0x7f..        of any other: opaque here
//! ~~~
//! A session asks once, when it is made, and gives back when it is dropped. Memory of a device has addresses, but no
//! bytes that this processor could touch; the sequential executor refuses it.

use lowtide_core::{Align, Bytes};
use memmap2::{MmapMut, MmapOptions};
use std::fmt;
use std::ops::Range;

/// Pages are at least as large as this, and blocks that are mapped begin with one.
const PAGE: Bytes = Bytes(4096);

/// Gives out blocks of memory.
pub trait Memory: fmt::Debug + Send {
    /// A block of `bytes`, filled with zeros, whose address is a multiple of `align`. Nothing else is in it.
    fn reserve(&mut self, bytes: Bytes, align: Align) -> Result<Box<dyn Block>, MemoryError>;
}

/// A block of memory, given back when it is dropped.
pub trait Block: fmt::Debug + Send + Sync {
    /// Where it begins, in the address space of whoever owns it.
    fn address(&self) -> u64;

    /// Its bytes, if this processor can read them; as many as were asked for, and the same at each call.
    fn host(&self) -> Option<&[u8]>;

    /// Its bytes, if this processor can write them; as many as were asked for, and the same at each call.
    fn host_mut(&mut self) -> Option<&mut [u8]>;

    /// Gives the pages of these bytes, whole pages of 4096 bytes of it, back to the system: they are zero when they are touched again,
    /// and no memory until then. Whether it did; if not, nothing has changed. Most memories do not.
    fn give_back(&mut self, bytes: Range<usize>) -> bool {
        let _ = bytes;
        false
    }
}

/// Why there is no memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The system has none to give.
    #[error("the system does not give {bytes} of memory")]
    Refused {
        /// How many bytes were asked for.
        bytes: Bytes,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A limit is reached.
    #[error("{bytes} of memory are asked for, {free} are free below the limit of {limit}")]
    Limit {
        /// How many bytes were asked for.
        bytes: Bytes,
        /// How many may still be given out.
        free: Bytes,
        /// How many may be given out altogether.
        limit: Bytes,
    },
    /// No address space has room for so many.
    #[error("{bytes} of memory do not fit into an address space")]
    TooLarge {
        /// How many bytes were asked for.
        bytes: Bytes,
    },
    /// The memory is another processor's.
    #[error("the memory has no bytes that this processor could touch")]
    NotHost,
}

/// Memory of this processor, mapped from the system: it becomes resident page by page as it is touched.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostMemory {
    /// Ask for huge pages: fewer misses of address translation, memory in steps of 2 MiB. A wish, not a demand.
    pub huge_pages: bool,
}

impl Memory for HostMemory {
    fn reserve(&mut self, bytes: Bytes, align: Align) -> Result<Box<dyn Block>, MemoryError> {
        let too_large = || MemoryError::TooLarge { bytes };
        // A page is aligned enough for most; for more, some bytes before the block go unused.
        let spare = if align.bytes() > PAGE { align.bytes() } else { Bytes::ZERO };
        let total = bytes.checked_add(spare).ok_or_else(too_large)?;
        let [len, total] = [bytes, total].map(|bytes| usize::try_from(bytes.0));
        let (len, total) = (len.map_err(|_| too_large())?, total.map_err(|_| too_large())?);
        let map = MmapOptions::new().len(total.max(1)).map_anon();
        let map = map.map_err(|source| MemoryError::Refused { bytes, source })?;
        #[cfg(target_os = "linux")]
        if self.huge_pages {
            // Without them everything works, a little slower.
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        let align = usize::try_from(align.bytes().0).map_err(|_| too_large())?;
        let start = map.as_ptr().align_offset(align);
        Ok(Box::new(Mapped { map, start, len, has_huge_pages: self.huge_pages }))
    }
}

#[derive(Debug)]
struct Mapped {
    map: MmapMut,
    start: usize,
    len: usize,
    /// Then memory comes in larger pieces, which are not broken up.
    has_huge_pages: bool,
}

impl Block for Mapped {
    fn address(&self) -> u64 {
        self.map[self.start..].as_ptr() as u64
    }

    fn host(&self) -> Option<&[u8]> {
        Some(&self.map[self.start..self.start + self.len])
    }

    fn host_mut(&mut self) -> Option<&mut [u8]> {
        Some(&mut self.map[self.start..self.start + self.len])
    }

    // Elsewhere pages may be larger: what lies beside would be lost.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[expect(unsafe_code, reason = "pages of one's own map are given back")]
    fn give_back(&mut self, bytes: Range<usize>) -> bool {
        let is_whole =
            [bytes.start, bytes.end].iter().all(|at| (self.start + at).is_multiple_of(4096));
        if self.has_huge_pages || !is_whole || bytes.start > bytes.end || bytes.end > self.len {
            return false;
        }
        let (start, advice) = (self.start + bytes.start, memmap2::UncheckedAdvice::DontNeed);
        // SAFETY: the range is of whole pages of this anonymous map, which is borrowed for writing: for whoever reads it next this
        // is as if zeros had been written. Whoever reaches other bytes of it by their address is not concerned.
        unsafe { self.map.unchecked_advise_range(advice, start, bytes.len()) }.is_ok()
    }
}

/// Memory of which only so much is given out in its whole life: for one session, which asks once.
#[derive(Debug)]
pub struct LimitedMemory<M> {
    inner: M,
    limit: Bytes,
    used: Bytes,
}

impl<M: Memory> LimitedMemory<M> {
    /// At most `limit` bytes of another memory.
    pub fn new(inner: M, limit: Bytes) -> Self {
        Self { inner, limit, used: Bytes::ZERO }
    }
}

impl<M: Memory> Memory for LimitedMemory<M> {
    fn reserve(&mut self, bytes: Bytes, align: Align) -> Result<Box<dyn Block>, MemoryError> {
        let free = self.limit.saturating_sub(self.used);
        if bytes > free {
            return Err(MemoryError::Limit { bytes, free, limit: self.limit });
        }
        let block = self.inner.reserve(bytes, align)?;
        self.used = Bytes(self.used.0 + bytes.0);
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserve(bytes: u64, align: u64) -> Box<dyn Block> {
        let align = Align::new(align).unwrap();
        HostMemory::default().reserve(Bytes(bytes), align).unwrap()
    }

    #[test]
    fn blocks_are_aligned_zero_and_as_long_as_asked_for() {
        for (bytes, align) in [(0, 1), (100, 64), (5000, 4096), (3, 2 << 20)] {
            let mut block = reserve(bytes, align);
            assert_eq!(block.address() % align, 0);
            assert!(block.host().unwrap().iter().all(|&byte| byte == 0));
            assert_eq!(block.host_mut().unwrap().len() as u64, bytes);
        }
    }

    #[test]
    fn what_no_machine_has_is_refused() {
        let error = HostMemory::default().reserve(Bytes(1 << 61), Align::CACHE_LINE).unwrap_err();
        assert_eq!(error.to_string(), "the system does not give 2.00 EiB of memory");
    }

    #[test]
    fn a_limit_says_what_is_free() {
        let mut memory = LimitedMemory::new(HostMemory { huge_pages: true }, Bytes(4096));
        let block = memory.reserve(Bytes(4000), Align::CACHE_LINE).unwrap();
        assert_eq!(block.host().unwrap().len(), 4000);
        let error = memory.reserve(Bytes(200), Align::CACHE_LINE).unwrap_err().to_string();
        assert_eq!(
            error,
            "200 B of memory are asked for, 96 B are free below the limit of 4.00 KiB"
        );
    }
}
