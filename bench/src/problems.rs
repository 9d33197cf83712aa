//! The placement problems of models under the planned order: written out as CSV, read again, placed and checked.

use crate::corpus::{fastest, load_bound, models};
use anyhow::{Context, bail};
use lowtide::core::check::{check_bound, check_placement};
use lowtide::formats::{read_problem, write_plan_problem};
use lowtide::planner::{Effort, Packing, pack};
use lowtide::{PlanConfig, plan};
use std::path::Path;

/// Writes into the first folder the problem of each model of the others, and prints a row each; `false` if fewer than
/// 95 % of them are proven.
pub fn run(dirs: &[String]) -> anyhow::Result<bool> {
    let (out, dirs) = dirs.split_first().context("no folder to write into")?;
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {out}"))?;
    let mut paths = Vec::new();
    for dir in dirs {
        paths.extend(models(Path::new(dir))?);
    }
    paths.sort();
    println!(
        "| problem | buffers | lower bound | arena | above the bound, % | rule | proof | ms |"
    );
    println!("|---|{}", "--:|".repeat(7));
    let rows = paths.iter().map(|path| row(Path::new(out), path));
    let rows = rows.collect::<anyhow::Result<Vec<(bool, f64)>>>()?;
    let proven = rows.iter().filter(|row| row.0).count();
    let mut times: Vec<f64> = rows.iter().map(|row| row.1).collect();
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or(0.0);
    println!("\n{proven} of {} proven optimal; {median:.2} ms in the median", rows.len());
    Ok(proven * 100 >= rows.len() * 95)
}

fn row(out: &Path, path: &Path) -> anyhow::Result<(bool, f64)> {
    let (loaded, _) = load_bound(path)?;
    let planned = plan(&loaded.graph, &PlanConfig::default())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split('.').next().unwrap_or_default().to_owned();
    let mut csv = Vec::new();
    write_plan_problem(None, &planned.plan, &mut csv)?;
    let file = out.join(&name).with_extension("csv");
    std::fs::write(&file, &csv).with_context(|| format!("cannot write {}", file.display()))?;
    let problem = read_problem(&csv).with_context(|| name.clone())?.problem;
    let (packing, ms) = fastest(|| pack(&problem, Effort::Default.pack_steps()));
    let Packing { placement, bound, rule, .. } = packing;
    if let Some(fault) = check_placement(&problem, &placement).first() {
        bail!("{name}: {fault}");
    }
    check_bound(&problem, &bound).with_context(|| name.clone())?;
    let above = placement.size.0 as f64 / bound.bytes.0.max(1) as f64 * 100.0 - 100.0;
    println!(
        "| {name} | {} | {} | {} | {above:.3} | {rule} | {} | {ms:.2} |",
        problem.items().len(),
        bound.bytes.0,
        placement.size.0,
        bound.proof
    );
    Ok((placement.size <= bound.bytes, ms))
}
