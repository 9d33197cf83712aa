//! Which outputs of an operator may lie on which of its inputs, and where.
//!
//! ~~~text
//! MayOverwrite   output [0,64) on input [0,64)          byte for byte
//! PartOf         input [16,64) inside output [0,64)     where the operator would have copied it
//! ~~~

use super::{Encounter, Replay};
use crate::check::shadow::Address;
use crate::{Bytes, Graph, Occupant, OpId, Sharing, TensorId};
use std::collections::{BTreeMap, BTreeSet};

const NOT_ALLOWED: &str = "nothing allows that";

/// Which outputs of one operator may lie on which of its inputs.
pub(super) struct Permissions {
    /// The storage of each input, with the input, sorted.
    inputs: Vec<(TensorId, TensorId)>,
    /// Storages that the operator changes in place.
    changed: BTreeSet<TensorId>,
    /// For output and input: where the input lies in the output; `None` if it is overwritten.
    distances: BTreeMap<(TensorId, TensorId), Option<Bytes>>,
}

impl Permissions {
    pub(super) fn new(graph: &Graph, op: OpId) -> Self {
        let op = &graph.ops()[op];
        let mut inputs: Vec<_> = op.inputs.iter().map(|&t| (graph.storage(t), t)).collect();
        inputs.sort_unstable();
        let distances = op.sharing.iter().filter_map(|&sharing| match sharing {
            Sharing::MayOverwrite { output, of } => Some(((output, of), None)),
            Sharing::PartOf { input, output, offset } => Some(((output, input), Some(offset))),
            Sharing::View { .. } | Sharing::Mutates { .. } => None,
        });
        let changed = op.sharing.iter().filter_map(|sharing| match *sharing {
            Sharing::Mutates { of, .. } => Some(graph.storage(of)),
            _ => None,
        });
        Self { changed: changed.collect(), distances: distances.collect(), inputs }
    }

    /// The one input that lies in a storage.
    fn only_input(&self, root: TensorId) -> Result<TensorId, &'static str> {
        if self.changed.contains(&root) {
            return Err("the operator itself changes what lies there");
        }
        let first = self.inputs.partition_point(|&(storage, _)| storage < root);
        let mut lying = self.inputs[first..].iter().take_while(|&&(storage, _)| storage == root);
        let &(_, input) = lying.next().ok_or(NOT_ALLOWED)?;
        match lying.next() {
            None => Ok(input),
            Some(_) => Err("another input of the operator lies on the same bytes"),
        }
    }
}

impl Replay<'_> {
    /// Whether the next run may write what comes over, or around, what is there.
    pub(super) fn may_share(
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
        let extent = self.graph.extent(input);
        if extent.bytes != Some(old_size) || !extent.is_exact {
            return Err("the input is only a piece, or another order, of what lies there");
        }
        let of_size = self.graph.tensors()[input].size.fixed();
        if distance.is_none() && (new_size != old_size || of_size != Some(new_size)) {
            return Err("the sizes differ");
        }
        let start = self.address(new);
        let wanted = Address { offset: start.offset + distance.unwrap_or_default().0, ..start };
        if self.address(old) == wanted { Ok(()) } else { Err("the input lies at another place") }
    }
}
