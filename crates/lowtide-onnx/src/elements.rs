//! Elements of a tensor as the file holds them in, bytes out: row after row, least significant byte first.
//!
//! ~~~text
//! raw_data, float_data, double_data   the bytes are the elements: a piece of the file, no copy
//! int32_data    ac 02 | 07            one number an element, seven bits a byte: written out once
//!   as int16    2c 01 | 07 00
//!   as int4     2c    | 07            narrow types: one number for all the elements of a byte
//! ~~~
//! Numbers wider than their type lose what does not fit, as in the reference implementation.
//! Cost: linear; the copy is exactly as long as its numbers say.

use crate::proto::TensorProto;
use crate::wire;
use bytes::Bytes;
use lowtide_core::{DType, Data};

/// The elements that a tensor holds, however many they are.
#[derive(Debug, PartialEq)]
pub(crate) struct Elements {
    pub(crate) data: Data,
    /// Whether they had to be written out.
    pub(crate) is_copy: bool,
}

/// Finds or writes out the elements of a tensor; `None` if a number in them has no end.
pub(crate) fn elements(tensor: &TensorProto, dtype: DType) -> Option<Elements> {
    if let Some(raw) = tensor.raw_data.as_ref().filter(|raw| !raw.is_empty()) {
        return Some(Elements { data: raw.clone(), is_copy: false });
    }
    match dtype {
        DType::F32 | DType::C64 => Some(joined(&tensor.float_data)),
        DType::F64 | DType::C128 => Some(joined(&tensor.double_data)),
        DType::I64 => written_out(&tensor.int64_data, u64::to_le_bytes),
        DType::U64 => written_out(&tensor.uint64_data, u64::to_le_bytes),
        DType::U32 => written_out(&tensor.uint64_data, low::<4>),
        DType::I32 => written_out(&tensor.int32_data, low::<4>),
        DType::I16 | DType::U16 | DType::F16 | DType::BF16 => {
            written_out(&tensor.int32_data, low::<2>)
        }
        DType::Bool => written_out(&tensor.int32_data, |value| [u8::from(value != 0)]),
        _ => written_out(&tensor.int32_data, low::<1>),
    }
}

/// How many bytes writing out the elements may take; nothing for those that stay where they are.
pub(crate) fn cost(tensor: &TensorProto) -> u64 {
    let numbers = [&tensor.int32_data, &tensor.int64_data, &tensor.uint64_data];
    let joined = [&tensor.float_data, &tensor.double_data].into_iter().filter(|p| p.len() > 1);
    let bytes = |pieces: &Vec<Bytes>| pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
    numbers.into_iter().map(bytes).sum::<u64>() * 8 + joined.map(bytes).sum::<u64>()
}

/// The low bytes of a number.
fn low<const N: usize>(value: u64) -> [u8; N] {
    let bytes = value.to_le_bytes();
    std::array::from_fn(|index| bytes[index])
}

fn joined(pieces: &[Bytes]) -> Elements {
    match pieces {
        [] => Elements { data: Data::new(), is_copy: false },
        [piece] => Elements { data: piece.clone(), is_copy: false },
        pieces => Elements { data: Data::from(pieces.concat()), is_copy: true },
    }
}

fn written_out<const N: usize>(
    pieces: &[Bytes],
    write: impl Fn(u64) -> [u8; N],
) -> Option<Elements> {
    let last_bytes = |piece: &Bytes| piece.iter().filter(|&&byte| byte < 0x80).count();
    let mut data = Vec::with_capacity(pieces.iter().map(last_bytes).sum::<usize>() * N);
    for piece in pieces {
        let mut rest = &piece[..];
        while !rest.is_empty() {
            data.extend_from_slice(&write(wire::varint(&mut rest)?));
        }
    }
    Some(Elements { data: Data::from(data), is_copy: !pieces.is_empty() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::encoding::encode_varint;

    /// Numbers as a file holds them.
    fn packed(values: &[i64]) -> Vec<Bytes> {
        let mut bytes = Vec::new();
        for &value in values {
            encode_varint(value.cast_unsigned(), &mut bytes);
        }
        vec![Bytes::from(bytes)]
    }

    #[track_caller]
    fn check(dtype: DType, tensor: &TensorProto, wanted: &[u8]) {
        assert_eq!(&elements(tensor, dtype).unwrap().data[..], wanted);
    }

    #[track_caller]
    fn check_int32(dtype: DType, values: &[i64], wanted: &[u8]) {
        check(dtype, &TensorProto { int32_data: packed(values), ..TensorProto::default() }, wanted);
    }

    #[test]
    fn numbers_are_written_out_as_wide_as_their_type() {
        check_int32(DType::I32, &[1, -2], &[1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff]);
        check_int32(DType::I16, &[300, -1], &[0x2c, 1, 0xff, 0xff]);
        check_int32(DType::U16, &[65535], &[0xff, 0xff]);
        check_int32(DType::I8, &[-128, 127], &[0x80, 0x7f]);
        check_int32(DType::U8, &[255, 256], &[255, 0]);
    }

    #[test]
    fn bits_of_numbers_stay_as_they_are() {
        check_int32(DType::F16, &[0x3c00], &[0x00, 0x3c]);
        check_int32(DType::BF16, &[0x3f80], &[0x80, 0x3f]);
        for dtype in [DType::F8E4M3, DType::F8E4M3Fnuz, DType::F8E5M2, DType::F8E5M2Fnuz] {
            check_int32(dtype, &[0xa5], &[0xa5]);
        }
        check_int32(DType::F8E8M0, &[0x7f], &[0x7f]);
    }

    #[test]
    fn narrow_types_come_packed_and_stay_packed() {
        for dtype in [DType::I4, DType::U4, DType::F4E2M1, DType::I2, DType::U2] {
            check_int32(dtype, &[0x21, 0x43], &[0x21, 0x43]);
        }
    }

    #[test]
    fn a_bool_is_0_or_1() {
        check_int32(DType::Bool, &[0, 1, 2, -1], &[0, 1, 1, 1]);
    }

    #[test]
    fn wide_numbers_have_fields_of_their_own() {
        let int64 = TensorProto { int64_data: packed(&[-1]), ..TensorProto::default() };
        check(DType::I64, &int64, &[0xff; 8]);
        let uint64 = TensorProto { uint64_data: packed(&[7]), ..TensorProto::default() };
        check(DType::U64, &uint64, &[7, 0, 0, 0, 0, 0, 0, 0]);
        check(DType::U32, &uint64, &[7, 0, 0, 0]);
    }

    #[test]
    fn floats_and_complex_numbers_stay_in_the_file() {
        let piece = Bytes::from_static(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let floats = TensorProto { float_data: vec![piece.clone()], ..TensorProto::default() };
        let doubles = TensorProto { double_data: vec![piece.clone()], ..TensorProto::default() };
        for (tensor, dtype) in [
            (&floats, DType::F32),
            (&floats, DType::C64),
            (&doubles, DType::F64),
            (&doubles, DType::C128),
        ] {
            let found = elements(tensor, dtype).unwrap();
            assert_eq!((found.data.as_ptr(), found.is_copy), (piece.as_ptr(), false));
        }
    }

    #[test]
    fn pieces_of_a_field_are_joined() {
        let pieces = vec![Bytes::from_static(&[1, 2]), Bytes::from_static(&[3, 4])];
        let tensor = TensorProto { float_data: pieces.clone(), ..TensorProto::default() };
        assert!(elements(&tensor, DType::F32).unwrap().is_copy);
        check(DType::F32, &tensor, &[1, 2, 3, 4]);
        let tensor = TensorProto { int32_data: pieces, ..TensorProto::default() };
        check(DType::I8, &tensor, &[1, 2, 3, 4]);
    }

    #[test]
    fn raw_bytes_come_first() {
        let raw_data = Some(Bytes::from_static(&[9]));
        let tensor = TensorProto { raw_data, int32_data: packed(&[1]), ..TensorProto::default() };
        check(DType::U8, &tensor, &[9]);
    }

    #[test]
    fn a_number_without_end_is_none() {
        let pieces = vec![Bytes::from_static(&[0x80])];
        let tensor = TensorProto { int32_data: pieces, ..TensorProto::default() };
        assert_eq!(elements(&tensor, DType::I32), None);
    }
}
