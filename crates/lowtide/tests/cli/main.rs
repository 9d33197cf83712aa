//! The binary as people run it: exit codes, what goes to stdout and stderr, files that are written and read back.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod doctor;
mod run_command;
mod spaces;
mod time;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn testdata(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(folder)
}

fn model(name: &str) -> String {
    testdata("onnx").join(name).display().to_string()
}

/// Files of a folder of test data with one of these endings.
fn files(folder: &str, endings: &[&str]) -> Vec<String> {
    let paths = fs::read_dir(testdata(folder)).unwrap().map(|entry| entry.unwrap().path());
    let is_wanted =
        |path: &PathBuf| path.extension().is_some_and(|e| endings.contains(&e.to_str().unwrap()));
    paths.filter(is_wanted).map(|path| path.display().to_string()).collect()
}

/// All models and graphs of the tree.
fn models() -> Vec<String> {
    let mut found = Vec::new();
    for (folder, endings) in [("onnx", &["onnx"][..]), ("graphs", &["json", "gz"])] {
        found.extend(files(folder, endings));
    }
    found.sort();
    found
}

fn lowtide(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lowtide")).args(args).output().unwrap()
}

/// Standard output of a run that ends with `code`.
#[track_caller]
fn run(code: i32, args: &[&str]) -> String {
    let output = lowtide(args);
    let (out, err) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "{args:?}\n{out}\n{err}");
    out
}

/// The message of a run that could not be done.
#[track_caller]
fn refused(args: &[&str]) -> String {
    let output = lowtide(args);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}\n{err}");
    assert!(output.stdout.is_empty() && err.starts_with("error: "), "{err}");
    assert!(!err.contains("panicked"), "{err}");
    err
}

/// The number of a field in a JSON document of ours.
#[track_caller]
fn number(json: &str, field: &str) -> u64 {
    let rest =
        json.split(&format!("\"{field}\": ")).nth(1).unwrap_or_else(|| panic!("{field}: {json}"));
    rest.split([',', '\n']).next().unwrap().parse().unwrap()
}

#[test]
fn every_model_plans_and_its_plan_passes_check_in_every_mode() {
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.json").display().to_string();
    let models = models();
    assert!(models.len() > 15, "{models:?}");
    for model in &models {
        for mode in ["pack", "colour", "safe"] {
            let json = run(0, &["plan", model, "--json", "--mode", mode, "-o", &plan]);
            assert!(number(&json, "lower_bound_bytes") <= number(&json, "peak_live_bytes"));
            assert!(number(&json, "peak_live_bytes") <= number(&json, "arena_bytes"));
            assert!(number(&json, "arena_bytes") <= number(&json, "file_order_bytes"));
            assert!(run(0, &["check", model, &plan]).contains("right"));
        }
    }
}

#[test]
fn json_has_the_promised_fields() {
    let json = run(0, &["plan", &model("mobilenet_v2.onnx"), "--json"]);
    for field in [
        "version",
        "model",
        "ops",
        "tensors",
        "weights_bytes",
        "no_reuse_bytes",
        "file_order_bytes",
        "peak_live_bytes",
        "least_peak_bytes",
        "least_peak_proven",
        "lower_bound_bytes",
        "arena_bytes",
        "pool_tensors",
        "order_proven",
        "placement_proven",
        "order_rule",
        "seconds",
    ] {
        assert!(json.contains(&format!("\"{field}\": ")), "{field}: {json}");
    }
    // The figures that the file's own shapes give: 170 operators, 70 of them constants.
    assert_eq!((number(&json, "ops"), number(&json, "runs")), (170, 100));
    assert_eq!(number(&json, "arena_bytes"), 6_021_120);
}

#[test]
fn the_summary_names_the_four_figures_and_what_stands_at_the_peak() {
    let text = run(0, &["plan", &model("unet_small_128.onnx")]);
    for part in [
        "every tensor kept",
        "file order, reuse",
        "planned",
        "lower bound",
        "peak",
        "held from step",
        "┤",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn colours_are_counted_against_the_optimum() {
    let text =
        run(0, &["plan", &model("densenet121.onnx"), "--mode", "colour", "--colour-by", "end"]);
    assert!(text.contains("colours, at least 26:"), "{text}");
    assert!(text.contains("by first step") && text.contains("by last step"), "{text}");
}

#[test]
fn dimensions_are_bound_by_name() {
    // Its input and its output have the batch's name; all between has names made up by the exporter.
    let dynamic = model("mobilenet_v2_dynamic.onnx");
    let open = run(0, &["plan", &dynamic, "--json"]);
    let bound = run(0, &["plan", &dynamic, "--json", "--align", "1", "--dim", "batch=1"]);
    let most = run(0, &["plan", &dynamic, "--json", "--align", "1", "--max-dim", "batch=8"]);
    let pool = |json: &str| number(json, "pool_tensors");
    assert!(pool(&bound) < pool(&open) && pool(&most) == pool(&bound), "{open}{bound}");
    assert_eq!(8 * number(&bound, "no_reuse_bytes"), number(&most, "no_reuse_bytes"));
    assert!(run(0, &["plan", &dynamic]).contains("INCOMPLETE: 99 tensors of unknown size"));
    let message = refused(&["plan", &dynamic, "--dim", "bacth=1"]);
    assert!(message.contains("`bacth`") && message.contains("`batch`"), "{message}");
    refused(&["plan", &dynamic, "--dim", "batch"]);
    refused(&["plan", &dynamic, "--dim", "batch=1", "--dim", "batch=2"]);
    refused(&["plan", &dynamic, "--dim", "batch=18446744073709551615"]);
}

#[test]
fn tables_are_written_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (events, lifetimes) = (path("events.csv"), path("lifetimes.csv"));
    run(0, &["plan", &model("chain_small.onnx"), "--events", &events, "--lifetimes", &lifetimes]);
    let events = fs::read_to_string(events).unwrap();
    let head = "event_id,event_type,tensor_name,buffer_index,op_id,step,offset,bytes,space,worker,";
    assert!(events.starts_with(head), "{events}");
    assert!(["ALLOC", "EXEC", "FREE"].iter().all(|kind| events.contains(kind)), "{events}");
    assert!(fs::read_to_string(lifetimes).unwrap().lines().count() > 15);
    let message = refused(&["plan", &model("chain_small.onnx"), "-o", &path("no/such/folder")]);
    assert!(message.contains("no/such/folder"), "{message}");
}

#[test]
fn a_plan_that_is_wrong_is_an_answer_and_one_that_is_none_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plan.json").display().to_string();
    let chain = model("chain_small.onnx");
    run(0, &["plan", &chain, "-o", &path]);
    let good = fs::read_to_string(&path).unwrap();
    assert!(
        run(1, &["check", &model("diamond_tiny.onnx"), &path])
            .contains("the plan is for another graph")
    );
    fs::write(&path, good.replace("\"arena_bytes\":", "\"arena_bytes\":1")).unwrap();
    let json = run(1, &["check", &chain, &path, "--json"]);
    assert!(json.contains("\"ok\": false") && json.contains("statistic arena_bytes"), "{json}");
    fs::write(&path, &good[..good.len() / 2]).unwrap();
    assert!(refused(&["check", &chain, &path]).contains("is not a plan"));
    refused(&["check", &chain, "no-such-plan.json"]);
}

#[test]
fn what_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    assert!(refused(&["plan", "no-such-model.onnx"]).contains("no-such-model.onnx"));
    assert!(refused(&["plan", &file("empty.onnx", b"")]).contains("empty.onnx"));
    refused(&["plan", &file("noise.onnx", &[0x9c; 300])]);
    refused(&["plan", &file("noise.json", b"{]")]);
    refused(&["plan", &file("noise.json.gz", &[0x1f, 0x8b, 8, 0, 1, 2, 3])]);
    refused(&["plan", &dir.path().display().to_string()]);
    let twice = br#"{"format":"lowtide-graph","version":1,"name":"g",
        "tensors":[{"id":0,"name":"x","bytes":4,"kind":"input"},{"id":1,"name":"y","bytes":4,"kind":"activation"}],
        "ops":[{"id":0,"name":"a","type":"A","inputs":[0],"outputs":[1]},
               {"id":1,"name":"b","type":"B","inputs":[0],"outputs":[1]}]}"#;
    let message = refused(&["plan", &file("twice.json", twice)]);
    assert!(["`y`", "`a`", "`b`", "again"].iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn every_prefix_of_a_model_is_an_error_or_a_model() {
    let bytes = fs::read(model("diamond_tiny.onnx")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.onnx").display().to_string();
    for length in (0..bytes.len()).step_by(97) {
        fs::write(&path, &bytes[..length]).unwrap();
        let output = lowtide(&["plan", &path]);
        assert!(matches!(output.status.code(), Some(0 | 2)), "{length}: {output:?}");
    }
}

#[test]
fn over_capacity_is_an_answer_with_a_reason() {
    let unet = model("unet_small_128.onnx");
    run(0, &["plan", &unet, "--capacity", "4MiB"]);
    run(0, &["plan", &unet, "--capacity", "4194304"]);
    let output = lowtide(&["plan", &unet, "--capacity", "2.5MiB"]);
    assert_eq!(output.status.code(), Some(1));
    let reason = String::from_utf8(output.stderr).unwrap();
    assert!(reason.contains("no order can do with less than 3.50 MiB"), "{reason}");
    let hard = testdata("problems").join("A.1048576.csv").display().to_string();
    let output = lowtide(&["pack", &hard, "--capacity", "1MiB", "--effort", "fast", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("none is excluded"));
    let output = lowtide(&["pack", &hard, "--capacity", "1000KiB", "--effort", "fast"]);
    assert_eq!(output.status.code(), Some(1));
    let reason = String::from_utf8(output.stderr).unwrap();
    assert!(
        reason.contains("impossible") && reason.contains("any one of them left out"),
        "{reason}"
    );
    refused(&["plan", &unet, "--capacity", "lots"]);
}

#[test]
fn models_come_from_pipes_and_standard_input_too() {
    for name in ["graphs/tiny.json", "onnx/diamond_tiny.onnx"] {
        let bytes = fs::read(testdata(name)).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_lowtide"))
            .args(["plan", "-", "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}");
        let piped = number(&String::from_utf8(output.stdout).unwrap(), "arena_bytes");
        let path = testdata(name).display().to_string();
        assert_eq!(piped, number(&run(0, &["plan", &path, "--json"]), "arena_bytes"));
    }
    refused(&["plan", &model("chain_small.onnx"), "-o", "-"]);
}

#[test]
fn the_planned_graph_is_written_with_its_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("graph.json").display().to_string();
    let fingerprint =
        |json: String| json.split("\"fingerprint\": ").nth(1).unwrap()[..34].to_owned();
    let onnx = run(0, &["plan", &model("squeezenet1_1.onnx"), "--json", "--graph", &path]);
    assert_eq!(fingerprint(onnx), fingerprint(run(0, &["plan", &path, "--json"])));
    assert!(fs::read_to_string(path).unwrap().contains("Concat"));
}

#[test]
fn a_model_is_inspected_with_the_totals_that_people_compare() {
    let json =
        run(0, &["inspect", &model("resnet50.onnx"), "--json", "--sort", "macs", "--top", "3"]);
    // 25.5 million parameters and 4.1 billion multiplications, as is said everywhere of this network.
    assert_eq!(number(&json, "parameters"), 25_530_472);
    assert_eq!(number(&json, "macs"), 4_089_184_256);
    assert_eq!(json.matches("\"written_bytes\"").count(), 3);
    let text = run(0, &["inspect", &model("mlp_mnist.onnx")]);
    assert!(text.contains("Gemm") && text.contains("[32, 512]"), "{text}");
    let tiny = testdata("graphs/tiny.json").display().to_string();
    let bert = run(0, &["inspect", &model("bert_base_s128.onnx"), "--sort", "type"]);
    assert!(bert.contains(" view "), "{bert}");
    assert!(run(0, &["inspect", &tiny]).contains("operators of unknown cost are left out"));
}

#[test]
fn whole_shapes_of_inputs_bind_their_dimensions() {
    let dynamic = model("mobilenet_v2_dynamic.onnx");
    let bound = run(0, &["plan", &dynamic, "--json", "--shape", "x=1,3,224,224"]);
    let fixed = run(0, &["plan", &model("mobilenet_v2.onnx"), "--json"]);
    assert!(bound.contains("\"complete\": true"), "{bound}");
    assert_eq!(number(&bound, "arena_bytes"), number(&fixed, "arena_bytes"));
    assert!(refused(&["plan", &dynamic, "--shape", "y=1"]).contains("`y`"));
    refused(&["plan", &dynamic, "--shape", "x=1,3"]);
    refused(&["plan", &dynamic, "--shape", "x=1,3,a,b"]);
}

#[test]
fn a_model_is_written_in_the_planned_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.onnx").display().to_string();
    let swiftnet = model("swiftnet_like.onnx");
    // With parts in place a walk at random decides what is copied, and it starts from the file.
    let planned = run(0, &["plan", &swiftnet, "--json", "--no-parts", "--onnx", &path]);
    let again = run(0, &["plan", &path, "--json", "--no-parts", "--order", "file"]);
    assert_eq!(number(&planned, "peak_live_bytes"), number(&again, "peak_live_bytes"));
    assert_eq!(fs::metadata(&swiftnet).unwrap().len(), fs::metadata(&path).unwrap().len());
    let tiny = testdata("graphs/tiny.json").display().to_string();
    assert!(refused(&["plan", &tiny, "--onnx", &path]).contains("graph file"));
}

#[test]
fn what_is_read_is_never_written_over_and_a_failure_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::copy(model("swiftnet_like.onnx"), path("m.onnx")).unwrap();
    std::os::unix::fs::symlink(path("m.onnx"), path("link.onnx")).unwrap();
    let before = fs::read(path("m.onnx")).unwrap();
    for target in ["m.onnx", "link.onnx"] {
        for flag in ["--onnx", "-o", "--graph"] {
            let message = refused(&["plan", &path("m.onnx"), flag, &path(target)]);
            assert!(message.contains("wants another name"), "{message}");
        }
    }
    refused(&["plan", &path("m.onnx"), "--onnx", &path("o"), "--graph", &path("o")]);
    // A hard link is another name of the same file: it is replaced, the model stays.
    fs::hard_link(path("m.onnx"), path("hard.onnx")).unwrap();
    run(0, &["plan", &path("m.onnx"), "--onnx", &path("hard.onnx"), "--order", "score"]);
    assert_eq!(fs::read(path("m.onnx")).unwrap(), before);
    refused(&["plan", &path("m.onnx"), "--effort", "fast", "-o", &path("no/folder.json")]);
    let names = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(names, 3, "{:?}", fs::read_dir(dir.path()).unwrap().collect::<Vec<_>>());
}

#[test]
fn flags_that_mean_nothing_are_named() {
    let args = [
        "plan",
        &model("chain_small.onnx"),
        "--order",
        "file",
        "--alpha",
        "1",
        "--colour-by",
        "end",
    ];
    let warnings = String::from_utf8(lowtide(&args).stderr).unwrap();
    assert!(warnings.contains("--alpha") && warnings.contains("--colour-by"), "{warnings}");
}

#[test]
fn weights_of_the_score_rule_are_judged() {
    let chain = model("chain_small.onnx");
    assert!(refused(&["plan", &chain, "--alpha", "-1"]).contains("alpha"));
    assert!(refused(&["plan", &chain, "--beta", "nan"]).contains("beta"));
    run(0, &["plan", &chain, "--order", "score", "--preset", "training", "--beta", "0.9"]);
    refused(&["plan", &chain, "--align", "3"]);
}

#[test]
fn problems_are_packed_and_judged() {
    let dir = tempfile::tempdir().unwrap();
    let solved = dir.path().join("solved.csv").display().to_string();
    for path in files("problems", &["csv"]) {
        let json = run(0, &["pack", &path, "--json", "-o", &solved]);
        assert!(number(&json, "lower_bound_bytes") <= number(&json, "arena_bytes"));
        assert_eq!(
            number(&run(0, &["pack", &solved, "--check", "--json"]), "arena_bytes"),
            number(&json, "arena_bytes")
        );
        assert!(refused(&["pack", &path, "--check"]).contains("offset"));
    }
    fs::write(&solved, "id,lower,upper,size,offset\na,0,2,4,0\nb,1,3,4,3\n").unwrap();
    let text = run(1, &["pack", &solved, "--check"]);
    assert!(text.contains("`a` and `b` both take byte 3 at time 1"), "{text}");
    assert!(refused(&["pack", &solved]).contains("fixes offsets"));
    fs::write(&solved, "id,lower,upper,size\na,0,2,-4\n").unwrap();
    let message = refused(&["pack", &solved]);
    assert!(message.contains("line 2") && message.contains("-4"), "{message}");
}

#[test]
fn what_lay_somewhere_stays_there_and_what_moved_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (old, new) = (path("old.csv"), path("new.csv"));
    fs::write(&old, "id,lower,upper,size,offset\na,0,4,8,16\nb,2,6,8,0\nc,5,9,4,8\n").unwrap();
    // `c` has grown into `b`, `d` is new.
    fs::write(&new, "id,lower,upper,size\nb,2,6,8\na,0,4,8\nc,5,9,20\nd,0,2,8\n").unwrap();
    let text = run(0, &["pack", &new, "--keep", &old]);
    assert!(text.contains("arena        28 B, optimal, proven"), "{text}");
    assert!(text.contains("moved        0 of those"), "{text}");
    let output = lowtide(&["pack", &new, "--keep", &old, "--capacity", "20"]);
    assert_eq!(output.status.code(), Some(1));
    let json = run(0, &["pack", &old, "--keep", &old, "--json"]);
    assert!(json.contains("\"moved\": []"), "{json}");
    refused(&["pack", &new, "--keep", &path("none.csv")]);
}

#[test]
fn a_bound_names_the_time_of_its_table() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.csv").display().to_string();
    fs::write(&path, "id,lower,upper,size\na,10,30,8\nb,700,900,9\n").unwrap();
    assert!(run(0, &["pack", &path]).contains("live at time 700"));
    assert!(run(0, &["pack", &path, "--json"]).contains("live at time 700"));
    assert_eq!(lowtide(&["pack", &path, "--capacity", "6EiB"]).status.code(), Some(0));
}

#[test]
fn reserved_bytes_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (problem, solved) = (path("p.csv"), path("solved.csv"));
    fs::write(&problem, "id,lower,upper,size\na,0,2,10\nb,1,3,30\n").unwrap();
    let args = ["pack", &problem, "--reserve", "10:10", "-o", &solved];
    assert!(run(0, &args).contains("2 buffers"));
    assert_eq!(fs::read_to_string(&solved).unwrap().lines().count(), 3);
    let text = fs::read_to_string(&solved).unwrap();
    assert!(text.contains("a,0,2,10,0") && text.contains("b,1,3,30,20"), "{text}");
    refused(&["pack", &problem, "--reserve", "10"]);
    refused(&["pack", &problem, "--reserve", "10:0"]);
    refused(&["pack", &problem, "--reserve", "0:4611686018427387905"]);
    let message = refused(&["pack", &problem, "--reserve", "0:10", "--reserve", "5:10"]);
    assert!(message.contains("reserved 0:10") && message.contains("reserved 5:10"), "{message}");
}

#[test]
fn the_problem_of_a_plan_packs_as_the_plan_does() {
    let dir = tempfile::tempdir().unwrap();
    let problem = dir.path().join("problem.csv").display().to_string();
    for name in ["unet_small_128.onnx", "chain_small.onnx"] {
        let plan = run(0, &["plan", &model(name), "--problem", &problem, "--json"]);
        let packed = run(0, &["pack", &problem, "--json"]);
        assert_eq!(number(&packed, "arena_bytes"), number(&plan, "arena_bytes"), "{name}");
    }
}

#[test]
fn a_search_says_why_it_stopped() {
    let hard = testdata("problems").join("A.1048576.csv").display().to_string();
    let stopped = |more: &[&str]| {
        let output = lowtide(&[&["pack", &hard, "--json"], more].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(stopped(&["--time-limit", "0"]).contains("\"stopped\": \"ended\""));
    assert!(stopped(&["--effort", "fast"]).contains("\"stopped\": \"out_of_steps\""));
    assert!(stopped(&["--capacity", "2MiB"]).contains("\"stopped\": \"at_goal\""));
    refused(&["pack", &hard, "--time-limit", "-1"]);
    refused(&["pack", &hard, "--time-limit", "soon"]);
    let chain = model("chain_small.onnx");
    run(0, &["plan", &chain, "--time-limit", "5"]);
}

#[test]
fn mobilenets_meet_their_bound() {
    for name in ["mobilenet_v1_224_f32.csv", "mobilenet_v2_224_f32.csv"] {
        let path = testdata("problems").join(name).display().to_string();
        assert!(run(0, &["pack", &path]).contains("optimal, proven"));
    }
}

#[test]
fn equal_input_gives_equal_files() {
    let dir = tempfile::tempdir().unwrap();
    let plan = |name: &str| {
        let path = dir.path().join(name).display().to_string();
        run(0, &["plan", &model("googlenet.onnx"), "-o", &path]);
        fs::read(path).unwrap()
    };
    assert_eq!(plan("first.json"), plan("second.json"));
}

#[test]
fn help_names_every_command_and_a_closed_pipe_is_no_error() {
    let help = run(0, &["--help"]);
    assert!(
        ["plan", "check", "pack", "Exit codes"].iter().all(|word| help.contains(word)),
        "{help}"
    );
    assert_eq!(lowtide(&["plan"]).status.code(), Some(2));
    let mut child = Command::new(env!("CARGO_BIN_EXE_lowtide"))
        .args(["plan", &model("googlenet.onnx")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
