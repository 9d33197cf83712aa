//! Tensors with values: messages in, [`TensorValue`]s out, each of the length that its shape says.
//!
//! ~~~text
//! TensorProto { int64 [3], raw_data }                ──> a piece of the file
//! TensorProto { int64 [3], int64_data }              ──> bytes of its own
//! TensorProto { int64 [3], external: "w.bin" @ 64 }  ──> a piece of w.bin, or nothing if it is not there
//! TensorProto { string [3] }                         ──> nothing: strings have no bytes of fixed size
//! ~~~

use crate::elements::elements;
use crate::external::{Files, Found};
use crate::proto::TensorProto;
use crate::report::{Origin, WeightReport};
use crate::{Limits, LoadError, types};
use lowtide_core::{DType, Data, TensorValue};
use std::fmt::Display;

/// The number of "not in this file", in `data_location`.
const EXTERNAL: i32 = 1;

/// Reads values, and keeps account of them.
pub(crate) struct Values<'o> {
    pub(crate) limits: &'o Limits,
    pub(crate) report: WeightReport,
    files: Files<'o>,
}

impl<'o> Values<'o> {
    pub(crate) fn new(limits: &'o Limits, files: Files<'o>) -> Self {
        Self { limits, report: WeightReport::default(), files }
    }

    /// A tensor with its value.
    pub(crate) fn tensor(
        &mut self,
        tensor: &TensorProto,
        name: &dyn Display,
    ) -> Result<TensorValue, LoadError> {
        let (dtype, dims) = types::exact(tensor, name, self.limits)?;
        if dtype == DType::String {
            return Ok(TensorValue { dtype, dims, data: None });
        }
        let need = types::byte_count(name, dtype, &dims)?;
        let (data, origin) = match tensor.data_location {
            EXTERNAL => (self.external(tensor, name, need)?, Origin::OtherFile),
            _ => inside(tensor, name, dtype, need)?,
        };
        let value = TensorValue { dtype, dims, data };
        self.report.count(&value, origin);
        Ok(value)
    }

    /// A value that the reader itself wrote out.
    pub(crate) fn written_out(
        &mut self,
        dtype: DType,
        dims: Vec<u64>,
        bytes: Vec<u8>,
    ) -> TensorValue {
        let value = TensorValue { dtype, dims, data: Some(Data::from(bytes)) };
        self.report.count(&value, Origin::Decoded);
        value
    }

    fn external(
        &mut self,
        tensor: &TensorProto,
        name: &dyn Display,
        need: u64,
    ) -> Result<Option<Data>, LoadError> {
        let found = self.files.find(tensor, name.to_string(), need)?;
        if let Found::Value(data) = found {
            return Ok(Some(data));
        }
        if found == Found::Missing {
            let rows = &tensor.external_data;
            let row = rows.iter().find(|row| row.key == "location").expect("found before");
            let message = format!("no file `{}`: weight `{name}` has no value", row.value);
            self.report.warnings.push(message);
        }
        self.report.count_absent(need);
        Ok(None)
    }
}

fn inside(
    tensor: &TensorProto,
    name: &dyn Display,
    dtype: DType,
    wanted: u64,
) -> Result<(Option<Data>, Origin), LoadError> {
    let tensor_name = || name.to_string();
    let found = elements(tensor, dtype);
    let found = found.ok_or_else(|| LoadError::BrokenElements { tensor: tensor_name() })?;
    if found.data.len() as u64 != wanted {
        let found = found.data.len() as u64;
        return Err(LoadError::WrongData { tensor: tensor_name(), found, wanted });
    }
    let origin = if found.is_copy { Origin::Decoded } else { Origin::File };
    Ok((Some(found.data), origin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadOptions;
    use crate::proto::StringStringEntryProto;
    use bytes::Bytes;

    fn tensor(data_type: i32, dims: &[i64], raw: Option<usize>) -> TensorProto {
        let raw_data = raw.map(|length| Bytes::from(vec![1; length]));
        TensorProto { data_type, dims: dims.to_vec(), raw_data, ..TensorProto::default() }
    }

    fn read(tensor: &TensorProto) -> Result<(Option<Data>, WeightReport), String> {
        let options = ReadOptions::default();
        let folder = tempfile::tempdir().unwrap();
        let files = Files::of_folder(Some(folder.path()), &options);
        let mut values = Values::new(&options.limits, files);
        let value = values.tensor(tensor, &"w").map_err(|error| error.to_string())?;
        Ok((value.data, values.report))
    }

    #[test]
    fn bytes_fill_the_shape() {
        assert_eq!(read(&tensor(1, &[3], Some(12))).unwrap().0.unwrap(), [1; 12][..]);
        let message = "tensor `w` comes with 11 bytes, its shape wants 12";
        assert_eq!(read(&tensor(1, &[3], Some(11))).unwrap_err(), message);
        let message = "tensor `w` comes with 0 bytes, its shape wants 12";
        assert_eq!(read(&tensor(1, &[3], None)).unwrap_err(), message);
        assert_eq!(read(&tensor(1, &[0, 3], None)).unwrap().0.unwrap(), [][..]);
    }

    #[test]
    fn narrow_types_fill_whole_bytes() {
        assert_eq!(read(&tensor(22, &[3], Some(2))).unwrap().0.unwrap(), [1; 2][..]);
        let message = "tensor `w` comes with 3 bytes, its shape wants 2";
        assert_eq!(read(&tensor(22, &[3], Some(3))).unwrap_err(), message);
    }

    #[test]
    fn a_length_that_no_number_holds_is_an_error() {
        let message = format!("tensor `w` comes with 0 bytes, its shape wants {}", u64::MAX);
        assert_eq!(read(&tensor(1, &[i64::MAX], None)).unwrap_err(), message);
    }

    #[test]
    fn numbers_are_counted_and_whole() {
        let int64_data = vec![Bytes::from_static(&[1, 2])];
        let mut numbers = TensorProto { int64_data, ..tensor(7, &[2], None) };
        let (data, report) = read(&numbers).unwrap();
        assert_eq!((data.unwrap().len(), report.decoded.0, report.in_place.0), (16, 16, 0));
        numbers.dims = vec![3];
        let message = "tensor `w` comes with 16 bytes, its shape wants 24";
        assert_eq!(read(&numbers).unwrap_err(), message);
        numbers.int64_data = vec![Bytes::from_static(&[1, 0x80])];
        assert_eq!(read(&numbers).unwrap_err(), "tensor `w` has elements that are cut short");
    }

    #[test]
    fn strings_have_no_bytes() {
        assert_eq!(read(&tensor(8, &[3], None)).unwrap(), (None, WeightReport::default()));
    }

    #[test]
    fn a_value_whose_file_is_not_there_is_absent_with_a_warning() {
        let row = |key: &str, value: &str| StringStringEntryProto {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        let external_data = vec![row("location", "no.bin")];
        let missing =
            TensorProto { data_location: EXTERNAL, external_data, ..tensor(1, &[3], None) };
        let (data, report) = read(&missing).unwrap();
        assert_eq!((data, report.absent.0), (None, 12));
        assert_eq!(report.warnings, ["no file `no.bin`: weight `w` has no value"]);
    }
}
