//! Runs a graph by its plan: one arena, the events followed mechanically.
//!
//! ~~~text
//! Program (graph, kernels, weights) ─┐
//!                                    ├─ Session::new ─> Session ── run(inputs) ──> outputs, borrowed from the arena
//! CheckedPlan (events, offsets) ─────┘                     │
//!                       one block of memory behind `Memory`┘
//! ~~~
//! The runtime decides nothing about memory: where an operand lies was planned, and is bound once. ALLOC costs nothing,
//! EXEC calls a kernel on ranges of the arena that are proven disjoint or identical, in guard mode what nobody uses any
//! more is poisoned. What has no size before the run lies in a pool, from its writer to its last reader, as the plan says
//! when. One worker follows the schedule; several begin whatever data and fences allow. In the steady state nothing is
//! allocated, unless a size is known in the run only.
//!
//! | file | what becomes what |
//! |---|---|
//! | `memory` | a number of bytes to a block of memory |
//! | `bind` | program and plan to ranges of bytes for every operand of every run |
//! | `arena` | such ranges to slices: unsafe, as are `pool/raw` and a call in `pooled` |
//! | `faulty` | for tests, requests to memory that is refused when it is told to be |
//! | `engine` | one run of an operator to a call of its kernel |
//! | `pool` | sizes that are known only when an operator runs to blocks of memory |
//! | `pool_places`, `pooled` | a plan to the runs that use each block, and blocks from their writer to their last reader |
//! | `late` | inputs of a run to the shapes of what an operator writes, to a call of its kernel |
//! | `handover` | what waits for what to what may begin |
//! | `workers` | a schedule, or what may begin, to calls on one thread or several |
//! | `cells` | in guard mode, runs that are over to bytes that are poisoned |
//! | `session`, `shared_arena` | inputs to outputs, in memory of its own or lent |
//! | `sessions` | calls from several threads to sessions |
//! | `redzone` | a plan to the bytes that nobody holds, in which a wrong write shows |
//! | `history` | what has run to what a block held lately |
//! | `doctor` | a plan that nobody has judged, and safe mode, to the first tensor that differs and who is to blame |

#[cfg(target_endian = "big")]
compile_error!("weights and arrays are read as they lie in files: least significant byte first");

mod arena;
mod bind;
mod blame;
mod cells;
mod diagnosis;
mod doctor;
mod engine;
mod faulty;
mod guard;
mod handover;
mod history;
mod late;
mod lives;
mod marks;
mod meaning;
mod memory;
mod pool;
mod pool_places;
mod pooled;
mod probe;
mod redzone;
mod report;
pub mod resident;
mod session;
mod sessions;
mod shared_arena;
mod sync;
mod tensor;
#[cfg(test)]
mod testing;
mod weights;
mod workers;

pub use diagnosis::{Cause, Diagnosis, Difference, Finding, Stay, Use};
pub use doctor::{DoctorError, diagnose, input_specs};
pub use faulty::{Fault, FaultyMemory, Given, Ledger};
pub use meaning::NoMeaning;
pub use memory::{Block, HostMemory, LimitedMemory, Memory, MemoryError};
pub use pool::{
    ClassStats, ClassesError, Compaction, Pool, PoolBlock, PoolConfig, PoolError, PoolStats,
    SizeClasses,
};
pub use pooled::Compactions;
pub use session::{Canceller, MemoryUse, Outputs, RunError, Session, SessionConfig, SessionError};
pub use sessions::Sessions;
pub use shared_arena::SharedArena;
pub use tensor::{TensorError, TensorRef, TensorSpec};
