use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use lowtide_core::{
    Dim, Graph, GraphBuilder, Op, OpId, Sharing, Size, Tensor, TensorId, TensorKind,
};
use std::io::Write;

const TINY: &str = include_str!("../../../../testdata/graphs/tiny.json");

fn read(text: &str) -> Result<Graph, GraphJsonError> {
    read_graph(text.as_bytes(), &GraphLimits::default())
}

/// Replaces `from` in a good graph; the message must hold all of `wanted`.
fn check_error(from: &str, to: &str, wanted: &[&str]) {
    assert!(TINY.contains(from), "the graph has no {from}");
    let error = read(&TINY.replacen(from, to, 1)).unwrap_err().to_string();
    assert!(wanted.iter().all(|part| error.contains(part)), "{from} -> {to}: {error}");
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn written(graph: &Graph) -> String {
    let mut out = Vec::new();
    write_graph(graph, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn views_mutations_permissions_and_scratch_are_read() {
    let graph = read(TINY).unwrap();
    let t = TensorId::new;
    let of = |op| &graph.ops()[OpId::new(op)];
    assert_eq!(of(0).scratch, Size::Fixed(Bytes(1024)));
    assert_eq!(of(1).sharing, [Sharing::MayOverwrite { output: t(3), of: t(2) }]);
    assert_eq!(of(2).sharing, [Sharing::View { output: t(4), of: t(3), offset: Some(Bytes(0)) }]);
    assert_eq!(of(3).sharing, [Sharing::Mutates { output: t(5), of: t(4) }]);
    assert_eq!(of(4).cost, Some(1e-5));
    assert_eq!(graph.tensors()[t(0)].shape.as_deref().unwrap()[0], Dim::Named("batch".into()));
}

#[test]
fn a_compressed_graph_is_the_same_graph() {
    let graph = read_graph(&gzip(TINY.as_bytes()), &GraphLimits::default()).unwrap();
    assert_eq!(graph.fingerprint(), read(TINY).unwrap().fingerprint());
}

#[test]
fn training_graphs_are_read_and_written_back() {
    let files = ["train_unet_b4", "train_mobilenet_v2_b32", "train_resnet50_b32_sgd"];
    for (name, ops) in files.into_iter().zip([148, 324, 526]) {
        let root = env!("CARGO_MANIFEST_DIR");
        let bytes = std::fs::read(format!("{root}/../../testdata/graphs/{name}.json.gz")).unwrap();
        let graph = read_graph(&bytes, &GraphLimits::default()).unwrap();
        assert_eq!((graph.name(), graph.ops().len()), (name, ops));
        assert_eq!(read(&written(&graph)).unwrap().fingerprint(), graph.fingerprint());
    }
}

/// A graph that has every kind of size, dimension, tensor and sharing.
fn motley() -> Graph {
    let mut b = GraphBuilder::new("all \"kinds\"");
    let x = b.tensor(Tensor {
        is_output: true,
        shape: Some([Dim::Unknown, Dim::Known(3), Dim::Named("n + 1".into())].into()),
        dtype: lowtide_core::DType::from_name("float16"),
        ..Tensor::new("x", Size::AtMost(Bytes(32)), TensorKind::Input)
    });
    let w = b.weight("w", Size::Fixed(Bytes::ZERO));
    let fixed = Size::Fixed(Bytes(32));
    let (y, z, whole) = (b.computed("y", fixed), b.computed("", fixed), b.computed("u", fixed));
    b.op(Op::new("", "A", [x, w], [y]).scratch(Size::Unknown).cost(0.1 + 0.2));
    let overwrite = Sharing::MayOverwrite { output: z, of: y };
    b.op(Op::new("b", "B", [y], [z]).sharing(overwrite).scratch(Size::AtMost(Bytes(7))));
    let part = Sharing::PartOf { input: z, output: whole, offset: Bytes::ZERO };
    b.op(Op::new("c", "C", [z], [whole]).sharing(part));
    let end = b.computed("end", Size::Fixed(Bytes(8)));
    let piece = Sharing::PieceOf { output: end, of: whole, offset: Bytes(24) };
    b.op(Op::new("d", "D", [whole], [end]).sharing(piece));
    b.output(whole);
    b.finish().unwrap()
}

#[test]
fn everything_a_graph_can_say_is_read_back() {
    let (graph, again) = (motley(), read(&written(&motley())).unwrap());
    assert_eq!((graph.tensors(), graph.ops()), (again.tensors(), again.ops()));
    assert_eq!(graph.fingerprint(), again.fingerprint());
}

#[test]
fn the_order_in_which_kinds_of_sharing_are_mentioned_does_not_show() {
    let graph = |is_swapped: bool| {
        let mut b = GraphBuilder::new("");
        let (x, size) = (b.input("x", Size::Fixed(Bytes(8))), Size::Fixed(Bytes(8)));
        let (y, z) = (b.computed("y", size), b.computed("z", size));
        let overwrite = Sharing::MayOverwrite { output: y, of: x };
        let view = Sharing::View { output: z, of: x, offset: None };
        let (first, second) = if is_swapped { (view, overwrite) } else { (overwrite, view) };
        b.op(Op::new("", "Two", [x], [y, z]).sharing(first).sharing(second));
        b.finish().unwrap()
    };
    assert_eq!(graph(true).fingerprint(), graph(false).fingerprint());
    assert_eq!(read(&written(&graph(false))).unwrap().fingerprint(), graph(true).fingerprint());
}

#[test]
fn unknown_fields_and_types_are_ignored() {
    let more = TINY.replacen("\"id\": 0,", "\"id\": 0, \"color\": {\"deep\": [1]},", 2);
    let other = more.replacen("float32", "quaternion", 1);
    assert_eq!(read(&other).unwrap().tensors()[TensorId::new(0)].dtype, None);
}

#[test]
fn another_format_or_version_is_named_even_if_the_rest_is_foreign() {
    check_error("lowtide-graph", "onnx", &["the format is \"onnx\"", "lowtide-graph"]);
    check_error("\"version\": 1", "\"version\": 2, \"x\": []", &["is 2", "version 1"]);
    let error = read("{\"nodes\": []}").unwrap_err().to_string();
    assert_eq!(error, "the format is null; wanted \"lowtide-graph\"");
}

#[test]
fn missing_lists_are_named() {
    let error = read("{\"format\": \"lowtide-graph\", \"version\": 1, \"ops\": []}").unwrap_err();
    assert_eq!(error.to_string(), "the graph has no list `tensors`");
}

#[test]
fn wrong_numbers_are_named_with_their_owner() {
    for number in ["-5", "1.5", "36893488147419103232", "\"big\""] {
        check_error("\"bytes\": 4096", &format!("\"bytes\": {number}"), &["`x` (t0): bytes is"]);
        check_error("\"scratch\": 1024", &format!("\"scratch\": {number}"), &["`conv` (op0)"]);
    }
    check_error("\"batch\"", "-1", &["tensor `x` (t0): shape[0] is -1"]);
    check_error("\"cost\": 0.00001", "\"cost\": -1", &["`head` (op4): cost is -1"]);
    check_error("\"cost\": 0.00001", "\"cost\": 1e999", &["number out of range", "line"]);
}

#[test]
fn wrong_ids_are_named_with_their_owner() {
    check_error(
        "\"id\": 3, \"name\": \"relu_out\"",
        "\"id\": 7, \"name\": \"r\"",
        &["tensor `r` (t3): id is 7", "position"],
    );
    check_error("\"inputs\": [0, 1]", "\"inputs\": [0, -1]", &["`conv` (op0): inputs[1] is -1"]);
    check_error("\"inputs\": [0, 1]", "\"inputs\": [0, 99]", &["`conv`", "t99"]);
    check_error("\"of\": 4", "\"of\": 4294967296", &["op3", "mutates[0].of is 4294967296"]);
    check_error("\"of\": 4", "\"of\": 0", &["mutation names `x`"]);
    check_error("\"mutates\"", "\"pieces\"", &["op3", "pieces[0].offset is null"]);
    let beyond = "\"pieces\": [{\"output\": 5, \"of\": 4, \"offset\": 1}], \"mutates_not\"";
    check_error("\"mutates\"", beyond, &["piece `", "ends at byte"]);
}

#[test]
fn wrong_kinds_and_unwritten_outputs_are_named() {
    check_error("\"kind\": \"weight\"", "\"kind\": \"const\"", &["`w` (t1): kind is \"const\""]);
    check_error("\"kind\": \"weight\"", "\"kind\": \"output\"", &["`w`", "no operator writes"]);
}

#[test]
fn what_is_not_json_is_told_with_its_line() {
    check_error("\"kind\": \"weight\"", "\"kind\": weight", &["line 4 column"]);
    check_error("\"inputs\": [0, 1]", "\"inputs\": [[0]]", &["line 12 column"]);
}

#[test]
fn a_small_file_cannot_unfold_into_all_memory() {
    let limits = GraphLimits { text: Bytes(1 << 20) };
    let bomb = gzip(&vec![b' '; 64 << 20]);
    let error = read_graph(&bomb, &limits).unwrap_err().to_string();
    assert_eq!(error, "the graph has more than 1.00 MiB of text, which is the limit");
    let exact = GraphLimits { text: Bytes(TINY.len() as u64) };
    assert!(read_graph(&gzip(TINY.as_bytes()), &exact).is_ok());
    let less = GraphLimits { text: Bytes(TINY.len() as u64 - 1) };
    assert!(matches!(read_graph(TINY.as_bytes(), &less), Err(GraphJsonError::TooLong { .. })));
}

#[test]
fn a_damaged_archive_is_an_error() {
    let mut bytes = gzip(TINY.as_bytes());
    bytes.truncate(bytes.len() - 4);
    assert!(matches!(read_graph(&bytes, &GraphLimits::default()), Err(GraphJsonError::Json(_))));
}

#[test]
fn the_description_has_the_version_and_a_graph() {
    let description = include_str!("../../../../docs/graph-json.md");
    assert!(description.contains(&format!("Version: {GRAPH_VERSION}\n")));
    let (_, example) = description.split_once("```json\n").unwrap();
    assert_eq!(read(example.split_once("```").unwrap().0).unwrap().ops().len(), 2);
}
