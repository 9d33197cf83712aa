//! [`FaultyMemory`]: a small memory that refuses when it is told to, and counts what it has given out.
//!
//! ~~~text
//! call 0 ──> block        call 1 ──> refused, as by the system        call 2 ──> over the capacity: the limit is reached
//! ledger: calls, bytes out, blocks out ── also after the memory was given away
//! ~~~
//! For tests of whatever asks for memory: what fails has to leave everything usable, and nothing behind.

use crate::memory::{Block, Memory, MemoryError};
use lowtide_core::{Align, Bytes};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// As if the system refused to map memory.
    Refused,
    /// As if a limit were reached.
    Limit,
    /// The memory that is given is another processor's.
    NotHost,
}

/// What a memory has given out so far, and what is out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Calls, failed ones too.
    pub calls: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Blocks that were not given back.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

/// What a memory has given out, to be asked from outside.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Mutex<Given>>);

impl Ledger {
    /// What has been given out so far.
    pub fn given(&self) -> Given {
        *self.0.lock()
    }
}

/// Memory of the heap up to a capacity, of which some calls fail.
#[derive(Clone, Debug)]
pub struct FaultyMemory {
    capacity: Bytes,
    faults: BTreeMap<u64, Fault>,
    ledger: Ledger,
}

impl FaultyMemory {
    /// At most so many bytes at once.
    pub fn new(capacity: Bytes) -> Self {
        Self { capacity, faults: BTreeMap::new(), ledger: Ledger::default() }
    }

    /// The call of this number, the first is 0, fails.
    #[must_use]
    pub fn failing_at(mut self, call: u64, fault: Fault) -> Self {
        self.faults.insert(call, fault);
        self
    }

    /// What it gives out, also when others have it.
    pub fn ledger(&self) -> Ledger {
        self.ledger.clone()
    }
}

impl Memory for FaultyMemory {
    fn reserve(&mut self, bytes: Bytes, align: Align) -> Result<Box<dyn Block>, MemoryError> {
        let mut given = self.ledger.0.lock();
        let fault = self.faults.get(&given.calls).copied();
        let (limit, free) = (self.capacity, self.capacity.saturating_sub(given.bytes));
        given.calls += 1;
        given.failed += 1;
        let refused = io::Error::from(io::ErrorKind::OutOfMemory);
        match fault {
            Some(Fault::Refused) => return Err(MemoryError::Refused { bytes, source: refused }),
            Some(Fault::Limit) => return Err(MemoryError::Limit { bytes, free, limit }),
            Some(Fault::NotHost) | None => {}
        }
        if bytes > free {
            return Err(MemoryError::Limit { bytes, free, limit });
        }
        let too_large = |_| MemoryError::TooLarge { bytes };
        let len = usize::try_from(bytes.0).map_err(too_large)?;
        let align = usize::try_from(align.bytes().0).map_err(too_large)?;
        let spare = len.checked_add(align).ok_or(MemoryError::TooLarge { bytes })?;
        let memory = vec![0; spare];
        let start = memory.as_ptr().align_offset(align);
        given.failed -= 1;
        given.blocks += 1;
        given.bytes += bytes;
        let is_host = fault.is_none();
        Ok(Box::new(OnHeap { memory, start, len, is_host, ledger: self.ledger() }))
    }
}

#[derive(Debug)]
struct OnHeap {
    memory: Vec<u8>,
    start: usize,
    len: usize,
    is_host: bool,
    ledger: Ledger,
}

impl Block for OnHeap {
    fn address(&self) -> u64 {
        self.memory[self.start..].as_ptr() as u64
    }

    fn host(&self) -> Option<&[u8]> {
        self.is_host.then(|| &self.memory[self.start..self.start + self.len])
    }

    fn host_mut(&mut self) -> Option<&mut [u8]> {
        self.is_host.then(|| &mut self.memory[self.start..self.start + self.len])
    }
}

impl Drop for OnHeap {
    fn drop(&mut self) {
        let mut given = self.ledger.0.lock();
        given.blocks -= 1;
        given.bytes = given.bytes.saturating_sub(Bytes(self.len as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fails_when_it_is_told_to_and_counts() {
        let mut memory = FaultyMemory::new(Bytes(1000)).failing_at(1, Fault::Refused);
        let ledger = memory.ledger();
        let mut reserve = |bytes| memory.reserve(Bytes(bytes), Align::CACHE_LINE);
        let first = reserve(600).unwrap();
        assert_eq!((first.host().unwrap().len(), first.address() % 64), (600, 0));
        assert!(matches!(reserve(1), Err(MemoryError::Refused { .. })));
        let message = reserve(500).unwrap_err().to_string();
        let wanted = "500 B of memory are asked for, 400 B are free below the limit of 1000 B";
        assert_eq!(message, wanted);
        drop(first);
        let again = reserve(1000).unwrap();
        let given = Given { calls: 4, failed: 2, blocks: 1, bytes: Bytes(1000) };
        assert_eq!(ledger.given(), given);
        drop(again);
        assert_eq!(ledger.given().bytes, Bytes::ZERO);
    }
}
