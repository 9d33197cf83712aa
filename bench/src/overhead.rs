//! What the executor costs beside its kernels.
//!
//! ~~~text
//! layered graph, kernels that do nothing ──> nanoseconds an operator: plain loop, one worker, two, eight
//! the same, kernels of 0.5 to 50 us      ──> times of the plain loop
//! ~~~

use lowtide::core::operator::{KernelError, Operands, Prepared, Program};
use lowtide::core::testing::layered_random;
use lowtide::core::{DType, IndexVec, Plan, Tensor, TensorKind};
use lowtide::{Graph, GraphBuilder, PlanConfig, Session, SessionConfig, TensorRef, check, plan};
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

const OPERATORS: usize = 2_000;
const WIDTH: usize = 16;
const ROUNDS: usize = 15;

/// Prints the table.
pub fn run() -> anyhow::Result<bool> {
    let graph = of_bytes(&layered_random(OPERATORS, WIDTH, 1))?;
    let planned = plan(&graph, &PlanConfig::default())?.plan;
    println!("{} operators, {} fences\n", graph.ops().len(), planned.fences());
    println!(
        "| executor | kernels that do nothing: ns an operator | kernels of 0.5 to 50 us: times of the plain loop |"
    );
    println!("|---|--:|--:|");
    let ops = graph.ops().len() as f64;
    let [empty, busy] = [false, true].map(|is_busy| plain(&graph, is_busy));
    println!("| plain loop | {:.1} | 1 |", empty / ops);
    for workers in [1, 2, 8] {
        let [bare, full] =
            [session(&graph, &planned, false, workers)?, session(&graph, &planned, true, workers)?];
        println!("| workers: {workers} | {:.1} | {:.4} |", bare / ops, full / busy);
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

fn session(graph: &Graph, plan: &Plan, is_busy: bool, workers: usize) -> anyhow::Result<f64> {
    let prepared = |(at, op): (usize, &lowtide::Op)| {
        let time = duration(at, is_busy);
        let kernel = move |_: &mut Operands<'_>| -> Result<(), KernelError> {
            work(black_box(time));
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
