//! `lowtide run`, as people type it.

use super::{lowtide, model, number, refused, run, testdata};
use lowtide::core::DType;
use lowtide::formats;
use std::fs;

fn demo(file: &str) -> String {
    testdata("../demo").join(file).display().to_string()
}

fn seven() -> String {
    format!("image={}", demo("seven.npy"))
}

#[test]
fn the_demo_tells_the_digit_and_the_memory() {
    let text = run(0, &["run", &demo("digits.onnx"), "--input", &seven(), "--repeat", "3"]);
    for part in ["class `7`", "latency", "arena", "kernels", "weights", "median"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn json_has_the_promised_fields() {
    let args = ["--input", &seven(), "--json", "--profile", "--guard", "--mode", "colour"];
    let json = run(0, &[&["run", &demo("digits.onnx")][..], &args].concat());
    let docs = include_str!("../../../../docs/json.md");
    for field in [
        "version",
        "model",
        "fingerprint",
        "mode",
        "arena_bytes",
        "outputs_bytes",
        "pool_peak_bytes",
        "kernel_bytes",
        "weights_bytes",
        "weights_copied_bytes",
        "rss_peak_bytes",
        "rss_loaded_bytes",
        "rss_run_bytes",
        "latency_ms",
        "repeats",
        "threads",
        "workers",
        "guard",
        "load_seconds",
        "outputs",
        "profile",
    ] {
        assert!(json.contains(&format!("\"{field}\": ")), "{field}: {json}");
        assert!(docs.contains(&format!("`{field}`")) || field == "version", "{field}");
    }
    assert!(json.contains("\"mode\": \"colour\"") && json.contains("\"type\": \"Conv\""), "{json}");
    assert!(number(&json, "arena_bytes") > 0);
}

#[test]
fn outputs_are_saved_and_equal_in_every_mode() {
    let dir = tempfile::tempdir().unwrap();
    let saved = |mode: &str| {
        let folder = dir.path().join(mode);
        let target = folder.display().to_string();
        let flags = ["--input", &seven(), "--mode", mode, "--guard", "--save-outputs", &target];
        run(0, &[&["run", &demo("digits.onnx")][..], &flags].concat());
        fs::read(folder.join("probabilities.npy")).unwrap()
    };
    let pack = saved("pack");
    assert_eq!(pack.len() % 64, 40, "ten elements behind a padded header");
    assert!(pack == saved("colour") && pack == saved("safe"));
}

#[test]
fn a_plan_from_a_file_is_followed_and_judged_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plan.json").display().to_string();
    let digits = demo("digits.onnx");
    run(0, &["plan", &digits, "--order", "file", "--mode", "safe", "-o", &path]);
    let json = run(0, &["run", &digits, "--input", &seven(), "--plan", &path, "--json"]);
    assert!(json.contains("\"mode\": \"safe\""), "{json}");
    let good = fs::read_to_string(&path).unwrap();
    fs::write(&path, good.replace("\"arena_bytes\":", "\"arena_bytes\":1")).unwrap();
    let message = refused(&["run", &digits, "--input", &seven(), "--plan", &path]);
    assert!(message.contains("is not a plan for"), "{message}");
}

#[test]
fn missing_and_wrong_inputs_are_named() {
    let digits = demo("digits.onnx");
    let message = refused(&["run", &digits]);
    assert!(message.contains("`image` float32 [1, 1, 8, 8]"), "{message}");
    let message = refused(&["run", &digits, "--input", &format!("picture={}", demo("seven.npy"))]);
    assert!(message.contains("`picture`") && message.contains("`image`"), "{message}");
    let message = refused(&["run", &digits, "--input", &format!("image={digits}")]);
    assert!(message.contains("is not an array that can be read"), "{message}");
    refused(&["run", &digits, "--input", &seven(), "--input", &seven()]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("small.npy");
    let mut bytes = Vec::new();
    formats::write_npy(DType::F32, &[1, 1, 8, 7], &[0; 224], &mut bytes).unwrap();
    fs::write(&file, bytes).unwrap();
    let message = refused(&["run", &digits, "--input", &format!("image={}", file.display())]);
    let wanted = "input `image` is [1, 1, 8, 7], the model declares [1, 1, 8, 8]";
    assert!(message.contains(wanted), "{message}");
    refused(&["run", &digits, "--random", "--threads", "100000"]);
    refused(&["run", &digits, "--random", "--workers", "0"]);
    refused(&["run", &digits, "--random", "--workers", "2000"]);
    refused(&["run", &digits, "--random", "--repeat", "0"]);
}

#[test]
fn several_workers_give_the_same_and_a_trace_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let net = model("mlp_mnist.onnx");
    let saved = |workers: &str, rest: &[&str]| {
        let out = file(workers);
        let args = ["run", &net, "--random", "--workers", workers, "--save-outputs", &out];
        run(0, &[&args[..], rest].concat());
        let entry = fs::read_dir(&out).unwrap().next().unwrap().unwrap();
        fs::read(entry.path()).unwrap()
    };
    let trace = file("trace.json");
    let one = saved("1", &["--guard"]);
    assert_eq!(saved("3", &["--trace", &trace]), one);
    assert_eq!(saved("2", &["--guard", "--threads", "3"]), one);
    let trace = fs::read_to_string(trace).unwrap();
    assert!(trace.contains("traceEvents") && trace.contains("Gemm"), "{trace}");
}

#[test]
fn stripped_weights_are_missed_or_made_up() {
    let kws = model("dscnn_kws.onnx");
    let message = refused(&["run", &kws]);
    assert!(message.contains("weights have no value in the file"), "{message}");
    let one = run(0, &["run", &kws, "--random", "--json"]);
    assert!(number(&one, "arena_bytes") > 0);
}

#[test]
fn what_cannot_be_run_is_listed() {
    let graph = testdata("graphs").join("tiny.json").display().to_string();
    assert!(refused(&["run", &graph, "--random"]).contains("only an ONNX model can be run"));
}

#[test]
fn dimensions_that_nobody_has_bound_are_one_and_take_the_pool() {
    let open = model("mobilenet_v2_dynamic.onnx");
    let one = run(0, &["run", &open, "--random", "--json"]);
    assert!(number(&one, "pool_peak_bytes") > 8_000, "{one}");
    assert_eq!(number(&one, "arena_bytes"), 0);
    let text = run(0, &["run", &open, "--random", "--guard", "--pool-limit", "64MiB"]);
    assert!(text.contains("[1, 1000]") && text.contains("sizes known in the run only"), "{text}");
    let size = ["--dim", "height=64", "--dim", "width=64", "--random"];
    let output = lowtide(&[&["run", &open, "--pool-limit", "64KiB"], &size[..]].concat());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("below the limit of 64.00 KiB"), "{message}");
    let bound = run(0, &[&["run", &open, "--json", "--dim", "batch=1"], &size[..]].concat());
    assert_eq!(number(&bound, "pool_peak_bytes"), 0);
}

#[test]
fn an_arena_above_the_capacity_is_an_answer() {
    let digits = demo("digits.onnx");
    let output = lowtide(&["run", &digits, "--random", "--capacity", "1KiB"]);
    assert_eq!(output.status.code(), Some(1));
    run(0, &["run", &digits, "--random", "--capacity", "1MiB"]);
}
