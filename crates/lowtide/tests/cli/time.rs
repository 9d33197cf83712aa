//! `lowtide plan` and time: machines, measured times, workers, the limit.

use super::{lowtide, model, number, refused, run};
use std::fs;

/// A number with a fraction in a JSON document of ours.
#[track_caller]
fn real(json: &str, field: &str) -> f64 {
    let rest = json.split(&format!("\"{field}\": ")).nth(1).unwrap();
    rest.split([',', '\n']).next().unwrap().parse().unwrap()
}

fn plan(flags: &[&str]) -> String {
    let swiftnet = model("swiftnet_like.onnx");
    run(0, &[&["plan", &swiftnet, "--json", "--effort", "fast"], flags].concat())
}

#[test]
fn the_arena_grows_where_time_is_short_and_the_makespan_is_within_the_limit() {
    let free = plan(&["--workers", "2"]);
    let quick = plan(&["--workers", "2", "--max-slowdown", "0%"]);
    assert!(number(&quick, "arena_bytes") > number(&free, "arena_bytes"));
    let least = real(&quick, "least_makespan_seconds");
    assert!(
        real(&quick, "critical_path_seconds") <= least && least <= real(&quick, "total_seconds")
    );
    assert!(quick.contains(&format!("\"makespan_seconds\": {least}")), "{quick}");
    let unlimited = plan(&["--workers", "2", "--max-slowdown", "inf"]);
    assert_eq!(number(&unlimited, "arena_bytes"), number(&free, "arena_bytes"));
}

#[test]
fn both_plans_stand_side_by_side_whichever_is_asked_for() {
    let with = plan(&["--workers", "2"]);
    let without = plan(&["--workers", "2", "--no-fences"]);
    assert!(number(&with, "fences") > 0);
    assert_eq!(number(&without, "fences"), 0);
    assert_eq!(number(&with, "fenced_arena_bytes"), number(&with, "arena_bytes"));
    assert_eq!(number(&without, "unfenced_arena_bytes"), number(&without, "arena_bytes"));
    for json in [&with, &without] {
        let [fenced, arena, bound] =
            ["fenced_arena_bytes", "unfenced_arena_bytes", "unfenced_bound_bytes"]
                .map(|field| number(json, field));
        assert!(fenced < bound && bound <= arena, "{json}");
        let [fenced, alone] = ["fenced_critical_path_seconds", "critical_path_seconds"]
            .map(|field| real(json, field));
        assert!(alone < fenced, "{json}");
    }
    let text = run(0, &["plan", &model("swiftnet_like.onnx"), "--workers", "2"]);
    assert!(text.contains("times the arena, and on 2 workers"), "{text}");
    let error = refused(&["plan", &model("chain_small.onnx"), "--mode", "colour", "--no-fences"]);
    assert!(error.contains("mode colour has no plan without fences"), "{error}");
}

#[test]
fn a_faster_machine_takes_less_time_for_the_same_graph() {
    let slow = plan(&["--machine", "flops=1e9"]);
    let fast = plan(&["--machine", "flops=1e12,bandwidth=1e12,overhead=0"]);
    assert!(real(&slow, "total_seconds") > 10.0 * real(&fast, "total_seconds"));
    let print = |json: &str| json.split("\"fingerprint\": ").nth(1).unwrap()[..34].to_owned();
    assert_eq!(print(&slow), print(&fast));
    let text = run(0, &["plan", &model("chain_small.onnx"), "--workers", "2"]);
    assert!(text.contains("critical path") && text.contains("on 2 workers"), "{text}");
}

#[test]
fn a_plan_with_measured_times_passes_check_without_them() {
    let dir = tempfile::tempdir().unwrap();
    let [times, plan] = ["times.csv", "plan.json"].map(|name| dir.path().join(name));
    let [times, plan] = [times, plan].map(|path| path.display().to_string());
    fs::write(&times, "op_id,seconds\n0,2.5\n").unwrap();
    let chain = model("chain_small.onnx");
    let json = run(0, &["plan", &chain, "--times", &times, "-o", &plan, "--json"]);
    assert!((2.5..2.6).contains(&real(&json, "critical_path_seconds")), "{json}");
    assert!(run(0, &["check", &chain, &plan]).contains("right"));
    fs::write(&times, "op_id,seconds\n0,soon\n").unwrap();
    let error = refused(&["plan", &chain, "--times", &times]);
    assert!(error.contains("line 2, column `seconds`: found `soon`, wanted a number"), "{error}");
}

#[test]
fn flags_that_mean_nothing_are_named() {
    let message = |flags: &[&str]| {
        let chain = model("chain_small.onnx");
        let output = lowtide(&[&["plan", &chain], flags].concat());
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(message(&["--max-slowdown", "5%"]).contains("wants --workers"));
    let file = message(&["--max-slowdown", "5%", "--workers", "2", "--order", "file"]);
    assert!(file.contains("--max-slowdown means nothing"), "{file}");
}
