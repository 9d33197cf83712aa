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
    /// A shape for something that is no input.
    #[error("a shape is given for `{name}`, wanted one of the inputs: {inputs}")]
    NoSuchInput { name: String, inputs: String },
    /// A shape of another rank than the file declares.
    #[error("shape {given:?} is given for input `{input}`, which is declared {declared}")]
    Rank { input: String, declared: String, given: Vec<u64> },
    /// A shape that binds a name to something else than it is bound to.
    #[error("the shape of input `{input}` binds dimension `{name}` to {given}, wanted {wanted}")]
    Conflict { input: String, name: String, given: u64, wanted: String },
    /// The parts do not make a graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
}
