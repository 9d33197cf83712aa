use super::*;
use arbitrary::Unstructured;
use lowtide::core::testing::{Limits, describe, graph, layered_random, random_bytes, random_cells};
use lowtide::{GraphBuilder, Op, Size};

/// A graph of lines `reads -> bytes`: operator i writes tensor i, what nobody reads is an output. Without reads
/// it reads the input of the graph.
fn tiny(lines: &[(&[usize], u64)]) -> Graph {
    let mut builder = GraphBuilder::new("tiny");
    let x = builder.input("x", Size::Fixed(Bytes(64)));
    let made: Vec<TensorId> = (0..lines.len())
        .map(|line| builder.computed(format!("t{line}"), Size::Fixed(Bytes(lines[line].1))))
        .collect();
    for (line, (reads, _)) in lines.iter().enumerate() {
        let inputs: Vec<TensorId> = reads.iter().map(|&read| made[read]).collect();
        let inputs = if inputs.is_empty() { vec![x] } else { inputs };
        builder.op(Op::new(format!("o{line}"), "Tiny", inputs, [made[line]]));
        if !lines.iter().any(|(reads, _)| reads.contains(&line)) {
            builder.output(made[line]);
        }
    }
    builder.finish().unwrap()
}

fn check_order(rule: Rule, lines: &[(&[usize], u64)], wanted: &[u32]) {
    let graph = tiny(lines);
    let order = rule(&Uses::new(&graph)).unwrap();
    let found: Vec<u32> = order.schedule().iter().map(|op| op.raw()).collect();
    assert_eq!(found, wanted);
}

/// A stem with two branches of two operators, joined: the first grows large and ends small, the second is small.
const BRANCHES: &[(&[usize], u64)] =
    &[(&[], 64), (&[0], 640), (&[1], 64), (&[0], 128), (&[3], 64), (&[2, 4], 64)];

#[test]
fn ort_explores_the_highest_index_first() {
    check_order(ort::default_order, BRANCHES, &[0, 3, 4, 1, 2, 5]);
}

#[test]
fn ort_begins_at_the_last_leaf() {
    check_order(ort::default_order, &[(&[], 64), (&[], 64), (&[0], 64), (&[1], 64)], &[1, 3, 0, 2]);
}

#[test]
fn post_order_takes_operands_as_they_come() {
    check_order(xla::post_order, BRANCHES, &[0, 1, 2, 3, 4, 5]);
}

#[test]
fn xla_dfs_visits_the_heavier_operand_first() {
    // Both operands of the last have one extra user above them; the second has more bytes.
    let lines: &[(&[usize], u64)] = &[(&[], 64), (&[0], 64), (&[0], 640), (&[1, 2], 64)];
    check_order(xla::dfs, lines, &[0, 2, 1, 3]);
}

#[test]
fn xla_dfs_visits_fan_out_before_bytes() {
    // Of the operands of the last, 1 has more bytes and 2 has a user more.
    let lines: &[(&[usize], u64)] =
        &[(&[], 640), (&[0], 640), (&[], 64), (&[2], 64), (&[1, 2, 3], 64)];
    check_order(xla::dfs, lines, &[2, 3, 0, 1, 4]);
}

#[test]
fn xla_list_takes_what_frees_most() {
    // After 0: 1 defines 640, 3 defines 128, neither frees. 3, then 4 (frees 128), then 1, 2, 5.
    check_order(xla::list, BRANCHES, &[0, 3, 4, 1, 2, 5]);
}

#[test]
fn xla_list_takes_the_last_that_came_of_equals() {
    check_order(xla::list, &[(&[], 64), (&[], 64), (&[0, 1], 64)], &[1, 0, 2]);
}

#[test]
fn xla_list_raises_what_became_the_last_user() {
    // Once 1 has run, 3 is the last user of 0 and frees its 640.
    let lines: &[(&[usize], u64)] =
        &[(&[], 640), (&[0], 64), (&[1], 64), (&[0], 128), (&[2, 3], 64)];
    check_order(xla::list, lines, &[0, 1, 3, 2, 4]);
}

#[test]
fn lpmf_lifts_the_peak_least() {
    check_order(inductor::lpmf, BRANCHES, &[0, 3, 4, 1, 2, 5]);
}

#[test]
fn lpmf_below_the_peak_takes_what_frees_most() {
    // At a peak of 704 after 0 and 1, 2 frees 640 and 3 nothing: both fit, 2 is first.
    let lines: &[(&[usize], u64)] =
        &[(&[], 64), (&[0], 640), (&[1], 64), (&[0], 640), (&[2, 3], 64)];
    check_order(inductor::lpmf, lines, &[0, 1, 2, 3, 4]);
}

#[test]
fn bfs_takes_what_waited_for_the_earliest() {
    check_order(inductor::bfs, BRANCHES, &[0, 1, 3, 2, 4, 5]);
}

#[test]
fn inductor_dfs_visits_by_bytes_touched() {
    // 5 touches 192, but wants 2 (704) and 4 (192) first: 0 (64) begins, then 4 with 3 before it.
    check_order(inductor::dfs, BRANCHES, &[0, 3, 4, 1, 2, 5]);
}

#[test]
fn every_rule_orders_random_graphs() {
    let mut made = 0;
    for seed in 0..300 {
        let bytes = random_bytes(seed, 1 << 12);
        let Ok(graph) = graph(&mut Unstructured::new(&bytes), Limits::all(24)) else { continue };
        made += 1;
        check_all(&graph);
    }
    assert!(made > 200, "{made} of 300");
}

#[test]
fn every_rule_orders_large_graphs() {
    check_all(&random_cells(2000, 1));
    check_all(&layered_random(2000, 12, 1));
}

fn check_all(graph: &Graph) {
    let uses = Uses::new(graph);
    for rule in PEERS.iter().flat_map(|peer| peer.rules) {
        let order = rule(&uses).expect("the graph is small");
        assert_eq!(order.len(), graph.ops().len(), "{}", describe(graph));
    }
}
