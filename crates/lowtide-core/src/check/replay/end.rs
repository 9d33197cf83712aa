//! What is left when the events are over: every operator ran, outputs are held and right, the rest is freed.

use super::{Replay, State};
use crate::check::{Fault, is_placed, op_label, tensor_label};
use crate::{IndexVec, Interval};

impl Replay<'_> {
    pub(super) fn finish(&mut self) {
        let (found, wanted) = (self.live.len(), self.plan.schedule.len());
        if found < wanted {
            self.faults.push(Fault::MissingRuns { found, wanted });
            return;
        }
        self.check_overwritten();
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
                self.faults.push(Fault::NeverRuns { op: op_label(self.graph, op) });
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
            let home = self.homes[self.graph.content(id)];
            let held = home.filter(|&home| matches!(self.states[home], State::Held { .. }));
            let base = match held {
                Some(home) => self.address(home),
                None if is_placed => {
                    self.faults.push(Fault::OutputNotHeld { tensor: tensor_label(self.graph, id) });
                    continue;
                }
                None if !self.changed_outside[root] => continue,
                None => Self::outside(root),
            };
            if let Some(found) = self.surprise(id, base) {
                let tensor = tensor_label(self.graph, id);
                self.faults.push(Fault::OutputOverwritten { tensor, found });
            }
        }
    }

    fn finish_residences(&mut self) {
        let mut stays = IndexVec::filled(self.plan.residences.len(), false);
        for (id, tensor) in self.graph.tensors().iter_enumerated() {
            if let Some(home) = self.homes[self.graph.content(id)].filter(|_| tensor.is_output) {
                stays[home] = true;
            }
        }
        for id in self.plan.residences.ids() {
            match self.states[id] {
                State::Before => {
                    let what = self.label(id);
                    self.faults.push(Fault::NeverAllocated { residence: id, what });
                }
                State::Held { .. } if !stays[id] => {
                    let what = self.label(id);
                    self.faults.push(Fault::NeverFreed { residence: id, what });
                }
                State::Held { since } => self.check_span(id, Interval::new(since, self.now())),
                State::Freed => {}
            }
        }
    }
}
