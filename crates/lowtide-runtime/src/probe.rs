//! [`Probe`]: a plan that nobody has judged, followed run by run.
//!
//! ~~~text
//! Plan ──place──> ranges ──bind, one run at a time──> BoundRun ──kernel──> bytes, which anybody may look at
//!                             └─> two operands that overlap: an answer, not an error
//! ~~~
//! What keeps this safe is not the checker but [`BoundRun`](crate::bind::BoundRun) and the arena: ranges are inside the
//! block and apart, or nothing runs. The ids of the plan have to be in range (see `meaning`).
//!
//! [`Values`] are what all tensors are in safe mode: one run of a judged plan, each tensor copied as it is written.

use crate::DoctorError;
use crate::arena::{Arena, Given, Lent, Spare};
use crate::bind::{Placed, Places, Source, place};
use crate::guard;
use crate::memory::HostMemory;
use crate::tensor::TensorRef;
use crate::weights::Weights;
use lowtide_core::operator::{KernelError, Operand, Program};
use lowtide_core::{Bytes, CheckedPlan, Event, IndexVec, OpId, Plan, RunId, TensorId, TensorKind};
use std::ops::Range;

/// What a run needs beside a plan.
pub(crate) struct Bench<'a> {
    pub(crate) program: &'a mut Program,
    pub(crate) weights: &'a Weights,
    pub(crate) inputs: &'a [TensorRef<'a>],
}

impl Bench<'_> {
    /// The same for a shorter time.
    fn lend(&mut self) -> Bench<'_> {
        Bench { program: self.program, weights: self.weights, inputs: self.inputs }
    }
}

/// A program with the places that a plan gives to its operands.
pub(crate) struct Probe<'a> {
    pub(crate) bench: Bench<'a>,
    places: Places,
    arena: Arena,
    spare: Spare,
}

/// Why one run cannot be done.
pub(crate) enum Failure {
    /// Two of its operands overlap in a way that no operator may.
    Overlap([Operand; 2]),
    /// Its kernel says no.
    Kernel(KernelError),
}

impl<'a> Probe<'a> {
    /// Finds all operands, and memory for them: at most `limit`.
    pub(crate) fn new(
        bench: Bench<'a>,
        plan: &Plan,
        limit: Option<Bytes>,
    ) -> Result<Self, DoctorError> {
        let places = place(bench.program, plan)?;
        if let Some(limit) = limit.filter(|&limit| places.bytes > limit) {
            return Err(DoctorError::TooLarge { found: places.bytes, limit });
        }
        let arena = Arena::new(&mut HostMemory::default(), places.bytes, plan.align)
            .map_err(DoctorError::Memory)?;
        Ok(Self { bench, places, arena, spare: Spare::default() })
    }

    /// Bytes of its block of memory.
    pub(crate) fn size(&self) -> Bytes {
        self.places.bytes
    }

    /// The operands of a run; `None` if its operator calculates nothing.
    pub(crate) fn placed(&self, run: RunId) -> Option<&Placed> {
        self.places.runs[run].as_ref()
    }

    /// Where output `at` of the graph is in the end.
    pub(crate) fn output(&self, at: usize) -> &Source {
        &self.places.outputs[at]
    }

    /// Copies those inputs that the plan wants in the arena; which, and where to.
    pub(crate) fn take_inputs(&mut self) -> Vec<(TensorId, Range<usize>)> {
        let mut taken = Vec::new();
        for (at, place) in self.places.inputs.iter().enumerate() {
            let Some(range) = place else { continue };
            let bytes = self.bench.inputs[at].bytes();
            self.arena.bytes_mut()[range.clone()].copy_from_slice(bytes);
            taken.push((self.bench.program.inputs[at], range.clone()));
        }
        taken
    }

    /// Fills bytes with poison.
    pub(crate) fn poison(&mut self, range: Range<usize>) {
        guard::poison(self.arena.bytes_mut(), range);
    }

    /// Bytes of an operand; `None` where they lie in an output.
    pub(crate) fn bytes(&self, source: &Source) -> Option<&[u8]> {
        match source {
            Source::Arena(range) => Some(&self.arena.bytes()[range.clone()]),
            Source::Weight(id, range) => Some(&self.bench.weights.bytes(*id)[range.clone()]),
            Source::Caller(at, range) => Some(&self.bench.inputs[*at].bytes()[range.clone()]),
            Source::Output { .. } | Source::Pool(_) => None,
        }
    }

    /// Runs an operator on the operands that the plan gives it.
    pub(crate) fn run(&mut self, run: RunId) -> Result<(), Failure> {
        let Some(placed) = self.places.runs[run].clone() else { return Ok(()) };
        let Program { graph, calls, shapes, .. } = &mut *self.bench.program;
        let sharing = &graph.ops()[placed.op].sharing;
        let bound = placed.bind(sharing).map_err(Failure::Overlap)?;
        let Some(bound) = bound else { return Ok(()) };
        let given = Given { shapes, weights: self.bench.weights, inputs: self.bench.inputs };
        let call = calls[bound.op()].as_mut().expect("what is placed has a kernel");
        self.arena
            .share()
            .with_operands(&bound, (given, Lent::default()), &mut self.spare, |operands| {
                call.kernel.run(operands)
            })
            .map_err(Failure::Kernel)
    }
}

/// What every tensor is, when each has memory of its own.
pub(crate) struct Values {
    written: IndexVec<TensorId, Option<Box<[u8]>>>,
    /// Bytes of the arena that they took.
    pub(crate) arena: Bytes,
}

impl Values {
    /// Runs a plan that does not reuse memory.
    pub(crate) fn of(bench: &mut Bench<'_>, safe: &CheckedPlan) -> Result<Self, DoctorError> {
        let mut written = IndexVec::filled(bench.program.graph.tensors().len(), None);
        let mut probe = Probe::new(bench.lend(), safe.plan(), None)?;
        probe.take_inputs();
        for event in &safe.plan().events {
            let Event::Exec(run) = *event else { continue };
            let op = safe.plan().op(run);
            probe.run(run).map_err(|failure| probe.failed(op, failure))?;
            let writes = probe.placed(run).map_or(&[][..], |placed| &placed.writes);
            for write in writes.iter().flatten() {
                let Some(range) = write.range() else { continue };
                let bytes = probe.arena.bytes()[range.clone()].to_vec();
                written[write.tensor] = Some(bytes.into_boxed_slice());
            }
        }
        let arena = probe.size();
        Ok(Self { written, arena })
    }

    /// What a read of a tensor has to see; `None` if that is not known.
    pub(crate) fn of_tensor<'v>(
        &'v self,
        bench: &'v Bench<'_>,
        tensor: TensorId,
    ) -> Option<&'v [u8]> {
        let graph = &bench.program.graph;
        let content = graph.content(tensor);
        let whole = match graph.tensors()[content].kind {
            TensorKind::Computed => self.written[content].as_deref()?,
            TensorKind::Weight => bench.weights.bytes(content),
            TensorKind::Input => {
                let at = bench.program.inputs.iter().position(|&input| input == content)?;
                bench.inputs[at].bytes()
            }
        };
        let start = graph.extent(tensor).start.0.checked_sub(graph.extent(content).start.0)?;
        let (start, size) = (start, graph.tensors()[tensor].size.fixed()?.0);
        let range = usize::try_from(start).ok()?..usize::try_from(start.checked_add(size)?).ok()?;
        whole.get(range)
    }
}

impl Probe<'_> {
    /// A run of the judged plan that fails is nobody's fault but the model's.
    fn failed(&self, op: OpId, failure: Failure) -> DoctorError {
        let graph = &self.bench.program.graph;
        let message = match failure {
            Failure::Overlap([one, other]) => format!("{one} overlaps {other}"),
            Failure::Kernel(error) => error.to_string(),
        };
        DoctorError::SafeMode { op: graph.op_label(op), message }
    }
}
