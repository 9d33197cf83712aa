//! [`Pooled`]: where the tensors of a run are that no plan places: each in a block of the pool, from its writer to its last
//! user.
//!
//! ~~~text
//! run f  lease ── kernel writes ── publish ──> place 0 ── run g reads ┬ the last of those that use it: back to the pool
//!                  only f has it               anybody reads          └ run h reads
//! ~~~
//! A block belongs to one worker until it is published; from then on it is only read, by as many as share it. Each run
//! counts down what it uses when it is over, as in [`Cells`](crate::cells::Cells): data order readers behind writers, and
//! the count orders the last one behind all others, so its share is the only one left. What holds an output of the graph is
//! not counted: it stays until the next run. Blocks of one run are all found or none, one run at a time: what one holds in
//! vain keeps no other from its memory. Blocks are
//! moved together only when no run has a slice of one: each keeps them still while it has. Cost: a lock and a count for each
//! operand.

#![expect(
    unsafe_code,
    reason = "blocks are moved while no run has a slice of one: they keep them still"
)]

use crate::guard;
use crate::pool::{Pool, PoolBlock, PoolError, PoolStats};
use lowtide_core::{Bytes, Id, Lists, RunId};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What is held of a pool.
#[derive(Debug, Default)]
struct Held {
    blocks: AtomicUsize,
    bytes: AtomicU64,
    most: AtomicU64,
}

/// A block that is only read.
#[derive(Debug)]
pub(crate) struct Stored {
    block: PoolBlock,
    len: usize,
}

/// Blocks that were moved together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compactions {
    /// How often.
    pub count: u64,
    /// Bytes that were moved.
    pub moved: Bytes,
    /// How long that took, looking whether it was worth it included.
    pub time: Duration,
}

#[derive(Debug)]
pub(crate) struct Pooled {
    pool: Pool,
    places: Vec<Mutex<Option<Arc<Stored>>>>,
    /// Read by whoever has slices of blocks, written by who moves them.
    still: RwLock<()>,
    compactions: Mutex<Compactions>,
    /// The places that each run uses, without those that are kept.
    of_run: Lists<RunId, u32>,
    /// How many runs use each place, and how many of them are not over.
    users: Vec<u32>,
    left: Vec<AtomicU32>,
    /// Held by the run that is finding its blocks.
    admission: Mutex<()>,
    held: Held,
    /// Whether what is fresh or freed is poisoned.
    is_guarded: bool,
}

impl Pooled {
    /// For so many places, of which each run uses some; these are freed with their last user.
    pub(crate) fn new(
        pool: Pool,
        places: usize,
        of_run: Lists<RunId, u32>,
        is_guarded: bool,
    ) -> Self {
        let mut users = vec![0; places];
        for run in (0..of_run.len()).map(RunId::from_index) {
            of_run[run].iter().for_each(|&place| users[place as usize] += 1);
        }
        Self {
            pool,
            places: (0..places).map(|_| Mutex::new(None)).collect(),
            still: RwLock::new(()),
            compactions: Mutex::default(),
            of_run,
            left: users.iter().map(|_| AtomicU32::new(0)).collect(),
            users,
            admission: Mutex::new(()),
            held: Held::default(),
            is_guarded,
        }
    }

    /// Begins anew, with all places empty. Nobody else uses it now.
    pub(crate) fn start(&self) {
        self.clear();
        self.held.most.store(0, Ordering::Relaxed);
        for (left, &users) in self.left.iter().zip(&self.users) {
            left.store(users, Ordering::Relaxed);
        }
    }

    /// Until this is dropped no block is moved.
    pub(crate) fn keep_still(&self) -> RwLockReadGuard<'_, ()> {
        self.still.read()
    }

    /// [`Pooled::compact`] if the pool finds it worth it.
    pub(crate) fn compact_if_worth(&self) {
        self.compact(self.pool.config().scattered);
    }

    /// Waits until nobody has a slice of a block, and moves blocks together if more than so many percent of the memory are
    /// scattered; whether they were. The caller keeps nothing still.
    pub(crate) fn compact(&self, percent: u32) -> bool {
        let start = now();
        let _moving = self.still.write();
        // SAFETY: slices of blocks are made only by who keeps them still, or has the session by `&mut` between two runs; the
        // lock has seen all that the former wrote. Nobody does so now.
        let done = unsafe { self.pool.compact_shared(percent) };
        let mut all = self.compactions.lock();
        if let Some(done) = done {
            all.count += 1;
            all.moved += done.moved;
        }
        all.time += start.elapsed();
        done.is_some()
    }

    /// What moving blocks has done so far.
    pub(crate) fn compactions(&self) -> Compactions {
        *self.compactions.lock()
    }

    /// What the pool holds.
    pub(crate) fn stats(&self) -> PoolStats {
        self.pool.stats()
    }

    /// A run is over.
    pub(crate) fn end_run(&self) {
        self.pool.end_run();
    }

    /// Frees what the last run has left. Nobody else uses it now.
    pub(crate) fn clear(&self) {
        for place in 0..self.places.len() {
            self.empty(place, 0);
        }
    }

    /// The most bytes that were held at once since the start.
    pub(crate) fn peak(&self) -> Bytes {
        Bytes(self.held.most.load(Ordering::Relaxed))
    }

    /// How many blocks are held.
    pub(crate) fn blocks(&self) -> usize {
        self.held.blocks.load(Ordering::Relaxed)
    }

    /// Blocks of these sizes, all or none.
    pub(crate) fn lease(
        &self,
        worker: usize,
        sizes: &[usize],
    ) -> Result<Vec<Lease<'_>>, PoolError> {
        let _admission = self.admission.lock();
        sizes.iter().map(|&len| self.lease_one(worker, len)).collect()
    }

    fn lease_one(&self, worker: usize, len: usize) -> Result<Lease<'_>, PoolError> {
        // Also what is empty lies somewhere, so that it is aligned.
        let mut block = self.pool.alloc(worker, Bytes(len.max(1) as u64))?;
        if self.is_guarded {
            guard::fill(self.pool.bytes_mut(&mut block), 0);
        }
        self.held.blocks.fetch_add(1, Ordering::Relaxed);
        let bytes = self.held.bytes.fetch_add(len as u64, Ordering::Relaxed) + len as u64;
        self.held.most.fetch_max(bytes, Ordering::Relaxed);
        Ok(Lease { pooled: self, worker, stored: Some(Stored { block, len }) })
    }

    /// What lies at a place.
    ///
    /// # Panics
    /// If nothing was written there: a judged plan has its readers behind their writers.
    pub(crate) fn share(&self, place: usize) -> Arc<Stored> {
        let stored = self.places[place].lock().clone();
        stored.expect("the checker has shown that writers come before readers")
    }

    /// What a block holds.
    pub(crate) fn bytes<'a>(&'a self, stored: &'a Stored) -> &'a [u8] {
        &self.pool.bytes(&stored.block)[..stored.len]
    }

    /// Frees what `run` was the last to use; whether that was anything.
    pub(crate) fn finish(&self, run: RunId, worker: usize) -> bool {
        let mut any = false;
        for &place in &self.of_run[run] {
            let place = place as usize;
            if self.left[place].fetch_sub(1, Ordering::AcqRel) == 1 {
                any |= self.empty(place, worker);
            }
        }
        any
    }

    /// Frees what lies at a place; whether there was anything. Its other users are over.
    fn empty(&self, place: usize, worker: usize) -> bool {
        let Some(stored) = self.places[place].lock().take() else { return false };
        let stored = Arc::into_inner(stored).expect("all that share it are over");
        self.free(stored, worker);
        true
    }

    fn free(&self, mut stored: Stored, worker: usize) {
        if self.is_guarded {
            // Perhaps inside of a run that keeps them still already.
            let _still = self.still.read_recursive();
            guard::fill(self.pool.bytes_mut(&mut stored.block), 0);
        }
        self.held.blocks.fetch_sub(1, Ordering::Relaxed);
        self.held.bytes.fetch_sub(stored.len as u64, Ordering::Relaxed);
        self.pool.free(worker, stored.block);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long moving took is told; nothing is decided by it"
)]
fn now() -> Instant {
    Instant::now()
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A block that one worker has for itself. Freed when it is dropped, unless it was published.
pub(crate) struct Lease<'a> {
    pooled: &'a Pooled,
    worker: usize,
    stored: Option<Stored>,
}

impl Lease<'_> {
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let stored = self.stored.as_mut().expect("it is taken in the end only");
        &mut self.pooled.pool.bytes_mut(&mut stored.block)[..stored.len]
    }

    /// Puts the block where others read it.
    pub(crate) fn publish(mut self, place: usize) {
        let stored = self.stored.take().map(Arc::new);
        let before = std::mem::replace(&mut *self.pooled.places[place].lock(), stored);
        debug_assert!(before.is_none(), "a residence is written once");
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(stored) = self.stored.take() {
            self.pooled.free(stored, self.worker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::HostMemory;
    use crate::pool::PoolConfig;

    /// Two runs use place 0, the first also place 1; place 2 is kept.
    fn pooled(limit: u64) -> Pooled {
        let mut of_run = Lists::new();
        of_run.push([0, 1]);
        of_run.push([0]);
        let mut config = PoolConfig::default();
        config.limit = if limit > 0 { Bytes(limit) } else { config.limit };
        let pool = Pool::new(&config, Box::new(HostMemory::default()));
        let pooled = Pooled::new(pool, 3, of_run, true);
        pooled.start();
        pooled
    }

    fn put(pooled: &Pooled, place: usize, len: usize) {
        let mut leases = pooled.lease(0, &[len]).unwrap();
        leases.pop().unwrap().publish(place);
    }

    #[test]
    fn the_last_user_frees_and_what_is_kept_stays() {
        let pooled = pooled(0);
        for (place, len) in [(0, 100), (1, 0), (2, 28)] {
            put(&pooled, place, len);
        }
        assert_eq!((pooled.blocks(), pooled.peak()), (3, Bytes(128)));
        assert!(pooled.finish(RunId::new(0), 0));
        assert_eq!((pooled.blocks(), pooled.bytes(&pooled.share(0)).len()), (2, 100));
        assert!(pooled.finish(RunId::new(1), 0));
        assert_eq!(pooled.blocks(), 1);
        pooled.start();
        assert_eq!((pooled.blocks(), pooled.peak()), (0, Bytes(0)));
    }

    #[test]
    fn a_run_gets_all_its_blocks_or_none() {
        let pooled = pooled(4096);
        assert!(pooled.lease(0, &[2000, 3000]).is_err());
        assert_eq!(pooled.blocks(), 0);
        let mut leases = pooled.lease(0, &[2000, 2000]).unwrap();
        assert!(leases[0].bytes_mut().iter().enumerate().all(|(at, &b)| b == guard::poison_at(at)));
        drop(leases);
        assert_eq!(pooled.blocks(), 0);
    }

    #[test]
    fn empty_blocks_are_aligned() {
        let pooled = pooled(0);
        put(&pooled, 0, 0);
        assert!(bytemuck::try_cast_slice::<u8, f64>(pooled.bytes(&pooled.share(0))).is_ok());
    }
}
