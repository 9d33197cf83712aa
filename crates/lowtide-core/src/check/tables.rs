//! First stage: do the tables of a plan fit each other and the graph, before anything is replayed?

use super::fault::FaultList;
use super::{Fault, address, is_placed, op_label, reserved_bytes, tensor_label};
use crate::{
    Buffer, BufferId, Bytes, Graph, Id, Interval, Occupant, Plan, Residence, ResidenceId, Size,
    SpaceKind, Step, TensorKind,
};

/// All faults of the tables.
pub(super) fn faults(graph: &Graph, plan: &Plan) -> Vec<Fault> {
    let mut tables = Tables { graph, plan, faults: FaultList::default() };
    tables.fingerprint();
    if !tables.faults.is_empty() {
        // Against another graph every row would be wrong.
        return tables.faults.into_vec();
    }
    tables.spaces();
    tables.schedule();
    tables.bindings();
    tables.buffers();
    if tables.faults.is_empty() {
        tables.residences();
        tables.events();
    }
    if tables.faults.is_empty() && plan.reuse == crate::Reuse::Safe {
        tables.safe_mode();
    }
    tables.faults.into_vec()
}

struct Tables<'a> {
    graph: &'a Graph,
    plan: &'a Plan,
    faults: FaultList,
}

impl Tables<'_> {
    fn in_range(&mut self, place: impl Fn() -> String, id: impl Id, limit: usize) -> bool {
        let fits = id.index() < limit;
        if !fits {
            let found = u32::try_from(id.index()).expect("ids are u32");
            self.faults.push(Fault::OutOfRange { place: place(), found, limit });
        }
        fits
    }

    fn fingerprint(&mut self) {
        let (found, wanted) = (self.plan.fingerprint, self.graph.fingerprint());
        if found != wanted {
            let (found, wanted) = (found.to_string(), wanted.to_string());
            self.faults.push(Fault::OtherGraph { found, wanted });
        }
    }

    /// All spaces together stay within what sizes may add up to, so that sums over them do not overflow.
    fn spaces(&mut self) {
        let limit = Bytes::MAX_TOTAL.0;
        let sum =
            self.plan.spaces.iter().fold(0, |sum: u64, space| sum.saturating_add(space.size.0));
        if sum > limit {
            let what = "the size of all spaces together".to_owned();
            self.faults.push(Fault::OverLimit { what, found: sum, limit });
        }
    }

    fn schedule(&mut self) {
        for (run, &op) in self.plan.schedule.iter_enumerated() {
            self.in_range(|| format!("the operator of {run}"), op, self.graph.ops().len());
        }
    }

    fn bindings(&mut self) {
        let (found, wanted) = (self.plan.bindings.len(), self.plan.schedule.len());
        if found != wanted {
            let place = "the table of bindings".to_owned();
            self.faults.push(Fault::WrongLength { place, found, wanted });
            return;
        }
        for (run, &op) in self.plan.schedule.iter_enumerated() {
            let Some(op) = self.graph.ops().get(op) else { continue };
            let row = &self.plan.bindings[run];
            let scratch = usize::from(op.needed_scratch().is_some());
            let (found, wanted) = (row.len(), op.inputs.len() + op.outputs.len() + scratch);
            if found != wanted {
                let place = format!("the bindings of {run}");
                self.faults.push(Fault::WrongLength { place, found, wanted });
            }
            for &residence in row.iter().flatten() {
                let place = || format!("a residence bound by {run}");
                self.in_range(place, residence, self.plan.residences.len());
            }
        }
    }

    /// Buffers claim the residences one after the other, all of them.
    fn buffers(&mut self) {
        let mut next = ResidenceId::new(0);
        for (id, buffer) in self.plan.buffers.iter_enumerated() {
            let (start, end) = (buffer.parts.start, buffer.parts.end);
            if start != next || end < start || end.index() > self.plan.residences.len() {
                let (start, end, wanted) = (start.raw(), end.raw(), next.raw());
                self.faults.push(Fault::PartsDoNotTile { buffer: id, start, end, wanted });
                return;
            }
            next = end;
            if self.in_range(|| format!("the space of {id}"), buffer.space, self.plan.spaces.len())
            {
                self.buffer_offset(id, buffer);
            }
        }
        let (found, wanted) = (next.index(), self.plan.residences.len());
        if found != wanted {
            let place = "the parts of all buffers together".to_owned();
            self.faults.push(Fault::WrongLength { place, found, wanted });
        }
    }

    fn buffer_offset(&mut self, id: BufferId, buffer: &Buffer) {
        let fault = match (self.plan.spaces[buffer.space].kind, buffer.offset) {
            (SpaceKind::Arena, None) => {
                Fault::OffsetKind { buffer: id, problem: "lies in an arena without an offset" }
            }
            (SpaceKind::Pool, Some(_)) => {
                Fault::OffsetKind { buffer: id, problem: "lies in a pool with an offset" }
            }
            (SpaceKind::Arena, Some(offset)) if !offset.is_aligned(buffer.align) => {
                let align = buffer.align.bytes().0;
                Fault::Misaligned { buffer: id, offset: offset.0, align }
            }
            _ if buffer.align < self.plan.align => {
                let (found, wanted) = (buffer.align.bytes().0, self.plan.align.bytes().0);
                Fault::WeakAlignment { buffer: id, found, wanted }
            }
            _ => return,
        };
        self.faults.push(fault);
    }

    fn residences(&mut self) {
        for (buffer, row) in self.plan.buffers.iter_enumerated() {
            for index in row.parts.start.raw()..row.parts.end.raw() {
                let id = ResidenceId::new(index);
                let residence = self.plan.residences[id];
                if residence.buffer != buffer {
                    let (found, wanted) = (residence.buffer, buffer);
                    self.faults.push(Fault::ForeignPart { residence: id, found, wanted });
                } else if let Some(wanted) = self.occupant_size(id, residence.what) {
                    self.residence_size(id, &residence, wanted);
                    self.residence_span(id, &residence);
                }
            }
        }
    }

    /// The size that the graph gives to what stays there, if it may stay anywhere.
    fn occupant_size(&mut self, id: ResidenceId, what: Occupant) -> Option<Size> {
        let place = || format!("what stays in {id}");
        let why = match what {
            Occupant::Tensor(tensor) => {
                if !self.in_range(place, tensor, self.graph.tensors().len()) {
                    return None;
                }
                let row = &self.graph.tensors()[tensor];
                match row.kind {
                    _ if is_placed(self.graph, self.plan, tensor) => return Some(row.size),
                    TensorKind::Weight => "a weight",
                    TensorKind::Input => "the caller's",
                    TensorKind::Computed if self.graph.is_storage(tensor) => "the caller's",
                    TensorKind::Computed => "a view or a mutated value",
                }
            }
            Occupant::Scratch(run) => {
                if !self.in_range(place, run, self.plan.schedule.len()) {
                    return None;
                }
                match self.graph.ops()[self.plan.op(run)].needed_scratch() {
                    Some(size) => return Some(size),
                    None => "the scratch of an operator that needs none",
                }
            }
        };
        let what = label(self.graph, self.plan, id);
        self.faults.push(Fault::NotPlaced { residence: id, what, why });
        None
    }

    fn residence_size(&mut self, id: ResidenceId, residence: &Residence, wanted: Size) {
        let what = || label(self.graph, self.plan, id);
        if residence.size != wanted {
            let found = residence.size;
            self.faults.push(Fault::WrongSize { residence: id, what: what(), found, wanted });
            return;
        }
        let buffer = &self.plan.buffers[residence.buffer];
        if buffer.offset.is_some() && wanted.bound().is_none() {
            self.faults.push(Fault::UnboundedInArena { residence: id, what: what(), size: wanted });
            return;
        }
        // A buffer in a pool is found when the model runs; its end still has to be a number.
        let limit = match buffer.offset {
            Some(_) => self.plan.spaces[buffer.space].size,
            None => Bytes::MAX_TOTAL,
        };
        let start = buffer.offset.unwrap_or_default().checked_add(residence.offset);
        let end = start.and_then(|start| start.checked_add(wanted.bound().unwrap_or_default()));
        // Padding is the buffer's own too, so it lies inside the arena.
        let padded = end.and_then(|end| match buffer.offset {
            Some(_) => end.align_up(self.plan.align),
            None => Some(end),
        });
        if padded.is_none_or(|end| end > limit) {
            let (end, size) = (padded.map_or(u64::MAX, |end| end.0), limit.0);
            self.faults.push(Fault::OutsideSpace { residence: id, what: what(), end, size });
        }
        self.inner_offset(id, residence);
    }

    /// Where a residence lies in its buffer: a part at a multiple of its element, all else aligned.
    fn inner_offset(&mut self, id: ResidenceId, residence: &Residence) {
        let what = || label(self.graph, self.plan, id);
        let offset = residence.offset.0;
        let is_part =
            matches!(residence.what, Occupant::Tensor(tensor) if self.graph.is_part(tensor));
        let element = element_bytes(self.graph, residence.what);
        if !is_part && !residence.offset.is_aligned(self.plan.align) {
            let (what, align) = (what(), self.plan.align.bytes().0);
            self.faults.push(Fault::MisalignedPart { residence: id, what, offset, align });
        } else if !offset.is_multiple_of(element) {
            self.faults.push(Fault::SplitElement { residence: id, what: what(), offset, element });
        }
    }

    fn residence_span(&mut self, id: ResidenceId, residence: &Residence) {
        let all = Interval::new(Step::ZERO, Step::from_index(self.plan.schedule.len()));
        if residence.span.is_empty() || residence.span.end > all.end {
            let what = label(self.graph, self.plan, id);
            let found = residence.span.to_string();
            let wanted = format!("a time within {all}");
            self.faults.push(Fault::WrongSpan { residence: id, what, found, wanted });
        }
    }

    fn events(&mut self) {
        for (index, &event) in self.plan.events.iter().enumerate() {
            let place = || format!("what event {index} names");
            match event {
                crate::Event::Alloc(id) | crate::Event::Free(id) => {
                    self.in_range(place, id, self.plan.residences.len())
                }
                crate::Event::Exec(run) | crate::Event::Fence(run) | crate::Event::Compact(run) => {
                    self.in_range(place, run, self.plan.schedule.len())
                }
            };
        }
    }

    /// Every residence has bytes of its own for the whole run, in a pool too.
    fn safe_mode(&mut self) {
        let mut ranges: Vec<_> = self
            .plan
            .residences
            .iter_enumerated()
            .filter_map(|(id, residence)| {
                let start = address(self.plan, id);
                let bytes = reserved_bytes(self.graph, self.plan, residence.what);
                let end = bytes.map_or(u64::MAX, |bytes| start.offset + bytes.0);
                (end > start.offset).then_some((start, end, id))
            })
            .collect();
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            let ((first_start, end, first), (start, _, second)) = (pair[0], pair[1]);
            if first_start.region == start.region && start.offset < end {
                let [first, second] = [first, second].map(|id| label(self.graph, self.plan, id));
                self.faults.push(Fault::SharedInSafeMode { first, second });
            }
        }
    }
}

/// Bytes of one element of a tensor; 1 where elements are narrower, unknown or plain bytes.
fn element_bytes(graph: &Graph, what: Occupant) -> u64 {
    let Occupant::Tensor(tensor) = what else { return 1 };
    let bits = graph.tensors()[tensor].dtype.and_then(crate::DType::bits);
    u64::from(bits.unwrap_or(8)).div_ceil(8)
}

/// Names what stays in a residence whose occupant is in range.
pub(super) fn label(graph: &Graph, plan: &Plan, id: ResidenceId) -> String {
    match plan.residences[id].what {
        Occupant::Tensor(tensor) => tensor_label(graph, tensor),
        Occupant::Scratch(run) => format!("scratch of {}", op_label(graph, plan.op(run))),
    }
}
