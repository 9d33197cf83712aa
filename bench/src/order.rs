//! Our order beside those of the peers: the peak of each, under our sharing.
//!
//! ~~~text
//! graph ─┬─ plan ───────────────────── peak, bound, proven
//!        └─ each peer's rules ─ best ─ peak / ours            1.000: as good as ours; above: worse
//! ~~~

use crate::corpus::{kib, load_bound, models_below, short_name};
use crate::peers::{PEERS, Peer, Uses};
use lowtide::core::testing::{
    layered_random, layered_woven, random_cells, structured_nets, transformer_training,
};
use lowtide::core::{Bytes, Order};
use lowtide::planner::peak_of;
use lowtide::{Graph, PlanConfig, plan};
use std::path::Path;
use std::time::Instant;

/// For some large graphs a search of a second is too short to prove anything.
const PATIENCE: u64 = 10;
/// The same graphs for everybody.
const SEED: u64 = 1;

struct Row {
    name: String,
    ops: usize,
    ours: Bytes,
    bound: Bytes,
    arena: Bytes,
    rule: String,
    is_proven: bool,
    seconds: f64,
    /// What each of [`PEERS`] needs, and whether all its rules could be tried.
    peers: Vec<(Bytes, bool)>,
    /// What the peers' rules and evaluation took.
    peer_seconds: f64,
}

/// Prints the tables; `false` if a peer's order is better than ours.
pub fn run(dirs: &[String]) -> anyhow::Result<bool> {
    let mut rows = Vec::new();
    if !dirs.is_empty() {
        println!("## Models\n");
        head();
        for path in models_below(dirs)? {
            rows.push(model_row(&path)?);
        }
        summary(&rows);
    }
    let mut is_least = rows.iter().all(is_least_of_all);
    let usual = PlanConfig::default();
    let patient = PlanConfig { order_steps: PATIENCE * usual.order_steps, ..usual.clone() };
    let tables = [
        ("Structured nets", structured_nets(), usual.clone()),
        ("Large graphs", large(), usual),
        ("Large graphs, ten times the steps", large(), patient),
    ];
    for (title, graphs, config) in tables {
        println!("\n## {title}\n");
        head();
        let rows = graphs
            .iter()
            .map(|graph| row(graph.name().to_owned(), graph, &config))
            .collect::<anyhow::Result<Vec<Row>>>()?;
        summary(&rows);
        is_least &= rows.iter().all(is_least_of_all);
    }
    Ok(is_least)
}

fn large() -> Vec<Graph> {
    vec![
        random_cells(16_000, SEED),
        transformer_training(100_000, 1),
        // Gradients kept, head by head; then updates that the file lists last.
        transformer_training(100_000, 2),
        transformer_training(100_000, 5),
        layered_random(10_000, 12, SEED),
        layered_random(10_000, 40, SEED),
        layered_random(10_000, 128, SEED),
        layered_woven(10_000, 12, SEED),
        layered_woven(10_000, 128, SEED),
    ]
}

fn model_row(path: &Path) -> anyhow::Result<Row> {
    let (loaded, bound) = load_bound(path)?;
    row(short_name(path) + &bound, &loaded.graph, &PlanConfig::default())
}

/// Measures one graph, and prints its row at once: large graphs take their time.
fn row(name: String, graph: &Graph, config: &PlanConfig) -> anyhow::Result<Row> {
    let start = Instant::now();
    let planned = plan(graph, config)?;
    let seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let uses = Uses::new(graph);
    let peers = PEERS.iter().map(|peer| best(peer, &uses, config)).collect();
    let row = Row {
        name,
        ops: graph.ops().len(),
        ours: planned.least_peak,
        bound: planned.plan.order_bound.bytes,
        arena: planned.plan.stats.arena_bytes,
        is_proven: planned.least_peak_proven(),
        rule: planned.plan.order_rule,
        seconds,
        peers,
        peer_seconds: start.elapsed().as_secs_f64(),
    };
    print_row(&row);
    Ok(row)
}

/// The least peak of what a peer ships, and whether the graph was small enough for all its rules.
fn best(peer: &Peer, uses: &Uses<'_>, config: &PlanConfig) -> (Bytes, bool) {
    let orders = peer.rules.iter().filter_map(|rule| rule(uses));
    let peaks: Vec<Bytes> = orders.map(|order| peak(uses.graph, order, config)).collect();
    let least = peaks.iter().min().expect("every peer has a rule without a limit");
    (*least, peaks.len() == peer.rules.len())
}

/// The most that is live at once in an order, under our sharing. Where it comes from is decided here alone.
fn peak(graph: &Graph, order: Order, config: &PlanConfig) -> Bytes {
    peak_of(graph, &order, config)
}

fn head() {
    let peers: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
    println!(
        "| graph | ops | peak KiB | bound KiB | gap % | proven | rule | s | {} | peers s |",
        peers.join(" | ")
    );
    println!("|---|{}", "--:|".repeat(8 + PEERS.len()));
}

fn print_row(row: &Row) {
    let shown = |&(peer, is_whole): &(Bytes, bool)| {
        let note = if is_whole { "" } else { "*" };
        format!("{:.3}{note}", ratio(peer, row.ours))
    };
    let ratios: Vec<String> = row.peers.iter().map(shown).collect();
    println!(
        "| {} | {} | {} | {} | {:.2} | {} | {} | {:.3} | {} | {:.3} |",
        row.name,
        row.ops,
        kib(row.ours),
        kib(row.bound),
        (ratio(row.ours, row.bound) - 1.0) * 100.0,
        if row.is_proven { "yes" } else { "" },
        row.rule,
        row.seconds,
        ratios.join(" | "),
        row.peer_seconds
    );
}

/// How many times as large; 1 where both are nothing.
pub(crate) fn ratio(bytes: Bytes, of: Bytes) -> f64 {
    if bytes == of { 1.0 } else { bytes.0 as f64 / of.0 as f64 }
}

pub(crate) fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

fn is_least_of_all(row: &Row) -> bool {
    row.peers.iter().all(|&(peer, _)| row.ours <= peer)
}

fn summary(rows: &[Row]) {
    let of = rows.len();
    println!("\n| peer / ours | geometric mean | most | least | equal | better than ours |");
    println!("|---|{}", "--:|".repeat(5));
    for (index, peer) in PEERS.iter().enumerate() {
        let ratios: Vec<f64> = rows.iter().map(|row| ratio(row.peers[index].0, row.ours)).collect();
        let count = |is: fn(Bytes, Bytes) -> bool| {
            rows.iter().filter(|row| is(row.peers[index].0, row.ours)).count()
        };
        println!(
            "| {} | {:.4} | {:.3} | {:.3} | {} of {of} | {} |",
            peer.name,
            geometric_mean(&ratios),
            ratios.iter().copied().fold(f64::MIN, f64::max),
            ratios.iter().copied().fold(f64::MAX, f64::min),
            count(|peer, ours| peer == ours),
            count(|peer, ours| peer < ours)
        );
    }
    let proven = rows.iter().filter(|row| row.is_proven).count();
    let tight = rows.iter().filter(|row| row.arena == row.bound).count();
    println!("\n{proven} of {of} orders proven; arena equals the bound of all orders in {tight}");
    if rows.iter().any(|row| row.peers.iter().any(|&(_, is_whole)| !is_whole)) {
        println!("* without the rules that are not practical at this size (LPMF)");
    }
}
