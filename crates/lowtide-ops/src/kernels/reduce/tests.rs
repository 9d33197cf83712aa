//! Claims about folds, positions, running sums and ranks.

use crate::kernels::testing::{run, runs};

const X: &str = "weight x 2 3 = 1 2 3 4 5 6";

#[test]
fn any_axes_are_folded() {
    runs(&[X, "y = ReduceSum(x)"], "float32 [1, 1] 21");
    runs(&[X, "weight a i64 1 = 0", "y = ReduceSum(x, a) {keepdims=0}"], "float32 [3] 5 7 9");
    runs(&[X, "weight a i64 1 = -1", "y = ReduceSum(x, a)"], "float32 [2, 1] 6 15");
    runs(
        &["weight x 2 2 2 = 1 2 3 4 5 6 7 8", "y = ReduceSum(x) {axes=[0, 2], keepdims=0}"],
        "float32 [2] 14 22",
    );
    runs(&[X, "y = ReduceSum(x) {noop_with_empty_axes=1}"], "float32 [2, 3] 1 2 3 4 5 6");
}

#[test]
fn each_kind_folds_in_its_own_way() {
    let of = |kind: &str, wanted: &str| {
        let line = format!("y = Reduce{kind}(x) {{axes=[1], keepdims=0}}");
        runs(&["weight x 1 2 = -3 4", &line], &format!("float32 [1] {wanted}"));
    };
    of("Mean", "0.5");
    of("Max", "4");
    of("Min", "-3");
    of("Prod", "-12");
    of("L1", "7");
    of("L2", "5");
    of("SumSquare", "25");
    of("LogSum", "0");
    of("LogSumExp", "4.000911");
}

#[test]
fn integers_and_truth_values_are_folded() {
    runs(&["weight x i64 3 = 1 2 4", "y = ReduceMean(x) {keepdims=0}"], "int64 [] 2");
    runs(&["weight x u8 3 = 1 200 4", "y = ReduceMax(x) {keepdims=0}"], "uint8 [] 200");
    runs(&["weight x bool 2 = 1 0", "y = ReduceMin(x) {keepdims=0}"], "bool [] 0");
}

#[test]
fn of_nothing_the_neutral_element_is_left() {
    runs(&["weight x 2 0 = ", "y = ReduceSum(x) {axes=[1], keepdims=0}"], "float32 [2] 0 0");
    runs(&["weight x 2 0 = ", "y = ReduceMax(x) {axes=[1], keepdims=0}"], "float32 [2] -inf -inf");
    runs(&["weight x 2 0 = ", "y = ReduceSum(x) {axes=[0], keepdims=0}"], "float32 [0] ");
    runs(&["weight x i64 0 = ", "y = ReduceMean(x) {keepdims=0}"], "int64 [] 0");
}

#[test]
fn infinities_have_a_logarithm_of_their_sum() {
    runs(&["weight x 2 = -inf -inf", "y = ReduceLogSumExp(x) {keepdims=0}"], "float32 [] -inf");
    runs(
        &["weight x 2 = 1000 1000", "y = ReduceLogSumExp(x) {keepdims=0}"],
        "float32 [] 1000.6932",
    );
}

#[test]
fn the_first_or_last_of_equals_is_found() {
    let x = "weight x 2 3 = 3 7 7 1 9 0";
    runs(&[x, "y = ArgMax(x) {axis=1, keepdims=0}"], "int64 [2] 1 1");
    runs(&[x, "y = ArgMax(x) {axis=1, keepdims=0, select_last_index=1}"], "int64 [2] 2 1");
    runs(&[x, "y = ArgMin(x)"], "int64 [1, 3] 1 0 1");
}

#[test]
fn sums_run_along_an_axis() {
    let scan = |attributes: &str, wanted: &str| {
        let line = format!("y = CumSum(x, a){attributes}");
        runs(&[X, "weight a i64 1 = 1", &line], &format!("float32 [2, 3] {wanted}"));
    };
    scan("", "1 3 6 4 9 15");
    scan(" {exclusive=1}", "0 1 3 0 4 9");
    scan(" {reverse=1}", "6 5 3 15 11 6");
    scan(" {exclusive=1, reverse=1}", "5 3 0 11 6 0");
    runs(&[X, "weight a i32 1 = 0", "y = CumSum(x, a)"], "float32 [2, 3] 1 2 3 5 7 9");
    runs(&[X, "weight a i64 1 = 0", "y = CumProd(x, a)"], "float32 [2, 3] 1 2 3 4 10 18");
}

#[test]
fn the_first_k_come_in_order() {
    let x = "weight x 2 4 = 3 9 1 9 4 4 5 -1";
    let of = |line: &str| run(&[x, "weight k i64 1 = 2", line], "y i");
    assert_eq!(of("y; i = TopK(x, k)"), ["float32 [2, 2] 9 9 5 4", "int64 [2, 2] 1 3 2 0"]);
    assert_eq!(
        of("y; i = TopK(x, k) {largest=0}"),
        ["float32 [2, 2] 1 3 -1 4", "int64 [2, 2] 2 0 3 0"]
    );
    assert_eq!(
        of("y; i = TopK(x, k) {axis=0}"),
        ["float32 [2, 4] 4 9 5 9 3 4 1 -1", "int64 [2, 4] 1 0 1 0 0 1 0 1"]
    );
}
