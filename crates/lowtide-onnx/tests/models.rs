//! Real architectures, whole and damaged.

use lowtide_core::{Data, IndexVec, ModelGraph, ModelOp, OpId, TensorId};
use lowtide_onnx::fuzzing::{assert_valid, fuzz_parse};
use lowtide_onnx::{Limits, Loaded, ReadOptions, parse, read, write_reordered};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Operators and tensors of each model, as the reference implementation of the format counts them.
const COUNTS: [(&str, usize, usize); 18] = [
    ("bert_base_s128", 524, 726),
    ("chain_small", 15, 30),
    ("crnn_ocr_folded", 22, 51),
    ("darts_v2_cell_hpd", 90, 152),
    ("densenet121", 372, 802),
    ("diamond_tiny", 7, 16),
    ("dscnn_kws", 21, 42),
    ("googlenet", 139, 256),
    ("mlp_mnist", 6, 13),
    ("mobilenet_v2", 170, 277),
    ("mobilenet_v2_dynamic", 170, 277),
    ("randwire_ws_c78", 679, 974),
    ("resnet50", 122, 231),
    ("shufflenet_v2_x1_0", 374, 489),
    ("squeezenet1_1", 65, 118),
    ("swiftnet_like", 241, 422),
    ("unet_small_128", 38, 75),
    ("whisper_tiny_encoder", 322, 390),
];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../testdata/onnx/{name}.onnx"))
}

#[test]
fn operators_and_tensors_are_those_of_the_file() {
    for (name, ops, tensors) in COUNTS {
        let model = read(&path(name), &ReadOptions::default()).unwrap().model;
        assert_valid(&model);
        let main = model.main_graph();
        assert_eq!((main.file_op_count(), main.tensors.len()), (ops, tensors), "{name}");
    }
}

#[test]
fn the_table_lists_every_model() {
    let files = std::fs::read_dir(path("").parent().unwrap()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> =
        names.filter_map(|n| Some(n.strip_suffix(".onnx")?.to_owned())).collect();
    names.sort();
    assert_eq!(names, COUNTS.map(|row| row.0));
}

#[test]
fn a_model_cut_short_never_panics() {
    for (name, ..) in COUNTS {
        let bytes = std::fs::read(path(name)).unwrap();
        (0..bytes.len()).step_by(bytes.len() / 37 + 1).for_each(|end| fuzz_parse(&bytes[..end]));
    }
}

#[test]
fn a_model_with_a_flipped_byte_never_panics() {
    for (name, ..) in COUNTS {
        let mut bytes = std::fs::read(path(name)).unwrap();
        for at in (0..bytes.len()).step_by(bytes.len() / 41 + 1) {
            bytes[at] ^= 0xa5;
            fuzz_parse(&bytes);
            bytes[at] ^= 0xa5;
        }
    }
}

/// The order that runs the last ready operator first, far from the file's.
fn last_ready_first(graph: &ModelGraph) -> Vec<OpId> {
    let mut writers = BTreeMap::new();
    for (id, op) in graph.ops.iter_enumerated() {
        writers.extend(op.outputs.iter().flatten().map(|&tensor| (tensor, id)));
    }
    let reads = |op: &ModelOp| -> BTreeSet<OpId> {
        let tensors = op.inputs.iter().flatten().chain(&op.captured);
        tensors.filter_map(|tensor| writers.get(tensor).copied()).collect()
    };
    let waits: IndexVec<OpId, _> = graph.ops.iter().map(reads).collect();
    let mut readers: IndexVec<OpId, Vec<OpId>> = waits.iter().map(|_| Vec::new()).collect();
    let mut missing: IndexVec<OpId, usize> = waits.iter().map(BTreeSet::len).collect();
    for (id, reads) in waits.iter_enumerated() {
        for &writer in reads {
            readers[writer].push(id);
        }
    }
    let mut ready: BTreeSet<OpId> = missing.ids().filter(|&id| missing[id] == 0).collect();
    let mut order = Vec::new();
    while let Some(op) = ready.pop_last() {
        order.push(op);
        for &reader in &readers[op] {
            missing[reader] -= 1;
            ready.extend((missing[reader] == 0).then_some(reader));
        }
    }
    order
}

fn written(bytes: &Data, order: &[OpId]) -> Data {
    let mut out = Vec::new();
    write_reordered(bytes, order, &mut out).expect("a permutation");
    Data::from(out)
}

#[test]
fn written_in_file_order_a_file_stays_as_it_is() {
    for (name, ..) in COUNTS {
        let Loaded { model, bytes, .. } = read(&path(name), &ReadOptions::default()).unwrap();
        let order: Vec<_> = model.main_graph().ops.ids().collect();
        assert_eq!(written(&bytes, &order), bytes, "{name}");
    }
}

#[test]
fn written_in_another_order_a_file_has_the_same_operators_in_that_order() {
    for (name, ..) in COUNTS {
        let Loaded { model, bytes, .. } = read(&path(name), &ReadOptions::default()).unwrap();
        let graph = model.main_graph();
        let order = last_ready_first(graph);
        let again = written(&bytes, &order);
        assert_eq!(again.len(), bytes.len());
        let again = parse(again, &Limits::default()).unwrap();
        let wanted = order.iter().map(|&op| shown(graph, &graph.ops[op]));
        let found = again.main_graph().ops.iter().map(|op| shown(again.main_graph(), op));
        assert!(found.eq(wanted), "{name}");
    }
}

/// An operator with names for ids.
fn shown(graph: &ModelGraph, op: &ModelOp) -> String {
    let names = |ids: &[Option<TensorId>]| -> Vec<Option<String>> {
        ids.iter().map(|id| id.map(|id| graph.tensors[id].name.clone())).collect()
    };
    let (inputs, outputs) = (names(&op.inputs), names(&op.outputs));
    format!("{} {} {inputs:?} {outputs:?} {:?}", op.name, op.kind, op.attributes)
}
