//! Graphs without the structure of a network: layered random ones, and mixtures of all kinds.

use super::cells::cell;
use super::net::{Map, Net};
use crate::{Graph, TensorId};
use std::ops::Range;

const KIB: u64 = 1024;

/// How many layers back an operator may read.
const REACH: usize = 3;

/// A layered random graph: each operator of a layer of `width` reads one to three outputs of the last few
/// layers; sizes are random, 1 to 64 KiB; a last operator reads all that nothing else has read, about an eighth.
///
/// # Panics
/// If `width` is 0.
pub fn layered_random(ops: usize, width: usize, seed: u64) -> Graph {
    layered(format!("layered-{ops}-{width}-{seed}"), (ops, width), seed, false)
}

/// [`layered_random`], but what nothing has read is read first, so that next to nothing is left for the last operator:
/// the same width all along, and no working set that bounds the whole.
///
/// # Panics
/// If `width` is 0.
pub fn layered_woven(ops: usize, width: usize, seed: u64) -> Graph {
    layered(format!("woven-{ops}-{width}-{seed}"), (ops, width), seed, true)
}

fn layered(name: String, size: (usize, usize), seed: u64, is_woven: bool) -> Graph {
    let mut net = Net::new(name, seed);
    let x = net.input(64 * KIB);
    let left = layers(&mut net, x, size, is_woven);
    let end = net.op("Sink", &left, KIB);
    net.output(end);
    net.finish()
}

/// Layers of operators below `x`; returns what nothing has read.
fn layers(
    net: &mut Net,
    x: TensorId,
    (ops, width): (usize, usize),
    is_woven: bool,
) -> Vec<TensorId> {
    let mut made: Vec<TensorId> = Vec::with_capacity(ops);
    let mut is_read = vec![false; ops];
    let mut oldest_unread = 0;
    for number in 0..ops {
        // Reading stays within layers that are complete, the oldest unread first, so that little is left over.
        let end = number / width * width;
        while oldest_unread < end && is_read[oldest_unread] {
            oldest_unread += 1;
        }
        let start = end.saturating_sub(REACH * width);
        let unread = if is_woven { oldest_unread } else { end };
        let reads = draw_reads(net, unread, start..end);
        for &read in &reads {
            is_read[read] = true;
        }
        let inputs: Vec<TensorId> = reads.iter().map(|&read| made[read]).collect();
        let inputs = if inputs.is_empty() { vec![x] } else { inputs };
        let bytes = KIB * (1 + net.below(64) as u64);
        made.push(net.op("Random", &inputs, bytes));
    }
    (0..ops).filter(|&number| !is_read[number]).map(|number| made[number]).collect()
}

/// Up to three operators of `from`, the first of them `unread` if it is that far; none if there is none.
fn draw_reads(net: &mut Net, unread: usize, from: Range<usize>) -> Vec<usize> {
    let mut reads: Vec<usize> = (unread < from.end).then_some(unread).into_iter().collect();
    let more = net.below(3);
    if !from.is_empty() {
        reads.extend((reads.len()..=more).map(|_| from.start + net.below(from.len())));
    }
    reads.sort_unstable();
    reads.dedup();
    reads
}

/// A mixture of cells, residual blocks, branches and layered parts with about this many tensors, weights included.
///
/// # Panics
/// Never: what it builds is a graph.
pub fn many_tensors(tensors: usize, seed: u64) -> Graph {
    let mut net = Net::new(format!("mixture-{tensors}-{seed}"), seed);
    let mut trunk = net.image(3, 32);
    while net.tensors() < tensors {
        trunk = part(&mut net, trunk);
    }
    net.output(trunk.id);
    net.finish()
}

fn part(net: &mut Net, trunk: Map) -> Map {
    let stage = 1 + net.below(3);
    let shape = (net.pick(&[16, 24, 32, 64]), 64 >> stage);
    match net.below(4) {
        0 => {
            let first = cell(net, [trunk, trunk], stage);
            cell(net, [trunk, first], stage)
        }
        1 => {
            let short = net.conv(trunk, shape, 1);
            let long = net.block(short, shape, 3);
            let long = net.conv(long, shape, 3);
            net.add_maps(long, short)
        }
        2 => {
            let branches = 2 + net.below(4);
            let ends: Vec<Map> = (0..branches).map(|_| net.block(trunk, shape, 3)).collect();
            net.join(&ends)
        }
        _ => {
            let size = (20 + net.below(60), 2 + net.below(8));
            let left = layers(net, trunk.id, size, true);
            let (channels, side) = shape;
            let id = net.op("Sink", &left, 4 * channels * side * side);
            Map { id, channels, side }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{random_cells, transformer_training};
    use super::*;
    use crate::Sharing;

    fn check(make: impl Fn(u64) -> Graph, wanted: usize, count: impl Fn(&Graph) -> usize) {
        let (graph, again, other) = (make(5), make(5), make(9));
        assert_eq!(graph.fingerprint(), again.fingerprint());
        assert_ne!(graph.fingerprint(), other.fingerprint());
        let counts = [&graph, &other].map(count);
        let near = wanted * 9 / 10..=wanted * 11 / 10;
        assert!(counts.iter().all(|count| near.contains(count)), "{counts:?}, wanted {wanted}");
    }

    fn ops(graph: &Graph) -> usize {
        graph.ops().len()
    }

    #[test]
    fn random_cells_have_the_size_asked_for() {
        check(|seed| random_cells(2000, seed), 2000, ops);
    }

    #[test]
    fn training_steps_have_the_size_asked_for() {
        check(|seed| transformer_training(2000, seed), 2000, ops);
        check(|seed| transformer_training(2000, seed + 2), 2000, ops);
    }

    #[test]
    fn layered_graphs_have_the_size_asked_for() {
        check(|seed| layered_random(1000, 12, seed), 1001, ops);
        check(|seed| layered_woven(1000, 12, seed), 1001, ops);
    }

    #[test]
    fn mixtures_have_the_size_asked_for() {
        check(|seed| many_tensors(3000, seed), 3000, |graph| graph.tensors().len());
    }

    #[test]
    fn only_the_end_of_a_woven_graph_is_unread() {
        let graph = layered_woven(1000, 12, 3);
        let sink = graph.ops().ids().next_back().expect("a graph of many operators");
        assert!(graph.reads(sink).len() <= 36, "{}", graph.reads(sink).len());
    }

    #[test]
    fn gradients_are_kept_or_consumed() {
        let kept = |seed| {
            let graph = transformer_training(500, seed);
            let outputs = graph.tensors().iter().filter(|tensor| tensor.is_output);
            outputs.filter_map(|tensor| tensor.size.fixed()).map(|bytes| bytes.0).sum::<u64>()
        };
        assert_eq!(kept(1), 4, "the loss alone");
        assert!(kept(2) > 1 << 20, "{}", kept(2));
    }

    #[test]
    fn cells_carry_parts_and_permissions() {
        let graph = random_cells(500, 1);
        let sharing = || graph.ops().iter().flat_map(|op| &op.sharing);
        assert!(sharing().any(|sharing| matches!(sharing, Sharing::PartOf { .. })));
        assert!(sharing().any(|sharing| matches!(sharing, Sharing::MayOverwrite { .. })));
    }
}
