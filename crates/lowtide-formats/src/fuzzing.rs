//! The bodies of the fuzz targets: any bytes are an error or a value, and a value survives being written.

use crate::{
    GraphLimits, read_graph, read_npy, read_plan, read_problem, read_times, write_graph, write_npy,
    write_placement, write_plan,
};
use lowtide_core::{Bytes, Graph, Placement};

/// Reads any bytes as a graph.
///
/// # Panics
/// If a graph is not read back as it was.
pub fn fuzz_graph_json(bytes: &[u8]) {
    let limits = GraphLimits { text: Bytes(1 << 24) };
    let Ok(graph) = read_graph(bytes, &limits) else { return };
    let mut text = Vec::new();
    write_graph(&graph, &mut text).expect("a vector takes all bytes");
    let again = read_graph(&text, &GraphLimits::default()).expect("what is written can be read");
    assert_eq!(graph.tensors(), again.tensors(), "no tensor changes in a file");
    assert_eq!(graph.fingerprint(), again.fingerprint(), "nothing else changes either");
    let costs = |graph: &Graph| graph.ops().iter().map(|op| op.cost).collect::<Vec<_>>();
    assert_eq!(costs(&graph), costs(&again), "times are kept");
}

/// Reads any bytes as a plan.
///
/// # Panics
/// If a plan is not read back as it was.
pub fn fuzz_plan_file(bytes: &[u8]) {
    let Ok(plan) = read_plan(bytes) else { return };
    let mut text = Vec::new();
    write_plan(&plan, &mut text).expect("a vector takes all bytes");
    assert_eq!(read_plan(&text).expect("what is written can be read"), plan);
}

/// Reads any bytes as a placement problem.
///
/// # Panics
/// If a problem with offsets is not read back as it was.
pub fn fuzz_problem_csv(bytes: &[u8]) {
    let Ok(named) = read_problem(bytes) else { return };
    let offsets = named.ids.ids().map(|_| Bytes(64)).collect();
    let mut text = Vec::new();
    let placement = Placement { offsets, size: Bytes::ZERO };
    write_placement(&named, &placement, &mut text).expect("a vector takes all bytes");
    let again = read_problem(&text).expect("what is written can be read");
    assert_eq!(
        (&again.ids, &again.problem, &again.times),
        (&named.ids, &named.problem, &named.times)
    );
    assert!(again.offsets.iter().all(|&offset| offset == Some(Bytes(64))), "offsets are written");
    assert!(named.ids.ids().all(|id| again.space(id) == named.space(id)), "spaces are kept");
    assert_eq!(again.weights, named.weights);
}

/// Reads any bytes as times of a graph.
///
/// # Panics
/// If the graph does not take what was read.
pub fn fuzz_times_csv(graph: &Graph, bytes: &[u8]) {
    let Ok(seconds) = read_times(bytes, graph) else { return };
    graph.clone().with_costs(&seconds).expect("what is read is a time");
}

/// Reads any bytes as an array.
///
/// # Panics
/// If an array is not read back as it was.
pub fn fuzz_npy(bytes: &[u8]) {
    let Ok(array) = read_npy(bytes) else { return };
    let mut text = Vec::new();
    let written = write_npy(array.dtype(), array.dims(), array.bytes(), &mut text);
    // A header of more than 64 KiB is not written; such a shape can be read.
    if written.is_ok() {
        assert_eq!(read_npy(&text).expect("what is written can be read"), array);
    }
}

#[cfg(test)]
mod tests;
