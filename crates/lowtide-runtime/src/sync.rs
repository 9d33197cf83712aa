//! What threads meet at: the standard library's, or those of a model checker that tries all ways in which threads can
//! interleave (`--cfg loom`, see `docs/threads.md`).

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU32, Ordering},
};
#[cfg(not(loom))]
pub(crate) use parking_lot::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Waits for a lock. `parking_lot`'s are compiled with us, so that a sanitizer sees what they order, which it does not of the
/// standard library's; and who panics with one leaves it usable.
#[cfg(not(loom))]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Locks that are held for some tens of nanoseconds: with more threads than processors the standard library's wake those who
/// wait twenty times as soon (`cargo xtask bench pool`). Not where a sanitizer or a model checker looks on.
#[cfg(not(any(loom, tsan)))]
pub(crate) mod brief {
    use std::sync::PoisonError;
    pub(crate) use std::sync::{Mutex, MutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(any(loom, tsan))]
pub(crate) mod brief {
    pub(crate) use super::{Mutex, MutexGuard, lock};
}

#[cfg(loom)]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no model panics with a lock")
}
