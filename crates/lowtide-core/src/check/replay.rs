//! Second stage: follow the events, and look at what every read would see.

use super::shadow::{Address, Found, Range, Region, Segments};
use super::tables::label;
use super::{Fault, is_placed, padded};
use crate::{
    BufferId, Bytes, Event, Graph, Id, IndexVec, Interval, Occupant, OpId, Plan, ResidenceId,
    RunId, Sharing, SpaceKind, Step, TensorId, TensorKind,
};
use std::collections::BTreeMap;

/// What the replay found.
pub(super) struct Replayed {
    pub(super) faults: Vec<Fault>,
    /// Reserved bytes of all arenas while each run executes.
    pub(super) live: IndexVec<RunId, Bytes>,
}

/// Replays a plan whose tables are sound.
pub(super) fn run(graph: &Graph, plan: &Plan) -> Replayed {
    let mut replay = Replay::new(graph, plan);
    for (index, &event) in plan.events.iter().enumerate() {
        match event {
            Event::Alloc(id) => replay.alloc(index, id),
            Event::Free(id) => replay.free(index, id),
            Event::Exec(run) => {
                if !replay.exec(index, run) {
                    break;
                }
            }
        }
    }
    replay.finish();
    Replayed { faults: replay.faults, live: replay.live }
}

/// What some bytes hold: the value of a tensor, whose storage begins at `base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content {
    tensor: TensorId,
    base: Address,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    Held { since: Step },
    Freed,
}

/// Two residences that would hold the same bytes, unless the next run may do that.
struct Encounter {
    new: ResidenceId,
    old: ResidenceId,
}

const NOT_ALLOWED: &str = "nothing allows that";

/// Which outputs of one operator may lie on which of its inputs.
struct Permissions {
    /// The storage of each input, with the input, sorted.
    inputs: Vec<(TensorId, TensorId)>,
    /// For output and input: where the input lies in the output; `None` if it is overwritten.
    distances: BTreeMap<(TensorId, TensorId), Option<Bytes>>,
}

impl Permissions {
    fn new(graph: &Graph, op: OpId) -> Self {
        let op = &graph.ops()[op];
        let mut inputs: Vec<_> = op.inputs.iter().map(|&t| (graph.storage(t), t)).collect();
        inputs.sort_unstable();
        let distances = op.sharing.iter().filter_map(|&sharing| match sharing {
            Sharing::MayOverwrite { output, of } => Some(((output, of), None)),
            Sharing::PartOf { input, output, offset } => Some(((output, input), Some(offset))),
            Sharing::View { .. } | Sharing::Mutates { .. } => None,
        });
        Self { distances: distances.collect(), inputs }
    }

    /// The one input that lies in a storage.
    fn only_input(&self, root: TensorId) -> Result<TensorId, &'static str> {
        let first = self.inputs.partition_point(|&(storage, _)| storage < root);
        let mut lying = self.inputs[first..].iter().take_while(|&&(storage, _)| storage == root);
        let &(_, input) = lying.next().ok_or(NOT_ALLOWED)?;
        match lying.next() {
            None => Ok(input),
            Some(_) => Err("another input of the operator lies on the same bytes"),
        }
    }
}

struct Replay<'a> {
    graph: &'a Graph,
    plan: &'a Plan,
    faults: Vec<Fault>,
    live: IndexVec<RunId, Bytes>,
    live_now: u64,
    states: IndexVec<ResidenceId, State>,
    /// Largest end of the residences of each buffer: there the padding lies.
    extents: IndexVec<BufferId, Bytes>,
    /// Who holds which bytes; in an in-place hand-over the newer one.
    holders: Segments<ResidenceId>,
    contents: Segments<Content>,
    /// Where each storage was written last.
    homes: IndexVec<TensorId, Option<ResidenceId>>,
    written: IndexVec<TensorId, bool>,
    /// The caller's storages of which some bytes are changed by the graph.
    changed_outside: IndexVec<TensorId, bool>,
    /// Allocated since the last run.
    fresh: Vec<(usize, ResidenceId)>,
    encounters: Vec<Encounter>,
}

impl<'a> Replay<'a> {
    fn new(graph: &'a Graph, plan: &'a Plan) -> Self {
        let tensors = graph.tensors();
        let mut extents = IndexVec::filled(plan.buffers.len(), Bytes::ZERO);
        for residence in &plan.residences {
            let end = residence.offset.checked_add(residence.size.bound().unwrap_or_default());
            extents[residence.buffer] = end.unwrap_or_default().max(extents[residence.buffer]);
        }
        let mut replay = Self {
            graph,
            plan,
            faults: Vec::new(),
            live: IndexVec::new(),
            live_now: 0,
            states: IndexVec::filled(plan.residences.len(), State::Before),
            extents,
            holders: Segments::new(),
            contents: Segments::new(),
            homes: IndexVec::filled(tensors.len(), None),
            written: tensors.iter().map(|t| t.kind != TensorKind::Computed).collect(),
            changed_outside: IndexVec::filled(tensors.len(), false),
            fresh: Vec::new(),
            encounters: Vec::new(),
        };
        replay.note_changes_outside();
        replay
    }

    /// Inputs and weights that the graph changes start with their own value.
    fn note_changes_outside(&mut self) {
        for tensor in self.graph.tensors().ids() {
            let root = self.graph.storage(tensor);
            let is_mutated = tensor != root && self.graph.content(tensor) == tensor;
            if is_mutated && !is_placed(self.graph, self.plan, root) && !self.changed_outside[root]
            {
                self.changed_outside[root] = true;
                self.put(root, Self::outside(root));
            }
        }
    }

    // Addresses.

    fn outside(root: TensorId) -> Address {
        Address { region: Region::External(root.raw()), offset: 0 }
    }

    fn address(&self, id: ResidenceId) -> Address {
        match self.plan.address(id) {
            Some((space, offset)) => {
                Address { region: Region::Space(space.raw()), offset: offset.0 }
            }
            None => Address { region: Region::Pooled(id.raw()), offset: 0 },
        }
    }

    /// The bytes that are a residence's own, padding included.
    fn reserved(&self, id: ResidenceId) -> Range {
        let residence = &self.plan.residences[id];
        let bytes = residence.size.bound();
        let end = bytes.map(|bytes| residence.offset + bytes);
        let is_last = end == Some(self.extents[residence.buffer]);
        let reserved =
            if is_last { end.map(|end| padded(self.plan, end) - residence.offset) } else { bytes };
        Range::new(self.address(id), reserved.filter(|_| bytes != Some(Bytes::ZERO)).or(bytes))
    }

    /// The bytes of a tensor whose storage begins at `base`.
    fn bytes_of(&self, tensor: TensorId, base: Address) -> Range {
        let extent = self.graph.extent(tensor);
        let start = Address { offset: base.offset + extent.start.0, ..base };
        Range::new(start, extent.bytes)
    }

    /// Writes the value of `tensor` to its place in the storage at `base`.
    fn put(&mut self, tensor: TensorId, base: Address) {
        self.contents.set(self.bytes_of(tensor, base), Content { tensor, base });
    }

    /// What a read of `tensor` would find instead of its value.
    fn surprise(&self, tensor: TensorId, base: Address) -> Option<String> {
        let wanted = Content { tensor: self.graph.content(tensor), base };
        let found = self.contents.first_other(self.bytes_of(tensor, base), wanted)?;
        let name = |tensor: TensorId| format!("`{}`", self.graph.tensors()[tensor].name);
        Some(match found {
            Found::Nothing => "bytes that nothing wrote".to_owned(),
            Found::Other(found) if found.tensor == wanted.tensor => {
                format!("{} at another place", name(found.tensor))
            }
            Found::Other(found) => name(found.tensor),
        })
    }

    fn label(&self, id: ResidenceId) -> String {
        label(self.graph, self.plan, id)
    }

    /// The step of the next run.
    fn now(&self) -> Step {
        Step::from_index(self.live.len())
    }

    // Events.

    fn alloc(&mut self, event: usize, id: ResidenceId) {
        if self.states[id] != State::Before {
            let what = self.label(id);
            self.faults.push(Fault::AllocatedTwice { event, residence: id, what });
            return;
        }
        self.states[id] = State::Held { since: self.now() };
        self.fresh.push((event, id));
        let range = self.reserved(id);
        let olds: Vec<(Range, ResidenceId)> = self.holders.overlapping(range).collect();
        let covered: u64 = olds.iter().map(|(part, _)| part.len()).sum();
        for &(_, old) in &olds {
            if self.encounters.last().is_none_or(|last| (last.new, last.old) != (id, old)) {
                self.encounters.push(Encounter { new: id, old });
            }
        }
        if self.in_arena(id) {
            self.live_now += range.len() - covered;
        }
        self.holders.set(range, id);
        if let Occupant::Tensor(tensor) = self.plan.residences[id].what
            && self.graph.tensors()[tensor].kind == TensorKind::Input
        {
            self.put(tensor, self.address(id));
            self.homes[tensor] = Some(id);
        }
    }

    fn in_arena(&self, id: ResidenceId) -> bool {
        let buffer = &self.plan.buffers[self.plan.residences[id].buffer];
        self.plan.spaces[buffer.space].kind == SpaceKind::Arena
    }

    fn free(&mut self, event: usize, id: ResidenceId) {
        let State::Held { since } = self.states[id] else {
            let what = self.label(id);
            self.faults.push(Fault::FreeWithoutAlloc { event, residence: id, what });
            return;
        };
        self.states[id] = State::Freed;
        self.check_span(id, Interval::new(since, self.now()));
        let range = self.reserved(id);
        let mut parts = Vec::new();
        for (part, holder) in self.holders.overlapping(range) {
            if holder == id {
                parts.push(part);
            }
        }
        let given_back = self.holders.clear_if(range, |holder| holder == id);
        for part in parts {
            self.contents.clear(part);
        }
        if self.in_arena(id) {
            self.live_now -= given_back;
        }
    }

    fn check_span(&mut self, id: ResidenceId, wanted: Interval) {
        let found = self.plan.residences[id].span;
        if found != wanted {
            let (what, found) = (self.label(id), found.to_string());
            let wanted = wanted.to_string();
            self.faults.push(Fault::WrongSpan { residence: id, what, found, wanted });
        }
    }

    /// Executes a run; `false` if nothing that follows would make sense.
    fn exec(&mut self, event: usize, run: RunId) -> bool {
        if run.step() != self.now() {
            let next = RunId::from_index(self.live.len());
            let is_over = self.live.len() == self.plan.schedule.len();
            let wanted = if is_over { "no more runs".to_owned() } else { next.to_string() };
            self.faults.push(Fault::OutOfTurn { event, found: run, wanted });
            return false;
        }
        self.check_fresh(run);
        self.check_encounters(run);
        self.read_and_write(run);
        self.live.push(Bytes(self.live_now));
        true
    }

    /// What was allocated since the last run is used by this one; inputs come before the first run.
    fn check_fresh(&mut self, run: RunId) {
        let mut used: Vec<ResidenceId> =
            self.plan.bindings[run].iter().flatten().copied().collect();
        used.sort_unstable();
        for (event, id) in std::mem::take(&mut self.fresh) {
            let is_input = matches!(self.plan.residences[id].what, Occupant::Tensor(tensor)
                if self.graph.tensors()[tensor].kind == TensorKind::Input);
            let (what, residence) = (|| self.label(id), id);
            let fault = match (is_input, run.index() == 0, used.binary_search(&id).is_ok()) {
                (true, true, _) | (false, _, true) => continue,
                (true, false, _) => Fault::LateInput { event, residence, what: what() },
                (false, _, false) => Fault::EarlyAlloc { event, residence, what: what() },
            };
            self.faults.push(fault);
        }
    }

    fn check_encounters(&mut self, run: RunId) {
        let encounters = std::mem::take(&mut self.encounters);
        if encounters.is_empty() {
            return;
        }
        let permissions = Permissions::new(self.graph, self.plan.op(run));
        for encounter in encounters {
            if let Err(why) = self.may_share(&permissions, &encounter) {
                self.held_twice(&encounter, why);
            }
        }
    }

    fn held_twice(
        &mut self,
        &Encounter { new: new_id, old: old_id }: &Encounter,
        why: &'static str,
    ) {
        let (new, old) = (self.label(new_id), self.label(old_id));
        let step = self.now();
        self.faults.push(Fault::HeldTwice { step, new, new_id, old, old_id, why });
    }

    /// Whether the next run may write what comes over, or around, what is there.
    fn may_share(
        &self,
        permissions: &Permissions,
        encounter: &Encounter,
    ) -> Result<(), &'static str> {
        let (new, old) = (encounter.new, encounter.old);
        let rows = &self.plan.residences;
        let (Occupant::Tensor(output), Occupant::Tensor(root)) = (rows[new].what, rows[old].what)
        else {
            return Err(NOT_ALLOWED);
        };
        let input = permissions.only_input(root)?;
        let distance = *permissions.distances.get(&(output, input)).ok_or(NOT_ALLOWED)?;
        let (Some(new_size), Some(old_size)) = (rows[new].size.fixed(), rows[old].size.fixed())
        else {
            return Err("only tensors of fixed size may share bytes");
        };
        if self.graph.extent(input).bytes != Some(old_size) {
            return Err("the input is only a piece of what lies there");
        }
        if distance.is_none() && new_size != old_size {
            return Err("the sizes differ");
        }
        let start = self.address(new);
        let wanted = Address { offset: start.offset + distance.unwrap_or_default().0, ..start };
        if self.address(old) == wanted { Ok(()) } else { Err("the input lies at another place") }
    }

    // Reads and writes.

    fn read_and_write(&mut self, run: RunId) {
        let id = self.plan.op(run);
        let op = &self.graph.ops()[id];
        let row = &self.plan.bindings[run];
        for (&input, &bound) in op.inputs.iter().zip(row) {
            if !self.written[input] {
                let (op, tensor) = (self.graph.op_label(id), self.tensor_name(input));
                let step = self.now();
                self.faults.push(Fault::ReadBeforeWrite { op, step, tensor });
            } else if let Some(base) = self.base(id, input, bound) {
                self.read(id, input, base);
            }
        }
        self.check_same_place(id, row);
        let outputs = &row[op.inputs.len()..];
        for (&output, &bound) in op.outputs.iter().zip(outputs) {
            if let Some(base) = self.base(id, output, bound) {
                self.write(output, bound, base);
            }
            self.written[output] = true;
        }
        if let (Some(_), Some(&bound)) = (op.needed_scratch(), row.last()) {
            self.check_scratch(run, id, bound);
        }
    }

    fn tensor_name(&self, tensor: TensorId) -> String {
        self.graph.tensors()[tensor].name.to_string()
    }

    fn wrong_binding(
        &mut self,
        op: OpId,
        operand: String,
        bound: Option<ResidenceId>,
        wanted: String,
    ) {
        let found = match bound {
            None => "nothing".to_owned(),
            Some(id) => format!("`{}` ({id})", self.label(id)),
        };
        let (op, step) = (self.graph.op_label(op), self.now());
        self.faults.push(Fault::WrongBinding { op, step, operand, found, wanted });
    }

    /// Where the storage of an operand begins, if its binding is right and held.
    fn base(&mut self, op: OpId, tensor: TensorId, bound: Option<ResidenceId>) -> Option<Address> {
        let root = self.graph.storage(tensor);
        let is_placed = is_placed(self.graph, self.plan, root);
        match bound {
            None if !is_placed => return Some(Self::outside(root)),
            Some(id) if is_placed && self.plan.residences[id].what == Occupant::Tensor(root) => {
                return self.held_address(op, id);
            }
            _ => {}
        }
        let wanted = if is_placed {
            format!("a residence of `{}`", self.tensor_name(root))
        } else {
            "nothing".to_owned()
        };
        self.wrong_binding(op, self.tensor_name(tensor), bound, wanted);
        None
    }

    fn held_address(&mut self, op: OpId, id: ResidenceId) -> Option<Address> {
        if matches!(self.states[id], State::Held { .. }) {
            return Some(self.address(id));
        }
        let (op, step, what) = (self.graph.op_label(op), self.now(), self.label(id));
        self.faults.push(Fault::NotHeld { op, step, residence: id, what });
        None
    }

    fn read(&mut self, op: OpId, tensor: TensorId, base: Address) {
        if let Address { region: Region::External(root), .. } = base
            && !self.changed_outside[TensorId::new(root)]
        {
            return;
        }
        if let Some(found) = self.surprise(tensor, base) {
            let (op, tensor, step) =
                (self.graph.op_label(op), self.tensor_name(tensor), self.now());
            self.faults.push(Fault::WrongBytes { op, step, tensor, found });
        }
    }

    /// A view writes nothing; a mutated value goes to its extent, any other output to its own storage.
    fn write(&mut self, output: TensorId, bound: Option<ResidenceId>, base: Address) {
        if self.graph.content(output) == output {
            self.put(output, base);
        }
        if self.graph.is_storage(output) {
            self.homes[output] = bound;
        }
    }

    /// A view or mutated value is bound to the residence of what it is made of.
    fn check_same_place(&mut self, id: OpId, row: &[Option<ResidenceId>]) {
        let op = &self.graph.ops()[id];
        let made_of = |sharing: &Sharing| match *sharing {
            Sharing::View { output, of, .. } | Sharing::Mutates { output, of } => {
                Some((output, of))
            }
            Sharing::MayOverwrite { .. } | Sharing::PartOf { .. } => None,
        };
        let mut pairs = op.sharing.iter().filter_map(made_of).peekable();
        if pairs.peek().is_none() {
            return;
        }
        let operands = op.inputs.iter().chain(&op.outputs).copied();
        let bound: BTreeMap<TensorId, Option<ResidenceId>> =
            operands.zip(row.iter().copied()).collect();
        for (output, of) in pairs {
            if bound[&output] != bound[&of] {
                let wanted = format!("what `{}` is bound to", self.tensor_name(of));
                self.wrong_binding(id, self.tensor_name(output), bound[&output], wanted);
            }
        }
    }

    fn check_scratch(&mut self, run: RunId, op: OpId, bound: Option<ResidenceId>) {
        match bound {
            Some(id) if self.plan.residences[id].what == Occupant::Scratch(run) => {
                self.held_address(op, id);
            }
            _ => self.wrong_binding(
                op,
                "scratch".to_owned(),
                bound,
                "the scratch of this run".to_owned(),
            ),
        }
    }

    // The end.

    fn finish(&mut self) {
        let (found, wanted) = (self.live.len(), self.plan.schedule.len());
        if found < wanted {
            self.faults.push(Fault::MissingRuns { found, wanted });
            return;
        }
        for encounter in std::mem::take(&mut self.encounters) {
            self.held_twice(&encounter, "no run follows");
        }
        for (event, id) in std::mem::take(&mut self.fresh) {
            let what = self.label(id);
            self.faults.push(Fault::EarlyAlloc { event, residence: id, what });
        }
        self.finish_operators();
        self.finish_outputs();
        self.finish_residences();
    }

    fn finish_operators(&mut self) {
        let mut ran = IndexVec::filled(self.graph.ops().len(), false);
        for &op in &self.plan.schedule {
            ran[op] = true;
        }
        for (op, &ran) in ran.iter_enumerated() {
            if !ran {
                self.faults.push(Fault::NeverRuns { op: self.graph.op_label(op) });
            }
        }
    }

    fn finish_outputs(&mut self) {
        for (id, tensor) in self.graph.tensors().iter_enumerated() {
            let root = self.graph.storage(id);
            if !tensor.is_output || !self.written[id] {
                continue;
            }
            let is_placed = is_placed(self.graph, self.plan, root);
            let held =
                self.homes[root].filter(|&home| matches!(self.states[home], State::Held { .. }));
            let base = match held {
                Some(home) => self.address(home),
                None if is_placed => {
                    self.faults.push(Fault::OutputNotHeld { tensor: tensor.name.to_string() });
                    continue;
                }
                None if !self.changed_outside[root] => continue,
                None => Self::outside(root),
            };
            if let Some(found) = self.surprise(id, base) {
                let tensor = tensor.name.to_string();
                self.faults.push(Fault::OutputOverwritten { tensor, found });
            }
        }
    }

    fn finish_residences(&mut self) {
        let mut is_output = IndexVec::filled(self.graph.tensors().len(), false);
        for (id, tensor) in self.graph.tensors().iter_enumerated() {
            is_output[self.graph.storage(id)] |= tensor.is_output;
        }
        for (id, residence) in self.plan.residences.iter_enumerated() {
            let stays = matches!(residence.what, Occupant::Tensor(root)
                if is_output[root] && self.homes[root] == Some(id));
            match self.states[id] {
                State::Before => {
                    let what = self.label(id);
                    self.faults.push(Fault::NeverAllocated { residence: id, what });
                }
                State::Held { .. } if !stays => {
                    let what = self.label(id);
                    self.faults.push(Fault::NeverFreed { residence: id, what });
                }
                State::Held { since } => self.check_span(id, Interval::new(since, self.now())),
                State::Freed => {}
            }
        }
    }
}
