//! Sessions as a library's users meet them: errors that can be read, and a session that survives them.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use lowtide::core::{Bytes, DType, Owner, Reuse};
use lowtide::formats::read_npy;
use lowtide::runtime::{HostMemory, LimitedMemory, SessionError};
use lowtide::{
    LoadOptions, Loaded, PlanConfig, Session, SessionConfig, TensorRef, check, load, ops, plan,
    program,
};
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn demo() -> Loaded {
    load(&path("demo/digits.onnx"), &LoadOptions::default()).unwrap()
}

fn session_of(loaded: &Loaded, config: &PlanConfig) -> Session {
    let checked = check(&loaded.graph, plan(&loaded.graph, config).unwrap().plan).unwrap();
    let program = program(loaded, &ops::standard()).unwrap();
    let guarded = SessionConfig { guard: true, ..SessionConfig::default() };
    Session::new(program, checked, &guarded).unwrap()
}

fn seven() -> Vec<f32> {
    let array = read_npy(&std::fs::read(path("demo/seven.npy")).unwrap()).unwrap();
    let words = array.bytes().chunks_exact(4);
    words.map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect()
}

const DIMS: [usize; 4] = [1, 1, 8, 8];

/// The scores of the ten digits.
#[track_caller]
fn scores(session: &mut Session, image: &[f32]) -> Vec<f32> {
    let inputs = [TensorRef::new(&DIMS, image).unwrap()];
    let outputs = session.run(&inputs).unwrap();
    outputs.get(0).unwrap().values().unwrap().to_vec()
}

#[test]
fn a_seven_is_a_seven_in_every_mode() {
    let loaded = demo();
    let mut found = Vec::new();
    for reuse in Reuse::ALL {
        for (inputs, outputs) in [(Owner::Caller, Owner::Arena), (Owner::Arena, Owner::Caller)] {
            let config = PlanConfig { reuse, inputs, outputs, ..PlanConfig::default() };
            found.push(scores(&mut session_of(&loaded, &config), &seven()));
        }
    }
    assert!(found[0][7] > 0.9, "{:?}", found[0]);
    assert!(found.iter().all(|scores| scores == &found[0]));
}

#[test]
fn wrong_inputs_are_refused_and_the_session_goes_on() {
    let mut session = session_of(&demo(), &PlanConfig::default());
    let before = scores(&mut session, &seven());
    let fails = |session: &mut Session, inputs: &[TensorRef<'_>], message: &str| {
        assert_eq!(session.run(inputs).unwrap_err().to_string(), message);
    };
    fails(&mut session, &[], "0 inputs are given, wanted 1: `image`");
    let flat = [TensorRef::new(&[64], &[0.0_f32; 64]).unwrap()];
    let message = "input `image` is float32 [64], wanted float32 [1, 1, 8, 8]";
    fails(&mut session, &flat, message);
    let ints = [TensorRef::new(&DIMS, &[0_i32; 64]).unwrap()];
    let message = "input `image` is int32 [1, 1, 8, 8], wanted float32 [1, 1, 8, 8]";
    fails(&mut session, &ints, message);
    let words = [0_u64; 33];
    let bytes = TensorRef::new(&[33], &words).unwrap().bytes();
    let odd = [TensorRef::from_bytes(DType::F32, &DIMS, &bytes[1..257]).unwrap()];
    fails(&mut session, &odd, "the bytes of input `image` are not aligned for float32");
    assert_eq!(scores(&mut session, &seven()), before);
}

#[test]
fn a_plan_is_for_one_graph() {
    let loaded = demo();
    let other = load(&path("testdata/onnx/mlp_mnist.onnx"), &LoadOptions::default()).unwrap();
    let planned = plan(&other.graph, &PlanConfig::default()).unwrap();
    let checked = check(&other.graph, planned.plan).unwrap();
    let program = program(&loaded, &ops::standard()).unwrap();
    let error = Session::new(program, checked, &SessionConfig::default()).unwrap_err();
    assert!(matches!(error, SessionError::WrongGraph { .. }));
    assert!(error.to_string().starts_with("the plan is for graph "));
}

#[test]
fn weights_without_values_are_named() {
    let loaded = load(&path("testdata/onnx/mlp_mnist.onnx"), &LoadOptions::default()).unwrap();
    let checked =
        check(&loaded.graph, plan(&loaded.graph, &PlanConfig::default()).unwrap().plan).unwrap();
    let program = program(&loaded, &ops::standard()).unwrap();
    let error = Session::new(program, checked, &SessionConfig::default()).unwrap_err().to_string();
    assert!(error.contains("weights have no value in the file: `"), "{error}");
}

#[test]
fn one_byte_less_than_the_arena_is_too_little() {
    let loaded = demo();
    let planned = plan(&loaded.graph, &PlanConfig::default()).unwrap().plan;
    let arena = planned.stats.arena_bytes;
    let checked = check(&loaded.graph, planned).unwrap();
    for (limit, fits) in [(arena, true), (Bytes(arena.0 - 1), false)] {
        let program = program(&loaded, &ops::standard()).unwrap();
        let mut memory = LimitedMemory::new(HostMemory::default(), limit);
        let config = SessionConfig::default();
        let made = Session::in_memory(program, checked.clone(), &config, &mut memory);
        assert_eq!(made.is_ok(), fits, "{limit}");
    }
}
