//! The writer of graphs: one row a line.

use super::{FORMAT, GRAPH_VERSION};
use lowtide_core::{Dim, Graph, Op, OpId, Sharing, Size, Tensor, TensorId, TensorKind};
use serde::Serialize;
use std::io::{self, BufWriter, Write};

/// Writes a graph in the neutral JSON form; [`read_graph`](super::read_graph) makes a graph of the same
/// fingerprint of it.
pub fn write_graph(graph: &Graph, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    write!(out, "{{\"format\":\"{FORMAT}\",\"version\":{GRAPH_VERSION},\"name\":")?;
    serde_json::to_writer(&mut out, graph.name())?;
    out.write_all(b",\n\"tensors\":[")?;
    let tensors = graph.tensors().iter_enumerated();
    rows(&mut out, tensors.map(|(id, tensor)| TensorRow::of(id, tensor)))?;
    out.write_all(b"],\n\"ops\":[")?;
    rows(&mut out, graph.ops().iter_enumerated().map(|(id, op)| OpRow::of(id, op)))?;
    out.write_all(b"]}\n")?;
    out.flush()
}

fn rows<T: Serialize>(out: &mut impl Write, rows: impl Iterator<Item = T>) -> io::Result<()> {
    let mut before: &[u8] = b"\n";
    for row in rows {
        out.write_all(before)?;
        serde_json::to_writer(&mut *out, &row)?;
        before = b",\n";
    }
    Ok(())
}

/// A size as two fields, of which one is there at most.
fn fields(size: Size) -> (Option<u64>, Option<u64>) {
    match size {
        Size::Fixed(bytes) => (Some(bytes.0), None),
        Size::AtMost(bytes) => (None, Some(bytes.0)),
        Size::Unknown => (None, None),
    }
}

#[derive(Serialize)]
struct TensorRow<'a> {
    id: u32,
    name: &'a str,
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<u64>,
    kind: &'static str,
    /// An input or weight that is an output as well.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_output: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    dtype: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<Vec<DimCell<'a>>>,
}

impl<'a> TensorRow<'a> {
    fn of(id: TensorId, tensor: &'a Tensor) -> Self {
        let (bytes, max_bytes) = fields(tensor.size);
        let dims = tensor.shape.as_ref();
        Self {
            id: id.raw(),
            name: &tensor.name,
            bytes,
            max_bytes,
            kind: kind_name(tensor),
            is_output: tensor.is_output && tensor.kind != TensorKind::Computed,
            dtype: tensor.dtype.map(lowtide_core::DType::name),
            shape: dims.map(|dims| dims.iter().map(DimCell::of).collect()),
        }
    }
}

/// The kind of a tensor, as files say it.
pub(crate) fn kind_name(tensor: &Tensor) -> &'static str {
    match tensor.kind {
        TensorKind::Weight => "weight",
        TensorKind::Input => "input",
        TensorKind::Computed if tensor.is_output => "output",
        TensorKind::Computed => "activation",
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum DimCell<'a> {
    Known(u64),
    Named(&'a str),
    Unknown,
}

impl<'a> DimCell<'a> {
    fn of(dim: &'a Dim) -> Self {
        match dim {
            Dim::Known(number) => Self::Known(*number),
            Dim::Named(name) => Self::Named(name),
            Dim::Unknown => Self::Unknown,
        }
    }
}

#[derive(Serialize)]
struct OpRow<'a> {
    id: u32,
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    inputs: Vec<u32>,
    outputs: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    views: Vec<ShareRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mutates: Vec<ShareRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    overwrites: Vec<ShareRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<PartRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pieces: Vec<ShareRow>,
    /// Left out where it is nothing; there as `null` where it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[expect(clippy::option_option, reason = "JSON tells a field that is null from one left out")]
    scratch: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_scratch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
}

#[derive(Serialize)]
struct ShareRow {
    output: u32,
    of: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
}

#[derive(Serialize)]
struct PartRow {
    input: u32,
    output: u32,
    offset: u64,
}

impl<'a> OpRow<'a> {
    fn of(id: OpId, op: &'a Op) -> Self {
        let (scratch, max_scratch) = fields(op.scratch);
        let ids = |tensors: &[TensorId]| tensors.iter().map(|tensor| tensor.raw()).collect();
        let mut row = Self {
            id: id.raw(),
            name: &op.name,
            kind: &op.kind,
            inputs: ids(&op.inputs),
            outputs: ids(&op.outputs),
            views: Vec::new(),
            mutates: Vec::new(),
            overwrites: Vec::new(),
            parts: Vec::new(),
            pieces: Vec::new(),
            scratch: op.needed_scratch().map(|_| scratch),
            max_scratch,
            cost: op.cost,
        };
        op.sharing.iter().for_each(|&sharing| row.share(sharing));
        row
    }

    fn share(&mut self, sharing: Sharing) {
        let row = |output: TensorId, of: TensorId| ShareRow {
            output: output.raw(),
            of: of.raw(),
            offset: None,
        };
        match sharing {
            Sharing::View { output, of, offset } => {
                let offset = offset.map(|offset| offset.0);
                self.views.push(ShareRow { offset, ..row(output, of) });
            }
            Sharing::Mutates { output, of } => self.mutates.push(row(output, of)),
            Sharing::MayOverwrite { output, of } => self.overwrites.push(row(output, of)),
            Sharing::PartOf { input, output, offset } => {
                let (input, output) = (input.raw(), output.raw());
                self.parts.push(PartRow { input, output, offset: offset.0 });
            }
            Sharing::PieceOf { output, of, offset } => {
                self.pieces.push(ShareRow { offset: Some(offset.0), ..row(output, of) });
            }
        }
    }
}
