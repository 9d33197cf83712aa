//! Any bytes as an array.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lowtide_formats::fuzzing::fuzz_npy(bytes));
