//! Element types and shapes: the numbers of the file in, [`DType`] and [`Dim`] out.
//!
//! ~~~text
//! ValueInfoProto { elem_type: 1, dim: [batch, -1, 64] }  ──>  float32 [batch, ?, 64]
//! TensorProto { data_type: 7, dims: [3] }                ──>  int64 [3]
//! ~~~
//! What a declaration leaves open stays open. A tensor with values leaves nothing open, so there every
//! fault is an error.

use crate::proto::{DimensionProto, TensorProto, ValueInfoProto};
use crate::{Limits, LoadError};
use lowtide_core::{DType, Dim};
use std::fmt::Display;

/// What is known of a tensor before anything runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Declared {
    pub(crate) dtype: Option<DType>,
    pub(crate) shape: Option<Vec<Dim>>,
}

impl Declared {
    /// The type of a tensor whose values are there.
    pub(crate) fn exact(dtype: DType, dims: Vec<u64>) -> Self {
        Self { dtype: Some(dtype), shape: Some(dims.into_iter().map(Dim::Known).collect()) }
    }
}

fn dtype(number: i32) -> Option<DType> {
    DType::from_onnx(number.into())
}

/// What a declaration says; nothing at all for what is no tensor.
pub(crate) fn declared(info: &ValueInfoProto, limits: &Limits) -> Result<Declared, LoadError> {
    let Some(tensor) = info.r#type.as_ref().and_then(|t| t.tensor_type.as_ref()) else {
        return Ok(Declared::default());
    };
    let Some(shape) = &tensor.shape else {
        return Ok(Declared { dtype: dtype(tensor.elem_type), shape: None });
    };
    check_rank(&info.name, shape.dim.len(), limits)?;
    let dims = shape.dim.iter().enumerate().map(|(index, dim)| declared_dim(info, index, dim));
    Ok(Declared { dtype: dtype(tensor.elem_type), shape: Some(dims.collect::<Result<_, _>>()?) })
}

fn declared_dim(
    info: &ValueInfoProto,
    index: usize,
    dim: &DimensionProto,
) -> Result<Dim, LoadError> {
    match (dim.dim_value, dim.dim_param.as_deref()) {
        // Exporters write -1 or `?` for a dimension that they do not know.
        (Some(-1), _) | (None, Some("" | "?") | None) => Ok(Dim::Unknown),
        (Some(value), _) => known_dim(&info.name, index, value).map(Dim::Known),
        (None, Some(name)) => Ok(Dim::Named(name.into())),
    }
}

/// The type of a tensor whose values are in the file or beside it.
pub(crate) fn exact(
    tensor: &TensorProto,
    name: &dyn Display,
    limits: &Limits,
) -> Result<(DType, Vec<u64>), LoadError> {
    let (dtype, dims) = (exact_dtype(tensor, name)?, known_dims(name, &tensor.dims, limits)?);
    element_count(name, &dims)?;
    Ok((dtype, dims))
}

/// How many bytes the values of a tensor take; no type has that many where there is no number for it.
pub(crate) fn byte_count(name: &dyn Display, dtype: DType, dims: &[u64]) -> Result<u64, LoadError> {
    let elements = element_count(name, dims)?;
    Ok(dtype.bytes(elements).map_or(u64::MAX, |bytes| bytes.0))
}

fn exact_dtype(tensor: &TensorProto, name: &dyn Display) -> Result<DType, LoadError> {
    let found = tensor.data_type;
    dtype(found).ok_or_else(|| LoadError::UnknownType { tensor: name.to_string(), found })
}

fn known_dims(name: &dyn Display, dims: &[i64], limits: &Limits) -> Result<Vec<u64>, LoadError> {
    check_rank(name, dims.len(), limits)?;
    dims.iter().enumerate().map(|(index, &dim)| known_dim(name, index, dim)).collect()
}

fn known_dim(name: &dyn Display, index: usize, found: i64) -> Result<u64, LoadError> {
    u64::try_from(found).map_err(|_| LoadError::NegativeDim {
        tensor: name.to_string(),
        index,
        found,
    })
}

fn check_rank(name: &dyn Display, rank: usize, limits: &Limits) -> Result<(), LoadError> {
    if rank <= limits.max_rank {
        return Ok(());
    }
    Err(LoadError::RankTooHigh { tensor: name.to_string(), rank, limit: limits.max_rank })
}

fn element_count(name: &dyn Display, dims: &[u64]) -> Result<u64, LoadError> {
    lowtide_core::element_count(dims)
        .ok_or_else(|| LoadError::TooManyElements { tensor: name.to_string(), dims: dims.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(data_type: i32, dims: &[i64]) -> TensorProto {
        TensorProto { data_type, dims: dims.to_vec(), ..TensorProto::default() }
    }

    fn read(tensor: &TensorProto) -> Result<(DType, Vec<u64>), String> {
        exact(tensor, &"w", &Limits::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_numbers_are_those_of_the_format() {
        let numbers = [1, 7, 8, 9, 10, 11, 16, 21, 22, 23, 24].map(|n| dtype(n).unwrap().name());
        let names =
            "float32 int64 string bool float16 float64 bfloat16 uint4 int4 float4e2m1 float8e8m0";
        assert_eq!(numbers.join(" "), names);
    }

    #[test]
    fn a_tensor_with_values_has_a_known_type_and_shape() {
        assert_eq!(read(&tensor(1, &[2, 3])), Ok((DType::F32, vec![2, 3])));
        let message = "tensor `w` has element type 99, wanted a number from 1 to 26";
        assert_eq!(read(&tensor(99, &[])).unwrap_err(), message);
        assert!(read(&tensor(0, &[])).is_err() && read(&tensor(-1, &[])).is_err());
        let message = "dimension 1 of tensor `w` is -1, wanted 0 or more";
        assert_eq!(read(&tensor(1, &[2, -1])).unwrap_err(), message);
    }

    #[test]
    fn elements_that_cannot_be_counted_are_an_error() {
        let message = "tensor `w` of shape [4294967296, 4294967296] has more than 2^64 elements";
        assert_eq!(read(&tensor(1, &[1 << 32, 1 << 32])).unwrap_err(), message);
        assert!(read(&tensor(1, &[1 << 32, 1 << 32, 0])).is_ok());
    }

    #[test]
    fn rank_is_limited() {
        let message = "tensor `w` has 65 dimensions, the limit is 64";
        assert_eq!(read(&tensor(1, &[1; 65])).unwrap_err(), message);
    }
}
