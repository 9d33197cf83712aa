use super::*;
use crate::sample;
use lowtide_core::RunId;
use serde_json::Value;

fn ran(run: u32, worker: u32, [waited, start, end]: [u64; 3]) -> Ran {
    let [waited, start, end] = [waited, start, end].map(Duration::from_nanos);
    Ran { run: RunId::new(run), worker, waited, start, end }
}

fn events(ran: &[Ran]) -> Vec<Value> {
    let mut out = Vec::new();
    write_trace(&sample::graph(), &sample::plan(), ran, &mut out).unwrap();
    let trace: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(trace["displayTimeUnit"], "ns");
    trace["traceEvents"].as_array().unwrap().clone()
}

/// Events of one kind as text: time, duration if there is one, name.
fn shown(events: &[Value], ph: &str) -> Vec<String> {
    let of_kind = events.iter().filter(|event| event["ph"] == ph);
    let show = |event: &Value| {
        let dur = event.get("dur").map_or(String::new(), |dur| format!("+{dur}"));
        format!("{}/{} {}{dur} {}", event["pid"], event["tid"], event["ts"], event["name"])
    };
    of_kind.map(show).collect()
}

fn one_after_the_other() -> Vec<Value> {
    events(&[ran(2, 0, [0, 3000, 4250]), ran(0, 0, [0, 500, 1500]), ran(1, 0, [0, 1500, 2001])])
}

#[test]
fn operators_stand_in_their_rows_with_waits_before_them() {
    let events = events(&[
        ran(0, 0, [0, 0, 1500]),
        ran(1, 2, [400, 1600, 2000]),
        // As if it had waited since before it ran the one before.
        ran(2, 2, [1000, 2100, 3000]),
    ]);
    let wanted = [
        "1/0 0.0+1.5 \"conv\"",
        "1/2 1.2+0.4 \"waits\"",
        "1/2 1.6+0.4 \"relu\"",
        "1/2 2.0+0.1 \"waits\"",
        "1/2 2.1+0.9 \"Pad (op2)\"",
    ];
    assert_eq!(shown(&events, "X"), wanted);
    let names: Vec<&str> = events
        .iter()
        .filter(|event| event["ph"] == "M")
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["operators", "worker 0", "worker 2", "arena", "allocs and frees"]);
}

#[test]
fn operands_are_named_with_bytes_and_places() {
    let events = one_after_the_other();
    let conv = events.iter().find(|event| event["name"] == "conv").unwrap();
    assert_eq!(conv["cat"], "Conv");
    assert_eq!(
        conv["args"].to_string(),
        r#"{"inputs":[{"bytes":100,"name":"x"}],"op_id":0,"op_type":"Conv","outputs":[{"bytes":100,"#.to_owned()
            + r#""name":"a, \"first\"","offset":0,"residence":0}],"scratch":{"bytes":10,"name":"#
            + r#""scratch of conv","offset":128,"residence":2},"step":0}"#
    );
}

#[test]
fn bytes_follow_allocs_and_frees() {
    let events = one_after_the_other();
    let instants = [
        "2/0 0.5 \"ALLOC a, \\\"first\\\"\"",
        "2/0 0.5 \"ALLOC scratch of conv\"",
        "2/0 1.5 \"FREE scratch of conv\"",
        "2/0 1.5 \"ALLOC b\"",
        "2/0 2.001 \"FREE a, \\\"first\\\"\"",
        "2/0 3.0 \"ALLOC c\"",
        "2/0 4.25 \"FREE b\"",
    ];
    assert_eq!(shown(&events, "i"), instants);
    let counters = events.iter().filter(|event| event["ph"] == "C");
    let bytes: Vec<String> =
        counters.map(|event| format!("{} {}", event["ts"], event["args"]["bytes"])).collect();
    assert_eq!(bytes, ["0.5 192", "1.5 128", "2.001 128", "3.0 128", "4.25 0"]);
}

#[test]
fn what_was_not_measured_is_done_when_its_inputs_are() {
    let events = events(&[ran(0, 0, [0, 0, 1000]), ran(2, 0, [0, 2000, 3000])]);
    assert_eq!(shown(&events, "X").len(), 2);
    let instants = shown(&events, "i");
    assert_eq!(instants[3], "2/0 1.0 \"ALLOC b\"");
    assert_eq!(instants[4], "2/0 1.0 \"FREE a, \\\"first\\\"\"");
    assert_eq!(instants[6], "2/0 3.0 \"FREE b\"");
}

#[test]
fn nothing_ran_is_an_empty_trace() {
    assert_eq!(events(&[]), Vec::<Value>::new());
}
