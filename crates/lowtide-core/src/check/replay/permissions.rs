//! What may come to lie on bytes that are held.
//!
//! ~~~text
//! MayOverwrite   output [0,64) on input [0,64)          byte for byte; the input is gone
//! PartOf         input [16,64) inside output [0,64)     where the operator would have copied it
//! PieceOf        output [16,64) inside input [0,64)     the same the other way round
//! bystander      w2 = x0 x1 x2 around w1 = x0 x1        each byte is to hold what it holds already
//! ~~~
//! Only what is overwritten loses its bytes. All else keeps them: what comes says by the declarations of the graph, its
//! own operator's and earlier ones, that it is to hold the same. An operand of the run itself lies under an output only
//! where its operator declares that, since that is what kernels are made for.

use super::{Encounter, Replay};
use crate::check::shadow::{Address, Range};
use crate::origins::Origin;
use crate::{Bytes, Graph, Occupant, Plan, ResidenceId, RunId, Sharing, TensorId, TensorKind};
use std::collections::BTreeSet;

const NOT_ALLOWED: &str = "nothing allows that";
pub(super) const ANOTHER_INPUT: &str = "another input of the operator lies on the same bytes";
const ANOTHER_PLACE: &str = "the input lies at another place";

/// What happens to the bytes of the old one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Overwritten,
    Shared,
}

/// Which outputs of one run may lie on which of its inputs.
pub(super) struct Permissions {
    /// What each input is bound to, with the input, sorted.
    inputs: Vec<(ResidenceId, TensorId)>,
    outputs: BTreeSet<ResidenceId>,
    /// Storages that the operator changes in place.
    changed: BTreeSet<TensorId>,
    /// Output and input.
    overwrites: BTreeSet<(TensorId, TensorId)>,
    /// Whole, part, and where it lies.
    parts: BTreeSet<(TensorId, TensorId, Bytes)>,
    /// Piece, base, and where it starts.
    pieces: BTreeSet<(TensorId, TensorId, Bytes)>,
}

impl Permissions {
    pub(super) fn new(graph: &Graph, plan: &Plan, run: RunId) -> Self {
        let (op, row) = (&graph.ops()[plan.op(run)], &plan.bindings[run]);
        let bound = row.iter().zip(&op.inputs).filter_map(|(&id, &t)| Some((id?, t)));
        let mut permissions = Self {
            inputs: bound.collect(),
            outputs: row.iter().skip(op.inputs.len()).copied().flatten().collect(),
            changed: BTreeSet::new(),
            overwrites: BTreeSet::new(),
            parts: BTreeSet::new(),
            pieces: BTreeSet::new(),
        };
        permissions.inputs.sort_unstable();
        for &sharing in &op.sharing {
            permissions.add(graph, sharing);
        }
        permissions
    }

    fn add(&mut self, graph: &Graph, sharing: Sharing) {
        match sharing {
            Sharing::MayOverwrite { output, of } => {
                self.overwrites.insert((output, of));
            }
            Sharing::PartOf { input, output, offset } => {
                self.parts.insert((output, input, offset));
            }
            Sharing::PieceOf { output, of, offset } => {
                self.pieces.insert((output, of, offset));
            }
            Sharing::Mutates { of, .. } => {
                self.changed.insert(graph.storage(of));
            }
            Sharing::View { .. } => {}
        }
    }

    /// The inputs that are bound to a residence, one for each time that they are.
    fn inputs_in(&self, id: ResidenceId) -> &[(ResidenceId, TensorId)] {
        let first = self.inputs.partition_point(|&(bound, _)| bound < id);
        let len = self.inputs[first..].partition_point(|&(bound, _)| bound == id);
        &self.inputs[first..first + len]
    }
}

type Rows = BTreeSet<(TensorId, TensorId, Bytes)>;

fn rows_of(rows: &Rows, first: TensorId) -> impl Iterator<Item = (TensorId, Bytes)> + '_ {
    let least = (first, TensorId::new(0), Bytes::ZERO);
    rows.range(least..).take_while(move |row| row.0 == first).map(|&(_, t, at)| (t, at))
}

fn offsets(rows: &Rows, first: TensorId, second: TensorId) -> impl Iterator<Item = Bytes> + '_ {
    let all = (first, second, Bytes::ZERO)..=(first, second, Bytes(u64::MAX));
    rows.range(all).map(|&(_, _, offset)| offset)
}

impl Replay<'_> {
    /// Whether the next run may write what comes over, inside or around what is there.
    pub(super) fn may_share(
        &mut self,
        permissions: &Permissions,
        &Encounter { new, old }: &Encounter,
    ) -> Result<Outcome, &'static str> {
        let rows = &self.plan.residences;
        let (Occupant::Tensor(output), Occupant::Tensor(root)) = (rows[new].what, rows[old].what)
        else {
            return Err(NOT_ALLOWED);
        };
        if self.graph.tensors()[output].kind != TensorKind::Computed
            || !permissions.outputs.contains(&new)
        {
            return Err(NOT_ALLOWED);
        }
        let inputs = permissions.inputs_in(old);
        if !inputs.is_empty() && permissions.changed.contains(&root) {
            return Err("the operator itself changes what lies there");
        }
        if inputs.is_empty() && permissions.outputs.contains(&old) {
            let lies = |id, tensor| self.is_piece_in_place(permissions, id, tensor);
            if !lies(new, output) || !lies(old, root) {
                return Err(NOT_ALLOWED);
            }
        } else if !inputs.is_empty() && !self.lies_as_declared(permissions, (new, output), old) {
            return self.may_overwrite(permissions, (new, output), old);
        }
        self.keeps_its_bytes(new, output, old).map(|()| Outcome::Shared)
    }

    /// Whether an output lies in a base of which it is declared a piece.
    fn is_piece_in_place(
        &self,
        permissions: &Permissions,
        id: ResidenceId,
        output: TensorId,
    ) -> bool {
        let mut pieces = rows_of(&permissions.pieces, output);
        pieces.any(|(of, offset)| {
            let bound = permissions.inputs.iter().find(|&&(_, input)| input == of);
            bound.is_some_and(|&(base, _)| self.place_in(base, of, offset) == self.address(id))
        })
    }

    /// The byte `offset` of a tensor that lies in the residence of its storage.
    fn place_in(&self, residence: ResidenceId, tensor: TensorId, offset: Bytes) -> Address {
        let (base, extent) = (self.address(residence), self.graph.extent(tensor));
        let start = base.offset.saturating_add(extent.start.0).saturating_add(offset.0);
        Address { offset: start, ..base }
    }

    /// Whether each input in `old` that the output touches lies where it is a part, or the output is a piece there.
    fn lies_as_declared(
        &self,
        permissions: &Permissions,
        (new, output): (ResidenceId, TensorId),
        old: ResidenceId,
    ) -> bool {
        let inputs = permissions.inputs_in(old);
        let root_of = |tensor| self.graph.storage(tensor);
        let is_piece = rows_of(&permissions.pieces, output).any(|(of, offset)| {
            Some(root_of(of)) == inputs.first().map(|&(_, input)| root_of(input))
                && self.place_in(old, of, offset) == self.address(new)
        });
        if is_piece {
            return true;
        }
        let bytes = self.bytes_of(output, self.address(new));
        let is_apart = |input| !self.bytes_of(input, self.address(old)).overlaps(bytes);
        let is_part = |input| {
            let place = self.place_in(old, input, Bytes::ZERO);
            offsets(&permissions.parts, output, input)
                .any(|offset| self.place_in(new, output, offset) == place)
        };
        let is_twice = inputs.windows(2).any(|pair| pair[0].1 == pair[1].1);
        !is_twice && inputs.iter().all(|&(_, input)| is_apart(input) || is_part(input))
    }

    /// Whether the output may be written over the one input that lies in `old`.
    fn may_overwrite(
        &self,
        permissions: &Permissions,
        (new, output): (ResidenceId, TensorId),
        old: ResidenceId,
    ) -> Result<Outcome, &'static str> {
        let &[(_, input)] = permissions.inputs_in(old) else { return Err(ANOTHER_INPUT) };
        if !permissions.overwrites.contains(&(output, input)) {
            let is_part = offsets(&permissions.parts, output, input).next().is_some();
            return Err(if is_part { ANOTHER_PLACE } else { NOT_ALLOWED });
        }
        let rows = &self.plan.residences;
        let (Some(new_size), Some(old_size)) = (rows[new].size.fixed(), rows[old].size.fixed())
        else {
            return Err("only tensors of fixed size may share bytes");
        };
        let extent = self.graph.extent(input);
        if extent.bytes != Some(old_size) || !extent.is_exact {
            return Err("the input is only a piece, or another order, of what lies there");
        }
        let of_size = self.graph.tensors()[input].size.fixed();
        if new_size != old_size || of_size != Some(new_size) {
            return Err("the sizes differ");
        }
        if self.address(old) == self.address(new) {
            Ok(Outcome::Overwritten)
        } else {
            Err(ANOTHER_PLACE)
        }
    }

    /// Whether the value of `output` in `new` is, over the bytes of `old`, what lies there already.
    fn keeps_its_bytes(
        &mut self,
        new: ResidenceId,
        output: TensorId,
        old: ResidenceId,
    ) -> Result<(), &'static str> {
        let (new_bytes, old_bytes) = (self.occupied(new), self.occupied(old));
        let touches_padding = |own: Range, reserved: Range, other: Range| {
            let common = reserved.common(other);
            common.len() > 0 && own.common(other) != common
        };
        if touches_padding(new_bytes, self.reserved(new), old_bytes)
            || touches_padding(old_bytes, self.reserved(old), new_bytes)
        {
            return Err("the padding of one lies on the bytes of the other");
        }
        let (graph, base) = (self.graph, self.address(new));
        let common = new_bytes.common(old_bytes);
        let parts: Vec<_> = self.contents.overlapping(common).collect();
        let mut covered = 0;
        for (part, found) in parts {
            let wanted = Origin { tensor: output, at: part.start.offset - base.offset };
            if !graph.origins.same(wanted, found.origin(part), part.len(), &mut self.budget) {
                return Err("they are to hold different bytes");
            }
            covered += part.len();
        }
        if covered == common.len() { Ok(()) } else { Err("nothing has been written there") }
    }

    /// The bytes of a residence without padding.
    fn occupied(&self, id: ResidenceId) -> Range {
        Range::new(self.address(id), self.plan.residences[id].size.bound())
    }
}
