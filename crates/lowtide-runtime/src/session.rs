//! [`Session`]: inputs in, outputs out, again and again.
//!
//! ~~~text
//! run(inputs):  check them ── copy those that the arena owns ── one worker, or several ── outputs, borrowed
//! ~~~
//! A failed or cancelled run leaves the session as usable as before: a run begins with the first step and remembers
//! nothing. Workers and what kernels use beside them are threads of one pool, the session's own.

use crate::arena::Arena;
use crate::bind::{Source, bind};
use crate::engine::{Engine, Guard, KernelBox, Running, Worker};
use crate::guard::poison;
use crate::handover::Handover;
use crate::late::{LateOutput, Lates, bytes};
use crate::memory::{HostMemory, Memory, MemoryError};
use crate::pool::{Pool, PoolConfig, PoolStats};
use crate::pooled::Compactions;
use crate::pooled::Pooled;
use crate::redzone::damaged;
use crate::shared_arena::SharedArena;
use crate::tensor::{TensorRef, TensorSpec};
use crate::weights::Weights;
use crate::workers::{alone, together};
use lowtide_core::operator::{KernelError, NoKernel, Prepared, Program};
use lowtide_core::{
    Align, Bytes, CheckedPlan, DType, Fingerprint, Graph, IndexVec, OpId, Plan, Ran, RunId, Size,
    TensorId,
};
use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How a session runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// All threads: workers are threads too, and kernels use what they leave. At least as many as workers.
    pub threads: NonZeroUsize,
    /// Operators that may run at once.
    pub workers: NonZeroUsize,
    /// Poison what is freed, and all of the arena before a run: a read of bytes that nobody wrote shows.
    pub guard: bool,
    /// Take the time of each operator.
    pub profile: bool,
    /// Where tensors lie whose size is known in the run only.
    pub pool: PoolConfig,
}

impl Default for SessionConfig {
    fn default() -> Self {
        let one = NonZeroUsize::MIN;
        let pool = PoolConfig::default();
        Self { threads: one, workers: one, guard: false, profile: false, pool }
    }
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The plan is for another graph.
    #[error("the plan is for graph {found}, this one is {wanted}")]
    WrongGraph {
        /// The plan's.
        found: Fingerprint,
        /// The program's.
        wanted: Fingerprint,
    },
    /// Weights have no value.
    #[error("{count} weights have no value in the file: {names}")]
    MissingWeights {
        /// How many.
        count: usize,
        /// The first of them.
        names: String,
    },
    /// A weight has another size than its shape says.
    #[error("weight `{name}` has {found}, wanted {wanted}")]
    WeightSize {
        /// Which.
        name: String,
        /// What its value takes.
        found: Bytes,
        /// What its shape says.
        wanted: Size,
    },
    /// A tensor has no size, type or fixed place before the run.
    #[error("tensor `{tensor}` has no size and type that are known before the run")]
    NotFixed {
        /// Which.
        tensor: String,
    },
    /// An operand lies nowhere in the arena.
    #[error("`{tensor}` has no place in the arena where it is needed")]
    NotPlaced {
        /// Which.
        tensor: String,
    },
    /// An operator would write over what it reads, or twice.
    #[error("operator `{op}`: {} overlaps {}", operands[0], operands[1])]
    Overlap {
        /// Which.
        op: String,
        /// Which two operands.
        operands: [String; 2],
    },
    /// There is no memory for the arena.
    #[error("there is no memory for the arena")]
    Memory(#[from] MemoryError),
    /// There are no threads.
    #[error("{threads} threads cannot be started: {reason}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// Why.
        reason: String,
    },
}

/// Why a run failed. The session can be used again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Too few inputs, or too many.
    #[error("{found} inputs are given, wanted {wanted}: {names}")]
    InputCount {
        /// How many are given.
        found: usize,
        /// How many the model has.
        wanted: usize,
        /// Their names.
        names: String,
    },
    /// An input has another type or shape.
    #[error("input `{name}` is {found} {found_dims:?}, wanted {wanted} {wanted_dims}")]
    Input {
        /// Its name.
        name: String,
        /// The type that is given.
        found: DType,
        /// The shape that is given.
        found_dims: Vec<usize>,
        /// The model's type.
        wanted: DType,
        /// The model's shape, with `?` or names for what may be anything.
        wanted_dims: String,
    },
    /// An input is larger than the plan has room for.
    #[error("input `{name}` takes {found}, the plan has room for {most}")]
    LargeInput {
        /// Its name.
        name: String,
        /// What it takes.
        found: Bytes,
        /// What it may take.
        most: Bytes,
    },
    /// An input's bytes lie where elements of its type may not.
    #[error("the bytes of input `{name}` are not aligned for {dtype}")]
    Unaligned {
        /// Its name.
        name: String,
        /// Its type.
        dtype: DType,
    },
    /// Somebody ended it.
    #[error("the run was cancelled")]
    Cancelled,
    /// The memory that is lent is too small.
    #[error("the shared arena has {found}, wanted {wanted} at a multiple of {align}")]
    SmallArena {
        /// What it has.
        found: Bytes,
        /// What the session needs.
        wanted: Bytes,
        /// What its first byte has to lie at.
        align: Align,
    },
    /// The session has no memory of its own.
    #[error("the session has no memory of its own; wanted a run in a shared arena")]
    NoArena,
    /// The pool has too little memory free, and no run is left that could free any.
    #[error(
        "operator `{op}` wants {wanted} of the pool; {free} are free below the limit of {limit}, at most {largest} of them in one piece"
    )]
    PoolExhausted {
        /// Which operator.
        op: String,
        /// What it asked for.
        wanted: Bytes,
        /// How many bytes are free.
        free: Bytes,
        /// How many of them lie side by side.
        largest: Bytes,
        /// How many the pool may give out at once.
        limit: Bytes,
    },
    /// There is no memory for the pool.
    #[error("there is no memory in the pool for operator `{op}`")]
    PoolMemory {
        /// Which operator.
        op: String,
        /// Why.
        #[source]
        source: MemoryError,
    },
    /// An operator cannot be run on inputs of the sizes that it was given.
    #[error("operator `{op}` of type {kind} cannot be run on these inputs")]
    Late {
        /// Which operator.
        op: String,
        /// Its type.
        kind: String,
        /// Why not.
        source: NoKernel,
    },
    /// In guard mode: bytes that nobody holds were written.
    #[error(
        "{when}, bytes {start} to {end} of the arena are written, which nobody holds then\n{history}"
    )]
    Damaged {
        /// The first byte.
        start: usize,
        /// The end.
        end: usize,
        /// When that was found.
        when: String,
        /// What the blocks around it held, the latest last.
        history: String,
    },
    /// A kernel failed.
    #[error("operator `{op}` of type {kind} failed")]
    Kernel {
        /// Which operator.
        op: String,
        /// Its type.
        kind: String,
        /// Why.
        source: KernelError,
    },
}

impl RunError {
    /// A kernel of an operator failed.
    pub(crate) fn kernel(graph: &Graph, op: OpId, source: KernelError) -> Self {
        let kind = graph.ops()[op].kind.to_string();
        Self::Kernel { op: graph.op_label(op), kind, source }
    }
}

/// Memory that a session holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// The plan's arena.
    pub arena: Bytes,
    /// Outputs that the plan leaves to the caller, behind the arena.
    pub outputs: Bytes,
    /// What libraries under the kernels may hold at most on all threads together, beside the arena; of late kernels, those
    /// that have run.
    pub kernels: Bytes,
    /// Weights whose bytes in the file were not aligned, and were copied.
    pub copied_weights: Bytes,
    /// The most that tensors and scratch in the pool took at once, in the last run.
    pub pool_peak: Bytes,
    /// Blocks of the pool that are held now: after a run, those of its outputs.
    pub pool_blocks: usize,
}

/// A program with a plan, memory and threads.
#[derive(Debug)]
pub struct Session {
    core: Core,
    /// None if the memory is lent.
    arena: Option<Arena>,
    pool: Arc<ThreadPool>,
}

/// All but the memory and the threads.
#[derive(Debug)]
struct Core {
    /// Outputs of the last run that are not in the arena. They are given up before the pool is.
    results: Vec<Option<LateOutput>>,
    engine: Engine,
    workers: Vec<Worker>,
    /// With several workers.
    handover: Option<Handover>,
    profile: Option<IndexVec<RunId, Duration>>,
    /// What kernels that are made before a run keep on each thread at most.
    hidden_bytes: Bytes,
    threads: usize,
    canceller: Canceller,
}

/// Ends the runs of a session from another thread.
#[derive(Clone, Debug, Default)]
pub struct Canceller(Arc<AtomicBool>);

impl Canceller {
    /// No further operator of the run under way begins; it fails with [`RunError::Cancelled`]. If none is under way, the next
    /// one does.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Session {
    /// Binds a program to a plan of its graph, in memory of this processor.
    pub fn new(
        program: Program,
        plan: CheckedPlan,
        config: &SessionConfig,
    ) -> Result<Self, SessionError> {
        Self::in_memory(program, plan, config, &mut HostMemory::default())
    }

    /// Binds a program to a plan of its graph. The memory is asked for one block.
    pub fn in_memory(
        program: Program,
        plan: CheckedPlan,
        config: &SessionConfig,
        memory: &mut dyn Memory,
    ) -> Result<Self, SessionError> {
        let pool_memory = Box::new(HostMemory::default());
        Self::in_memories(program, plan, config, (memory, pool_memory))
    }

    /// [`Session::in_memory`], with the pool's segments from another memory.
    pub fn in_memories(
        program: Program,
        plan: CheckedPlan,
        config: &SessionConfig,
        (memory, pool_memory): (&mut dyn Memory, Box<dyn Memory>),
    ) -> Result<Self, SessionError> {
        let mut session = Self::bind(program, plan, config, pool_memory)?;
        let engine = &session.core.engine;
        session.arena = Some(Arena::new(memory, engine.bound.bytes, engine.plan.align)?);
        Ok(session)
    }

    /// Binds a program to a plan of its graph, to be run by [`Session::run_in`].
    pub fn without_arena(
        program: Program,
        plan: CheckedPlan,
        config: &SessionConfig,
    ) -> Result<Self, SessionError> {
        Self::bind(program, plan, config, Box::new(HostMemory::default()))
    }

    fn bind(
        program: Program,
        plan: CheckedPlan,
        config: &SessionConfig,
        pool_memory: Box<dyn Memory>,
    ) -> Result<Self, SessionError> {
        let threads = config.threads.max(config.workers);
        let pool = pool(threads)?;
        let engine = engine(program, plan.into_plan(), config, pool_memory)?;
        let kernels = engine.kernels.iter().flatten();
        let results = engine.outputs.iter().map(|_| None).collect();
        let hidden = kernels.map(|kernel| kernel.lock().0.hidden_bytes()).max();
        let is_timed = config.profile || config.guard;
        let runs = engine.plan.schedule.len();
        let workers = (0..).take(config.workers.get());
        let core = Core {
            hidden_bytes: hidden.unwrap_or_default(),
            threads: threads.get(),
            profile: config.profile.then(|| IndexVec::filled(runs, Duration::ZERO)),
            handover: (config.workers.get() > 1)
                .then(|| Handover::new(runs, &engine.plan.waits(&engine.graph))),
            workers: workers.map(|number| Worker::new(number, &engine, is_timed)).collect(),
            canceller: Canceller::default(),
            results,
            engine,
        };
        Ok(Self { core, arena: None, pool: Arc::new(pool) })
    }

    /// What the caller gives, in order.
    pub fn inputs(&self) -> &[TensorSpec] {
        &self.core.engine.inputs
    }

    /// What the caller gets, in order.
    pub fn outputs(&self) -> &[TensorSpec] {
        &self.core.engine.outputs
    }

    /// The graph that is run.
    pub fn graph(&self) -> &Graph {
        &self.core.engine.graph
    }

    /// The plan that is followed.
    pub fn plan(&self) -> &Plan {
        &self.core.engine.plan
    }

    /// Memory that the session holds; its arena also if that is lent.
    pub fn memory(&self) -> MemoryUse {
        let Engine { plan, bound, weights, late, .. } = &self.core.engine;
        let pooled = late.as_ref().map(|late| &late.pooled);
        let of_late = late.as_ref().map_or(Bytes::ZERO, Lates::hidden_bytes);
        let hidden = self.core.hidden_bytes.max(of_late);
        MemoryUse {
            arena: plan.stats.arena_bytes,
            outputs: bound.bytes.saturating_sub(plan.stats.arena_bytes),
            kernels: Bytes(hidden.0 * self.core.threads as u64),
            copied_weights: weights.copied(),
            pool_peak: pooled.map_or(Bytes::ZERO, Pooled::peak),
            pool_blocks: pooled.map_or(0, Pooled::blocks),
        }
    }

    /// What the pool holds; `None` if no size is open. Between two runs the outputs of the last are still in it.
    pub fn pool_stats(&self) -> Option<PoolStats> {
        self.core.engine.late.as_ref().map(|late| late.pooled.stats())
    }

    /// What moving blocks of the pool together has done so far.
    pub fn compactions(&self) -> Compactions {
        let late = self.core.engine.late.as_ref();
        late.map(|late| late.pooled.compactions()).unwrap_or_default()
    }

    /// Bytes of the arena with what lies behind it, and the alignment of its first byte.
    pub(crate) fn arena_wanted(&self) -> (Bytes, Align) {
        (self.core.engine.bound.bytes, self.core.engine.plan.align)
    }

    /// The time that each run of an operator took in the last [`Session::run`]; `None` without a profile.
    pub fn profile(&self) -> Option<&IndexVec<RunId, Duration>> {
        self.core.profile.as_ref()
    }

    /// What ran when and on which worker in the last [`Session::run`], worker by worker; nothing without a profile or guard mode.
    pub fn ran(&self) -> impl Iterator<Item = Ran> {
        self.core.workers.iter().flat_map(|worker| worker.ran.iter().copied())
    }

    /// What ends runs of this session, to be given to another thread.
    pub fn canceller(&self) -> Canceller {
        self.core.canceller.clone()
    }

    /// Runs the program. Inputs are given in the order of [`Session::inputs`]; outputs can be read until the next
    /// run. Outside of [`Session::within`], entering the thread pool may now and then allocate a block of its queue.
    pub fn run<'a>(&'a mut self, inputs: &'a [TensorRef<'a>]) -> Result<Outputs<'a>, RunError> {
        let arena = self.arena.as_mut().ok_or(RunError::NoArena)?;
        follow(&mut self.core, &self.pool, inputs, arena)?;
        Ok(Outputs { core: &self.core, arena, inputs })
    }

    /// [`Session::run`] in memory that several sessions use in turn: the outputs can be read until any of them runs.
    pub fn run_in<'a>(
        &'a mut self,
        arena: &'a mut SharedArena,
        inputs: &'a [TensorRef<'a>],
    ) -> Result<Outputs<'a>, RunError> {
        let (wanted, align) = self.arena_wanted();
        let arena = arena.for_run(wanted, align)?;
        follow(&mut self.core, &self.pool, inputs, arena)?;
        Ok(Outputs { core: &self.core, arena, inputs })
    }

    /// Does `work` on a thread of the session's pool, so that the runs in it allocate nothing at all.
    pub fn within<R: Send>(&mut self, work: impl FnOnce(&mut Self) -> R + Send) -> R {
        let pool = Arc::clone(&self.pool);
        pool.install(|| work(self))
    }
}

/// Runs all on threads of the session's pool.
fn follow(
    core: &mut Core,
    pool: &ThreadPool,
    inputs: &[TensorRef<'_>],
    arena: &mut Arena,
) -> Result<(), RunError> {
    check_inputs(&core.engine.inputs, inputs)?;
    core.check_bounds(inputs)?;
    if pool.current_thread_index().is_some() {
        return core.follow(inputs, arena);
    }
    // A sanitizer does not see what the locks of the pool order; it sees this.
    let gate = AtomicBool::new(false);
    gate.store(true, Ordering::Release);
    let done = pool.install(|| {
        gate.load(Ordering::Acquire);
        let done = core.follow(inputs, arena);
        gate.store(false, Ordering::Release);
        done
    });
    gate.load(Ordering::Acquire);
    done
}

/// What never changes.
fn engine(
    mut program: Program,
    plan: Plan,
    config: &SessionConfig,
    pool_memory: Box<dyn Memory>,
) -> Result<Engine, SessionError> {
    let (found, wanted) = (plan.fingerprint, program.graph.fingerprint());
    if found != wanted {
        return Err(SessionError::WrongGraph { found, wanted });
    }
    let weights = Weights::new(&program)?;
    let inputs = specs(&program, &program.inputs)?;
    let outputs = specs(&program, &program.outputs)?;
    let bound = bind(&program, &plan)?;
    let pool = PoolConfig { workers: config.workers, ..config.pool.clone() };
    let pool = Pool::new(&pool, pool_memory);
    let late = Lates::new(&mut program, &plan, &bound, pool, config.guard);
    let ids = [program.inputs.clone(), program.outputs.clone()];
    let Program { graph, calls, shapes, .. } = program;
    let kernel = |call: Option<Prepared>| call.map(|call| Mutex::new(KernelBox(call.kernel)));
    let kernels = into_rows(calls).map(kernel).collect();
    let guard = config.guard.then(|| Guard::new(&graph, &plan, config.workers.get()));
    Ok(Engine { graph, plan, kernels, shapes, weights, bound, inputs, outputs, ids, guard, late })
}

fn pool(threads: NonZeroUsize) -> Result<ThreadPool, SessionError> {
    let named = ThreadPoolBuilder::new().thread_name(|index| format!("lowtide {index}"));
    named.num_threads(threads.get()).build().map_err(|error| SessionError::Threads {
        threads: threads.get(),
        reason: error.to_string(),
    })
}

fn into_rows<I: lowtide_core::Id, T>(rows: IndexVec<I, T>) -> impl Iterator<Item = T> {
    Vec::from(rows).into_iter()
}

fn specs(program: &Program, ids: &[TensorId]) -> Result<Vec<TensorSpec>, SessionError> {
    ids.iter().map(|&id| TensorSpec::of(program, id)).collect()
}

/// That inputs are as many as wanted, each of the type and shape that its specification says.
pub(crate) fn check_inputs(specs: &[TensorSpec], inputs: &[TensorRef<'_>]) -> Result<(), RunError> {
    if inputs.len() != specs.len() {
        let names: Vec<String> = specs.iter().map(|spec| format!("`{}`", spec.name)).collect();
        return Err(RunError::InputCount {
            found: inputs.len(),
            wanted: specs.len(),
            names: names.join(", "),
        });
    }
    for (spec, input) in specs.iter().zip(inputs) {
        if input.dtype() != spec.dtype || !spec.takes(input.dims()) {
            return Err(RunError::Input {
                name: spec.name.clone(),
                found: input.dtype(),
                found_dims: input.dims().to_vec(),
                wanted: spec.dtype,
                wanted_dims: spec.shape_text(),
            });
        }
        if !input.is_aligned() {
            let (name, dtype) = (spec.name.clone(), spec.dtype);
            return Err(RunError::Unaligned { name, dtype });
        }
    }
    Ok(())
}

impl Core {
    /// Puts the inputs where the plan wants them, then runs all.
    fn follow(&mut self, inputs: &[TensorRef<'_>], arena: &mut Arena) -> Result<(), RunError> {
        self.results.fill_with(|| None);
        if self.engine.late.is_none() {
            return self.run_all(inputs, arena, false);
        }
        self.start_late(inputs);
        let cleared = Cleared(self);
        let mut done = cleared.0.run_all(inputs, arena, false);
        if cleared.0.handover.is_some() && matches!(done, Err(RunError::PoolExhausted { .. })) {
            // Several workers may hold memory in vain, each for what it does next. One in the order of the plan does not.
            cleared.0.start_late(inputs);
            done = cleared.0.run_all(inputs, arena, true);
        }
        if let Some(late) = &cleared.0.engine.late {
            late.pooled.end_run();
        }
        done?;
        cleared.0.keep_results();
        // What is kept is freed by the next run.
        std::mem::forget(cleared);
        Ok(())
    }

    fn start_late(&self, inputs: &[TensorRef<'_>]) {
        if let Some(late) = &self.engine.late {
            late.start(&self.engine.ids[0], inputs);
        }
    }

    /// That no input is larger than what the plan has for it.
    fn check_bounds(&self, inputs: &[TensorRef<'_>]) -> Result<(), RunError> {
        let Engine { graph, late, ids, inputs: specs, .. } = &self.engine;
        if late.is_none() {
            return Ok(());
        }
        for ((&id, input), spec) in ids[0].iter().zip(inputs).zip(specs) {
            let found = Bytes(input.bytes().len() as u64);
            let most = graph.tensors()[id].size.bound();
            if let Some(most) = most.filter(|&most| found > most) {
                return Err(RunError::LargeInput { name: spec.name.clone(), found, most });
            }
        }
        Ok(())
    }

    /// Remembers the outputs of a run that are not in the arena, or of a shape that was found in it.
    fn keep_results(&mut self) {
        let Engine { late: Some(late), bound, ids, .. } = &self.engine else { return };
        for (result, (&id, source)) in
            self.results.iter_mut().zip(ids[1].iter().zip(&bound.outputs))
        {
            *result = Some(late.output(id, source));
        }
    }

    /// Follows the plan, on one worker only if that is wanted.
    fn run_all(
        &mut self,
        inputs: &[TensorRef<'_>],
        arena: &mut Arena,
        is_alone: bool,
    ) -> Result<(), RunError> {
        let Self { engine, workers, handover, profile, canceller, .. } = self;
        if let Some(guard) = &engine.guard {
            let all = 0..arena.bytes().len();
            poison(arena.bytes_mut(), all);
            guard.cells.start();
        }
        for (input, place) in inputs.iter().zip(&engine.bound.inputs) {
            if let Some(range) = place {
                arena.bytes_mut()[range.clone()][..input.bytes().len()]
                    .copy_from_slice(input.bytes());
            }
        }
        for worker in &mut *workers {
            worker.start();
        }
        let memory = &arena.share();
        let is_timed = profile.is_some() || engine.guard.is_some();
        let (start, is_cancelled) = (is_timed.then(now), &*canceller.0);
        let running = Running { engine, memory, inputs, start, is_cancelled };
        let done = match handover {
            Some(handover) if !is_alone => together(running, handover, workers),
            _ => alone(running, &mut workers[0]),
        };
        if matches!(done, Err(RunError::Cancelled)) {
            canceller.0.store(false, Ordering::Relaxed);
        }
        for ran in workers.iter().flat_map(|worker| &worker.ran) {
            if let Some(profile) = profile {
                profile[ran.run] = ran.end.saturating_sub(ran.start);
            }
        }
        done?;
        let guard = engine.guard.as_ref();
        let damage = guard.and_then(|guard| damaged(arena.bytes(), guard.zones.always()));
        let ran = workers.iter().flat_map(|worker| &worker.ran);
        damage.map_or(Ok(()), |bytes| Err(engine.damage(bytes, "in the end".to_owned(), ran)))
    }
}

/// A run under way: however it ends, unless well, all that it holds of the pool is freed.
struct Cleared<'a>(&'a mut Core);

impl Drop for Cleared<'_> {
    fn drop(&mut self) {
        if let Some(late) = &self.0.engine.late {
            late.pooled.clear();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a profile is times; nothing is decided by them")]
fn now() -> Instant {
    Instant::now()
}

/// The outputs of one run, in the arena or the pool (or, where an output is an input or a weight, there).
#[derive(Clone, Copy, Debug)]
pub struct Outputs<'a> {
    core: &'a Core,
    arena: &'a Arena,
    inputs: &'a [TensorRef<'a>],
}

impl<'a> Outputs<'a> {
    /// How many there are.
    pub fn len(self) -> usize {
        self.core.engine.outputs.len()
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.core.engine.outputs.is_empty()
    }

    /// Output `at`, to be read until the next run; with the shape that it has in this one.
    pub fn get(self, at: usize) -> Option<TensorRef<'a>> {
        let Engine { outputs, bound, shapes, ids, weights, late, .. } = &self.core.engine;
        let (spec, source) = outputs.get(at).zip(bound.outputs.get(at))?;
        let result = self.core.results.get(at)?.as_ref();
        let dims = result.and_then(|result| result.dims.as_deref());
        let cut = |range: &Range<usize>| match dims {
            Some(dims) => {
                let len = bytes(Some(spec.dtype), dims).unwrap_or(range.len());
                range.start..range.start + len
            }
            None => range.clone(),
        };
        let bytes = match source {
            Source::Arena(range) => &self.arena.bytes()[cut(range)],
            Source::Weight(id, range) => &weights.bytes(*id)[cut(range)],
            Source::Caller(number, range) => &self.inputs[*number].bytes()[cut(range)],
            Source::Pool(_) => late.as_ref()?.pooled.bytes(result?.stored.as_ref()?),
            Source::Output { .. } => return None,
        };
        let dims = dims.unwrap_or(&shapes[ids[1][at]]);
        Some(TensorRef::trusted(spec.dtype, dims, bytes))
    }

    /// All of them, in order.
    pub fn iter(self) -> impl Iterator<Item = TensorRef<'a>> {
        (0..self.len()).filter_map(move |at| self.get(at))
    }
}
