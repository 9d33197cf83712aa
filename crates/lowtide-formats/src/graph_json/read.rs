//! The reader of graphs.

use super::{FORMAT, GRAPH_VERSION, GraphJsonError, GraphLimits};
use crate::column::{Cell, Column, Misfit, Scalar};
use crate::value::Value;
use flate2::read::MultiGzDecoder;
use lowtide_core::{
    Bytes, DType, Dim, Graph, GraphBuilder, Op, Sharing, Size, Tensor, TensorId, TensorKind,
};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use std::fmt;
use std::io::{BufReader, Read};

/// Every gzip file starts with these.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads a graph in the neutral JSON form; compressed bytes are recognised by their first two.
pub fn read_graph(bytes: &[u8], limits: &GraphLimits) -> Result<Graph, GraphJsonError> {
    let limit = limits.text.0.min(u64::from(u32::MAX));
    if bytes.starts_with(&GZIP_MAGIC) {
        return graph(unpack(bytes, limit)?);
    }
    if bytes.len() as u64 > limit {
        return Err(GraphJsonError::TooLong { limit: Bytes(limit) });
    }
    graph(serde_json::from_slice(bytes)?)
}

fn unpack(bytes: &[u8], limit: u64) -> Result<Document, GraphJsonError> {
    let mut text = MultiGzDecoder::new(bytes).take(limit.saturating_add(1));
    let read = serde_json::from_reader(BufReader::with_capacity(1 << 16, &mut text));
    // The text ended where it was cut, so whatever the reader made of it is not about the file.
    if text.limit() == 0 {
        return Err(GraphJsonError::TooLong { limit: Bytes(limit) });
    }
    Ok(read?)
}

/// The file. All is optional, so that a file of another format is told so, and not that it lacks a field.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    format: Value,
    #[serde(default)]
    version: Value,
    #[serde(default)]
    name: Box<str>,
    tensors: Option<Column<Tensor>>,
    ops: Option<Column<Op>>,
}

fn graph(document: Document) -> Result<Graph, GraphJsonError> {
    let Document { format, version, name, tensors, ops } = document;
    if format != Value::Text(FORMAT.into()) {
        return Err(GraphJsonError::Format { found: format.to_string() });
    }
    if version != Value::Whole(GRAPH_VERSION.into()) {
        let found = version.to_string();
        return Err(GraphJsonError::Version { found, wanted: GRAPH_VERSION });
    }
    let tensors = tensors.ok_or(GraphJsonError::NoList { list: "tensors" })?.rows("")?;
    let ops = ops.ok_or(GraphJsonError::NoList { list: "ops" })?.rows("")?;
    let mut builder = GraphBuilder::new(name);
    for tensor in tensors {
        builder.tensor(tensor);
    }
    for op in ops {
        builder.op(op);
    }
    Ok(builder.finish()?)
}

#[derive(Deserialize)]
pub(crate) struct TensorRow {
    id: Value,
    #[serde(default)]
    name: Box<str>,
    #[serde(default)]
    bytes: Value,
    #[serde(default)]
    max_bytes: Value,
    kind: Box<str>,
    #[serde(default)]
    is_output: bool,
    dtype: Option<Box<str>>,
    shape: Option<Vec<Value>>,
}

impl Cell for Tensor {
    type Raw = TensorRow;

    fn read(row: TensorRow, index: usize) -> Result<Self, Misfit> {
        let field = |name: &str| format!("tensor `{}` (t{index}): {name}", row.name);
        check_id(&row.id, index, || field("id"))?;
        let (kind, is_output) = match &*row.kind {
            "weight" => (TensorKind::Weight, false),
            "input" => (TensorKind::Input, false),
            "activation" => (TensorKind::Computed, false),
            "output" => (TensorKind::Computed, true),
            other => {
                let wanted = "weight, input, activation or output";
                return Err(Misfit { place: field("kind"), found: format!("{other:?}"), wanted });
            }
        };
        let size = size(&row.bytes, &row.max_bytes, |part| field(&format!("{part}bytes")))?;
        let dim = |(axis, value)| dim(value, || field(&format!("shape[{axis}]")));
        let shape = row.shape.as_ref();
        let shape = shape.map(|shape| shape.iter().enumerate().map(dim).collect()).transpose()?;
        let dtype = row.dtype.as_deref().and_then(DType::from_name);
        let is_output = is_output || row.is_output;
        Ok(Self { name: row.name, size, kind, is_output, dtype, shape })
    }
}

#[derive(Deserialize)]
pub(crate) struct OpRow {
    id: Value,
    #[serde(default)]
    name: Box<str>,
    #[serde(rename = "type")]
    kind: Box<str>,
    inputs: Ids,
    outputs: Ids,
    #[serde(default)]
    views: Vec<ShareRow>,
    #[serde(default)]
    mutates: Vec<ShareRow>,
    #[serde(default)]
    overwrites: Vec<ShareRow>,
    #[serde(default)]
    parts: Vec<PartRow>,
    #[serde(default)]
    pieces: Vec<ShareRow>,
    #[serde(default = "no_bytes")]
    scratch: Value,
    #[serde(default)]
    max_scratch: Value,
    #[serde(default)]
    cost: Value,
}

#[derive(Deserialize)]
struct ShareRow {
    output: Value,
    of: Value,
    #[serde(default)]
    offset: Value,
}

#[derive(Deserialize)]
struct PartRow {
    input: Value,
    output: Value,
    offset: Value,
}

fn no_bytes() -> Value {
    Value::Whole(0)
}

impl Cell for Op {
    type Raw = OpRow;

    fn read(mut row: OpRow, index: usize) -> Result<Self, Misfit> {
        let label = if row.name.is_empty() { row.kind.clone() } else { row.name.clone() };
        let field = |name: &str| format!("operator `{label}` (op{index}): {name}");
        check_id(&row.id, index, || field("id"))?;
        let inputs =
            tensors(std::mem::take(&mut row.inputs), |at| field(&format!("inputs[{at}]")))?;
        let outputs =
            tensors(std::mem::take(&mut row.outputs), |at| field(&format!("outputs[{at}]")))?;
        // No scratch is the default, and says nothing against a bound.
        let is_open = row.scratch == no_bytes() && row.max_scratch != Value::Null;
        let exact = if is_open { &Value::Null } else { &row.scratch };
        let scratch = size(exact, &row.max_scratch, |part| field(&format!("{part}scratch")))?;
        let cost = cost(&row.cost, || field("cost"))?;
        let sharing = sharing(&row, field)?;
        Ok(Self { name: row.name, kind: row.kind, inputs, outputs, sharing, scratch, cost })
    }
}

/// All ways of sharing, each named by `field` and its position.
fn sharing(row: &OpRow, field: impl Fn(&str) -> String) -> Result<Vec<Sharing>, Misfit> {
    let id = |value: &Value, list: &str, at: usize, end: &str| {
        scalar::<TensorId>(value, || field(&format!("{list}[{at}].{end}")))
    };
    let mut sharing = Vec::new();
    for (at, view) in row.views.iter().enumerate() {
        sharing.push(Sharing::View {
            output: id(&view.output, "views", at, "output")?,
            of: id(&view.of, "views", at, "of")?,
            offset: scalar(&view.offset, || field(&format!("views[{at}].offset")))?,
        });
    }
    for (at, row) in row.mutates.iter().enumerate() {
        let output = id(&row.output, "mutates", at, "output")?;
        sharing.push(Sharing::Mutates { output, of: id(&row.of, "mutates", at, "of")? });
    }
    for (at, row) in row.overwrites.iter().enumerate() {
        let output = id(&row.output, "overwrites", at, "output")?;
        sharing.push(Sharing::MayOverwrite { output, of: id(&row.of, "overwrites", at, "of")? });
    }
    for (at, part) in row.parts.iter().enumerate() {
        sharing.push(Sharing::PartOf {
            input: id(&part.input, "parts", at, "input")?,
            output: id(&part.output, "parts", at, "output")?,
            offset: scalar(&part.offset, || field(&format!("parts[{at}].offset")))?,
        });
    }
    for (at, piece) in row.pieces.iter().enumerate() {
        sharing.push(Sharing::PieceOf {
            output: id(&piece.output, "pieces", at, "output")?,
            of: id(&piece.of, "pieces", at, "of")?,
            offset: scalar(&piece.offset, || field(&format!("pieces[{at}].offset")))?,
        });
    }
    Ok(sharing)
}

/// The row of a scalar; its place is put into words only if it is a misfit.
fn scalar<T: Scalar>(value: &Value, place: impl Fn() -> String) -> Result<T, Misfit> {
    T::of(value).map_or_else(|| T::at(place(), value), Ok)
}

fn check_id(id: &Value, index: usize, place: impl Fn() -> String) -> Result<(), Misfit> {
    if *id == Value::Whole(index as u64) {
        return Ok(());
    }
    let wanted = "its position in the list, counted from 0";
    Err(Misfit { place: place(), found: id.to_string(), wanted })
}

fn tensors(ids: Ids, place: impl Fn(usize) -> String) -> Result<Vec<TensorId>, Misfit> {
    match ids.misfit {
        None => Ok(ids.ids),
        Some((at, value)) => scalar(&value, || place(at)).map(|id| vec![id]),
    }
}

/// A list of ids, kept as small as it will be: a list of values would take six times the room.
#[derive(Default)]
struct Ids {
    ids: Vec<TensorId>,
    /// The first value that is no id, and where it stands.
    misfit: Option<(usize, Value)>,
}

impl<'de> Deserialize<'de> for Ids {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(IdsVisitor)
    }
}

struct IdsVisitor;

impl<'de> Visitor<'de> for IdsVisitor {
    type Value = Ids;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of ids")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Ids, A::Error> {
        let mut ids = Ids::default();
        while let Some(value) = list.next_element::<Value>()? {
            match TensorId::of(&value) {
                Some(id) => ids.ids.push(id),
                None if ids.misfit.is_none() => ids.misfit = Some((ids.ids.len(), value)),
                None => {}
            }
        }
        Ok(ids)
    }
}

/// A size, or only a bound, or neither. `place` is given what stands before the name of the field.
fn size(exact: &Value, bound: &Value, place: impl Fn(&str) -> String) -> Result<Size, Misfit> {
    if let Some(bytes) = scalar(exact, || place(""))? {
        return Ok(Size::Fixed(bytes));
    }
    let bound: Option<Bytes> = scalar(bound, || place("max_"))?;
    Ok(bound.map_or(Size::Unknown, Size::AtMost))
}

fn dim(value: &Value, place: impl Fn() -> String) -> Result<Dim, Misfit> {
    match value {
        Value::Null => Ok(Dim::Unknown),
        Value::Whole(number) => Ok(Dim::Known(*number)),
        Value::Text(name) => Ok(Dim::Named(name.clone())),
        Value::Real(_) | Value::AtMost(_) => {
            let wanted = "a whole number, 0 or more, a name, or null";
            Err(Misfit { place: place(), found: value.to_string(), wanted })
        }
    }
}

fn cost(value: &Value, place: impl Fn() -> String) -> Result<Option<f64>, Misfit> {
    match *value {
        Value::Null => Ok(None),
        #[expect(clippy::cast_precision_loss, reason = "a cost is an estimate")]
        Value::Whole(seconds) => Ok(Some(seconds as f64)),
        Value::Real(seconds) if seconds >= 0.0 => Ok(Some(seconds)),
        _ => {
            let wanted = "a number of seconds, 0 or more, or null";
            Err(Misfit { place: place(), found: value.to_string(), wanted })
        }
    }
}
