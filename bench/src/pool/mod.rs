//! The pool beside allocators of others, on traces of tensors; and over a long time.
//!
//! ~~~text
//! traces of models, random ones ──each allocator, 1, 2, 8 threads──> ns a pair, times of mimalloc's; with pages touched, too
//! a million random blocks on 8 threads, some given back by others ──> waste inside and between blocks, growth, p99
//! ~~~

mod long;
mod rivals;
mod traces;

use lowtide::runtime::{HostMemory, Pool, PoolConfig};
use rivals::{Buddy, Global, OneLock, Source};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use traces::{Step, Trace};

const ROUNDS: usize = 9;
const THREADS: [usize; 3] = [1, 2, 8];
/// Pairs that a thread does in a round at least.
const PAIRS: usize = 20_000;
/// What the buddies share.
const BUDDY: usize = 8 << 30;

/// Prints the tables; false if the pool is slower than mimalloc on any trace of tensors, or wastes more than it may.
pub fn run(models: &[String]) -> anyhow::Result<bool> {
    let mut all = Vec::new();
    for model in models {
        all.push(traces::recorded(Path::new(model))?);
    }
    all.extend([1 << 16, 1 << 20, 1 << 22].map(|most| traces::random(PAIRS, most, 7)));
    let mut is_fast = true;
    for touches in [false, true] {
        let what = if touches { "with a byte of each page written" } else { "nothing written" };
        println!(
            "ns of wall time a pair of a block taken and given back, {what}; in brackets times of mimalloc's\n"
        );
        println!("| trace | threads | pool | mimalloc | jemalloc | glibc | buddy | one lock |");
        println!("|---|--:|--:|--:|--:|--:|--:|--:|");
        for trace in &all {
            for threads in THREADS {
                let ratio = row(trace, threads, touches);
                is_fast &= touches || ratio <= 1.0;
            }
        }
        println!();
    }
    Ok(long::run() & is_fast)
}

pub fn pool(workers: usize) -> Pool {
    pool_of(workers, PoolConfig::default())
}

pub fn pool_of(workers: usize, config: PoolConfig) -> Pool {
    let workers = NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN);
    let config = PoolConfig { workers, ..config };
    Pool::new(&config, Box::new(HostMemory::default()))
}

/// One row: times of the pool's over mimalloc's.
fn row(trace: &Trace, threads: usize, touches: bool) -> f64 {
    let pool = pool(threads);
    let buddy = Buddy::new(BUDDY);
    let one_lock = OneLock::default();
    let [mimalloc, jemalloc, glibc] = [
        &Global(mimalloc::MiMalloc) as &dyn Timed,
        &Global(tikv_jemallocator::Jemalloc),
        &Global(std::alloc::System),
    ];
    let sources: [&dyn Timed; 6] = [&pool, mimalloc, jemalloc, glibc, &buddy, &one_lock];
    let mut times = vec![Vec::new(); sources.len()];
    for round in 0..=ROUNDS {
        for (source, times) in sources.iter().zip(&mut times) {
            let time = source.time(trace, threads, touches);
            if round > 0 {
                times.push(time);
            }
        }
    }
    let ratio = |at: usize| median(times[at].iter().zip(&times[1]).map(|(a, b)| a / b).collect());
    let cells: Vec<String> = (0..sources.len())
        .map(|at| format!("{:.0} ({:.2})", median(times[at].clone()), ratio(at)))
        .collect();
    println!("| {} | {threads} | {} |", trace.name, cells.join(" | "));
    ratio(0)
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A source whose kind of block does not matter.
trait Timed {
    /// Nanoseconds of wall time a pair.
    fn time(&self, trace: &Trace, threads: usize, touches: bool) -> f64;
}

impl<S: Source> Timed for S {
    fn time(&self, trace: &Trace, threads: usize, touches: bool) -> f64 {
        let times = PAIRS.div_ceil(trace.pairs());
        let barrier = Barrier::new(threads);
        let work = &|worker: usize| {
            barrier.wait();
            let start = Instant::now();
            for _ in 0..times {
                replay(self, trace, worker, touches);
            }
            (start, Instant::now())
        };
        let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..threads).map(|worker| scope.spawn(move || work(worker))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        let start = spans.iter().map(|span| span.0).min();
        let end = spans.iter().map(|span| span.1).max();
        let elapsed = start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start);
        elapsed.as_secs_f64() * 1e9 / (threads * times * trace.pairs()) as f64
    }
}

fn replay<S: Source + ?Sized>(source: &S, trace: &Trace, worker: usize, touches: bool) {
    let mut held: Vec<Option<S::Block>> = (0..trace.slots).map(|_| None).collect();
    for &step in &trace.steps {
        match step {
            Step::Take { slot, bytes } => {
                let mut block = source.take(worker, bytes);
                if let Some(block) = block.as_mut().filter(|_| touches) {
                    source.touch(block);
                }
                held[slot as usize] = block;
            }
            Step::Give { slot } => {
                if let Some(block) = held[slot as usize].take() {
                    source.give(worker, block);
                }
            }
        }
    }
}
