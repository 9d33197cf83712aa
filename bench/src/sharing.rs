//! What sharing saves: the arena with views alone, and with outputs written over inputs.

use crate::corpus::{kib, load_bound, models_below, short_name};
use crate::order::{geometric_mean, ratio};
use lowtide::core::Bytes;
use lowtide::core::testing::structured_nets;
use lowtide::{Graph, PlanConfig, plan};

/// One way to share more than the row before.
struct Level {
    name: &'static str,
    config: fn() -> PlanConfig,
}

/// Each level allows more than the one before; a switch of the planner gets its level here.
const LEVELS: [Level; 3] = [
    Level {
        name: "views",
        config: || PlanConfig { in_place: false, parts: false, ..PlanConfig::default() },
    },
    Level { name: "in place", config: || PlanConfig { parts: false, ..PlanConfig::default() } },
    Level { name: "parts and pieces", config: PlanConfig::default },
];

/// Prints the table; `false` if more sharing makes an arena larger.
pub fn run(dirs: &[String]) -> anyhow::Result<bool> {
    let names: Vec<&str> = LEVELS.iter().map(|level| level.name).collect();
    println!("Arena in KiB; behind it, how many times as large views alone are.\n");
    println!("| graph | ops | {} |", names.join(" | | "));
    println!("|---|{}", "--:|".repeat(2 * LEVELS.len()));
    let mut rows = Vec::new();
    for path in models_below(dirs)? {
        let (loaded, bound) = load_bound(&path)?;
        rows.push(row(&(short_name(&path) + &bound), &loaded.graph)?);
    }
    for graph in structured_nets() {
        rows.push(row(graph.name(), &graph)?);
    }
    summary(&rows);
    Ok(rows.iter().all(|row| row.is_sorted_by(|more, less| more >= less)))
}

/// Arenas by level.
fn row(name: &str, graph: &Graph) -> anyhow::Result<Vec<Bytes>> {
    let mut arenas = Vec::new();
    for level in &LEVELS {
        arenas.push(plan(graph, &(level.config)())?.plan.stats.arena_bytes);
    }
    let gains = arenas[1..]
        .iter()
        .map(|&arena| format!(" | {} | {:.3}", kib(arena), ratio(arenas[0], arena)));
    println!(
        "| {name} | {} | {}{} |",
        graph.ops().len(),
        kib(arenas[0]),
        gains.collect::<String>()
    );
    Ok(arenas)
}

fn summary(rows: &[Vec<Bytes>]) {
    println!("\n| level | geometric mean of views / level | most | smaller in |");
    println!("|---|{}", "--:|".repeat(3));
    for (index, level) in LEVELS.iter().enumerate().skip(1) {
        let ratios: Vec<f64> = rows.iter().map(|row| ratio(row[0], row[index])).collect();
        println!(
            "| {} | {:.4} | {:.3} | {} of {} |",
            level.name,
            geometric_mean(&ratios),
            ratios.iter().copied().fold(f64::MIN, f64::max),
            ratios.iter().filter(|&&ratio| ratio > 1.0).count(),
            rows.len()
        );
    }
}
