//! One graph with a plan made by hand, for the tests of everything that shows a plan.
//!
//! ~~~text
//! x ─ conv ─ a ─ relu ─ b ─ pad ─ c       relu writes b over a; conv needs scratch; c is of unknown size
//!
//! arena  ^ [scratch]
//!        | [    a    ]                    buffer 0: a and b, both there during step 1
//!        |      [    b    ]
//!        +--0----1----2---> step          pool: c
//! ~~~

use lowtide_core::{
    Align, Bound, Buffer, BufferId, Bytes, Event, Graph, GraphBuilder, IndexVec, Interval, Lists,
    Occupant, Op, OpId, Owner, Plan, PlanStats, Proof, Residence, ResidenceId, Reuse, RunId,
    Sharing, Size, Space, SpaceId, SpaceKind, Step, TensorId,
};

pub(crate) fn graph() -> Graph {
    let mut builder = GraphBuilder::new("sample");
    let x = builder.input("x", Size::Fixed(Bytes(100)));
    let a = builder.computed("a, \"first\"", Size::Fixed(Bytes(100)));
    let b = builder.computed("b", Size::AtMost(Bytes(100)));
    let c = builder.computed("c", Size::Unknown);
    builder.op(Op::new("conv", "Conv", [x], [a]).scratch(Size::Fixed(Bytes(10))));
    let overwrite = Sharing::MayOverwrite { output: b, of: a };
    builder.op(Op::new("relu", "Relu", [a], [b]).sharing(overwrite));
    builder.op(Op::new("", "Pad", [b], [c]));
    builder.output(c);
    builder.finish().unwrap()
}

pub(crate) fn plan() -> Plan {
    Plan {
        fingerprint: graph().fingerprint(),
        reuse: Reuse::Pack,
        inputs: Owner::Caller,
        outputs: Owner::Arena,
        align: Align::CACHE_LINE,
        order_rule: "by hand".to_owned(),
        schedule: (0..3).map(OpId::new).collect(),
        bindings: bindings(),
        spaces: vec![space(SpaceKind::Arena, 192), space(SpaceKind::Pool, 0)].into(),
        buffers: vec![buffer(0, 0..2, Some(0)), buffer(0, 2..3, Some(128)), buffer(1, 3..4, None)]
            .into(),
        residences: residences(),
        events: events(),
        order_bound: Bound { bytes: Bytes(128), proof: Proof::WorkingSet(OpId::new(1)) },
        placement_bound: Bound { bytes: Bytes(192), proof: Proof::LiveSum(Step(0)) },
        stats: PlanStats {
            no_reuse_bytes: Bytes(320),
            peak_live_bytes: Bytes(192),
            peak_step: Step(0),
            arena_bytes: Bytes(192),
            pool_tensors: 1,
        },
    }
}

fn bindings() -> Lists<RunId, Option<ResidenceId>> {
    let of = |id| Some(ResidenceId::new(id));
    let mut bindings = Lists::new();
    bindings.push([None, of(0), of(2)]);
    bindings.push([of(0), of(1)]);
    bindings.push([of(1), of(3)]);
    bindings
}

fn space(kind: SpaceKind, size: u64) -> Space {
    Space { kind, size: Bytes(size) }
}

fn buffer(space: u32, parts: std::ops::Range<u32>, offset: Option<u64>) -> Buffer {
    Buffer {
        space: SpaceId::new(space),
        align: Align::CACHE_LINE,
        parts: ResidenceId::new(parts.start)..ResidenceId::new(parts.end),
        offset: offset.map(Bytes),
    }
}

fn residences() -> IndexVec<ResidenceId, Residence> {
    let tensor = |id| Occupant::Tensor(TensorId::new(id));
    let row = |what, buffer, size, start, end| Residence {
        what,
        buffer: BufferId::new(buffer),
        offset: Bytes::ZERO,
        size,
        span: Interval::new(Step(start), Step(end)),
    };
    let scratch = Occupant::Scratch(RunId::new(0));
    vec![
        row(tensor(1), 0, Size::Fixed(Bytes(100)), 0, 2),
        row(tensor(2), 0, Size::AtMost(Bytes(100)), 1, 3),
        row(scratch, 1, Size::Fixed(Bytes(10)), 0, 1),
        row(tensor(3), 2, Size::Unknown, 2, 3),
    ]
    .into()
}

fn events() -> Vec<Event> {
    let alloc = |id| Event::Alloc(ResidenceId::new(id));
    let free = |id| Event::Free(ResidenceId::new(id));
    let exec = |id| Event::Exec(RunId::new(id));
    vec![
        alloc(0),
        alloc(2),
        exec(0),
        free(2),
        alloc(1),
        exec(1),
        free(0),
        alloc(3),
        Event::Fence(RunId::new(0)),
        exec(2),
        free(1),
        Event::Compact(RunId::new(2)),
    ]
}
