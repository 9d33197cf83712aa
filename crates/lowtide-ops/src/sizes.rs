//! Sizes: declared shapes and bindings of their names in, [`Size`]s out.
//!
//! ~~~text
//! float32 [batch, 3]    batch = 8       ──>  Fixed(96 B)
//!                       batch at most 8 ──>  AtMost(96 B)
//!                       neither         ──>  Unknown
//! ~~~
//! A product that does not fit is an error, never a smaller number.

use crate::{ResolveConfig, ResolveError};
use lowtide_core::{Bytes, DType, Dim, ModelTensor, Size};

/// The shape with every name that is bound to a value replaced by it; names with a bound stay.
pub(crate) fn bind(shape: &[Dim], config: &ResolveConfig) -> Box<[Dim]> {
    let bound = |dim: &Dim| match dim {
        Dim::Named(name) => config.dims.get(&**name).map(|&value| Dim::Known(value)),
        Dim::Known(_) | Dim::Unknown => None,
    };
    shape.iter().map(|dim| bound(dim).unwrap_or_else(|| dim.clone())).collect()
}

/// The size of a tensor whose shape is `shape` after binding.
pub(crate) fn size(
    tensor: &ModelTensor,
    shape: Option<&[Dim]>,
    config: &ResolveConfig,
) -> Result<Size, ResolveError> {
    let (Some(shape), Some(dtype)) = (shape, tensor.dtype) else { return Ok(Size::Unknown) };
    if dtype.bits().is_none() {
        return Ok(Size::Unknown);
    }
    let Some(bounds) = bounds(shape, config) else { return Ok(Size::Unknown) };
    let bytes = product(&bounds).and_then(|count| dtype.bytes(count));
    let fits = bytes.filter(|&bytes| bytes <= Bytes::MAX_TOTAL);
    let bytes = fits.ok_or_else(|| too_large(tensor, dtype, shape))?;
    let is_exact = shape.iter().all(|dim| matches!(dim, Dim::Known(_)));
    Ok(if is_exact { Size::Fixed(bytes) } else { Size::AtMost(bytes) })
}

/// The number of elements of a shape without names.
pub(crate) fn element_count(shape: &[Dim]) -> Option<u64> {
    let known = |dim: &Dim| match dim {
        Dim::Known(value) => Some(*value),
        Dim::Named(_) | Dim::Unknown => None,
    };
    product(&shape.iter().map(known).collect::<Option<Vec<u64>>>()?)
}

/// A shape as messages show it.
pub(crate) fn shape_text(shape: &[Dim]) -> String {
    format!("[{}]", shape.iter().map(Dim::to_string).collect::<Vec<_>>().join(", "))
}

/// The largest value of each dimension, if each has one.
fn bounds(shape: &[Dim], config: &ResolveConfig) -> Option<Vec<u64>> {
    let bound = |dim: &Dim| match dim {
        Dim::Known(value) => Some(*value),
        Dim::Named(name) => config.max_dims.get(&**name).copied(),
        Dim::Unknown => None,
    };
    shape.iter().map(bound).collect()
}

/// The product, unless it passes `u64::MAX`; an empty dimension makes up for any other.
fn product(dims: &[u64]) -> Option<u64> {
    if dims.contains(&0) {
        return Some(0);
    }
    dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim))
}

fn too_large(tensor: &ModelTensor, dtype: DType, shape: &[Dim]) -> ResolveError {
    ResolveError::TooLarge {
        tensor: tensor.name.clone(),
        dtype: dtype.name(),
        shape: shape_text(shape),
        limit: Bytes::MAX_TOTAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bounds, dims, shape};
    use lowtide_core::Source;

    fn size_of(dtype: DType, text: &str, config: &ResolveConfig) -> Result<Size, ResolveError> {
        let (name, shape) = ("x".to_owned(), bind(&shape(text), config));
        let tensor = ModelTensor { name, dtype: Some(dtype), shape: None, source: Source::Input };
        size(&tensor, Some(&shape), config)
    }

    #[test]
    fn names_are_bound_bounded_or_open() {
        let of = |config| size_of(DType::F32, "batch 3", &config).unwrap();
        assert_eq!(of(dims("batch", 8)), Size::Fixed(Bytes(96)));
        assert_eq!(of(bounds("batch", 8)), Size::AtMost(Bytes(96)));
        assert_eq!(of(dims("other", 8)), Size::Unknown);
        assert_eq!(of(dims("batch", 0)), Size::Fixed(Bytes(0)));
    }

    #[test]
    fn what_is_not_known_has_no_size() {
        let open = ResolveConfig::default();
        assert_eq!(size_of(DType::F32, "? 3", &open), Ok(Size::Unknown));
        assert_eq!(size_of(DType::String, "3", &open), Ok(Size::Unknown));
        assert_eq!(size_of(DType::F32, "", &open), Ok(Size::Fixed(Bytes(4))));
        assert_eq!(size_of(DType::U4, "3 3", &open), Ok(Size::Fixed(Bytes(5))));
    }

    #[test]
    fn a_size_that_does_not_fit_is_an_error() {
        let open = ResolveConfig::default();
        let error = size_of(DType::F32, "4294967296 4294967296", &open).unwrap_err();
        let message =
            "tensor `x`, float32 [4294967296, 4294967296], takes more than 4.00 EiB, the limit";
        assert_eq!(error.to_string(), message);
        assert!(size_of(DType::F32, "4611686018427387904", &open).is_err());
        assert!(size_of(DType::U8, "4611686018427387905", &open).is_err());
        assert!(size_of(DType::U8, "4611686018427387904", &open).is_ok());
        assert_eq!(
            size_of(DType::F32, "4294967296 4294967296 0", &open),
            Ok(Size::Fixed(Bytes(0)))
        );
    }
}
