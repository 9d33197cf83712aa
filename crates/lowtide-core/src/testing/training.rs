//! Training steps of a transformer: forward and backward in one graph.
//!
//! ~~~text
//! x ─ norm ─ qkv ─ attention ─ project ─ add ─ norm ─ up ─ gelu ─ down ─ add ─ ...  loss
//!      └──────┴────────┴── saved to the backward of the same layer ──┴─────┘         │
//! gradients of weights: kept to the end, or consumed by an update     ... backward ──┘
//! ~~~

use super::net::Net;
use crate::{Graph, TensorId};

/// A training step of a transformer with about `ops` operators, the same for the same seed on every machine.
/// Bits of the seed choose the variant. 1: gradients of weights are consumed by updates, else kept; 2: attention is
/// calculated head by head; 4: the file lists all updates last, so that its order keeps every gradient.
///
/// # Panics
/// Never: what it builds is a graph.
pub fn transformer_training(ops: usize, seed: u64) -> Graph {
    let made = |layers| Trainer::new("", layers, seed).steps().made();
    let (one, two) = (made(1), made(2));
    let layers = 1 + ops.saturating_sub(one) / (two - one);
    Trainer::new(&format!("training-{ops}-{seed}"), layers, seed).steps().finish()
}

/// What is the same in all layers.
#[derive(Clone, Copy)]
struct Shape {
    /// Batch times sequence.
    rows: u64,
    sequence: u64,
    hidden: u64,
    heads: u64,
    is_fused: bool,
    has_updates: bool,
    updates_come_last: bool,
}

impl Shape {
    fn draw(net: &mut Net, seed: u64) -> Self {
        let updates_come_last = seed & 4 != 0;
        // With few rows gradients outweigh what is saved, so that keeping them all shows.
        let few: &[u64] = if updates_come_last { &[1] } else { &[1, 2, 4] };
        let sequence = if updates_come_last { 128 } else { net.pick(&[128, 256, 512]) };
        Self {
            rows: sequence * net.pick(few),
            sequence,
            hidden: net.pick(&[256, 384, 512]),
            heads: 4,
            is_fused: seed & 2 == 0,
            has_updates: seed & 1 == 1,
            updates_come_last,
        }
    }

    /// Bytes of `width` numbers a row.
    fn wide(self, width: u64) -> u64 {
        4 * self.rows * width
    }
}

/// What the forward of a layer leaves to its backward.
#[derive(Clone)]
struct Saved {
    norms: [(TensorId, TensorId, TensorId); 2],
    weights: [TensorId; 4],
    attention: Attention,
    up: TensorId,
    gelu: TensorId,
}

#[derive(Clone)]
struct Attention {
    /// Query, key, value and probabilities, head by head.
    heads: Vec<[TensorId; 4]>,
    context: TensorId,
}

struct Trainer {
    net: Net,
    shape: Shape,
    layers: usize,
    /// Weights and gradients whose updates come last.
    late: Vec<(TensorId, TensorId)>,
}

impl Trainer {
    fn new(name: &str, layers: usize, seed: u64) -> Self {
        let mut net = Net::new(name, seed);
        let shape = Shape::draw(&mut net, seed);
        Self { net, shape, layers, late: Vec::new() }
    }

    fn steps(mut self) -> Net {
        let hidden = self.shape.wide(self.shape.hidden);
        let tokens = self.net.input(4 * self.shape.rows);
        let embedding = self.net.weight(4 * 8000 * self.shape.hidden);
        let mut x = self.net.op("Gather", &[tokens, embedding], hidden);
        let mut saved = Vec::new();
        for _ in 0..self.layers {
            saved.push(self.forward(&mut x));
        }
        let head = self.net.weight(4 * 1000 * self.shape.hidden);
        let logits = self.matmul(&[x, head], 1000);
        let (loss, wrong) = self.net.two("Loss", &[logits, tokens], (4, self.shape.wide(1000)));
        self.net.output(loss);
        self.weight_gradient(x, wrong, head);
        let mut gradient = self.matmul(&[wrong, head], self.shape.hidden);
        for saved in saved.iter().rev() {
            self.backward(saved, &mut gradient);
        }
        let first = self.net.op("GatherGrad", &[gradient, tokens], 4 * 8000 * self.shape.hidden);
        self.learn(embedding, first);
        for (weight, gradient) in std::mem::take(&mut self.late) {
            self.update(weight, gradient);
        }
        self.net
    }

    fn matmul(&mut self, inputs: &[TensorId], width: u64) -> TensorId {
        let flops = 2 * self.shape.rows * self.shape.hidden * width;
        self.net.product("MatMul", inputs, (self.shape.wide(width), flops))
    }

    fn transposed(&mut self, of: TensorId) -> TensorId {
        let bytes = self.net.size(of);
        self.net.view("Transpose", of, (None, bytes))
    }

    fn forward(&mut self, x: &mut TensorId) -> Saved {
        let hidden = self.shape.hidden;
        let widths = [3 * hidden, hidden, 4 * hidden, 4 * hidden];
        let weights = widths.map(|width| self.net.weight(4 * hidden * width));
        let first = self.norm(*x);
        let qkv = self.matmul(&[first.1, weights[0]], 3 * hidden);
        let attention = self.attend(qkv);
        let projected = self.matmul(&[attention.context, weights[1]], hidden);
        *x = self.net.over("Add", &[*x, projected]);
        let second = self.norm(*x);
        let up = self.matmul(&[second.1, weights[2]], 4 * hidden);
        let gelu = self.net.over("Gelu", &[up]);
        let down = self.matmul(&[gelu, weights[3]], hidden);
        *x = self.net.over("Add", &[*x, down]);
        Saved { norms: [first, second], weights, attention, up, gelu }
    }

    /// What was normalised, the result, and the statistics that the backward needs.
    fn norm(&mut self, x: TensorId) -> (TensorId, TensorId, TensorId) {
        let bytes = (self.shape.wide(self.shape.hidden), 8 * self.shape.rows);
        let (y, statistics) = self.net.two("LayerNormalization", &[x], bytes);
        (x, y, statistics)
    }

    /// Heads that are calculated at once: all, or one after the other.
    fn groups(&self) -> u64 {
        if self.shape.is_fused { 1 } else { self.shape.heads }
    }

    fn attend(&mut self, qkv: TensorId) -> Attention {
        let shape = self.shape;
        let groups = self.groups();
        let width = shape.hidden / groups;
        let score_width = shape.heads / groups * shape.sequence;
        let (mut heads, mut contexts) = (Vec::new(), Vec::new());
        for _ in 0..groups {
            let [q, k, v] =
                [(); 3].map(|()| self.net.view("Slice", qkv, (None, shape.wide(width))));
            let scores = self.matmul(&[q, k], score_width);
            let scaled = self.net.over("Mul", &[scores]);
            let probabilities = self.net.over("Softmax", &[scaled]);
            contexts.push(self.matmul(&[probabilities, v], width));
            heads.push([q, k, v, probabilities]);
        }
        let joined = self.joined(&contexts, shape.hidden);
        Attention { heads, context: self.transposed(joined) }
    }

    /// Heads lie side by side in each row, so none is a contiguous part.
    fn joined(&mut self, parts: &[TensorId], width: u64) -> TensorId {
        if let [one] = *parts {
            return one;
        }
        self.net.op("Concat", parts, self.shape.wide(width))
    }

    fn backward(&mut self, saved: &Saved, gradient: &mut TensorId) {
        let hidden = self.shape.hidden;
        let [qkv_weight, out_weight, up_weight, down_weight] = saved.weights;
        let gelu = self.matmul(&[*gradient, down_weight], 4 * hidden);
        self.weight_gradient(saved.gelu, *gradient, down_weight);
        let up = self.net.over("GeluGrad", &[gelu, saved.up]);
        let normed = self.matmul(&[up, up_weight], hidden);
        self.weight_gradient(saved.norms[1].1, up, up_weight);
        self.norm_gradient(saved.norms[1], normed, gradient);
        let context = self.matmul(&[*gradient, out_weight], hidden);
        self.weight_gradient(saved.attention.context, *gradient, out_weight);
        let qkv = self.attention_gradient(&saved.attention, context);
        let normed = self.matmul(&[qkv, qkv_weight], hidden);
        self.weight_gradient(saved.norms[0].1, qkv, qkv_weight);
        self.norm_gradient(saved.norms[0], normed, gradient);
    }

    fn norm_gradient(
        &mut self,
        (x, _, statistics): (TensorId, TensorId, TensorId),
        of: TensorId,
        gradient: &mut TensorId,
    ) {
        let through = self.net.over("LayerNormalizationGrad", &[of, x, statistics]);
        *gradient = self.net.over("Add", &[*gradient, through]);
    }

    fn attention_gradient(&mut self, attention: &Attention, context: TensorId) -> TensorId {
        let width = self.shape.hidden / self.groups();
        let score_width = self.shape.heads / self.groups() * self.shape.sequence;
        let mut parts = Vec::new();
        for &[q, k, v, probabilities] in &attention.heads {
            let bytes = self.shape.wide(width);
            let own = self.net.view("Slice", context, (None, bytes));
            let wrong = self.matmul(&[own, v], score_width);
            let turned = self.transposed(probabilities);
            let value = self.matmul(&[turned, own], width);
            let scores = self.net.over("SoftmaxGrad", &[wrong, probabilities]);
            let query = self.matmul(&[scores, k], width);
            let turned = self.transposed(scores);
            let key = self.matmul(&[turned, q], width);
            parts.extend([query, key, value]);
        }
        self.joined(&parts, 3 * self.shape.hidden)
    }

    fn weight_gradient(&mut self, activation: TensorId, gradient: TensorId, weight: TensorId) {
        let turned = self.transposed(activation);
        let bytes = self.net.size(weight);
        let flops = bytes / 2 * self.shape.rows;
        let found = self.net.product("MatMul", &[turned, gradient], (bytes, flops));
        self.learn(weight, found);
    }

    fn learn(&mut self, weight: TensorId, gradient: TensorId) {
        if !self.shape.has_updates {
            return self.net.output(gradient);
        }
        if self.shape.updates_come_last {
            return self.late.push((weight, gradient));
        }
        self.update(weight, gradient);
    }

    /// An update changes the weight, which is not ours to place: all that is left of it is a token.
    fn update(&mut self, weight: TensorId, gradient: TensorId) {
        let token = self.net.op("Update", &[weight, gradient], 0);
        self.net.output(token);
    }
}
