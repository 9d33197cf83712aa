//! The values of weights: in the file's memory where that is aligned, copied once where it is not.
//!
//! ~~~text
//! file ... |raw data of w, at a multiple of 4|      read in place
//!      ... |raw data of v, at an odd byte   |  ──copy──> own memory
//! ~~~
//! Every page is touched once here, so that loading is over when the first run begins.

use crate::SessionError;
use lowtide_core::operator::Program;
use lowtide_core::{Bytes, DType, Data, IndexVec, TensorId, TensorKind};
use std::hint::black_box;

/// Bytes of a page at least.
const PAGE: usize = 4096;
/// Names in a message; a model may have thousands of weights.
const MOST_NAMES: usize = 8;

/// The elements of one weight.
#[derive(Debug)]
enum Weight {
    Mapped(Data),
    /// Words, of whose bytes the first `len` count.
    Copied(Box<[u64]>, usize),
}

/// The elements of all weights.
#[derive(Debug)]
pub(crate) struct Weights(IndexVec<TensorId, Option<Weight>>);

impl Weights {
    /// Takes the weights that some kernel or the caller reads.
    pub(crate) fn new(program: &Program) -> Result<Self, SessionError> {
        let read = read(program);
        let is_missing =
            |id: &TensorId| read[*id] && program.weights.get(*id).is_none_or(Option::is_none);
        let missing: Vec<TensorId> = program.graph.tensors().ids().filter(is_missing).collect();
        if !missing.is_empty() {
            return Err(missing_weights(program, &missing));
        }
        let weight = |(id, data): (TensorId, &Option<Data>)| {
            let data = data.as_ref().filter(|_| read.get(id) == Some(&true));
            data.map(|data| load(program, id, data)).transpose()
        };
        program.weights.iter_enumerated().map(weight).collect::<Result<_, _>>().map(Self)
    }

    /// The bytes of a weight.
    pub(crate) fn bytes(&self, id: TensorId) -> &[u8] {
        match self.0[id].as_ref().expect("weights that are read were taken") {
            Weight::Mapped(data) => data,
            Weight::Copied(words, len) => &bytemuck::cast_slice(words)[..*len],
        }
    }

    /// Bytes of those that had to be copied.
    pub(crate) fn copied(&self) -> Bytes {
        let copied = self.0.iter().flatten().map(|weight| match weight {
            Weight::Mapped(_) => 0,
            Weight::Copied(words, _) => 8 * words.len() as u64,
        });
        Bytes(copied.sum())
    }
}

/// For each weight: whether anybody reads it, or a view of it.
fn read(program: &Program) -> IndexVec<TensorId, bool> {
    let graph = &program.graph;
    let mut read = IndexVec::filled(graph.tensors().len(), false);
    let of_calls = program.calls.iter().flatten().flat_map(|call| call.inputs.iter().flatten());
    let of_late = program.late.values().flat_map(|call| call.inputs.iter().flatten());
    for &tensor in of_calls.chain(of_late).chain(&program.outputs) {
        let root = graph.storage(tensor);
        read[root] |= graph.tensors()[root].kind == TensorKind::Weight;
    }
    read
}

fn load(program: &Program, id: TensorId, data: &Data) -> Result<Weight, SessionError> {
    let tensor = &program.graph.tensors()[id];
    let wanted = tensor.size.fixed();
    if wanted != Some(Bytes(data.len() as u64)) {
        let (name, found) = (program.graph.tensor_label(id), Bytes(data.len() as u64));
        return Err(SessionError::WeightSize { name, found, wanted: tensor.size });
    }
    let width =
        tensor.dtype.and_then(DType::bits).map_or(1, |bits| (bits as usize / 8).clamp(1, 8));
    if data.as_ptr().align_offset(width) == 0 {
        data.iter().step_by(PAGE).for_each(|byte| {
            black_box(*byte);
        });
        return Ok(Weight::Mapped(data.clone()));
    }
    let mut words = vec![0_u64; data.len().div_ceil(8)].into_boxed_slice();
    bytemuck::cast_slice_mut(&mut words)[..data.len()].copy_from_slice(data);
    Ok(Weight::Copied(words, data.len()))
}

fn missing_weights(program: &Program, missing: &[TensorId]) -> SessionError {
    let name = |&id: &TensorId| format!("`{}`", program.graph.tensor_label(id));
    let mut names: Vec<String> = missing.iter().take(MOST_NAMES).map(name).collect();
    if missing.len() > MOST_NAMES {
        names.push("...".to_owned());
    }
    SessionError::MissingWeights { count: missing.len(), names: names.join(", ") }
}
