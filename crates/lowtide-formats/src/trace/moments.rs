//! When each run of a schedule took place, also those that had nothing to do and so were not measured.
//!
//! ~~~text
//! conv |--------|         view of conv's output: nothing to do, done when conv is
//!               ^ view
//! ~~~

use lowtide_core::{Graph, IndexVec, Plan, Ran, RunId};
use std::time::Duration;

/// From when until when, since the run of the whole graph began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) start: Duration,
    pub(super) end: Duration,
}

/// What was measured; for other runs the moment at which their inputs were there. Cost: linear.
pub(super) fn moments(graph: &Graph, plan: &Plan, ran: &[Ran]) -> IndexVec<RunId, Moment> {
    let mut measured = IndexVec::filled(plan.schedule.len(), None);
    for ran in ran {
        measured[ran.run] = Some(Moment { start: ran.start, end: ran.end.max(ran.start) });
    }
    let mut ready = IndexVec::filled(graph.tensors().len(), Duration::ZERO);
    let mut moments = IndexVec::new();
    for (run, &op) in plan.schedule.iter_enumerated() {
        let row = &graph.ops()[op];
        let there = row.inputs.iter().map(|&input| ready[input]).max().unwrap_or_default();
        let moment = measured[run].unwrap_or(Moment { start: there, end: there });
        for &output in &row.outputs {
            ready[output] = moment.end;
        }
        moments.push(moment);
    }
    moments
}
