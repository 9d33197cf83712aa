//! [`TensorRef`]: an array of the caller, or one that the caller gets to see.

use crate::SessionError;
use lowtide_core::operator::{KernelValue, Program};
use lowtide_core::{DType, Dim, Size, TensorId, element_count};

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
    /// Its shape, as far as it is known before a run; `None` if not even the number of dimensions is.
    pub shape: Option<Box<[Dim]>>,
}

impl TensorSpec {
    /// That of a tensor of a program.
    pub(crate) fn of(program: &Program, id: TensorId) -> Result<Self, SessionError> {
        let tensor = &program.graph.tensors()[id];
        let name = program.graph.tensor_label(id);
        let not_fixed = || SessionError::NotFixed { tensor: name.clone() };
        let dtype = tensor.dtype.ok_or_else(not_fixed)?;
        let fixed = program.shapes.get(id).ok_or_else(not_fixed)?;
        let fixed = || Some(fixed.iter().map(|&dim| Dim::Known(dim as u64)).collect());
        let is_fixed = matches!(tensor.size, Size::Fixed(_));
        let shape = if is_fixed { fixed() } else { tensor.shape.clone() };
        Ok(Self { name, dtype, shape })
    }

    /// The shape, if it is the same in every run.
    pub fn fixed_dims(&self) -> Option<Vec<usize>> {
        let number = |dim: &Dim| match dim {
            Dim::Known(number) => usize::try_from(*number).ok(),
            Dim::Named(_) | Dim::Unknown => None,
        };
        self.shape.as_ref()?.iter().map(number).collect()
    }

    /// Whether a tensor may have this shape: dimensions that are known have to be equal.
    pub fn takes(&self, dims: &[usize]) -> bool {
        let Some(shape) = &self.shape else { return true };
        let is_equal = |(wanted, &found): (&Dim, &usize)| match wanted {
            Dim::Known(wanted) => *wanted == found as u64,
            Dim::Named(_) | Dim::Unknown => true,
        };
        shape.len() == dims.len() && shape.iter().zip(dims).all(is_equal)
    }

    /// The shape as people write it: `[batch, 3]`, or `?`.
    pub fn shape_text(&self) -> String {
        self.shape.as_deref().map_or_else(|| "?".to_owned(), Dim::shape_text)
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

    #[test]
    fn open_dimensions_take_any_number() {
        let shape = Some([Dim::Named("n".into()), Dim::Known(3)].into());
        let spec = TensorSpec { name: "x".to_owned(), dtype: DType::F32, shape };
        assert!(spec.takes(&[7, 3]) && !spec.takes(&[7, 4]) && !spec.takes(&[3]));
        assert_eq!((spec.fixed_dims(), &*spec.shape_text()), (None, "[n, 3]"));
        let any = TensorSpec { shape: None, ..spec };
        assert!(any.takes(&[]) && any.takes(&[1, 2]));
    }
}
