//! A tensor that differs in, who is to blame out.
//!
//! ~~~text
//! first byte that differs ──marks──> who touched it last ──lives──> was the victim held then?
//!                                                                    no: its lifetime is short; yes: offsets overlap
//! ~~~
//! Nothing here asks how a plan was broken: every cause is read off the marks, the bindings and the events.

use crate::diagnosis::{Cause, Finding};
use crate::lives::Lives;
use crate::marks::{Mark, Marks, Touch};
use crate::report::difference;
use lowtide_core::operator::{KernelError, Operand, Program};
use lowtide_core::{
    Bytes, Graph, IndexVec, Occupant, OpId, Plan, ResidenceId, RunId, Step, TensorId,
};
use std::ops::Range;

/// All that is known of a plan as far as it was followed.
pub(crate) struct Scene<'a> {
    pub(crate) graph: Graph,
    pub(crate) plan: &'a Plan,
    pub(crate) lives: Lives,
    pub(crate) marks: Marks,
    /// The operands of each operator, in the order of its bindings.
    pub(crate) operands: IndexVec<OpId, Vec<(Operand, Option<TensorId>)>>,
    /// Which operators have run.
    pub(crate) has_run: IndexVec<OpId, bool>,
}

/// Where a difference is seen: which tensor, at which event, and by which operand of which run; by the caller in the end.
pub(crate) struct Sight {
    pub(crate) event: usize,
    pub(crate) run: Option<(RunId, Operand)>,
    pub(crate) tensor: Option<TensorId>,
}

/// The operands of an operator, in the order of its bindings: what it reads, what it writes, its scratch.
pub(crate) fn operands(program: &Program, op: OpId) -> Vec<(Operand, Option<TensorId>)> {
    let row = &program.graph.ops()[op];
    let all = |tensors: &[TensorId]| tensors.iter().copied().map(Some).collect::<Vec<_>>();
    let (inputs, outputs) = match &program.calls[op] {
        Some(call) => (call.inputs.clone(), call.outputs.clone()),
        None => (all(&row.inputs), all(&row.outputs)),
    };
    let inputs = inputs.into_iter().enumerate().map(|(at, id)| (Operand::Input(at), id));
    let outputs = outputs.into_iter().enumerate().map(|(at, id)| (Operand::Output(at), id));
    let scratch = row.needed_scratch().map(|_| (Operand::Scratch, None));
    inputs.chain(outputs).filter(|row| row.1.is_some()).chain(scratch).collect()
}

/// Who is to blame, before it is written out.
pub(crate) struct Blame {
    pub(crate) victim: Option<ResidenceId>,
    pub(crate) culprit: Option<ResidenceId>,
    pub(crate) cause: Cause,
}

impl Scene<'_> {
    /// The bytes of a residence in the arena; `None` for one elsewhere.
    pub(crate) fn range(&self, id: ResidenceId) -> Option<Range<usize>> {
        let (space, start) = self.plan.address(id)?;
        let end = start.checked_add(self.plan.residences[id].size.fixed()?)?;
        let range = usize::try_from(start.0).ok()?..usize::try_from(end.0).ok()?;
        (space.raw() == 0).then_some(range)
    }

    /// The residence to which an operand is bound.
    pub(crate) fn residence(&self, run: RunId, operand: Operand) -> Option<ResidenceId> {
        let row = &self.operands[self.plan.op(run)];
        let at = row.iter().position(|&(other, _)| other == operand)?;
        *self.plan.bindings[run].get(at)?
    }

    /// What differs, and why.
    pub(crate) fn finding(
        &self,
        sight: &Sight,
        (found, wanted): (&[u8], &[u8]),
        place: Option<&Range<usize>>,
    ) -> Finding {
        let byte = found.iter().zip(wanted).position(|(a, b)| a != b).unwrap_or_default();
        let address = place.map(|range| range.start + byte);
        let mark = address.and_then(|address| self.marks.at(address));
        let blame = match sight.run {
            Some((run, Operand::Output(at))) => self.blame_run(run, at),
            _ => self.blame_past(sight, place, mark),
        };
        let dtype = sight.tensor.and_then(|tensor| self.graph.tensors()[tensor].dtype);
        let difference = Some(difference(dtype, found, wanted, address));
        Finding { difference, ..self.written_out(sight, blame, mark) }
    }

    /// Two operands of a run that overlap.
    pub(crate) fn collision(
        &self,
        (event, run): (usize, RunId),
        operands: [Operand; 2],
    ) -> Finding {
        if let Some(finding) = operands.iter().find_map(|&one| self.stranger((event, run), one)) {
            return finding;
        }
        let [victim, culprit] = operands.map(|operand| self.residence(run, operand));
        let cause = Cause::OneRun { operands: operands.map(|operand| operand.to_string()) };
        let tensor = operands.iter().find_map(|&operand| self.tensor(run, operand));
        let sight = Sight { event, run: Some((run, operands[0])), tensor };
        self.written_out(&sight, Blame { victim, culprit, cause }, None)
    }

    /// An operand that is bound to the residence of another storage.
    fn stranger(&self, (event, run): (usize, RunId), operand: Operand) -> Option<Finding> {
        let tensor = self.tensor(run, operand)?;
        let root = self.graph.storage(tensor);
        let other = self.residence(run, operand).filter(|&id| !self.is_of(id, root))?;
        let cause = Cause::Bound { by: self.use_of(self.plan.op(run)) };
        let blame = Blame { victim: self.own(root, None), culprit: Some(other), cause };
        let sight = Sight { event, run: Some((run, operand)), tensor: Some(tensor) };
        Some(self.written_out(&sight, blame, None))
    }

    /// A kernel that does not take its operands.
    pub(crate) fn refusal(&self, (event, run): (usize, RunId), error: &KernelError) -> Finding {
        if let &KernelError::InPlace { operand } = error
            && let Some(over) = self.output_over(run, operand)
        {
            return self.collision((event, run), [operand, over]);
        }
        let operand = match error {
            KernelError::Absent { operand }
            | KernelError::Type { operand, .. }
            | KernelError::Bytes { operand, .. } => *operand,
            _ => Operand::Output(0),
        };
        let (victim, tensor) = (self.residence(run, operand), self.tensor(run, operand));
        let cause = Cause::Kernel { message: error.to_string() };
        let sight = Sight { event, run: Some((run, operand)), tensor };
        self.written_out(&sight, Blame { victim, culprit: None, cause }, None)
    }

    /// Inputs were right and an output is not: an input that lies in it is to blame, else the operator itself.
    fn blame_run(&self, run: RunId, at: usize) -> Blame {
        let output = Operand::Output(at);
        let inputs = self.operands_of(run, |operand| matches!(operand, Operand::Input(_)));
        let inside = inputs.into_iter().find(|&input| {
            let [one, other] = [input, output].map(|operand| self.operand_range(run, operand));
            one.zip(other).is_some_and(|(one, other)| common(&one, &other).is_some())
        });
        let residence = |operand| self.residence(run, operand);
        let cause = match inside {
            Some(input) => Cause::OneRun { operands: [output.to_string(), input.to_string()] },
            None => Cause::Kernel { message: "it writes other bytes".to_owned() },
        };
        Blame { victim: residence(output), culprit: inside.and_then(residence), cause }
    }

    /// What is read is wrong: somebody has touched it since it was written, or it was never written there.
    fn blame_past(&self, sight: &Sight, place: Option<&Range<usize>>, mark: Option<Mark>) -> Blame {
        let tensor = sight.tensor.expect("what was compared is a tensor");
        let (content, root) = (self.graph.content(tensor), self.graph.storage(tensor));
        let bound = sight.run.and_then(|(run, operand)| self.residence(run, operand));
        let own = self.own(root, place.filter(|_| bound.is_none_or(|id| self.is_of(id, root))));
        let blame = |culprit, cause| Blame { victim: own, culprit, cause };
        if let Some((run, _)) = sight.run
            && let Some(other) = bound.filter(|&id| !self.is_of(id, root))
        {
            return blame(Some(other), Cause::Bound { by: self.use_of(self.plan.op(run)) });
        }
        let writer = self.graph.writer(content);
        if let Some(op) = writer.filter(|&op| !self.has_run[op]) {
            return blame(None, Cause::Order { writer: self.use_of(op) });
        }
        if let Some((op, other)) = self.went_elsewhere(content, root) {
            return blame(Some(other), Cause::Bound { by: self.use_of(op) });
        }
        let Some((victim, mark)) = own.zip(mark) else {
            return blame(None, Cause::Kernel { message: "nobody wrote these bytes".to_owned() });
        };
        self.blame_touch(victim, mark)
    }

    /// The writer of a tensor, and the residence of another storage to which it is bound.
    fn went_elsewhere(&self, content: TensorId, root: TensorId) -> Option<(OpId, ResidenceId)> {
        let op = self.graph.writer(content)?;
        let (run, _) = self.plan.schedule.iter_enumerated().find(|row| *row.1 == op)?;
        let is_write = |&&(operand, tensor): &&(Operand, Option<TensorId>)| {
            matches!(operand, Operand::Output(_)) && tensor == Some(content)
        };
        let residence = self.residence(run, self.operands[op].iter().find(is_write)?.0)?;
        (!self.is_of(residence, root)).then_some((op, residence))
    }

    /// The victim was written where it lies, and somebody has touched its bytes since.
    fn blame_touch(&self, victim: ResidenceId, mark: Mark) -> Blame {
        let (culprit, by) = match mark.touch {
            Touch::Freed(id) | Touch::Allocated(id) => (Some(id), None),
            Touch::Wrote { run, residence, .. } | Touch::Scratch { run, residence } => {
                (residence, Some(run))
            }
            Touch::Given { tensor } => (self.own(tensor, None), None),
        };
        let culprit = culprit.filter(|&id| id != victim);
        let blame = |cause| Blame { victim: Some(victim), culprit, cause };
        if mark.touch == Touch::Freed(victim) || self.lives.is_freed_before(victim, mark.event) {
            return blame(self.freed_early(victim));
        }
        if mark.touch == Touch::Allocated(victim)
            || self.lives.is_allocated_after(victim, mark.event)
        {
            return blame(self.allocated_late(victim));
        }
        match (culprit, mark.touch) {
            (None, Touch::Wrote { run, tensor, .. }) => self.blame_guest(victim, run, tensor),
            (Some(_), _) if by.is_some_and(|run| self.reads(run, victim)) => blame(Cause::InPlace),
            (Some(other), _) => blame(self.overlap(victim, other)),
            (None, _) => {
                blame(Cause::Kernel { message: "nobody else has touched these bytes".to_owned() })
            }
        }
    }

    /// A run wrote into the victim's own residence: another tensor that is bound there, or the next value of its storage.
    fn blame_guest(&self, victim: ResidenceId, run: RunId, tensor: TensorId) -> Blame {
        let by = self.use_of(self.plan.op(run));
        if self.is_of(victim, self.graph.storage(tensor)) {
            return Blame { victim: Some(victim), culprit: None, cause: Cause::Changed { by } };
        }
        let culprit = self.own(self.graph.storage(tensor), None);
        Blame { victim: Some(victim), culprit, cause: Cause::Bound { by } }
    }

    fn freed_early(&self, victim: ResidenceId) -> Cause {
        let free = self.lives.held(victim).map_or(Step::ZERO, |held| held.end);
        let needed = self.needed(victim).map_or(free, |needed| needed.end);
        Cause::FreedEarly { free, short: needed.0.saturating_sub(free.0) }
    }

    fn allocated_late(&self, victim: ResidenceId) -> Cause {
        let held = self.lives.held(victim).map(|held| held.start);
        let needed = self.needed(victim).map_or(Step::ZERO, |needed| needed.start);
        let late = held.map_or(0, |held| held.0.saturating_sub(needed.0));
        Cause::AllocatedLate { held, late }
    }

    fn overlap(&self, victim: ResidenceId, other: ResidenceId) -> Cause {
        let both = self.range(victim).zip(self.range(other));
        let both = both.and_then(|(one, other)| common(&one, &other)).unwrap_or_default();
        let [start, end] = [both.start, both.end].map(|byte| Bytes(byte as u64));
        Cause::Overlap { start, end }
    }

    /// Whether a run reads what stays in a residence.
    fn reads(&self, run: RunId, id: ResidenceId) -> bool {
        let reads = self.graph.reads(self.plan.op(run));
        reads.iter().any(|&tensor| self.is_of(id, self.graph.storage(tensor)))
    }

    fn is_of(&self, id: ResidenceId, root: TensorId) -> bool {
        self.plan.residences[id].what == Occupant::Tensor(root)
    }

    /// The residence of a storage: of several the one that has these bytes.
    fn own(&self, root: TensorId, place: Option<&Range<usize>>) -> Option<ResidenceId> {
        let all: Vec<ResidenceId> =
            self.plan.residences.ids().filter(|&id| self.is_of(id, root)).collect();
        let has = |id: &ResidenceId| {
            place.zip(self.range(*id)).is_some_and(|(place, range)| range.contains(&place.start))
        };
        all.iter().copied().find(has).or_else(|| all.first().copied())
    }

    /// The tensor that is an operand; scratch is none.
    fn tensor(&self, run: RunId, operand: Operand) -> Option<TensorId> {
        let row = &self.operands[self.plan.op(run)];
        row.iter().find(|&&(other, _)| other == operand)?.1
    }

    /// The operands of a run of one kind.
    fn operands_of(&self, run: RunId, is_wanted: fn(Operand) -> bool) -> Vec<Operand> {
        let row = &self.operands[self.plan.op(run)];
        row.iter().map(|row| row.0).filter(|&operand| is_wanted(operand)).collect()
    }

    /// Where an operand lies: its tensor inside the residence that it is bound to.
    fn operand_range(&self, run: RunId, operand: Operand) -> Option<Range<usize>> {
        let whole = self.range(self.residence(run, operand)?)?;
        let tensor = self.tensor(run, operand)?;
        let start = usize::try_from(self.graph.extent(tensor).start.0).ok()?;
        let size = usize::try_from(self.graph.tensors()[tensor].size.fixed()?.0).ok()?;
        let start = whole.start.checked_add(start)?;
        Some(start..start.checked_add(size)?)
    }

    /// The output in which an input of a run lies.
    fn output_over(&self, run: RunId, input: Operand) -> Option<Operand> {
        let range = self.operand_range(run, input)?;
        let outputs = self.operands_of(run, |operand| matches!(operand, Operand::Output(_)));
        outputs.into_iter().find(|&output| {
            let other = self.operand_range(run, output);
            other.is_some_and(|other| common(&range, &other).is_some())
        })
    }
}

/// The bytes that both ranges have.
fn common(one: &Range<usize>, other: &Range<usize>) -> Option<Range<usize>> {
    let both = one.start.max(other.start)..one.end.min(other.end);
    (!both.is_empty()).then_some(both)
}
