//! What the executor costs beside its kernels.
//!
//! ~~~text
//! layered graph, kernels that do nothing ──> nanoseconds an operator: plain loop, one worker, two, eight
//! the same, kernels of 0.5 to 50 us      ──> times of the plain loop
//! the same with a heap for every tensor  ──> nanoseconds a block more
//! ~~~

use crate::heap::{Blocks, Heap};
use lowtide::core::operator::{KernelError, Operands, Prepared, Program};
use lowtide::core::testing::layered_random;
use lowtide::core::{DType, Id, IndexVec, OpId, Plan, Reuse, Tensor, TensorKind};
use lowtide::{Graph, GraphBuilder, PlanConfig, Session, SessionConfig, TensorRef, check, plan};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const OPERATORS: usize = 2_000;
const WIDTH: usize = 16;
const ROUNDS: usize = 15;
const ALLOCATOR: &str = if cfg!(feature = "mimalloc") { "mimalloc" } else { "malloc" };

/// Prints the tables.
pub fn run() -> anyhow::Result<bool> {
    let graph = of_bytes(&layered_random(OPERATORS, WIDTH, 1))?;
    let with_fences = plan(&graph, &PlanConfig::default())?.plan;
    let safe = plan(&graph, &PlanConfig { reuse: Reuse::Safe, ..PlanConfig::default() })?.plan;
    let without = plan(&graph, &PlanConfig { fences: false, ..PlanConfig::default() })?.plan;
    println!(
        "arenas: {} with fences, {} without, {} if nothing is shared",
        with_fences.stats.arena_bytes, without.stats.arena_bytes, safe.stats.arena_bytes
    );
    let (ops, fences) = (graph.ops().len() as f64, with_fences.fences());
    let pairs = Blocks::pairs(&graph);
    println!("{} operators, {fences} fences, {pairs} blocks\n", graph.ops().len());
    println!(
        "| executor | kernels that do nothing: ns an operator | ns a fence | ns a block more | kernels of 0.5 to 50 us: times of the plain loop | times of the plan |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    let [empty, busy] = [false, true].map(|is_busy| plain(&graph, is_busy));
    println!("| plain loop | {:.1} | | | 1 | |", empty / ops);
    for workers in [1, 2, 8] {
        let timed = |plan, is_busy, heap| session(&graph, plan, is_busy, workers, heap);
        let free = timed(&safe, false, None)?;
        let mut planned = None;
        for (name, plan) in
            [("plan", &with_fences), ("plan without fences", &without), ("nothing shared", &safe)]
        {
            let [bare, full] = [timed(plan, false, None)?, timed(plan, true, None)?];
            let planned = *planned.get_or_insert(full);
            let fence = (bare - free) / fences as f64;
            let fence = if name == "plan" { format!("{fence:.1}") } else { String::new() };
            let (bare, loops, plans) = (bare / ops, full / busy, full / planned);
            println!(
                "| {name}, workers: {workers} | {bare:.1} | {fence} | | {loops:.4} | {plans:.4} |"
            );
        }
        let heaps: [(_, fn() -> Heap); 2] = [
            (ALLOCATOR, || Heap::Allocator),
            ("pool with one lock", || Heap::Pool(Mutex::default())),
        ];
        for (name, heap) in heaps {
            let bare = timed(&safe, false, Some(heap()))?;
            let full = timed(&safe, true, Some(heap()))?;
            let block = (bare - free) / pairs as f64;
            let plans = full / planned.unwrap_or(full);
            let (bare, loops) = (bare / ops, full / busy);
            println!(
                "| {name}, workers: {workers} | {bare:.1} | | {block:.1} | {loops:.4} | {plans:.4} |"
            );
        }
    }
    Ok(true)
}

/// The same graph with bytes as elements.
fn of_bytes(graph: &Graph) -> anyhow::Result<Graph> {
    let mut builder = GraphBuilder::new("bytes");
    for tensor in graph.tensors() {
        builder.tensor(Tensor { dtype: Some(DType::U8), ..tensor.clone() });
    }
    for op in graph.ops() {
        builder.op(op.clone());
    }
    Ok(builder.finish()?)
}

/// From half a microsecond to fifty, evenly by their logarithm.
fn duration(at: usize, is_busy: bool) -> Duration {
    let part = (at * 37 % 101) as f64 / 100.0;
    if is_busy {
        Duration::from_nanos((500.0 * 100.0_f64.powf(part)) as u64)
    } else {
        Duration::ZERO
    }
}

fn work(time: Duration) {
    if time > Duration::ZERO {
        let start = Instant::now();
        while start.elapsed() < time {
            std::hint::spin_loop();
        }
    }
}

/// Nanoseconds of the least round.
fn least(mut round: impl FnMut()) -> f64 {
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        round();
        start.elapsed().as_secs_f64() * 1e9
    });
    times.fold(f64::INFINITY, f64::min)
}

/// All kernels one after the other.
fn plain(graph: &Graph, is_busy: bool) -> f64 {
    let mut kernels: Vec<Box<dyn FnMut()>> = (0..graph.ops().len())
        .map(|at| {
            let time = duration(at, is_busy);
            Box::new(move || work(black_box(time))) as Box<dyn FnMut()>
        })
        .collect();
    least(|| {
        for kernel in &mut kernels {
            kernel();
        }
    })
}

fn session(
    graph: &Graph,
    plan: &Plan,
    is_busy: bool,
    workers: usize,
    heap: Option<Heap>,
) -> anyhow::Result<f64> {
    let shared = Arc::new((graph.clone(), heap.map(|heap| Blocks::new(graph, heap))));
    let prepared = |(at, op): (usize, &lowtide::Op)| {
        let (time, shared) = (duration(at, is_busy), Arc::clone(&shared));
        let kernel = move |_: &mut Operands<'_>| -> Result<(), KernelError> {
            let (graph, blocks) = &*shared;
            let id = OpId::from_index(at);
            blocks.iter().for_each(|blocks| blocks.before(graph, id));
            work(black_box(time));
            blocks.iter().for_each(|blocks| blocks.after(graph, id));
            Ok(())
        };
        Some(Prepared {
            kernel: Box::new(kernel),
            inputs: op.inputs.iter().copied().map(Some).collect(),
            outputs: op.outputs.iter().copied().map(Some).collect(),
        })
    };
    let len = |id| graph.tensors()[id].size.bound().map_or(0, |bytes| bytes.0 as usize);
    let of = |kind| graph.tensors().ids().filter(move |&id| graph.tensors()[id].kind == kind);
    let mut weights = IndexVec::filled(graph.tensors().len(), None);
    for id in of(TensorKind::Weight) {
        weights[id] = Some(vec![0; len(id)].into());
    }
    let program = Program {
        calls: graph.ops().iter().enumerate().map(prepared).collect(),
        late: BTreeMap::new(),
        shapes: graph.tensors().ids().map(|id| [len(id)].into()).collect(),
        weights,
        inputs: of(TensorKind::Input).collect(),
        outputs: graph.tensors().ids().filter(|&id| graph.tensors()[id].is_output).collect(),
        graph: graph.clone(),
    };
    let given: Vec<(Vec<usize>, Vec<u8>)> =
        of(TensorKind::Input).map(|id| (vec![len(id)], vec![0; len(id)])).collect();
    let inputs = given.iter().map(|(dims, bytes)| TensorRef::new(dims, bytes));
    let inputs: Vec<TensorRef<'_>> = inputs.collect::<Result<_, _>>()?;
    let workers = NonZeroUsize::new(workers).expect("it is not 0");
    let config = SessionConfig { workers, ..SessionConfig::default() };
    let mut session = Session::new(program, check(graph, plan.clone())?, &config)?;
    Ok(session.within(|session| least(|| drop(session.run(&inputs).map(|_| ())))))
}
