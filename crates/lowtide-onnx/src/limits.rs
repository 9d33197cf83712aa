//! [`Limits`]: how much of a file is read before it is refused.
//!
//! ~~~text
//! bytes ──max_file_bytes, max_ops, max_messages──> messages ──the others──> Model
//! ~~~
//! Memory follows the length of the file, never a number in it. But the smallest message, two bytes, becomes
//! a struct of some three hundred, so messages are counted before they are decoded. Where memory is short,
//! lower `max_messages`: with it goes the most that a hostile file can cost.

/// What a file may hold. The defaults let every model pass that we know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Length of the file in bytes; 2 GiB, as much as its format can hold.
    pub max_file_bytes: u64,
    /// Operators of all graphs together, constants included.
    pub max_ops: u32,
    /// Operators, attributes, tensors, graphs and declarations as the file lists them, together; each may
    /// take some three hundred bytes in memory.
    pub max_messages: u64,
    /// Tensors of all graphs together.
    pub max_tensors: u32,
    /// Dimensions of one tensor.
    pub max_rank: usize,
    /// How deep bodies of control-flow operators may lie in each other, and calls of local functions in
    /// bodies and functions; the format's decoder stops by itself at about 32 bodies.
    pub max_depth: usize,
    /// Bytes that the operators of local functions may take, each call counted; 1 GiB.
    pub max_function_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_file_bytes: 1 << 31,
            max_ops: 1 << 22,
            max_messages: 1 << 24,
            max_tensors: 1 << 24,
            max_rank: 64,
            max_depth: 32,
            max_function_bytes: 1 << 30,
        }
    }
}
