//! Random graphs of which half of the tensors lie in the pool, against the same graphs in safe mode.
//!
//! ~~~text
//! graph ──safe mode, one worker──> outputs  ==  outputs <── 1 to 8 workers ── the same graph, sizes said in the run
//! ~~~
//! Each operator mixes all bytes that it reads into all that it writes, and freed bytes are poisoned: a block that is freed
//! too early, or read too early, shows.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod mixed;

use arbitrary::Unstructured;
use lowtide::core::operator::{
    Input, Kernel, Late, LateCall, Measured, NoKernel, Operands, Program,
};
use lowtide::core::testing::{Limits, describe, graph, layered_random, random_bytes};
use lowtide::core::{Bytes, Dim, OpId, Owner, Reuse, Sharing, Size, Tensor, TensorId, TensorKind};
use lowtide::runtime::{PoolConfig, SessionError};
use lowtide::{Graph, GraphBuilder, PlanConfig, Session, SessionConfig, TensorRef, check, plan};
use mixed::{changes_external, external, ids, len, of_bytes, program};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The same graph; about half of the tensors that share nothing have no size. Scratch has none either where one has none.
fn opened(graph: &Graph, seed: u64) -> Graph {
    let named = |sharing: &Sharing| match *sharing {
        Sharing::View { output, of, .. }
        | Sharing::Mutates { output, of }
        | Sharing::MayOverwrite { output, of }
        | Sharing::PieceOf { output, of, .. } => [output, of],
        Sharing::PartOf { input, output, .. } => [input, output],
    };
    let shared: BTreeSet<TensorId> =
        graph.ops().iter().flat_map(|op| op.sharing.iter().flat_map(named)).collect();
    let choice = random_bytes(seed, graph.tensors().len());
    let is_open = |id: TensorId| {
        let is_computed = graph.tensors()[id].kind == TensorKind::Computed;
        is_computed && !shared.contains(&id) && choice[id.raw() as usize].is_multiple_of(2)
    };
    let mut builder = GraphBuilder::new("opened");
    for (id, tensor) in graph.tensors().iter_enumerated() {
        let open =
            Tensor { size: Size::Unknown, shape: Some([Dim::Unknown].into()), ..tensor.clone() };
        builder.tensor(if is_open(id) { open } else { tensor.clone() });
    }
    for op in graph.ops() {
        let is_late = op.outputs.iter().any(|&id| is_open(id));
        let scratch =
            if is_late && op.needed_scratch().is_some() { Size::Unknown } else { op.scratch };
        builder.op(op.clone().scratch(scratch));
    }
    builder.finish().unwrap()
}

/// An operator that says the sizes of the fixed graph.
struct Told {
    shapes: Vec<Option<Arc<[usize]>>>,
    scratch: Bytes,
    kernel: Box<dyn Kernel>,
}

impl Late for Told {
    fn measure(&mut self, inputs: &[Option<Input<'_>>]) -> Result<Measured, NoKernel> {
        assert!(inputs.iter().flatten().all(|input| input.bytes().unwrap().len() == input.len()));
        Ok(Measured { shapes: self.shapes.clone(), scratch: self.scratch })
    }

    fn kernel(&mut self) -> Option<&mut dyn Kernel> {
        Some(self.kernel.as_mut())
    }
}

/// The program of an opened graph; its kernels are those of the fixed one.
fn opened_program(fixed: &Graph, open: &Graph) -> Program {
    let mut program = Program { graph: open.clone(), ..program(fixed) };
    let is_open = |id: TensorId| open.tensors()[id].size == Size::Unknown;
    for op in open.ops().ids() {
        let row = &open.ops()[op];
        if row.scratch == Size::Unknown
            || row.inputs.iter().chain(&row.outputs).any(|&id| is_open(id))
        {
            let call = late_call(fixed, &mut program, op);
            program.late.insert(op, call);
        }
    }
    program
}

fn late_call(fixed: &Graph, program: &mut Program, op: OpId) -> LateCall {
    let call = program.calls[op].take().unwrap();
    let shape = |id: Option<TensorId>| id.map(|id| Arc::from([len(fixed, id)]));
    let scratch = fixed.ops()[op].scratch.bound().unwrap();
    let mut kernel = call.kernel;
    let late = Told {
        shapes: call.outputs.iter().copied().map(shape).collect(),
        scratch,
        kernel: Box::new(move |operands: &mut Operands<'_>| kernel.run(operands)),
    };
    LateCall { late: Box::new(late), inputs: call.inputs, outputs: call.outputs }
}

fn session(program: Program, config: &PlanConfig, workers: usize) -> Option<Session> {
    let graph = &program.graph;
    let checked = check(graph, plan(graph, config).unwrap().plan).unwrap();
    let workers = workers.try_into().unwrap();
    // Blocks are moved whenever the plan allows it.
    let pool = PoolConfig { scattered: 0, ..PoolConfig::default() };
    let guarded = SessionConfig { guard: true, workers, pool, ..SessionConfig::default() };
    match Session::new(program, checked, &guarded) {
        Ok(session) => Some(session),
        // An operator may read a whole of which it changes a piece; no kernel is given such operands.
        Err(SessionError::Overlap { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn run(session: &mut Session, given: &[(Vec<usize>, Vec<u8>)]) -> Vec<Vec<u8>> {
    let inputs: Vec<TensorRef<'_>> =
        given.iter().map(|(dims, bytes)| TensorRef::new(dims, bytes).unwrap()).collect();
    let outputs = session.run(&inputs).unwrap();
    outputs.iter().map(|output| output.bytes().to_vec()).collect()
}

/// Runs a graph in both ways; how often, and how often blocks were moved meanwhile.
fn compare(graph: &Graph, seed: u64, workers: usize) -> (usize, u64) {
    let inputs = ids(graph, TensorKind::Input).into_iter();
    let given: Vec<_> =
        inputs.map(|id| (vec![len(graph, id)], external(id, len(graph, id)))).collect();
    let safe = PlanConfig { reuse: Reuse::Safe, ..PlanConfig::default() };
    let Some(mut safe) = session(program(graph), &safe, 1) else { return (0, 0) };
    let wanted = run(&mut safe, &given);
    let open = opened(graph, seed);
    let (mut runs, mut moved) = (0, 0);
    for (outputs, compact_every) in [(Owner::Arena, 1), (Owner::Caller, 3)] {
        let config = PlanConfig { outputs, compact_every, ..PlanConfig::default() };
        let Some(mut session) = session(opened_program(graph, &open), &config, workers) else {
            continue;
        };
        for _ in 0..4 {
            let found = run(&mut session, &given);
            assert_eq!(found, wanted, "seed {seed}, {workers} workers\n{}", describe(&open));
            runs += 1;
        }
        moved += session.compactions().count;
    }
    (runs, moved)
}

#[test]
fn random_graphs_with_tensors_in_the_pool_are_as_in_safe_mode() {
    let mut runs = 0;
    for seed in 0..200 {
        let bytes = random_bytes(seed, 1 << 12);
        let limits = Limits { open_sizes: false, ..Limits::all(16) };
        let Ok(graph) = graph(&mut Unstructured::new(&bytes), limits) else { continue };
        let Some(graph) = of_bytes(&graph).filter(|graph| !changes_external(graph)) else {
            continue;
        };
        runs += compare(&graph, seed, [1, 2, 3, 8][usize::try_from(seed).unwrap() % 4]).0;
    }
    assert!(runs > 300, "{runs}");
}

#[test]
fn wide_graphs_with_tensors_in_the_pool_are_as_in_safe_mode() {
    for (seed, workers) in (0..12).zip([1, 2, 4, 8].into_iter().cycle()) {
        let graph = of_bytes(&layered_random(150, 12, seed)).unwrap();
        let (runs, moved) = compare(&graph, seed, workers);
        assert!(runs > 0 && moved > 0, "{runs} {moved}");
    }
}
