//! Random graphs on several workers, against safe mode on one.
//!
//! ~~~text
//! graph ──plan, check──> session of 1 to 8 workers ── run, run, .. ──> outputs  ==  outputs <── safe mode, one worker
//! ~~~
//! Freed bytes are poisoned, and each operator mixes all bytes that it reads into all that it writes: a run that begins
//! too early shows.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod mixed;

use arbitrary::Unstructured;
use lowtide::core::operator::{KernelError, Operand, Operands};
use lowtide::core::testing::{Limits, describe, graph, layered_random, random_bytes};
use lowtide::core::{Owner, Reuse, TensorKind};
use lowtide::planner::OrderRule;
use lowtide::runtime::{HostMemory, RunError, SessionError, Sessions, SharedArena};
use lowtide::{Graph, PlanConfig, Session, SessionConfig, TensorRef, check, plan};
use mixed::{changes_external, external, ids, len, of_bytes, program};

const WORKERS: [usize; 5] = [1, 2, 3, 4, 8];

fn session(graph: &Graph, plan_config: &PlanConfig, workers: usize) -> Option<Session> {
    let checked = check(graph, plan(graph, plan_config).unwrap().plan).unwrap();
    let workers = workers.try_into().unwrap();
    let config = SessionConfig { guard: true, workers, ..SessionConfig::default() };
    match Session::new(program(graph), checked, &config) {
        Ok(session) => Some(session),
        // An operator may read a whole of which it changes a piece; no kernel is given such operands.
        Err(SessionError::Overlap { .. }) => None,
        Err(error) => panic!("{error}\n{}", describe(graph)),
    }
}

fn given(graph: &Graph) -> Vec<(Vec<usize>, Vec<u8>)> {
    let ids = ids(graph, TensorKind::Input).into_iter();
    ids.map(|id| (vec![len(graph, id)], external(id, len(graph, id)))).collect()
}

fn tensors(given: &[(Vec<usize>, Vec<u8>)]) -> Vec<TensorRef<'_>> {
    given.iter().map(|(dims, bytes)| TensorRef::new(dims, bytes).unwrap()).collect()
}

fn run(session: &mut Session, inputs: &[TensorRef<'_>]) -> Result<Vec<Vec<u8>>, RunError> {
    let outputs = session.run(inputs)?;
    Ok(outputs.iter().map(|output| output.bytes().to_vec()).collect())
}

fn configs() -> [PlanConfig; 4] {
    let config = || PlanConfig { order: OrderRule::Rules, ..PlanConfig::default() };
    let all = PlanConfig { inputs: Owner::Arena, outputs: Owner::Caller, ..config() };
    let colour = PlanConfig { reuse: Reuse::Colour, ..config() };
    [config(), all, colour, PlanConfig { fences: false, ..config() }]
}

#[test]
fn random_graphs_on_several_workers_are_as_in_safe_mode() {
    let mut runs = 0;
    for seed in 0..400 {
        let bytes = random_bytes(seed, 1 << 12);
        let limits = Limits { open_sizes: false, ..Limits::all(16) };
        let Ok(graph) = graph(&mut Unstructured::new(&bytes), limits) else { continue };
        let Some(graph) = of_bytes(&graph).filter(|graph| !changes_external(graph)) else {
            continue;
        };
        let given = given(&graph);
        let inputs = tensors(&given);
        let safe = PlanConfig { reuse: Reuse::Safe, ..PlanConfig::default() };
        let Some(mut safe) = session(&graph, &safe, 1) else { continue };
        let wanted = run(&mut safe, &inputs).unwrap();
        for (at, config) in configs().iter().enumerate() {
            let workers = WORKERS[(usize::try_from(seed).unwrap() + at) % WORKERS.len()];
            let Some(mut session) = session(&graph, config, workers) else { continue };
            for _ in 0..6 {
                let found = run(&mut session, &inputs).unwrap();
                assert_eq!(found, wanted, "seed {seed}, {workers} workers\n{}", describe(&graph));
                runs += 1;
            }
        }
    }
    assert!(runs > 2_000, "{runs}");
}

#[test]
fn wide_graphs_on_several_workers_are_as_in_safe_mode() {
    for seed in 0..4 {
        let graph = of_bytes(&layered_random(200, 12, seed)).unwrap();
        let given = given(&graph);
        let inputs = tensors(&given);
        let safe = PlanConfig { reuse: Reuse::Safe, ..PlanConfig::default() };
        let wanted = run(&mut session(&graph, &safe, 1).unwrap(), &inputs).unwrap();
        for workers in WORKERS {
            let mut session = session(&graph, &configs()[0], workers).unwrap();
            assert!(session.plan().fences() > 0);
            for _ in 0..5 {
                assert_eq!(run(&mut session, &inputs).unwrap(), wanted, "{workers} workers");
            }
        }
    }
}

#[test]
fn a_run_that_is_cancelled_or_fails_leaves_the_session_usable() {
    let graph = of_bytes(&layered_random(60, 6, 1)).unwrap();
    let given = given(&graph);
    let inputs = tensors(&given);
    for workers in WORKERS {
        let mut session = session(&graph, &configs()[0], workers).unwrap();
        let wanted = run(&mut session, &inputs).unwrap();
        session.canceller().cancel();
        let error = run(&mut session, &inputs).unwrap_err();
        assert_eq!(error.to_string(), "the run was cancelled");
        assert_eq!(run(&mut session, &inputs).unwrap(), wanted);
    }
    for workers in WORKERS {
        let checked = check(&graph, plan(&graph, &configs()[0]).unwrap().plan).unwrap();
        let mut program = program(&graph);
        let mut calls = 0;
        let call = program.calls[lowtide::core::OpId::new(20)].as_mut().unwrap();
        let mut works =
            std::mem::replace(&mut call.kernel, Box::new(|_: &mut Operands<'_>| Ok(())));
        call.kernel = Box::new(move |operands: &mut Operands<'_>| {
            calls += 1;
            match calls {
                2 => Err(KernelError::Absent { operand: Operand::Input(0) }),
                4 => panic!("a kernel that panics"),
                _ => works.run(operands),
            }
        });
        let config =
            SessionConfig { workers: workers.try_into().unwrap(), ..SessionConfig::default() };
        let mut session = Session::new(program, checked, &config).unwrap();
        let wanted = run(&mut session, &inputs).unwrap();
        assert!(matches!(run(&mut session, &inputs), Err(RunError::Kernel { .. })));
        assert_eq!(run(&mut session, &inputs).unwrap(), wanted);
        let panics = std::panic::AssertUnwindSafe(|| run(&mut session, &inputs).map(|_| ()));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(run(&mut session, &inputs).unwrap(), wanted);
    }
}

#[test]
fn sessions_that_run_in_turn_need_the_largest_arena_only() {
    let graphs = [40, 80, 20].map(|ops| of_bytes(&layered_random(ops, 6, 3)).unwrap());
    let mut sessions: Vec<Session> = graphs
        .iter()
        .map(|graph| {
            let checked = check(graph, plan(graph, &configs()[0]).unwrap().plan).unwrap();
            Session::without_arena(program(graph), checked, &SessionConfig::default()).unwrap()
        })
        .collect();
    let mut arena = SharedArena::for_sessions(&mut HostMemory::default(), &sessions).unwrap();
    let largest = sessions.iter().map(|session| session.memory().arena).max().unwrap();
    assert_eq!(arena.bytes(), largest);
    for (graph, lent) in graphs.iter().zip(&mut sessions) {
        let given = given(graph);
        let inputs = tensors(&given);
        let wanted = run(&mut session(graph, &configs()[0], 1).unwrap(), &inputs).unwrap();
        let outputs = lent.run_in(&mut arena, &inputs).unwrap();
        let found: Vec<Vec<u8>> = outputs.iter().map(|output| output.bytes().to_vec()).collect();
        assert_eq!(found, wanted);
        assert!(matches!(lent.run(&inputs), Err(RunError::NoArena)));
    }
}

#[test]
fn calls_from_several_threads_take_turns_or_have_arenas_of_their_own() {
    let graph = of_bytes(&layered_random(60, 6, 2)).unwrap();
    let given = given(&graph);
    let inputs = tensors(&given);
    let wanted = run(&mut session(&graph, &configs()[0], 1).unwrap(), &inputs).unwrap();
    for most in [1, 3] {
        let of = graph.clone();
        let make = move || Ok(session(&of, &configs()[0], 1).unwrap());
        let sessions = Sessions::new(most.try_into().unwrap(), make);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let found = sessions.with(|session| run(session, &inputs)).unwrap();
                        assert_eq!(found.unwrap(), wanted);
                    }
                });
            }
        });
        assert!((1..=most).contains(&sessions.made()), "{}", sessions.made());
        let panics = std::panic::AssertUnwindSafe(|| sessions.with(|_| panic!("a caller's")));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(sessions.with(|session| run(session, &inputs)).unwrap().unwrap(), wanted);
    }
    let none = Sessions::new(1.try_into().unwrap(), || {
        let reason = "none today".to_owned();
        Err(SessionError::Threads { threads: 1, reason })
    });
    assert!(none.with(|_| ()).is_err() && none.with(|_| ()).is_err());
    assert_eq!(none.made(), 0);
}
