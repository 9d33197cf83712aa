//! Large graphs of the kind that networks are: chains, branches that join, skips.
//!
//! ~~~text
//! ─ conv ─ relu ─┬─ conv ─ relu ─┐            chain: each output read once
//!                ├─ conv ────────┼─ add ─     branches: one tensor, several readers, joined
//!                └───────────────┘            skip: read again, sometimes much later
//! ~~~

use super::random_words;
use crate::{Bytes, Graph, GraphBuilder, Op, Sharing, Size, TensorId};

/// A graph of about `ops` operators, the same for the same seed on every machine. About as many tensors.
///
/// # Panics
/// Never: what it builds is a graph.
pub fn large_graph(ops: usize, seed: u64) -> Graph {
    let mut maker = Maker {
        builder: GraphBuilder::new(format!("large-{ops}-{seed}")),
        words: Box::new(random_words(seed)),
        made: 0,
    };
    let mut trunk = maker.builder.input("x", SIZES[4]);
    let mut far = Vec::new();
    while maker.made < ops {
        trunk = maker.segment(trunk, &mut far);
    }
    maker.builder.output(trunk);
    maker.builder.finish().expect("operators read what was written before")
}

const SIZES: [Size; 8] = {
    const fn of(bytes: u64) -> Size {
        Size::Fixed(Bytes(bytes))
    }
    [of(256), of(4096), of(16384), of(49152), of(65536), of(100_352), of(200_704), of(802_816)]
};

struct Maker {
    builder: GraphBuilder,
    words: Box<dyn Iterator<Item = u64>>,
    made: usize,
}

impl Maker {
    /// A number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        let word = self.words.next().expect("the words never end");
        usize::try_from(word % limit as u64).expect("below a usize")
    }

    fn op(&mut self, kind: &'static str, inputs: Vec<TensorId>, size: Size) -> TensorId {
        let output = self.builder.computed(format!("t{}", self.made), size);
        let mut op = Op::new(format!("{kind}_{}", self.made), kind, inputs, [output]);
        if kind != "Conv" {
            let of = op.inputs.clone();
            op.sharing.extend(of.into_iter().map(|of| Sharing::MayOverwrite { output, of }));
        } else if self.below(4) == 0 {
            op.scratch = SIZES[self.below(4)];
        }
        self.builder.op(op);
        self.made += 1;
        output
    }

    fn chain(&mut self, mut from: TensorId, length: usize) -> (TensorId, Size) {
        let mut size = SIZES[self.below(SIZES.len())];
        for _ in 0..length {
            size = SIZES[self.below(SIZES.len())];
            from = self.op("Conv", vec![from], size);
            from = self.op("Relu", vec![from], size);
        }
        (from, size)
    }

    /// One piece of the trunk; `far` holds tensors that a later piece may read again.
    fn segment(&mut self, trunk: TensorId, far: &mut Vec<TensorId>) -> TensorId {
        match self.below(4) {
            0 => {
                let length = 1 + self.below(8);
                self.chain(trunk, length).0
            }
            1 => self.branches(trunk),
            2 => {
                let (end, size) = self.chain(trunk, 2);
                let short = self.op("Conv", vec![trunk], size);
                self.op("Add", vec![end, short], size)
            }
            _ => self.far_skip(trunk, far),
        }
    }

    fn branches(&mut self, trunk: TensorId) -> TensorId {
        let size = SIZES[self.below(SIZES.len())];
        let mut ends = Vec::new();
        for _ in 0..2 + self.below(6) {
            let length = self.below(4);
            let (end, _) = self.chain(trunk, length);
            ends.push(self.op("Conv", vec![end], size));
        }
        self.op("Sum", ends, size)
    }

    fn far_skip(&mut self, trunk: TensorId, far: &mut Vec<TensorId>) -> TensorId {
        if far.len() < 16 {
            far.push(trunk);
            return self.chain(trunk, 1).0;
        }
        let at = self.below(far.len());
        let skipped = far.swap_remove(at);
        let (end, size) = self.chain(trunk, 1);
        let from_far = self.op("Conv", vec![skipped], size);
        self.op("Add", vec![end, from_far], size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_graph() {
        let graph = large_graph(1000, 3);
        assert!((1000..1100).contains(&graph.ops().len()), "{}", graph.ops().len());
        assert_eq!(graph.fingerprint(), large_graph(1000, 3).fingerprint());
        assert_ne!(graph.fingerprint(), large_graph(1000, 4).fingerprint());
    }
}
