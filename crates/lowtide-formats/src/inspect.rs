//! The JSON document of `lowtide inspect --json`; described in `docs/json.md`.
//!
//! ~~~text
//! graph, costs, lifetimes ──InspectSummary──> { "parameters": ..., "operators": [ { "id": 0, ... } ] }
//! ~~~

use crate::summary::to_json;
use serde::Serialize;

/// What `lowtide inspect --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InspectSummary {
    /// The file.
    pub model: String,
    /// Operators that the file lists, constants included.
    pub ops: usize,
    /// Tensors: inputs, weights, constants, results.
    pub tensors: usize,
    /// Elements of all weights whose shape is known; constants left out.
    pub parameters: u64,
    /// Bytes of all weights and constants.
    pub weights_bytes: u64,
    /// Multiplications whose products are added up, over all operators whose cost is known.
    pub macs: u64,
    /// All calculations; a multiplication with an addition counts as two.
    pub flops: u64,
    /// Bytes of all results that have memory of their own: views count nothing.
    pub activation_bytes: u64,
    /// Results of unknown size.
    pub unknown_tensors: usize,
    /// Operators whose cost is not known.
    pub uncosted_ops: usize,
    /// Where the values of the weights are; not for graph files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<ValuesRow>,
    /// All operators but constants.
    pub operators: Vec<OperatorRow>,
}

/// Where the values of weights are, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ValuesRow {
    /// Usable where they lie in the file.
    pub in_place_bytes: u64,
    /// In the file, but to be copied once, since they are not aligned.
    pub unaligned_bytes: u64,
    /// Copied while reading, since the file holds them in another form.
    pub decoded_bytes: u64,
    /// Of all: what lies in other files than the model.
    pub external_bytes: u64,
    /// Not found.
    pub absent_bytes: u64,
}

/// One operator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperatorRow {
    /// Its position in the graph.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Names of what it reads.
    pub inputs: Vec<String>,
    /// What it writes.
    pub outputs: Vec<ResultRow>,
    /// What it costs, if that is known.
    #[serde(flatten)]
    pub cost: Option<CostRow>,
}

/// What an operator costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CostRow {
    /// Multiplications whose products are added up.
    pub macs: u64,
    /// All calculations.
    pub flops: u64,
    /// Bytes of its inputs, each once.
    pub read_bytes: u64,
    /// Bytes of its outputs.
    pub written_bytes: u64,
}

/// One result of an operator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultRow {
    /// Its position in the graph.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: Option<&'static str>,
    /// Its shape as text, as in `[1, 3, height, ?]`.
    pub shape: Option<String>,
    /// Its size, or the bound of it.
    pub bytes: Option<u64>,
    /// Whether it takes memory of its own: a view does not.
    pub is_storage: bool,
    /// The step that writes it, in the order of the file.
    pub first_step: u32,
    /// The last step that reads it, in the order of the file.
    pub last_step: u32,
}

impl InspectSummary {
    /// As JSON, with a line end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}
