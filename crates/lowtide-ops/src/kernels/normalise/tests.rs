//! Claims about normalisations, each apart and in place.

use crate::kernels::testing::{refuses, run, runs};

#[test]
fn channels_are_scaled_by_what_is_given() {
    let given = ["weight s 2 = 2 1", "weight b 2 = 0 5", "weight m 2 = 1 0", "weight v 2 = 4 1"];
    let line = "y = BatchNormalization(x, s, b, m, v) {epsilon=0.0}";
    runs(
        &[&["weight x 1 2 2 = 1 3 -1 1"], &given[..], &[line]].concat(),
        "float32 [1, 2, 2] 0 2 4 6",
    );
    let line = "y; a; c = BatchNormalization(x, s, b, m, v) {training_mode=1}";
    refuses(
        &[&["weight x 1 2 2 = 1 3 -1 1"], &given[..], &[line]].concat(),
        "1 operators have no kernel: 1 x BatchNormalization (training)",
    );
}

#[test]
fn groups_of_channels_have_their_own_statistics() {
    runs(
        &[
            "weight x 1 2 2 = 1 3 10 30",
            "weight s 2 = 1 2",
            "weight b 2 = 0 1",
            "y = InstanceNormalization(x, s, b) {epsilon=0.0}",
        ],
        "float32 [1, 2, 2] -1 1 -1 3",
    );
    let x = "weight x 1 2 2 = 1 1 3 3";
    let line = "y = GroupNormalization(x, s, b) {num_groups=1, epsilon=0.0}";
    runs(
        &["opset 21", x, "weight s 2 = 1 2", "weight b 2 = 0 1", line],
        "float32 [1, 2, 2] -1 -1 3 3",
    );
    runs(&["opset 18", x, "weight s 1 = 2", "weight b 1 = 1", line], "float32 [1, 2, 2] -1 -1 3 3");
}

#[test]
fn rows_have_their_own_statistics() {
    let x = "weight x 2 2 = 1 3 10 30";
    let lines = [
        x,
        "weight s 2 = 1 2",
        "weight b 2 = 0 1",
        "y; m; d = LayerNormalization(x, s, b) {epsilon=0.0}",
    ];
    assert_eq!(
        run(&lines, "y m d"),
        ["float32 [2, 2] -1 3 -1 3", "float32 [2, 1] 2 20", "float32 [2, 1] 1 0.1"]
    );
    runs(
        &[x, "weight s 1 = 2", "y = LayerNormalization(x, s) {axis=0, epsilon=0.0}"],
        "float32 [2, 2] -1.7440829 -1.3952663 -0.17440829 3.3137574",
    );
    runs(
        &["weight x 1 2 = 1 7", "weight s 2 = 1 5", "y = RMSNormalization(x, s) {epsilon=0.0}"],
        "float32 [1, 2] 0.2 7",
    );
}

#[test]
fn shares_add_up_to_1() {
    let x = "weight x 2 2 = 0 0 -1000 1000";
    runs(&[x, "y = Softmax(x)"], "float32 [2, 2] 0.5 0.5 0 1");
    runs(&[x, "y = Softmax(x) {axis=0}"], "float32 [2, 2] 1 0 0 1");
    runs(&["opset 11", x, "y = Softmax(x) {axis=0}"], "float32 [2, 2] 0 0 0 1");
    runs(&[x, "y = LogSoftmax(x)"], "float32 [2, 2] -0.6931472 -0.6931472 -2000 0");
    runs(&[x, "y = LogSoftmax(x) {axis=0}"], "float32 [2, 2] 0 -1000 -1000 0");
    runs(&["weight x = 3", "y = Softmax(x)"], "float32 [] 1");
    runs(&["weight x 2 0 = ", "y = Softmax(x)"], "float32 [2, 0] ");
}

#[test]
fn the_first_of_the_largest_wins() {
    let x = "weight x 2 3 = 1 4 4 5 0 4";
    runs(&[x, "y = Hardmax(x)"], "float32 [2, 3] 0 1 0 1 0 0");
    runs(&[x, "y = Hardmax(x) {axis=0}"], "float32 [2, 3] 0 1 1 1 0 0");
}

#[test]
fn lines_have_length_1() {
    runs(&["weight x 1 2 = 3 4", "y = LpNormalization(x)"], "float32 [1, 2] 0.6 0.8");
    runs(
        &["weight x 2 1 = 3 1", "y = LpNormalization(x) {axis=0, p=1}"],
        "float32 [2, 1] 0.75 0.25",
    );
    runs(&["weight x 1 2 = 0 0", "y = LpNormalization(x)"], "float32 [1, 2] NaN NaN");
}

#[test]
fn channels_are_normalised_over_all_images() {
    runs(
        &["weight x 2 2 1 1 = 1 10 3 30", "y = MeanVarianceNormalization(x)"],
        "float32 [2, 2, 1, 1] -1 -1 1 1",
    );
}

#[test]
fn neighbouring_channels_count() {
    runs(
        &["weight x 1 3 1 = 1 2 3", "y = LRN(x) {size=3, alpha=3.0, beta=1.0, bias=0.0}"],
        "float32 [1, 3, 1] 0.2 0.14285715 0.23076923",
    );
}
