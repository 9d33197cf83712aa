//! [`ResolveError`]: why a model does not resolve into a graph.

use lowtide_core::{Bytes, GraphError};

/// Why a model does not resolve into a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ResolveError {
    /// A tensor that no memory could hold.
    #[error("tensor `{tensor}`, {dtype} {shape}, takes more than {limit}, the limit")]
    TooLarge { tensor: String, dtype: &'static str, shape: String, limit: Bytes },
    /// A dimension with a value and a bound.
    #[error(
        "dimension `{name}` is bound to {value} and again to at most {most}, wanted one of them"
    )]
    BoundTwice { name: String, value: u64, most: u64 },
    /// The parts do not make a graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
}
