//! Plans for the tests of what guards a run: a choice of numbers becomes a graph and a plan for it.
//!
//! ~~~text
//! x ─ op 0 ─ t0      offset ^      [ t1 ]        each operator reads x and writes a tensor of its own,
//!   ─ op 1 ─ t1             |  [  t0   ]         which lies anywhere and stays for any time
//! ~~~

use arbitrary::{Result, Unstructured};
use lowtide_core::{
    Align, Bound, Buffer, BufferId, Bytes, Event, Graph, GraphBuilder, Id, IndexVec, Interval,
    Lists, Occupant, Op, OpId, Owner, Plan, PlanStats, Residence, ResidenceId, Reuse, RunId, Size,
    Space, SpaceId, SpaceKind, Step, TensorId,
};
use std::ops::Range;

/// Bytes of the arena of all these plans.
pub(crate) const ARENA: usize = 512;

/// Where a tensor lies and stays: first byte, bytes, first step (that of its operator) and the step after its last one.
pub(crate) type Row = (u64, u64, u32);

/// A graph and a plan of it, in which whatever was chosen may lie on each other.
pub(crate) fn random_plan(u: &mut Unstructured<'_>) -> Result<(Graph, Plan)> {
    let count = u.int_in_range(1..=8)?;
    let row = |at| {
        let offset = u.int_in_range(0..=400)?;
        Ok((offset, u.int_in_range(0..=112)?, u.int_in_range(at + 1..=count)?))
    };
    let rows: Vec<Row> = (0..count).map(row).collect::<Result<_>>()?;
    Ok(plan(&rows))
}

/// Each operator writes one row, until the step after its last one.
pub(crate) fn plan(rows: &[Row]) -> (Graph, Plan) {
    let mut builder = GraphBuilder::new("guarded");
    let x = builder.input("x", Size::Fixed(Bytes(16)));
    for (at, &(_, bytes, _)) in rows.iter().enumerate() {
        let output = builder.computed(format!("t{at}"), Size::Fixed(Bytes(bytes)));
        builder.op(Op::new(format!("o{at}"), "Any", [x], [output]));
    }
    let graph = builder.finish().unwrap();
    let mut bindings = Lists::new();
    for id in (0..rows.len()).map(ResidenceId::from_index) {
        bindings.push([None, Some(id)]);
    }
    let plan = Plan {
        fingerprint: graph.fingerprint(),
        reuse: Reuse::Pack,
        inputs: Owner::Caller,
        outputs: Owner::Arena,
        align: Align::ONE,
        order_rule: "by hand".to_owned(),
        schedule: (0..rows.len()).map(OpId::from_index).collect(),
        bindings,
        spaces: IndexVec::filled(1, Space { kind: SpaceKind::Arena, size: Bytes(ARENA as u64) }),
        buffers: rows.iter().enumerate().map(|(at, row)| buffer(at, row)).collect(),
        residences: rows.iter().enumerate().map(|(at, row)| residence(at, row)).collect(),
        events: events(rows),
        order_bound: Bound::NONE,
        placement_bound: Bound::NONE,
        stats: PlanStats { arena_bytes: Bytes(ARENA as u64), ..PlanStats::default() },
    };
    (graph, plan)
}

fn buffer(at: usize, &(offset, ..): &Row) -> Buffer {
    let parts = ResidenceId::from_index(at)..ResidenceId::from_index(at + 1);
    Buffer { space: SpaceId::new(0), align: Align::ONE, parts, offset: Some(Bytes(offset)) }
}

fn residence(at: usize, &(_, bytes, end): &Row) -> Residence {
    Residence {
        what: Occupant::Tensor(TensorId::from_index(at + 1)),
        buffer: BufferId::from_index(at),
        offset: Bytes::ZERO,
        size: Size::Fixed(Bytes(bytes)),
        span: Interval::new(Step::from_index(at), Step(end)),
    }
}

fn events(rows: &[Row]) -> Vec<Event> {
    let mut events = Vec::new();
    for run in (0..rows.len()).map(RunId::from_index) {
        events.extend([Event::Alloc(ResidenceId::new(run.raw())), Event::Exec(run)]);
        let ended = rows.iter().enumerate().filter(|(_, row)| row.2 == run.raw() + 1);
        events.extend(ended.map(|(at, _)| Event::Free(ResidenceId::from_index(at))));
    }
    events
}

/// The bytes of a residence.
pub(crate) fn bytes(plan: &Plan, id: ResidenceId) -> Range<usize> {
    let (_, start) = plan.address(id).unwrap();
    let start = usize::try_from(start.0).unwrap();
    start..start + usize::try_from(plan.residences[id].size.bound().unwrap().0).unwrap()
}
