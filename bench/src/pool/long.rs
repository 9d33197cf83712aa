//! A million blocks of mixed sizes on eight threads, some of which give back what others took.
//!
//! ~~~text
//! thread 3   take ── give one of its own, or leave it to thread 5 ── take ── ...       in tenths: waste, what is held, p99
//! ~~~

use super::rivals::{Buddy, Global, Source, locked};
use super::traces::{below, tensor_bytes};
use super::{BUDDY, pool};
use lowtide::core::Bytes;
use lowtide::runtime::PoolStats;
use std::sync::{Barrier, Mutex};
use std::time::Instant;

const THREADS: usize = 8;
const TAKEN: usize = 1_000_000;
const TENTHS: usize = 10;
/// Blocks that a thread holds at most.
const LIVE: usize = 100;
const MOST: usize = 1 << 22;

/// What internal and external waste may be at most, as parts of the blocks and of all.
const INTERNAL: f64 = 0.15;
const EXTERNAL: f64 = 0.1;

/// Prints the table; false if the pool wastes more than it may, or has grown after the first tenth.
pub fn run() -> bool {
    println!(
        "{TAKEN} blocks of 256 B to {} MiB on {THREADS} threads, an eighth given back by another one\n",
        MOST >> 20
    );
    println!("| tenth | held MiB | used MiB | internal waste | external waste | p50 ns | p99 ns |");
    println!("|--:|--:|--:|--:|--:|--:|--:|");
    let pool = pool(THREADS);
    let mut rows: Vec<PoolStats> = Vec::new();
    let times = churn(&pool, |times| {
        rows.push(pool.stats());
        let stats = &rows[rows.len() - 1];
        let mib = |bytes: Bytes| bytes.0 as f64 / f64::from(1 << 20);
        let (internal, external) = wastes(stats);
        println!(
            "| {} | {:.1} | {:.1} | {:.1} % | {:.1} % | {} | {} |",
            rows.len(),
            mib(stats.held),
            mib(stats.used),
            internal * 100.0,
            external * 100.0,
            times[0],
            times[1]
        );
    });
    let buddy = Buddy::new(BUDDY);
    let mut inside = Vec::new();
    let buddies = churn(&buddy, |_| {
        let (asked, used) = buddy.use_now();
        inside.push(1.0 - asked as f64 / used as f64);
    });
    println!("\ninternal waste of a buddy allocator: {:.1} %", super::median(inside) * 100.0);
    for (name, times) in [
        ("pool", times),
        ("buddy", buddies),
        ("mimalloc", churn(&Global(mimalloc::MiMalloc), |_| {})),
        ("glibc", churn(&Global(std::alloc::System), |_| {})),
    ] {
        println!(
            "{name}: p99 of the last tenth {} ns, of the first {} ns",
            times[TENTHS - 1][1],
            times[0][1]
        );
    }
    let (internal, external) = wastes(&rows[TENTHS - 1]);
    let is_flat = rows[TENTHS - 1].held.0 * 100 <= rows[0].held.0 * 105;
    internal <= INTERNAL && external <= EXTERNAL && is_flat
}

/// Internal waste as a part of the blocks, external as a part of what is held.
fn wastes(stats: &PoolStats) -> (f64, f64) {
    let part = |waste: Bytes, of: Bytes| waste.0 as f64 / of.0 as f64;
    (part(stats.internal_waste(), stats.used), part(stats.external_waste(), stats.held))
}

/// Takes and gives back; after each tenth `look` is told p50 and p99 in nanoseconds, while all stand still and hold what they
/// hold. All of these.
fn churn<S: Source>(source: &S, mut look: impl FnMut([u64; 2])) -> Vec<[u64; 2]> {
    let left: Vec<Mutex<Option<S::Block>>> = (0..THREADS).map(|_| Mutex::default()).collect();
    let barrier = Barrier::new(THREADS + 1);
    let times = Mutex::new(Vec::new());
    let mut all = Vec::new();
    std::thread::scope(|scope| {
        for worker in 0..THREADS {
            let (left, barrier, times) = (&left, &barrier, &times);
            scope.spawn(move || {
                let mut thread =
                    Thread { source, left, worker, state: worker as u64, held: Vec::new() };
                for _ in 0..TENTHS {
                    let mine = thread.tenth();
                    locked(times).extend(mine);
                    barrier.wait();
                    barrier.wait();
                }
                thread.end();
            });
        }
        for _ in 0..TENTHS {
            barrier.wait();
            let mut tenth = std::mem::take(&mut *locked(&times));
            tenth.sort_unstable();
            let found = [tenth[tenth.len() / 2], tenth[tenth.len() * 99 / 100]];
            look(found);
            all.push(found);
            barrier.wait();
        }
    });
    for block in left.into_iter().filter_map(|left| left.into_inner().unwrap_or_default()) {
        source.give(0, block);
    }
    all
}

struct Thread<'a, S: Source> {
    source: &'a S,
    /// What was left for whoever comes by.
    left: &'a [Mutex<Option<S::Block>>],
    worker: usize,
    state: u64,
    held: Vec<S::Block>,
}

impl<S: Source> Thread<'_, S> {
    /// A tenth of this thread's blocks; nanoseconds of each pair.
    fn tenth(&mut self) -> Vec<u64> {
        let count = TAKEN / TENTHS / THREADS;
        (0..count).map(|_| self.pair()).collect()
    }

    fn pair(&mut self) -> u64 {
        let bytes = tensor_bytes(&mut self.state, MOST);
        let is_full = self.held.len() == LIVE;
        let mut old = is_full.then(|| self.held.swap_remove(below(&mut self.state, LIVE)));
        if below(&mut self.state, 8) == 0 {
            let at = below(&mut self.state, THREADS);
            old = old.and_then(|old| locked(&self.left[at]).replace(old));
        }
        let start = Instant::now();
        if let Some(old) = old {
            self.source.give(self.worker, old);
        }
        let new = self.source.take(self.worker, bytes);
        let time = start.elapsed();
        self.held.extend(new);
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    fn end(self) {
        for block in self.held {
            self.source.give(self.worker, block);
        }
    }
}
