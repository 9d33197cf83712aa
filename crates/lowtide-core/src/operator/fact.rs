//! [`Fact`]: what is known of a tensor before the model runs: type, shape, and of small ones the elements.
//!
//! ~~~text
//! x  float32 [batch, 3, ?]          Shape(x)  int64 [3] = [batch, 3, ?]
//!            dims                                          elements
//! ~~~
//! Shapes hide behind arithmetic on tensors like `Shape(x)`; so elements of small integer, boolean and number
//! tensors are carried along, as expressions in the names of dimensions.

use super::expr::Expr;
use crate::DType;

/// Tensors with more elements are not worth following.
pub const MAX_ELEMENTS: usize = 1024;

/// A dimension, if it is known.
pub type Extent = Option<Expr>;

/// What is known of a tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fact {
    /// Its element type.
    pub dtype: Option<DType>,
    /// Its shape.
    pub dims: Option<Vec<Extent>>,
    /// Its elements, row after row; at most [`MAX_ELEMENTS`], and only if all dimensions are numbers.
    pub elements: Option<Vec<Element>>,
}

/// One element, if it is known.
pub type Element = Option<Scalar>;

/// The value of an element. Truth values are 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// A whole number, or a truth value.
    Int(Expr),
    /// A number.
    Float(f64),
}

impl Scalar {
    /// The value, if it is a whole number.
    pub fn int(&self) -> Option<&Expr> {
        match self {
            Self::Int(value) => Some(value),
            Self::Float(_) => None,
        }
    }

    /// The value as a number, if no name is in it.
    pub fn number(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "as the model's own conversion rounds")]
            Self::Int(value) => value.known().map(|value| value as f64),
            Self::Float(value) => Some(*value),
        }
    }
}

impl Fact {
    /// A tensor of this type of which nothing else is known.
    pub fn of_type(dtype: Option<DType>) -> Self {
        Self { dtype, ..Self::default() }
    }

    /// A tensor of this type and shape.
    pub fn new(dtype: Option<DType>, dims: Option<Vec<Extent>>) -> Self {
        Self { dtype, dims, elements: None }
    }

    /// A tensor of this type and of a shape in numbers.
    pub fn of_dims(dtype: DType, dims: &[i64]) -> Self {
        Self::new(Some(dtype), Some(dims.iter().map(|&dim| Some(Expr::Known(dim))).collect()))
    }

    /// The same with elements, each as its type holds it, if there are as many as the shape has, and not too
    /// many.
    #[must_use]
    pub fn with(mut self, elements: Option<Vec<Element>>) -> Self {
        let fits = |elements: &Vec<Element>| {
            elements.len() <= MAX_ELEMENTS && self.element_count() == Some(elements.len())
        };
        let dtype = self.dtype;
        let rounded = |all: Vec<Element>| all.into_iter().map(|one| held(one?, dtype)).collect();
        self.elements = elements.filter(fits).map(rounded);
        self
    }

    /// The number of elements, if all dimensions are numbers.
    pub fn element_count(&self) -> Option<usize> {
        count(&self.known_dims()?)
    }

    /// The shape, if all dimensions are numbers.
    pub fn known_dims(&self) -> Option<Vec<i64>> {
        self.dims.as_ref()?.iter().map(|dim| dim.as_ref()?.known()).collect()
    }

    /// Integer elements without names.
    pub fn ints(&self) -> Option<Vec<i64>> {
        self.elements.as_ref()?.iter().map(|one| one.as_ref()?.int()?.known()).collect()
    }
}

/// A value as a tensor of this type holds it: rounded, and not known where it would wrap around. Names stand
/// for sizes of dimensions, which the types that sizes are calculated in hold exactly.
fn held(value: Scalar, dtype: Option<DType>) -> Element {
    // Whole numbers up to here are exact in these types.
    const HALF: f64 = 2048.0;
    const BRAIN: f64 = 256.0;
    let exact = |value: f64, most: f64| value.abs() <= most && value.fract() == 0.0;
    match (value, dtype) {
        (Scalar::Float(value), Some(DType::F32)) => {
            #[expect(clippy::cast_possible_truncation, reason = "rounds as the type does")]
            let rounded = value as f32;
            Some(Scalar::Float(rounded.into()))
        }
        (Scalar::Float(value), Some(DType::F64)) => Some(Scalar::Float(value)),
        (value, Some(DType::F16)) => {
            value.number().is_some_and(|n| exact(n, HALF)).then_some(value)
        }
        (value, Some(DType::BF16)) => {
            value.number().is_some_and(|n| exact(n, BRAIN)).then_some(value)
        }
        (Scalar::Int(value), Some(DType::F32)) if value.known().is_some() => {
            held(Scalar::Float(Scalar::Int(value).number()?), dtype)
        }
        (Scalar::Int(value), dtype) => fits(&value, dtype).then_some(Scalar::Int(value)),
        (Scalar::Float(_), _) => None,
    }
}

/// Whether an integer type holds a value; of names, the wide ones do.
fn fits(value: &Expr, dtype: Option<DType>) -> bool {
    let range = match dtype {
        None | Some(DType::I64 | DType::F32 | DType::F64) => return true,
        Some(DType::I32) => i64::from(i32::MIN)..=i64::from(i32::MAX),
        Some(DType::U32) => 0..=i64::from(u32::MAX),
        Some(DType::U64) => 0..=i64::MAX,
        Some(DType::I16) => i64::from(i16::MIN)..=i64::from(i16::MAX),
        Some(DType::U16) => 0..=i64::from(u16::MAX),
        Some(DType::I8) => i64::from(i8::MIN)..=i64::from(i8::MAX),
        Some(DType::U8) => 0..=i64::from(u8::MAX),
        Some(DType::Bool) => 0..=1,
        Some(_) => return false,
    };
    let is_wide = matches!(dtype, Some(DType::I32 | DType::U32 | DType::U64));
    value.known().map_or(is_wide, |value| range.contains(&value))
}

/// The product of a shape in numbers, if it fits.
pub fn count(dims: &[i64]) -> Option<usize> {
    let product = dims
        .iter()
        .try_fold(1_usize, |product, &dim| product.checked_mul(usize::try_from(dim).ok()?));
    // Where a factor is 0, no other one overflows.
    if dims.contains(&0) { Some(0) } else { product }
}

/// The elements of a tensor that a file holds, if they are few and of a type that shapes depend on.
pub fn elements_of(dtype: DType, dims: &[i64], data: &[u8]) -> Option<Vec<Element>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn float(value: f64, dtype: DType) -> Element {
        held(Scalar::Float(value), Some(dtype))
    }

    fn int(value: i64, dtype: DType) -> Element {
        held(Scalar::Int(Expr::Known(value)), Some(dtype))
    }

    #[test]
    fn values_are_as_their_type_holds_them() {
        // 10 * 0.7 is 7 in single precision and a little less in double.
        assert_eq!(float(10.0 * f64::from(0.7_f32), DType::F32), Some(Scalar::Float(7.0)));
        assert_eq!(int(16_777_217, DType::F32), Some(Scalar::Float(16_777_216.0)));
        assert_eq!((float(4099.0, DType::F16), float(0.5, DType::BF16)), (None, None));
        assert_eq!(int(50_000_000_000, DType::I32), None);
        assert_eq!((int(-1, DType::U8), int(2, DType::Bool)), (None, None));
        assert_eq!(int(1 << 40, DType::I64), Some(Scalar::Int(Expr::Known(1 << 40))));
    }

    #[test]
    fn names_are_held_where_sizes_are_calculated() {
        let name = |dtype| held(Scalar::Int(Expr::name("n")), Some(dtype)).is_some();
        assert!(name(DType::I64) && name(DType::I32) && name(DType::F32));
        assert!(!name(DType::F16) && !name(DType::U8));
    }
}
