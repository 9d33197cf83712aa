//! Any bytes as a placement problem.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lowtide_formats::fuzzing::fuzz_problem_csv(bytes));
