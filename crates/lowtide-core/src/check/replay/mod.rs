//! Second stage: follow the events, and look at what every read would see.
//!
//! ~~~text
//! ALLOC, FREE, EXEC   here: who holds which bytes, and when
//!                     `holders`: the set of them for each byte
//!                     `permissions`: what may come over, inside or around what
//!                     `operands`: every read and write of a run
//!                     `end`: what is left when the events are over
//! ~~~

mod end;
mod holders;
mod operands;
mod permissions;

use super::fault::FaultList;
use super::shadow::{Address, Found, Range, Region, Segments};
use super::tables::label;
use super::{Fault, address, is_placed, padded, reserved_bytes, tensor_label};
use crate::origins::Origin;
use crate::{
    BufferId, Bytes, Event, Graph, Id, IndexVec, Interval, Occupant, Plan, ResidenceId, RunId,
    SpaceKind, Step, TensorId, TensorKind,
};
use holders::Holders;
use permissions::{ANOTHER_INPUT, Outcome, Permissions};

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
        if replay.budget < replay.holders.work {
            replay.faults.push(Fault::TooTangled { event: index });
            break;
        }
        if replay.faults.is_full() {
            break;
        }
        match event {
            Event::Alloc(id) => replay.alloc(index, id),
            Event::Free(id) => replay.free(index, id),
            // What waits for what is judged when all is known to make sense.
            Event::Fence(_) => {}
            Event::Compact(run) => replay.compact(index, run),
            Event::Exec(run) => {
                if !replay.exec(index, run) {
                    break;
                }
            }
        }
    }
    if !replay.faults.is_full() && replay.budget >= replay.holders.work {
        replay.finish();
    }
    Replayed { faults: replay.faults.into_vec(), live: replay.live }
}

/// What some bytes hold: the value of a tensor, whose storage begins at `base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content {
    tensor: TensorId,
    base: Address,
}

impl Content {
    /// Whose bytes lie in a part of it.
    fn origin(self, part: Range) -> Origin {
        Origin { tensor: self.tensor, at: part.start.offset - self.base.offset }
    }
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

struct Replay<'a> {
    graph: &'a Graph,
    plan: &'a Plan,
    faults: FaultList,
    live: IndexVec<RunId, Bytes>,
    live_now: u64,
    states: IndexVec<ResidenceId, State>,
    /// Largest end of the residences of each buffer: there the padding lies.
    extents: IndexVec<BufferId, Bytes>,
    /// Who holds which bytes; what is overwritten does no longer.
    holders: Holders,
    contents: Segments<Content>,
    /// Where each value was written last: the value of a storage, or a mutated one.
    homes: IndexVec<TensorId, Option<ResidenceId>>,
    written: IndexVec<TensorId, bool>,
    /// The caller's storages of which some bytes are changed by the graph.
    changed_outside: IndexVec<TensorId, bool>,
    /// Overwritten by the last run: to be freed before anything else happens.
    overwritten: Vec<ResidenceId>,
    /// Allocated since the last run.
    fresh: Vec<(usize, ResidenceId)>,
    encounters: Vec<Encounter>,
    /// How much more may be looked up of what lies in what.
    budget: u64,
}

/// Steps for all look-ups of a plan together, about a second. Where each tensor lies in a few others, an operand needs a few.
const MOST_STEPS: u64 = 1 << 24;

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
            faults: FaultList::default(),
            live: IndexVec::new(),
            live_now: 0,
            states: IndexVec::filled(plan.residences.len(), State::Before),
            extents,
            holders: Holders::default(),
            contents: Segments::new(),
            homes: IndexVec::filled(tensors.len(), None),
            written: tensors.iter().map(|t| t.kind != TensorKind::Computed).collect(),
            changed_outside: IndexVec::filled(tensors.len(), false),
            overwritten: Vec::new(),
            fresh: Vec::new(),
            encounters: Vec::new(),
            budget: MOST_STEPS,
        };
        replay.note_changes_outside();
        replay
    }

    /// Inputs and weights that the graph changes start with their own value; outputs in the caller's memory
    /// with none.
    fn note_changes_outside(&mut self) {
        for tensor in self.graph.tensors().ids() {
            let is_computed = self.graph.tensors()[tensor].kind == TensorKind::Computed;
            if is_computed && self.graph.is_storage(tensor) {
                self.changed_outside[tensor] = !is_placed(self.graph, self.plan, tensor);
            }
            let root = self.graph.storage(tensor);
            let is_mutated = tensor != root && self.graph.content(tensor) == tensor;
            if is_mutated && !is_placed(self.graph, self.plan, root) && !self.changed_outside[root]
            {
                self.changed_outside[root] = true;
                if self.graph.tensors()[root].kind != TensorKind::Computed {
                    self.put(root, Self::outside(root));
                }
            }
        }
    }

    // Addresses.

    fn outside(root: TensorId) -> Address {
        Address { region: Region::External(root.raw()), offset: 0 }
    }

    fn address(&self, id: ResidenceId) -> Address {
        address(self.plan, id)
    }

    /// The bytes that are a residence's own. The padding of a part lies where its buffer ends.
    fn reserved(&self, id: ResidenceId) -> Range {
        let residence = &self.plan.residences[id];
        let Some(bytes) = residence.size.bound() else { return Range::new(self.address(id), None) };
        let end = residence.offset + bytes;
        let own = reserved_bytes(self.graph, self.plan, residence.what).unwrap_or_default();
        let reserved = if end == self.extents[residence.buffer] {
            padded(self.plan, end) - residence.offset
        } else {
            own
        };
        let is_empty = bytes == Bytes::ZERO;
        Range::new(self.address(id), Some(if is_empty { bytes } else { reserved.max(own) }))
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
    fn surprise(&mut self, tensor: TensorId, base: Address) -> Option<String> {
        let (graph, budget) = (self.graph, &mut self.budget);
        let wanted = Content { tensor: graph.content(tensor), base };
        let extent = graph.extent(tensor);
        let start = Address { offset: base.offset + extent.start.0, ..base };
        let found = self.contents.first_other(Range::new(start, extent.bytes), |part, found| {
            let (wanted_origin, origin) = (wanted.origin(part), found.origin(part));
            found == wanted || graph.origins.same(wanted_origin, origin, part.len(), budget)
        })?;
        let name = |tensor: TensorId| format!("`{}`", tensor_label(graph, tensor));
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
        self.check_overwritten();
        if self.states[id] != State::Before {
            let what = self.label(id);
            self.faults.push(Fault::AllocatedTwice { event, residence: id, what });
            return;
        }
        self.states[id] = State::Held { since: self.now() };
        self.fresh.push((event, id));
        let range = self.reserved(id);
        let met = self.holders.add(range, id);
        if met.is_crowded {
            let encounter = Encounter { new: id, old: met.others[0] };
            self.held_twice(&encounter, "more tensors hold some byte than the checker follows");
        }
        self.encounters.extend(met.others.into_iter().map(|old| Encounter { new: id, old }));
        if self.in_arena(id) {
            self.live_now += met.fresh;
        }
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
        let mut given_back = 0;
        for part in self.holders.remove(self.reserved(id), id) {
            given_back += part.len();
            self.contents.clear(part);
        }
        if self.in_arena(id) {
            self.live_now -= given_back;
        }
    }

    /// Blocks of a pool are moved only if there is one, and at the end of a step.
    fn compact(&mut self, event: usize, found: RunId) {
        let is_now = RunId::from_index(found.index() + 1).step() == self.now();
        let has_pool = self.plan.spaces.iter().any(|space| space.kind == SpaceKind::Pool);
        let why = match (has_pool, is_now) {
            (true, true) => return,
            (false, _) => "but the plan has none",
            (true, false) => "which is not the run before",
        };
        self.faults.push(Fault::MisplacedCompact { event, found, why });
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
        self.check_overwritten();
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
        let permissions = Permissions::new(self.graph, self.plan, run);
        let mut written_over = None;
        for encounter in encounters {
            match self.may_share(&permissions, &encounter) {
                Ok(Outcome::Shared) => {}
                Ok(Outcome::Overwritten) if written_over == Some(encounter.new) => {
                    self.held_twice(&encounter, ANOTHER_INPUT);
                }
                Ok(Outcome::Overwritten) => {
                    written_over = Some(encounter.new);
                    self.overwritten.push(encounter.old);
                    self.holders.remove(self.reserved(encounter.new), encounter.old);
                }
                Err(why) => self.held_twice(&encounter, why),
            }
        }
    }

    /// What the last run has overwritten is gone; if it still counts as held, that ends here.
    fn check_overwritten(&mut self) {
        for id in std::mem::take(&mut self.overwritten) {
            if matches!(self.states[id], State::Held { .. }) {
                self.states[id] = State::Freed;
                let (what, step) = (self.label(id), Step(self.now().0.saturating_sub(1)));
                self.faults.push(Fault::LateFree { step, residence: id, what });
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
}
