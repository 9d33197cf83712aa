//! Program and plan in, ranges of bytes out: where every operand of every run lies.
//!
//! ~~~text
//! run 3: Add(a, w) -> b      a  arena [0, 4096)      b lies on a: the kernel gets the bytes once,
//!                            w  weight 7              as output 0, and hears that input 0 is in it
//!                            b  arena [0, 4096)
//! run 4: Split(b) -> p, q    p  arena [0, 1024)      p lies where it begins in b: nobody writes it;
//!                            q  arena [8192, ..)      the kernel writes q only
//! ~~~
//! A plan is checked before it comes here. Still nothing of that is relied on for the safety of memory: a [`BoundRun`]
//! can only be made of ranges that are proven apart here, once, so that slices of them never overlap. Cost: the square
//! of an operator's operands in the arena that it writes, linear in all else.

use crate::SessionError;
use crate::pool_places::PoolPlaces;
use lowtide_core::operator::{LateCall, Operand, Prepared, Program};
use lowtide_core::{
    Bytes, DType, Graph, Id, IndexVec, OpId, Owner, Plan, ResidenceId, RunId, Sharing, Size,
    TensorId, TensorKind,
};
use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the arena, apart from all that the run writes.
    Arena(Range<usize>),
    /// In an output of the run, from this byte on.
    Output { output: usize, offset: usize },
    /// Those of a weight.
    Weight(TensorId, Range<usize>),
    /// Those of the caller's input of this number.
    Caller(usize, Range<usize>),
    /// Those of the block at this place of the pool, all of them.
    Pool(usize),
}

/// Where an output is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To these bytes of the arena.
    Arena(Range<usize>),
    /// To a block that the run finds, for this place of the pool.
    Pool(usize),
}

/// One input of a run.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) tensor: TensorId,
    pub(crate) dtype: DType,
    pub(crate) source: Source,
}

/// One output of a run.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) tensor: TensorId,
    pub(crate) dtype: DType,
    pub(crate) target: Target,
}

impl Write {
    /// Its bytes of the arena, if it lies there.
    pub(crate) fn range(&self) -> Option<&Range<usize>> {
        match &self.target {
            Target::Arena(range) => Some(range),
            Target::Pool(_) => None,
        }
    }
}

/// The operands of one run. Of those whose size is known in the run, ranges are as large as they may become: unbounded
/// where they are bytes of the caller. Invariant: what is written (outputs and scratch) is apart from each other and from every
/// input that has `Source::Arena`; an input with `Source::Output` lies inside that output.
#[derive(Clone, Debug)]
pub(crate) struct BoundRun {
    op: OpId,
    reads: Vec<Option<Read>>,
    writes: Vec<Option<Write>>,
    scratch: Range<usize>,
}

impl BoundRun {
    /// Proves the operands apart, and finds the inputs that lie in outputs.
    fn new(
        op: OpId,
        mut reads: Vec<Option<Read>>,
        writes: Vec<Option<Write>>,
        scratch: Range<usize>,
    ) -> Result<Self, [Operand; 2]> {
        let named = |(at, write): (usize, &Option<Write>)| {
            Some((Operand::Output(at), write.as_ref()?.range()?.clone()))
        };
        let mut written: Vec<(Operand, Range<usize>)> =
            writes.iter().enumerate().filter_map(named).collect();
        written.push((Operand::Scratch, scratch.clone()));
        for (index, (one, range)) in written.iter().enumerate() {
            let other = written[..index].iter().find(|other| overlap(&other.1, range));
            if let Some((other, _)) = other {
                return Err([*other, *one]);
            }
        }
        for (at, read) in reads.iter_mut().enumerate() {
            let Some(Read { source, .. }) = read else { continue };
            let Source::Arena(range) = source else { continue };
            let Some((operand, over)) = written.iter().find(|row| overlap(&row.1, range)) else {
                continue;
            };
            let is_inside = over.start <= range.start && range.end <= over.end;
            match operand {
                Operand::Output(output) if is_inside => {
                    *source = Source::Output { output: *output, offset: range.start - over.start };
                }
                _ => return Err([Operand::Input(at), *operand]),
            }
        }
        Ok(Self { op, reads, writes, scratch })
    }

    pub(crate) fn op(&self) -> OpId {
        self.op
    }

    pub(crate) fn reads(&self) -> &[Option<Read>] {
        &self.reads
    }

    pub(crate) fn writes(&self) -> &[Option<Write>] {
        &self.writes
    }

    pub(crate) fn scratch(&self) -> Range<usize> {
        self.scratch.clone()
    }
}

/// Takes out of `writes` what the operator declares a piece of an input and what lies there already; whether that leaves
/// nothing to write. What lies in an input anywhere else stays, and is refused by [`BoundRun::new`].
fn leave_in_place(
    sharing: &[Sharing],
    reads: &[Option<Read>],
    writes: &mut [Option<Write>],
) -> bool {
    let place = |of: TensorId| {
        let read = reads.iter().flatten().find(|read| read.tensor == of)?;
        if let Source::Arena(range) = &read.source { Some(range.clone()) } else { None }
    };
    let mut pieces = BTreeSet::new();
    for sharing in sharing {
        let &Sharing::PieceOf { output, of, offset: Bytes(offset) } = sharing else { continue };
        let start = place(of).zip(usize::try_from(offset).ok());
        if let Some((base, offset)) = start {
            pieces.insert((output, base.start.saturating_add(offset), base.end));
        }
    }
    let is_in_place = |write: &Write| {
        let Some(&Range { start, end }) = write.range() else { return false };
        let at = (write.tensor, start, end)..=(write.tensor, start, usize::MAX);
        pieces.range(at).next().is_some()
    };
    let mut left = false;
    let mut taken = false;
    for write in writes {
        if write.as_ref().is_some_and(is_in_place) {
            *write = None;
            taken = true;
        }
        left |= write.is_some();
    }
    taken && !left
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

/// The operands of one run where the plan has them, not yet proven apart.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) op: OpId,
    pub(crate) reads: Vec<Option<Read>>,
    pub(crate) writes: Vec<Option<Write>>,
    pub(crate) scratch: Range<usize>,
}

impl Placed {
    /// Proves them apart, or names two that are not; `None` if there is nothing to write.
    pub(crate) fn bind(mut self, sharing: &[Sharing]) -> Result<Option<BoundRun>, [Operand; 2]> {
        if leave_in_place(sharing, &self.reads, &mut self.writes) {
            return Ok(None);
        }
        BoundRun::new(self.op, self.reads, self.writes, self.scratch).map(Some)
    }
}

/// Operands of an operator, by position.
type Operands = Vec<Option<TensorId>>;

/// Where everything lies in one block of memory, run by run as the plan says.
#[derive(Debug)]
pub(crate) struct Places {
    /// The operands of each run; `None` for one whose operator calculates nothing.
    pub(crate) runs: IndexVec<RunId, Option<Placed>>,
    /// As in [`Bound`].
    pub(crate) inputs: Vec<Option<Range<usize>>>,
    /// As in [`Bound`].
    pub(crate) outputs: Vec<Source>,
    /// As in [`Bound`].
    pub(crate) pool: PoolPlaces,
    /// As in [`Bound`].
    pub(crate) bytes: Bytes,
}

/// Where everything lies in one block of memory: the plan's arena, and behind it what the plan leaves to the caller.
#[derive(Debug)]
pub(crate) struct Bound {
    /// The operands of each run; `None` for one that has nothing to do.
    pub(crate) runs: IndexVec<RunId, Option<BoundRun>>,
    /// Where each of the caller's inputs is copied to before the first step, if the plan wants it in the arena.
    pub(crate) inputs: Vec<Option<Range<usize>>>,
    /// Where each output of the graph is in the end.
    pub(crate) outputs: Vec<Source>,
    /// What lies in the pool.
    pub(crate) pool: PoolPlaces,
    /// Bytes of the block.
    pub(crate) bytes: Bytes,
}

/// Binds every operand of every run.
pub(crate) fn bind(program: &Program, plan: &Plan) -> Result<Bound, SessionError> {
    let Places { runs, inputs, outputs, pool, bytes } = place(program, plan)?;
    let bind = |placed: Placed| {
        let op = placed.op;
        placed.bind(&program.graph.ops()[op].sharing).map_err(|operands| SessionError::Overlap {
            op: program.graph.op_label(op),
            operands: operands.map(|operand| operand.to_string()),
        })
    };
    let bound = |placed: Option<Placed>| Ok(placed.map(bind).transpose()?.flatten());
    let runs = Vec::from(runs).into_iter().map(bound).collect::<Result<_, SessionError>>()?;
    Ok(Bound { runs, inputs, outputs, pool, bytes })
}

/// Finds every operand of every run. Ids of the plan have to be in range; nothing else of it is relied on.
pub(crate) fn place(program: &Program, plan: &Plan) -> Result<Places, SessionError> {
    Placer::new(program, plan)?.run()
}

/// Where a storage is that the plan leaves to the caller.
#[derive(Clone, Copy)]
enum Outside {
    /// From this byte of the block on.
    Behind(usize),
    /// At this place of the pool.
    Pool(usize),
}

struct Placer<'a> {
    program: &'a Program,
    graph: &'a Graph,
    plan: &'a Plan,
    /// Storages that the plan leaves to the caller: behind the arena, or in the pool.
    outside: IndexVec<TensorId, Option<Outside>>,
    pool: PoolPlaces,
    /// The storage's residence at the step that is looked at.
    homes: IndexVec<TensorId, Option<ResidenceId>>,
    bytes: Bytes,
}

impl<'a> Placer<'a> {
    fn new(program: &'a Program, plan: &'a Plan) -> Result<Self, SessionError> {
        let graph = &program.graph;
        let mut outside = IndexVec::filled(graph.tensors().len(), None);
        let mut bytes = plan.stats.arena_bytes;
        let mut pool = PoolPlaces::of(graph, plan);
        for (id, tensor) in graph.tensors().iter_enumerated() {
            let is_callers = plan.outputs == Owner::Caller && graph.holds_output(id);
            if !is_callers || !graph.is_storage(id) || tensor.kind != TensorKind::Computed {
                continue;
            }
            let Some(size) = tensor.size.bound() else {
                outside[id] = Some(Outside::Pool(pool.add(id)));
                continue;
            };
            let start = bytes.align_up(plan.align);
            let end = start.and_then(|start| start.checked_add(size));
            let (Some(start), Some(end)) = (start, end) else {
                return Err(SessionError::NotFixed { tensor: graph.tensor_label(id) });
            };
            outside[id] = usize::try_from(start.0).ok().map(Outside::Behind);
            bytes = end;
        }
        let homes = IndexVec::filled(graph.tensors().len(), None);
        Ok(Self { program, graph, plan, outside, pool, homes, bytes })
    }

    fn run(mut self) -> Result<Places, SessionError> {
        let mut runs = IndexVec::new();
        for (run, &op) in self.plan.schedule.iter_enumerated() {
            self.note_homes(run, op);
            let call = self.program.calls[op].as_ref();
            let call = call.map(|Prepared { inputs, outputs, .. }| (inputs, outputs));
            let late = self.program.late.get(&op);
            let call =
                call.or_else(|| late.map(|LateCall { inputs, outputs, .. }| (inputs, outputs)));
            let place = |(inputs, outputs): (&Operands, &Operands)| {
                self.place_run((run, op), inputs, outputs)
            };
            runs.push(call.map(place).transpose()?);
        }
        let inputs =
            self.program.inputs.iter().map(|&id| self.input(id)).collect::<Result<_, _>>()?;
        let outputs = self.program.outputs.iter().map(|&id| self.source(id, None));
        let outputs = outputs.collect::<Result<_, _>>()?;
        Ok(Places { runs, inputs, outputs, pool: self.pool, bytes: self.bytes })
    }

    /// Remembers where storages are, for what has no binding of its own: outputs of the graph at the end.
    fn note_homes(&mut self, run: RunId, op: OpId) {
        let row = &self.graph.ops()[op];
        let operands = row.inputs.iter().chain(&row.outputs);
        for (&tensor, &bound) in operands.zip(&self.plan.bindings[run]) {
            let root = self.graph.storage(tensor);
            self.homes[root] = bound.or(self.homes[root]);
        }
    }

    /// The operands of a run.
    fn place_run(
        &self,
        (run, op): (RunId, OpId),
        inputs: &Operands,
        outputs: &Operands,
    ) -> Result<Placed, SessionError> {
        let mut bindings = self.plan.bindings[run].iter().copied();
        let mut next = || bindings.next().flatten();
        let mut reads = Vec::with_capacity(inputs.len());
        for &input in inputs {
            reads.push(input.map(|tensor| self.read(tensor, next())).transpose()?);
        }
        // Values that a body captures stand between inputs and outputs; no operator with a body has a kernel.
        let mut writes = Vec::with_capacity(outputs.len());
        for &output in outputs {
            let bound = output.map(|tensor| (tensor, next()));
            // A view is bytes that were written already.
            let written = bound.filter(|&(tensor, _)| self.graph.content(tensor) == tensor);
            writes.push(written.map(|(tensor, bound)| self.write(tensor, bound)).transpose()?);
        }
        let scratch = match self.graph.ops()[op].needed_scratch() {
            // The run finds a block for it.
            None | Some(Size::Unknown) => 0..0,
            Some(_) => self.whole(next(), || format!("scratch of {}", self.graph.op_label(op)))?,
        };
        let placed = Placed { op, reads, writes, scratch };
        self.refuse_pool(&placed)?;
        Ok(placed)
    }

    /// Only operators that are late know what to do with a block of the pool.
    fn refuse_pool(&self, placed: &Placed) -> Result<(), SessionError> {
        if self.program.late.contains_key(&placed.op) {
            return Ok(());
        }
        let read = |read: &&Read| matches!(read.source, Source::Pool(_));
        let written = |write: &&Write| matches!(write.target, Target::Pool(_));
        let read = placed.reads.iter().flatten().find(read).map(|read| read.tensor);
        let written = placed.writes.iter().flatten().find(written).map(|write| write.tensor);
        let not_placed =
            |tensor| SessionError::NotPlaced { tensor: self.graph.tensor_label(tensor) };
        read.or(written).map_or(Ok(()), |tensor| Err(not_placed(tensor)))
    }

    fn dtype(&self, tensor: TensorId) -> Result<DType, SessionError> {
        let dtype = self.graph.tensors()[tensor].dtype;
        dtype.ok_or_else(|| SessionError::NotFixed { tensor: self.graph.tensor_label(tensor) })
    }

    fn read(&self, tensor: TensorId, bound: Option<ResidenceId>) -> Result<Read, SessionError> {
        let (dtype, source) = (self.dtype(tensor)?, self.source(tensor, bound)?);
        Ok(Read { tensor, dtype, source })
    }

    fn write(&self, tensor: TensorId, bound: Option<ResidenceId>) -> Result<Write, SessionError> {
        let target = match self.source(tensor, bound)? {
            Source::Arena(range) => Target::Arena(range),
            Source::Pool(place) if self.graph.is_storage(tensor) => Target::Pool(place),
            _ => {
                return Err(SessionError::NotPlaced { tensor: self.graph.tensor_label(tensor) });
            }
        };
        Ok(Write { tensor, dtype: self.dtype(tensor)?, target })
    }

    /// Where the bytes of a tensor are, which is bound to a residence or lies where its storage was last.
    fn source(&self, tensor: TensorId, bound: Option<ResidenceId>) -> Result<Source, SessionError> {
        let extent = self.graph.extent(tensor);
        let within = self.within(tensor)?;
        let number = self.program.inputs.iter().position(|&input| input == extent.root);
        let is_open = self.graph.tensors()[extent.root].size.bound().is_none();
        if let Some(number) = number.filter(|_| is_open) {
            // Nobody overwrites it, so it need not be copied wherever the plan has it.
            return Ok(Source::Caller(number, within));
        }
        let home = bound.or(self.homes[extent.root]);
        if let Some(place) = home.and_then(|home| self.pool.place(home)) {
            return self.in_pool(tensor, place);
        }
        if let Some(residence) = home {
            let whole = self.whole(Some(residence), || self.graph.tensor_label(tensor))?;
            let range = whole.start + within.start..whole.start.saturating_add(within.end);
            if range.end > whole.end {
                return Err(SessionError::NotPlaced { tensor: self.graph.tensor_label(tensor) });
            }
            return Ok(Source::Arena(range));
        }
        match self.outside[extent.root] {
            Some(Outside::Behind(start)) => {
                return Ok(Source::Arena(start + within.start..start + within.end));
            }
            Some(Outside::Pool(place)) => return self.in_pool(tensor, place),
            None => {}
        }
        match (self.graph.tensors()[extent.root].kind, number) {
            (TensorKind::Weight, _) => Ok(Source::Weight(extent.root, within)),
            (TensorKind::Input, Some(number)) => Ok(Source::Caller(number, within)),
            _ => Err(SessionError::NotPlaced { tensor: self.graph.tensor_label(tensor) }),
        }
    }

    /// A tensor in a block of the pool is all of it.
    fn in_pool(&self, tensor: TensorId, place: usize) -> Result<Source, SessionError> {
        if self.graph.extent(tensor).start == Bytes::ZERO {
            return Ok(Source::Pool(place));
        }
        Err(SessionError::NotPlaced { tensor: self.graph.tensor_label(tensor) })
    }

    /// Which bytes of its storage a tensor takes, or may take at most; of one without a bound, all from its start on.
    fn within(&self, tensor: TensorId) -> Result<Range<usize>, SessionError> {
        let extent = self.graph.extent(tensor);
        let not_fixed = || SessionError::NotFixed { tensor: self.graph.tensor_label(tensor) };
        let number = |Bytes(bytes): Bytes| usize::try_from(bytes).map_err(|_| not_fixed());
        if !extent.is_exact {
            return Err(not_fixed());
        }
        let start = number(extent.start)?;
        let size = self.graph.tensors()[tensor].size.bound().or(extent.bytes);
        let Some(size) = size else { return Ok(start..usize::MAX) };
        if extent.bytes.is_some_and(|all| size > all) {
            return Err(not_fixed());
        }
        Ok(start..number(extent.start.checked_add(size).ok_or_else(not_fixed)?)?)
    }

    /// All bytes of a residence; `what` names who needs them.
    fn whole(
        &self,
        residence: Option<ResidenceId>,
        what: impl FnOnce() -> String,
    ) -> Result<Range<usize>, SessionError> {
        let address = residence.and_then(|id| self.plan.address(id));
        let size = residence.and_then(|id| self.plan.residences[id].size.bound());
        let range = address.zip(size).and_then(|((space, start), size)| {
            let end = start.checked_add(size)?;
            let is_arena = space.index() == 0 && end <= self.plan.stats.arena_bytes;
            let range = usize::try_from(start.0).ok()?..usize::try_from(end.0).ok()?;
            is_arena.then_some(range)
        });
        range.ok_or_else(|| SessionError::NotPlaced { tensor: what() })
    }

    /// Where an input is copied to, if the plan owns it and anybody needs it.
    fn input(&self, id: TensorId) -> Result<Option<Range<usize>>, SessionError> {
        let is_placed = self.plan.inputs == Owner::Arena && self.graph.storage(id) == id;
        let is_open = self.graph.tensors()[id].size.bound().is_none();
        let home = self.homes[id].filter(|_| is_placed && !is_open);
        home.map(|home| self.whole(Some(home), || self.graph.tensor_label(id))).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(range: Range<usize>) -> Read {
        Read { tensor: TensorId::new(0), dtype: DType::U8, source: Source::Arena(range) }
    }

    fn write(range: Range<usize>) -> Write {
        Write { tensor: TensorId::new(1), dtype: DType::U8, target: Target::Arena(range) }
    }

    fn bound(
        reads: Vec<Read>,
        writes: Vec<Write>,
        scratch: Range<usize>,
    ) -> Result<Vec<Source>, String> {
        let reads = reads.into_iter().map(Some).chain([None]).collect();
        let writes = writes.into_iter().map(Some).collect();
        let run = BoundRun::new(OpId::new(0), reads, writes, scratch);
        let run = run.map_err(|[one, other]| format!("{one} on {other}"))?;
        Ok(run.reads.into_iter().flatten().map(|read| read.source).collect())
    }

    #[test]
    fn an_input_inside_an_output_is_found_there() {
        let reads = vec![read(64..128), read(0..64)];
        let found = bound(reads, vec![write(0..32), write(64..192)], 192..200).unwrap_err();
        assert_eq!(found, "input 1 on output 0");
        let found = bound(vec![read(96..128), read(0..32)], vec![write(64..192)], 0..0).unwrap();
        assert_eq!(found, [Source::Output { output: 0, offset: 32 }, Source::Arena(0..32)]);
    }

    #[test]
    fn nothing_is_written_twice_or_under_the_scratch() {
        let two = |scratch| bound(vec![read(0..8)], vec![write(8..16), write(16..24)], scratch);
        assert!(two(24..32).is_ok());
        assert_eq!(two(23..32).unwrap_err(), "output 1 on scratch");
        assert_eq!(two(4..6).unwrap_err(), "input 0 on scratch");
        let twice = bound(Vec::new(), vec![write(0..16), write(8..24)], 0..0);
        assert_eq!(twice.unwrap_err(), "output 0 on output 1");
    }

    /// Splits what lies at `[64, 128)` into outputs of 32 bytes that lie at `starts`, as pieces of it one behind the
    /// other: which of them are written, and whether they can be.
    fn split(starts: [usize; 2]) -> (Vec<bool>, bool, bool) {
        let piece = |tensor, offset| Sharing::PieceOf {
            output: TensorId::new(tensor),
            of: TensorId::new(0),
            offset: Bytes(offset),
        };
        let reads = vec![Some(read(64..128))];
        let output = |(at, start): (u32, usize)| {
            Some(Write { tensor: TensorId::new(at), ..write(start..start + 32) })
        };
        let mut writes: Vec<_> = (1..).zip(starts).map(output).collect();
        let nothing = leave_in_place(&[piece(1, 0), piece(2, 32)], &reads, &mut writes);
        let written = writes.iter().map(Option::is_some).collect();
        (written, nothing, BoundRun::new(OpId::new(0), reads, writes, 0..0).is_ok())
    }

    #[test]
    fn pieces_in_place_are_not_written() {
        assert_eq!(split([64, 96]), (vec![false, false], true, true));
        assert_eq!(split([64, 0]), (vec![false, true], false, true));
        assert_eq!(split([0, 128]), (vec![true, true], false, true));
    }

    #[test]
    fn pieces_at_another_place_are_refused() {
        assert_eq!(split([96, 0]), (vec![true, true], false, false));
        assert_eq!(split([64, 100]), (vec![false, true], false, false));
    }

    #[test]
    fn empty_operands_are_apart_from_all() {
        assert_eq!(
            bound(vec![read(8..8)], vec![write(0..16)], 4..4).unwrap(),
            [Source::Arena(8..8)]
        );
    }
}
