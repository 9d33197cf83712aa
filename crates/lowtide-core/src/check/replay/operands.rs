//! Reads and writes of one run: is each operand where its binding says, and does every read see its value?

use super::{Replay, State};
use crate::check::shadow::{Address, Range, Region};
use crate::check::{Fault, is_placed, op_label, tensor_label};
use crate::{Occupant, OpId, ResidenceId, RunId, Sharing, TensorId};
use std::collections::BTreeMap;

impl Replay<'_> {
    pub(super) fn read_and_write(&mut self, run: RunId) {
        let id = self.plan.op(run);
        let op = &self.graph.ops()[id];
        let row = &self.plan.bindings[run];
        for (&input, &bound) in op.inputs.iter().zip(row) {
            if !self.written[input] {
                let (op, tensor) = (op_label(self.graph, id), self.tensor_name(input));
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
                if self.graph.content(output) == output {
                    self.check_owned(id, bound, self.bytes_of(output, base));
                }
                self.write(output, bound, base);
            }
            self.written[output] = true;
        }
        if let (Some(_), Some(&bound)) = (op.needed_scratch(), row.last()) {
            self.check_scratch(run, id, bound);
        }
    }

    fn tensor_name(&self, tensor: TensorId) -> String {
        tensor_label(self.graph, tensor)
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
        let (op, step) = (op_label(self.graph, op), self.now());
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
        let (op, step, what) = (op_label(self.graph, op), self.now(), self.label(id));
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
                (op_label(self.graph, op), self.tensor_name(tensor), self.now());
            self.faults.push(Fault::WrongBytes { op, step, tensor, found });
        }
    }

    /// A view writes nothing; a mutated value goes to its extent, any other output to its own storage.
    fn write(&mut self, output: TensorId, bound: Option<ResidenceId>, base: Address) {
        if self.graph.content(output) == output {
            self.put(output, base);
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
            Sharing::MayOverwrite { .. } | Sharing::PartOf { .. } | Sharing::PieceOf { .. } => None,
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

    /// Whether a residence that is held still owns the bytes that are written.
    fn check_owned(&mut self, op: OpId, bound: Option<ResidenceId>, bytes: Range) {
        let Some(residence) = bound else { return };
        if !self.holders.is_held_by(bytes, residence) {
            let (op, step, what) = (op_label(self.graph, op), self.now(), self.label(residence));
            self.faults.push(Fault::BytesLost { op, step, residence, what });
        }
    }

    fn check_scratch(&mut self, run: RunId, op: OpId, bound: Option<ResidenceId>) {
        match bound {
            Some(id) if self.plan.residences[id].what == Occupant::Scratch(run) => {
                if self.held_address(op, id).is_some() {
                    self.check_owned(op, bound, self.reserved(id));
                }
            }
            _ => self.wrong_binding(
                op,
                "scratch".to_owned(),
                bound,
                "the scratch of this run".to_owned(),
            ),
        }
    }
}
