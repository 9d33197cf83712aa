//! Models whose sizes are open, run from the pool, beside the same with their sizes bound.
//!
//! ~~~text
//! model, batch open ──plan──> every open tensor a block of the pool, found while it runs
//! model, batch = 1  ──plan──> nothing shared: as many blocks, but all of them in the plan     the difference is the pool's time
//!                   ──plan──> the arena as it is planned                                      and this what planning saves beyond
//! ~~~

use crate::corpus::{kib, load_bound};
use crate::run::{inputs, tensors};
use anyhow::Context;
use lowtide::core::{Bytes, Reuse};
use lowtide::ops::standard;
use lowtide::{
    LoadOptions, Loaded, PlanConfig, Session, SessionConfig, TensorRef, check, load, plan, program,
    random_weights,
};
use std::path::Path;
use std::time::Instant;

/// Runs of each, one after the other, so that all see the same machine.
const ROUNDS: usize = 101;
const SEED: u64 = 0;
/// What the pool may add to a run.
const MOST: f64 = 1.03;

/// Prints the table; `false` if bits differ, or the pool adds more than it may.
pub fn run(models: &[String]) -> anyhow::Result<bool> {
    println!(
        "| model | open ms | bound, nothing shared ms | bound ms | open / nothing shared | open / bound | pool held KiB | nothing shared KiB | arena KiB | equal bits |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|---|");
    let mut are_right = true;
    for model in models {
        are_right &= row(Path::new(model)).with_context(|| model.clone())?;
    }
    Ok(are_right)
}

fn session(loaded: &Loaded, reuse: Reuse) -> anyhow::Result<Session> {
    let config = PlanConfig { reuse, ..PlanConfig::default() };
    let checked = check(&loaded.graph, plan(&loaded.graph, &config)?.plan)?;
    let mut program = program(loaded, &standard())?;
    random_weights(&mut program, SEED);
    Ok(Session::new(program, checked, &SessionConfig::default())?)
}

fn row(path: &Path) -> anyhow::Result<bool> {
    let open = load(path, &LoadOptions::default())?;
    anyhow::ensure!(!open.open_dims.is_empty(), "no size is open");
    let (bound, named) = load_bound(path)?;
    let mut sessions = [
        session(&open, Reuse::Pack)?,
        session(&bound, Reuse::Safe)?,
        session(&bound, Reuse::Pack)?,
    ];
    let arrays = inputs(&sessions[2])?;
    let tensors = tensors(&arrays)?;
    let mut times = [const { Vec::new() }; 3];
    let mut outputs = Vec::new();
    for round in 0..=ROUNDS {
        for (session, times) in sessions.iter_mut().zip(&mut times) {
            let (time, output) = run_once(session, &tensors)?;
            if round > 0 {
                times.push(time);
            } else {
                outputs.push(output);
            }
        }
    }
    let over = |at: usize| median(times[0].iter().zip(&times[at]).map(|(a, b)| a / b).collect());
    let [over_safe, over_bound] = [over(1), over(2)];
    let [open_ms, safe_ms, bound_ms] = times.map(median);
    let are_equal = outputs.windows(2).all(|pair| pair[0] == pair[1]);
    let held = sessions[0].pool_stats().map_or(Bytes::ZERO, |stats| stats.peak_held);
    println!(
        "| {}{named} | {open_ms:.2} | {safe_ms:.2} | {bound_ms:.2} | {over_safe:.3} | {over_bound:.3} | {} | {} | {} | {} |",
        path.file_stem().unwrap_or_default().display(),
        kib(held),
        kib(sessions[1].memory().arena),
        kib(sessions[2].memory().arena),
        if are_equal { "yes" } else { "NO" }
    );
    Ok(are_equal && over_safe <= MOST)
}

/// Milliseconds, and what came out.
fn run_once(
    session: &mut Session,
    tensors: &[TensorRef<'_>],
) -> anyhow::Result<(f64, Vec<Vec<u8>>)> {
    let start = Instant::now();
    let outputs = session.run(tensors)?;
    let time = start.elapsed().as_secs_f64() * 1e3;
    Ok((time, outputs.iter().map(|output| output.bytes().to_vec()).collect()))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
