//! `lowtide run`.
//!
//! ~~~text
//! model, arrays ──load──> graph ──plan or read──> checked plan ──Session──> runs ──> figures, arrays
//! ~~~

use super::args::RunArgs;
use super::given::{self, Given};
use super::{Answer, out, plan, progress, run_text};
use anyhow::Context;
use lowtide::core::{Bytes, Ran};
use lowtide::formats::{self, Array, LatencyRow, OutputRow, ProfileRow, RunSummary};
use lowtide::planner::PlanConfig;
use lowtide::runtime::resident::{self, Resident};
use lowtide::runtime::{HostMemory, Outputs, PoolConfig, RunError, TensorSpec};
use lowtide::{CheckedPlan, LoadOptions, Loaded, Session, SessionConfig, TensorRef, check};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Between blocks in guard mode.
const RED_ZONE: Bytes = Bytes(256);

pub(super) fn run(args: &RunArgs) -> anyhow::Result<Answer> {
    let start = now();
    let Given { arrays, options, loaded, name } = given::read(&args.model, &args.given)?;
    let checked = checked_plan(args, &loaded, &name)?;
    let (arena, bound) = (checked.plan().stats.arena_bytes, checked.plan().order_bound.bytes);
    if plan::within(args.capacity, arena, bound) == Answer::No {
        return Ok(Answer::No);
    }
    let prepare = || session(args, &loaded, &options, checked);
    let (session, _) = progress::during(&format!("preparing {name}"), prepare);
    let mut session = session.with_context(|| format!("`{name}` cannot be run"))?;
    let inputs = given::inputs(&args.given, session.inputs(), arrays)?;
    let load_seconds = start.elapsed().as_secs_f64();
    let runs = || measure(&mut session, &inputs, args.repeat.get());
    let (measured, _) = progress::during(&format!("running {name}"), runs);
    let measured = measured.with_context(|| format!("`{name}` failed"))?;
    let files = match &args.save_outputs {
        Some(folder) => save(folder, session.outputs(), &measured.outputs)?,
        None => Vec::new(),
    };
    if let Some(path) = &args.trace {
        let ran: Vec<Ran> = session.ran().collect();
        out::write_file(path, |out| {
            formats::write_trace(&loaded.graph, session.plan(), &ran, out)
        })?;
    }
    if let Some(path) = &args.pool_metrics {
        let text = session.pool_stats().unwrap_or_default().to_prometheus(&name);
        out::write_file(path, |out| out.write_all(text.as_bytes()))?;
    }
    let figures = RunSummary {
        weights_bytes: loaded.graph.weights_bytes().0,
        load_seconds,
        outputs: output_rows(session.outputs(), &measured.outputs, &files),
        ..figures(args, &session, &measured)
    };
    let text = if args.json {
        figures.to_json()
    } else {
        run_text::run(&figures, &measured.outputs, &labels(&loaded))
    };
    out::print(&text)?;
    Ok(Answer::Yes)
}

/// The plan that is followed, judged.
fn checked_plan(args: &RunArgs, loaded: &Loaded, name: &str) -> anyhow::Result<CheckedPlan> {
    let red_zone = if args.guard { RED_ZONE } else { Bytes::ZERO };
    let config = PlanConfig { red_zone, ..args.planner.config() };
    let plan = given::plan(args.plan.as_deref(), (&config, args.planner.time_limit), loaded, name)?;
    check(&loaded.graph, plan).with_context(|| match &args.plan {
        Some(path) => format!("`{}` is not a plan for `{name}`", path.display()),
        None => given::OUR_FAULT.to_owned(),
    })
}

fn session(
    args: &RunArgs,
    loaded: &Loaded,
    options: &LoadOptions,
    checked: CheckedPlan,
) -> anyhow::Result<Session> {
    let program = given::program(&args.given, loaded, options)?;
    let mut pool = PoolConfig::default();
    if let Some(limit) = args.pool_limit {
        pool.limit = limit;
    }
    let config = SessionConfig {
        threads: args.threads,
        workers: args.workers,
        guard: args.guard,
        profile: args.profile || args.trace.is_some(),
        pool,
    };
    let mut memory = HostMemory { huge_pages: args.huge_pages };
    Ok(Session::in_memory(program, checked, &config, &mut memory)?)
}

/// What the runs took, and what came out of the last.
struct Measured {
    milliseconds: Vec<f64>,
    loaded: Resident,
    ran: Resident,
    outputs: Vec<Array>,
    /// The most that the pool held in any of the runs.
    pool_peak: Bytes,
    /// Milliseconds of each type of operator, run after run.
    profile: BTreeMap<String, (usize, Vec<f64>)>,
}

/// Runs the model so many times, on a thread of the session's pool.
fn measure(session: &mut Session, arrays: &[Array], repeat: usize) -> Result<Measured, RunError> {
    let inputs: Vec<TensorRef<'_>> = arrays.iter().map(given::as_tensor).collect();
    let mut milliseconds = Vec::with_capacity(repeat);
    let mut profile = BTreeMap::new();
    let mut pool_peak = Bytes::ZERO;
    let loaded = resident::read();
    resident::reset();
    session.within(|session| {
        for _ in 1..repeat {
            milliseconds.push(time_one(session, &inputs, &mut profile)?);
            pool_peak = pool_peak.max(session.memory().pool_peak);
        }
        // The last run's outputs are taken before anything else can write to the arena.
        let start = now();
        let outputs = session.run(&inputs)?;
        milliseconds.push(start.elapsed().as_secs_f64() * 1e3);
        let ran = resident::read();
        let outputs = copies(outputs);
        add_profile(session, &mut profile);
        pool_peak = pool_peak.max(session.memory().pool_peak);
        Ok(Measured { milliseconds, loaded, ran, outputs, pool_peak, profile })
    })
}

fn time_one(
    session: &mut Session,
    inputs: &[TensorRef<'_>],
    profile: &mut BTreeMap<String, (usize, Vec<f64>)>,
) -> Result<f64, RunError> {
    let start = now();
    session.run(inputs)?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    add_profile(session, profile);
    Ok(milliseconds)
}

fn add_profile(session: &Session, profile: &mut BTreeMap<String, (usize, Vec<f64>)>) {
    // A trace takes times too.
    let Some(times) = session.profile() else { return };
    let mut of_kind: BTreeMap<&str, (usize, Duration)> = BTreeMap::new();
    for (run, time) in times.iter_enumerated() {
        let op = session.plan().op(run);
        let row = of_kind.entry(&session.graph().ops()[op].kind).or_default();
        *row = (row.0 + 1, row.1 + *time);
    }
    for (kind, (count, time)) in of_kind {
        let row = profile.entry(kind.to_owned()).or_insert((count, Vec::new()));
        row.1.push(time.as_secs_f64() * 1e3);
    }
}

fn copies(outputs: Outputs<'_>) -> Vec<Array> {
    let copy = |tensor: TensorRef<'_>| {
        let mut array = Array::zeros(tensor.dtype(), tensor.dims()).expect("it is there already");
        array.bytes_mut().copy_from_slice(tensor.bytes());
        array
    };
    outputs.iter().map(copy).collect()
}

/// Writes the outputs, each under its name; letters that not every file system takes become `_`.
fn save(folder: &Path, specs: &[TensorSpec], outputs: &[Array]) -> anyhow::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    let mut files = Vec::new();
    for (at, (spec, output)) in specs.iter().zip(outputs).enumerate() {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let mut name: String = spec.name.chars().map(plain).take(200).collect();
        // Some file systems do not tell `A` from `a`.
        let is_taken =
            |file: &PathBuf| file.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case(&*name));
        if name.starts_with('.') || files.iter().any(is_taken) {
            name = format!("{at}_{name}");
        }
        let file = folder.join(format!("{name}.npy"));
        out::write_file(&file, |out| {
            formats::write_npy(output.dtype(), output.dims(), output.bytes(), out)
        })?;
        files.push(file);
    }
    Ok(files)
}

fn output_rows(specs: &[TensorSpec], outputs: &[Array], files: &[PathBuf]) -> Vec<OutputRow> {
    let row = |(at, (spec, output)): (usize, (&TensorSpec, &Array))| OutputRow {
        name: spec.name.clone(),
        dtype: spec.dtype.to_string(),
        shape: output.dims().to_vec(),
        file: files.get(at).map(|file| file.display().to_string()),
    };
    specs.iter().zip(outputs).enumerate().map(row).collect()
}

/// What the session and its runs say.
fn figures(args: &RunArgs, session: &Session, measured: &Measured) -> RunSummary {
    let (memory, compactions) = (session.memory(), session.compactions());
    let (before, after) = (measured.loaded, measured.ran);
    RunSummary {
        model: args.model.model.display().to_string(),
        fingerprint: session.graph().fingerprint().to_string(),
        mode: session.plan().reuse.name().to_owned(),
        arena_bytes: memory.arena.0,
        outputs_bytes: memory.outputs.0,
        pool_peak_bytes: measured.pool_peak.0,
        pool_held_bytes: session.pool_stats().unwrap_or_default().peak_held.0,
        pool_compactions: compactions.count,
        pool_moved_bytes: compactions.moved.0,
        pool_compact_seconds: compactions.time.as_secs_f64(),
        kernel_bytes: memory.kernels.0,
        weights_copied_bytes: memory.copied_weights.0,
        rss_peak_bytes: before.most.0.max(after.most.0),
        rss_loaded_bytes: before.now.0,
        rss_run_bytes: after.most.0.saturating_sub(before.now.0),
        latency_ms: LatencyRow::of(&measured.milliseconds),
        repeats: measured.milliseconds.len(),
        threads: args.threads.get(),
        workers: args.workers.get(),
        guard: args.guard,
        profile: args.profile.then(|| profile_rows(&measured.profile)),
        ..RunSummary::default()
    }
}

fn profile_rows(profile: &BTreeMap<String, (usize, Vec<f64>)>) -> Vec<ProfileRow> {
    let row = |(kind, (count, times)): (&String, &(usize, Vec<f64>))| ProfileRow {
        kind: kind.clone(),
        count: *count,
        ms: LatencyRow::of(times).median,
    };
    let mut rows: Vec<ProfileRow> = profile.iter().map(row).collect();
    rows.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    rows
}

/// Names of classes, if the model carries them: one word each behind the key `labels`.
fn labels(loaded: &Loaded) -> Vec<String> {
    let metadata = loaded.model.iter().flat_map(|model| &model.metadata);
    let found = metadata.into_iter().find(|row| row.0 == "labels");
    found.map_or_else(Vec::new, |row| row.1.split(',').map(|word| word.trim().to_owned()).collect())
}

#[expect(clippy::disallowed_methods, reason = "the command line says how long a run took")]
fn now() -> Instant {
    Instant::now()
}
