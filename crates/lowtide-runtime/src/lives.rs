//! Events in, when each residence is held and each operator runs out.
//!
//! ~~~text
//! ALLOC r0  EXEC run0  ALLOC r1  EXEC run1  FREE r0       r0 is held in steps [0, 2)
//!           step 0               step 1                   run1 is step 1
//! ~~~
//! A step is the place of an EXEC among all that happen, so that events out of turn have their steps too. Nothing that
//! the plan itself says of spans is looked at.

use lowtide_core::{Event, IndexVec, Interval, OpId, Plan, ResidenceId, Step};

/// When everything happens.
#[derive(Debug)]
pub(crate) struct Lives {
    /// For each event: how many EXECs came before.
    steps: Vec<Step>,
    allocated: IndexVec<ResidenceId, Option<usize>>,
    freed: IndexVec<ResidenceId, Option<usize>>,
    /// The first step of each operator, if it runs.
    ops: IndexVec<OpId, Option<Step>>,
    end: Step,
}

impl Lives {
    /// Reads the events of a plan whose ids are in range; `ops` is how many operators its graph has.
    pub(crate) fn new(plan: &Plan, ops: usize) -> Self {
        let none = IndexVec::filled(plan.residences.len(), None);
        let (allocated, freed) = (none.clone(), none);
        let steps = Vec::with_capacity(plan.events.len());
        let mut lives =
            Self { steps, allocated, freed, ops: IndexVec::filled(ops, None), end: Step::ZERO };
        for (index, event) in plan.events.iter().enumerate() {
            lives.steps.push(lives.end);
            match *event {
                Event::Alloc(id) => lives.allocated[id] = lives.allocated[id].or(Some(index)),
                Event::Free(id) => lives.freed[id] = lives.freed[id].or(Some(index)),
                Event::Exec(run) => {
                    let op = plan.op(run);
                    lives.ops[op] = lives.ops[op].or(Some(lives.end));
                    lives.end = lives.end.next();
                }
                _ => {}
            }
        }
        lives
    }

    /// The step of an event: of an ALLOC that of the next run, of a FREE the one after the last run.
    pub(crate) fn step(&self, event: usize) -> Step {
        self.steps.get(event).copied().unwrap_or(self.end)
    }

    /// The first step at which an operator runs; `None` if it never does.
    pub(crate) fn step_of(&self, op: OpId) -> Option<Step> {
        self.ops[op]
    }

    /// The step after the last.
    pub(crate) fn end(&self) -> Step {
        self.end
    }

    /// From its ALLOC to its FREE, or to the end; `None` if it is never allocated.
    pub(crate) fn held(&self, id: ResidenceId) -> Option<Interval> {
        let start = self.step(self.allocated[id]?);
        Some(Interval::new(start, self.freed[id].map_or(self.end, |event| self.step(event))))
    }

    /// Whether it was freed before this event.
    pub(crate) fn is_freed_before(&self, id: ResidenceId, event: usize) -> bool {
        self.freed[id].is_some_and(|freed| freed < event)
    }

    /// Whether it is allocated after this event, or never.
    pub(crate) fn is_allocated_after(&self, id: ResidenceId, event: usize) -> bool {
        self.allocated[id].is_none_or(|allocated| allocated > event)
    }
}
