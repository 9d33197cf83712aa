//! Figures of Lowtide, measured.
//!
//! ~~~text
//! corpus DIR...   plans and checks every model below: the table, and how the savings are distributed
//! order [DIR...]  our peak and its bound beside the orders of the peers: models, structured nets, large graphs
//! sharing [DIR...]  the arena with views alone, and with outputs over inputs: models, structured nets
//! pack FILE...    places problems in the MiniMalloc form, and cut ones of 10 k to 1 M buffers with a known optimum
//! problems OUT DIR...  writes the placement problems of all models below into a folder, and places them
//! scale [OPS...]  time and memory of planning and checking large seeded graphs
//! run MODEL...    runs models in every mode, guarded, and compares their bits; counts every byte that a run allocates
//! overhead        what the executor costs beside its kernels, on 1, 2 and 8 workers, and what a heap would cost there
//! pool MODEL...   the pool beside glibc, mimalloc, jemalloc, buddies and one lock: on traces of models and random ones
//! open MODEL...   models of open sizes from the pool, beside the same with their sizes bound
//! workers MODEL...  two workers against one and against two threads; all models in one shared arena
//! ~~~
//! Run with `cargo xtask bench ...`. Exit code 1 if a plan is wrong, worse than the file's order or than a peer's,
//! or larger with more sharing.

mod corpus;
mod heap;
mod open;
mod order;
mod overhead;
mod pack;
mod peers;
#[cfg(feature = "rivals")]
mod pool;
mod problems;
mod run;
mod scale;
mod sharing;
mod workers;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask bench corpus DIR... | order [DIR...] | sharing [DIR...] | pack FILE... | problems OUT DIR... | scale [OPS...] | run MODEL... | open MODEL... | workers MODEL... | overhead | pool MODEL...";

#[cfg(feature = "count")]
#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

#[cfg(all(feature = "mimalloc", not(any(feature = "count", feature = "rivals"))))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bytes that have been allocated; none without the feature that counts them, which costs a little each time.
fn allocated() -> Option<u64> {
    #[cfg(feature = "count")]
    return Some(ALLOCATOR.stats().bytes_allocated as u64);
    #[cfg(not(feature = "count"))]
    None
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.split_first() {
        Some((command, dirs)) if command == "corpus" && !dirs.is_empty() => corpus::run(dirs),
        Some((command, dirs)) if command == "order" => order::run(dirs),
        Some((command, dirs)) if command == "sharing" => sharing::run(dirs),
        Some((command, files)) if command == "pack" => pack::run(files),
        Some((command, dirs)) if command == "problems" => problems::run(dirs),
        Some((command, ops)) if command == "scale" => scale::run(ops),
        Some((command, models)) if command == "run" && !models.is_empty() => run::run(models),
        Some((command, models)) if command == "open" && !models.is_empty() => open::run(models),
        Some((command, [])) if command == "overhead" => overhead::run(),
        #[cfg(feature = "rivals")]
        Some((command, models)) if command == "pool" => pool::run(models),
        Some((command, models)) if command == "workers" && !models.is_empty() => {
            workers::run(models)
        }
        _ => Err(anyhow::anyhow!(USAGE)),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
