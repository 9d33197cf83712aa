//! Sizes: inferred shapes in, [`Size`]s out.
//!
//! ~~~text
//! float32 [batch, 3]    batch = 8       ──>  Fixed(96 B)
//!                       batch at most 8 ──>  AtMost(96 B)
//!                       neither         ──>  Unknown
//! ~~~
//! A product that does not fit is an error, never a smaller number.

use crate::expr::Expr;
use crate::fact::Fact;
use crate::{ResolveConfig, ResolveError};
use lowtide_core::{Bytes, DType, Dim, Size, element_count};

/// The shape of a fact as a graph keeps it: numbers, expressions as text, or nothing.
pub(crate) fn shape(fact: &Fact) -> Option<Box<[Dim]>> {
    let dim = |expr: &Option<Expr>| match expr {
        Some(Expr::Known(value)) => u64::try_from(*value).map_or(Dim::Unknown, Dim::Known),
        Some(open) => Dim::Named(open.to_string().into()),
        None => Dim::Unknown,
    };
    Some(fact.dims.as_ref()?.iter().map(dim).collect())
}

/// The size of a tensor of which this is known.
pub(crate) fn size(name: &str, fact: &Fact, config: &ResolveConfig) -> Result<Size, ResolveError> {
    let (Some(dims), Some(dtype)) = (&fact.dims, fact.dtype) else { return Ok(Size::Unknown) };
    if dtype.bits().is_none() {
        return Ok(Size::Unknown);
    }
    let bound = |name: &str| config.max_dims.get(name).and_then(|&most| i64::try_from(most).ok());
    let most = |dim: &Option<Expr>| u64::try_from(dim.as_ref()?.most(&bound)?.max(0)).ok();
    let Some(bounds) = dims.iter().map(most).collect::<Option<Vec<u64>>>() else {
        return Ok(Size::Unknown);
    };
    let bytes = element_count(&bounds).and_then(|count| dtype.bytes(count));
    let fits = bytes.filter(|&bytes| bytes <= Bytes::MAX_TOTAL);
    let bytes = fits.ok_or_else(|| too_large(name, dtype, &shape(fact).unwrap_or_default()))?;
    let is_exact = fact.known_dims().is_some();
    Ok(if is_exact { Size::Fixed(bytes) } else { Size::AtMost(bytes) })
}

/// The error for a tensor that no memory could hold.
pub(crate) fn too_large(name: &str, dtype: DType, shape: &[Dim]) -> ResolveError {
    ResolveError::TooLarge {
        tensor: name.to_owned(),
        dtype: dtype.name(),
        shape: Dim::shape_text(shape),
        limit: Bytes::MAX_TOTAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bounds, dims, model};
    use lowtide_core::GraphId;

    fn size_of(dtype: &str, dims: &str, config: &ResolveConfig) -> Result<Size, ResolveError> {
        let model = model(&[&format!("input x {dtype} {dims}")], "x");
        let resolved = crate::resolve(&model, GraphId::new(0), config, &crate::standard())?;
        Ok(resolved.graph.tensors().as_slice()[0].size)
    }

    #[test]
    fn names_are_bound_bounded_or_open() {
        let of = |config| size_of("f32", "batch 3", &config).unwrap();
        assert_eq!(of(dims("batch", 8)), Size::Fixed(Bytes(96)));
        assert_eq!(of(bounds("batch", 8)), Size::AtMost(Bytes(96)));
        assert_eq!(of(dims("other", 8)), Size::Unknown);
        assert_eq!(of(dims("batch", 0)), Size::Fixed(Bytes(0)));
    }

    #[test]
    fn what_is_not_known_has_no_size() {
        let open = ResolveConfig::default();
        assert_eq!(size_of("f32", "? 3", &open), Ok(Size::Unknown));
        assert_eq!(size_of("string", "3", &open), Ok(Size::Unknown));
        assert_eq!(size_of("f32", "", &open), Ok(Size::Fixed(Bytes(4))));
        assert_eq!(size_of("u4", "3 3", &open), Ok(Size::Fixed(Bytes(5))));
    }

    #[test]
    fn a_size_that_does_not_fit_is_an_error() {
        let open = ResolveConfig::default();
        let error = size_of("f32", "4294967296 4294967296", &open).unwrap_err();
        let message =
            "tensor `x`, float32 [4294967296, 4294967296], takes more than 4.00 EiB, the limit";
        assert_eq!(error.to_string(), message);
        assert!(size_of("f32", "4611686018427387904", &open).is_err());
        assert!(size_of("u8", "4611686018427387905", &open).is_err());
        assert!(size_of("u8", "4611686018427387904", &open).is_ok());
        assert_eq!(size_of("f32", "4294967296 4294967296 0", &open), Ok(Size::Fixed(Bytes(0))));
    }

    #[test]
    fn windows_over_bounded_names_are_bounded() {
        let lines = [
            "input x n 3 h h",
            "weight w 8 3 3 3",
            "a = Conv(x, w) {strides=[2, 2], pads=[1, 1, 1, 1]}",
            "y = Flatten(a)",
        ];
        let most = [("n".to_owned(), 2), ("h".to_owned(), 10)];
        let config = ResolveConfig { max_dims: most.into(), ..ResolveConfig::default() };
        let resolved = crate::testing::resolve_with(&lines, "y", &config).unwrap();
        let last = resolved.graph.tensors().as_slice().last().unwrap();
        assert_eq!(last.size, Size::AtMost(Bytes(2 * 8 * 5 * 5 * 4)));
    }
}
