//! What threads meet at: the standard library's, or those of a model checker that tries all ways in which threads can
//! interleave (`--cfg loom`, see `docs/threads.md`).

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU32, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU32, Ordering},
};
