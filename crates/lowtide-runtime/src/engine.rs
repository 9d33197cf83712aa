//! [`Engine`]: what a session knows and never changes, and how one run of an operator is done with it.
//!
//! ~~~text
//! Engine (kernels, weights, where operands lie) + Shared memory + inputs ──> Running ── execute(run) on any worker
//! ~~~

use crate::RunError;
use crate::arena::{Given, Lent, Shared, Spare};
use crate::bind::{Bound, BoundRun};
use crate::cells::Cells;
use crate::history;
use crate::late::{Lates, Refusal};
use crate::redzone::Zones;
use crate::tensor::{TensorRef, TensorSpec};
use crate::weights::Weights;
use lowtide_core::operator::{Kernel, Operands};
use lowtide_core::{Graph, IndexVec, OpId, Plan, Ran, RunId, TensorId};
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// So far beside damaged bytes, in bytes, the history of blocks is told.
const NEAR: usize = 256;

#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) graph: Graph,
    pub(crate) plan: Plan,
    /// Each used by one worker at a time.
    pub(crate) kernels: IndexVec<OpId, Option<Mutex<KernelBox>>>,
    pub(crate) shapes: IndexVec<TensorId, Box<[usize]>>,
    pub(crate) weights: Weights,
    pub(crate) bound: Bound,
    pub(crate) inputs: Vec<TensorSpec>,
    pub(crate) outputs: Vec<TensorSpec>,
    /// The ids of the inputs, and of the outputs.
    pub(crate) ids: [Vec<TensorId>; 2],
    pub(crate) guard: Option<Guard>,
    /// If some size is known in the run only.
    pub(crate) late: Option<Lates>,
}

/// What guard mode knows of a plan.
#[derive(Debug)]
pub(crate) struct Guard {
    /// What is poisoned when.
    pub(crate) cells: Cells,
    /// What has to be poison when.
    pub(crate) zones: Zones,
}

impl Guard {
    pub(crate) fn new(graph: &Graph, plan: &Plan, workers: usize) -> Self {
        let cells = Cells::new(graph, plan);
        let zones = Zones::new(graph, plan, workers == 1 && cells.is_complete);
        Self { cells, zones }
    }
}

impl Engine {
    /// Bytes that nobody holds have been written, as the last writes nearby may tell.
    pub(crate) fn damage<'r>(
        &self,
        bytes: Range<usize>,
        when: String,
        ran: impl IntoIterator<Item = &'r Ran>,
    ) -> RunError {
        let history = history::near(&self.graph, &self.plan, ran, bytes.clone(), NEAR);
        RunError::Damaged { start: bytes.start, end: bytes.end, when, history }
    }
}

/// A kernel, of which there is nothing to show.
pub(crate) struct KernelBox(pub(crate) Box<dyn Kernel>);

impl std::fmt::Debug for KernelBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("kernel")
    }
}

/// What a worker has for itself.
#[derive(Debug)]
pub(crate) struct Worker {
    number: u32,
    spare: Spare,
    /// What it ran, if that is noted; as long as a plan can be from the beginning.
    pub(crate) ran: Vec<Ran>,
    /// When it was done with its last operator.
    idle_since: Duration,
}

impl Worker {
    pub(crate) fn new(number: u32, engine: &Engine, is_timed: bool) -> Self {
        let runs = if is_timed { engine.plan.schedule.len() } else { 0 };
        let spare = Spare::for_runs(engine.bound.runs.iter().flatten());
        Self { number, spare, ran: Vec::with_capacity(runs), idle_since: Duration::ZERO }
    }

    pub(crate) fn number(&self) -> usize {
        self.number as usize
    }

    pub(crate) fn spare(&mut self) -> &mut Spare {
        &mut self.spare
    }

    pub(crate) fn start(&mut self) {
        self.ran.clear();
        self.idle_since = Duration::ZERO;
    }
}

/// One run of the whole graph, seen by all workers.
#[derive(Clone, Copy)]
pub(crate) struct Running<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) memory: &'a Shared<'a>,
    pub(crate) inputs: &'a [TensorRef<'a>],
    /// When it began, if times are noted.
    pub(crate) start: Option<Instant>,
    pub(crate) is_cancelled: &'a AtomicBool,
}

/// What became of a run.
pub(crate) enum Outcome {
    Done {
        /// Whether memory of the pool was freed with it.
        freed: bool,
    },
    /// The pool has too little memory free for it now. It can be tried again.
    Full(Box<RunError>),
}

impl Running<'_> {
    /// Does one run, then poisons and frees what nobody uses after it. Whoever comes here has everything that the run waits
    /// for behind it.
    pub(crate) fn execute(&self, run: RunId, worker: &mut Worker) -> Result<Outcome, RunError> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(RunError::Cancelled);
        }
        if let Some(bound) = &self.engine.bound.runs[run] {
            let start = self.start.map(|start| start.elapsed());
            let late = self.engine.late.as_ref().filter(|late| late.has(bound.op()));
            match late {
                Some(late) => {
                    if let Err(error) = self.call_late(late, bound, worker)? {
                        return Ok(Outcome::Full(error));
                    }
                }
                None => self.call(bound, worker)?,
            }
            self.note(run, start, worker);
        }
        for range in self.engine.guard.iter().flat_map(|guard| guard.cells.finish(run)) {
            self.memory.poison(range);
        }
        let late = self.engine.late.as_ref();
        let freed = late.is_some_and(|late| late.finish(run, worker.number()));
        Ok(Outcome::Done { freed })
    }

    fn given(&self) -> Given<'_> {
        let Engine { shapes, weights, .. } = self.engine;
        Given { shapes, weights, inputs: self.inputs }
    }

    /// Kept out of the way of all others, which are many more. The inner error is that the pool has too little.
    #[inline(never)]
    fn call_late(
        &self,
        late: &Lates,
        bound: &BoundRun,
        worker: &mut Worker,
    ) -> Result<Result<(), Box<RunError>>, RunError> {
        let memory = (self.memory, self.given());
        match late.call(&self.engine.graph, bound, memory, worker) {
            Ok(()) => Ok(Ok(())),
            Err(Refusal::Full(error)) => Ok(Err(Box::new(error))),
            Err(Refusal::Failed(error)) => Err(error),
        }
    }

    fn call(&self, bound: &BoundRun, worker: &mut Worker) -> Result<(), RunError> {
        let engine = self.engine;
        let kernel = engine.kernels[bound.op()].as_ref().expect("what is bound has a kernel");
        let mut kernel = kernel.lock();
        let work = |operands: &mut Operands<'_>| kernel.0.run(operands);
        let given = (self.given(), Lent::default());
        let done = self.memory.with_operands(bound, given, &mut worker.spare, work);
        done.map_err(|source| RunError::kernel(&engine.graph, bound.op(), source))
    }

    fn note(&self, run: RunId, start: Option<Duration>, worker: &mut Worker) {
        let (Some(start), Some(began)) = (start, self.start) else { return };
        let end = began.elapsed();
        let waited = start.saturating_sub(worker.idle_since);
        worker.ran.push(Ran { run, worker: worker.number, waited, start, end });
        worker.idle_since = end;
    }
}
