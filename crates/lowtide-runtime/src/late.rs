//! [`Lates`]: operators whose operands have a size only in the run, and what is known of those operands now.
//!
//! ~~~text
//! inputs ──measure──> shapes ──lease──> blocks of the pool ──kernel──> publish blocks and shapes ──> readers
//!                                └─ too little is free: the run steps back until something is freed, or fails
//! ~~~
//! A shape is written once in a run, by the worker that runs its operator; data order all who read it behind that. Cost: what
//! measuring takes, and a few small allocations, for each late operator; nothing for the others.

use crate::RunError;
use crate::arena::{Given, Lent, LentInput, LentOutput, Shared};
use crate::bind::{Bound, BoundRun, Source, Target};
use crate::engine::Worker;
use crate::memory::MemoryError;
use crate::pool::{Pool, PoolError};
use crate::pooled::{Lease, Pooled, Stored};
use crate::tensor::TensorRef;
use lowtide_core::operator::{LateCall, Measured, NoKernel, Operands, Program};
use lowtide_core::{
    Bytes, DType, Event, Graph, IndexVec, OpId, Plan, RunId, Size, TensorId, element_count,
};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A shape that is known only now.
type Shape = Arc<[usize]>;

#[derive(Debug)]
pub(crate) struct Lates {
    /// Each used by one worker at a time.
    calls: BTreeMap<OpId, Mutex<LateCall>>,
    /// Of each tensor whose shape is not fixed.
    shapes: IndexVec<TensorId, Option<Mutex<Option<Shape>>>>,
    pub(crate) pooled: Pooled,
    /// The most that kernels have kept on a thread up to now.
    hidden: AtomicU64,
    /// After which runs blocks may be moved together.
    compacts: BTreeSet<RunId>,
}

/// Why a late run did not happen.
pub(crate) enum Refusal {
    /// Too little is free now. Nothing was written.
    Full(RunError),
    Failed(RunError),
}

impl From<RunError> for Refusal {
    fn from(error: RunError) -> Self {
        Self::Failed(error)
    }
}

/// What a run reads, kept alive while it does.
struct Taken<'a> {
    dims: Dims<'a>,
    len: usize,
    stored: Option<Arc<Stored>>,
}

enum Dims<'a> {
    Fixed(&'a [usize]),
    Open(Shape),
}

impl Dims<'_> {
    fn get(&self) -> &[usize] {
        match self {
            Self::Fixed(dims) => dims,
            Self::Open(dims) => dims,
        }
    }
}

/// An output of the graph whose shape is not fixed, or that lies in the pool, after a run.
#[derive(Debug)]
pub(crate) struct LateOutput {
    pub(crate) dims: Option<Shape>,
    pub(crate) stored: Option<Arc<Stored>>,
}

impl Lates {
    /// Those of a program; `None` if it has none.
    pub(crate) fn new(
        program: &mut Program,
        plan: &Plan,
        bound: &Bound,
        pool: Pool,
        is_guarded: bool,
    ) -> Option<Self> {
        let graph = &program.graph;
        let is_fixed = |id: TensorId| matches!(graph.tensors()[id].size, Size::Fixed(_));
        let has_open = program.inputs.iter().chain(&program.outputs).any(|&id| !is_fixed(id));
        if program.late.is_empty() && !has_open {
            return None;
        }
        let of_runs = bound.pool.of_runs(graph, plan);
        let shape = |id: TensorId| (!is_fixed(id)).then(|| Mutex::new(None));
        Some(Self {
            shapes: graph.tensors().ids().map(shape).collect(),
            pooled: Pooled::new(pool, bound.pool.len(), of_runs, is_guarded),
            calls: std::mem::take(&mut program.late)
                .into_iter()
                .map(|(op, call)| (op, Mutex::new(call)))
                .collect(),
            hidden: AtomicU64::new(0),
            compacts: compacts(plan),
        })
    }

    /// Frees what a run was the last to use, and moves blocks together where the plan says so; whether anything was freed.
    pub(crate) fn finish(&self, run: RunId, worker: usize) -> bool {
        let freed = self.pooled.finish(run, worker);
        if self.compacts.contains(&run) {
            self.pooled.compact_if_worth();
        }
        freed
    }

    pub(crate) fn has(&self, op: OpId) -> bool {
        self.calls.contains_key(&op)
    }

    /// The most that libraries under its kernels have kept on a thread up to now.
    pub(crate) fn hidden_bytes(&self) -> Bytes {
        Bytes(self.hidden.load(Ordering::Relaxed))
    }

    /// Begins anew, with inputs of these shapes.
    pub(crate) fn start(&self, ids: &[TensorId], inputs: &[TensorRef<'_>]) {
        self.pooled.start();
        for (&id, input) in ids.iter().zip(inputs) {
            self.put_shape(id, || input.dims().into());
        }
    }

    fn put_shape(&self, id: TensorId, shape: impl FnOnce() -> Shape) {
        if let Some(place) = &self.shapes[id] {
            *place.lock() = Some(shape());
        }
    }

    /// The shape of a tensor now; `None` if it is fixed.
    fn shape(&self, id: TensorId) -> Option<Shape> {
        let shape = self.shapes[id].as_ref()?.lock().clone();
        Some(shape.expect("the checker has shown that writers come before readers"))
    }

    /// What an output of the graph is after a run.
    pub(crate) fn output(&self, id: TensorId, source: &Source) -> LateOutput {
        let stored = match source {
            Source::Pool(place) => Some(self.pooled.share(*place)),
            _ => None,
        };
        LateOutput { dims: self.shape(id), stored }
    }

    /// Runs a late operator, or says why not.
    pub(crate) fn call(
        &self,
        graph: &Graph,
        run: &BoundRun,
        (memory, given): (&Shared<'_>, Given<'_>),
        worker: &mut Worker,
    ) -> Result<(), Refusal> {
        let mut call = self.calls[&run.op()].lock();
        let _still = self.pooled.keep_still();
        let LateCall { late, outputs, .. } = &mut *call;
        let taken = self.take(graph, run, given);
        let inputs: Vec<Option<LentInput<'_>>> =
            taken.iter().map(|one| one.as_ref().map(|one| self.lend(one))).collect();
        let measured = memory.with_inputs(run, given, &inputs, |inputs| late.measure(inputs));
        let measured = measured.map_err(|source| misfit(graph, run.op(), source))?;
        let sizes = Sizes::new(graph, run, given, outputs, measured)?;
        let leases = self.pooled.lease(worker.number(), &sizes.in_pool);
        let mut leases = leases.map_err(|error| refusal(graph, run.op(), error))?;
        if let Some(kernel) = late.kernel() {
            let (mut outputs, scratch) = sizes.lend(run, &mut leases);
            let lent = Lent { inputs: &inputs, outputs: &mut outputs, scratch };
            let work = |operands: &mut Operands<'_>| kernel.run(operands);
            let done = memory.with_operands(run, (given, lent), worker.spare(), work);
            done.map_err(|source| RunError::kernel(graph, run.op(), source))?;
            self.hidden.fetch_max(kernel.hidden_bytes().0, Ordering::Relaxed);
        }
        self.publish(run, outputs, sizes, leases);
        Ok(())
    }

    /// What a run reads.
    fn take<'a>(&self, graph: &Graph, run: &BoundRun, given: Given<'a>) -> Vec<Option<Taken<'a>>> {
        let take = |read: &crate::bind::Read| {
            let open = self.shape(read.tensor).map(Dims::Open);
            let dims = open.unwrap_or_else(|| Dims::Fixed(&given.shapes[read.tensor]));
            let len = bytes(graph.tensors()[read.tensor].dtype, dims.get());
            let stored = match read.source {
                Source::Pool(place) => Some(self.pooled.share(place)),
                _ => None,
            };
            Taken { len: len.expect("it was measured"), dims, stored }
        };
        run.reads().iter().map(|read| read.as_ref().map(take)).collect()
    }

    fn lend<'a>(&'a self, taken: &'a Taken<'_>) -> LentInput<'a> {
        // A view may be less than what it is a view of.
        let bytes = taken.stored.as_ref().map(|stored| &self.pooled.bytes(stored)[..taken.len]);
        LentInput { dims: taken.dims.get(), len: taken.len, bytes }
    }

    /// Puts what a run wrote where others find it.
    fn publish(
        &self,
        run: &BoundRun,
        outputs: &[Option<TensorId>],
        sizes: Sizes,
        leases: Vec<Lease<'_>>,
    ) {
        let mut leases = leases.into_iter();
        for write in run.writes().iter().flatten() {
            let Target::Pool(place) = write.target else { continue };
            leases.next().expect("there is a block for each").publish(place);
        }
        for (id, shape) in outputs.iter().zip(sizes.shapes) {
            if let Some((id, shape)) = id.zip(shape) {
                self.put_shape(id, || shape);
            }
        }
    }
}

fn compacts(plan: &Plan) -> BTreeSet<RunId> {
    let run = |event: &Event| if let Event::Compact(run) = event { Some(*run) } else { None };
    plan.events.iter().filter_map(run).collect()
}

/// What the outputs of a run take.
struct Sizes {
    /// The shape of each, by position.
    shapes: Vec<Option<Shape>>,
    /// The bytes of each that is written, by position.
    lens: Vec<usize>,
    /// The bytes of those in the pool, and of the scratch if the plan has too little for it.
    in_pool: Vec<usize>,
    has_scratch: bool,
}

impl Sizes {
    /// An error if an output is not what was planned, or larger.
    fn new(
        graph: &Graph,
        run: &BoundRun,
        given: Given<'_>,
        outputs: &[Option<TensorId>],
        measured: Measured,
    ) -> Result<Self, RunError> {
        let Measured { mut shapes, scratch } = measured;
        shapes.resize(outputs.len(), None);
        let mut sizes =
            Self { lens: vec![0; shapes.len()], shapes, in_pool: Vec::new(), has_scratch: false };
        for (at, (id, shape)) in outputs.iter().zip(&sizes.shapes).enumerate() {
            let Some((&id, shape)) = id.as_ref().zip(shape.as_ref()) else { continue };
            let len = bytes(graph.tensors()[id].dtype, shape);
            let size = graph.tensors()[id].size;
            let is_planned = matches!(size, Size::Fixed(_));
            let text = || format!("output {at} has shape {shape:?}");
            if is_planned && *given.shapes[id] != **shape {
                let wanted = &given.shapes[id];
                let reason = NoKernel::Misfit(format!("{}, planned was {wanted:?}", text()));
                return Err(misfit(graph, run.op(), reason));
            }
            let most = size.bound().map_or(usize::MAX as u64, |bytes| bytes.0);
            let Some(len) = len.filter(|&len| len as u64 <= most) else {
                let reason = NoKernel::Misfit(format!("{}, larger than its bound {size}", text()));
                return Err(misfit(graph, run.op(), reason));
            };
            sizes.lens[at] = len;
        }
        for (at, write) in run.writes().iter().enumerate() {
            if write.as_ref().is_some_and(|write| write.range().is_none()) {
                sizes.in_pool.push(sizes.lens[at]);
            }
        }
        let scratch = usize::try_from(scratch.0).unwrap_or(usize::MAX);
        if scratch > run.scratch().len() {
            sizes.in_pool.push(scratch);
            sizes.has_scratch = true;
        }
        Ok(sizes)
    }

    /// The outputs of a run as its kernel is given them, and its scratch if the pool has it.
    fn lend<'a>(
        &'a self,
        run: &BoundRun,
        leases: &'a mut [Lease<'_>],
    ) -> (Vec<Option<LentOutput<'a>>>, Option<&'a mut [u8]>) {
        let mut leases = leases.iter_mut();
        let outputs = run.writes().iter().enumerate().map(|(at, write)| {
            let write = write.as_ref()?;
            let dims = self.shapes[at].as_deref()?;
            let is_in_pool = write.range().is_none();
            let bytes = is_in_pool.then(|| leases.next().expect("there is a block for each"));
            let bytes = bytes.map(Lease::bytes_mut);
            Some(LentOutput { dims, len: self.lens[at], bytes })
        });
        let outputs = outputs.collect();
        let scratch = if self.has_scratch { leases.next() } else { None };
        (outputs, scratch.map(Lease::bytes_mut))
    }
}

/// The bytes of a shape; `None` for more than there can be.
pub(crate) fn bytes(dtype: Option<DType>, dims: &[usize]) -> Option<usize> {
    let wide: Vec<u64> = dims.iter().map(|&dim| dim as u64).collect();
    let Bytes(bytes) = dtype?.bytes(element_count(&wide)?)?;
    usize::try_from(bytes).ok()
}

fn misfit(graph: &Graph, op: OpId, source: NoKernel) -> RunError {
    RunError::Late { op: graph.op_label(op), kind: graph.ops()[op].kind.to_string(), source }
}

fn refusal(graph: &Graph, op: OpId, source: PoolError) -> Refusal {
    let op = graph.op_label(op);
    match source {
        PoolError::Exhausted { wanted, free, largest, limit } => {
            Refusal::Full(RunError::PoolExhausted { op, wanted, free, largest, limit })
        }
        PoolError::Memory(source) => Refusal::Failed(RunError::PoolMemory { op, source }),
        PoolError::TooLarge { wanted: bytes } => {
            Refusal::Failed(RunError::PoolMemory { op, source: MemoryError::TooLarge { bytes } })
        }
    }
}
