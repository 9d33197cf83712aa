use super::*;
use crate::sample;
use arbitrary::Unstructured;

const TINY: &str = include_str!("../../../../testdata/graphs/tiny.json");
const PROBLEM: &str = "id,lower,end,size,alignment,gaps,offset,hint\n\
    a,-10,60,64,32,20-29 40-49@0:16,64,1\nb,0,9,100,,,,\n\"c,\",10,20,0,1,,0,\n";
/// What parsers stumble over.
const WORDS: [&str; 16] = [
    "-1",
    "0",
    "1e999",
    "4294967295",
    "18446744073709551616",
    "null",
    "[",
    "]",
    "{}",
    "\"",
    ",",
    "-",
    "@",
    ":",
    "\n",
    "\u{feff}",
];

/// A good input with up to eight bytes or words changed, or pieces cut out or doubled.
fn damaged(u: &mut Unstructured<'_>, good: &[u8]) -> arbitrary::Result<Vec<u8>> {
    let mut bytes = good.to_vec();
    for _ in 0..u.int_in_range(0..=8)? {
        let start = u.choose_index(bytes.len() + 1)?;
        let end = bytes.len().min(start + u.int_in_range(0..=12)?);
        let word = match u.int_in_range(0..=3)? {
            0 => Vec::new(),
            1 => vec![u.arbitrary()?],
            2 => [&bytes[start..end], &bytes[start..end]].concat(),
            _ => u.choose(&WORDS)?.as_bytes().to_vec(),
        };
        bytes.splice(start..end, word);
    }
    Ok(bytes)
}

/// About a second of damaged inputs, and of no inputs at all.
fn check(good: &[u8], body: fn(&[u8])) {
    let property = |u: &mut Unstructured<'_>| {
        body(&damaged(u, good)?);
        body(u.arbitrary()?);
        Ok(())
    };
    arbtest::arbtest(property).budget_ms(900).size_max(4096);
}

#[test]
fn damaged_graphs_do_not_panic() {
    check(TINY.as_bytes(), fuzz_graph_json);
}

#[test]
fn damaged_compressed_graphs_do_not_panic() {
    check(include_bytes!("../../../../testdata/graphs/train_unet_b4.json.gz"), fuzz_graph_json);
}

#[test]
fn damaged_plans_do_not_panic() {
    let mut good = Vec::new();
    write_plan(&sample::plan(), &mut good).unwrap();
    check(&good, fuzz_plan_file);
}

#[test]
fn damaged_problems_do_not_panic() {
    check(PROBLEM.as_bytes(), fuzz_problem_csv);
}

#[test]
fn damaged_arrays_do_not_panic() {
    let mut good = Vec::new();
    write_npy(lowtide_core::DType::F32, &[2, 3], &[0; 24], &mut good).unwrap();
    check(&good, fuzz_npy);
}

#[test]
fn damaged_times_do_not_panic() {
    let good = b"op_name,seconds\nconv,0.5\nrelu,1e-3\n";
    check(good, |bytes| fuzz_times_csv(&sample::graph(), bytes));
}
