//! [`Fact`]: what is known of a tensor before the model runs: type, shape, and of small ones the elements.
//!
//! ~~~text
//! x  float32 [batch, 3, ?]          Shape(x)  int64 [3] = [batch, 3, ?]
//!            dims                                          elements
//! ~~~
//! Shapes hide behind arithmetic on tensors like `Shape(x)`; so elements of small integer, boolean and number
//! tensors are carried along, as expressions in the names of dimensions.

use crate::expr::Expr;
use lowtide_core::{DType, Data};

/// Tensors with more elements are not worth following.
pub(crate) const MAX_ELEMENTS: usize = 1024;

/// A dimension, if it is known.
pub(crate) type Extent = Option<Expr>;

/// What is known of a tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fact {
    pub(crate) dtype: Option<DType>,
    pub(crate) dims: Option<Vec<Extent>>,
    /// Its elements, row after row; at most [`MAX_ELEMENTS`], and only if all dimensions are numbers.
    pub(crate) elements: Option<Vec<Element>>,
}

/// One element, if it is known.
pub(crate) type Element = Option<Scalar>;

/// The value of an element. Truth values are 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Int(Expr),
    Float(f64),
}

impl Scalar {
    pub(crate) fn int(&self) -> Option<&Expr> {
        match self {
            Self::Int(value) => Some(value),
            Self::Float(_) => None,
        }
    }

    /// The value as a number, if no name is in it.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "as the model's own conversion rounds")]
            Self::Int(value) => value.known().map(|value| value as f64),
            Self::Float(value) => Some(*value),
        }
    }
}

impl Fact {
    /// A tensor of this type of which nothing else is known.
    pub(crate) fn of_type(dtype: Option<DType>) -> Self {
        Self { dtype, ..Self::default() }
    }

    /// A tensor of this type and shape.
    pub(crate) fn new(dtype: Option<DType>, dims: Option<Vec<Extent>>) -> Self {
        Self { dtype, dims, elements: None }
    }

    /// A tensor of this type and of a shape in numbers.
    pub(crate) fn of_dims(dtype: DType, dims: &[i64]) -> Self {
        Self::new(Some(dtype), Some(dims.iter().map(|&dim| Some(Expr::Known(dim))).collect()))
    }

    /// The same with elements, if there are as many as the shape has, and not too many.
    #[must_use]
    pub(crate) fn with(mut self, elements: Option<Vec<Element>>) -> Self {
        let fits = |elements: &Vec<Element>| {
            elements.len() <= MAX_ELEMENTS && self.element_count() == Some(elements.len())
        };
        self.elements = elements.filter(fits);
        self
    }

    /// The number of elements, if all dimensions are numbers.
    pub(crate) fn element_count(&self) -> Option<usize> {
        count(&self.known_dims()?)
    }

    /// The shape, if all dimensions are numbers.
    pub(crate) fn known_dims(&self) -> Option<Vec<i64>> {
        self.dims.as_ref()?.iter().map(|dim| dim.as_ref()?.known()).collect()
    }

    /// Integer elements without names.
    pub(crate) fn ints(&self) -> Option<Vec<i64>> {
        self.elements.as_ref()?.iter().map(|one| one.as_ref()?.int()?.known()).collect()
    }
}

/// The product of a shape in numbers, if it fits.
pub(crate) fn count(dims: &[i64]) -> Option<usize> {
    let product = dims
        .iter()
        .try_fold(1_usize, |product, &dim| product.checked_mul(usize::try_from(dim).ok()?));
    // Where a factor is 0, no other one overflows.
    if dims.contains(&0) { Some(0) } else { product }
}

/// The elements of a tensor that a file holds, if they are few and of a type that shapes depend on.
pub(crate) fn elements_of(dtype: DType, dims: &[i64], data: &Data) -> Option<Vec<Element>> {
    let count = count(dims).filter(|&count| count <= MAX_ELEMENTS)?;
    let width = usize::try_from(dtype.bits()?).ok()? / 8;
    if width == 0 || data.len() != count.checked_mul(width)? {
        return None;
    }
    data.chunks_exact(width).map(|bytes| element_of(dtype, bytes).map(Some)).collect()
}

fn element_of(dtype: DType, bytes: &[u8]) -> Option<Scalar> {
    let int = |value: i64| Some(Scalar::Int(Expr::Known(value)));
    match dtype {
        DType::Bool | DType::U8 => int(bytes[0].into()),
        DType::I8 => int(i8::from_le_bytes([bytes[0]]).into()),
        DType::I16 => int(i16::from_le_bytes(bytes.try_into().ok()?).into()),
        DType::U16 => int(u16::from_le_bytes(bytes.try_into().ok()?).into()),
        DType::I32 => int(i32::from_le_bytes(bytes.try_into().ok()?).into()),
        DType::U32 => int(u32::from_le_bytes(bytes.try_into().ok()?).into()),
        DType::I64 => int(i64::from_le_bytes(bytes.try_into().ok()?)),
        DType::U64 => int(i64::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()?),
        DType::F32 => Some(Scalar::Float(f32::from_le_bytes(bytes.try_into().ok()?).into())),
        DType::F64 => Some(Scalar::Float(f64::from_le_bytes(bytes.try_into().ok()?))),
        _ => None,
    }
}
