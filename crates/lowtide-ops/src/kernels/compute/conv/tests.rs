//! Claims about convolutions.

use crate::kernels::testing::runs;

const X: &str = "weight x 1 1 3 3 = 1 2 3 4 5 6 7 8 9";

#[test]
fn one_channel_goes_by_rows() {
    runs(&[X, "weight w 1 1 2 2 = 1 0 0 1", "y = Conv(x, w)"], "float32 [1, 1, 2, 2] 6 8 12 14");
    runs(
        &[
            X,
            "weight w 1 1 3 3 = 1 1 1 1 1 1 1 1 1",
            "weight b 1 = 100",
            "y = Conv(x, w, b) {pads=[1, 1, 1, 1]}",
        ],
        "float32 [1, 1, 3, 3] 112 121 116 127 145 133 124 139 128",
    );
    runs(
        &[
            X,
            "weight w 1 1 3 3 = 1 1 1 1 1 1 1 1 1",
            "y = Conv(x, w) {auto_pad=SAME_UPPER, strides=[2, 2]}",
        ],
        "float32 [1, 1, 2, 2] 12 16 24 28",
    );
}

#[test]
fn many_filters_go_by_columns() {
    runs(
        &[
            X,
            "weight w 3 1 2 2 = 1 0 0 1 0 1 1 0 1 0 0 0",
            "weight b 3 = 0 0 100",
            "y = Conv(x, w, b) {strides=[2, 2], pads=[0, 0, 1, 1]}",
        ],
        "float32 [1, 3, 2, 2] 6 3 7 9 6 6 8 0 101 103 107 109",
    );
}

#[test]
fn a_kernel_of_1_is_a_product() {
    runs(
        &["weight x 1 2 2 2 = 1 2 3 4 5 6 7 8", "weight w 3 2 1 1 = 1 0 0 1 1 1", "y = Conv(x, w)"],
        "float32 [1, 3, 2, 2] 1 2 3 4 5 6 7 8 6 8 10 12",
    );
}

#[test]
fn a_kernel_of_1_may_step_into_the_padding() {
    runs(
        &[
            "weight x 1 3 2 = 1 2 3 4 5 6",
            "weight w 1 3 1 = 1 1 1",
            "y = Conv(x, w) {strides=[2], pads=[0, 1]}",
        ],
        "float32 [1, 1, 2] 9 0",
    );
}

#[test]
fn groups_are_apart() {
    runs(
        &[
            "weight x 1 4 2 = 1 2 3 4 5 6 7 8",
            "weight w 2 2 2 = 1 1 1 1 1 0 0 1",
            "y = Conv(x, w) {group=2}",
        ],
        "float32 [1, 2, 1] 10 13",
    );
}

#[test]
fn three_axes_and_double_precision_go_by_rows() {
    runs(
        &["weight x 1 1 2 2 2 = 1 2 3 4 5 6 7 8", "weight w 1 1 2 1 2 = 1 0 0 1", "y = Conv(x, w)"],
        "float32 [1, 1, 1, 2, 1] 7 11",
    );
    runs(
        &["weight x f64 1 2 2 = 1 2 3 4", "weight w f64 1 2 2 = 1 0 0 1", "y = Conv(x, w)"],
        "float64 [1, 1, 1] 5",
    );
}

#[test]
fn nothing_is_convolved_into_the_bias() {
    runs(&["weight x 0 1 3 = ", "weight w 1 1 2 = 1 1", "y = Conv(x, w)"], "float32 [0, 1, 2] ");
    runs(
        &[
            "weight x 1 1 0 = ",
            "weight w 3 1 2 = 1 1 1 1 1 1",
            "weight b 3 = 1 2 3",
            "y = Conv(x, w, b) {pads=[1, 1]}",
        ],
        "float32 [1, 3, 1] 1 2 3",
    );
}
