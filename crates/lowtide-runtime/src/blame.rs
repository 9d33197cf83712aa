//! A tensor that differs in, who is to blame out.
//!
//! ~~~text
//! first byte that differs ──marks──> who touched it last ──lives──> was the victim held then?
//!                                                                    no: its lifetime is short; yes: offsets overlap
//! ~~~
//! Nothing here asks how a plan was broken: every cause is read off the marks, the bindings and the events.

use crate::diagnosis::{Cause, Difference, Finding, Stay, Use};
use crate::lives::Lives;
use crate::marks::{Mark, Marks, Touch};
use lowtide_core::operator::{KernelError, Operand, Program};
use lowtide_core::{
    Bytes, DType, Graph, IndexVec, Interval, Occupant, OpId, Plan, ResidenceId, RunId, Step,
    TensorId,
};
use std::ops::Range;

/// All that is known of a plan as far as it was followed.
pub(crate) struct Scene<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) lives: Lives,
    pub(crate) marks: Marks,
    /// The operands of each operator, in the order of its bindings.
    pub(crate) operands: IndexVec<OpId, Vec<(Operand, Option<TensorId>)>>,
    pub(crate) has_run: IndexVec<OpId, bool>,
    /// Where each tensor was written last.
    pub(crate) written: IndexVec<TensorId, Option<Range<usize>>>,
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
struct Blame {
    victim: Option<ResidenceId>,
    culprit: Option<ResidenceId>,
    cause: Cause,
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
        graph: &Graph,
        sight: &Sight,
        (found, wanted): (&[u8], &[u8]),
        place: Option<Range<usize>>,
    ) -> Finding {
        let byte = found.iter().zip(wanted).position(|(a, b)| a != b).unwrap_or_default();
        let address = place.as_ref().map(|range| range.start + byte);
        let mark = address.and_then(|address| self.marks.at(address));
        let blame = match sight.run {
            Some((run, Operand::Output(at))) => self.blame_run(graph, run, at),
            _ => self.blame_past(graph, sight, place.as_ref(), mark),
        };
        let dtype = sight.tensor.and_then(|tensor| graph.tensors()[tensor].dtype);
        let difference = Some(difference(dtype, found, wanted, address));
        Finding { difference, ..self.written_out(graph, sight, blame, mark) }
    }

    /// Two operands of a run that overlap.
    pub(crate) fn collision(
        &self,
        graph: &Graph,
        (event, run): (usize, RunId),
        operands: [Operand; 2],
    ) -> Finding {
        let [victim, culprit] = operands.map(|operand| self.residence(run, operand));
        let cause = Cause::OneRun { operands: operands.map(|operand| operand.to_string()) };
        let tensor = operands.iter().find_map(|&operand| self.tensor(run, operand));
        let sight = Sight { event, run: Some((run, operands[0])), tensor };
        self.written_out(graph, &sight, Blame { victim, culprit, cause }, None)
    }

    /// A kernel that does not take its operands.
    pub(crate) fn refusal(
        &self,
        graph: &Graph,
        (event, run): (usize, RunId),
        error: &KernelError,
    ) -> Finding {
        if let &KernelError::InPlace { operand } = error
            && let Some(over) = self.output_over(graph, run, operand)
        {
            return self.collision(graph, (event, run), [operand, over]);
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
        self.written_out(graph, &sight, Blame { victim, culprit: None, cause }, None)
    }

    /// Inputs were right and an output is not: an input that lies in it is to blame, else the operator itself.
    fn blame_run(&self, graph: &Graph, run: RunId, at: usize) -> Blame {
        let output = Operand::Output(at);
        let inputs = self.operands_of(run, |operand| matches!(operand, Operand::Input(_)));
        let inside = inputs.into_iter().find(|&input| {
            let [one, other] =
                [input, output].map(|operand| self.operand_range(graph, run, operand));
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
    fn blame_past(
        &self,
        graph: &Graph,
        sight: &Sight,
        place: Option<&Range<usize>>,
        mark: Option<Mark>,
    ) -> Blame {
        let tensor = sight.tensor.expect("what was compared is a tensor");
        let (content, root) = (graph.content(tensor), graph.storage(tensor));
        let bound = sight.run.and_then(|(run, operand)| self.residence(run, operand));
        let own = self.own(root, place.filter(|_| bound.is_none_or(|id| self.is_of(id, root))));
        let blame = |culprit, cause| Blame { victim: own, culprit, cause };
        if let Some((run, _)) = sight.run
            && let Some(other) = bound.filter(|&id| !self.is_of(id, root))
        {
            return blame(Some(other), Cause::Bound { by: self.use_of(graph, self.plan.op(run)) });
        }
        let writer = graph.writer(content);
        if let Some(op) = writer.filter(|&op| !self.has_run[op]) {
            return blame(None, Cause::Order { writer: self.use_of(graph, op) });
        }
        if let Some((op, other)) = self.went_elsewhere(graph, content, root) {
            return blame(Some(other), Cause::Bound { by: self.use_of(graph, op) });
        }
        let Some((victim, mark)) = own.zip(mark) else {
            return blame(None, Cause::Kernel { message: "nobody wrote these bytes".to_owned() });
        };
        self.blame_touch(graph, victim, mark)
    }

    /// The writer of a tensor, and the residence of another storage to which it is bound.
    fn went_elsewhere(
        &self,
        graph: &Graph,
        content: TensorId,
        root: TensorId,
    ) -> Option<(OpId, ResidenceId)> {
        self.written[content].as_ref()?;
        let op = graph.writer(content)?;
        let (run, _) = self.plan.schedule.iter_enumerated().find(|row| *row.1 == op)?;
        let is_write = |&&(operand, tensor): &&(Operand, Option<TensorId>)| {
            matches!(operand, Operand::Output(_)) && tensor == Some(content)
        };
        let residence = self.residence(run, self.operands[op].iter().find(is_write)?.0)?;
        (!self.is_of(residence, root)).then_some((op, residence))
    }

    /// The victim was written where it lies, and somebody has touched its bytes since.
    fn blame_touch(&self, graph: &Graph, victim: ResidenceId, mark: Mark) -> Blame {
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
            return blame(self.freed_early(graph, victim));
        }
        if mark.touch == Touch::Allocated(victim)
            || self.lives.is_allocated_after(victim, mark.event)
        {
            return blame(self.allocated_late(graph, victim));
        }
        match (culprit, mark.touch) {
            (None, Touch::Wrote { run, tensor, .. }) => {
                self.blame_guest(graph, victim, run, tensor)
            }
            (Some(_), _) if by.is_some_and(|run| self.reads(graph, run, victim)) => {
                blame(Cause::InPlace)
            }
            (Some(other), _) => blame(self.overlap(victim, other)),
            (None, _) => {
                blame(Cause::Kernel { message: "nobody else has touched these bytes".to_owned() })
            }
        }
    }

    /// A run wrote into the victim's own residence: another tensor that is bound there, or the next value of its storage.
    fn blame_guest(
        &self,
        graph: &Graph,
        victim: ResidenceId,
        run: RunId,
        tensor: TensorId,
    ) -> Blame {
        let by = self.use_of(graph, self.plan.op(run));
        if self.is_of(victim, graph.storage(tensor)) {
            return Blame { victim: Some(victim), culprit: None, cause: Cause::Changed { by } };
        }
        let culprit = self.own(graph.storage(tensor), None);
        Blame { victim: Some(victim), culprit, cause: Cause::Bound { by } }
    }

    fn freed_early(&self, graph: &Graph, victim: ResidenceId) -> Cause {
        let free = self.lives.held(victim).map_or(Step::ZERO, |held| held.end);
        let needed = self.needed(graph, victim).map_or(free, |needed| needed.end);
        Cause::FreedEarly { free, short: needed.0.saturating_sub(free.0) }
    }

    fn allocated_late(&self, graph: &Graph, victim: ResidenceId) -> Cause {
        let held = self.lives.held(victim).map(|held| held.start);
        let needed = self.needed(graph, victim).map_or(Step::ZERO, |needed| needed.start);
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
    fn reads(&self, graph: &Graph, run: RunId, id: ResidenceId) -> bool {
        let reads = graph.reads(self.plan.op(run));
        reads.iter().any(|&tensor| self.is_of(id, graph.storage(tensor)))
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
    fn operand_range(&self, graph: &Graph, run: RunId, operand: Operand) -> Option<Range<usize>> {
        let whole = self.range(self.residence(run, operand)?)?;
        let tensor = self.tensor(run, operand)?;
        let start = usize::try_from(graph.extent(tensor).start.0).ok()?;
        let size = usize::try_from(graph.tensors()[tensor].size.fixed()?.0).ok()?;
        let start = whole.start.checked_add(start)?;
        Some(start..start.checked_add(size)?)
    }

    /// The output in which an input of a run lies.
    fn output_over(&self, graph: &Graph, run: RunId, input: Operand) -> Option<Operand> {
        let range = self.operand_range(graph, run, input)?;
        let outputs = self.operands_of(run, |operand| matches!(operand, Operand::Output(_)));
        outputs.into_iter().find(|&output| {
            let other = self.operand_range(graph, run, output);
            other.is_some_and(|other| common(&range, &other).is_some())
        })
    }
}

// Writing out: ids to names and times.
impl Scene<'_> {
    fn written_out(
        &self,
        graph: &Graph,
        sight: &Sight,
        blame: Blame,
        mark: Option<Mark>,
    ) -> Finding {
        let writer = mark.and_then(|mark| match mark.touch {
            Touch::Wrote { run, .. } | Touch::Scratch { run, .. } => Some(run),
            _ => None,
        });
        let stay = |id: Option<ResidenceId>| id.map(|id| self.stay(graph, id));
        Finding {
            seen: sight.run.map(|(run, _)| Use {
                step: Some(self.lives.step(sight.event)),
                ..self.use_of(graph, self.plan.op(run))
            }),
            operand: sight.run.map_or("output".to_owned(), |(_, operand)| operand.to_string()),
            tensor: sight.tensor.map_or("scratch".to_owned(), |id| graph.tensor_label(id)),
            difference: None,
            victim: stay(blame.victim),
            culprit: stay(blame.culprit),
            writer: writer.map(|run| self.use_of(graph, self.plan.op(run))),
            cause: blame.cause,
        }
    }

    fn use_of(&self, graph: &Graph, op: OpId) -> Use {
        Use {
            step: self.lives.step_of(op),
            op: graph.op_label(op),
            kind: graph.ops()[op].kind.to_string(),
        }
    }

    fn stay(&self, graph: &Graph, id: ResidenceId) -> Stay {
        let row = &self.plan.residences[id];
        let (writers, readers) = self.users(graph, row.what);
        let name = match row.what {
            Occupant::Tensor(tensor) => graph.tensor_label(tensor),
            Occupant::Scratch(run) => format!("scratch of {}", graph.op_label(self.plan.op(run))),
        };
        let range = self.range(id).unwrap_or_default();
        let uses = |ops: Vec<OpId>| ops.into_iter().map(|op| self.use_of(graph, op)).collect();
        Stay {
            residence: id,
            name,
            buffer: row.buffer,
            start: Bytes(range.start as u64),
            end: Bytes(range.end as u64),
            held: self.lives.held(id),
            needed: self.needed(graph, id),
            writers: uses(writers),
            readers: uses(readers),
            is_output: matches!(row.what, Occupant::Tensor(tensor) if graph.holds_output(tensor)),
        }
    }

    /// Who writes into a storage and who reads it, each in the order of their steps.
    fn users(&self, graph: &Graph, what: Occupant) -> (Vec<OpId>, Vec<OpId>) {
        let root = match what {
            Occupant::Tensor(root) => root,
            Occupant::Scratch(run) => return (vec![self.plan.op(run)], Vec::new()),
        };
        let inside: Vec<TensorId> =
            graph.tensors().ids().filter(|&id| graph.storage(id) == root).collect();
        let is_content = |id: &&TensorId| graph.content(**id) == **id;
        let writers = inside.iter().filter(is_content).filter_map(|&id| graph.writer(id));
        let readers = inside.iter().flat_map(|&id| graph.readers(id).iter().copied());
        let sorted = |mut ops: Vec<OpId>| {
            ops.sort_by_key(|&op| (self.lives.step_of(op).is_none(), self.lives.step_of(op), op));
            ops.dedup();
            ops
        };
        (sorted(writers.collect()), sorted(readers.collect()))
    }

    /// From the first writer to the last reader, or to the end for an output.
    fn needed(&self, graph: &Graph, id: ResidenceId) -> Option<Interval> {
        let what = self.plan.residences[id].what;
        let (writers, readers) = self.users(graph, what);
        let steps = writers.iter().chain(&readers).filter_map(|&op| self.lives.step_of(op));
        let start = steps.clone().min()?;
        let is_output = matches!(what, Occupant::Tensor(tensor) if graph.holds_output(tensor));
        let end = if is_output { self.lives.end() } else { steps.max()?.next() };
        Some(Interval::new(start, end))
    }
}

/// The bytes that both ranges have.
fn common(one: &Range<usize>, other: &Range<usize>) -> Option<Range<usize>> {
    let both = one.start.max(other.start)..one.end.min(other.end);
    (!both.is_empty()).then_some(both)
}

fn difference(
    dtype: Option<DType>,
    found: &[u8],
    wanted: &[u8],
    address: Option<usize>,
) -> Difference {
    let differs = |(at, (a, b)): (usize, (&u8, &u8))| (a != b).then_some(at);
    let mut differing = found.iter().zip(wanted).enumerate().filter_map(differs);
    let byte = differing.next().unwrap_or_default();
    let bits = dtype.and_then(DType::bits).unwrap_or(8);
    let width = usize::try_from(bits.div_ceil(8)).unwrap_or(1).max(1);
    let element = byte / width;
    let value = |bytes: &[u8]| {
        let bytes = bytes.get(element * width..(element + 1) * width).unwrap_or_default();
        text(dtype, bytes)
    };
    Difference {
        element,
        address: address.map(|address| Bytes(address as u64)),
        found: value(found),
        wanted: value(wanted),
        bytes: 1 + differing.count(),
    }
}

/// An element as people read it; as hexadecimal bytes where its type is no plain number.
fn text(dtype: Option<DType>, bytes: &[u8]) -> String {
    macro_rules! number {
        ($type:ty) => {
            bytes.try_into().ok().map(|bytes| <$type>::from_le_bytes(bytes).to_string())
        };
    }
    let number = match dtype {
        Some(DType::F32) => number!(f32),
        Some(DType::F64) => number!(f64),
        Some(DType::I8) => number!(i8),
        Some(DType::I16) => number!(i16),
        Some(DType::I32) => number!(i32),
        Some(DType::I64) => number!(i64),
        Some(DType::U16) => number!(u16),
        Some(DType::U32) => number!(u32),
        Some(DType::U64) => number!(u64),
        Some(DType::U8 | DType::Bool) => number!(u8),
        _ => None,
    };
    number.unwrap_or_else(|| {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("bytes {}", hex.join(" "))
    })
}
