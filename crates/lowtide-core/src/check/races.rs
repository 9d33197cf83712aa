//! Third stage: with several workers, is every access ordered after those that it must not meet?
//!
//! ~~~text
//! bytes   [ a, read by f and g ][ ...    h writes b there: f and g have to be over before h begins
//!         f ──data──> h                  ordered by data: g is not, so that the plan has to carry FENCE g before h
//! ~~~
//! For each range of bytes a shadow knows the run that wrote it last and those that have read it since. A write needs all of
//! them before it, a read the writer. What is before a run follows from data, mutations and fences alone: steps say
//! nothing. An operator has its outputs to itself, those bytes too that lie there already as a part; a piece in place is not
//! written. Bytes of pools and of the caller are used by one tensor each, which data orders.
//!
//! Cost: near-linear. Looks backwards through what a run waits for, no further than the earliest run that it has to come
//! after; all looks together are limited, and what is not shown within that has to be ordered by data alone ([`Reach`]), or
//! needs a fence of its own.

use super::shadow::{Address, Range, Region, Segments};
use super::{Fault, op_label};
use crate::{
    Bytes, Event, Graph, Id, IndexVec, Lists, Occupant, Plan, Reach, ResidenceId, RunId, Sharing,
    SpaceKind, TensorId, TensorKind,
};
use std::collections::BTreeSet;

/// Looks at runs, for each run of the plan and for a plan at least.
const LOOKS: (u64, u64) = (512, 1 << 23);

/// After a longer look, what data alone orders is asked first.
const LONG: u64 = 1 << 12;

/// Judges a plan whose replay found no fault.
pub(super) fn judge(graph: &Graph, plan: &Plan, faults: &mut Vec<Fault>) {
    let Some(mut races) = Races::new(graph, plan, faults) else { return };
    for run in plan.schedule.ids() {
        races.visit(run, faults);
        if faults.len() > MOST_FAULTS {
            return;
        }
    }
}

/// After so many, nothing new is learnt.
const MOST_FAULTS: usize = 100;

/// An access to some bytes; before it came those of the node that it follows, back to the last write.
#[derive(Clone, Copy)]
struct Access {
    /// None for the caller, who writes inputs before the first run.
    run: Option<RunId>,
    /// The access before; none for a write.
    follows: Option<u32>,
}

struct Races<'a> {
    graph: &'a Graph,
    plan: &'a Plan,
    accesses: Vec<Access>,
    /// The last access to each byte: a place in `accesses`.
    last: Segments<u32>,
    past: Past,
    /// What data orders, once looks get long.
    reach: Option<Reach>,
}

impl<'a> Races<'a> {
    /// None if a fence waits for a run that has not begun before.
    fn new(graph: &'a Graph, plan: &'a Plan, faults: &mut Vec<Fault>) -> Option<Self> {
        let fences = fences(plan, faults)?;
        // What has run before, an operator that runs again by its last time.
        let mut runs = IndexVec::filled(graph.ops().len(), None);
        let mut waits = Lists::new();
        for (run, &op) in plan.schedule.iter_enumerated() {
            let data = graph.predecessors(op).into_iter().filter_map(|op| runs[op]);
            waits.push(data.chain(fences[run].iter().copied()));
            runs[op] = Some(run);
        }
        let budget = LOOKS.1 + LOOKS.0 * plan.schedule.len() as u64;
        let seen = IndexVec::filled(plan.schedule.len(), None);
        let past = Past { waits, seen, budget, is_long: false };
        let mut races =
            Self { graph, plan, accesses: Vec::new(), last: Segments::new(), past, reach: None };
        races.note_inputs();
        Some(races)
    }

    /// Inputs of the graph are in the arena before the first run.
    fn note_inputs(&mut self) {
        for (id, row) in self.plan.residences.iter_enumerated() {
            let is_input = matches!(row.what, Occupant::Tensor(tensor)
                if self.graph.tensors()[tensor].kind == TensorKind::Input);
            if let Some(address) = self.in_arena(id).filter(|_| is_input) {
                let access = self.push(Access { run: None, follows: None });
                self.last.set(Range::new(address, row.size.bound()), access);
            }
        }
    }

    fn visit(&mut self, run: RunId, faults: &mut Vec<Fault>) {
        let (reads, writes) = self.ranges(run);
        let mut wanted = BTreeSet::new();
        for &range in &reads {
            self.writers_of(range, &mut wanted);
        }
        for &range in &writes {
            self.accesses_of(range, &mut wanted);
        }
        wanted.remove(&run);
        if self.past.is_long {
            wanted.retain(|&other| !self.is_ordered(other, run));
        }
        let mut missing = self.past.missing(run, &wanted);
        if self.past.is_long {
            missing.retain(|&other| !self.is_ordered(other, run));
        }
        for missing in missing {
            let [op, other] = [run, missing].map(|run| op_label(self.graph, self.plan.op(run)));
            let (step, other_step) = (run.step(), missing.step());
            faults.push(Fault::Unordered { op, step, other, other_step });
        }
        for range in reads {
            self.note_read(range, run);
        }
        for range in writes {
            let access = self.push(Access { run: Some(run), follows: None });
            self.last.set(range, access);
        }
    }

    /// Whether data alone orders two runs. Not asked where an operator runs again: then its runs are not its operators.
    fn is_ordered(&mut self, one: RunId, other: RunId) -> bool {
        let runs_once = self.plan.schedule.len() == self.graph.ops().len();
        runs_once && {
            let reach = self.reach.get_or_insert_with(|| Reach::new(self.graph));
            reach.is_before(self.plan.op(one), self.plan.op(other))
        }
    }

    /// The bytes of the arena that a run reads and those that it may write.
    fn ranges(&self, run: RunId) -> (Vec<Range>, Vec<Range>) {
        let op = &self.graph.ops()[self.plan.op(run)];
        let row = &self.plan.bindings[run];
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (&input, &bound) in op.inputs.iter().zip(row) {
            reads.extend(self.bytes_of(input, bound));
        }
        for (&output, &bound) in op.outputs.iter().zip(&row[op.inputs.len()..]) {
            if self.graph.content(output) == output && !self.is_piece_in_place(run, output, bound) {
                writes.extend(self.bytes_of(output, bound));
            }
        }
        if let (Some(_), Some(&Some(scratch))) = (op.needed_scratch(), row.last())
            && let Some(address) = self.in_arena(scratch)
        {
            writes.push(Range::new(address, self.plan.residences[scratch].size.bound()));
        }
        (reads, writes)
    }

    /// Where a residence begins, if others may come to lie there.
    fn in_arena(&self, id: ResidenceId) -> Option<Address> {
        let (space, offset) = self.plan.address(id)?;
        let is_arena = self.plan.spaces[space].kind == SpaceKind::Arena;
        is_arena.then(|| Address { region: Region::Space(space.raw()), offset: offset.0 })
    }

    fn bytes_of(&self, tensor: TensorId, bound: Option<ResidenceId>) -> Option<Range> {
        let (base, extent) = (self.in_arena(bound?)?, self.graph.extent(tensor));
        let start = Address { offset: base.offset + extent.start.0, ..base };
        Some(Range::new(start, extent.bytes))
    }

    /// Whether an output lies where its operator declares it a piece of an input.
    fn is_piece_in_place(&self, run: RunId, output: TensorId, bound: Option<ResidenceId>) -> bool {
        let op = &self.graph.ops()[self.plan.op(run)];
        let place = bound.and_then(|id| self.in_arena(id));
        let lies = |sharing: &Sharing| {
            let &Sharing::PieceOf { output: piece, of, offset: Bytes(offset) } = sharing else {
                return false;
            };
            let at = op.inputs.iter().position(|&input| input == of);
            let base = at.and_then(|at| self.bytes_of(of, self.plan.bindings[run][at]));
            let start = base.map(|b| Address { offset: b.start.offset + offset, ..b.start });
            piece == output && start.is_some() && start == place
        };
        op.sharing.iter().any(lies)
    }

    fn push(&mut self, access: Access) -> u32 {
        self.accesses.push(access);
        u32::try_from(self.accesses.len() - 1).expect("there are fewer accesses than operands")
    }

    fn access(&self, at: u32) -> Access {
        self.accesses[at as usize]
    }

    /// The last write of each byte.
    fn writers_of(&self, range: Range, wanted: &mut BTreeSet<RunId>) {
        let mut known = BTreeSet::new();
        for (_, mut at) in self.last.overlapping(range) {
            while let Some(before) = self.access(at).follows.filter(|_| known.insert(at)) {
                at = before;
            }
            if self.access(at).follows.is_none() {
                wanted.extend(self.access(at).run);
            }
        }
    }

    /// All accesses to each byte since its last write, and that.
    fn accesses_of(&self, range: Range, wanted: &mut BTreeSet<RunId>) {
        let mut known = BTreeSet::new();
        for (_, at) in self.last.overlapping(range) {
            let mut next = Some(at);
            while let Some(at) = next.filter(|&at| known.insert(at)) {
                wanted.extend(self.access(at).run);
                next = self.access(at).follows;
            }
        }
    }

    fn note_read(&mut self, range: Range, run: RunId) {
        let parts: Vec<(Range, u32)> = self.last.overlapping(range).collect();
        for (part, at) in parts {
            if self.access(at).run != Some(run) {
                let access = self.push(Access { run: Some(run), follows: Some(at) });
                self.last.set(part, access);
            }
        }
    }
}

/// The runs that each run waits for by a fence; none if one waits for what comes later.
fn fences(plan: &Plan, faults: &mut Vec<Fault>) -> Option<Lists<RunId, RunId>> {
    let (mut pairs, mut next) = (Vec::new(), RunId::new(0));
    let before = faults.len();
    for (event, &row) in plan.events.iter().enumerate() {
        match row {
            Event::Exec(run) => next = RunId::from_index(run.index() + 1),
            Event::Fence(found) if found >= next || next.index() >= plan.schedule.len() => {
                faults.push(Fault::LateFence { event, found, next });
            }
            Event::Fence(found) => pairs.push((next, found)),
            Event::Alloc(_) | Event::Free(_) | Event::Compact(_) => {}
        }
    }
    (faults.len() == before).then(|| Lists::group(plan.schedule.len(), &pairs))
}

/// What is before what.
struct Past {
    /// For each run, those that it waits for by data, mutation or a fence.
    waits: Lists<RunId, RunId>,
    /// Of each run, the last one from which it was seen.
    seen: IndexVec<RunId, Option<RunId>>,
    budget: u64,
    /// A look was long, or there are none left.
    is_long: bool,
}

impl Past {
    /// Which of some runs are not shown to be over before `run` begins.
    fn missing(&mut self, run: RunId, wanted: &BTreeSet<RunId>) -> Vec<RunId> {
        let direct: BTreeSet<RunId> = self.waits[run].iter().copied().collect();
        let mut open: Vec<RunId> =
            wanted.iter().copied().filter(|other| !direct.contains(other)).collect();
        let Some(&least) = open.first() else { return open };
        let mut ways: Vec<RunId> = direct.into_iter().collect();
        let before = self.budget;
        while let Some(at) = ways.pop() {
            if at < least || self.seen[at] == Some(run) || self.budget == 0 {
                continue;
            }
            self.seen[at] = Some(run);
            self.budget = self.budget.saturating_sub(1 + self.waits[at].len() as u64);
            ways.extend_from_slice(&self.waits[at]);
        }
        self.is_long |= before - self.budget > LONG || self.budget == 0;
        open.retain(|&other| self.seen[other] != Some(run));
        open
    }
}
