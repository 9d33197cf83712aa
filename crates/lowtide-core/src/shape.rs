//! Element types, dimensions, and the sizes that follow from them.
//!
//! ~~~text
//! float32 x [batch, 3, 224, 224]  --bind batch=8-->  Fixed(4816896 B)
//!                                 --bound batch<=8-->  AtMost(4816896 B)
//!                                 --neither-->         Unknown
//! ~~~

use crate::Bytes;
use std::fmt;

/// An element type. Types narrower than a byte are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the field's own")]
pub enum DType {
    Bool,
    I2,
    U2,
    I4,
    U4,
    F4E2M1,
    I8,
    U8,
    F8E4M3,
    F8E4M3Fnuz,
    F8E5M2,
    F8E5M2Fnuz,
    F8E8M0,
    I16,
    U16,
    F16,
    BF16,
    I32,
    U32,
    F32,
    I64,
    U64,
    F64,
    C64,
    C128,
    /// Strings, whose elements have no fixed size.
    String,
}

impl DType {
    const ALL: [(Self, &'static str, Option<u32>); 26] = [
        (Self::Bool, "bool", Some(8)),
        (Self::I2, "int2", Some(2)),
        (Self::U2, "uint2", Some(2)),
        (Self::I4, "int4", Some(4)),
        (Self::U4, "uint4", Some(4)),
        (Self::F4E2M1, "float4e2m1", Some(4)),
        (Self::I8, "int8", Some(8)),
        (Self::U8, "uint8", Some(8)),
        (Self::F8E4M3, "float8e4m3fn", Some(8)),
        (Self::F8E4M3Fnuz, "float8e4m3fnuz", Some(8)),
        (Self::F8E5M2, "float8e5m2", Some(8)),
        (Self::F8E5M2Fnuz, "float8e5m2fnuz", Some(8)),
        (Self::F8E8M0, "float8e8m0", Some(8)),
        (Self::I16, "int16", Some(16)),
        (Self::U16, "uint16", Some(16)),
        (Self::F16, "float16", Some(16)),
        (Self::BF16, "bfloat16", Some(16)),
        (Self::I32, "int32", Some(32)),
        (Self::U32, "uint32", Some(32)),
        (Self::F32, "float32", Some(32)),
        (Self::I64, "int64", Some(64)),
        (Self::U64, "uint64", Some(64)),
        (Self::F64, "float64", Some(64)),
        (Self::C64, "complex64", Some(64)),
        (Self::C128, "complex128", Some(128)),
        (Self::String, "string", None),
    ];

    fn row(self) -> &'static (Self, &'static str, Option<u32>) {
        Self::ALL.iter().find(|row| row.0 == self).expect("every type has a row")
    }

    /// The name, as numpy and ONNX write it.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The type of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The type with this number in ONNX files and attributes, counted from 1.
    pub fn from_onnx(number: i64) -> Option<Self> {
        const TYPES: [DType; 26] = [
            DType::F32,
            DType::U8,
            DType::I8,
            DType::U16,
            DType::I16,
            DType::I32,
            DType::I64,
            DType::String,
            DType::Bool,
            DType::F16,
            DType::F64,
            DType::U32,
            DType::U64,
            DType::C64,
            DType::C128,
            DType::BF16,
            DType::F8E4M3,
            DType::F8E4M3Fnuz,
            DType::F8E5M2,
            DType::F8E5M2Fnuz,
            DType::U4,
            DType::I4,
            DType::F4E2M1,
            DType::F8E8M0,
            DType::U2,
            DType::I2,
        ];
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        TYPES.get(index).copied()
    }

    /// Bits of one element; `None` for strings.
    pub fn bits(self) -> Option<u32> {
        self.row().2
    }

    /// Bytes of `elements` elements; `None` for strings and on overflow.
    pub fn bytes(self, elements: u64) -> Option<Bytes> {
        let bits = u64::from(self.bits()?);
        if bits >= 8 {
            return elements.checked_mul(bits / 8).map(Bytes);
        }
        Some(Bytes(elements.div_ceil(8 / bits)))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One dimension of a shape, as declared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dim {
    /// A number of elements.
    Known(u64),
    /// A name (or an expression in names) that a user can bind.
    Named(Box<str>),
    /// Nothing is known.
    Unknown,
}

impl Dim {
    /// The number of elements of a shape, if all its dimensions are numbers; see [`element_count`].
    pub fn element_count(shape: &[Self]) -> Option<u64> {
        let known = |dim: &Self| match dim {
            Self::Known(value) => Some(*value),
            Self::Named(_) | Self::Unknown => None,
        };
        element_count(&shape.iter().map(known).collect::<Option<Vec<u64>>>()?)
    }

    /// A shape as people write it: `[batch, 3, ?]`.
    pub fn shape_text(shape: &[Self]) -> String {
        format!("[{}]", shape.iter().map(Self::to_string).collect::<Vec<_>>().join(", "))
    }
}

/// The product of the dimensions, unless it passes `u64::MAX`; an empty dimension makes up for any other.
pub fn element_count(dims: &[u64]) -> Option<u64> {
    if dims.contains(&0) {
        return Some(0);
    }
    dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim))
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(n) => write!(f, "{n}"),
            Self::Named(name) => f.write_str(name),
            Self::Unknown => f.write_str("?"),
        }
    }
}

/// How many bytes a tensor takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Size {
    /// Exactly this many.
    Fixed(Bytes),
    /// Not more than this many; how many is known when the model runs.
    AtMost(Bytes),
    /// Known when the model runs, without a bound. Such a tensor lives in the pool.
    Unknown,
}

impl Size {
    /// What a plan has to reserve; `None` if there is no bound.
    pub fn bound(self) -> Option<Bytes> {
        match self {
            Self::Fixed(bytes) | Self::AtMost(bytes) => Some(bytes),
            Self::Unknown => None,
        }
    }

    /// The exact size, where there is one.
    pub fn fixed(self) -> Option<Bytes> {
        match self {
            Self::Fixed(bytes) => Some(bytes),
            Self::AtMost(_) | Self::Unknown => None,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => bytes.fmt(f),
            Self::AtMost(bytes) => write!(f, "at most {bytes}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_types_are_packed_and_rounded_up() {
        assert_eq!(DType::I4.bytes(3), Some(Bytes(2)));
        assert_eq!(DType::U2.bytes(5), Some(Bytes(2)));
        assert_eq!(DType::F32.bytes(u64::MAX / 2), None);
        assert_eq!(DType::String.bytes(1), None);
    }

    #[test]
    fn an_empty_dimension_makes_up_for_any_other() {
        assert_eq!(element_count(&[]), Some(1));
        assert_eq!(element_count(&[u64::MAX, 2]), None);
        assert_eq!(element_count(&[u64::MAX, 2, 0]), Some(0));
        assert_eq!(Dim::element_count(&[Dim::Known(0), Dim::Unknown]), None);
    }

    #[test]
    fn every_name_is_read_back() {
        for (dtype, name, _) in DType::ALL {
            assert_eq!(DType::from_name(name), Some(dtype));
        }
    }
}
