//! [`Session`]: inputs in, outputs out, again and again.
//!
//! ~~~text
//! run(inputs):  check them ── copy those that the arena owns ── ALLOC, EXEC, FREE, ... ── outputs, borrowed
//! ~~~
//! A failed run leaves the session as usable as before: a run begins with the events and ends with them, and nothing
//! else is remembered. One thread follows the events; kernels may use more, from a pool of the session's own.

use crate::arena::{Arena, Given, Spare};
use crate::bind::{Bound, Source, bind};
use crate::guard;
use crate::memory::{HostMemory, Memory, MemoryError};
use crate::tensor::{TensorRef, TensorSpec};
use crate::weights::Weights;
use lowtide_core::operator::{Kernel, KernelError, Program};
use lowtide_core::{
    Bytes, CheckedPlan, DType, Event, Fingerprint, Graph, IndexVec, OpId, Plan, RunId, Size,
    TensorId,
};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a session runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Threads that a kernel may use.
    pub threads: NonZeroUsize,
    /// Poison what is freed, and all of the arena before a run: a read of bytes that nobody wrote shows.
    pub guard: bool,
    /// Take the time of each operator.
    pub profile: bool,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self { threads: NonZeroUsize::MIN, guard: false, profile: false }
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
    #[error("input `{name}` is {found} {found_dims:?}, wanted {wanted} {wanted_dims:?}")]
    Input {
        /// Its name.
        name: String,
        /// The type that is given.
        found: DType,
        /// The shape that is given.
        found_dims: Vec<usize>,
        /// The model's type.
        wanted: DType,
        /// The model's shape.
        wanted_dims: Vec<usize>,
    },
    /// An input's bytes lie where elements of its type may not.
    #[error("the bytes of input `{name}` are not aligned for {dtype}")]
    Unaligned {
        /// Its name.
        name: String,
        /// Its type.
        dtype: DType,
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

/// Memory that a session holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// The plan's arena.
    pub arena: Bytes,
    /// Outputs that the plan leaves to the caller, behind the arena.
    pub outputs: Bytes,
    /// What libraries under the kernels may hold at most on all threads together, beside the arena.
    pub kernels: Bytes,
    /// Weights whose bytes in the file were not aligned, and were copied.
    pub copied_weights: Bytes,
}

/// A program with a plan, memory and threads.
#[derive(Debug)]
pub struct Session {
    core: Core,
    pool: Arc<ThreadPool>,
}

#[derive(Debug)]
struct Core {
    graph: Graph,
    plan: Plan,
    kernels: IndexVec<OpId, Option<KernelBox>>,
    shapes: IndexVec<TensorId, Box<[usize]>>,
    weights: Weights,
    bound: Bound,
    arena: Arena,
    spare: Spare,
    inputs: Vec<TensorSpec>,
    outputs: Vec<TensorSpec>,
    /// In guard mode: what each event frees.
    freed: Option<Vec<Vec<Range<usize>>>>,
    profile: Option<IndexVec<RunId, Duration>>,
    kernel_bytes: Bytes,
}

/// A kernel, of which there is nothing to show.
struct KernelBox(Box<dyn Kernel>);

impl std::fmt::Debug for KernelBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("kernel")
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
        let plan = plan.into_plan();
        let (found, wanted) = (plan.fingerprint, program.graph.fingerprint());
        if found != wanted {
            return Err(SessionError::WrongGraph { found, wanted });
        }
        let weights = Weights::new(&program)?;
        let inputs = specs(&program, &program.inputs)?;
        let outputs = specs(&program, &program.outputs)?;
        let bound = bind(&program, &plan)?;
        let arena = Arena::new(memory, bound.bytes, plan.align)?;
        let pool = threads(config.threads)?;
        let Program { graph, calls, shapes, .. } = program;
        let kernels: IndexVec<OpId, Option<KernelBox>> =
            into_rows(calls).map(|call| call.map(|call| KernelBox(call.kernel))).collect();
        let hidden = kernels.iter().flatten().map(|kernel| kernel.0.hidden_bytes()).max();
        let core = Core {
            kernel_bytes: Bytes(hidden.unwrap_or_default().0 * config.threads.get() as u64),
            spare: Spare::for_runs(bound.runs.iter().flatten()),
            freed: config.guard.then(|| guard::freed(&plan)),
            profile: config.profile.then(|| IndexVec::filled(plan.schedule.len(), Duration::ZERO)),
            graph,
            plan,
            kernels,
            shapes,
            weights,
            bound,
            arena,
            inputs,
            outputs,
        };
        Ok(Self { core, pool: Arc::new(pool) })
    }

    /// What the caller gives, in order.
    pub fn inputs(&self) -> &[TensorSpec] {
        &self.core.inputs
    }

    /// What the caller gets, in order.
    pub fn outputs(&self) -> &[TensorSpec] {
        &self.core.outputs
    }

    /// The graph that is run.
    pub fn graph(&self) -> &Graph {
        &self.core.graph
    }

    /// The plan that is followed.
    pub fn plan(&self) -> &Plan {
        &self.core.plan
    }

    /// Memory that the session holds.
    pub fn memory(&self) -> MemoryUse {
        let Core { plan, bound, weights, kernel_bytes, .. } = &self.core;
        MemoryUse {
            arena: plan.stats.arena_bytes,
            outputs: bound.bytes.saturating_sub(plan.stats.arena_bytes),
            kernels: *kernel_bytes,
            copied_weights: weights.copied(),
        }
    }

    /// The time that each run of an operator took in the last [`Session::run`]; `None` without a profile.
    pub fn profile(&self) -> Option<&IndexVec<RunId, Duration>> {
        self.core.profile.as_ref()
    }

    /// Runs the program. Inputs are given in the order of [`Session::inputs`]; outputs can be read until the next
    /// run. Outside of [`Session::within`], entering the thread pool may now and then allocate a block of its queue.
    pub fn run<'a>(&'a mut self, inputs: &'a [TensorRef<'a>]) -> Result<Outputs<'a>, RunError> {
        let core = &mut self.core;
        core.check_inputs(inputs)?;
        if self.pool.current_thread_index().is_some() {
            core.follow(inputs)?;
        } else {
            self.pool.install(|| core.follow(inputs))?;
        }
        Ok(Outputs { core, inputs })
    }

    /// Does `work` on a thread of the session's pool, so that the runs in it allocate nothing at all.
    pub fn within<R: Send>(&mut self, work: impl FnOnce(&mut Self) -> R + Send) -> R {
        let pool = Arc::clone(&self.pool);
        pool.install(|| work(self))
    }
}

fn threads(threads: NonZeroUsize) -> Result<ThreadPool, SessionError> {
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
    let spec = |&id: &TensorId| {
        let tensor = &program.graph.tensors()[id];
        let name = program.graph.tensor_label(id);
        let dtype = tensor.dtype.ok_or_else(|| SessionError::NotFixed { tensor: name.clone() })?;
        Ok(TensorSpec { name, dtype, dims: program.shapes[id].clone() })
    };
    ids.iter().map(spec).collect()
}

impl Core {
    fn check_inputs(&self, inputs: &[TensorRef<'_>]) -> Result<(), RunError> {
        if inputs.len() != self.inputs.len() {
            let names: Vec<String> =
                self.inputs.iter().map(|spec| format!("`{}`", spec.name)).collect();
            return Err(RunError::InputCount {
                found: inputs.len(),
                wanted: self.inputs.len(),
                names: names.join(", "),
            });
        }
        for (spec, input) in self.inputs.iter().zip(inputs) {
            if input.dtype() != spec.dtype || input.dims() != &*spec.dims {
                return Err(RunError::Input {
                    name: spec.name.clone(),
                    found: input.dtype(),
                    found_dims: input.dims().to_vec(),
                    wanted: spec.dtype,
                    wanted_dims: spec.dims.to_vec(),
                });
            }
            if !input.is_aligned() {
                let (name, dtype) = (spec.name.clone(), spec.dtype);
                return Err(RunError::Unaligned { name, dtype });
            }
        }
        Ok(())
    }

    /// Follows the events.
    fn follow(&mut self, inputs: &[TensorRef<'_>]) -> Result<(), RunError> {
        if self.freed.is_some() {
            let all = 0..self.arena.bytes().len();
            guard::poison(self.arena.bytes_mut(), all);
        }
        for (input, place) in inputs.iter().zip(&self.bound.inputs) {
            if let Some(range) = place {
                self.arena.bytes_mut()[range.clone()].copy_from_slice(input.bytes());
            }
        }
        for index in 0..self.plan.events.len() {
            match self.plan.events[index] {
                Event::Exec(run) => self.execute(run, inputs)?,
                Event::Free(_) => self.free(index),
                // Offsets are planned: there is nothing to ask for.
                _ => {}
            }
        }
        Ok(())
    }

    fn free(&mut self, event: usize) {
        let Some(freed) = &self.freed else { return };
        for range in &freed[event] {
            guard::poison(self.arena.bytes_mut(), range.clone());
        }
    }

    fn execute(&mut self, run: RunId, inputs: &[TensorRef<'_>]) -> Result<(), RunError> {
        let Some(bound) = &self.bound.runs[run] else { return Ok(()) };
        let start = self.profile.is_some().then(now);
        let given = Given { shapes: &self.shapes, weights: &self.weights, inputs };
        let kernel = self.kernels[bound.op()].as_mut().expect("what is bound has a kernel");
        let done = self
            .arena
            .with_operands(bound, given, &mut self.spare, |operands| kernel.0.run(operands));
        if let (Some(profile), Some(start)) = (&mut self.profile, start) {
            profile[run] = start.elapsed();
        }
        done.map_err(|source| RunError::Kernel {
            op: self.graph.op_label(bound.op()),
            kind: self.graph.ops()[bound.op()].kind.to_string(),
            source,
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "a profile is times; nothing is decided by them")]
fn now() -> Instant {
    Instant::now()
}

/// The outputs of one run, in the arena (or, where an output is an input or a weight, there).
#[derive(Clone, Copy, Debug)]
pub struct Outputs<'a> {
    core: &'a Core,
    inputs: &'a [TensorRef<'a>],
}

impl<'a> Outputs<'a> {
    /// How many there are.
    pub fn len(self) -> usize {
        self.core.outputs.len()
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.core.outputs.is_empty()
    }

    /// Output `at`, to be read until the next run.
    pub fn get(self, at: usize) -> Option<TensorRef<'a>> {
        let (spec, source) = self.core.outputs.get(at).zip(self.core.bound.outputs.get(at))?;
        let bytes = match source {
            Source::Arena(range) => &self.core.arena.bytes()[range.clone()],
            Source::Weight(id, range) => &self.core.weights.bytes(*id)[range.clone()],
            Source::Caller(number, range) => &self.inputs[*number].bytes()[range.clone()],
            Source::Output { .. } => return None,
        };
        Some(TensorRef::trusted(spec.dtype, &spec.dims, bytes))
    }

    /// All of them, in order.
    pub fn iter(self) -> impl Iterator<Item = TensorRef<'a>> {
        (0..self.len()).filter_map(move |at| self.get(at))
    }
}
