//! [`LoadError`]: why bytes are not a model. Each message names the operator or tensor, what was found,
//! and what was wanted.
//!
//! ~~~text
//! operator `conv1` reads `w7`, which nothing defines
//! ~~~

use std::path::PathBuf;

/// Why a file could not be read as a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum LoadError {
    /// The file system said no.
    #[error("cannot read `{path}`")]
    Io { path: PathBuf, source: std::io::Error },
    /// The file is longer than allowed.
    #[error("the file has more than {limit} bytes, the limit")]
    FileTooLong { limit: u64 },
    /// The bytes are not messages.
    #[error("not an ONNX file: {reason}")]
    Malformed { reason: String },
    /// The bytes are messages, but of nothing that could run.
    #[error("not an ONNX file: it holds no graph")]
    NoGraph,
    /// More operators than allowed.
    #[error("the file has {found} operators or more, the limit is {limit}")]
    TooManyOps { found: u64, limit: u32 },
    /// More messages than allowed.
    #[error("the file has more than {limit} messages, the limit")]
    TooManyMessages { limit: u64 },
    /// More tensors than allowed.
    #[error("the file has {found} tensors or more, the limit is {limit}")]
    TooManyTensors { found: u64, limit: u32 },
    /// Bodies in bodies in bodies.
    #[error("graph `{graph}` lies {depth} bodies deep, the limit is {limit}")]
    TooDeep { graph: String, depth: usize, limit: usize },
    /// More dimensions than allowed.
    #[error("tensor `{tensor}` has {rank} dimensions, the limit is {limit}")]
    RankTooHigh { tensor: String, rank: usize, limit: usize },
    /// A dimension below zero.
    #[error("dimension {index} of tensor `{tensor}` is {found}, wanted 0 or more")]
    NegativeDim { tensor: String, index: usize, found: i64 },
    /// An element type that the format does not have.
    #[error("tensor `{tensor}` has element type {found}, wanted a number from 1 to 26")]
    UnknownType { tensor: String, found: i32 },
    /// A weight whose elements cannot be counted.
    #[error("tensor `{tensor}` of shape {dims:?} has more than 2^64 elements")]
    TooManyElements { tensor: String, dims: Vec<u64> },
    /// A weight whose bytes do not fill its shape.
    #[error("tensor `{tensor}` comes with {found} bytes, its shape wants {wanted}")]
    WrongData { tensor: String, found: u64, wanted: u64 },
    /// Numbers that end in the middle.
    #[error("tensor `{tensor}` has elements that are cut short")]
    BrokenElements { tensor: String },
    /// Values with their positions instead of all values.
    #[error("tensor `{tensor}` is sparse; sparse initializers and constants are not supported")]
    Sparse { tensor: String },
    /// A value in another file that is not where the model says.
    #[error("tensor `{tensor}` lies in `{location}`: found {found}, wanted {wanted}")]
    External { tensor: String, location: String, found: String, wanted: String },
    /// A value without name that cannot do without one.
    #[error("{kind} {index} of graph `{graph}` has no name")]
    Nameless { kind: &'static str, index: usize, graph: String },
    /// Two inputs or two initializers with one name.
    #[error("graph `{graph}` has two {kind}s named `{name}`, wanted one")]
    Duplicate { kind: &'static str, name: String, graph: String },
    /// An operator reads what is not there.
    #[error("operator `{op}` reads `{tensor}`, which nothing defines")]
    UndefinedInput { op: String, tensor: String },
    /// The graph's result is not there.
    #[error("graph `{graph}` outputs `{tensor}`, which nothing defines")]
    UndefinedOutput { graph: String, tensor: String },
    /// Two writes to one tensor.
    #[error("tensor `{tensor}` is written by operator `{first}` and again by operator `{second}`")]
    WrittenTwice { tensor: String, first: String, second: String },
    /// A write to an input or an initializer.
    #[error("operator `{op}` writes `{tensor}`, which is an {kind} of the graph")]
    WritesExternal { op: String, tensor: String, kind: &'static str },
    /// A constant that is none.
    #[error("operator `{op}` is a Constant with {found}, wanted {wanted}")]
    BadConstant { op: String, found: String, wanted: &'static str },
    /// Calls in calls in calls.
    #[error("function `{function}` is called more than {limit} deep; does it call itself?")]
    CallsTooDeep { function: String, limit: usize },
    /// Functions whose copies take too much memory.
    #[error("the operators of called functions take more than {limit} bytes, the limit")]
    FunctionsTooLong { limit: u64 },
    /// A call that gives more than the function takes.
    #[error("operator `{op}` calls function `{function}` with {found} {kind}, it has {limit}")]
    TooManyArguments {
        op: String,
        function: String,
        kind: &'static str,
        found: usize,
        limit: usize,
    },
    /// Two functions with one name.
    #[error("the file has two functions `{function}` of one domain and overload, wanted one")]
    DuplicateFunction { function: String },
    /// A function's result is not there.
    #[error("function `{function}` outputs `{tensor}`, which nothing defines")]
    UndefinedFunctionOutput { function: String, tensor: String },
    /// An attribute whose type and value do not fit.
    #[error("attribute `{attribute}` of operator `{op}` holds nothing, wanted {wanted}")]
    EmptyAttribute { op: String, attribute: String, wanted: &'static str },
    /// A reference to an attribute of a call, where nothing was called.
    #[error(
        "attribute `{attribute}` of operator `{op}` refers to `{to}` of a call, but is in none"
    )]
    StrayReference { op: String, attribute: String, to: String },
    /// The list of weights among the inputs cannot be read.
    #[error("metadata `weight_inputs`, byte {at}: found {found}, wanted {wanted}")]
    BadWeightInputs { at: usize, found: String, wanted: &'static str },
}
