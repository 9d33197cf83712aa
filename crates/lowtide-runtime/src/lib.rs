//! Runs a graph by its plan: one arena, the events followed mechanically.
//!
//! ~~~text
//! Program (graph, kernels, weights) ─┐
//!                                    ├─ Session::new ─> Session ── run(inputs) ──> outputs, borrowed from the arena
//! CheckedPlan (events, offsets) ─────┘                     │
//!                       one block of memory behind `Memory`┘
//! ~~~
//! The runtime decides nothing about memory: where an operand lies was planned, and is bound once. A run follows the
//! events: ALLOC costs nothing, EXEC calls a kernel on ranges of the arena that are proven disjoint or identical, FREE
//! poisons in guard mode. In the steady state nothing is allocated.
//!
//! | file | what becomes what |
//! |---|---|
//! | `memory` | a number of bytes to a block of memory |
//! | `bind` | program and plan to ranges of bytes for every operand of every run |
//! | `arena` | such ranges to slices: the only unsafe code |
//! | `session` | inputs to outputs |
//! | `doctor` | a plan that nobody has judged, and safe mode, to the first tensor that differs and who is to blame |
//! | `redzone` | a plan to the bytes that nobody holds, in which a wrong write shows |
//! | `history` | writes to what a block held lately |

#[cfg(target_endian = "big")]
compile_error!("weights and arrays are read as they lie in files: least significant byte first");

mod arena;
mod bind;
mod blame;
mod diagnosis;
mod doctor;
mod guard;
mod history;
mod lives;
mod marks;
mod meaning;
mod memory;
mod probe;
#[cfg_attr(not(test), expect(dead_code, reason = "sessions do not look at zones yet"))]
mod redzone;
mod report;
pub mod resident;
mod session;
mod tensor;
#[cfg(test)]
mod testing;
mod weights;

pub use diagnosis::{Cause, Diagnosis, Difference, Finding, Stay, Use};
pub use doctor::{DoctorError, diagnose, input_specs};
pub use history::{History, Recorded};
pub use meaning::NoMeaning;
pub use memory::{Block, HostMemory, LimitedMemory, Memory, MemoryError};
pub use session::{MemoryUse, Outputs, RunError, Session, SessionConfig, SessionError};
pub use tensor::{TensorError, TensorRef, TensorSpec};
