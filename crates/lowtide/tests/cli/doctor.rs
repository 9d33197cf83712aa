//! `lowtide doctor`, as people type it: on plans that are right, edited by hand, and none.

use super::{lowtide, model, number, refused, run, testdata};
use std::fs;
use std::path::Path;

fn demo() -> String {
    testdata("../demo/digits.onnx").display().to_string()
}

fn seven() -> String {
    format!("image={}", testdata("../demo/seven.npy").display())
}

/// A plan file of the demo in the order of its file.
fn plan_file(folder: &Path) -> String {
    let path = folder.join("plan.json").display().to_string();
    run(0, &["plan", &demo(), "--order", "file", "-o", &path]);
    path
}

/// The plan with the FREE of the last convolution's input a step earlier: `["FREE",x],` goes to before `["EXEC",67]`.
fn cut_short(plan: &str) -> String {
    let last = "[\"EXEC\",67],";
    let at = plan.find(last).unwrap() + last.len();
    let (before, after) = plan.split_at(at);
    let end = after.find(']').unwrap() + 2;
    let (free, after) = after.split_at(end);
    assert!(free.starts_with("[\"FREE\","), "{free}");
    format!("{}{free}{last}{after}", before.strip_suffix(last).unwrap())
}

#[test]
fn a_sound_plan_agrees_with_safe_mode() {
    let dir = tempfile::tempdir().unwrap();
    let text = run(0, &["doctor", &demo(), "--input", &seven()]);
    assert!(text.contains("of 73 runs agree with safe mode"), "{text}");
    assert!(text.contains("the checker finds no fault"), "{text}");
    let path = plan_file(dir.path());
    let json = run(0, &["doctor", &demo(), "--random", "--seed", "3", "--plan", &path, "--json"]);
    assert!(json.contains("\"ok\": true") && !json.contains("\"finding\""), "{json}");
    assert_eq!((number(&json, "runs"), number(&json, "steps")), (73, 73));
    run(0, &["doctor", &model("dscnn_kws.onnx"), "--random", "--mode", "colour"]);
}

#[test]
fn a_plan_edited_by_hand_is_followed_to_the_pair_to_blame() {
    let dir = tempfile::tempdir().unwrap();
    let path = plan_file(dir.path());
    let good = fs::read_to_string(&path).unwrap();
    fs::write(&path, cut_short(&good)).unwrap();
    refused(&["run", &demo(), "--input", &seven(), "--plan", &path]);
    let text = run(1, &["doctor", &demo(), "--input", &seven(), "--plan", &path]);
    for part in [
        "67 of 73 runs agree with safe mode, then a tensor is wrong",
        "`fan2.sum` is wrong as input 0 of `last.conv` (Conv) in step 67",
        "is NaN, wanted ",
        "victim   `fan2.sum`: residence ",
        "held in step 66, needed in steps 66 to 67",
        "written by `fan2.sum` (Add) in step 66",
        "read by `last.conv` (Conv) in step 67",
        "why      `fan2.sum` is freed after step 66 and needed up to step 67: one step short",
        "the checker finds 2 faults:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = run(1, &["doctor", &demo(), "--input", &seven(), "--plan", &path, "--json"]);
    assert!(
        json.contains("\"ok\": false") && json.contains("\"cause\": \"freed_early\""),
        "{json}"
    );
    assert_eq!(number(&json, "runs"), 67);
}

#[test]
fn every_field_is_described() {
    let docs = include_str!("../../../../docs/json.md");
    let part = docs.split("## `lowtide doctor --json`").nth(1).unwrap();
    for field in [
        "model",
        "plan",
        "ok",
        "steps",
        "runs",
        "compared",
        "finding",
        "faults",
        "tensor",
        "operand",
        "seen",
        "cause",
        "why",
        "difference",
        "victim",
        "culprit",
        "writer",
        "element",
        "address",
        "found",
        "wanted",
        "bytes",
        "residence",
        "name",
        "buffer",
        "start",
        "end",
        "held",
        "needed",
        "writers",
        "readers",
        "is_output",
        "step",
        "op",
        "type",
    ] {
        assert!(part.contains(&format!("`{field}`")), "{field}");
    }
}

#[test]
fn what_cannot_be_followed_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = plan_file(dir.path());
    let good = fs::read_to_string(&path).unwrap();
    let message = |text: &str| {
        fs::write(&path, text).unwrap();
        refused(&["doctor", &demo(), "--random", "--plan", &path])
    };
    let broken = message(&good.replace("[\"EXEC\",67]", "[\"EXEC\",167]"));
    assert!(broken.contains("cannot be followed"), "{broken}");
    assert!(broken.contains("names is 167, but there are only 73"), "{broken}");
    assert!(message(&good[..good.len() / 2]).contains("is not a plan that can be read"));
    let larger = message(&good.replace("\"arena_bytes\":", "\"arena_bytes\":999"));
    assert!(larger.contains("more than 4 times what safe mode takes"), "{larger}");
    assert!(
        message(&good.replace("\"arena_bytes\":", "\"arena_bytes\":1,\"old\":"))
            .contains("no place in the arena")
    );
    fs::write(&path, good).unwrap();
    let other = lowtide(&["doctor", &model("dscnn_kws.onnx"), "--random", "--plan", &path]);
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8(other.stderr).unwrap().contains("the plan is for graph "));
    assert!(refused(&["doctor", &demo(), "--plan", &path]).contains("no values are given for"));
    assert!(refused(&["doctor", "no-such.onnx"]).contains("no-such.onnx"));
    refused(&["doctor", &demo(), "--random", "--plan", "no-such-plan.json"]);
    refused(&["doctor", &demo(), "--random", "--plan", &path, "--mode", "safe"]);
    let graph = testdata("graphs").join("tiny.json").display().to_string();
    assert!(refused(&["doctor", &graph, "--random"]).contains("only an ONNX model can be run"));
}
