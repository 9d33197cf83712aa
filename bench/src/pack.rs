//! Placement problems, placed and checked: those of files with the default and the most effort, and cut ones whose
//! optimum is known.

use anyhow::{Context, bail};
use lowtide::core::check::{check_bound, check_placement};
use lowtide::core::testing::{CutConfig, cut_problem};
use lowtide::core::{Bytes, Problem};
use lowtide::formats::read_problem;
use lowtide::planner::{Effort, pack};
use std::time::Instant;

/// Buffers of the cut problems.
const SIZES: [u64; 3] = [10_000, 100_000, 1_000_000];
/// Pairs that may be looked at for each buffer of a cut problem.
const STEPS_EACH: u64 = 7000;

/// Prints a row each; an error if a placement or its bound is wrong.
pub fn run(files: &[String]) -> anyhow::Result<bool> {
    println!(
        "| problem | buffers | lower bound | arena | arena / bound | rule | proven | steps | seconds |"
    );
    println!("|---|{}", "--:|".repeat(8));
    for file in files {
        let bytes = std::fs::read(file).with_context(|| format!("cannot read {file}"))?;
        let problem = read_problem(&bytes).with_context(|| file.clone())?.pinned()?;
        let name = file.rsplit('/').next().unwrap_or(file);
        for effort in [Effort::Default, Effort::Max] {
            row(&format!("{name} {effort:?}"), &problem, effort.pack_steps(), None)?;
        }
    }
    for items in SIZES {
        let cut = cut_problem(11, CutConfig { items, ..CutConfig::default() });
        let optimum = Some(cut.placement.size);
        row(&format!("cut {items}"), &cut.problem, items * STEPS_EACH, optimum)?;
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
    println!(
        "| {name} | {} | {} | {} | {:.5} | {} | {} | {} | {seconds:.2} |",
        problem.items().len(),
        bound.0,
        arena.0,
        arena.0 as f64 / bound.0.max(1) as f64,
        packing.rule,
        if arena <= bound { "yes" } else { "no" },
        packing.steps
    );
    Ok(())
}
