use super::*;
use crate::sample;
use lowtide_core::{
    Align, Bound, BufferId, Bytes, Event, Fingerprint, Lists, Plan, PlanStats, Proof, Step,
};

fn text(plan: &Plan) -> String {
    let mut out = Vec::new();
    write_plan(plan, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Replaces `from` in a good plan file; the message must be `wanted`.
fn check_error(from: &str, to: &str, wanted: &str) {
    let good = text(&sample::plan());
    assert!(good.contains(from), "no {from} in {good}");
    let error = read_plan(good.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
    assert!(error.contains(wanted), "{error}");
}

#[test]
fn a_plan_is_read_back_as_it_was() {
    let plan = sample::plan();
    assert_eq!(read_plan(text(&plan).as_bytes()).unwrap(), plan);
}

#[test]
fn an_empty_plan_is_read_back() {
    let plan = Plan {
        schedule: Vec::new().into(),
        bindings: Lists::new(),
        spaces: Vec::new().into(),
        buffers: Vec::new().into(),
        residences: Vec::new().into(),
        events: Vec::new(),
        order_bound: Bound::NONE,
        placement_bound: Bound { proof: Proof::Outputs, ..Bound::NONE },
        stats: PlanStats::default(),
        ..sample::plan()
    };
    assert_eq!(read_plan(text(&plan).as_bytes()).unwrap(), plan);
}

#[test]
fn every_proof_is_read_back() {
    let align = Align::new(256).unwrap();
    let items = |ids: &[u32]| Proof::Items(ids.iter().map(|&id| BufferId::new(id)).collect());
    let stacked = Proof::Stacked { step: Step(7), align };
    for proof in [stacked, items(&[]), items(&[3, 0, 9]), Proof::Search] {
        let placement_bound = Bound { bytes: Bytes(500), proof };
        let plan = Plan { placement_bound, ..sample::plan() };
        assert_eq!(read_plan(text(&plan).as_bytes()).unwrap(), plan);
    }
}

#[test]
fn each_column_stands_on_a_line_of_its_own() {
    let text = text(&sample::plan());
    let has_line = |line: &str| assert!(text.lines().any(|l| l.trim_start() == line), "{text}");
    has_line("\"schedule\":[0,1,2],");
    has_line("\"bindings\":[[null,0,2],[0,1],[1,3]],");
    has_line("\"size\":[100,{\"at_most\":100},10,null],");
    has_line("\"spaces\":[{\"kind\":\"arena\",\"size\":192},{\"kind\":\"pool\",\"size\":0}],");
}

#[test]
fn what_a_plan_means_is_not_the_readers_business() {
    let events = vec![Event::Free(lowtide_core::ResidenceId::new(u32::MAX))];
    let plan = Plan { events, ..sample::plan() };
    assert_eq!(read_plan(text(&plan).as_bytes()).unwrap(), plan);
}

#[test]
fn another_format_or_version_is_told_first() {
    check_error("lowtide-plan", "lowtide-graph", "the format is \"lowtide-graph\"");
    check_error(
        "\"version\":3",
        "\"version\":4,\"schedule\":7",
        "is 4; this reader knows version 3",
    );
    check_error("\"version\":3", "\"version\":3,\"reuse\":\"pack\"", "duplicate field `reuse`");
}

#[test]
fn wrong_entries_are_told_by_their_place() {
    check_error("[0,1,2]", "[0,1,-2]", "schedule[2] is -2; wanted a whole number");
    check_error("[1,3]]", "[1,\"r\"]]", "bindings[2][1] is \"r\"");
    check_error("{\"at_most\":100}", "1.5", "residences.size[1] is 1.5");
    check_error("[64,64,64]", "[64,65,64]", "buffers.align[1] is 65; wanted a power of two");
    check_error("[\"EXEC\",0]", "[\"JUMP\",0]", "events[2][0] is \"JUMP\"; wanted \"ALLOC\"");
    check_error("[\"EXEC\",0]", "[\"EXEC\",4294967296]", "events[2][1] is 4294967296");
    check_error("\"kind\":\"pool\"", "\"kind\":\"lake\"", "spaces[1].kind is \"lake\"");
    check_error("\"size\":192", "\"size\":null", "spaces[0].size is null");
}

#[test]
fn wrong_scalars_are_told_by_their_place() {
    check_error("\"fingerprint\":\"", "\"fingerprint\":\"x", "fingerprint is \"x");
    check_error("\"pack\"", "\"stack\"", "reuse is \"stack\"; wanted \"pack\"");
    check_error("\"caller\"", "null", "inputs is null");
    check_error("\"align\":64", "\"align\":4194304", "align is 4194304");
    check_error("\"working_set\"", "\"faith\"", "order_bound.proof.kind is \"faith\"");
    check_error("\"op\":1", "\"op\":-1", "order_bound.proof.op is -1");
    let live_sum = "\"kind\":\"live_sum\",";
    let misfit = |to, wanted| check_error(live_sum, to, wanted);
    misfit("\"kind\":\"stacked\",\"align\":3,", "placement_bound.proof.align is 3");
    misfit("\"kind\":\"items\",", "placement_bound.proof.buffers is null; wanted a list");
    misfit("\"kind\":\"items\",\"buffers\":[1,-1],", "placement_bound.proof.buffers[1] is -1");
    check_error("\"pool_tensors\":1", "\"pool_tensors\":1e30", "stats.pool_tensors is 1");
}

#[test]
fn columns_have_one_length_and_rows_one_occupant() {
    check_error(
        "\"buffer\":[0,0,1,2]",
        "\"buffer\":[0,0,1]",
        "residences.buffer has 3 entries, but residences.tensor has 4",
    );
    check_error("[1,2,null,3]", "[1,null,null,3]", "residences[1] is neither the bytes");
    check_error("[1,2,null,3]", "[1,2,5,3]", "residences[2] is the bytes of a tensor and scratch");
}

#[test]
fn what_is_not_json_is_told_with_its_line() {
    check_error("\"reuse\":\"pack\"", "\"reuse\":pack", "line 5 column");
    check_error("\"events\":[", "\"events\":[[", "line");
    check_error("\"order_rule\"", "\"ordre_rule\"", "missing field `order_rule`");
}

#[test]
fn the_description_has_the_version_and_shows_this_plan() {
    let description = include_str!("../../../../docs/plan-file.md");
    assert!(description.contains(&format!("Version: {PLAN_VERSION}\n")));
    let fingerprint = Fingerprint::parse("52b2a2aa4c8b5a3e0c1f06f4b4cf6de0").unwrap();
    let example = text(&Plan { fingerprint, ..sample::plan() });
    assert!(description.contains(&example), "{example}");
}
