//! [`TensorRef`]: an array of the caller, or one that the caller gets to see.

use crate::SessionError;
use lowtide_core::operator::{KernelValue, Program};
use lowtide_core::{DType, TensorId, element_count};

/// An array: type, shape, and elements row after row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TensorRef<'a> {
    dtype: DType,
    dims: &'a [usize],
    bytes: &'a [u8],
}

/// Why bytes are no array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} bytes are given for {dtype} {dims:?}, wanted {}", wanted.map_or_else(|| "a smaller shape".to_owned(), |wanted| wanted.to_string()))]
pub struct TensorError {
    /// The element type.
    pub dtype: DType,
    /// The shape.
    pub dims: Vec<usize>,
    /// How many bytes there are.
    pub found: usize,
    /// How many the shape wants; `None` for more than there can be.
    pub wanted: Option<u64>,
}

impl<'a> TensorRef<'a> {
    /// An array of these elements. Bytes are `uint8`; for truth values see [`TensorRef::from_bytes`].
    pub fn new<T: KernelValue>(dims: &'a [usize], values: &'a [T]) -> Result<Self, TensorError> {
        Self::from_bytes(T::TYPES[0], dims, bytemuck::cast_slice(values))
    }

    /// An array whose elements are these bytes, least significant byte first.
    pub fn from_bytes(
        dtype: DType,
        dims: &'a [usize],
        bytes: &'a [u8],
    ) -> Result<Self, TensorError> {
        let wide: Vec<u64> = dims.iter().map(|&dim| dim as u64).collect();
        let wanted = element_count(&wide).and_then(|count| dtype.bytes(count)).map(|bytes| bytes.0);
        if wanted == Some(bytes.len() as u64) {
            return Ok(Self { dtype, dims, bytes });
        }
        Err(TensorError { dtype, dims: dims.to_vec(), found: bytes.len(), wanted })
    }

    /// One whose bytes are known to be as many as its shape wants.
    pub(crate) fn trusted(dtype: DType, dims: &'a [usize], bytes: &'a [u8]) -> Self {
        Self { dtype, dims, bytes }
    }

    /// Its element type.
    pub fn dtype(self) -> DType {
        self.dtype
    }

    /// Its shape.
    pub fn dims(self) -> &'a [usize] {
        self.dims
    }

    /// Its elements as bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Its elements, if they are of this type.
    pub fn values<T: KernelValue>(self) -> Option<&'a [T]> {
        T::TYPES.contains(&self.dtype).then(|| bytemuck::try_cast_slice(self.bytes).ok())?
    }

    /// Whether the elements lie where elements of their type may.
    pub(crate) fn is_aligned(self) -> bool {
        let width = self.dtype.bits().map_or(1, |bits| (bits as usize / 8).clamp(1, 8));
        self.bytes.as_ptr().align_offset(width) == 0
    }
}

/// What an input has to be, or an output is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// Its name in the model.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its shape.
    pub dims: Box<[usize]>,
}

impl TensorSpec {
    /// That of a tensor of a program.
    pub(crate) fn of(program: &Program, id: TensorId) -> Result<Self, SessionError> {
        let tensor = &program.graph.tensors()[id];
        let name = program.graph.tensor_label(id);
        let not_fixed = || SessionError::NotFixed { tensor: name.clone() };
        let dtype = tensor.dtype.ok_or_else(not_fixed)?;
        let dims = program.shapes.get(id).cloned().ok_or_else(not_fixed)?;
        Ok(Self { name, dtype, dims })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_has_as_many_elements_as_its_shape() {
        let array = TensorRef::new(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(array.values::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert!(array.values::<i32>().is_none());
        let error = TensorRef::new(&[2, 3], &[1_i64]).unwrap_err();
        assert_eq!(error.to_string(), "8 bytes are given for int64 [2, 3], wanted 48");
        let error = TensorRef::new(&[usize::MAX, 3], &[1_i64]).unwrap_err();
        assert!(error.to_string().ends_with("wanted a smaller shape"));
    }
}
