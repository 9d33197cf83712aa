//! One test a rule of the checker: a good plan, that rule broken and no other, that fault and no other.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use lowtide_core::{
    Align, Bound, BufferId, Bytes, DType, Event, Fault, Fingerprint, Graph, GraphBuilder, IndexVec,
    Interval, Lists, Occupant, Op, OpId, Owner, Plan, Proof, Residence, ResidenceId, Reuse, RunId,
    Sharing, Size, SpaceId, Step, TensorId, check,
};
use lowtide_planner::{OrderRule, PlanConfig, plan};

const SIZE: Size = Size::Fixed(Bytes(64));

/// `x -> a; a -> b (over a); b -> v (view of b); a, w -> d; v, d -> y`: sharing, a weight, scratch.
fn graph() -> Graph {
    let mut b = GraphBuilder::new("sample");
    let x = b.input("x", SIZE);
    let w = b.weight("w", SIZE);
    let [a, over, view, d, y] = ["a", "b", "v", "d", "y"].map(|name| b.computed(name, SIZE));
    b.op(Op::new("first", "A", [x], [a]).scratch(SIZE));
    b.op(Op::new("beside", "D", [a, w], [d]));
    b.op(Op::new("over", "B", [a], [over]).sharing(Sharing::MayOverwrite { output: over, of: a }));
    b.op(Op::new("view", "V", [over], [view]).sharing(Sharing::View {
        output: view,
        of: over,
        offset: None,
    }));
    b.op(Op::new("last", "Y", [view, d], [y]));
    b.output(y);
    b.finish().unwrap()
}

fn good(graph: &Graph, reuse: Reuse) -> Plan {
    let config = PlanConfig { order: OrderRule::File, reuse, ..PlanConfig::default() };
    plan(graph, &config).unwrap().plan
}

/// The faults of the sample's plan after `breaking` it.
fn faults(breaking: impl FnOnce(&mut Plan)) -> Vec<Fault> {
    faults_of(&graph(), breaking)
}

fn faults_of(graph: &Graph, breaking: impl FnOnce(&mut Plan)) -> Vec<Fault> {
    let mut plan = good(graph, Reuse::Pack);
    assert!(check(graph, plan.clone()).is_ok());
    breaking(&mut plan);
    check(graph, plan).map_or_else(|faults| faults.0, |_| Vec::new())
}

macro_rules! assert_only {
    ($faults:expr, $pattern:pat) => {
        let faults = $faults;
        assert!(matches!(faults.as_slice(), [$pattern]), "{faults:#?}");
    };
}

fn residence_of(plan: &Plan, graph: &Graph, name: &str) -> ResidenceId {
    let is_named = |&id: &TensorId| &*graph.tensors()[id].name == name;
    let tensor = graph.tensors().ids().find(is_named).unwrap();
    let stays = |&id: &ResidenceId| plan.residences[id].what == Occupant::Tensor(tensor);
    plan.residences.ids().find(stays).unwrap()
}

fn scratch(plan: &Plan) -> ResidenceId {
    let is_scratch = |&id: &ResidenceId| matches!(plan.residences[id].what, Occupant::Scratch(_));
    plan.residences.ids().find(is_scratch).unwrap()
}

fn edit(plan: &mut Plan, id: ResidenceId, change: impl FnOnce(&mut Residence)) {
    change(&mut plan.residences[id]);
}

fn position(plan: &Plan, event: Event) -> usize {
    plan.events.iter().position(|&other| other == event).unwrap()
}

/// Binds `value` to operand `at` of `run`.
fn bind(plan: &mut Plan, run: u32, at: usize, value: Option<ResidenceId>) {
    let mut bindings = Lists::new();
    for (index, row) in plan.bindings.iter().enumerate() {
        let mut row = row.to_vec();
        if index == run as usize {
            row[at] = value;
        }
        bindings.push(row);
    }
    plan.bindings = bindings;
}

/// Gives the buffer of `name` another offset.
fn move_to(plan: &mut Plan, graph: &Graph, name: &str, offset: u64) {
    let buffer = plan.residences[residence_of(plan, graph, name)].buffer;
    plan.buffers[buffer].offset = Some(Bytes(offset));
}

// Tables.

#[test]
fn another_graph() {
    assert_only!(faults(|plan| plan.fingerprint = Fingerprint(0)), Fault::OtherGraph { .. });
}

#[test]
fn an_operator_beyond_the_table() {
    let broken = faults(|plan| plan.schedule[RunId::new(0)] = OpId::new(99));
    assert_only!(broken, Fault::OutOfRange { found: 99, .. });
}

#[test]
fn a_schedule_without_bindings() {
    assert_only!(faults(|plan| plan.bindings = Lists::new()), Fault::WrongLength { .. });
}

#[test]
fn a_binding_too_few() {
    let broken = faults(|plan| {
        let rows: Vec<Vec<_>> = plan.bindings.iter().map(<[_]>::to_vec).collect();
        plan.bindings = Lists::new();
        for row in rows {
            plan.bindings.push(row.into_iter().skip(usize::from(plan.bindings.is_empty())));
        }
    });
    assert_only!(broken, Fault::WrongLength { .. });
}

#[test]
fn a_bound_residence_beyond_the_table() {
    let broken = faults(|plan| bind(plan, 1, 0, Some(ResidenceId::new(77))));
    assert_only!(broken, Fault::OutOfRange { found: 77, .. });
}

#[test]
fn an_event_beyond_the_table() {
    let broken = faults(|plan| plan.events.push(Event::Free(ResidenceId::new(55))));
    assert_only!(broken, Fault::OutOfRange { found: 55, .. });
}

#[test]
fn parts_that_do_not_tile() {
    let broken = faults(|plan| {
        let first = plan.buffers.ids().next().unwrap();
        plan.buffers[first].parts.start = ResidenceId::new(1);
    });
    assert_only!(broken, Fault::PartsDoNotTile { .. });
}

#[test]
fn parts_that_leave_residences_over() {
    let broken = faults(|plan| {
        let last = plan.buffers.ids().next_back().unwrap();
        plan.buffers[last].parts.end = plan.buffers[last].parts.start;
    });
    assert_only!(broken, Fault::WrongLength { .. });
}

#[test]
fn a_part_that_names_another_buffer() {
    let broken = faults(|plan| {
        let id = scratch(plan);
        let other = plan.buffers.ids().next().unwrap();
        edit(plan, id, |residence| residence.buffer = other);
    });
    assert_only!(broken, Fault::ForeignPart { .. });
}

#[test]
fn a_space_beyond_the_table() {
    let broken = faults(|plan| {
        let first = plan.buffers.ids().next().unwrap();
        plan.buffers[first].space = SpaceId::new(5);
    });
    assert_only!(broken, Fault::OutOfRange { found: 5, .. });
}

#[test]
fn a_buffer_of_the_arena_without_an_offset() {
    let broken = faults(|plan| {
        let first = plan.buffers.ids().next().unwrap();
        plan.buffers[first].offset = None;
    });
    assert_only!(broken, Fault::OffsetKind { .. });
}

#[test]
fn an_offset_that_is_not_aligned() {
    assert_only!(faults(|plan| move_to(plan, &graph(), "d", 32)), Fault::Misaligned { .. });
}

#[test]
fn a_buffer_that_promises_less_than_the_plan() {
    let broken = faults(|plan| {
        let first = plan.buffers.ids().next().unwrap();
        plan.buffers[first].align = Align::ONE;
    });
    assert_only!(broken, Fault::WeakAlignment { .. });
}

#[test]
fn an_element_that_is_split() {
    let mut b = GraphBuilder::new("element");
    let x = b.input("x", SIZE);
    let y = b.computed("y", SIZE);
    let mut row = lowtide_core::Tensor::new("a", SIZE, lowtide_core::TensorKind::Computed);
    row.dtype = Some(DType::F32);
    let a = b.tensor(row);
    b.op(Op::new("first", "A", [x], [a]));
    let part = Sharing::PartOf { input: a, output: y, offset: Bytes(0) };
    b.op(Op::new("second", "Concat", [a], [y]).sharing(part));
    b.output(y);
    let graph = b.finish().unwrap();
    let broken = faults_of(&graph, |plan| {
        let id = residence_of(plan, &graph, "a");
        plan.spaces[SpaceId::new(0)].size = Bytes(256);
        edit(plan, id, |residence| residence.offset = Bytes(2));
    });
    assert_only!(broken, Fault::SplitElement { offset: 2, element: 4, .. });
}

#[test]
fn a_residence_outside_its_space() {
    assert_only!(faults(|plan| move_to(plan, &graph(), "d", 1 << 20)), Fault::OutsideSpace { .. });
    assert_only!(faults(|plan| move_to(plan, &graph(), "d", !63)), Fault::OutsideSpace { .. });
}

#[test]
fn a_size_that_is_not_the_graphs() {
    let broken = faults(|plan| {
        let id = residence_of(plan, &graph(), "d");
        edit(plan, id, |residence| residence.size = Size::Fixed(Bytes(60)));
    });
    assert_only!(broken, Fault::WrongSize { .. });
}

#[test]
fn scratch_of_another_size() {
    let broken = faults(|plan| {
        let id = scratch(plan);
        edit(plan, id, |residence| residence.size = Size::Fixed(Bytes(8)));
    });
    assert_only!(broken, Fault::WrongSize { .. });
}

#[test]
fn an_unknown_size_in_the_arena() {
    let mut b = GraphBuilder::new("unknown");
    let x = b.input("x", SIZE);
    let y = b.computed("y", Size::Unknown);
    b.op(Op::new("first", "A", [x], [y]));
    b.output(y);
    let broken = faults_of(&b.finish().unwrap(), |plan| {
        let first = plan.buffers.ids().next().unwrap();
        plan.buffers[first].space = SpaceId::new(0);
        plan.buffers[first].offset = Some(Bytes::ZERO);
    });
    assert_only!(broken, Fault::UnboundedInArena { .. });
}

/// A chain of operators of unknown sizes.
fn unknown_chain(length: usize) -> Graph {
    let mut b = GraphBuilder::new("unknown");
    let mut last = b.input("x", SIZE);
    for at in 0..length {
        let next = b.computed(format!("t{at}"), Size::Unknown);
        b.op(Op::new(format!("op{at}"), "A", [last], [next]));
        last = next;
    }
    b.output(last);
    b.finish().unwrap()
}

#[test]
fn a_pool_that_is_moved_where_nobody_said_so() {
    let graph = unknown_chain(200);
    let compactions = |every| {
        let config = PlanConfig { compact_every: every, ..PlanConfig::default() };
        let plan = plan(&graph, &config).unwrap().plan;
        let count = plan.events.iter().filter(|event| matches!(event, Event::Compact(_))).count();
        check(&graph, plan).unwrap();
        count
    };
    assert_eq!([0, 1, 64, 201].map(compactions), [0, 200, 3, 0]);
    let run = RunId::new(5);
    let broken = faults_of(&graph, |plan| plan.events.insert(0, Event::Compact(run)));
    assert_only!(broken, Fault::MisplacedCompact { event: 0, .. });
    let broken = faults_of(&graph, |plan| plan.events.push(Event::Compact(run)));
    assert_only!(broken, Fault::MisplacedCompact { .. });
    let broken =
        faults(|plan| plan.events.push(Event::Compact(plan.schedule.ids().last().unwrap())));
    assert_only!(broken, Fault::MisplacedCompact { why: "but the plan has none", .. });
}

#[test]
fn a_residence_of_a_weight_an_input_a_view_or_of_scratch_that_is_not_needed() {
    let names = |what: Occupant| {
        faults(|plan| {
            let id = scratch(plan);
            edit(plan, id, |residence| residence.what = what);
        })
    };
    let [x, w, view] = [0, 1, 4].map(|id| Occupant::Tensor(TensorId::new(id)));
    for what in [x, w, view, Occupant::Scratch(RunId::new(1))] {
        assert_only!(names(what), Fault::NotPlaced { .. });
    }
    for what in [Occupant::Tensor(TensorId::new(70)), Occupant::Scratch(RunId::new(70))] {
        assert_only!(names(what), Fault::OutOfRange { found: 70, .. });
    }
}

#[test]
fn bytes_that_are_shared_in_safe_mode() {
    let graph = graph();
    let mut plan = good(&graph, Reuse::Safe);
    assert!(check(&graph, plan.clone()).is_ok());
    // The scratch of the first run and the last output are never there together.
    let (first, last) = (scratch(&plan), residence_of(&plan, &graph, "y"));
    let offset = plan.buffers[plan.residences[first].buffer].offset;
    let buffer = plan.residences[last].buffer;
    plan.buffers[buffer].offset = offset;
    assert_only!(check(&graph, plan).unwrap_err().0, Fault::SharedInSafeMode { .. });
}

// Order.

#[test]
fn a_fence_that_is_missing() {
    let fence = Event::Fence(RunId::new(1));
    let broken = faults(|plan| {
        let at = position(plan, fence);
        plan.events.remove(at);
    });
    assert_only!(broken, Fault::Unordered { .. });
}

#[test]
fn a_fence_for_what_comes_later() {
    let broken = faults(|plan| plan.events.insert(0, Event::Fence(RunId::new(2))));
    assert_only!(broken, Fault::LateFence { event: 0, .. });
    let broken = faults(|plan| plan.events.push(Event::Fence(RunId::new(2))));
    assert_only!(broken, Fault::LateFence { .. });
}

// Protocol.

#[test]
fn a_run_out_of_turn() {
    let broken = faults(|plan| {
        let (a, b) = (
            position(plan, Event::Exec(RunId::new(1))),
            position(plan, Event::Exec(RunId::new(2))),
        );
        plan.events.swap(a, b);
    });
    assert!(matches!(broken.first(), Some(Fault::OutOfTurn { .. })), "{broken:#?}");
}

#[test]
fn a_run_after_the_last() {
    let broken = faults(|plan| plan.events.push(Event::Exec(RunId::new(0))));
    assert_only!(broken, Fault::OutOfTurn { .. });
}

#[test]
fn events_that_end_early() {
    let broken = faults(|plan| {
        let last = position(plan, Event::Exec(RunId::new(4)));
        plan.events.truncate(last - 1);
        plan.stats.peak_live_bytes = Bytes(128);
        plan.placement_bound = Bound::NONE;
        plan.order_bound = Bound::NONE;
    });
    assert!(
        matches!(broken.first(), Some(Fault::MissingRuns { found: 4, wanted: 5 })),
        "{broken:#?}"
    );
}

#[test]
fn an_operator_that_never_runs() {
    // Two operators that write nothing, one of which takes the turn of the other.
    let mut b = GraphBuilder::new("twice");
    let x = b.input("x", SIZE);
    b.op(Op::new("first", "A", [x], []));
    b.op(Op::new("second", "B", [x], []));
    let broken =
        faults_of(&b.finish().unwrap(), |plan| plan.schedule[RunId::new(1)] = OpId::new(0));
    assert_only!(broken, Fault::NeverRuns { .. });
}

#[test]
fn a_read_before_the_write() {
    // The view is read before the operator runs that makes it; the bytes would be right.
    let mut b = GraphBuilder::new("view");
    let x = b.input("x", SIZE);
    let view = b.computed("v", SIZE);
    b.op(Op::new("view", "V", [x], [view]).sharing(Sharing::View {
        output: view,
        of: x,
        offset: None,
    }));
    b.op(Op::new("reader", "R", [view], []));
    let broken = faults_of(&b.finish().unwrap(), |plan| {
        plan.schedule = IndexVec::from(vec![OpId::new(1), OpId::new(0)]);
        let rows: Vec<Vec<_>> = plan.bindings.iter().map(<[_]>::to_vec).collect();
        plan.bindings = Lists::new();
        rows.into_iter().rev().for_each(|row| {
            plan.bindings.push(row);
        });
    });
    assert_only!(broken, Fault::ReadBeforeWrite { .. });
}

#[test]
fn an_allocation_again() {
    let broken = faults(|plan| {
        let event = Event::Alloc(residence_of(plan, &graph(), "y"));
        let at = position(plan, event);
        plan.events.insert(at, event);
    });
    assert_only!(broken, Fault::AllocatedTwice { .. });
}

#[test]
fn an_allocation_earlier_than_needed() {
    let broken = faults(|plan| {
        let id = residence_of(plan, &graph(), "y");
        let at = position(plan, Event::Alloc(id));
        plan.events.remove(at);
        let at = position(plan, Event::Exec(RunId::new(3)));
        plan.events.insert(at, Event::Alloc(id));
        edit(plan, id, |residence| residence.span.start = Step(3));
    });
    assert_only!(broken, Fault::EarlyAlloc { .. });
}

#[test]
fn an_input_that_comes_after_the_first_run() {
    let graph = graph();
    let config = PlanConfig {
        order: OrderRule::File,
        inputs: Owner::Arena,
        reuse: Reuse::Safe,
        ..PlanConfig::default()
    };
    let mut plan = plan(&graph, &config).unwrap().plan;
    assert!(check(&graph, plan.clone()).is_ok());
    let id = residence_of(&plan, &graph, "x");
    plan.events.retain(|&event| event != Event::Alloc(id) && event != Event::Free(id));
    let at = position(&plan, Event::Exec(RunId::new(2)));
    plan.events.insert(at + 1, Event::Free(id));
    plan.events.insert(at, Event::Alloc(id));
    edit(&mut plan, id, |residence| residence.span = Interval::new(Step(2), Step(3)));
    let faults = check(&graph, plan).unwrap_err().0;
    assert!(faults.iter().any(|fault| matches!(fault, Fault::LateInput { .. })), "{faults:#?}");
}

#[test]
fn a_free_of_what_is_not_held() {
    let broken = faults(|plan| {
        let event = Event::Free(residence_of(plan, &graph(), "d"));
        let at = position(plan, event);
        plan.events.insert(at, event);
    });
    assert_only!(broken, Fault::FreeWithoutAlloc { .. });
}

#[test]
fn a_residence_that_is_never_allocated() {
    let broken = faults(|plan| {
        let first = plan.buffers.ids().next().unwrap();
        let mut spare = plan.residences[plan.buffers[first].parts.start];
        spare.buffer = BufferId::new(u32::try_from(plan.buffers.len()).unwrap());
        let id = plan.residences.push(spare);
        let mut buffer = plan.buffers[first].clone();
        buffer.parts = id..ResidenceId::new(id.raw() + 1);
        plan.buffers.push(buffer);
    });
    assert_only!(broken, Fault::NeverAllocated { .. });
}

#[test]
fn a_residence_that_is_never_freed() {
    let broken = faults(|plan| {
        let event = Event::Free(residence_of(plan, &graph(), "d"));
        plan.events.retain(|&other| other != event);
    });
    assert_only!(broken, Fault::NeverFreed { .. });
}

#[test]
fn a_span_that_is_not_what_happens() {
    let broken = faults(|plan| {
        let id = residence_of(plan, &graph(), "d");
        edit(plan, id, |residence| residence.span.end = Step(4));
    });
    assert_only!(broken, Fault::WrongSpan { .. });
    let broken = faults(|plan| {
        let id = residence_of(plan, &graph(), "d");
        edit(plan, id, |residence| residence.span.end = Step(400));
    });
    assert_only!(broken, Fault::WrongSpan { .. });
}

#[test]
fn a_binding_to_another_tensors_residence() {
    let broken = faults(|plan| {
        let other = residence_of(plan, &graph(), "b");
        bind(plan, 4, 1, Some(other));
    });
    assert_only!(broken, Fault::WrongBinding { .. });
}

#[test]
fn a_binding_of_a_weight() {
    let broken = faults(|plan| {
        let other = residence_of(plan, &graph(), "a");
        bind(plan, 1, 1, Some(other));
    });
    assert_only!(broken, Fault::WrongBinding { .. });
}

#[test]
fn scratch_that_is_not_bound() {
    let broken = faults(|plan| {
        bind(plan, 0, 2, None);
    });
    assert!(broken.iter().any(|fault| matches!(fault, Fault::WrongBinding { .. })), "{broken:#?}");
}

#[test]
fn a_use_after_the_free() {
    let broken = faults(|plan| {
        let id = residence_of(plan, &graph(), "d");
        let at = position(plan, Event::Free(id));
        plan.events.remove(at);
        let at = position(plan, Event::Exec(RunId::new(3)));
        plan.events.insert(at + 1, Event::Free(id));
        edit(plan, id, |residence| residence.span.end = Step(4));
    });
    assert_only!(broken, Fault::NotHeld { .. });
}

// Bytes.

#[test]
fn two_tensors_on_the_same_bytes() {
    let graph = graph();
    let broken = faults(|plan| {
        let over = plan.buffers[plan.residences[residence_of(plan, &graph, "a")].buffer].offset;
        move_to(plan, &graph, "d", over.unwrap().0);
    });
    assert!(matches!(broken.first(), Some(Fault::HeldTwice { .. })), "{broken:#?}");
    let sees_d = |fault: &Fault| {
        matches!(fault, Fault::WrongBytes { op, tensor, found, .. }
            if op == "over" && tensor == "a" && found == "`d`")
    };
    assert!(broken.iter().any(sees_d), "{broken:#?}");
}

/// A graph of one operator `over: inputs -> y` whose plan, made with the permission, is judged without it.
fn without_permission(double: bool) -> Vec<Fault> {
    let make = |permission: bool, double: bool| {
        let mut b = GraphBuilder::new("over");
        let x = b.input("x", SIZE);
        let [a, y] = ["a", "y"].map(|name| b.computed(name, SIZE));
        b.op(Op::new("first", "A", [x], [a]));
        let inputs = if double { vec![a, a] } else { vec![a] };
        let mut op = Op::new("over", "B", inputs, [y]);
        if permission {
            op = op.sharing(Sharing::MayOverwrite { output: y, of: a });
        }
        b.op(op);
        b.output(y);
        b.finish().unwrap()
    };
    let mut plan = good(&make(true, false), Reuse::Pack);
    let judged = make(double, double);
    plan.fingerprint = judged.fingerprint();
    plan.order_bound = Bound::NONE;
    if double {
        let first = plan.bindings[RunId::new(1)][0];
        bind(&mut plan, 1, 1, first);
        let rows: Vec<Vec<_>> = plan.bindings.iter().map(<[_]>::to_vec).collect();
        plan.bindings = Lists::new();
        for (index, mut row) in rows.into_iter().enumerate() {
            if index == 1 {
                row.push(Some(residence_of(&plan, &judged, "y")));
            }
            plan.bindings.push(row);
        }
    }
    check(&judged, plan).map_or_else(|faults| faults.0, |_| Vec::new())
}

#[test]
fn an_input_overwritten_without_permission() {
    assert_only!(without_permission(false), Fault::HeldTwice { .. });
}

#[test]
fn an_input_overwritten_that_is_also_read_by_another_operand() {
    let faults = without_permission(true);
    let [Fault::HeldTwice { why, .. }] = faults.as_slice() else { panic!("{faults:#?}") };
    assert_eq!(*why, "another input of the operator lies on the same bytes");
}

#[test]
fn an_input_that_is_overwritten_and_read_afterwards() {
    // `b` is written over `a` although `beside` reads `a` afterwards: right when `beside` comes first only.
    let broken = faults(|plan| {
        plan.schedule = IndexVec::from([0, 2, 1, 3, 4].map(OpId::new).to_vec());
        let rows: Vec<Vec<_>> = plan.bindings.iter().map(<[_]>::to_vec).collect();
        plan.bindings = Lists::new();
        for at in [0, 2, 1, 3, 4] {
            plan.bindings.push(rows[at].clone());
        }
    });
    assert!(broken.iter().any(|fault| matches!(fault, Fault::EarlyAlloc { .. })), "{broken:#?}");
    let graph = graph();
    let order = lowtide_core::Order::new(&graph, [0, 2, 1, 3, 4].map(OpId::new).to_vec()).unwrap();
    let mut plan = lowtide_planner::plan_in_order(&graph, &order, &PlanConfig::default());
    let [a, b] = ["a", "b"].map(|name| residence_of(&plan, &graph, name));
    let offset = plan.buffers[plan.residences[a].buffer].offset;
    let buffer = plan.residences[b].buffer;
    plan.buffers[buffer].offset = offset;
    let faults = check(&graph, plan).unwrap_err().0;
    let is_late = |fault: &Fault| matches!(fault, Fault::LateFree { what, .. } if what == "a");
    assert!(faults.iter().any(is_late), "{faults:#?}");
}

#[test]
fn an_output_that_is_not_held_at_the_end() {
    let broken = faults(|plan| {
        let id = residence_of(plan, &graph(), "y");
        plan.events.push(Event::Free(id));
    });
    assert_only!(broken, Fault::OutputNotHeld { .. });
}

#[test]
fn an_output_that_is_overwritten() {
    // A mutated value and the value before it, both outputs: refused by the graph; by hand in a plan of a
    // graph whose second output is written onto the first one's bytes.
    let mut b = GraphBuilder::new("outputs");
    let x = b.input("x", SIZE);
    let [y, z] = ["y", "z"].map(|name| b.computed(name, SIZE));
    b.op(Op::new("first", "A", [x], [y]));
    b.op(Op::new("second", "B", [x], [z]));
    b.output(y);
    b.output(z);
    let graph = b.finish().unwrap();
    let broken = faults_of(&graph, |plan| {
        let offset = plan.buffers[plan.residences[residence_of(plan, &graph, "y")].buffer].offset;
        move_to(plan, &graph, "z", offset.unwrap().0);
    });
    assert!(
        broken.iter().any(|fault| matches!(fault, Fault::OutputOverwritten { .. })),
        "{broken:#?}"
    );
}

/// `x -> a (16 B), b (48 B); concat(a, b) -> y (64 B)`, with `a` and `b` written into `y`.
fn concat_in_place(b_offset: u64) -> Vec<Fault> {
    let mut b = GraphBuilder::new("concat");
    let x = b.input("x", SIZE);
    let [low, high] =
        [("a", 16), ("b", 48)].map(|(name, n)| b.computed(name, Size::Fixed(Bytes(n))));
    let y = b.computed("y", SIZE);
    b.op(Op::new("first", "A", [x], [low]));
    b.op(Op::new("second", "B", [x], [high]));
    let part = |input, offset| Sharing::PartOf { input, output: y, offset: Bytes(offset) };
    b.op(Op::new("concat", "Concat", [low, high], [y])
        .sharing(part(low, 0))
        .sharing(part(high, 16)));
    b.output(y);
    let graph = b.finish().unwrap();
    let mut plan = good(&graph, Reuse::Pack);
    // One buffer for all three, at the distances of the concat.
    let buffer = plan.buffers.ids().next().unwrap();
    let mut first = plan.buffers[buffer].clone();
    first.offset = Some(Bytes::ZERO);
    first.parts = ResidenceId::new(0)..ResidenceId::new(3);
    plan.buffers = IndexVec::from(vec![first]);
    for (id, offset) in [(0, 0), (1, b_offset), (2, 0)] {
        edit(&mut plan, ResidenceId::new(id), |residence| {
            residence.buffer = buffer;
            residence.offset = Bytes(offset);
        });
    }
    plan.spaces[SpaceId::new(0)].size = Bytes(64);
    plan.stats.arena_bytes = Bytes(64);
    plan.stats.peak_live_bytes = Bytes(64);
    plan.stats.peak_step = Step(1);
    plan.placement_bound = Bound { bytes: Bytes(64), proof: Proof::LiveSum(Step(1)) };
    check(&graph, plan).map_or_else(|faults| faults.0, |_| Vec::new())
}

#[test]
fn parts_of_a_concat_may_lie_in_their_place_and_nowhere_else() {
    assert_eq!(concat_in_place(16), []);
    let faults = concat_in_place(8);
    assert!(faults.iter().any(|fault| matches!(fault, Fault::HeldTwice { .. })), "{faults:#?}");
}

// Claims.

#[test]
fn statistics_that_are_not_recomputed() {
    assert_only!(faults(|plan| plan.stats.peak_step = Step(3)), Fault::WrongStatistic { .. });
    assert_only!(faults(|plan| plan.stats.pool_tensors = 3), Fault::WrongStatistic { .. });
    let broken = faults(|plan| plan.stats.no_reuse_bytes = Bytes(1));
    assert_only!(broken, Fault::WrongStatistic { name: "no_reuse_bytes", found: 1, wanted: 256 });
    let broken = faults(|plan| plan.stats.arena_bytes = Bytes(1));
    assert_only!(broken, Fault::WrongStatistic { name: "arena_bytes", .. });
    let broken = faults(|plan| plan.stats.peak_live_bytes = Bytes(1 << 20));
    assert_only!(broken, Fault::WrongStatistic { name: "peak_live_bytes", .. });
}

#[test]
fn bounds_that_their_certificate_does_not_show() {
    let too_much = |proof| Bound { bytes: Bytes(1 << 40), proof };
    for proof in [Proof::Trivial, Proof::Outputs, Proof::WorkingSet(OpId::new(0))] {
        let broken = faults(|plan| plan.order_bound = too_much(proof));
        assert_only!(broken, Fault::BoundNotShown { which: "order", .. });
    }
    let broken = faults(|plan| plan.placement_bound = too_much(Proof::LiveSum(Step(0))));
    assert_only!(broken, Fault::BoundNotShown { which: "placement", .. });
}

#[test]
fn proofs_of_the_wrong_kind() {
    let of_one_order = Bound { bytes: Bytes(1), proof: Proof::LiveSum(Step(0)) };
    assert_only!(faults(|plan| plan.order_bound = of_one_order), Fault::WrongProof { .. });
    let beyond = Bound { bytes: Bytes(1), proof: Proof::LiveSum(Step(99)) };
    assert_only!(faults(|plan| plan.placement_bound = beyond), Fault::WrongProof { .. });
    let beyond = Bound { bytes: Bytes(1), proof: Proof::WorkingSet(OpId::new(99)) };
    assert_only!(faults(|plan| plan.order_bound = beyond), Fault::WrongProof { .. });
}

/// The fault of the sample's plan, of which another bound is claimed.
fn faults_of_claim(bytes: u64, proof: Proof) -> Vec<Fault> {
    faults(|plan| plan.placement_bound = Bound { bytes: Bytes(bytes), proof })
}

fn buffers(ids: &[u32]) -> Proof {
    Proof::Items(ids.iter().map(|&id| BufferId::new(id)).collect())
}

#[test]
fn what_is_stacked_at_a_step_is_recomputed() {
    let peak = good(&graph(), Reuse::Pack).stats;
    let stacked = |step| Proof::Stacked { step, align: Align::CACHE_LINE };
    assert_eq!(faults_of_claim(peak.peak_live_bytes.0, stacked(peak.peak_step)), []);
    let broken = faults_of_claim(peak.peak_live_bytes.0 + 1, stacked(peak.peak_step));
    assert_only!(broken, Fault::BoundNotShown { which: "placement", .. });
    assert_only!(faults_of_claim(1, stacked(Step(99))), Fault::WrongProof { .. });
}

#[test]
fn named_buffers_are_tried() {
    assert_eq!(faults_of_claim(64, buffers(&[0])), []);
    assert_only!(faults_of_claim(65, buffers(&[0])), Fault::ItemsFit { items: 1, .. });
    assert_only!(faults_of_claim(64, buffers(&[99])), Fault::WrongProof { .. });
    assert_only!(faults_of_claim(64, buffers(&[0, 0])), Fault::WrongProof { .. });
}

#[test]
fn named_buffers_that_are_too_many_to_try() {
    let mut b = GraphBuilder::new("wide");
    let x = b.input("x", SIZE);
    let all: Vec<TensorId> = (0..70).map(|at| b.computed(format!("t{at}"), SIZE)).collect();
    for (at, &tensor) in all.iter().enumerate() {
        b.op(Op::new(format!("op{at}"), "A", [x], [tensor]));
    }
    let y = b.computed("y", SIZE);
    b.op(Op::new("last", "Y", all, [y]));
    b.output(y);
    let ids: Vec<u32> = (0..70).collect();
    let claim = Bound { bytes: Bytes(4480), proof: buffers(&ids) };
    let broken = faults_of(&b.finish().unwrap(), |plan| plan.placement_bound = claim);
    assert_only!(broken, Fault::ProofTooHard { items: 70, .. });
}

#[test]
fn a_search_is_quoted_up_to_the_arena_and_the_peak() {
    let stats = good(&graph(), Reuse::Pack).stats;
    assert_eq!(faults_of_claim(stats.arena_bytes.0, Proof::Search), []);
    let broken = faults_of_claim(stats.arena_bytes.0 + 1, Proof::Search);
    assert_only!(broken, Fault::BoundAboveArena { which: "placement", .. });
    let claim = |more| Bound { bytes: stats.peak_live_bytes + Bytes(more), proof: Proof::Search };
    assert_eq!(faults(|plan| plan.order_bound = claim(0)), []);
    let broken = faults(|plan| plan.order_bound = claim(1));
    assert_only!(broken, Fault::BoundAbovePeak { which: "order", .. });
}

#[test]
fn certificates_of_one_schedule_say_nothing_about_all_orders() {
    let stacked = Proof::Stacked { step: Step(0), align: Align::ONE };
    for proof in [stacked, buffers(&[0])] {
        let claim = Bound { bytes: Bytes(1), proof };
        assert_only!(
            faults(|plan| plan.order_bound = claim),
            Fault::WrongProof { which: "order", .. }
        );
    }
}
