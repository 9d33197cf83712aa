//! What the generators of networks have in common: tensors that know their sizes, operators with the permissions
//! that the real ones have, and numbers from a seed.

use super::random_words;
use crate::{Bytes, Graph, GraphBuilder, IndexVec, Op, Sharing, Size, TensorId};

/// Bytes a second that an operator moves: gives costs in a sensible proportion.
const BYTES_PER_SECOND: f64 = 1e10;

/// Floating point operations a second.
const FLOPS_PER_SECOND: f64 = 1e11;

/// Seconds for so many bytes or operations.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn seconds(count: u64, per_second: f64) -> f64 {
    count as f64 / per_second
}

/// A network that is being built.
pub(super) struct Net {
    builder: GraphBuilder,
    words: Box<dyn Iterator<Item = u64>>,
    sizes: IndexVec<TensorId, u64>,
    made: usize,
}

impl Net {
    pub(super) fn new(name: impl Into<Box<str>>, seed: u64) -> Self {
        let (builder, words) = (GraphBuilder::new(name), Box::new(random_words(seed)));
        Self { builder, words, sizes: IndexVec::new(), made: 0 }
    }

    /// Operators so far.
    pub(super) fn made(&self) -> usize {
        self.made
    }

    /// Tensors so far, weights included.
    pub(super) fn tensors(&self) -> usize {
        self.sizes.len()
    }

    pub(super) fn size(&self, tensor: TensorId) -> u64 {
        self.sizes[tensor]
    }

    /// A number below `limit`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        let word = self.words.next().expect("the words never end");
        usize::try_from(word % limit as u64).expect("below a usize")
    }

    /// One of these.
    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub(super) fn input(&mut self, bytes: u64) -> TensorId {
        self.sizes.push(bytes);
        self.builder.input("x", Size::Fixed(Bytes(bytes)))
    }

    pub(super) fn weight(&mut self, bytes: u64) -> TensorId {
        self.sizes.push(bytes);
        self.builder.weight(format!("w{}", self.made), Size::Fixed(Bytes(bytes)))
    }

    fn computed(&mut self, bytes: u64) -> TensorId {
        self.sizes.push(bytes);
        let name = format!("t{}", self.sizes.len());
        self.builder.computed(name, Size::Fixed(Bytes(bytes)))
    }

    pub(super) fn output(&mut self, tensor: TensorId) {
        self.builder.output(tensor);
    }

    fn add(&mut self, op: Op) {
        self.builder.op(op);
        self.made += 1;
    }

    fn new_op(&mut self, kind: &'static str, inputs: &[TensorId], outputs: Vec<TensorId>) -> Op {
        let moved: u64 = inputs.iter().chain(&outputs).map(|&tensor| self.sizes[tensor]).sum();
        let op = Op::new(format!("{kind}_{}", self.made), kind, inputs, outputs);
        op.cost(seconds(moved, BYTES_PER_SECOND))
    }

    /// An operator that must not overwrite what it reads.
    pub(super) fn op(&mut self, kind: &'static str, inputs: &[TensorId], bytes: u64) -> TensorId {
        let output = self.computed(bytes);
        let op = self.new_op(kind, inputs, vec![output]);
        self.add(op);
        output
    }

    /// An operator of two outputs, the second of which is small and may be read much later.
    pub(super) fn two(
        &mut self,
        kind: &'static str,
        inputs: &[TensorId],
        bytes: (u64, u64),
    ) -> (TensorId, TensorId) {
        let outputs = (self.computed(bytes.0), self.computed(bytes.1));
        let op = self.new_op(kind, inputs, vec![outputs.0, outputs.1]);
        self.add(op);
        outputs
    }

    /// An operator whose time is that of its arithmetic.
    pub(super) fn product(
        &mut self,
        kind: &'static str,
        inputs: &[TensorId],
        (bytes, flops): (u64, u64),
    ) -> TensorId {
        let output = self.computed(bytes);
        let op = self.new_op(kind, inputs, vec![output]);
        let cost = op.cost.unwrap_or_default() + seconds(flops, FLOPS_PER_SECOND);
        self.add(op.cost(cost));
        output
    }

    /// An operator that works element by element: it may overwrite what has the size of its output, which is
    /// that of its first input.
    pub(super) fn over(&mut self, kind: &'static str, inputs: &[TensorId]) -> TensorId {
        let bytes = self.sizes[inputs[0]];
        let output = self.computed(bytes);
        let mut op = self.new_op(kind, inputs, vec![output]);
        let same = inputs.iter().filter(|&&of| self.sizes[of] == bytes);
        op.sharing.extend(same.map(|&of| Sharing::MayOverwrite { output, of }));
        self.add(op);
        output
    }

    /// The same bytes read in another way; without an offset, in another order.
    pub(super) fn view(
        &mut self,
        kind: &'static str,
        of: TensorId,
        (offset, bytes): (Option<u64>, u64),
    ) -> TensorId {
        let output = self.computed(bytes);
        let op = Op::new(format!("{kind}_{}", self.made), kind, [of], [output]).cost(0.0);
        self.add(op.sharing(Sharing::View { output, of, offset: offset.map(Bytes) }));
        output
    }

    /// One behind the other: contiguous where the batch is 1, so that each may lie in the whole.
    pub(super) fn concat(&mut self, inputs: &[TensorId]) -> TensorId {
        let bytes = inputs.iter().map(|&input| self.sizes[input]).sum();
        let output = self.computed(bytes);
        let mut op = self.new_op("Concat", inputs, vec![output]);
        let mut offset = 0;
        for &input in inputs {
            op.sharing.push(Sharing::PartOf { input, output, offset: Bytes(offset) });
            offset += self.sizes[input];
        }
        self.add(op);
        output
    }

    pub(super) fn finish(self) -> Graph {
        self.builder.finish().expect("operators read what was written before")
    }
}

/// A square map of features, batch 1, four bytes an element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Map {
    pub(super) id: TensorId,
    pub(super) channels: u64,
    pub(super) side: u64,
}

impl Map {
    fn bytes(channels: u64, side: u64) -> u64 {
        4 * channels * side * side
    }
}

impl Net {
    pub(super) fn image(&mut self, channels: u64, side: u64) -> Map {
        Map { id: self.input(Map::bytes(channels, side)), channels, side }
    }

    /// A convolution of `kernel` by `kernel` to other channels and another side.
    pub(super) fn conv(&mut self, x: Map, (channels, side): (u64, u64), kernel: u64) -> Map {
        let taps = x.channels * channels * kernel * kernel;
        let weight = self.weight(4 * taps);
        let work = (Map::bytes(channels, side), 2 * taps * side * side);
        Map { id: self.product("Conv", &[x.id, weight], work), channels, side }
    }

    pub(super) fn depthwise(&mut self, x: Map, side: u64, kernel: u64) -> Map {
        let taps = x.channels * kernel * kernel;
        let weight = self.weight(4 * taps);
        let work = (Map::bytes(x.channels, side), 2 * taps * side * side);
        Map { id: self.product("DepthwiseConv", &[x.id, weight], work), side, ..x }
    }

    pub(super) fn pool(&mut self, x: Map, side: u64) -> Map {
        Map { id: self.op("Pool", &[x.id], Map::bytes(x.channels, side)), side, ..x }
    }

    pub(super) fn upsample(&mut self, x: Map) -> Map {
        let side = 2 * x.side;
        Map { id: self.op("Resize", &[x.id], Map::bytes(x.channels, side)), side, ..x }
    }

    pub(super) fn relu(&mut self, x: Map) -> Map {
        Map { id: self.over("Relu", &[x.id]), ..x }
    }

    pub(super) fn norm(&mut self, x: Map) -> Map {
        let scale = self.weight(16 * x.channels);
        Map { id: self.over("BatchNormalization", &[x.id, scale]), ..x }
    }

    pub(super) fn add_maps(&mut self, a: Map, b: Map) -> Map {
        Map { id: self.over("Add", &[a.id, b.id]), ..a }
    }

    pub(super) fn join(&mut self, maps: &[Map]) -> Map {
        let ids: Vec<TensorId> = maps.iter().map(|map| map.id).collect();
        let channels = maps.iter().map(|map| map.channels).sum();
        Map { id: self.concat(&ids), channels, side: maps[0].side }
    }

    /// Channels `[first, first + channels)`, which lie together.
    pub(super) fn slice(&mut self, x: Map, first: u64, channels: u64) -> Map {
        let range = (Some(Map::bytes(first, x.side)), Map::bytes(channels, x.side));
        Map { id: self.view("Slice", x.id, range), channels, ..x }
    }

    /// Convolution, normalisation, activation: what most networks are made of.
    pub(super) fn block(&mut self, x: Map, shape: (u64, u64), kernel: u64) -> Map {
        let x = self.conv(x, shape, kernel);
        let x = self.norm(x);
        self.relu(x)
    }
}
