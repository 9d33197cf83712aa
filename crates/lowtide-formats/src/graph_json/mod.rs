//! Graphs in the neutral JSON form, plain or compressed by gzip: bytes to [`Graph`](lowtide_core::Graph) and back.
//!
//! ~~~text
//! {"format": "lowtide-graph", "version": 1, "name": "two",
//!  "tensors": [{"id": 0, "name": "x", "bytes": 64, "kind": "input"},           id = list position
//!              {"id": 1, "name": "y", "bytes": 64, "kind": "output"}],
//!  "ops":     [{"id": 0, "name": "relu", "type": "Relu", "inputs": [0], "outputs": [1],
//!               "overwrites": [{"output": 1, "of": 0}]}]}                      y may lie on x
//! ~~~
//! `docs/graph-json.md` describes every field. Rows are turned into tensors and operators while the text
//! streams by, so a compressed graph is never held as text. Memory is proportional to the text, and
//! [`GraphLimits`] limits the text, so that a small file cannot unfold into all memory.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::read_graph;
pub(crate) use write::kind_name;
pub use write::write_graph;

use crate::column::Misfit;
use lowtide_core::{Bytes, GraphError};

/// The version of the neutral form that is read and written.
pub const GRAPH_VERSION: u32 = 1;

const FORMAT: &str = "lowtide-graph";

/// How much a reader of graphs takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphLimits {
    /// The longest text, after decompression. More than 4 GiB counts as 4 GiB, so that every count of rows
    /// fits an id.
    pub text: Bytes,
}

impl Default for GraphLimits {
    /// 1 GiB of text: about five million operators.
    fn default() -> Self {
        Self { text: Bytes(1 << 30) }
    }
}

/// Why bytes are not a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum GraphJsonError {
    /// Not JSON, or not of this form; the message has line and column.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Another format, or none.
    #[error("the format is {found}; wanted \"lowtide-graph\"")]
    Format { found: String },
    /// Another version, or none.
    #[error("the version of the graph is {found}; this reader knows version {wanted}")]
    Version { found: String, wanted: u32 },
    /// Too much text.
    #[error("the graph has more than {limit} of text, which is the limit")]
    TooLong { limit: Bytes },
    /// A list is not there.
    #[error("the graph has no list `{list}`")]
    NoList { list: &'static str },
    /// A value that is not what it should be.
    #[error("{place} is {found}; wanted {wanted}")]
    Value { place: String, found: String, wanted: &'static str },
    /// Tensors and operators that make no graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
}

impl From<Misfit> for GraphJsonError {
    fn from(Misfit { place, found, wanted }: Misfit) -> Self {
        Self::Value { place, found, wanted }
    }
}
