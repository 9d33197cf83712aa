//! Any bytes as a JSON graph, plain or compressed.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lowtide_formats::fuzzing::fuzz_graph_json(bytes));
