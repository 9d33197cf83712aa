//! Networks of known structure, small enough to look at: other graphs than those a corpus happens to hold.

use super::net::{Map, Net};
use crate::Graph;

/// Builds a network, and returns its output.
type Build = fn(&mut Net) -> Map;

/// All of them, each with a name.
///
/// # Panics
/// Never: what they build are graphs.
pub fn structured_nets() -> Vec<Graph> {
    let build: [(&str, Build); 11] = [
        ("unet", unet),
        ("dense-flat", dense_flat),
        ("dense-nested", dense_nested),
        ("inception", inception),
        ("swift-cell", swift_cell),
        ("randwire-16", |net| randwire(net, 16)),
        ("randwire-32", |net| randwire(net, 32)),
        ("yolo", yolo),
        ("pyramid", pyramid),
        ("hourglass", hourglass),
        ("resnext", resnext),
    ];
    let nets = build.into_iter().map(|(name, body)| {
        let mut net = Net::new(name, 1);
        let end = body(&mut net);
        net.output(end.id);
        net.finish()
    });
    nets.collect()
}

fn unet(net: &mut Net) -> Map {
    let mut x = net.image(3, 128);
    let mut skips = Vec::new();
    for depth in 0..4 {
        let shape = (16 << depth, x.side);
        x = net.block(x, shape, 3);
        x = net.block(x, shape, 3);
        skips.push(x);
        x = net.pool(x, x.side / 2);
    }
    x = net.block(x, (256, x.side), 3);
    for skip in skips.into_iter().rev() {
        let up = net.upsample(x);
        let joined = net.join(&[up, skip]);
        x = net.block(joined, (skip.channels, skip.side), 3);
        x = net.block(x, (skip.channels, skip.side), 3);
    }
    net.conv(x, (2, x.side), 1)
}

/// Each layer reads one concat of all maps before.
fn dense_flat(net: &mut Net) -> Map {
    let image = net.image(3, 56);
    let mut x = net.block(image, (24, 56), 3);
    for _ in 0..3 {
        let mut maps = vec![x];
        for _ in 0..6 {
            let joined = net.join(&maps);
            maps.push(dense_layer(net, joined));
        }
        let joined = net.join(&maps);
        x = net.block(joined, (joined.channels / 2, joined.side), 1);
        x = net.pool(x, x.side / 2);
    }
    x
}

/// Each layer appends its map to the concat before.
fn dense_nested(net: &mut Net) -> Map {
    let image = net.image(3, 56);
    let mut x = net.block(image, (24, 56), 3);
    for _ in 0..3 {
        for _ in 0..6 {
            let new = dense_layer(net, x);
            x = net.join(&[x, new]);
        }
        x = net.block(x, (x.channels / 2, x.side), 1);
        x = net.pool(x, x.side / 2);
    }
    x
}

fn dense_layer(net: &mut Net, x: Map) -> Map {
    let y = net.norm(x);
    let y = net.relu(y);
    let y = net.block(y, (48, x.side), 1);
    net.conv(y, (12, x.side), 3)
}

fn inception(net: &mut Net) -> Map {
    let image = net.image(3, 56);
    let mut x = net.block(image, (64, 28), 7);
    for width in [16, 24, 32, 32, 40] {
        let side = x.side;
        let point = net.block(x, (2 * width, side), 1);
        let thin = net.block(x, (3 * width, side), 1);
        let wide = net.block(thin, (4 * width, side), 3);
        let thin = net.block(x, (width / 2, side), 1);
        let wider = net.block(thin, (width, side), 5);
        let pooled = net.pool(x, side);
        let pooled = net.block(pooled, (width, side), 1);
        x = net.join(&[point, wide, wider, pooled]);
    }
    x
}

/// Cells whose nodes read several earlier nodes of any distance, joined without an order that is obvious.
fn swift_cell(net: &mut Net) -> Map {
    let image = net.image(3, 64);
    let mut x = net.block(image, (16, 32), 3);
    for _ in 0..3 {
        let mut nodes = vec![x];
        for number in 1..8_usize {
            let sources = [number - 1, number / 2, number * 2 / 3];
            let channels = 8 * (1 + number as u64 % 4);
            let maps = sources.map(|source| net.conv(nodes[source], (channels, x.side), 1));
            let sum = net.add_maps(maps[0], maps[1]);
            let sum = net.add_maps(sum, maps[2]);
            nodes.push(net.relu(sum));
        }
        let joined = net.join(&nodes[3..]);
        x = net.block(joined, (32, x.side / 2), 3);
    }
    x
}

/// Three stages wired at random, each of half the resolution.
fn randwire(net: &mut Net, nodes: usize) -> Map {
    let image = net.image(3, 64);
    let mut x = net.block(image, (24, 32), 3);
    for _ in 0..3 {
        let ends = wired_stage(net, x, nodes);
        let sum = sum(net, &ends);
        x = net.block(sum, (x.channels * 2, x.side / 2), 3);
    }
    x
}

/// A line of near neighbours, some of whose edges go elsewhere, all forward; returns what nobody reads.
fn wired_stage(net: &mut Net, x: Map, nodes: usize) -> Vec<Map> {
    let mut maps: Vec<Map> = Vec::new();
    let mut is_read = vec![false; nodes];
    for number in 0..nodes {
        let mut sources: Vec<usize> = (1..=2).filter_map(|near| number.checked_sub(near)).collect();
        for source in &mut sources {
            if net.below(4) == 0 {
                *source = net.below(number);
            }
        }
        sources.dedup();
        for &source in &sources {
            is_read[source] = true;
        }
        let read: Vec<Map> = sources.iter().map(|&source| maps[source]).collect();
        let y = if read.is_empty() { x } else { sum(net, &read) };
        let y = net.relu(y);
        let y = net.depthwise(y, x.side, 3);
        let y = net.conv(y, (x.channels, x.side), 1);
        maps.push(net.norm(y));
    }
    (0..nodes).filter(|&node| !is_read[node]).map(|node| maps[node]).collect()
}

fn sum(net: &mut Net, maps: &[Map]) -> Map {
    let mut sum = maps[0];
    for &map in &maps[1..] {
        sum = net.add_maps(sum, map);
    }
    sum
}

/// Half of the channels pass by, the other half goes through bottlenecks that are all joined in the end.
fn split_stage(net: &mut Net, x: Map, depth: usize) -> Map {
    let half = x.channels / 2;
    let mut maps = vec![net.slice(x, 0, half), net.slice(x, half, half)];
    for _ in 0..depth {
        let last = maps[maps.len() - 1];
        let y = net.block(last, (half, x.side), 3);
        let y = net.block(y, (half, x.side), 3);
        maps.push(net.add_maps(last, y));
    }
    let joined = net.join(&maps);
    net.block(joined, (x.channels, x.side), 1)
}

fn yolo(net: &mut Net) -> Map {
    let image = net.image(3, 128);
    let mut x = net.block(image, (16, 64), 3);
    let mut levels = Vec::new();
    for depth in [1, 2, 2, 1] {
        x = net.block(x, (x.channels * 2, x.side / 2), 3);
        x = split_stage(net, x, depth);
        levels.push(x);
    }
    for level in levels.iter().rev().skip(1).take(2) {
        let up = net.upsample(x);
        let joined = net.join(&[up, *level]);
        x = net.block(joined, (level.channels, level.side), 1);
        x = split_stage(net, x, 1);
    }
    net.conv(x, (85, x.side), 1)
}

/// Features of all levels, brought to the finest and summed.
fn pyramid(net: &mut Net) -> Map {
    let mut x = net.image(3, 128);
    let mut levels = Vec::new();
    for depth in 0..4 {
        x = net.block(x, (16 << depth, x.side / 2), 3);
        levels.push(x);
    }
    let mut top: Option<Map> = None;
    let mut heads = Vec::new();
    for &level in levels.iter().rev() {
        let mut side = net.conv(level, (32, level.side), 1);
        if let Some(above) = top {
            let up = net.upsample(above);
            side = net.add_maps(side, up);
        }
        top = Some(side);
        let mut head = net.block(side, (16, side.side), 3);
        while head.side < levels[0].side {
            head = net.upsample(head);
        }
        heads.push(head);
    }
    let joined = net.join(&heads);
    net.conv(joined, (8, joined.side), 1)
}

fn hourglass(net: &mut Net) -> Map {
    let image = net.image(3, 64);
    let mut x = net.block(image, (32, 64), 3);
    for _ in 0..2 {
        let skip = x;
        x = hourglass_level(net, x, 4);
        x = net.add_maps(x, skip);
    }
    x
}

fn hourglass_level(net: &mut Net, x: Map, depth: usize) -> Map {
    let upper = net.block(x, (x.channels, x.side), 3);
    let lower = net.pool(x, x.side / 2);
    let mut lower = net.block(lower, (x.channels, lower.side), 3);
    if depth > 1 {
        lower = hourglass_level(net, lower, depth - 1);
    }
    let lower = net.block(lower, (x.channels, lower.side), 3);
    let lower = net.upsample(lower);
    net.add_maps(upper, lower)
}

/// Many thin paths side by side, summed into the trunk.
fn resnext(net: &mut Net) -> Map {
    let image = net.image(3, 64);
    let mut x = net.block(image, (64, 32), 3);
    for _ in 0..3 {
        let mut sum = x;
        for _ in 0..8 {
            let thin = net.block(x, (8, x.side), 1);
            let thin = net.block(thin, (8, x.side), 3);
            let path = net.conv(thin, (x.channels, x.side), 1);
            sum = net.add_maps(sum, path);
        }
        x = net.relu(sum);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nets_differ_and_are_always_the_same() {
        let (nets, again) = (structured_nets(), structured_nets());
        let prints: Vec<_> = nets.iter().map(Graph::fingerprint).collect();
        assert_eq!(prints, again.iter().map(Graph::fingerprint).collect::<Vec<_>>());
        let distinct: std::collections::BTreeSet<_> =
            prints.iter().map(|p| format!("{p:?}")).collect();
        assert_eq!(distinct.len(), nets.len());
        let counts: Vec<usize> = nets.iter().map(|net| net.ops().len()).collect();
        assert!(counts.iter().all(|count| (30..500).contains(count)), "{counts:?}");
    }
}
