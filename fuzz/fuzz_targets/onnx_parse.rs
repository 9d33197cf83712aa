//! Any bytes are an error or a valid model.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lowtide_onnx::fuzzing::fuzz_parse(data));
