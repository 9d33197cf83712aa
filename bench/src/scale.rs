//! Large seeded graphs: time of planning with the base rule and of checking, and the memory of the process.

use lowtide::core::testing::large_graph;
use lowtide::planner::OrderRule;
use lowtide::{PlanConfig, check, plan};
use std::time::Instant;

/// The same graphs for everybody.
const SEED: u64 = 1;

/// Prints a row a size; `false` if a plan is wrong.
pub fn run(sizes: &[String]) -> anyhow::Result<bool> {
    let sizes = match sizes {
        [] => vec![2_000, 10_000, 100_000, 1_000_000],
        sizes => sizes.iter().map(|size| size.parse()).collect::<Result<Vec<usize>, _>>()?,
    };
    println!(
        "| operators | rule | arena MiB | bound MiB | plan s | us per operator | check s | right | peak memory MiB |"
    );
    println!("|--:|---|{}", "--:|".repeat(7));
    let mut all_right = true;
    for size in sizes {
        let graph = large_graph(size, SEED);
        for (name, order) in [("score", OrderRule::Score), ("rules", OrderRule::Rules)] {
            let config = PlanConfig { order, ..PlanConfig::default() };
            let start = Instant::now();
            let planned = plan(&graph, &config)?;
            let planning = start.elapsed().as_secs_f64();
            let (arena, bound) = (planned.plan.stats.arena_bytes, planned.plan.order_bound.bytes);
            let start = Instant::now();
            let is_right = check(&graph, planned.plan).is_ok();
            let checking = start.elapsed().as_secs_f64();
            all_right &= is_right;
            println!(
                "| {} | {name} | {:.2} | {:.2} | {planning:.4} | {:.2} | {checking:.4} | {is_right} | {} |",
                graph.ops().len(),
                mib(arena.0),
                mib(bound.0),
                planning * 1e6 / graph.ops().len() as f64,
                peak_memory().map_or("?".to_owned(), |bytes| format!("{:.0}", mib(bytes)))
            );
        }
    }
    Ok(all_right)
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The most memory that this process has had resident, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
