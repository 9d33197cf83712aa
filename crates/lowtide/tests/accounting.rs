//! Every byte that a run allocates is arena or declared; after the first run none is.
//!
//! The counting allocator sees all threads of the process, so this file has one test.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use lowtide::core::{Bytes, Reuse};
use lowtide::formats::Array;
use lowtide::{
    LoadOptions, PlanConfig, ResolveConfig, Session, SessionConfig, TensorRef, check, load, ops,
    plan, program, random_input, random_weights,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::num::NonZeroUsize;
use std::path::Path;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn session(name: &str, reuse: Reuse, workers: usize) -> Session {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let dims = [("batch".to_owned(), 1)].into();
    let resolve = ResolveConfig { dims, ..ResolveConfig::default() };
    let bound = LoadOptions { resolve, ..LoadOptions::default() };
    let loaded = load(&path, &bound).or_else(|_| load(&path, &LoadOptions::default())).unwrap();
    let config = PlanConfig { reuse, ..PlanConfig::default() };
    let checked = check(&loaded.graph, plan(&loaded.graph, &config).unwrap().plan).unwrap();
    let mut program = program(&loaded, &ops::standard()).unwrap();
    random_weights(&mut program, 0);
    let workers = NonZeroUsize::new(workers).unwrap();
    Session::new(program, checked, &SessionConfig { workers, ..SessionConfig::default() }).unwrap()
}

fn allocated() -> Bytes {
    Bytes(u64::try_from(ALLOCATOR.stats().bytes_allocated).unwrap())
}

/// What the threads of a pool allocate once for their queues.
const QUEUES: Bytes = Bytes(4096);

/// Returns the session: where threads end while others are counted, what they allocate last would be counted too.
#[track_caller]
fn check_accounts(name: &str, reuse: Reuse, workers: usize) -> Session {
    let mut session = session(name, reuse, workers);
    let declared = session.memory().kernels;
    let specs = session.inputs().iter();
    let arrays: Vec<Array> = specs
        .map(|spec| random_input(&spec.name, spec.dtype, &spec.fixed_dims().unwrap(), 0).unwrap())
        .collect();
    let tensors: Vec<TensorRef<'_>> = arrays
        .iter()
        .map(|array| TensorRef::from_bytes(array.dtype(), array.dims(), array.bytes()).unwrap())
        .collect();
    let [start, first, later] = session.within(|session| {
        let start = allocated();
        session.run(&tensors).unwrap();
        let first = allocated();
        for _ in 0..50 {
            session.run(&tensors).unwrap();
        }
        [start, first, allocated()]
    });
    let in_first = first.saturating_sub(start);
    assert!(in_first <= declared, "{name}: {in_first} in the first run, declared {declared}");
    if workers == 1 {
        assert_eq!(later.saturating_sub(first), Bytes::ZERO, "{name}: in later runs");
    } else {
        // A worker may meet a library for the first time in any run, and a pool's thread its own queues.
        let all = later.saturating_sub(start);
        assert!(all <= declared + QUEUES, "{name}: {all} in all, declared {declared}");
    }
    session
}

#[test]
fn runs_allocate_what_is_declared_and_then_nothing() {
    let mut sessions: Vec<Session> = Vec::new();
    for workers in [1, 2] {
        sessions.extend(Reuse::ALL.map(|reuse| check_accounts("demo/digits.onnx", reuse, workers)));
        for name in ["dscnn_kws", "unet_small_128", "mlp_mnist"] {
            let name = format!("testdata/onnx/{name}.onnx");
            sessions.push(check_accounts(&name, Reuse::Pack, workers));
        }
    }
}
