//! Placement problems, placed and checked: those of files with the default and the most effort, and cut ones whose
//! optimum is known: there the arena of the greedy rules alone stands beside it.

use anyhow::{Context, bail};
use lowtide::core::check::{check_bound, check_placement};
use lowtide::core::testing::{CutConfig, cut_problem};
use lowtide::core::{Bytes, Problem};
use lowtide::formats::read_problem;
use lowtide::planner::{Effort, pack, pack_by_rules};
use std::time::Instant;

/// Buffers of the cut problems.
const SIZES: [u64; 3] = [10_000, 100_000, 1_000_000];
/// How many pieces of a hundred a cut has lost.
const LOSSES: [u64; 2] = [5, 10];
/// Pairs that may be looked at for each buffer of a cut problem.
const STEPS_EACH: u64 = 7000;
/// The same for the greedy rules alone: one rule looks at a thousand or so.
const RULES_EACH: u64 = 1500;

/// Prints a row each; an error if a placement or its bound is wrong.
pub fn run(files: &[String]) -> anyhow::Result<bool> {
    println!(
        "| problem | buffers | lower bound | arena | arena / bound | greedy / bound | rule | proven | steps | seconds | peak MiB |"
    );
    println!("|---|{}", "--:|".repeat(10));
    for file in files {
        let bytes = std::fs::read(file).with_context(|| format!("cannot read {file}"))?;
        let problem = read_problem(&bytes).with_context(|| file.clone())?.pinned()?;
        let name = file.rsplit('/').next().unwrap_or(file);
        for effort in [Effort::Default, Effort::Max] {
            row(&format!("{name} {effort:?}"), &problem, effort.pack_steps(), None)?;
        }
    }
    for (items, loss) in SIZES.into_iter().flat_map(|items| LOSSES.map(|loss| (items, loss))) {
        let cut = cut_problem(11, CutConfig { items, loss, ..CutConfig::default() });
        let optimum = Some(cut.placement.size);
        row(&format!("cut {items}, {loss} %"), &cut.problem, items * STEPS_EACH, optimum)?;
    }
    Ok(true)
}

fn row(name: &str, problem: &Problem, steps: u64, optimum: Option<Bytes>) -> anyhow::Result<()> {
    let start = Instant::now();
    let packing = pack(problem, steps);
    let seconds = start.elapsed().as_secs_f64();
    if let Some(fault) = check_placement(problem, &packing.placement).first() {
        bail!("{name}: {fault}");
    }
    check_bound(problem, &packing.bound).with_context(|| name.to_owned())?;
    let (bound, arena) = (packing.bound.bytes, packing.placement.size);
    if let Some(optimum) = optimum.filter(|&optimum| bound > optimum || arena < optimum) {
        bail!("{name}: the optimum is {optimum}, the bound {bound}, the arena {arena}");
    }
    let peak = peak_mib();
    let greedy = optimum.map(|_| {
        let steps = problem.items().len() as u64 * RULES_EACH;
        ratio(pack_by_rules(problem, steps).placement.size, bound)
    });
    println!(
        "| {name} | {} | {} | {} | {:.5} | {} | {} | {} | {} | {seconds:.2} | {} |",
        problem.items().len(),
        bound.0,
        arena.0,
        ratio(arena, bound),
        greedy.map_or_else(|| "-".to_owned(), |greedy| format!("{greedy:.3}")),
        packing.rule,
        if arena <= bound { "yes" } else { "no" },
        packing.steps,
        peak.map_or_else(|| "-".to_owned(), |peak| peak.to_string()),
    );
    Ok(())
}

fn ratio(arena: Bytes, bound: Bytes) -> f64 {
    arena.0 as f64 / bound.0.max(1) as f64
}

/// The most that this process has held so far, where the system tells.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}
