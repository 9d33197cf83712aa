//! Models with sizes that are known in the run only, against what the test calculates itself.
//!
//! ~~~text
//! x ─ NonZero ─ Transpose ─ GatherND ─ g ─ Shape ─ Expand ─ Reshape ┐
//!                                      ├─ Abs, Neg, Mul ────────────┴ Concat ─ c      inputs change from run to run;
//!                                      └─ Range ─ l                                   1, 2 and 8 workers
//! ~~~
//! Memory of the pool is poisoned when it is taken and when it goes back.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod net;

use lowtide::core::operator::{Input, Kernel, Late, Measured, NoKernel, Program};
use lowtide::core::{Bytes, Owner};
use lowtide::runtime::{Fault, FaultyMemory, HostMemory, PoolConfig, RunError};
use lowtide::{
    LoadOptions, PlanConfig, ResolveConfig, Session, SessionConfig, TensorRef, check, load, ops,
    plan, random_input, random_weights,
};
use net::{Prepared, prepared};
use std::path::Path;

/// Shape and bytes of an output.
type Found = (Vec<usize>, Vec<u8>);

const WORKERS: [usize; 3] = [1, 2, 8];

/// Behind a line for the input x of five columns.
const ISLANDS: [&str; 20] = [
    "weight two int64 1 = 2",
    "weight minus int64 1 = -1",
    "weight zero int64 = 0",
    "weight one int64 = 1",
    "weight first int64 1 = 0",
    "nz = NonZero(x)",
    "t = Transpose(nz)",
    "g = GatherND(x, t)",
    "s = Shape(g)",
    "k = Concat(two, s) axis=0",
    "e = Expand(g, k)",
    "r = Reshape(e, minus)",
    "a = Abs(g)",
    "n = Neg(g)",
    "m = Mul(a, n)",
    "c = Concat(r, m, a) axis=0",
    "u = Unsqueeze(c, first)",
    "q = Squeeze(s)",
    "l = Range(zero, q, one)",
    "output u l s t c",
];

/// What the outputs of [`ISLANDS`] are, of a tensor with five columns.
fn expected(x: &[f32]) -> Vec<Found> {
    let found: Vec<usize> = (0..x.len()).filter(|&at| x[at] != 0.0).collect();
    let count = found.len();
    let g: Vec<f32> = found.iter().map(|&at| x[at]).collect();
    let a = g.iter().map(|value| value.abs());
    let m = g.iter().map(|value| value.abs() * -value);
    let c: Vec<f32> = g.iter().chain(&g).copied().chain(m).chain(a).collect();
    let l: Vec<i64> = (0..count).map(|at| i64::try_from(at).unwrap()).collect();
    let s = [i64::try_from(count).unwrap()];
    let t: Vec<i64> =
        found.iter().flat_map(|at| [at / 5, at % 5]).map(|at| i64::try_from(at).unwrap()).collect();
    let floats = bytes_of(&c);
    let ints = |all: &[i64]| all.iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<u8>>();
    vec![
        (vec![1, 4 * count], floats.clone()),
        (vec![count], ints(&l)),
        (vec![1], ints(&s)),
        (vec![count, 2], ints(&t)),
        (vec![4 * count], floats),
    ]
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Rows of five columns, about a third of them zeros.
fn rows(rows: usize, seed: usize) -> Vec<f32> {
    let value = |at: usize| (at * 7919 + seed * 104_729 + at * at * 31) % 97;
    let value = |at: usize| f32::from(u8::try_from(value(at)).unwrap()) - 48.0;
    (0..5 * rows).map(value).map(|v| if v.abs() < 16.0 { 0.0 } else { v }).collect()
}

fn islands(input: &str) -> Prepared {
    prepared(&[&[input], &ISLANDS[..]].concat(), &ResolveConfig::default())
}

fn session(prepared: Prepared, plan_config: &PlanConfig, config: &SessionConfig) -> Session {
    let Prepared { graph, program } = prepared;
    let checked = check(&graph, plan(&graph, plan_config).unwrap().plan).unwrap();
    Session::new(program, checked, config).unwrap()
}

fn with_workers(workers: usize) -> SessionConfig {
    let workers = workers.try_into().unwrap();
    SessionConfig { workers, guard: true, ..SessionConfig::default() }
}

fn limited(most: Bytes) -> PoolConfig {
    let mut pool = PoolConfig::default();
    pool.limit = pool.limit.min(most);
    pool
}

fn run(session: &mut Session, x: &[f32]) -> Result<Vec<Found>, RunError> {
    let dims = [x.len() / 5, 5];
    let inputs = [TensorRef::new(&dims, x).unwrap()];
    let outputs = session.run(&inputs)?;
    assert_eq!(outputs.iter().count(), outputs.len());
    Ok(outputs.iter().map(|output| (output.dims().to_vec(), output.bytes().to_vec())).collect())
}

#[test]
fn outputs_follow_the_inputs_on_any_number_of_workers() {
    for workers in WORKERS {
        for inputs in [Owner::Caller, Owner::Arena] {
            for outputs in [Owner::Caller, Owner::Arena] {
                let config = PlanConfig { inputs, outputs, ..PlanConfig::default() };
                let net = islands("input x float32 n 5");
                let mut session = session(net, &config, &with_workers(workers));
                for seed in 0..24 {
                    let x = rows(seed * 5 % 17, seed);
                    assert_eq!(run(&mut session, &x).unwrap(), expected(&x), "{workers} workers");
                }
            }
        }
    }
}

#[test]
fn a_fixed_input_with_a_result_that_is_open() {
    for workers in WORKERS {
        let net = islands("input x float32 6 5");
        let mut session = session(net, &PlanConfig::default(), &with_workers(workers));
        for seed in 0..24 {
            let x = rows(6, seed);
            assert_eq!(run(&mut session, &x).unwrap(), expected(&x));
        }
        assert_eq!(run(&mut session, &[0.0; 30]).unwrap(), expected(&[0.0; 30]));
        let error = run(&mut session, &rows(7, 0)).unwrap_err().to_string();
        assert_eq!(error, "input `x` is float32 [7, 5], wanted float32 [6, 5]");
    }
}

#[test]
fn what_is_bounded_lies_in_the_arena() {
    let most = [("n".to_owned(), 12)].into();
    let config = ResolveConfig { max_dims: most, ..ResolveConfig::default() };
    let lines = ["input x float32 n 5", "a = Abs(x)", "s = Shape(a)", "b = Neg(a)", "output b s"];
    for outputs in [Owner::Caller, Owner::Arena] {
        let plan_config = PlanConfig { inputs: Owner::Arena, outputs, ..PlanConfig::default() };
        let net = prepared(&lines, &config);
        let mut session = session(net, &plan_config, &with_workers(2));
        for count in [12, 3, 0, 7] {
            let x = rows(count, count);
            let found = run(&mut session, &x).unwrap();
            let wanted: Vec<f32> = x.iter().map(|value| -value.abs()).collect();
            assert_eq!(found[0], (vec![count, 5], bytes_of(&wanted)));
            assert_eq!(session.memory().pool_peak, Bytes(0));
        }
        let error = run(&mut session, &rows(13, 0)).unwrap_err().to_string();
        assert_eq!(error, "input `x` takes 260 B, the plan has room for 240 B");
    }
}

#[test]
fn the_pool_is_empty_but_for_outputs_however_sizes_change() {
    for workers in [1, 4] {
        let net = islands("input x float32 n 5");
        let mut session = session(net, &PlanConfig::default(), &with_workers(workers));
        for seed in 0..1_000 {
            let x = rows(seed * 31 % 23, seed);
            assert_eq!(run(&mut session, &x).unwrap().len(), 5);
            // `u` is a view of `c`; `s` lies in the arena.
            assert_eq!(session.memory().pool_blocks, 3);
        }
        let peak = session.memory().pool_peak;
        assert!(peak > Bytes(0) && peak < Bytes(40_000), "{peak}");
    }
}

#[test]
fn a_pool_that_is_too_small_says_so_and_goes_on() {
    for workers in WORKERS {
        let net = islands("input x float32 n 5");
        let pool = limited(Bytes(8_000));
        let config = SessionConfig { pool, ..with_workers(workers) };
        let mut session = session(net, &PlanConfig::default(), &config);
        let (small, large) = (rows(4, 1), rows(400, 1));
        assert_eq!(run(&mut session, &small).unwrap(), expected(&small));
        let error = run(&mut session, &large).unwrap_err();
        let RunError::PoolExhausted { op, wanted, limit, .. } = &error else { panic!("{error}") };
        assert!(!op.is_empty() && *wanted > Bytes(0) && *limit == Bytes(8_000));
        assert!(error.to_string().contains(" of the pool; "), "{error}");
        assert_eq!(session.memory().pool_blocks, 0);
        assert_eq!(run(&mut session, &small).unwrap(), expected(&small));
    }
}

/// Eight branches that need memory at once, each as much as the others.
fn branches() -> Prepared {
    let mut lines = vec!["input x float32 n 5".to_owned()];
    for at in 0..8 {
        lines.push(format!("z{at} = NonZero(x)"));
        lines.push(format!("t{at} = Transpose(z{at})"));
        lines.push(format!("g{at} = GatherND(x, t{at})"));
        lines.push(format!("r{at} = ReduceSum(g{at}) keepdims=1"));
    }
    let all: Vec<String> = (0..8).map(|at| format!("r{at}")).collect();
    lines.push(format!("y = Sum({})", all.join(", ")));
    lines.push("output y".to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    prepared(&lines, &ResolveConfig::default())
}

#[test]
fn where_one_worker_has_memory_enough_several_have() {
    let x = rows(200, 3);
    let free = session(branches(), &PlanConfig::default(), &with_workers(1));
    let (mut free, config) = (free, PlanConfig::default());
    let wanted = run(&mut free, &x).unwrap();
    let peak = free.memory().pool_peak;
    for workers in WORKERS {
        for spare in [0, 20_000] {
            // Blocks are a fourth larger than what is asked for, at most.
            let pool = limited(Bytes(peak.0 * 5 / 4 + 4096 + spare));
            let workers = SessionConfig { pool, ..with_workers(workers) };
            let mut session = session(branches(), &config, &workers);
            for _ in 0..20 {
                assert_eq!(run(&mut session, &x).unwrap(), wanted);
            }
        }
    }
}

/// Fails in its second run, panics in its fourth.
struct Moody {
    inner: Box<dyn Late>,
    runs: usize,
}

impl Late for Moody {
    fn measure(&mut self, inputs: &[Option<Input<'_>>]) -> Result<Measured, NoKernel> {
        self.runs += 1;
        match self.runs {
            2 => Err(NoKernel::Misfit("not today".to_owned())),
            4 => panic!("a rule that panics"),
            _ => self.inner.measure(inputs),
        }
    }

    fn kernel(&mut self) -> Option<&mut dyn Kernel> {
        self.inner.kernel()
    }
}

/// Makes the operator that writes `e` moody.
fn moody(program: &mut Program) {
    let tensors = program.graph.tensors();
    let e = tensors.ids().find(|&id| &*tensors[id].name == "e").unwrap();
    let op = program.graph.writer(e).unwrap();
    let call = program.late.remove(&op).unwrap();
    let late = Box::new(Moody { inner: call.late, runs: 0 });
    program.late.insert(op, lowtide::core::operator::LateCall { late, ..call });
}

#[test]
fn a_run_that_ends_early_leaves_nothing_in_the_pool() {
    let x = rows(9, 2);
    for workers in WORKERS {
        let mut net = islands("input x float32 n 5");
        moody(&mut net.program);
        let mut session = session(net, &PlanConfig::default(), &with_workers(workers));
        assert_eq!(run(&mut session, &x).unwrap(), expected(&x));
        let error = run(&mut session, &x).unwrap_err();
        assert!(matches!(error, RunError::Late { .. }), "{error}");
        assert_eq!(session.memory().pool_blocks, 0);
        assert_eq!(run(&mut session, &x).unwrap(), expected(&x));
        let panics = std::panic::AssertUnwindSafe(|| run(&mut session, &x).map(|_| ()));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(session.memory().pool_blocks, 0);
        assert_eq!(run(&mut session, &x).unwrap(), expected(&x));
        session.canceller().cancel();
        assert!(matches!(run(&mut session, &x), Err(RunError::Cancelled)));
        assert_eq!(session.memory().pool_blocks, 0);
        assert_eq!(run(&mut session, &x).unwrap(), expected(&x));
    }
}

#[test]
fn whatever_fails_in_the_memory_of_the_pool_leaves_a_usable_session() {
    let (small, large) = (rows(3, 1), rows(300, 2));
    let mut failed = 0;
    for fault in [Fault::Refused, Fault::Limit, Fault::NotHost] {
        for (call, workers) in (0..6).flat_map(|call| WORKERS.map(|workers| (call, workers))) {
            // The second try for a segment, a smaller one, fails too.
            let memory = FaultyMemory::new(Bytes(60_000));
            let memory = memory.failing_at(call, fault).failing_at(call + 1, fault);
            let ledger = memory.ledger();
            let Prepared { graph, program } = islands("input x float32 n 5");
            let checked =
                check(&graph, plan(&graph, &PlanConfig::default()).unwrap().plan).unwrap();
            let pool = PoolConfig { segment: Bytes(4096), ..PoolConfig::default() };
            let config = SessionConfig { pool, ..with_workers(workers) };
            let memories = (&mut HostMemory::default() as _, Box::new(memory) as _);
            let mut session = Session::in_memories(program, checked, &config, memories).unwrap();
            for x in [&small, &large, &small, &large, &small] {
                match run(&mut session, x) {
                    Ok(found) => assert_eq!(found, expected(x)),
                    Err(error) => {
                        assert!(matches!(error, RunError::PoolMemory { .. }), "{error}");
                        assert_eq!(session.memory().pool_blocks, 0);
                        failed += 1;
                    }
                }
            }
            assert_eq!(run(&mut session, &small).unwrap(), expected(&small));
            drop(session);
            assert_eq!(ledger.given().blocks, 0);
        }
    }
    assert!(failed > 50, "{failed}");
}

#[test]
fn ten_thousand_runs_of_changing_sizes_hold_no_more_than_the_first() {
    let mut session =
        session(islands("input x float32 n 5"), &PlanConfig::default(), &SessionConfig::default());
    let inputs: Vec<Vec<f32>> = (0..50).map(|at| rows(at * 37 % 211, at)).collect();
    let mut held = Bytes::ZERO;
    for round in 0..200 {
        for x in &inputs {
            run(&mut session, x).unwrap();
        }
        let stats = session.pool_stats().unwrap();
        if round == 2 {
            held = stats.peak_held;
        }
        assert!(round < 2 || stats.peak_held == held, "{round} {} {held}", stats.peak_held);
    }
}

/// What a network with an open batch makes of so many images.
fn classify(resolve: ResolveConfig, batches: &[usize], workers: usize) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/onnx");
    let options = LoadOptions { resolve, ..LoadOptions::default() };
    let loaded = load(&path.join("mobilenet_v2_dynamic.onnx"), &options).unwrap();
    let mut program = lowtide::program(&loaded, &ops::standard()).unwrap();
    random_weights(&mut program, 1);
    let graph = loaded.graph;
    let config = SessionConfig { guard: false, ..with_workers(workers) };
    let mut session = session(Prepared { graph, program }, &PlanConfig::default(), &config);
    let name = session.inputs()[0].name.clone();
    let one = |&batch: &usize| {
        let dims = [batch, 3, 224, 224];
        let image = random_input(&name, lowtide::core::DType::F32, &dims, 1).unwrap();
        let inputs = [TensorRef::from_bytes(image.dtype(), &dims, image.bytes()).unwrap()];
        session.run(&inputs).unwrap().get(0).unwrap().bytes().to_vec()
    };
    batches.iter().map(one).collect()
}

#[test]
fn an_open_batch_gives_the_bits_of_a_bound_one() {
    let found = classify(ResolveConfig::default(), &[2, 1, 2], 2);
    for (batch, at) in [(2, 0), (1, 1), (2, 2)] {
        let shape = [batch as u64, 3, 224, 224].to_vec();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/onnx");
        let loaded =
            load(&path.join("mobilenet_v2_dynamic.onnx"), &LoadOptions::default()).unwrap();
        let name =
            loaded.graph.tensors()[loaded.model.unwrap().main_graph().inputs[0]].name.clone();
        let shapes = [(name.to_string(), shape)].into();
        let bound = ResolveConfig { shapes, ..ResolveConfig::default() };
        assert!(classify(bound, &[batch], 1)[0] == found[at], "batch {batch}");
    }
}
