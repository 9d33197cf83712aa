//! Plans by hand that a planner would not make: hostile ones, and right ones that only look wrong.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use lowtide_core::{
    Align, Bound, Buffer, BufferId, Bytes, Event, Fault, Graph, GraphBuilder, IndexVec, Interval,
    Lists, Occupant, Op, OpId, Owner, Plan, PlanStats, Proof, Residence, ResidenceId, Reuse, RunId,
    Sharing, Size, Space, SpaceId, SpaceKind, Step, TensorId, check,
};

const SIZE: Size = Size::Fixed(Bytes(64));

/// `(space, offset, parts)` of each buffer.
type Buffers<'a> = &'a [(u32, Option<u64>, std::ops::Range<u32>)];
/// Occupant, buffer, offset, bytes and span of each residence.
type Residences<'a> = &'a [(Occupant, u32, u64, u64, std::ops::Range<u32>)];

fn tensor(id: u32) -> Occupant {
    Occupant::Tensor(TensorId::new(id))
}

struct ByHand<'a> {
    spaces: &'a [(SpaceKind, u64)],
    buffers: Buffers<'a>,
    residences: Residences<'a>,
    schedule: &'a [u32],
    bindings: &'a [&'a [Option<u32>]],
    /// `A3 E0 F3`.
    events: &'a str,
    align: Align,
}

impl ByHand<'_> {
    /// The plan, with bounds that claim nothing and the statistics that the checker wants.
    fn faults(&self, graph: &Graph) -> Vec<Fault> {
        let mut plan = self.plan(graph);
        for fault in check(graph, plan.clone()).map_or_else(|faults| faults.0, |_| Vec::new()) {
            let Fault::WrongStatistic { name, wanted, .. } = fault else { continue };
            match name {
                "peak_live_bytes" => plan.stats.peak_live_bytes = Bytes(wanted),
                "peak_step" => plan.stats.peak_step = Step(u32::try_from(wanted).unwrap()),
                "arena_bytes" => plan.stats.arena_bytes = Bytes(wanted),
                "no_reuse_bytes" => plan.stats.no_reuse_bytes = Bytes(wanted),
                _ => plan.stats.pool_tensors = usize::try_from(wanted).unwrap(),
            }
        }
        check(graph, plan).map_or_else(|faults| faults.0, |_| Vec::new())
    }

    fn plan(&self, graph: &Graph) -> Plan {
        let space = |&(kind, size): &(SpaceKind, u64)| Space { kind, size: Bytes(size) };
        let buffer = |(space, offset, parts): &(u32, Option<u64>, std::ops::Range<u32>)| Buffer {
            space: SpaceId::new(*space),
            align: self.align,
            parts: ResidenceId::new(parts.start)..ResidenceId::new(parts.end),
            offset: offset.map(Bytes),
        };
        let mut residences = IndexVec::new();
        for (what, buffer, offset, bytes, span) in self.residences {
            residences.push(Residence {
                what: *what,
                buffer: BufferId::new(*buffer),
                offset: Bytes(*offset),
                size: Size::Fixed(Bytes(*bytes)),
                span: Interval::new(Step(span.start), Step(span.end)),
            });
        }
        let mut bindings = Lists::new();
        for row in self.bindings {
            bindings.push(row.iter().map(|id| id.map(ResidenceId::new)));
        }
        Plan {
            fingerprint: graph.fingerprint(),
            reuse: Reuse::Pack,
            inputs: Owner::Caller,
            outputs: Owner::Arena,
            align: self.align,
            order_rule: "by hand".into(),
            schedule: self.schedule.iter().map(|&op| OpId::new(op)).collect(),
            bindings,
            spaces: self.spaces.iter().map(space).collect(),
            buffers: self.buffers.iter().map(buffer).collect(),
            residences,
            events: self.events.split_whitespace().map(event).collect(),
            order_bound: Bound::NONE,
            placement_bound: Bound::NONE,
            stats: PlanStats::default(),
        }
    }
}

fn event(word: &str) -> Event {
    let number = word[1..].parse().unwrap();
    match &word[..1] {
        "A" => Event::Alloc(ResidenceId::new(number)),
        "E" => Event::Exec(RunId::new(number)),
        _ => Event::Free(ResidenceId::new(number)),
    }
}

const ARENA: SpaceKind = SpaceKind::Arena;
const POOL: SpaceKind = SpaceKind::Pool;

/// `x -> a (t1); x -> b (t2); a, b -> y (t3)`, sizes as given.
fn two_and_one(sizes: [u64; 3]) -> Graph {
    let mut b = GraphBuilder::new("two and one");
    let x = b.input("x", SIZE);
    let [one, two, y] = [("a", 0), ("b", 1), ("y", 2)]
        .map(|(name, at): (&str, usize)| b.computed(name, Size::Fixed(Bytes(sizes[at]))));
    b.op(Op::new("first", "A", [x], [one]));
    b.op(Op::new("second", "B", [x], [two]));
    b.op(Op::new("last", "C", [one, two], [y]));
    b.output(y);
    b.finish().unwrap()
}

fn in_one_pool_buffer(b_offset: u64) -> ByHand<'static> {
    let residences = vec![
        (tensor(1), 0, 0, 64, 0..3),
        (tensor(2), 0, b_offset, 64, 1..3),
        (tensor(3), 1, 0, 64, 2..3),
    ];
    ByHand {
        spaces: &[(ARENA, 64), (POOL, 0)],
        buffers: &[(1, None, 0..2), (0, Some(0), 2..3)],
        residences: Box::leak(residences.into_boxed_slice()),
        schedule: &[0, 1, 2],
        bindings: &[&[None, Some(0)], &[None, Some(1)], &[Some(0), Some(1), Some(2)]],
        events: "A0 E0 A1 E1 A2 E2 F0 F1",
        align: Align::CACHE_LINE,
    }
}

#[test]
fn two_tensors_on_the_same_bytes_of_a_buffer_in_the_pool() {
    let graph = two_and_one([64; 3]);
    assert_eq!(in_one_pool_buffer(64).faults(&graph), []);
    let faults = in_one_pool_buffer(0).faults(&graph);
    assert!(matches!(faults.first(), Some(Fault::HeldTwice { .. })), "{faults:#?}");
    // In safe mode too.
    let mut plan = in_one_pool_buffer(0).plan(&graph);
    plan.reuse = Reuse::Safe;
    let faults = check(&graph, plan).unwrap_err().0;
    assert!(matches!(faults.as_slice(), [Fault::SharedInSafeMode { .. }]), "{faults:#?}");
}

#[test]
fn ends_that_are_no_numbers() {
    let graph = two_and_one([64; 3]);
    for offset in [u64::MAX - 10, u64::MAX - 63, 1 << 62] {
        let faults = in_one_pool_buffer(offset & !63).faults(&graph);
        assert!(matches!(faults.first(), Some(Fault::OutsideSpace { .. })), "{faults:#?}");
    }
    let mut huge = in_one_pool_buffer(64);
    huge.spaces = &[(ARENA, u64::MAX), (POOL, 0)];
    assert!(matches!(huge.faults(&graph).first(), Some(Fault::OverLimit { .. })));
}

#[test]
fn residences_that_are_no_parts_are_aligned_in_their_buffer() {
    let graph = two_and_one([65, 65, 64]);
    let residences =
        [(tensor(1), 0, 0, 65, 0..3), (tensor(2), 0, 65, 65, 1..3), (tensor(3), 1, 0, 64, 2..3)];
    let by_hand = ByHand {
        spaces: &[(ARENA, 256)],
        buffers: &[(0, Some(0), 0..2), (0, Some(192), 2..3)],
        residences: &residences,
        ..in_one_pool_buffer(64)
    };
    let faults = by_hand.faults(&graph);
    assert!(matches!(faults.as_slice(), [Fault::MisalignedPart { offset: 65, .. }]), "{faults:#?}");
}

/// `A: x -> a (scratch); B: a -> y, over it; C: y -> z; A again, late, onto what is no longer its own`.
#[test]
fn a_write_to_bytes_that_are_lost() {
    let mut b = GraphBuilder::new("recomputed");
    let x = b.input("x", SIZE);
    let [a, y, z, o] = ["a", "y", "z", "o"].map(|name| b.computed(name, SIZE));
    b.op(Op::new("A", "A", [x], [a]).scratch(SIZE));
    b.op(Op::new("B", "B", [a], [y]).sharing(Sharing::MayOverwrite { output: y, of: a }));
    b.op(Op::new("C", "C", [y], [z]));
    b.op(Op::new("D", "D", [a, z], [o]));
    b.output(o);
    let graph = b.finish().unwrap();
    let scratch = |run| Occupant::Scratch(RunId::new(run));
    let residences = [
        (tensor(1), 0, 0, 64, 0..5),
        (tensor(2), 0, 0, 64, 1..3),
        (tensor(3), 1, 0, 64, 2..5),
        (tensor(4), 2, 0, 64, 4..5),
        (scratch(0), 3, 0, 64, 0..1),
        (scratch(3), 4, 0, 64, 3..5),
    ];
    let by_hand = ByHand {
        spaces: &[(ARENA, 256)],
        buffers: &[
            (0, Some(0), 0..2),
            (0, Some(64), 2..3),
            (0, Some(128), 3..4),
            (0, Some(192), 4..5),
            (0, Some(0), 5..6),
        ],
        residences: &residences,
        schedule: &[0, 1, 2, 0, 3],
        bindings: &[
            &[None, Some(0), Some(4)],
            &[Some(0), Some(1)],
            &[Some(1), Some(2)],
            &[None, Some(0), Some(5)],
            &[Some(0), Some(2), Some(3)],
        ],
        events: "A0 A4 E0 F4 A1 E1 A2 E2 F1 A5 E3 A3 E4 F5 F0 F2",
        align: Align::CACHE_LINE,
    };
    let faults = by_hand.faults(&graph);
    assert!(matches!(faults.first(), Some(Fault::LateFree { .. })), "{faults:#?}");
    assert!(faults.iter().any(|fault| matches!(fault, Fault::NotHeld { .. })), "{faults:#?}");
}

#[test]
fn a_value_of_no_bytes_may_lie_inside_another_one() {
    let graph = two_and_one([128, 0, 64]);
    let residences =
        [(tensor(1), 0, 0, 128, 0..3), (tensor(2), 1, 0, 0, 1..3), (tensor(3), 2, 0, 64, 2..3)];
    let by_hand = ByHand {
        spaces: &[(ARENA, 192)],
        buffers: &[(0, Some(0), 0..1), (0, Some(64), 1..2), (0, Some(128), 2..3)],
        residences: &residences,
        ..in_one_pool_buffer(64)
    };
    assert_eq!(by_hand.faults(&graph), []);
}

/// `A: x -> a; m: a ~> a'` (an output); `A` again for a late reader of `a`.
#[test]
fn a_mutated_output_stays_where_it_was_while_the_old_value_is_made_again() {
    let mut b = GraphBuilder::new("mutated");
    let x = b.input("x", SIZE);
    let [a, changed, y] = ["a", "a'", "y"].map(|name| b.computed(name, SIZE));
    b.op(Op::new("A", "A", [x], [a]));
    b.op(Op::new("m", "M", [a], [changed]).sharing(Sharing::Mutates { output: changed, of: a }));
    b.op(Op::new("late", "L", [a], [y]));
    b.output(changed);
    b.output(y);
    let graph = b.finish().unwrap();
    let residences =
        [(tensor(1), 0, 0, 64, 0..4), (tensor(1), 1, 0, 64, 2..4), (tensor(3), 2, 0, 64, 3..4)];
    let by_hand = ByHand {
        spaces: &[(ARENA, 192)],
        buffers: &[(0, Some(0), 0..1), (0, Some(64), 1..2), (0, Some(128), 2..3)],
        residences: &residences,
        schedule: &[0, 1, 0, 2],
        bindings: &[&[None, Some(0)], &[Some(0), Some(0)], &[None, Some(1)], &[Some(1), Some(2)]],
        events: "A0 E0 E1 A1 E2 A2 E3 F1",
        align: Align::CACHE_LINE,
    };
    assert_eq!(by_hand.faults(&graph), []);
}

/// The working set of an operator whose plan claims a bound above its own peak.
#[test]
fn a_bound_above_the_peak_of_its_own_plan() {
    let graph = two_and_one([64; 3]);
    let mut plan = in_one_pool_buffer(64).plan(&graph);
    plan.stats.arena_bytes = Bytes(64);
    plan.stats.peak_live_bytes = Bytes(64);
    plan.stats.peak_step = Step(2);
    plan.stats.no_reuse_bytes = Bytes(192);
    plan.order_bound = Bound { bytes: Bytes(192), proof: Proof::WorkingSet(OpId::new(2)) };
    let faults = check(&graph, plan).unwrap_err().0;
    assert!(matches!(faults.as_slice(), [Fault::BoundAbovePeak { .. }]), "{faults:#?}");
}

#[test]
fn faults_of_a_hostile_plan_are_cut_off() {
    let graph = two_and_one([64; 3]);
    let mut plan = in_one_pool_buffer(64).plan(&graph);
    plan.events = vec![Event::Free(ResidenceId::new(0)); 5000];
    let faults = check(&graph, plan).unwrap_err().0;
    // Those of the claims come on top.
    assert!(faults.len() < 1010, "{}", faults.len());
    assert!(faults.iter().any(|fault| matches!(fault, Fault::More { kept: 1000, .. })));
}

#[test]
fn padding_lies_inside_the_arena() {
    let graph = two_and_one([64, 64, 60]);
    let residences =
        [(tensor(1), 0, 0, 64, 0..3), (tensor(2), 1, 0, 64, 1..3), (tensor(3), 2, 0, 60, 2..3)];
    let by_hand = |size| ByHand {
        spaces: match size {
            192 => &[(ARENA, 192)],
            _ => &[(ARENA, 188)],
        },
        buffers: &[(0, Some(0), 0..1), (0, Some(64), 1..2), (0, Some(128), 2..3)],
        residences: &residences,
        ..in_one_pool_buffer(64)
    };
    assert_eq!(by_hand(192).faults(&graph), []);
    let faults = by_hand(188).faults(&graph);
    assert!(
        matches!(faults.as_slice(), [Fault::OutsideSpace { end: 192, size: 188, .. }]),
        "{faults:#?}"
    );
}
