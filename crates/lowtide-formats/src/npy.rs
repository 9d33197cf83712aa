//! Arrays in numpy's `.npy` form: bytes in, [`Array`] out, and back.
//!
//! ~~~text
//! \x93NUMPY 1 0 | length of header | {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), } \n | elements
//! ~~~
//! The header is Python, of which only what numpy writes is understood: a dictionary of these three entries. Elements
//! lie row after row, least significant byte first. Memory follows the length of what is read, whatever the shape says.
//! (numpy's own description of the form: `numpy.lib.format`, NEP 1.)

use lowtide_core::{DType, element_count};
use std::io::{self, Write};

const MAGIC: &[u8] = b"\x93NUMPY";
/// numpy itself stops at 64 dimensions.
const MOST_DIMS: usize = 64;
/// Elements begin at a multiple of this, as numpy writes them.
const ALIGN: usize = 64;

/// Element types as numpy writes them, little-endian. Half precision has no name for its second form there.
const TYPES: [(&str, DType); 14] = [
    ("<f4", DType::F32),
    ("<f8", DType::F64),
    ("<f2", DType::F16),
    ("|i1", DType::I8),
    ("<i2", DType::I16),
    ("<i4", DType::I32),
    ("<i8", DType::I64),
    ("|u1", DType::U8),
    ("<u2", DType::U16),
    ("<u4", DType::U32),
    ("<u8", DType::U64),
    ("|b1", DType::Bool),
    ("<c8", DType::C64),
    ("<c16", DType::C128),
];

/// An array, aligned for its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    dtype: DType,
    dims: Vec<usize>,
    words: Vec<u64>,
    len: usize,
}

/// Why bytes are no array.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// It does not begin like one.
    #[error("it does not begin with the whole header of a .npy file of version 1 to 3")]
    NotNpy,
    /// The header is not what numpy writes.
    #[error(
        "its header is `{header}`, wanted entries `descr`, `fortran_order` and `shape` as numpy writes them"
    )]
    Header {
        /// The first part of the header.
        header: String,
    },
    /// A type that is not known here.
    #[error("its elements are of type `{found}`, wanted one of {known}")]
    Type {
        /// The type.
        found: String,
        /// Those that are known.
        known: String,
    },
    /// Columns come first.
    #[error(
        "its elements lie column after column, wanted row after row: numpy.ascontiguousarray does that"
    )]
    FortranOrder,
    /// Too few or too many elements.
    #[error("it has {found} bytes of elements, its shape {dims:?} of {dtype} wants {}", wanted.map_or_else(|| "more than there can be".to_owned(), |bytes| bytes.to_string()))]
    Length {
        /// Bytes that are there.
        found: usize,
        /// The shape.
        dims: Vec<usize>,
        /// The type.
        dtype: DType,
        /// Bytes that the shape wants.
        wanted: Option<u64>,
    },
}

impl Array {
    /// An array of zeros; `None` if there cannot be so many.
    pub fn zeros(dtype: DType, dims: &[usize]) -> Option<Self> {
        let len = usize::try_from(bytes_of(dtype, dims)?).ok()?;
        Some(Self { dtype, dims: dims.to_vec(), words: vec![0; len.div_ceil(8)], len })
    }

    /// Its element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its shape.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Its elements, row after row.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    /// Its elements, row after row.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }
}

fn bytes_of(dtype: DType, dims: &[usize]) -> Option<u64> {
    let dims: Vec<u64> = dims.iter().map(|&dim| dim as u64).collect();
    Some(dtype.bytes(element_count(&dims)?)?.0)
}

/// Reads an array.
pub fn read_npy(bytes: &[u8]) -> Result<Array, NpyError> {
    let (header, data) = split(bytes).ok_or(NpyError::NotNpy)?;
    let unreadable = || NpyError::Header { header: header.chars().take(100).collect() };
    let descr = entry(header, "descr").and_then(quoted).ok_or_else(unreadable)?;
    let shape = entry(header, "shape").and_then(numbers).ok_or_else(unreadable)?;
    let is_fortran = match entry(header, "fortran_order").ok_or_else(unreadable)? {
        text if text.starts_with("False") => false,
        text if text.starts_with("True") => true,
        _ => return Err(unreadable()),
    };
    let named = TYPES.iter().find(|row| row.0 == descr);
    let &(_, dtype) = named.ok_or_else(|| unknown_type(descr))?;
    if is_fortran && shape.iter().filter(|&&dim| dim != 1).count() > 1 {
        return Err(NpyError::FortranOrder);
    }
    let wanted = bytes_of(dtype, &shape);
    if wanted != Some(data.len() as u64) {
        return Err(NpyError::Length { found: data.len(), dims: shape, dtype, wanted });
    }
    let len = data.len();
    let mut array = Array { dtype, dims: shape, words: vec![0; len.div_ceil(8)], len };
    array.bytes_mut().copy_from_slice(data);
    Ok(array)
}

fn unknown_type(found: &str) -> NpyError {
    let known = TYPES.iter().map(|row| row.0).collect::<Vec<_>>().join(", ");
    NpyError::Type { found: found.chars().take(20).collect(), known }
}

/// The header as text, and the elements.
fn split(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (version, rest) = rest.split_first_chunk::<2>()?;
    let (len, rest) = if version[0] == 1 {
        let (len, rest) = rest.split_first_chunk::<2>()?;
        (usize::from(u16::from_le_bytes(*len)), rest)
    } else {
        let (len, rest) = rest.split_first_chunk::<4>().filter(|_| matches!(version[0], 2 | 3))?;
        (usize::try_from(u32::from_le_bytes(*len)).ok()?, rest)
    };
    let (header, data) = rest.split_at_checked(len)?;
    Some((std::str::from_utf8(header).ok()?, data))
}

/// What stands behind a key.
fn entry<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let behind =
        |quote: char| header.split_once(&format!("{quote}{key}{quote}")).map(|found| found.1);
    let rest = behind('\'').or_else(|| behind('"'))?;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    Some(text[1..].split_once(quote)?.0)
}

/// The numbers of a tuple.
fn numbers(text: &str) -> Option<Vec<usize>> {
    let (inner, _) = text.strip_prefix('(')?.split_once(')')?;
    let words = inner.split(',').map(str::trim).filter(|word| !word.is_empty());
    let dims: Vec<usize> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    (dims.len() <= MOST_DIMS).then_some(dims)
}

/// Writes an array; its elements are given row after row.
///
/// # Errors
/// Those of the writer, and of kind `InvalidInput` for a type that numpy has no name for.
pub fn write_npy(
    dtype: DType,
    dims: &[usize],
    elements: &[u8],
    out: &mut impl Write,
) -> io::Result<()> {
    let named = TYPES.iter().find(|row| row.1 == dtype).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("numpy has no type for {dtype}"))
    })?;
    let shape: Vec<String> = dims.iter().map(|dim| format!("{dim},")).collect();
    let mut header = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
        named.0,
        shape.join(" ")
    );
    let before = MAGIC.len() + 4;
    let padded = (before + header.len() + 1).next_multiple_of(ALIGN) - before;
    header += &" ".repeat(padded - header.len() - 1);
    header.push('\n');
    let len = u16::try_from(header.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the shape is too long"))?;
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&len.to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    out.write_all(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(dtype: DType, dims: &[usize], elements: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_npy(dtype, dims, elements, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (dims, len) in [(vec![2, 3], 6), (vec![], 1), (vec![5], 5), (vec![0, 7], 0)] {
            for (_, dtype) in TYPES {
                let width = dtype.bytes(1).unwrap().0;
                let elements: Vec<u8> =
                    (0..len * width).map(|i| u8::try_from(i).unwrap()).collect();
                let bytes = written(dtype, &dims, &elements);
                assert_eq!((bytes.len() - elements.len()) % ALIGN, 0);
                let array = read_npy(&bytes).unwrap();
                assert_eq!(
                    (array.dtype(), array.dims(), array.bytes()),
                    (dtype, &*dims, &*elements)
                );
            }
        }
    }

    #[track_caller]
    fn fails(header: &str, data: usize, message: &str) {
        let mut bytes =
            [MAGIC, &[1, 0], &u16::try_from(header.len()).unwrap().to_le_bytes()].concat();
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        assert_eq!(read_npy(&bytes).unwrap_err().to_string(), message);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(matches!(read_npy(b"\x93NUMPY\x01"), Err(NpyError::NotNpy)));
        let known = "<f4, <f8, <f2, |i1, <i2, <i4, <i8, |u1, <u2, <u4, <u8, |b1, <c8, <c16";
        let header = "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }";
        fails(header, 4, &format!("its elements are of type `>f4`, wanted one of {known}"));
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
        fails(header, 4, "it has 4 bytes of elements, its shape [2, 3] of float32 wants 24");
        let header =
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }";
        let wants =
            "it has 0 bytes of elements, its shape [99999999999, 99999999999] of float32 wants";
        fails(header, 0, &format!("{wants} more than there can be"));
        let header = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
        let message = "its elements lie column after column, wanted row after row: numpy.ascontiguousarray does that";
        fails(header, 24, message);
    }
}
