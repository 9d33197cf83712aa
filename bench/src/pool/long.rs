//! A million blocks of mixed sizes on eight threads, some of which give back what others took.
//!
//! ~~~text
//! thread 3   take ── give one of its own, or leave it and give what another left ── take ── ...    in tenths: waste, held, p99
//! ~~~
//! Between two tenths all stand still, as at a COMPACT of a plan, and the pool may move its blocks together.

use super::rivals::{Buddy, Global, Source, locked};
use super::traces::{below, tensor_bytes};
use super::{BUDDY, median, pool, pool_of};
use lowtide::core::Bytes;
use lowtide::runtime::{Pool, PoolConfig, PoolStats};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const THREADS: usize = 8;
const TAKEN: usize = 1_000_000;
const TENTHS: usize = 10;
/// Blocks that a thread holds at most.
const LIVE: usize = 100;
const MOST: usize = 1 << 22;

/// What internal and external waste may be at most: inside of blocks as a part of them, and of what is held at most as a part
/// of that, beyond what was in use at most.
const INTERNAL: f64 = 0.15;
const EXTERNAL: f64 = 0.1;

/// Prints the table; false if the pool wastes more than it may, or has grown in its second half.
pub fn run() -> bool {
    println!(
        "{TAKEN} blocks of 256 B to {} MiB on {THREADS} threads, an eighth given back by another one\n",
        MOST >> 20
    );
    let mut is_fine = true;
    for compacts in [false, true] {
        let (rows, times) = table(compacts);
        let last = &rows[TENTHS - 1];
        let waste = 1.0 - part(last.peak_taken, last.peak_held);
        let internal = median(rows.iter().map(internal).collect());
        let is_flat = last.peak_held == rows[TENTHS / 2].peak_held;
        println!(
            "\nheld at most {:.1} MiB, {:.1} % of it beyond what was taken at most; internal waste {:.1} %; p99 {} ns in the first tenth, {} ns in the last; grown in the second half: {}\n",
            mib(last.peak_held),
            waste * 100.0,
            internal * 100.0,
            times[0][1],
            times[TENTHS - 1][1],
            !is_flat
        );
        is_fine &= internal <= INTERNAL && waste <= EXTERNAL && is_flat;
    }
    written();
    let mut buddy = Buddy::new(BUDDY);
    let mut inside = Vec::new();
    let buddies = churn(&mut buddy, false, |buddy, _| {
        let (asked, used) = buddy.use_now();
        inside.push(1.0 - asked as f64 / used as f64);
    });
    println!("internal waste of a buddy allocator: {:.1} %", median(inside) * 100.0);
    for (name, times) in [
        ("buddy", buddies),
        ("mimalloc", churn(&mut Global(mimalloc::MiMalloc), false, |_, _| {})),
        ("jemalloc", churn(&mut Global(tikv_jemallocator::Jemalloc), false, |_, _| {})),
        ("glibc", churn(&mut Global(std::alloc::System), false, |_, _| {})),
    ] {
        println!(
            "{name}: p99 {} ns in the first tenth, {} ns in the last",
            times[0][1],
            times[TENTHS - 1][1]
        );
    }
    is_fine
}

/// The same with a byte of each page written, where pages that were given back have to be had again; and where none is given
/// back.
fn written() {
    println!(
        "| each page written | held at most MiB | beyond taken | given back MiB | in ms | p99 ns |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    for _ in 0..3 {
        for idle_percent in [8, 100] {
            let config = PoolConfig { idle_percent, ..PoolConfig::default() };
            let mut pool = pool_of(THREADS, config);
            let start = Instant::now();
            let times = churn(&mut pool, true, |_, _| {});
            let (time, stats) = (start.elapsed(), pool.stats());
            println!(
                "| idle_percent {idle_percent} | {:.1} | {:.1} % | {:.1} | {:.0} | {} |",
                mib(stats.peak_held),
                (1.0 - part(stats.peak_taken, stats.peak_held)) * 100.0,
                mib(stats.discarded),
                time.as_secs_f64() * 1e3,
                times[TENTHS - 1][1]
            );
        }
    }
    println!();
}

/// What the pool holds after each tenth, and the times of each.
fn table(compacts: bool) -> (Vec<PoolStats>, Vec<[u64; 2]>) {
    println!(
        "| tenth | held MiB | used MiB | internal waste | free of what is held | p50 ns | p99 ns | moved MiB | in ms |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut pool = pool(THREADS);
    let mut rows: Vec<PoolStats> = Vec::new();
    let times = churn(&mut pool, false, |pool, times| {
        let stats = pool.stats();
        let (moved, time) = if compacts { compact(pool) } else { Default::default() };
        println!(
            "| {} | {:.1} | {:.1} | {:.1} % | {:.1} % | {} | {} | {:.1} | {:.1} |",
            rows.len() + 1,
            mib(stats.held),
            mib(stats.used),
            internal(&stats) * 100.0,
            part(stats.external_waste(), stats.held) * 100.0,
            times[0],
            times[1],
            mib(moved),
            time.as_secs_f64() * 1e3
        );
        rows.push(stats);
    });
    (rows, times)
}

fn compact(pool: &mut Pool) -> (Bytes, Duration) {
    let start = Instant::now();
    let done = pool.compact().unwrap_or_default();
    (done.moved, start.elapsed())
}

fn mib(bytes: Bytes) -> f64 {
    bytes.0 as f64 / f64::from(1 << 20)
}

fn part(some: Bytes, of: Bytes) -> f64 {
    some.0 as f64 / of.0 as f64
}

fn internal(stats: &PoolStats) -> f64 {
    part(stats.internal_waste(), stats.used)
}

/// Takes and gives back; after each tenth `look` is told p50 and p99 in nanoseconds, while all stand still and hold what they
/// hold. All of these.
fn churn<S: Source>(
    source: &mut S,
    touches: bool,
    mut look: impl FnMut(&mut S, [u64; 2]),
) -> Vec<[u64; 2]> {
    let left: Vec<Mutex<Option<S::Block>>> = (0..THREADS).map(|_| Mutex::default()).collect();
    let mut threads: Vec<Thread<S::Block>> =
        (0..THREADS).map(|worker| Thread::new(worker, touches)).collect();
    let mut all = Vec::new();
    for _ in 0..TENTHS {
        let shared = &*source;
        let times = std::thread::scope(|scope| {
            let work = |thread| scope.spawn(|| Thread::tenth(thread, shared, &left));
            let running: Vec<_> = threads.iter_mut().map(work).collect();
            running.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<_>>()
        });
        let mut times = times.concat();
        times.sort_unstable();
        let found = [times[times.len() / 2], times[times.len() * 99 / 100]];
        look(source, found);
        all.push(found);
    }
    let left = left.into_iter().filter_map(|left| left.into_inner().unwrap_or_default());
    for block in threads.into_iter().flat_map(|thread| thread.held).chain(left) {
        source.give(0, block);
    }
    all
}

struct Thread<B> {
    worker: usize,
    touches: bool,
    state: u64,
    held: Vec<B>,
}

impl<B: Send> Thread<B> {
    fn new(worker: usize, touches: bool) -> Self {
        Self { worker, touches, state: worker as u64, held: Vec::new() }
    }

    /// A tenth of this thread's blocks; nanoseconds of each pair.
    fn tenth<S: Source<Block = B>>(&mut self, source: &S, left: &[Mutex<Option<B>>]) -> Vec<u64> {
        (0..TAKEN / TENTHS / THREADS).map(|_| self.pair(source, left)).collect()
    }

    fn pair<S: Source<Block = B>>(&mut self, source: &S, left: &[Mutex<Option<B>>]) -> u64 {
        let bytes = tensor_bytes(&mut self.state, MOST);
        let is_full = self.held.len() == LIVE;
        let mut old = is_full.then(|| self.held.swap_remove(below(&mut self.state, LIVE)));
        if below(&mut self.state, 8) == 0 {
            let at = below(&mut self.state, THREADS);
            old = old.and_then(|old| locked(&left[at]).replace(old));
        }
        let start = Instant::now();
        if let Some(old) = old {
            source.give(self.worker, old);
        }
        let mut new = source.take(self.worker, bytes);
        if let Some(block) = new.as_mut().filter(|_| self.touches) {
            source.touch(block);
        }
        let time = start.elapsed();
        self.held.extend(new);
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }
}
