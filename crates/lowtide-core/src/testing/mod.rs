//! Random graphs for property tests and fuzz targets: views, mutations, permissions to overwrite, parts of a
//! concat, chains of concats, pieces of a split, scratch, several outputs, several readers, bounded and unknown sizes.
//!
//! ~~~text
//! bytes of a fuzzer ──arbitrary──> choices ──GraphBuilder──> Graph
//! ~~~
//! One generator for all crates: two would drift apart.

mod arena;
mod cells;
mod cut;
mod large;
mod layered;
mod net;
mod structured;
mod training;

pub use arena::{TinyLimits, fits, least_arena, tiny_problem};
pub use cells::random_cells;
pub use cut::{Cut, CutConfig, cut_problem};
pub use large::large_graph;
pub use layered::{layered_random, layered_woven, many_tensors};
pub use structured::structured_nets;
pub use training::transformer_training;

use crate::{Bytes, Graph, GraphBuilder, Id, IndexVec, Op, OpId, Sharing, Size, TensorId};
use arbitrary::{Error, Result, Unstructured};
use std::fmt::Write;

/// What a random graph may have.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// At most this many operators.
    pub max_ops: usize,
    /// Views, mutations, permissions, parts.
    pub sharing: bool,
    /// Sizes that are bounded or unknown.
    pub open_sizes: bool,
    /// Tensors and scratch of no bytes.
    pub empty: bool,
}

impl Limits {
    /// Everything, up to `max_ops` operators.
    pub const fn all(max_ops: usize) -> Self {
        Self { max_ops, sharing: true, open_sizes: true, empty: true }
    }
}

/// A random graph.
pub fn graph(u: &mut Unstructured<'_>, limits: Limits) -> Result<Graph> {
    let builder = GraphBuilder::new("random");
    let mut maker = Maker { limits, builder, values: Vec::new(), last_joined: None };
    maker.externals(u)?;
    let ops = u.int_in_range(1..=limits.max_ops)?;
    for number in 0..ops {
        maker.op(u, number)?;
    }
    maker.outputs(u)?;
    maker.builder.finish().map_err(|_| Error::IncorrectFormat)
}

/// Numbers that look random and are the same on every machine: `splitmix64` from a seed.
pub fn random_words(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    })
}

/// Bytes for an [`Unstructured`], from [`random_words`].
pub fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    random_words(seed).flat_map(u64::to_le_bytes).take(len).collect()
}

/// A graph in a few lines, for the message of a failed test.
pub fn describe(graph: &Graph) -> String {
    let mut text = String::new();
    for (id, tensor) in graph.tensors().iter_enumerated() {
        let output = if tensor.is_output { ", output" } else { "" };
        let _ = writeln!(text, "{id} `{}` {:?} {}{output}", tensor.name, tensor.kind, tensor.size);
    }
    for (id, op) in graph.ops().iter_enumerated() {
        let scratch = op.needed_scratch().map_or_else(String::new, |s| format!(", scratch {s}"));
        let _ =
            writeln!(text, "{id}: {:?} -> {:?} {:?}{scratch}", op.inputs, op.outputs, op.sharing);
    }
    text
}

/// The same graph from a file that lists its tensors backward and its operators in `order`; also the new id
/// of each operator.
///
/// # Panics
/// If `order` is not an order of the graph.
pub fn reordered(graph: &Graph, order: &[OpId]) -> (Graph, IndexVec<OpId, OpId>) {
    let last = graph.tensors().len().saturating_sub(1);
    let new = |id: TensorId| TensorId::from_index(last - id.index());
    let mut builder = GraphBuilder::new(graph.name());
    for tensor in graph.tensors().as_slice().iter().rev() {
        builder.tensor(tensor.clone());
    }
    let mut ids = IndexVec::filled(order.len(), OpId::new(0));
    for &id in order {
        let mut op = graph.ops()[id].clone();
        for tensor in op.inputs.iter_mut().chain(&mut op.outputs) {
            *tensor = new(*tensor);
        }
        for sharing in &mut op.sharing {
            *sharing = match *sharing {
                Sharing::View { output, of, offset } => {
                    Sharing::View { output: new(output), of: new(of), offset }
                }
                Sharing::Mutates { output, of } => {
                    Sharing::Mutates { output: new(output), of: new(of) }
                }
                Sharing::MayOverwrite { output, of } => {
                    Sharing::MayOverwrite { output: new(output), of: new(of) }
                }
                Sharing::PartOf { input, output, offset } => {
                    Sharing::PartOf { input: new(input), output: new(output), offset }
                }
                Sharing::PieceOf { output, of, offset } => {
                    Sharing::PieceOf { output: new(output), of: new(of), offset }
                }
            };
        }
        ids[id] = builder.op(op);
    }
    (builder.finish().expect("an order of the graph is a graph"), ids)
}

/// Calls `visit` with every order of `ops`, topological or not.
pub fn permutations(ops: &[OpId], visit: &mut dyn FnMut(&[OpId])) {
    fn extend(left: &mut Vec<OpId>, taken: &mut Vec<OpId>, visit: &mut dyn FnMut(&[OpId])) {
        if left.is_empty() {
            visit(taken);
        }
        for at in 0..left.len() {
            taken.push(left.remove(at));
            extend(left, taken, visit);
            left.insert(at, taken.pop().expect("pushed above"));
        }
    }
    extend(&mut ops.to_vec(), &mut Vec::new(), visit);
}

/// A tensor that operators may still read.
#[derive(Clone, Copy)]
struct Value {
    id: TensorId,
    size: Size,
    root: TensorId,
    /// Its bytes in its storage.
    start: u64,
    end: u64,
    is_stale: bool,
    is_computed: bool,
    is_mutated: bool,
}

struct Maker {
    limits: Limits,
    builder: GraphBuilder,
    values: Vec<Value>,
    /// The output of the last concat, and what it joined.
    last_joined: Option<(Value, Vec<Value>)>,
}

impl Maker {
    fn externals(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        for number in 0..u.int_in_range(1..=2)? {
            let size = self.size(u)?;
            let id = self.builder.input(format!("x{number}"), size);
            self.remember(id, size, false);
        }
        for number in 0..u.int_in_range(0..=2)? {
            let size = self.size(u)?;
            let id = self.builder.weight(format!("w{number}"), size);
            self.remember(id, size, false);
        }
        Ok(())
    }

    fn size(&self, u: &mut Unstructured<'_>) -> Result<Size> {
        let bytes = Bytes(*u.choose(&[16, 64, 64, 64, 100, 128, 256, 1000, 4096])?);
        Ok(match u.int_in_range(0..=19)? {
            0 if self.limits.open_sizes => Size::Unknown,
            1 if self.limits.open_sizes => Size::AtMost(bytes),
            2 if self.limits.empty => Size::Fixed(Bytes::ZERO),
            _ => Size::Fixed(bytes),
        })
    }

    fn remember(&mut self, id: TensorId, size: Size, is_computed: bool) {
        let end = size.bound().map_or(u64::MAX, |bytes| bytes.0);
        let (is_stale, is_mutated) = (false, false);
        let value = Value { id, size, root: id, start: 0, end, is_stale, is_computed, is_mutated };
        self.values.push(value);
    }

    /// A readable value, rather a recent one.
    fn pick(&self, u: &mut Unstructured<'_>) -> Result<Value> {
        let fresh: Vec<Value> = self.values.iter().copied().filter(|v| !v.is_stale).collect();
        let recent = if u.ratio(2, 3)? { fresh.len().saturating_sub(4) } else { 0 };
        u.choose(&fresh[recent..]).copied()
    }

    fn op(&mut self, u: &mut Unstructured<'_>, number: usize) -> Result<()> {
        let inputs =
            (0..u.int_in_range(1..=3)?).map(|_| self.pick(u)).collect::<Result<Vec<_>>>()?;
        let ids: Vec<TensorId> = inputs.iter().map(|value| value.id).collect();
        let mut op = Op::new(format!("o{number}"), "Random", ids, []);
        if u.ratio(1, 6)? {
            op.scratch = self.size(u)?;
        }
        if u.ratio(1, 4)? {
            op.cost = Some(f64::from(u.int_in_range(0..=9_u8)?));
        }
        let kind = if self.limits.sharing { u.int_in_range(0..=11)? } else { 0 };
        match kind {
            1 | 2 => self.view(u, &mut op, inputs[0])?,
            3 if inputs[0].is_computed => {
                self.mutation(&mut op, inputs[0]);
                if u.ratio(1, 3)? {
                    self.overwriting(&mut op, &inputs);
                }
            }
            4..=6 => self.overwriting(&mut op, &inputs),
            7 => self.concat(&mut op, &inputs),
            8 => self.split(u, &mut op, inputs[0])?,
            9 => self.longer_concat(u, &mut op)?,
            _ => self.plain(u, &mut op)?,
        }
        if u.ratio(1, 5)? {
            self.plain(u, &mut op)?;
        }
        self.builder.op(op);
        Ok(())
    }

    fn output(&mut self, op: &mut Op, size: Size) -> TensorId {
        let id = self.builder.computed(format!("{}.{}", op.name, op.outputs.len()), size);
        op.outputs.push(id);
        self.remember(id, size, true);
        id
    }

    fn plain(&mut self, u: &mut Unstructured<'_>, op: &mut Op) -> Result<()> {
        let size = self.size(u)?;
        self.output(op, size);
        Ok(())
    }

    /// The last value lies in `base`.
    fn lies_in(&mut self, base: Value, start: u64, end: u64) {
        let value = self.values.last_mut().expect("an output was just made");
        *value = Value { root: base.root, start, end, is_computed: base.is_computed, ..*value };
    }

    fn view(&mut self, u: &mut Unstructured<'_>, op: &mut Op, base: Value) -> Result<()> {
        let fixed = base.size.fixed().map_or(0, |bytes| bytes.0);
        if fixed < 32 || u.ratio(1, 2)? {
            let size = if u.ratio(1, 4)? { self.size(u)? } else { base.size };
            let output = self.output(op, size);
            op.sharing.push(Sharing::View { output, of: base.id, offset: None });
            self.lies_in(base, base.start, base.end);
            return Ok(());
        }
        let offset = u.int_in_range(0..=fixed / 2)? & !15;
        let output = self.output(op, Size::Fixed(Bytes(fixed / 2)));
        op.sharing.push(Sharing::View { output, of: base.id, offset: Some(Bytes(offset)) });
        let known = base.end - base.start >= fixed;
        let start = if known { base.start + offset } else { base.start };
        self.lies_in(base, start, if known { start + fixed / 2 } else { base.end });
        Ok(())
    }

    fn mutation(&mut self, op: &mut Op, of: Value) {
        for value in &mut self.values {
            let touched = value.start < of.end && of.start < value.end;
            value.is_stale |= value.root == of.root && touched;
        }
        let output = self.output(op, of.size);
        op.sharing.push(Sharing::Mutates { output, of: of.id });
        self.lies_in(of, of.start, of.end);
        for value in self.values.iter_mut().filter(|value| value.root == of.root) {
            value.is_mutated = true;
        }
    }

    fn overwriting(&mut self, op: &mut Op, inputs: &[Value]) {
        let output = self.output(op, inputs[0].size);
        for input in inputs {
            op.sharing.push(Sharing::MayOverwrite { output, of: input.id });
        }
    }

    /// Joins `inputs`; the operator reads nothing else.
    fn concat(&mut self, op: &mut Op, inputs: &[Value]) {
        op.inputs = inputs.iter().map(|input| input.id).collect();
        let sizes: Option<Vec<Bytes>> = inputs.iter().map(|input| input.size.fixed()).collect();
        let Some(sizes) = sizes else { return self.overwriting(op, inputs) };
        let output = self.output(op, Size::Fixed(sizes.iter().copied().sum()));
        let mut offset = Bytes::ZERO;
        for (input, size) in inputs.iter().zip(sizes) {
            op.sharing.push(Sharing::PartOf { input: input.id, output, offset });
            offset += size;
        }
        self.last_joined = Some((*self.values.last().expect("just made"), inputs.to_vec()));
    }

    /// Joins what the last concat joined, or its output, and one more value.
    fn longer_concat(&mut self, u: &mut Unstructured<'_>, op: &mut Op) -> Result<()> {
        let more = self.pick(u)?;
        let Some((whole, parts)) = self.last_joined.take() else {
            self.concat(op, &[more]);
            return Ok(());
        };
        let mut inputs = if u.ratio(1, 2)? { vec![whole] } else { parts };
        inputs.push(more);
        let stale = |input: &Value| self.values.iter().any(|v| v.id == input.id && v.is_stale);
        inputs.retain(|input| !stale(input));
        if inputs.iter().filter_map(|input| input.size.bound()).sum::<Bytes>() > Bytes(1 << 16) {
            inputs = vec![more];
        }
        self.concat(op, &inputs);
        Ok(())
    }

    /// Cuts a value into pieces, or cuts one piece out of it.
    fn split(&mut self, u: &mut Unstructured<'_>, op: &mut Op, of: Value) -> Result<()> {
        let fixed = of.size.fixed().map_or(0, |bytes| bytes.0);
        let pieces = u.int_in_range(1..=4)?;
        let bytes = (fixed / pieces) & !3;
        if bytes == 0 {
            return self.plain(u, op);
        }
        let is_slice = u.ratio(1, 3)?;
        let first = if is_slice { u.int_in_range(0..=pieces - 1)? } else { 0 };
        for at in first..if is_slice { first + 1 } else { pieces } {
            let output = self.output(op, Size::Fixed(Bytes(bytes)));
            let offset = Bytes(at * bytes);
            op.sharing.push(Sharing::PieceOf { output, of: of.id, offset });
        }
        Ok(())
    }

    fn outputs(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        for _ in 0..u.int_in_range(1..=2)? {
            let value = self.pick(u)?;
            if !value.is_mutated {
                self.builder.output(value.id);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_choices_make_a_graph_and_every_kind_of_sharing_occurs() {
        let (mut made, mut kinds) = (0, [0; 5]);
        let (mut waits, mut open, mut scratch) = (0, 0, 0);
        for seed in 0..500 {
            let bytes = random_bytes(seed, 1 << 12);
            let Ok(graph) = graph(&mut Unstructured::new(&bytes), Limits::all(24)) else {
                continue;
            };
            made += 1;
            for op in graph.ops() {
                scratch += usize::from(op.needed_scratch().is_some());
                for sharing in &op.sharing {
                    kinds[match sharing {
                        Sharing::View { .. } => 0,
                        Sharing::Mutates { .. } => 1,
                        Sharing::MayOverwrite { .. } => 2,
                        Sharing::PartOf { .. } => 3,
                        Sharing::PieceOf { .. } => 4,
                    }] += 1;
                }
            }
            waits += graph.ops().ids().filter(|&op| !graph.overwritten_by(op).is_empty()).count();
            open += graph.tensors().iter().filter(|tensor| tensor.size.fixed().is_none()).count();
        }
        assert!(made > 400, "{made} of 500");
        assert!(kinds.iter().all(|&count| count > made / 4), "{kinds:?} in {made} graphs");
        assert!(waits > made / 4 && open > made && scratch > made, "{waits} {open} {scratch}");
    }
}
