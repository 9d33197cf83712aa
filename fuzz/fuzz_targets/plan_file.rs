//! Any bytes as a plan file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lowtide_formats::fuzzing::fuzz_plan_file(bytes));
