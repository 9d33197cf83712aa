//! [`Fingerprint`]: 128 bits that name the content of a graph.
//!
//! Everything that decides whether a plan is right goes in, in a fixed order and with lengths. Names of tensors and operators
//! do not, so a renamed graph keeps its plans; neither do times of operators, so a plan that rests on the times of one
//! machine is a plan of the same graph on every other. `SipHash` 2-4 with a fixed key is the same on every machine. It is no proof
//! against an attacker, and need not be: a plan is judged by the checker, not by its fingerprint.

use crate::{Bytes, IndexVec, Op, OpId, Sharing, Size, Tensor, TensorId};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::fmt;
use std::hash::Hasher;

/// Raised whenever the hashed content changes its form.
const VERSION: u64 = 2;

/// Names the content of a graph: equal for equal graphs, on every machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u128);

impl Fingerprint {
    pub(crate) fn of(ops: &IndexVec<OpId, Op>, tensors: &IndexVec<TensorId, Tensor>) -> Self {
        let mut hash = Words(SipHasher24::new());
        hash.put(VERSION);
        hash.put(tensors.len() as u64);
        tensors.iter().for_each(|tensor| hash.tensor(tensor));
        hash.put(ops.len() as u64);
        ops.iter().for_each(|op| hash.op(op));
        Self(hash.0.finish128().as_u128())
    }

    /// Reads the 32 hexadecimal digits that `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        plain.then(|| u128::from_str_radix(text, 16).ok())?.map(Self)
    }
}

/// A hasher that is fed whole words, least significant byte first.
struct Words(SipHasher24);

impl Words {
    fn put(&mut self, word: u64) {
        self.0.write(&word.to_le_bytes());
    }

    fn size(&mut self, size: Size) {
        let (tag, bytes) = match size {
            Size::Fixed(bytes) => (0, bytes),
            Size::AtMost(bytes) => (1, bytes),
            Size::Unknown => (2, Bytes::ZERO),
        };
        self.put(tag);
        self.put(bytes.0);
    }

    fn tensor(&mut self, tensor: &Tensor) {
        self.put(tensor.kind as u64);
        self.put(u64::from(tensor.is_output));
        self.put(tensor.dtype.map_or(0, |dtype| 1 + dtype as u64));
        self.size(tensor.size);
    }

    fn ids(&mut self, ids: &[TensorId]) {
        self.put(ids.len() as u64);
        for id in ids {
            self.put(u64::from(id.raw()));
        }
    }

    fn op(&mut self, op: &Op) {
        self.put(op.kind.len() as u64);
        self.0.write(op.kind.as_bytes());
        self.ids(&op.inputs);
        self.ids(&op.outputs);
        self.put(op.sharing.len() as u64);
        op.sharing.iter().for_each(|&sharing| self.sharing(sharing));
        self.size(op.scratch);
    }

    fn sharing(&mut self, sharing: Sharing) {
        let (tag, a, b, offset) = match sharing {
            Sharing::View { output, of, offset: None } => (0, output, of, Bytes::ZERO),
            Sharing::View { output, of, offset: Some(offset) } => (1, output, of, offset),
            Sharing::Mutates { output, of } => (2, output, of, Bytes::ZERO),
            Sharing::MayOverwrite { output, of } => (3, output, of, Bytes::ZERO),
            Sharing::PartOf { input, output, offset } => (4, input, output, offset),
            Sharing::PieceOf { output, of, offset } => (5, output, of, offset),
        };
        self.put(tag);
        self.ids(&[a, b]);
        self.put(offset.0);
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
