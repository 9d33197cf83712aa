//! Models on two workers, and several models in one arena.
//!
//! ~~~text
//! model ──plan──> 1 worker on 1 thread, 2 workers, 1 worker with 2 threads inside operators: milliseconds, in turn
//!       ──plan without fences──> 2 workers
//! all models ──> one arena as large as the largest of theirs, in which they run in turn: equal bits?
//! ~~~

use crate::corpus::{kib, load_bound};
use crate::run::{inputs, tensors};
use anyhow::Context;
use lowtide::core::Bytes;
use lowtide::ops::standard;
use lowtide::runtime::{HostMemory, SharedArena};
use lowtide::{
    Loaded, PlanConfig, Session, SessionConfig, TensorRef, check, plan, program, random_weights,
};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

/// Workers and threads of each column, and whether the plan may have fences.
const COLUMNS: [(usize, usize, bool); 4] =
    [(1, 1, true), (2, 2, true), (1, 2, true), (2, 2, false)];
/// Runs of each column, one after the other, so that all see the same machine.
const ROUNDS: usize = 15;
const SEED: u64 = 0;

/// Prints both tables; `false` if bits differ or the shared arena is larger than the largest.
pub fn run(models: &[String]) -> anyhow::Result<bool> {
    println!(
        "| model | arena KiB | fences | arena without KiB | 1 worker ms | 2 workers ms | 2 threads ms | 2 workers without ms | 2 workers / 1 | 2 threads / 1 | 2 without / 1 | equal bits |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|");
    let mut loaded = Vec::new();
    for model in models {
        loaded.push(load_bound(Path::new(model)).with_context(|| model.clone())?.0);
    }
    let mut are_right = true;
    for (model, loaded) in models.iter().zip(&loaded) {
        are_right &= timed(model, loaded).with_context(|| model.clone())?;
    }
    Ok(shared(&loaded)? && are_right)
}

fn ready(
    loaded: &Loaded,
    fences: bool,
) -> anyhow::Result<(lowtide::core::operator::Program, lowtide::CheckedPlan)> {
    let config = PlanConfig { fences, ..PlanConfig::default() };
    let checked = check(&loaded.graph, plan(&loaded.graph, &config)?.plan)?;
    let mut program = program(loaded, &standard())?;
    random_weights(&mut program, SEED);
    Ok((program, checked))
}

/// One row of the first table.
fn timed(model: &str, loaded: &Loaded) -> anyhow::Result<bool> {
    let mut sessions = Vec::new();
    for (workers, threads, fences) in COLUMNS {
        let [workers, threads] = [workers, threads].map(|n| NonZeroUsize::new(n).expect("not 0"));
        let (program, checked) = ready(loaded, fences)?;
        let config = SessionConfig { workers, threads, ..SessionConfig::default() };
        sessions.push(Session::new(program, checked, &config)?);
    }
    let arrays = inputs(&sessions[0])?;
    let tensors = tensors(&arrays)?;
    let mut times = vec![Vec::new(); COLUMNS.len()];
    let mut outputs = Vec::new();
    for session in &mut sessions {
        outputs.push(run_once(session, &tensors)?.1);
    }
    for _ in 0..ROUNDS {
        for (session, times) in sessions.iter_mut().zip(&mut times) {
            times.push(run_once(session, &tensors)?.0);
        }
    }
    let ratios = [1, 2, 3]
        .map(|at| median(times[at].iter().zip(&times[0]).map(|(time, one)| time / one).collect()));
    let middle = times.into_iter().map(median).collect::<Vec<_>>();
    let are_equal = outputs.windows(2).all(|pair| pair[0] == pair[1]);
    println!(
        "| {} | {} | {} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} | {:.2} | {:.2} | {} |",
        Path::new(model).file_stem().unwrap_or_default().display(),
        kib(sessions[0].memory().arena),
        sessions[0].plan().fences(),
        kib(sessions[3].memory().arena),
        middle[0],
        middle[1],
        middle[2],
        middle[3],
        ratios[0],
        ratios[1],
        ratios[2],
        if are_equal { "yes" } else { "NO" }
    );
    Ok(are_equal)
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

/// All models in one arena, twice around.
fn shared(loaded: &[Loaded]) -> anyhow::Result<bool> {
    let (mut lent, mut wanted) = (Vec::new(), Vec::new());
    for loaded in loaded {
        let (program, checked) = ready(loaded, true)?;
        let mut own = Session::new(program, checked, &SessionConfig::default())?;
        let arrays = inputs(&own)?;
        wanted.push((run_once(&mut own, &tensors(&arrays)?)?.1, arrays));
        let (program, checked) = ready(loaded, true)?;
        lent.push(Session::without_arena(program, checked, &SessionConfig::default())?);
    }
    let mut arena = SharedArena::for_sessions(&mut HostMemory::default(), &lent)?;
    let mut are_equal = true;
    for _ in 0..2 {
        for (session, (wanted, arrays)) in lent.iter_mut().zip(&wanted) {
            let tensors = tensors(arrays)?;
            let outputs = session.run_in(&mut arena, &tensors)?;
            are_equal &= outputs.iter().zip(wanted).all(|(found, wanted)| found.bytes() == wanted);
        }
    }
    let arenas: Vec<Bytes> = lent.iter().map(|session| session.memory().arena).collect();
    let largest = arenas.iter().copied().max().unwrap_or_default();
    println!(
        "\n{} models in one arena of {} KiB, the largest of theirs being {} KiB and the sum {} KiB; equal bits: {}",
        lent.len(),
        kib(arena.bytes()),
        kib(largest),
        kib(arenas.iter().copied().sum()),
        if are_equal { "yes" } else { "NO" }
    );
    Ok(are_equal && arena.bytes() == largest)
}
