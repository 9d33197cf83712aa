//! What files in the wild do: old and new versions, fields that nobody reads, weights beside the model.

use crate::proto::{ModelProto, StringStringEntryProto, TensorProto, TypeProto};
use crate::testing::{file, graph, list, load, shaped, tensor, weight};
use crate::{External, Limits, Loaded, ReadOptions, parse, read, read_bytes, write_reordered};
use bytes::Bytes;
use lowtide_core::{Data, OpId, Source, TensorId};
use prost::Message;
use std::fs;
use tempfile::TempDir;

fn parsed(bytes: Vec<u8>) -> lowtide_core::Model {
    parse(Data::from(bytes), &Limits::default()).unwrap()
}

#[test]
fn every_version_of_the_format_is_read() {
    for ir_version in 1..=14 {
        let model = ModelProto { ir_version, ..file(graph("x -> y", &["y = Relu(x)"])) };
        assert_eq!(parsed(model.encode_to_vec()).ir_version, ir_version);
    }
}

#[test]
fn a_weight_may_be_listed_as_input_or_not() {
    for interface in ["x, w -> y", "x -> y"] {
        let mut proto = graph(interface, &["y = Add(x, w)"]);
        proto.initializer = vec![weight("w", &[2])];
        let model = load(proto);
        let main = model.main_graph();
        assert_eq!(list(main, main.inputs.clone()), "x");
        assert_eq!(tensor(main, "w").source, Source::Initializer);
    }
}

#[test]
fn operator_sets_may_be_missing() {
    let model = parsed(file(graph("x -> y", &["y = Relu(x)"])).encode_to_vec());
    assert!(model.opsets.is_empty());
}

#[test]
fn sequences_and_optionals_are_no_tensors() {
    // Field 4 is a sequence, 5 a map, 8 a sparse tensor, 9 an optional; each of something empty.
    for number in [4, 5, 8, 9] {
        let of_type = TypeProto::decode(&[number << 3 | 2, 0][..]).unwrap();
        let mut proto = graph("x, s -> y", &["y = F(x, s)"]);
        proto.input[1].r#type = Some(of_type);
        let model = load(proto);
        let found = tensor(model.main_graph(), "s");
        assert_eq!((found.dtype, found.shape.as_ref()), (None, None));
    }
}

/// A message as a field of this number.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost::encoding::encode_varint(u64::from(number) << 3 | 2, &mut bytes);
    prost::encoding::encode_varint(content.len() as u64, &mut bytes);
    bytes.extend_from_slice(content);
    bytes
}

/// A file with training, devices, metadata and documentation at every level.
fn decorated() -> Vec<u8> {
    let row = StringStringEntryProto { key: "k".to_owned(), value: "v".to_owned() };
    let metadata = row.encode_to_vec();
    let proto = graph("x -> z", &["y = Relu(x)", "z = Tanh(x)"]);
    let node = |index: usize| {
        let plain = proto.node[index].encode_to_vec();
        let rest = [field(6, b"why"), field(9, &metadata), field(10, &[])];
        field(1, &[plain, rest.concat()].concat())
    };
    let mut ends = proto.clone();
    ends.node.clear();
    let between = [field(10, b"documentation"), field(16, &metadata)].concat();
    let graph = [node(0), between, node(1), ends.encode_to_vec()].concat();
    let tail = [field(20, &[]), field(26, &[]), field(14, &metadata)].concat();
    [field(7, &graph), tail].concat()
}

#[test]
fn what_is_not_read_does_no_harm() {
    let model = parsed(decorated());
    assert_eq!(model.main_graph().ops.len(), 2);
    assert_eq!(model.metadata, [("k".to_owned(), "v".to_owned())]);
}

#[test]
fn what_is_not_read_is_written_again() {
    let bytes = Data::from(decorated());
    let mut out = Vec::new();
    write_reordered(&bytes, &[OpId::new(1), OpId::new(0)], &mut out).unwrap();
    let sorted = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes.sort_unstable();
        bytes
    };
    assert_ne!(out, bytes[..]);
    assert_eq!(sorted(&out), sorted(&bytes));
    assert_eq!(parsed(out).main_graph().ops[OpId::new(0)].kind, "Tanh");
}

#[test]
fn numbers_that_are_not_packed_are_refused_by_name() {
    // Field 4 of a tensor, `float_data`, as four bytes without a length.
    let tensor = [vec![4 << 3 | 5, 0, 0, 0, 0], weight("w", &[1]).encode_to_vec()].concat();
    let graph = [graph("x -> x", &[]).encode_to_vec(), field(5, &tensor)].concat();
    let error = parse(Data::from(field(7, &graph)), &Limits::default()).unwrap_err().to_string();
    assert!(error.starts_with("not an ONNX file") && error.contains("float_data"), "{error}");
}

#[test]
fn a_weight_in_the_file_is_a_piece_of_the_file() {
    let mut proto = graph("x -> y", &["y = Add(x, w)"]);
    proto.initializer = vec![weight("w", &[2])];
    let bytes = Data::from(file(proto).encode_to_vec());
    let Loaded { model, bytes, .. } = read_bytes(bytes, None, &ReadOptions::default()).unwrap();
    let data = &model.main_graph().data[&TensorId::new(1)];
    assert!(bytes.as_ptr_range().contains(&data.as_ptr()));
}

/// A folder with a model whose weight lies in `w.bin`.
fn beside() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut proto = graph("x -> y", &["y = Add(x, w)"]);
    proto.input = vec![shaped("x", "2")];
    let (key, value) = ("location".to_owned(), "w.bin".to_owned());
    proto.initializer = vec![TensorProto {
        raw_data: Some(Bytes::new()),
        data_location: 1,
        external_data: vec![StringStringEntryProto { key, value }],
        ..weight("w", &[2])
    }];
    fs::write(folder.path().join("m.onnx"), file(proto).encode_to_vec()).unwrap();
    fs::write(folder.path().join("w.bin"), [1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    folder
}

fn load_beside(folder: &TempDir, options: &ReadOptions) -> (Option<Data>, u64, Vec<String>) {
    let Loaded { model, report, .. } = read(&folder.path().join("m.onnx"), options).unwrap();
    let data = model.main_graph().data.get(&TensorId::new(1)).cloned();
    (data, report.external.0, report.warnings)
}

#[test]
fn a_weight_beside_the_file_is_loaded_mapped_or_not() {
    let wanted = Some(Data::from_static(&[1, 2, 3, 4, 5, 6, 7, 8]));
    for mmap in [true, false] {
        let options = ReadOptions { mmap, ..ReadOptions::default() };
        assert_eq!(load_beside(&beside(), &options), (wanted.clone(), 8, Vec::new()));
    }
}

#[test]
fn a_weight_that_is_skipped_has_no_value_and_no_warning() {
    let options = ReadOptions { external: External::Skip, ..ReadOptions::default() };
    assert_eq!(load_beside(&beside(), &options), (None, 0, Vec::new()));
}

#[test]
fn a_weight_whose_file_is_gone_leaves_a_model_to_plan() {
    let folder = beside();
    fs::remove_file(folder.path().join("w.bin")).unwrap();
    let warnings = vec!["no file `w.bin`: weight `w` has no value".to_owned()];
    assert_eq!(load_beside(&folder, &ReadOptions::default()), (None, 0, warnings));
}

#[test]
fn a_weight_whose_file_is_short_is_an_error() {
    let folder = beside();
    fs::write(folder.path().join("w.bin"), [1, 2, 3]).unwrap();
    let error = read(&folder.path().join("m.onnx"), &ReadOptions::default()).unwrap_err();
    let message = "tensor `w` lies in `w.bin`: found a file of 3 bytes, wanted 8 from byte 0 on";
    assert_eq!(error.to_string(), message);
}

#[test]
fn bytes_without_a_folder_have_no_weights_beside_them() {
    let folder = beside();
    let bytes = Data::from(fs::read(folder.path().join("m.onnx")).unwrap());
    assert!(parse(bytes.clone(), &Limits::default()).unwrap().main_graph().data.is_empty());
    let loaded = read_bytes(bytes, Some(folder.path()), &ReadOptions::default()).unwrap();
    assert_eq!(loaded.model.main_graph().data.len(), 1);
}
