//! A loaded model to a [`Program`], and values where a model or a user gives none.
//!
//! ~~~text
//! Loaded ──program──> Program ──random_weights──> Program whose weights all have values ──Session::new──> Session
//! ~~~

use crate::Loaded;
use lowtide_core::operator::Program;
use lowtide_core::{DType, Registry, TensorId, TensorKind};
use lowtide_formats::Array;
use lowtide_ops::PrepareError;

/// Why a loaded file cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// A graph file has sizes and no meaning.
    #[error(
        "a graph file says what operators need and not what they do; only an ONNX model can be run"
    )]
    GraphFile,
    /// Something of the model stands in the way.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
}

/// Makes a loaded model ready to run: a kernel for each operator, or an error that lists all that are missing.
pub fn program(loaded: &Loaded, operators: &Registry) -> Result<Program, ProgramError> {
    let model = loaded.model.as_ref().ok_or(ProgramError::GraphFile)?;
    Ok(lowtide_ops::prepare(model, loaded.graph.clone(), &loaded.facts, operators)?)
}

/// Gives random values to weights whose values the file leaves out; how many there were. Vectors, which scale, shift or
/// are variances, become small and positive; all else shrinks with the number of elements that are added up.
pub fn random_weights(program: &mut Program, seed: u64) -> usize {
    let graph = &program.graph;
    let is_missing = |id: &TensorId| {
        graph.tensors()[*id].kind == TensorKind::Weight && program.weights[*id].is_none()
    };
    let missing: Vec<TensorId> = graph.tensors().ids().filter(is_missing).collect();
    for &id in &missing {
        let tensor = &program.graph.tensors()[id];
        let dims = &program.shapes[id];
        let added: usize = dims.iter().skip(1).product();
        #[expect(clippy::cast_precision_loss, reason = "a scale need not be exact")]
        let range = if dims.len() < 2 {
            (0.05, 0.15)
        } else {
            let most = (3.0 / added.max(1) as f64).sqrt();
            (-most, most)
        };
        let array = tensor.dtype.and_then(|dtype| random(&tensor.name, dtype, dims, (seed, range)));
        program.weights[id] = array.map(|array| array.bytes().to_vec().into());
    }
    missing.len()
}

/// Random values for an input: numbers from -1 to 1, indices and truth values 0 or 1. The same for the same name and
/// seed on every machine; `None` if there cannot be so many.
pub fn random_input(name: &str, dtype: DType, dims: &[usize], seed: u64) -> Option<Array> {
    random(name, dtype, dims, (seed, (-1.0, 1.0)))
}

/// Random values in a range, from a seed.
fn random(
    name: &str,
    dtype: DType,
    dims: &[usize],
    (seed, (low, high)): (u64, (f64, f64)),
) -> Option<Array> {
    let mut array = Array::zeros(dtype, dims)?;
    let mut state = name.bytes().fold(seed ^ 0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    let width = dtype.bits().map_or(1, |bits| (bits as usize / 8).max(1));
    for element in array.bytes_mut().chunks_exact_mut(width) {
        let bits = split_mix(&mut state);
        #[expect(clippy::cast_precision_loss, reason = "the upper 53 bits are exact")]
        let number = low + (high - low) * ((bits >> 11) as f64 / (1_u64 << 53) as f64);
        #[expect(clippy::cast_possible_truncation, reason = "rounds as the type does")]
        match dtype {
            DType::F32 => element.copy_from_slice(&(number as f32).to_le_bytes()),
            DType::F64 => element.copy_from_slice(&number.to_le_bytes()),
            // Half precision: the exponent of 0.25 to 0.5 with a random sign and fraction.
            DType::F16 => element.copy_from_slice(&(0x3400 | (bits as u16 & 0x83FF)).to_le_bytes()),
            DType::BF16 => element.copy_from_slice(&((number as f32).to_bits().to_le_bytes())[2..]),
            _ => element[0] = (bits >> 63) as u8,
        }
    }
    Some(array)
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_name_and_seed() {
        let of = |name, seed| random_input(name, DType::F32, &[2, 3], seed).unwrap();
        assert_eq!(of("x", 1), of("x", 1));
        assert_ne!(of("x", 1), of("y", 1));
        assert_ne!(of("x", 1), of("x", 2));
        let values = of("x", 1);
        let values =
            values.bytes().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
        assert!(
            values.clone().all(|value| value.abs() <= 1.0)
                && values.clone().any(|value| value < 0.0)
        );
    }

    #[test]
    fn indices_are_zero_or_one() {
        let array = random_input("ids", DType::I64, &[64], 0).unwrap();
        let sum: u32 = array.bytes().iter().map(|&byte| u32::from(byte)).sum();
        assert!(sum > 10 && sum < 54);
        assert!(random_input("x", DType::I64, &[usize::MAX, 2], 0).is_none());
    }
}
