//! Plans that are broken by hand, each in one way: the checker refuses them, and the doctor, which follows them all the
//! same, names the pair of residences to blame.
//!
//! ~~~text
//! sound plan ──edit──> wrong plan ──check──> faults
//!                                 ──diagnose──> cause, victim, culprit
//! ~~~
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod mixed;

use arbitrary::Unstructured;
use lowtide::core::operator::Program;
use lowtide::core::testing::{Limits, describe, graph as random_graph};
use lowtide::core::{
    BufferId, Bytes, DType, Event, Lists, Occupant, OpId, Order, Owner, ResidenceId, Reuse, RunId,
    Size, SpaceId, Step, Tensor, TensorId, TensorKind,
};
use lowtide::planner::{OrderRule, plan_in_order};
use lowtide::runtime::{Cause, Diagnosis, DoctorError, Finding, Use, diagnose, input_specs};
use lowtide::{
    Graph, GraphBuilder, LoadOptions, Op, Plan, PlanConfig, Sharing, TensorRef, check, load, ops,
    plan, program, random_input, safe_plan,
};
use mixed::{changes_external, external, of_bytes};
use std::path::Path;

/// A program, and a plan of it to be broken.
struct Case {
    program: Program,
    plan: Plan,
}

impl Case {
    /// The demo in the order of its file.
    fn demo() -> Self {
        Self::demo_with(&PlanConfig { order: OrderRule::File, ..PlanConfig::default() })
    }

    fn demo_with(config: &PlanConfig) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo/digits.onnx");
        let loaded = load(&path, &LoadOptions::default()).unwrap();
        let plan = plan(&loaded.graph, config).unwrap().plan;
        Self { program: program(&loaded, &ops::standard()).unwrap(), plan }
    }

    /// A graph of operators that mix bytes, in the order of its file.
    fn of(graph: &Graph) -> Self {
        let order = Order::new(graph, graph.ops().ids().collect()).unwrap();
        let plan =
            plan_in_order(graph, &order, &PlanConfig { pack_steps: 1000, ..PlanConfig::default() });
        Self { program: mixed::program(graph), plan }
    }

    fn graph(&self) -> &Graph {
        &self.program.graph
    }

    fn residence(&self, name: &str) -> ResidenceId {
        let named = |&id: &ResidenceId| match self.plan.residences[id].what {
            Occupant::Tensor(tensor) => self.graph().tensor_label(tensor) == name,
            Occupant::Scratch(run) => {
                name.strip_prefix("scratch of ") == Some(&self.graph().op_label(self.plan.op(run)))
            }
        };
        self.plan.residences.ids().find(named).unwrap()
    }

    fn run(&self, op: &str) -> RunId {
        let is_named = |&run: &RunId| self.graph().op_label(self.plan.op(run)) == op;
        self.plan.schedule.ids().find(is_named).unwrap()
    }

    fn alloc(&self, name: &str) -> Event {
        Event::Alloc(self.residence(name))
    }

    fn free(&self, name: &str) -> Event {
        Event::Free(self.residence(name))
    }

    fn exec(&self, op: &str) -> Event {
        Event::Exec(self.run(op))
    }

    fn at(&self, event: Event) -> usize {
        self.plan.events.iter().position(|&other| other == event).unwrap()
    }

    /// Lets an event happen just before another one.
    fn move_before(&mut self, event: Event, other: Event) {
        let event = self.plan.events.remove(self.at(event));
        let at = self.at(other);
        self.plan.events.insert(at, event);
    }

    fn swap(&mut self, one: Event, other: Event) {
        let (one, other) = (self.at(one), self.at(other));
        self.plan.events.swap(one, other);
    }

    /// Gives the buffer of `name` the offset that `other` has in the arena.
    fn move_onto(&mut self, name: &str, other: &str) {
        let (id, (_, onto)) =
            (self.residence(name), self.plan.address(self.residence(other)).unwrap());
        let row = self.plan.residences[id];
        self.plan.buffers[row.buffer].offset = Some(Bytes(onto.0 - row.offset.0));
    }

    /// Gives a residence another offset in its buffer.
    fn shift(&mut self, name: &str, change: impl FnOnce(u64) -> u64) {
        let id = self.residence(name);
        let offset = self.plan.residences[id].offset;
        self.plan.residences[id].offset = Bytes(change(offset.0));
    }

    /// Binds operand `at` of a run to the residence of `name`.
    fn bind(&mut self, op: &str, at: usize, name: &str) {
        let (run, residence) = (self.run(op), self.residence(name));
        let mut bindings = Lists::new();
        for (id, row) in self.plan.schedule.ids().zip(self.plan.bindings.iter()) {
            let bound = |(index, &old): (usize, &Option<ResidenceId>)| {
                if id == run && index == at { Some(residence) } else { old }
            };
            bindings.push(row.iter().enumerate().map(bound).collect::<Vec<_>>());
        }
        self.plan.bindings = bindings;
    }

    /// More room behind the arena.
    fn widen(&mut self, more: Bytes) {
        let arena = &mut self.plan.spaces[SpaceId::new(0)].size;
        *arena += more;
        self.plan.stats.arena_bytes = *arena;
    }

    fn is_refused(&self) -> bool {
        check(self.graph(), self.plan.clone()).is_err()
    }

    fn examine(self) -> Result<Diagnosis, DoctorError> {
        let Self { program, plan } = self;
        let specs = input_specs(&program).unwrap();
        let arrays: Vec<_> = specs
            .iter()
            .map(|spec| {
                random_input(&spec.name, spec.dtype, &spec.fixed_dims().unwrap(), 1).unwrap()
            })
            .collect();
        let tensors = arrays.iter().map(|array| {
            TensorRef::from_bytes(array.dtype(), array.dims(), array.bytes()).unwrap()
        });
        let safe = safe_plan(&program.graph, &plan).unwrap();
        diagnose(program, &safe, &plan, &tensors.collect::<Vec<_>>())
    }
}

/// Breaks a sound plan, and lets the doctor find out.
#[track_caller]
fn found(mut case: Case, breaking: impl FnOnce(&mut Case)) -> Finding {
    assert!(!case.is_refused(), "the plan was wrong before");
    breaking(&mut case);
    assert!(case.is_refused(), "the checker takes the broken plan");
    case.examine().unwrap().finding.expect("something differs")
}

/// Cause, victim and culprit of a broken plan.
#[track_caller]
fn assert_names(finding: &Finding, cause: &str, victim: &str, culprit: Option<&str>) {
    let named = |stay: &Option<lowtide::runtime::Stay>| stay.as_ref().map(|stay| stay.name.clone());
    let pair = (named(&finding.victim), named(&finding.culprit));
    let wanted = (Some(victim.to_owned()), culprit.map(str::to_owned));
    assert_eq!((finding.cause.name(), pair), (cause, wanted), "{finding:#?}");
}

const SIZE: Size = Size::Fixed(Bytes(64));

fn bytes(name: &str, bytes: u64) -> Tensor {
    let mut tensor = Tensor::new(name, Size::Fixed(Bytes(bytes)), TensorKind::Computed);
    tensor.dtype = Some(DType::U8);
    tensor
}

fn input(b: &mut GraphBuilder) -> TensorId {
    let mut tensor = Tensor::new("x", SIZE, TensorKind::Input);
    tensor.dtype = Some(DType::U8);
    b.tensor(tensor)
}

/// `x -> a; a -> b, which may overwrite a; a -> c (with scratch); b, c -> y`.
fn diamond() -> Graph {
    let mut b = GraphBuilder::new("diamond");
    let x = input(&mut b);
    let [a, over, c, y] = ["a", "b", "c", "y"].map(|name| b.tensor(bytes(name, 64)));
    b.op(Op::new("first", "A", [x], [a]));
    b.op(Op::new("over", "B", [a], [over]).sharing(Sharing::MayOverwrite { output: over, of: a }));
    b.op(Op::new("beside", "C", [a], [c]).scratch(SIZE));
    b.op(Op::new("last", "Y", [over, c], [y]));
    b.output(y);
    b.finish().unwrap()
}

/// `x -> a; split(a) -> p, q; p -> s; q -> t; s, t -> y`, with `p` and `q` left in `a`.
fn split() -> Graph {
    let mut b = GraphBuilder::new("split");
    let x = input(&mut b);
    let a = b.tensor(bytes("a", 128));
    let [p, q, s, t, y] = ["p", "q", "s", "t", "y"].map(|name| b.tensor(bytes(name, 64)));
    b.op(Op::new("first", "A", [x], [a]));
    let piece = |output, offset| Sharing::PieceOf { output, of: a, offset: Bytes(offset) };
    b.op(Op::new("split", "Split", [a], [p, q]).sharing(piece(p, 0)).sharing(piece(q, 64)));
    b.op(Op::new("left", "L", [p], [s]));
    b.op(Op::new("right", "R", [q], [t]));
    b.op(Op::new("last", "Y", [s, t], [y]));
    b.output(y);
    b.finish().unwrap()
}

/// `x -> a; a -> r; a changes to m; r, m -> y`: the reader of `a` comes before the change.
fn mutation() -> Graph {
    let mut b = GraphBuilder::new("mutation");
    let x = input(&mut b);
    let [a, r, m, y] = ["a", "r", "m", "y"].map(|name| b.tensor(bytes(name, 64)));
    b.op(Op::new("first", "A", [x], [a]));
    b.op(Op::new("reader", "R", [a], [r]));
    b.op(Op::new("change", "M", [a], [m]).sharing(Sharing::Mutates { output: m, of: a }));
    b.op(Op::new("last", "Y", [r, m], [y]));
    b.output(y);
    b.finish().unwrap()
}

#[test]
fn a_lifetime_that_is_one_step_short() {
    let finding = found(Case::demo(), |case| {
        case.move_before(case.free("fan1.short.shrink"), case.exec("fan1.short.conv"));
    });
    assert_names(&finding, "freed_early", "fan1.short.shrink", None);
    assert_eq!(finding.cause, Cause::FreedEarly { free: Step(24), short: 1 });
    let difference = finding.difference.unwrap();
    assert_eq!((difference.element, &*difference.found), (0, "NaN"));
}

#[test]
fn a_lifetime_that_is_short_and_whose_bytes_are_taken() {
    let finding = found(Case::demo(), |case| {
        case.move_before(case.free("fan1.deep5"), case.exec("fan1.deep3"));
        case.move_onto("fan1.deep3", "fan1.deep5");
    });
    assert_names(&finding, "freed_early", "fan1.deep5", Some("fan1.deep3"));
}

#[test]
fn two_buffers_at_one_offset() {
    let finding = found(Case::demo(), |case| case.move_onto("fan1.deep3", "fan1.deep5"));
    assert_names(&finding, "overlap", "fan1.deep5", Some("fan1.deep3"));
    let readers: Vec<&str> =
        finding.victim.as_ref().unwrap().readers.iter().map(|row| &*row.op).collect();
    assert_eq!(readers, ["fan1.deep5.narrow.conv"]);
}

#[test]
fn a_buffer_that_is_off_by_one_alignment() {
    let finding = found(Case::demo(), |case| {
        case.widen(Bytes(1 << 18));
        case.move_onto("fan1.deep3", "fan1.deep5");
        let buffer = case.plan.residences[case.residence("fan1.deep3")].buffer;
        let size = case.plan.residences[case.residence("fan1.deep5")].size.fixed().unwrap();
        let offset = case.plan.buffers[buffer].offset.unwrap();
        case.plan.buffers[buffer].offset = Some(Bytes(offset.0 + size.0 - 64));
    });
    assert_names(&finding, "overlap", "fan1.deep5", Some("fan1.deep3"));
}

#[test]
fn two_runs_that_are_swapped() {
    let finding = found(Case::demo(), |case| {
        case.swap(case.exec("last.conv"), case.exec("last.relu"));
    });
    assert_names(&finding, "order", "last.conv", None);
    let Cause::Order { writer: Use { op, .. } } = &finding.cause else { panic!("{finding:#?}") };
    assert_eq!((&**op, &*finding.seen.unwrap().op), ("last.conv", "last.relu"));
}

#[test]
fn a_run_that_is_missing() {
    let finding = found(Case::demo(), |case| {
        let at = case.at(case.exec("pool"));
        case.plan.events.remove(at);
    });
    assert_names(&finding, "order", "pool", None);
}

#[test]
fn a_part_of_a_concat_at_another_place() {
    let finding = found(Case::demo(), |case| {
        case.widen(Bytes(64));
        case.shift("fan1.mean.narrow.relu", |offset| offset + 64);
        case.shift("fan1.mean.narrow.conv", |offset| offset + 64);
    });
    assert_names(&finding, "one_run", "fan1.mean.narrow.relu", Some("fan1.join"));
}

#[test]
fn a_piece_at_another_place() {
    let finding = found(Case::of(&split()), |case| {
        case.shift("q", |offset| offset - 32);
    });
    assert_names(&finding, "one_run", "a", Some("q"));
}

#[test]
fn an_output_written_over_an_input_that_is_read_later() {
    let finding = found(Case::of(&diamond()), |case| case.move_onto("b", "a"));
    assert_names(&finding, "in_place", "a", Some("b"));
}

#[test]
fn an_output_written_over_an_input_that_cannot_be() {
    let finding =
        found(Case::demo(), |case| case.move_onto("fan1.short.conv", "fan1.short.shrink"));
    assert_names(&finding, "one_run", "fan1.short.shrink", Some("fan1.short.conv"));
}

#[test]
fn two_residences_of_one_buffer_on_the_same_bytes() {
    let finding = found(Case::demo(), |case| {
        let onto = case.plan.residences[case.residence("fan1.deep5.narrow.relu")].offset.0;
        case.shift("fan1.max.narrow.conv", |_| onto);
    });
    assert_names(&finding, "overlap", "fan1.deep5.narrow.relu", Some("fan1.max.narrow.conv"));
}

#[test]
fn a_weight_that_is_bound_to_a_residence() {
    let finding = found(Case::demo(), |case| case.bind("fan1.deep3", 1, "fan1.deep5"));
    assert_eq!((finding.cause.name(), finding.victim), ("bound", None));
    assert_eq!(
        (&*finding.tensor, &*finding.culprit.unwrap().name),
        ("fan1.deep3.weight", "fan1.deep5")
    );
}

#[test]
fn a_read_that_is_bound_to_another_residence() {
    let finding = found(Case::demo(), |case| case.bind("fan1.max", 0, "fan1.mean.widen.relu"));
    assert_names(&finding, "bound", "fan1.max.widen.relu", Some("fan1.mean.widen.relu"));
}

#[test]
fn a_write_that_is_bound_to_another_residence() {
    let finding = found(Case::demo(), |case| case.bind("fan1.deep3", 3, "fan1.mean"));
    assert_names(&finding, "bound", "fan1.deep3", Some("fan1.mean"));
}

#[test]
fn a_write_that_is_bound_to_what_another_one_still_has() {
    let finding = found(Case::demo(), |case| case.bind("fan1.deep3", 3, "fan1.deep5"));
    assert_names(&finding, "bound", "fan1.deep5", Some("fan1.deep3"));
}

#[test]
fn a_write_that_is_bound_to_what_its_operator_reads() {
    let finding = found(Case::demo(), |case| case.bind("fan1.deep3", 3, "fan1.deep3.widen.relu"));
    assert_names(&finding, "bound", "fan1.deep3", Some("fan1.deep3.widen.relu"));
}

#[test]
fn an_allocation_behind_the_write() {
    let finding = found(Case::demo(), |case| {
        case.swap(case.alloc("fan1.short.shrink"), case.exec("fan1.short.shrink"));
    });
    assert_names(&finding, "allocated_late", "fan1.short.shrink", None);
    assert_eq!(finding.cause, Cause::AllocatedLate { held: Some(Step(24)), late: 1 });
}

#[test]
fn a_free_of_another_residence() {
    let finding = found(Case::demo(), |case| {
        let at = case.at(case.free("fan1.deep5.widen.relu"));
        case.plan.events[at] = case.free("fan1.deep3.widen.relu");
    });
    assert_names(&finding, "freed_early", "fan1.deep3.widen.relu", None);
}

#[test]
fn an_output_that_is_freed() {
    let finding = found(Case::demo(), |case| case.plan.events.push(case.free("probabilities")));
    assert_names(&finding, "freed_early", "probabilities", None);
    assert_eq!((finding.seen, &*finding.operand), (None, "output"));
}

#[test]
fn scratch_over_a_value_that_is_needed() {
    let finding = found(Case::of(&diamond()), |case| case.move_onto("scratch of beside", "b"));
    assert_names(&finding, "overlap", "b", Some("scratch of beside"));
}

#[test]
fn a_change_that_does_not_wait_for_a_reader() {
    let finding = found(Case::of(&mutation()), |case| {
        case.swap(case.exec("reader"), case.exec("change"));
    });
    assert_names(&finding, "changed", "a", None);
    let Cause::Changed { by } = &finding.cause else { panic!("{finding:#?}") };
    assert_eq!((&*by.op, &*finding.seen.unwrap().op), ("change", "reader"));
}

#[test]
fn an_input_of_the_arena_that_is_overwritten() {
    let config =
        PlanConfig { order: OrderRule::File, inputs: Owner::Arena, ..PlanConfig::default() };
    let finding = found(Case::demo_with(&config), |case| case.move_onto("stem.conv", "image"));
    assert_names(&finding, "one_run", "image", Some("stem.conv"));
}

#[test]
fn sound_plans_agree_in_every_mode() {
    for reuse in Reuse::ALL {
        for (inputs, outputs) in [(Owner::Caller, Owner::Arena), (Owner::Arena, Owner::Caller)] {
            let config = PlanConfig { reuse, inputs, outputs, ..PlanConfig::default() };
            let diagnosis = Case::demo_with(&config).examine().unwrap();
            assert_eq!(diagnosis.finding, None, "{config:?}");
            assert!(diagnosis.runs == 73 && diagnosis.compared > 146, "{diagnosis:?}");
        }
    }
    for graph in [diamond(), split(), mutation()] {
        assert_eq!(Case::of(&graph).examine().unwrap().finding, None);
    }
}

/// Why a broken plan cannot be followed at all.
#[track_caller]
fn refusal(breaking: impl FnOnce(&mut Case)) -> String {
    let mut case = Case::demo();
    breaking(&mut case);
    case.examine().unwrap_err().to_string()
}

#[test]
fn a_plan_whose_tables_mean_nothing_is_an_error() {
    let message = refusal(|case| case.plan.schedule[RunId::new(3)] = OpId::new(999));
    assert_eq!(message, "the operator of run 3 is 999, but there are only 73");
    let message = refusal(|case| case.plan.events.push(Event::Free(ResidenceId::new(99))));
    assert!(message.ends_with("names is 99, but there are only 73"), "{message}");
    let message =
        refusal(|case| case.plan.residences[ResidenceId::new(7)].buffer = BufferId::new(88));
    assert!(message.starts_with("the buffer of r7 is 88, but there are only "), "{message}");
    let message = refusal(|case| {
        case.plan.residences[ResidenceId::new(7)].what = Occupant::Tensor(TensorId::new(999));
    });
    assert_eq!(message, "what stays in r7 is 999, but there are only 136");
    let message = refusal(|case| {
        case.plan.residences[ResidenceId::new(7)].size = Size::Fixed(Bytes(1 << 40));
    });
    assert!(message.starts_with("residence 7 has 1.00 TiB, the graph says "), "{message}");
    let message = refusal(|case| case.plan.schedule[RunId::new(1)] = OpId::new(0));
    assert_eq!(message, "the bindings of run 1 has 2 entries, wanted 5");
    let message = refusal(|case| case.plan.bindings = Lists::new());
    assert_eq!(message, "the table of bindings has 0 entries, wanted 73");
    let message = refusal(|case| case.shift("pool", |_| u64::MAX));
    assert!(message.ends_with("ends beyond all numbers"), "{message}");
    let message = refusal(|case| case.shift("pool", |_| 1 << 40));
    assert_eq!(message, "`pool` has no place in the arena where it is needed");
    let message = refusal(|case| case.plan.stats.arena_bytes = Bytes(1 << 50));
    assert!(message.starts_with("the plan takes 1.00 PiB of memory"), "{message}");
    let message = refusal(|case| case.plan.fingerprint = lowtide::core::Fingerprint(0));
    assert!(message.starts_with("the plan is for graph 0"), "{message}");
}

#[test]
fn inputs_are_counted_and_compared_with_the_model() {
    let case = Case::demo();
    let safe = safe_plan(case.graph(), &case.plan).unwrap();
    let flat = external(TensorId::new(0), 64);
    let image = [TensorRef::new(&[64], &flat).unwrap()];
    let error = diagnose(case.program, &safe, &case.plan, &image).unwrap_err().to_string();
    assert_eq!(error, "input `image` is uint8 [64], wanted float32 [1, 1, 8, 8]");
    let case = Case::demo();
    let error = diagnose(case.program, &safe, &case.plan, &[]).unwrap_err().to_string();
    assert_eq!(error, "0 inputs are given, wanted 1: `image`");
}

/// One edit, of whatever kind.
fn edit(u: &mut Unstructured<'_>, plan: &mut Plan) -> arbitrary::Result<()> {
    let [events, residences, runs] =
        [plan.events.len(), plan.residences.len(), plan.schedule.len()];
    let buffers = plan.buffers.len();
    if events == 0 || residences == 0 || runs == 0 || buffers == 0 {
        return Ok(());
    }
    let id = |u: &mut Unstructured<'_>, len: usize| {
        Ok(u32::try_from(u.int_in_range(0..=len - 1)?).unwrap())
    };
    let residence = ResidenceId::new(id(u, residences)?);
    let other = ResidenceId::new(id(u, residences)?);
    let buffer = BufferId::new(id(u, buffers)?);
    let bytes = *u.choose(&[0, 1, 32, 64, 128, 4096, 1 << 40, u64::MAX])?;
    match u.int_in_range(0..=10)? {
        0 => {
            let event = plan.events.remove(u.choose_index(events)?);
            plan.events.insert(u.choose_index(events)?, event);
        }
        1 => plan.events.swap(u.choose_index(events)?, u.choose_index(events)?),
        2 => drop(plan.events.remove(u.choose_index(events)?)),
        3 => plan.events[u.choose_index(events)?] = Event::Free(residence),
        4 => plan.events[u.choose_index(events)?] = Event::Alloc(residence),
        5 => plan.buffers[buffer].offset = Some(Bytes(bytes)),
        6 => plan.residences[residence].offset = Bytes(bytes),
        7 => plan.residences[residence].what = plan.residences[other].what,
        8 => plan.residences[residence].buffer = buffer,
        9 => {
            let (one, other) = (RunId::new(id(u, runs)?), RunId::new(id(u, runs)?));
            let op = plan.schedule[one];
            plan.schedule[one] = plan.schedule[other];
            plan.schedule[other] = op;
        }
        _ => {
            let run = RunId::new(id(u, runs)?);
            let width = plan.bindings[run].len();
            let at = u.choose_index(width.max(1))?;
            let value = if u.arbitrary()? { Some(residence) } else { None };
            let rows: Vec<Vec<_>> = plan.bindings.iter().map(<[_]>::to_vec).collect();
            plan.bindings = Lists::new();
            for (id, mut row) in plan.schedule.ids().zip(rows) {
                if id == run && at < width {
                    row[at] = value;
                }
                plan.bindings.push(row);
            }
        }
    }
    Ok(())
}

#[test]
fn no_edit_makes_it_panic_and_nothing_sound_is_blamed() {
    let (mut agreed, mut blamed) = (0, 0);
    arbtest::arbtest(|u: &mut Unstructured<'_>| {
        let limits = Limits { open_sizes: false, ..Limits::all(10) };
        let Some(graph) = of_bytes(&random_graph(u, limits)?) else { return Ok(()) };
        if changes_external(&graph) {
            return Ok(());
        }
        let mut case = Case::of(&graph);
        for _ in 0..u.int_in_range(0..=2)? {
            edit(u, &mut case.plan)?;
        }
        let (is_refused, text) = (case.is_refused(), describe(&graph));
        // What cannot be followed is an error, and none of the plan's making if it is sound.
        let Ok(diagnosis) = case.examine() else { return Ok(()) };
        assert!(diagnosis.finding.is_none() || is_refused, "{diagnosis:#?}\n{text}");
        agreed += usize::from(diagnosis.finding.is_none());
        blamed += usize::from(diagnosis.finding.is_some());
        Ok(())
    })
    .budget_ms(4000);
    assert!(agreed > 5 && blamed > 5, "{agreed} agreed, {blamed} did not");
}
