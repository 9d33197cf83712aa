//! Plans by hand that a planner would not make: hostile ones, and right ones that only look wrong.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use lowtide_core::{
    Align, Bound, Buffer, BufferId, Bytes, Event, Fault, Graph, GraphBuilder, IndexVec, Interval,
    Lists, Occupant, Op, OpId, Owner, Plan, PlanStats, Proof, Residence, ResidenceId, Reuse, RunId,
    Sharing, Size, Space, SpaceId, SpaceKind, Step, TensorId, check,
};
use lowtide_planner::{PlanConfig, plan};

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
        "W" => Event::Fence(RunId::new(number)),
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

// Tensors that lie inside each other.

/// A graph in a few words: each line an operator `inputs -> name:bytes ...`, with what it shares.
struct Words {
    builder: GraphBuilder,
    names: Vec<&'static str>,
}

impl Words {
    fn new() -> Self {
        let mut builder = GraphBuilder::new("inside");
        builder.input("x", SIZE);
        Self { builder, names: vec!["x"] }
    }

    fn id(&self, name: &str) -> TensorId {
        let at = self.names.iter().position(|other| *other == name).unwrap();
        TensorId::new(u32::try_from(at).unwrap())
    }

    fn op(&mut self, inputs: &[&str], outputs: &[(&'static str, u64)], sharing: &[(&str, u64)]) {
        let ids: Vec<TensorId> = inputs.iter().map(|name| self.id(name)).collect();
        let mut made = Vec::new();
        for &(name, bytes) in outputs {
            made.push(self.builder.computed(name, Size::Fixed(Bytes(bytes))));
            self.names.push(name);
        }
        let mut op = Op::new(outputs[0].0, "Op", ids.clone(), made.clone());
        for (at, &(kind, offset)) in sharing.iter().enumerate() {
            let (first, offset) = (made[0], Bytes(offset));
            op = op.sharing(match kind {
                "part" => Sharing::PartOf { input: ids[at], output: first, offset },
                "piece" => Sharing::PieceOf { output: made[at], of: ids[0], offset },
                "view" => Sharing::View { output: first, of: ids[0], offset: Some(offset) },
                "mutates" => Sharing::Mutates { output: first, of: ids[0] },
                _ => Sharing::MayOverwrite { output: first, of: ids[at] },
            });
        }
        self.builder.op(op);
    }

    fn finish(mut self) -> Graph {
        self.builder.output(self.id(self.names.last().unwrap()));
        self.builder.finish().unwrap()
    }
}

/// The faults of a plan in file order that has all storages in one buffer: name, offset and span of each, in the
/// order of their numbers in `events`.
fn faults_inside(
    graph: &Graph,
    stays: &[(&str, u64, std::ops::Range<u32>)],
    events: &'static str,
) -> Vec<Fault> {
    let id = |name: &str| graph.tensors().ids().find(|&id| &*graph.tensors()[id].name == name);
    let residence = |(name, offset, span): &(&str, u64, std::ops::Range<u32>)| {
        let tensor = id(name).unwrap();
        let Size::Fixed(bytes) = graph.tensors()[tensor].size else { panic!("{name}") };
        (Occupant::Tensor(tensor), 0, *offset, bytes.0, span.clone())
    };
    let residences: Vec<_> = stays.iter().map(residence).collect();
    let home = |tensor: &TensorId| {
        let root = Occupant::Tensor(graph.storage(*tensor));
        residences.iter().position(|row| row.0 == root).map(|at| u32::try_from(at).unwrap())
    };
    let rows: Vec<Vec<Option<u32>>> = graph
        .ops()
        .iter()
        .map(|op| op.inputs.iter().chain(&op.outputs).map(home).collect())
        .collect();
    let bindings: Vec<&[Option<u32>]> = rows.iter().map(Vec::as_slice).collect();
    let schedule: Vec<u32> = graph.ops().ids().map(OpId::raw).collect();
    ByHand {
        spaces: &[(ARENA, 256)],
        buffers: &[(0, Some(0), 0..u32::try_from(residences.len()).unwrap())],
        residences: &residences,
        schedule: &schedule,
        bindings: &bindings,
        events,
        align: Align::CACHE_LINE,
    }
    .faults(graph)
}

/// `concat(x0, x1) -> w`, and then what `more` adds.
fn concat(more: impl FnOnce(&mut Words)) -> Graph {
    let mut words = Words::new();
    words.op(&["x"], &[("x0", 16)], &[]);
    words.op(&["x"], &[("x1", 48)], &[]);
    words.op(&["x0", "x1"], &[("w", 64)], &[("part", 0), ("part", 16)]);
    more(&mut words);
    words.finish()
}

fn part_lives_on(x1: u64) -> Vec<Fault> {
    let graph = concat(|words| words.op(&["x0", "w"], &[("y", 64)], &[]));
    let stays = [("x0", 0, 0..4), ("x1", x1, 1..3), ("w", 0, 2..4), ("y", 128, 3..4)];
    faults_inside(&graph, &stays, "A0 E0 A1 E1 A2 E2 F1 A3 E3 F2 F0")
}

#[test]
fn a_part_may_live_on_beside_its_whole() {
    assert_eq!(part_lives_on(16), []);
}

#[test]
fn a_part_at_another_place_is_under_the_whole() {
    let faults = part_lives_on(12);
    assert!(matches!(faults.first(), Some(Fault::HeldTwice { .. })), "{faults:#?}");
    let faults = part_lives_on(20);
    let [Fault::HeldTwice { why, .. }] = faults.as_slice() else { panic!("{faults:#?}") };
    assert_eq!(*why, "the input lies at another place");
}

/// `w1 = x0 x1` and `w2 = x0 x1 x2`, each of them flat, or the second `w1 x2`; `y` reads both.
fn dense(is_nested: bool, x2: u64) -> Vec<Fault> {
    let mut words = Words::new();
    words.op(&["x"], &[("x0", 16)], &[]);
    words.op(&["x"], &[("x1", 20)], &[]);
    words.op(&["x0", "x1"], &[("w1", 36)], &[("part", 0), ("part", 16)]);
    words.op(&["w1"], &[("x2", 28)], &[]);
    if is_nested {
        words.op(&["w1", "x2"], &[("w2", 64)], &[("part", 0), ("part", 36)]);
    } else {
        let parts = [("part", 0), ("part", 16), ("part", 36)];
        words.op(&["x0", "x1", "x2"], &[("w2", 64)], &parts);
    }
    words.op(&["x0", "w1", "w2"], &[("y", 64)], &[]);
    let stays = [
        ("x0", 0, 0..6),
        ("x1", 16, 1..5),
        ("w1", 0, 2..6),
        ("x2", x2, 3..5),
        ("w2", 0, 4..6),
        ("y", 128, 5..6),
    ];
    let events = "A0 E0 A1 E1 A2 E2 A3 E3 A4 E4 F3 F1 A5 E5 F2 F0 F4";
    faults_inside(&words.finish(), &stays, events)
}

#[test]
fn wholes_that_grow_lie_around_each_other() {
    assert_eq!(dense(false, 36), []);
    assert_eq!(dense(true, 36), []);
}

#[test]
fn what_extends_a_whole_lies_behind_it() {
    for is_nested in [false, true] {
        let faults = dense(is_nested, 32);
        assert!(matches!(faults.first(), Some(Fault::HeldTwice { .. })), "{faults:#?}");
    }
}

/// `split(a) -> p, q`, read by `r` and `y`.
fn split_faults(q: u64, events: &'static str, ends: [u32; 3]) -> Vec<Fault> {
    let mut words = Words::new();
    words.op(&["x"], &[("a", 64)], &[]);
    words.op(&["a"], &[("p", 24), ("q", 40)], &[("piece", 0), ("piece", 24)]);
    words.op(&["p"], &[("r", 64)], &[]);
    words.op(&["r", "q"], &[("y", 64)], &[]);
    let stays = [
        ("a", 0, 0..ends[0]),
        ("p", 0, 1..ends[1]),
        ("q", q, 1..ends[2]),
        ("r", 128, 2..4),
        ("y", 192, 3..4),
    ];
    faults_inside(&words.finish(), &stays, events)
}

#[test]
fn pieces_die_one_by_one_after_their_base() {
    assert_eq!(split_faults(24, "A0 E0 A1 A2 E1 F0 A3 E2 F1 A4 E3 F3 F2", [2, 3, 4]), []);
}

#[test]
fn a_piece_at_another_place_is_over_its_base() {
    let faults = split_faults(23, "A0 E0 A1 A2 E1 F0 A3 E2 F1 A4 E3 F3 F2", [2, 3, 4]);
    assert!(matches!(faults.first(), Some(Fault::HeldTwice { .. })), "{faults:#?}");
    let faults = split_faults(28, "A0 E0 A1 A2 E1 F0 A3 E2 F1 A4 E3 F3 F2", [2, 3, 4]);
    let [Fault::HeldTwice { why, .. }] = faults.as_slice() else { panic!("{faults:#?}") };
    assert_eq!(*why, "nothing allows that");
}

#[test]
fn pieces_that_are_copied_do_not_lie_on_each_other() {
    let mut words = Words::new();
    words.op(&["x"], &[("a", 64)], &[]);
    words.op(&["a"], &[("p", 32), ("q", 32)], &[("piece", 0), ("piece", 16)]);
    words.op(&["p", "q"], &[("y", 64)], &[]);
    let graph = words.finish();
    let faults = |p, q| {
        let stays = [("a", 0, 0..2), ("p", p, 1..3), ("q", q, 1..3), ("y", 192, 2..3)];
        faults_inside(&graph, &stays, "A0 E0 A1 A2 E1 F0 A3 E2 F1 F2")
    };
    assert_eq!(faults(0, 16), []);
    assert!(matches!(faults(64, 80).as_slice(), [Fault::HeldTwice { .. }]));
}

#[test]
fn a_whole_is_not_overwritten_while_a_part_is_read() {
    let graph = concat(|words| {
        words.op(&["w"], &[("r", 64)], &[("over", 0)]);
        words.op(&["x0", "r"], &[("y", 64)], &[]);
    });
    let stays =
        [("x0", 0, 0..5), ("x1", 16, 1..3), ("w", 0, 2..4), ("r", 0, 3..5), ("y", 64, 4..5)];
    let faults = faults_inside(&graph, &stays, "A0 E0 A1 E1 A2 E2 F1 A3 E3 F2 A4 E4 F0 F3");
    let [Fault::HeldTwice { old, .. }, Fault::WrongBytes { tensor, found, .. }] = faults.as_slice()
    else {
        panic!("{faults:#?}")
    };
    assert_eq!((&**old, &**tensor, &**found), ("x0", "x0", "`r`"));
}

#[test]
fn a_whole_is_not_changed_while_a_part_is_read() {
    let graph = concat(|words| {
        words.op(&["w"], &[("m", 64)], &[("mutates", 0)]);
        words.op(&["x0", "m"], &[("y", 64)], &[]);
    });
    let stays = [("x0", 0, 0..5), ("x1", 16, 1..3), ("w", 0, 2..5), ("y", 64, 4..5)];
    let faults = faults_inside(&graph, &stays, "A0 E0 A1 E1 A2 E2 F1 E3 A3 E4 F0 F2");
    assert!(matches!(faults.as_slice(), [Fault::WrongBytes { tensor, .. }] if tensor == "x0"));
}

#[test]
fn a_piece_is_not_overwritten_while_its_base_is_read() {
    let mut words = Words::new();
    words.op(&["x"], &[("a", 64)], &[]);
    words.op(&["a"], &[("p", 32)], &[("piece", 32)]);
    words.op(&["p"], &[("r", 32)], &[("over", 0)]);
    words.op(&["r", "a"], &[("y", 64)], &[]);
    let stays = [("a", 0, 0..4), ("p", 32, 1..3), ("r", 32, 2..4), ("y", 64, 3..4)];
    let faults = faults_inside(&words.finish(), &stays, "A0 E0 A1 E1 A2 E2 F1 A3 E3 F0 F2");
    let [Fault::HeldTwice { old, .. }, Fault::WrongBytes { tensor, .. }] = faults.as_slice() else {
        panic!("{faults:#?}")
    };
    assert_eq!((&**old, &**tensor), ("a", "a"));
}

#[test]
fn two_inputs_on_the_same_bytes_are_not_overwritten() {
    let mut words = Words::new();
    words.op(&["x"], &[("a", 64)], &[]);
    words.op(&["a"], &[("p", 64)], &[("piece", 0)]);
    words.op(&["a", "p"], &[("y", 64)], &[("over", 0), ("over", 0)]);
    let stays = [("a", 0, 0..3), ("p", 0, 1..3), ("y", 0, 2..3)];
    let faults = faults_inside(&words.finish(), &stays, "A0 E0 A1 E1 A2 E2 F0 F1");
    let [Fault::HeldTwice { why, .. }] = faults.as_slice() else { panic!("{faults:#?}") };
    assert_eq!(*why, "another input of the operator lies on the same bytes");
}

#[test]
fn an_input_with_the_bytes_of_a_part_lies_elsewhere() {
    let mut words = Words::new();
    words.op(&["x"], &[("a", 16)], &[]);
    words.op(&["a"], &[("p", 16)], &[("piece", 0)]);
    words.op(&["a", "p"], &[("y", 32)], &[("part", 0), ("part", 16)]);
    let graph = words.finish();
    let faults = |p| {
        let stays = [("a", 0, 0..3), ("p", p, 1..3), ("y", 0, 2..3)];
        faults_inside(&graph, &stays, "A0 E0 A1 E1 A2 E2 F0 F1")
    };
    assert_eq!(faults(16), []);
    let faults = faults(0);
    let [Fault::HeldTwice { why, .. }] = faults.as_slice() else { panic!("{faults:#?}") };
    assert_eq!(*why, "the input lies at another place");
}

/// `concat(v, z) -> w` where `v` is the second half of `b`: `w` begins in the middle of `b`.
#[test]
fn a_whole_may_lie_around_a_view() {
    let mut words = Words::new();
    words.op(&["x"], &[("b", 128)], &[]);
    words.op(&["b"], &[("v", 64)], &[("view", 64)]);
    words.op(&["x"], &[("z", 64)], &[]);
    words.op(&["v", "z"], &[("w", 128)], &[("part", 0), ("part", 64)]);
    words.op(&["b", "w"], &[("y", 16)], &[]);
    let graph = words.finish();
    let faults = |z, w| {
        let stays = [("b", 0, 0..5), ("z", z, 2..4), ("w", w, 3..5), ("y", 192, 4..5)];
        faults_inside(&graph, &stays, "A0 E0 E1 A1 E2 A2 E3 F1 A3 E4 F0 F2")
    };
    assert_eq!(faults(128, 64), []);
    assert!(matches!(faults(128, 0).first(), Some(Fault::HeldTwice { .. })));
}

#[test]
fn views_that_are_joined_as_they_lay_may_stay() {
    for (places, is_right) in [([0, 32], true), ([32, 0], false)] {
        let mut words = Words::new();
        words.op(&["x"], &[("b", 64)], &[]);
        words.op(&["b"], &[("v", 32)], &[("view", places[0])]);
        words.op(&["b"], &[("u", 32)], &[("view", places[1])]);
        words.op(&["v", "u"], &[("w", 64)], &[("part", 0), ("part", 32)]);
        words.op(&["b", "w"], &[("y", 64)], &[]);
        let stays = [("b", 0, 0..5), ("w", 0, 3..5), ("y", 64, 4..5)];
        let faults = faults_inside(&words.finish(), &stays, "A0 E0 E1 E2 A1 E3 A2 E4 F0 F1");
        assert_eq!(faults.is_empty(), is_right, "{faults:#?}");
    }
}

/// What both hold counts once, also in the certificate of the working set.
#[test]
fn a_part_beside_its_whole_adds_nothing_to_the_bound() {
    let graph = concat(|words| words.op(&["x0", "w"], &[("y", 64)], &[]));
    let is_shown = |bytes| {
        let mut plan = plan(&graph, &PlanConfig::default()).unwrap().plan;
        plan.order_bound = Bound { bytes: Bytes(bytes), proof: Proof::WorkingSet(OpId::new(3)) };
        check(&graph, plan).is_ok()
    };
    assert!(is_shown(128) && !is_shown(129));
}

/// `w1 = w0 x1`, `w2 = w1 x2` and so on, each a byte longer; the last operator reads them all.
fn deep(depth: u32) -> Graph {
    let mut b = GraphBuilder::new("deep");
    let x = b.input("x", SIZE);
    let mut wholes = vec![b.computed("w", Size::Fixed(Bytes(1)))];
    b.op(Op::new("first", "A", [x], [wholes[0]]));
    for level in 1..=u64::from(depth) {
        let whole = wholes[wholes.len() - 1];
        let more = b.computed("x", Size::Fixed(Bytes(1)));
        let output = b.computed("w", Size::Fixed(Bytes(level + 1)));
        let part = |input, offset| Sharing::PartOf { input, output, offset: Bytes(offset) };
        b.op(Op::new("make", "A", [x], [more]));
        b.op(Op::new("concat", "C", [whole, more], [output])
            .sharing(part(whole, 0))
            .sharing(part(more, level)));
        wholes.push(output);
    }
    let y = b.computed("y", SIZE);
    b.op(Op::new("last", "Y", wholes, [y]));
    b.output(y);
    b.finish().unwrap()
}

/// The faults of a plan that has all of that in one place, to the end: each byte is held by all wholes around it.
fn deep_faults(depth: u32) -> Vec<Fault> {
    let last = 2 * depth + 1;
    let mut residences = vec![(tensor(1), 0, 0, 1, 0..last + 1)];
    let mut rows = vec![vec![None, Some(0)]];
    for level in 1..=depth {
        let (more, whole, bytes) = (2 * level - 1, 2 * level, u64::from(level));
        residences.push((tensor(more + 1), 0, bytes, 1, more..last + 1));
        residences.push((tensor(whole + 1), 0, 0, bytes + 1, whole..last + 1));
        rows.push(vec![None, Some(more)]);
        rows.push(vec![Some(whole - 2), Some(more), Some(whole)]);
    }
    let place = u64::from(depth + 1).next_multiple_of(64);
    residences.push((tensor(last + 1), 0, place, 64, last..last + 1));
    rows.push((0..=depth).map(|level| Some(2 * level)).chain([Some(last)]).collect());
    let runs = (0..=last).map(|step| format!("A{step} E{step}"));
    let frees = (0..last).map(|id| format!("F{id}"));
    ByHand {
        spaces: &[(ARENA, 1 << 20)],
        buffers: &[(0, Some(0), 0..last + 1)],
        residences: &residences,
        schedule: &(0..=last).collect::<Vec<_>>(),
        bindings: &rows.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        events: &runs.chain(frees).collect::<Vec<_>>().join(" "),
        align: Align::CACHE_LINE,
    }
    .faults(&deep(depth))
}

#[test]
fn too_much_that_lies_in_each_other_is_refused() {
    assert_eq!(deep_faults(100), []);
    let found = deep_faults(1000);
    let is_refused =
        |fault: &Fault| matches!(fault, Fault::HeldTwice { .. } | Fault::TooTangled { .. });
    assert!(found.iter().any(is_refused), "{found:#?}");
}
