//! [`SharedArena`]: memory for several sessions that run one after the other.
//!
//! ~~~text
//! session a  3 MiB ─┐
//! session b  5 MiB ─┼─> one block of 5 MiB      a.run_in(&mut arena, ..)  b.run_in(&mut arena, ..)
//! session c  4 MiB ─┘                           the largest, not the sum; borrowed for as long as outputs are read
//! ~~~

use crate::arena::Arena;
use crate::memory::{Memory, MemoryError};
use crate::{RunError, Session};
use lowtide_core::{Align, Bytes};

/// One block of memory, lent to one session after the other.
#[derive(Debug)]
pub struct SharedArena {
    arena: Arena,
    bytes: Bytes,
    align: Align,
}

impl SharedArena {
    /// Memory of so many bytes, whose address is a multiple of `align`.
    pub fn new(memory: &mut dyn Memory, bytes: Bytes, align: Align) -> Result<Self, MemoryError> {
        Ok(Self { arena: Arena::new(memory, bytes, align)?, bytes, align })
    }

    /// Memory that is enough for each of these sessions.
    pub fn for_sessions<'s>(
        memory: &mut dyn Memory,
        sessions: impl IntoIterator<Item = &'s Session>,
    ) -> Result<Self, MemoryError> {
        let (mut bytes, mut align) = (Bytes::ZERO, Align::ONE);
        for session in sessions {
            let wanted = session.arena_wanted();
            (bytes, align) = (bytes.max(wanted.0), align.max(wanted.1));
        }
        Self::new(memory, bytes, align)
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub(crate) fn for_run(&mut self, wanted: Bytes, align: Align) -> Result<&mut Arena, RunError> {
        if wanted > self.bytes || align > self.align {
            return Err(RunError::SmallArena { found: self.bytes, wanted, align });
        }
        Ok(&mut self.arena)
    }
}
