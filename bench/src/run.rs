//! Runs models: equal bits in every mode, nothing allocated beside what was planned and declared.
//!
//! ~~~text
//! model, seeded values ──pack, colour, safe; poisoned──> outputs: equal bits?
//!                      ──pack──> first run: bytes allocated <= declared    further runs: none
//!                                resident above the loaded model <= 1.1 x (arena + declared) + 1 MiB
//! ~~~

use crate::corpus::{kib, load_bound};
use anyhow::Context;
use lowtide::core::{Bytes, Reuse};
use lowtide::formats::Array;
use lowtide::ops::standard;
use lowtide::runtime::resident;
use lowtide::{
    Loaded, PlanConfig, Session, SessionConfig, TensorRef, check, plan, program, random_input,
    random_weights,
};
use std::path::Path;

/// Runs after the first, in which nothing may be allocated.
const REPEATS: usize = 10;
const SEED: u64 = 0;

struct Row {
    name: String,
    arena: Bytes,
    declared: Bytes,
    first_run: Bytes,
    later_runs: Bytes,
    resident: Bytes,
    equal_bits: bool,
}

impl Row {
    fn is_exact(&self) -> bool {
        self.first_run <= self.declared && self.later_runs == Bytes::ZERO
    }

    fn is_resident_as_planned(&self) -> bool {
        let planned = self.arena.0 + self.declared.0;
        self.resident.0 <= planned + planned / 10 + (1 << 20)
    }

    fn is_right(&self) -> bool {
        self.equal_bits && self.is_exact() && self.is_resident_as_planned()
    }
}

/// Prints the table; `false` if bits differ, or more is allocated than was said.
pub fn run(models: &[String]) -> anyhow::Result<bool> {
    println!(
        "| model | arena KiB | declared KiB | first run allocates KiB | {REPEATS} more runs allocate B | resident KiB | pack = colour = safe | as said |"
    );
    println!("|---|--:|--:|--:|--:|--:|---|---|");
    let mut are_right = true;
    for model in models {
        let row = row(Path::new(model)).with_context(|| model.clone())?;
        let word = |is_so| if is_so { "yes" } else { "NO" };
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            row.name,
            kib(row.arena),
            kib(row.declared),
            kib(row.first_run),
            row.later_runs.0,
            kib(row.resident),
            word(row.equal_bits),
            word(row.is_exact() && row.is_resident_as_planned())
        );
        are_right &= row.is_right();
    }
    Ok(are_right)
}

fn row(path: &Path) -> anyhow::Result<Row> {
    let (loaded, bound) = load_bound(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned() + &bound;
    let mut row = counted(&loaded, name)?;
    let outputs = Reuse::ALL.map(|reuse| guarded(&loaded, reuse));
    let [pack, colour, safe] = outputs;
    let (pack, colour, safe) = (pack?, colour?, safe?);
    row.equal_bits = pack == colour && pack == safe;
    Ok(row)
}

fn session(loaded: &Loaded, reuse: Reuse, guard: bool) -> anyhow::Result<Session> {
    let config = PlanConfig { reuse, ..PlanConfig::default() };
    let checked = check(&loaded.graph, plan(&loaded.graph, &config)?.plan)?;
    let mut program = program(loaded, &standard())?;
    random_weights(&mut program, SEED);
    Ok(Session::new(program, checked, &SessionConfig { guard, ..SessionConfig::default() })?)
}

pub fn inputs(session: &Session) -> anyhow::Result<Vec<Array>> {
    let specs = session.inputs().iter();
    let array = specs.map(|spec| random_input(&spec.name, spec.dtype, &spec.fixed_dims()?, SEED));
    array.collect::<Option<_>>().context("an input is too large, or its shape open")
}

pub fn tensors(arrays: &[Array]) -> anyhow::Result<Vec<TensorRef<'_>>> {
    arrays
        .iter()
        .map(|array| Ok(TensorRef::from_bytes(array.dtype(), array.dims(), array.bytes())?))
        .collect()
}

/// The outputs in one mode, what is freed poisoned.
fn guarded(loaded: &Loaded, reuse: Reuse) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut session = session(loaded, reuse, true)?;
    let arrays = inputs(&session)?;
    let tensors = tensors(&arrays)?;
    session.run(&tensors)?;
    // Once more, as the arena now holds what a run leaves.
    Ok(session.run(&tensors)?.iter().map(|output| output.bytes().to_vec()).collect())
}

/// What runs allocate, by the counting allocator, and what is resident during them.
fn counted(loaded: &Loaded, name: String) -> anyhow::Result<Row> {
    anyhow::ensure!(crate::allocated().is_some(), "`run` wants the feature `count`");
    let mut session = session(loaded, Reuse::Pack, false)?;
    let arrays = inputs(&session)?;
    let tensors = tensors(&arrays)?;
    let memory = session.memory();
    let before = resident::read();
    resident::reset();
    let allocated = || Bytes(crate::allocated().unwrap_or_default());
    let [start, first, all] = session.within(|session| -> anyhow::Result<[Bytes; 3]> {
        let start = allocated();
        session.run(&tensors)?;
        let first = allocated();
        for _ in 0..REPEATS {
            session.run(&tensors)?;
        }
        Ok([start, first, allocated()])
    })?;
    let most = resident::read().most;
    Ok(Row {
        name,
        arena: memory.arena,
        declared: memory.kernels,
        first_run: first.saturating_sub(start),
        later_runs: all.saturating_sub(first),
        resident: most.saturating_sub(before.now),
        equal_bits: false,
    })
}
