//! Layout and schedule to events and bindings.
//!
//! ~~~text
//! step 4:  ALLOC what begins at 4    EXEC run4    FREE what ends at 5, outputs of the graph excepted
//! ~~~
//! ALLOC comes as late as possible, FREE as early; where the pool is used a COMPACT comes after some operators. Cost: linear.

use crate::share::{Layout, POOL};
use lowtide_core::{Event, Graph, Lists, Occupant, Order, ResidenceId, RunId};

/// The event table, with a COMPACT after every so many runs if anything lies in the pool; 0: none.
pub(crate) fn events(
    graph: &Graph,
    order: &Order,
    layout: &Layout,
    compact_every: u32,
) -> Vec<Event> {
    let mut allocs: Vec<(RunId, ResidenceId)> = Vec::with_capacity(layout.residences.len());
    let mut frees = Vec::with_capacity(layout.residences.len());
    for (id, residence) in layout.residences.iter_enumerated() {
        allocs.push((RunId::new(residence.span.start.0), id));
        let stays =
            matches!(residence.what, Occupant::Tensor(storage) if graph.holds_output(storage));
        if !stays {
            frees.push((RunId::new(residence.span.end.0 - 1), id));
        }
    }
    let allocs = Lists::group(order.len(), &allocs);
    let frees = Lists::group(order.len(), &frees);
    let has_pool = layout.buffers.iter().any(|buffer| buffer.space == POOL);
    let mut events = Vec::with_capacity(2 * layout.residences.len() + order.len());
    for run in order.schedule().ids() {
        events.extend(allocs[run].iter().map(|&id| Event::Alloc(id)));
        events.push(Event::Exec(run));
        events.extend(frees[run].iter().map(|&id| Event::Free(id)));
        let is_due = has_pool && (run.raw() + 1).checked_rem(compact_every) == Some(0);
        events.extend(is_due.then_some(Event::Compact(run)));
    }
    events
}

/// For each run, the residence of each operand, then of its scratch.
pub(crate) fn bindings(
    graph: &Graph,
    order: &Order,
    layout: &Layout,
) -> Lists<RunId, Option<ResidenceId>> {
    let mut bindings = Lists::new();
    for (run, &op) in order.schedule().iter_enumerated() {
        let row = &graph.ops()[op];
        let operands = row.inputs.iter().chain(&row.outputs);
        let places = operands.map(|&tensor| layout.of_tensor[graph.storage(tensor)]);
        let scratch = row.needed_scratch().map(|_| layout.of_scratch[run]);
        bindings.push(places.chain(scratch));
    }
    bindings
}
