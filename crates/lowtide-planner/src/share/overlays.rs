//! Permissions to overwrite, as far as they do not depend on the order.
//!
//! ~~~text
//! Add(a, b) -> y,  y may overwrite a or b      overlays of Add:  y over a,  y over b
//!                                              in an order in which b has later readers, only the first is left
//! ~~~
//! An output can be written over a storage if the sizes are fixed and equal, the operator reads the storage whole and
//! in its own order, no other operand lies on those bytes, and the storage is neither the caller's nor holds an output
//! of the graph. Cost: O(n log n).

use super::bodies::Bodies;
use crate::PlanConfig;
use lowtide_core::{Graph, Lists, Op, OpId, Reach, Reuse, Sharing, TensorId};
use std::collections::BTreeSet;

/// An output that may be written over a storage, if that dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overlay {
    pub(crate) output: TensorId,
    pub(crate) over: TensorId,
}

/// The overlays of each operator, in the order of its outputs, and of preference for each.
pub(super) fn overlays(
    graph: &Graph,
    config: &PlanConfig,
    bodies: &Bodies,
) -> Lists<OpId, Overlay> {
    let mut overlays = Lists::new();
    let is_wanted = config.in_place && config.reuse != Reuse::Safe;
    let last = (is_wanted && !config.fences).then(|| LastUse::new(graph, bodies));
    for (id, op) in graph.ops().iter_enumerated() {
        let mut found = if is_wanted { of_op(graph, config, bodies, op) } else { Vec::new() };
        if let Some(last) = &last {
            found.retain(|overlay| last.is_at(id, overlay.over));
        }
        overlays.push(found);
    }
    overlays
}

fn of_op(graph: &Graph, config: &PlanConfig, bodies: &Bodies, op: &Op) -> Vec<Overlay> {
    let permission = |sharing: &Sharing| match *sharing {
        Sharing::MayOverwrite { output, of } => Some((output, of)),
        _ => None,
    };
    if !op.sharing.iter().any(|sharing| permission(sharing).is_some()) {
        return Vec::new();
    }
    let mut storages: Vec<TensorId> = op.inputs.iter().map(|&t| graph.storage(t)).collect();
    storages.sort_unstable();
    // What the operator changes in place is no place for another output.
    let changed = op.sharing.iter().filter_map(|sharing| match *sharing {
        Sharing::Mutates { of, .. } => Some(graph.storage(of)),
        _ => None,
    });
    let changed: BTreeSet<TensorId> = changed.collect();
    let mut found: Vec<Overlay> = Vec::new();
    for (output, of) in op.sharing.iter().filter_map(permission) {
        let over = graph.storage(of);
        let first = storages.partition_point(|&other| other < over);
        let is_alone = storages.get(first + 1) != Some(&over);
        let is_free = is_alone
            && !changed.contains(&over)
            && !bodies.is_filled[output]
            && !another_lies_there(bodies, &storages, over);
        if is_free && match_exactly(graph, output, of) && are_placed(graph, config, output, over) {
            found.push(Overlay { output, over });
        }
    }
    let position = |output| op.outputs.iter().position(|&other| other == output);
    found.sort_by_key(|overlay| position(overlay.output));
    found
}

fn are_placed(graph: &Graph, config: &PlanConfig, output: TensorId, over: TensorId) -> bool {
    let has_places = config.places(graph, output) && config.places(graph, over);
    has_places && graph.is_storage(output) && !graph.holds_output(over)
}

/// Whether byte i of the output comes to lie on byte i of the storage.
fn match_exactly(graph: &Graph, output: TensorId, of: TensorId) -> bool {
    let size = |tensor: TensorId| graph.tensors()[tensor].size.fixed();
    let (extent, storage) = (graph.extent(of), graph.storage(of));
    size(output).is_some()
        && size(output) == size(storage)
        && size(of) == size(storage)
        && extent.bytes == size(storage)
        && extent.is_exact
}

/// Whether data makes an operator the last that uses some bytes.
struct LastUse<'a> {
    bodies: &'a Bodies,
    reach: Reach,
    /// The operators that read or write a storage, views of it too.
    users: Lists<TensorId, OpId>,
    /// The storages of each body.
    members: Lists<TensorId, TensorId>,
}

impl<'a> LastUse<'a> {
    fn new(graph: &Graph, bodies: &'a Bodies) -> Self {
        let mut users = Vec::new();
        for (id, op) in graph.ops().iter_enumerated() {
            let operands = op.inputs.iter().chain(&op.outputs);
            users.extend(operands.map(|&tensor| (graph.storage(tensor), id)));
        }
        let ids = graph.tensors().ids().filter(|&id| graph.is_storage(id));
        let members: Vec<(TensorId, TensorId)> =
            ids.map(|id| (bodies.places[id].body, id)).collect();
        let tensors = graph.tensors().len();
        let (users, members) = (Lists::group(tensors, &users), Lists::group(tensors, &members));
        Self { bodies, reach: Reach::new(graph), users, members }
    }

    /// Whether all others that use bytes of a storage, or of what lies there too, are over before `op` begins.
    fn is_at(&self, op: OpId, storage: TensorId) -> bool {
        let cells = &self.bodies.cells_of[storage];
        let meets = |&&other: &&TensorId| {
            let range = &self.bodies.cells_of[other];
            other == storage || (range.start < cells.end && cells.start < range.end)
        };
        let members = &self.members[self.bodies.places[storage].body];
        let mut there = members.iter().filter(meets);
        members.len() <= MOST_MEMBERS
            && there.all(|&other| {
                let mut users = self.users[other].iter();
                users.all(|&user| user == op || self.reach.is_before(user, op))
            })
    }
}

/// Bodies of more storages are not looked through.
const MOST_MEMBERS: usize = 1 << 12;

/// More inputs of an operator are not looked through.
const MOST_INPUTS: usize = 64;

/// Whether another input lies on bytes of `over`: a part of it, or a whole around it.
fn another_lies_there(bodies: &Bodies, storages: &[TensorId], over: TensorId) -> bool {
    if !bodies.is_joined[over] {
        return false;
    }
    let cells = &bodies.cells_of[over];
    let meets = |&other: &TensorId| {
        let range = &bodies.cells_of[other];
        other != over && range.start < cells.end && cells.start < range.end
    };
    storages.len() > MOST_INPUTS || storages.iter().any(meets)
}
