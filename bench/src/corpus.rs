//! Every model below some folders, planned and checked: one row each, then the distribution of the savings.

use anyhow::{Context, bail};
use lowtide::core::Bytes;
use lowtide::planner::{Colours, OrderRule, colours};
use lowtide::{LoadOptions, Loaded, PlanConfig, Planned, ResolveConfig, check, load, plan};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How often a model is planned; the least time counts.
const REPEATS: usize = 5;

struct Row {
    name: String,
    loaded: Loaded,
    planned: Planned,
    /// The score rule alone, whether or not it won.
    score: Bytes,
    colours: Colours,
    plan_ms: f64,
    check_ms: f64,
    is_right: bool,
}

/// Prints the table; `false` if a plan is wrong, or worse than the order of the file.
pub fn run(dirs: &[String]) -> anyhow::Result<bool> {
    let paths = models_below(dirs)?;
    if paths.is_empty() {
        bail!("no .onnx, .json or .json.gz file in {}", dirs.join(", "));
    }
    let rows = paths.iter().map(|path| row(path)).collect::<anyhow::Result<Vec<_>>>()?;
    table(&rows);
    distribution(&rows);
    let is_wrong = |row: &&Row| !row.is_right || arena(row) > row.planned.file_order_bytes();
    let wrong: Vec<&str> = rows.iter().filter(is_wrong).map(|row| row.name.as_str()).collect();
    println!(
        "\n{} models, {} wrong or worse than the order of the file {wrong:?}",
        rows.len(),
        wrong.len()
    );
    Ok(wrong.is_empty())
}

/// The models of all folders, sorted.
pub(crate) fn models_below(dirs: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for dir in dirs {
        paths.extend(models(Path::new(dir))?);
    }
    paths.sort();
    Ok(paths)
}

pub(crate) fn models(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.to_string_lossy();
        if name.ends_with(".onnx") || name.ends_with(".json") || name.ends_with(".json.gz") {
            found.push(path);
        }
    }
    Ok(found)
}

fn row(path: &Path) -> anyhow::Result<Row> {
    let config = PlanConfig::default();
    let (loaded, bound) = load_bound(path)?;
    let graph = &loaded.graph;
    let (planned, plan_ms) = fastest(|| plan(graph, &config));
    let planned = planned?;
    let score = plan(graph, &PlanConfig { order: OrderRule::Score, ..config.clone() })?;
    let (is_right, check_ms) = fastest(|| check(graph, planned.plan.clone()).is_ok());
    let colours = colours(graph, &planned.order, &config);
    let name = short_name(path) + &bound;
    let score = score.plan.stats.arena_bytes;
    Ok(Row { name, planned, score, colours, plan_ms, check_ms, is_right, loaded })
}

/// The file's name without its endings.
pub(crate) fn short_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Loads a model; what it leaves open is bound to usual numbers, which are named.
pub(crate) fn load_bound(path: &Path) -> anyhow::Result<(Loaded, String)> {
    let loaded = load(path, &LoadOptions::default())?;
    if loaded.open_dims.is_empty() {
        return Ok((loaded, String::new()));
    }
    let usual = |name: &String| match name.as_str() {
        "batch" => 1,
        "height" | "width" => 224,
        "total" => 256,
        _ => 128,
    };
    let dims = loaded.open_dims.iter().map(|name| (name.clone(), usual(name))).collect();
    let resolve = ResolveConfig { dims, ..ResolveConfig::default() };
    let named: Vec<String> = resolve.dims.iter().map(|(name, n)| format!("{name}={n}")).collect();
    let loaded = load(path, &LoadOptions { resolve, ..LoadOptions::default() })?;
    Ok((loaded, format!(" ({})", named.join(", "))))
}

pub(crate) fn fastest<T>(mut work: impl FnMut() -> T) -> (T, f64) {
    let mut timed = || {
        let start = Instant::now();
        let result = work();
        (result, start.elapsed().as_secs_f64() * 1e3)
    };
    let mut best = timed();
    for _ in 1..REPEATS {
        let next = timed();
        if next.1 < best.1 {
            best = next;
        }
    }
    best
}

fn arena(row: &Row) -> Bytes {
    row.planned.plan.stats.arena_bytes
}

pub(crate) fn kib(bytes: Bytes) -> u64 {
    bytes.0.div_ceil(1024)
}

fn table(rows: &[Row]) {
    println!("Sizes in KiB; colours are those of the planned order.\n");
    println!(
        "| model | ops | pool | kept | file order | score | planned | bound | rule | proven | colours: optimum, \
         by start, by end | bytes by start | bytes by end | plan ms | check ms |"
    );
    println!("|---|{}", "--:|".repeat(14));
    for row in rows {
        let plan = &row.planned.plan;
        let is_complete = plan.stats.pool_tensors == 0;
        let proven = match (plan.order_proven() && is_complete, plan.placement_proven()) {
            (true, true) => "both",
            _ if !is_complete => "",
            (false, true) => "placement",
            (true, false) => "order",
            (false, false) => "",
        };
        let Colours { optimum, by_start, by_end } = row.colours;
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {proven} | {optimum}, {}, {} | {} | {} | {:.2} | {:.2} |",
            row.name,
            row.loaded.file_ops,
            plan.stats.pool_tensors,
            kib(plan.stats.no_reuse_bytes),
            kib(row.planned.file_order_bytes()),
            kib(row.score),
            kib(arena(row)),
            kib(plan.order_bound.bytes),
            plan.order_rule,
            by_start.0,
            by_end.0,
            kib(by_start.1),
            kib(by_end.1),
            row.plan_ms,
            row.check_ms
        );
    }
}

/// The bytes of a row that are compared.
type Measure = fn(&Row) -> Bytes;

/// Percent saved against every tensor kept, sorted.
fn savings(rows: &[Row], bytes: Measure) -> Vec<f64> {
    let mut savings: Vec<f64> = rows
        .iter()
        .map(|row| (bytes(row), row.planned.plan.stats.no_reuse_bytes))
        .filter(|(_, all)| all.0 > 0)
        .map(|(bytes, all)| (1.0 - bytes.0 as f64 / all.0 as f64) * 100.0)
        .collect();
    savings.sort_by(f64::total_cmp);
    savings
}

fn distribution(rows: &[Row]) {
    println!("\nSaved against every tensor kept, percent of bytes:\n");
    println!(
        "| | least | lower quartile | median | upper quartile | most | at least 25 % | at least 50 % | at least 80 % |"
    );
    println!("|---|{}", "--:|".repeat(8));
    let kinds: [(&str, Measure); 3] = [
        ("reuse alone (file order)", |row| row.planned.file_order_bytes()),
        ("reuse and score order", |row| row.score),
        ("reuse and best order", arena),
    ];
    for (name, bytes) in kinds {
        let savings = savings(rows, bytes);
        let at = |part: usize| savings[(savings.len() - 1) * part / 4];
        let reach = |least: f64| savings.iter().filter(|&&saved| saved >= least).count();
        let of = savings.len();
        println!(
            "| {name} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {} of {of} | {} of {of} | {} of {of} |",
            at(0),
            at(1),
            at(2),
            at(3),
            at(4),
            reach(25.0),
            reach(50.0),
            reach(80.0)
        );
    }
}
