//! [`diagnose`]: a plan that nobody has judged against safe mode, tensor by tensor, to the first that differs.
//!
//! ~~~text
//! safe plan ──run──> what every tensor is ─┐
//! suspect plan ── ALLOC, FREE: poison      ├─ before each run its inputs, after it its outputs: equal bit for bit?
//!                 EXEC: one run ───────────┘   no ──blame──> Finding: victim, culprit, cause
//! ~~~
//! Equal kernels on equal bytes give equal bits, so nothing but equality is asked for. What an event frees is poisoned,
//! and what it allocates too, but for bytes that others hold: so a lifetime that is short shows even if nobody takes the
//! bytes. Each byte knows who touched it last (see `marks`), and that is who is blamed. Scratch is poisoned before its run.
//!
//! Cost: two runs, the memory of safe mode twice, and O(residences held) an event.

use crate::bind::Source;
use crate::blame::{Scene, Sight, operands};
use crate::diagnosis::{Diagnosis, Finding};
use crate::lives::Lives;
use crate::marks::{Mark, Marks, Touch};
use crate::meaning::{NoMeaning, check_meaning};
use crate::memory::MemoryError;
use crate::probe::{Bench, Failure, Probe, Values};
use crate::session::check_inputs;
use crate::tensor::{TensorRef, TensorSpec};
use crate::weights::Weights;
use crate::{RunError, SessionError, guard};
use lowtide_core::operator::{Operand, Program};
use lowtide_core::{
    Bytes, CheckedPlan, Event, IndexVec, Occupant, Plan, ResidenceId, RunId, TensorId, TensorKind,
};
use rayon::ThreadPoolBuilder;
use std::collections::BTreeSet;
use std::ops::Range;

/// An arena may be so many times as large as that of safe mode; more is no plan, but a slip of the pen.
const MOST_TIMES: u64 = 4;

/// Why nothing was compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoctorError {
    /// The plan cannot be followed.
    #[error(transparent)]
    NoMeaning(#[from] NoMeaning),
    /// The program cannot be run, or an operand lies nowhere in the arena.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The plan wants more memory than could make sense.
    #[error(
        "the plan takes {found} of memory, more than {MOST_TIMES} times what safe mode takes: the limit is {limit}"
    )]
    TooLarge {
        /// What it takes.
        found: Bytes,
        /// What it may take.
        limit: Bytes,
    },
    /// There is no memory for an arena.
    #[error("there is no memory for the arena")]
    Memory(#[source] MemoryError),
    /// Too few inputs, or too many, or one of another type or shape.
    #[error(transparent)]
    Inputs(#[from] RunError),
    /// The model does not run in safe mode either.
    #[error("operator `{op}` fails in safe mode too: {message}")]
    SafeMode {
        /// Which operator.
        op: String,
        /// Why.
        message: String,
    },
    /// Sizes that are known in a run only are not compared.
    #[error("{count} operators have operands of a size that is not known before the run")]
    Late {
        /// How many.
        count: usize,
    },
    /// There is no thread.
    #[error("no thread can be started: {reason}")]
    Threads {
        /// Why.
        reason: String,
    },
}

/// Follows a plan that may be wrong in any way, and compares every operand with safe mode. `safe` is a judged plan in
/// mode safe of the same graph, in any order. Inputs are given as to [`Session::run`](crate::Session::run).
pub fn diagnose(
    mut program: Program,
    safe: &CheckedPlan,
    plan: &Plan,
    inputs: &[TensorRef<'_>],
) -> Result<Diagnosis, DoctorError> {
    if !program.late.is_empty() {
        return Err(DoctorError::Late { count: program.late.len() });
    }
    check_meaning(&program.graph, safe.plan())?;
    check_meaning(&program.graph, plan)?;
    check_inputs(&input_specs(&program)?, inputs)?;
    let weights = Weights::new(&program)?;
    let pool = ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.map_err(|error| DoctorError::Threads { reason: error.to_string() })?;
    let bench = Bench { program: &mut program, weights: &weights, inputs };
    pool.install(|| {
        let mut bench = bench;
        let values = Values::of(&mut bench, safe)?;
        let limit = Bytes(values.arena.0.saturating_mul(MOST_TIMES).saturating_add(1 << 20));
        let probe = Probe::new(bench, plan, Some(limit))?;
        Ok(Examination::new(probe, &values, plan).run())
    })
}

/// What a program wants to be given, in order.
pub fn input_specs(program: &Program) -> Result<Vec<TensorSpec>, SessionError> {
    program.inputs.iter().map(|&id| TensorSpec::of(program, id)).collect()
}

/// A plan that is being followed.
struct Examination<'a> {
    probe: Probe<'a>,
    values: &'a Values,
    plan: &'a Plan,
    scene: Scene<'a>,
    held: BTreeSet<ResidenceId>,
    runs: usize,
    compared: usize,
}

impl<'a> Examination<'a> {
    fn new(probe: Probe<'a>, values: &'a Values, plan: &'a Plan) -> Self {
        let program = &*probe.bench.program;
        let graph = &program.graph;
        let scene = Scene {
            graph: graph.clone(),
            plan,
            operands: graph.ops().ids().map(|op| operands(program, op)).collect(),
            lives: Lives::new(plan, graph.ops().len()),
            marks: Marks::default(),
            has_run: IndexVec::filled(graph.ops().len(), false),
        };
        Self { probe, values, plan, scene, held: BTreeSet::new(), runs: 0, compared: 0 }
    }

    fn run(mut self) -> Diagnosis {
        self.begin();
        let finding = (0..self.plan.events.len())
            .find_map(|event| self.follow(event))
            .or_else(|| self.outputs());
        Diagnosis { runs: self.runs, compared: self.compared, finding }
    }

    /// Nobody has written anything, but the caller the inputs that lie in the arena.
    fn begin(&mut self) {
        for id in self.plan.residences.ids() {
            if let Some(range) = self.scene.range(id).filter(|range| self.is_inside(range)) {
                self.probe.poison(range);
            }
        }
        for (tensor, range) in self.probe.take_inputs() {
            self.scene.marks.set(range, Mark { event: 0, touch: Touch::Given { tensor } });
        }
    }

    fn is_inside(&self, range: &Range<usize>) -> bool {
        range.end as u64 <= self.probe.size().0
    }

    /// Does what an event says; the first thing that is wrong then.
    fn follow(&mut self, event: usize) -> Option<Finding> {
        match self.plan.events[event] {
            Event::Alloc(id) => {
                self.held.insert(id);
                if !self.is_input(id) {
                    self.disown(id, Mark { event, touch: Touch::Allocated(id) });
                }
            }
            Event::Free(id) => {
                self.held.remove(&id);
                self.disown(id, Mark { event, touch: Touch::Freed(id) });
            }
            Event::Exec(run) => return self.execute(event, run),
            _ => {}
        }
        None
    }

    /// Inputs are there before the first event.
    fn is_input(&self, id: ResidenceId) -> bool {
        let tensors = self.scene.graph.tensors();
        matches!(self.plan.residences[id].what, Occupant::Tensor(tensor)
            if tensors[tensor].kind == TensorKind::Input)
    }

    /// Poisons the bytes of a residence that no other one holds.
    fn disown(&mut self, id: ResidenceId, mark: Mark) {
        let Some(own) = self.scene.range(id).filter(|range| self.is_inside(range)) else { return };
        let others = self.held.iter().filter(|&&other| other != id);
        let mut taken: Vec<Range<usize>> =
            others.filter_map(|&other| self.scene.range(other)).collect();
        taken.sort_by_key(|range| range.start);
        for range in guard::without(own, &taken) {
            self.probe.poison(range.clone());
            self.scene.marks.set(range, mark);
        }
    }

    fn execute(&mut self, event: usize, run: RunId) -> Option<Finding> {
        let op = self.plan.op(run);
        let found = self.probe.placed(run).cloned().and_then(|placed| {
            let reads = placed.reads.iter().enumerate().filter_map(|(at, read)| {
                let read = read.as_ref()?;
                Some((Operand::Input(at), read.tensor, read.source.clone()))
            });
            let writes = placed.writes.iter().enumerate().filter_map(|(at, write)| {
                let write = write.as_ref()?;
                Some((Operand::Output(at), write.tensor, Source::Arena(write.range()?.clone())))
            });
            let (reads, writes): (Vec<_>, Vec<_>) = (reads.collect(), writes.collect());
            self.compare(event, run, &reads)
                .or_else(|| self.calculate(event, run, placed.scratch, &writes))
                .or_else(|| self.compare(event, run, &writes))
        });
        self.scene.has_run[op] = true;
        self.runs += usize::from(found.is_none());
        found
    }

    /// Runs the operator, and remembers what it wrote.
    fn calculate(
        &mut self,
        event: usize,
        run: RunId,
        scratch: Range<usize>,
        writes: &[(Operand, TensorId, Source)],
    ) -> Option<Finding> {
        let residence = |operand| self.scene.residence(run, operand);
        let mut touched =
            vec![(scratch.clone(), Touch::Scratch { run, residence: residence(Operand::Scratch) })];
        for (operand, tensor, source) in writes {
            let Source::Arena(range) = source else { continue };
            let (tensor, residence) = (*tensor, residence(*operand));
            touched.push((range.clone(), Touch::Wrote { run, tensor, residence }));
        }
        let overlaps =
            |range: &Range<usize>| range.start.max(scratch.start) < range.end.min(scratch.end);
        if !touched[1..].iter().any(|row| overlaps(&row.0)) {
            self.probe.poison(scratch);
        }
        if let Err(failure) = self.probe.run(run) {
            return Some(match failure {
                Failure::Overlap(operands) => self.scene.collision((event, run), operands),
                Failure::Kernel(error) => self.scene.refusal((event, run), &error),
            });
        }
        for (range, touch) in touched {
            self.scene.marks.set(range, Mark { event, touch });
        }
        None
    }

    /// Compares operands of a run with safe mode.
    fn compare(
        &mut self,
        event: usize,
        run: RunId,
        operands: &[(Operand, TensorId, Source)],
    ) -> Option<Finding> {
        for (operand, tensor, source) in operands {
            let sight = Sight { event, run: Some((run, *operand)), tensor: Some(*tensor) };
            if let Some(finding) = self.look(&sight, source) {
                return Some(finding);
            }
        }
        None
    }

    /// Compares the outputs of the graph with safe mode.
    fn outputs(&mut self) -> Option<Finding> {
        let outputs = self.probe.bench.program.outputs.clone();
        outputs.iter().enumerate().find_map(|(at, &tensor)| {
            let source = self.probe.output(at).clone();
            let sight = Sight { event: self.plan.events.len(), run: None, tensor: Some(tensor) };
            self.look(&sight, &source)
        })
    }

    /// Compares one tensor with safe mode.
    fn look(&mut self, sight: &Sight, source: &Source) -> Option<Finding> {
        let found = self.probe.bytes(source)?;
        let wanted = self.values.of_tensor(&self.probe.bench, sight.tensor?)?;
        if found != wanted {
            let place = if let Source::Arena(range) = source { Some(range) } else { None };
            return Some(self.scene.finding(sight, (found, wanted), place));
        }
        self.compared += 1;
        None
    }
}
