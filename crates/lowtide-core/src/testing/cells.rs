//! Networks of random cells, as searches for architectures make them.
//!
//! ~~~text
//! two cells before ─ adapt ─┬─ op ─ add ─┬─ op ─ add ─┐        5 or 6 blocks of two operators each, on any
//!                           └─ op ──┘    └─ op ──┘    concat   two states; unused blocks are concatenated
//! ~~~

use super::net::{Map, Net};
use crate::Graph;

/// Parts of the network with their own resolution and channels.
const STAGES: usize = 4;

/// A network of random cells with about `ops` operators, the same for the same seed on every machine.
///
/// # Panics
/// Never: what it builds is a graph.
pub fn random_cells(ops: usize, seed: u64) -> Graph {
    let mut net = Net::new(format!("cells-{ops}-{seed}"), seed);
    let image = net.image(3, 64);
    let stem = net.block(image, (16, 64), 3);
    let mut last = [stem, stem];
    while net.made() < ops {
        let stage = STAGES * net.made() / ops;
        let next = cell(&mut net, last, stage);
        last = [last[1], next];
    }
    net.output(last[1].id);
    net.finish()
}

/// One cell on the outputs of the two cells before.
pub(super) fn cell(net: &mut Net, before: [Map; 2], stage: usize) -> Map {
    let channels = (4_u64 << stage) * net.pick(&[3, 4, 5, 6]);
    let shape = (channels, 64 >> stage);
    let mut states: Vec<Map> = before.iter().map(|&map| adapt(net, map, shape)).collect();
    let mut is_used = vec![true; 2];
    for block in 0..5 + net.below(2) {
        let mut ends = [0, 1];
        if block > 0 {
            ends = [net.below(states.len()), net.below(states.len())];
        }
        for end in ends {
            is_used[end] = true;
        }
        let [a, b] = ends.map(|end| random_op(net, states[end]));
        states.push(net.add_maps(a, b));
        is_used.push(false);
    }
    let unused: Vec<Map> =
        states.iter().zip(&is_used).filter(|&(_, &used)| !used).map(|(&map, _)| map).collect();
    net.join(&unused)
}

fn adapt(net: &mut Net, x: Map, shape: (u64, u64)) -> Map {
    let x = net.relu(x);
    let x = net.conv(x, shape, 1);
    net.norm(x)
}

fn random_op(net: &mut Net, x: Map) -> Map {
    match net.below(8) {
        0 => x,
        1 | 2 => net.pool(x, x.side),
        3 | 4 => separable(net, x, 3),
        5 => separable(net, x, 5),
        _ => {
            let half = separable(net, x, 3);
            separable(net, half, 3)
        }
    }
}

fn separable(net: &mut Net, x: Map, kernel: u64) -> Map {
    let y = net.relu(x);
    let y = net.depthwise(y, y.side, kernel);
    let y = net.conv(y, (x.channels, x.side), 1);
    net.norm(y)
}
