//! Claims about resizing.

use crate::kernels::testing::runs;

const X: &str = "weight x 1 1 2 2 = 1 2 3 4";
const TWICE: &str = "weight s 4 = 1 1 2 2";

#[test]
fn the_nearest_is_taken() {
    let wanted = "float32 [1, 1, 4, 4] 1 1 2 2 1 1 2 2 3 3 4 4 3 3 4 4";
    runs(&[X, TWICE, "y = Resize(x, _, s)"], wanted);
    runs(&["opset 10", X, TWICE, "y = Resize(x, s)"], wanted);
    runs(&["opset 9", X, TWICE, "y = Upsample(x, s)"], wanted);
    runs(&["opset 7", X, "y = Upsample(x) {scales=[1.0, 1.0, 2.0, 2.0]}"], wanted);
    runs(
        &["weight x i64 1 3 = 1 2 3", "weight s i64 2 = 1 2", "y = Resize(x, _, _, s)"],
        "int64 [1, 2] 1 3",
    );
}

#[test]
fn what_lies_between_is_interpolated() {
    runs(
        &[X, "weight s 4 = 1 1 1 2", "y = Resize(x, _, s) {mode=linear}"],
        "float32 [1, 1, 2, 4] 1 1.25 1.75 2 3 3.25 3.75 4",
    );
    runs(
        &[
            X,
            "weight s i64 4 = 1 1 3 2",
            "y = Resize(x, _, _, s) {mode=linear, coordinate_transformation_mode=align_corners}",
        ],
        "float32 [1, 1, 3, 2] 1 2 2 3 3 4",
    );
    runs(
        &[
            "weight x f64 1 4 = 0 1 2 3",
            "weight s i64 2 = 1 2",
            "y = Resize(x, _, _, s) {mode=cubic}",
        ],
        "float64 [1, 2] 0.40625 2.59375",
    );
}

#[test]
fn fewer_places_are_averages_with_antialias() {
    runs(
        &[
            "weight x 1 4 = 0 1 2 3",
            "weight s i64 1 = 2",
            "y = Resize(x, _, _, s) {mode=linear, antialias=1, axes=[1]}",
        ],
        "float32 [1, 2] 0.625 2.375",
    );
}

#[test]
fn beyond_the_input_there_is_a_value_of_its_own() {
    runs(
        &[
            "weight x 3 = 1 2 3",
            "weight r 2 = 0.5 1.5",
            "weight s i64 1 = 3",
            "y 3 = Resize(x, r, _, s) {mode=linear, coordinate_transformation_mode=tf_crop_and_resize, extrapolation_value=9.0}",
        ],
        "float32 [3] 2 3 9",
    );
}

#[test]
fn nothing_becomes_nothing() {
    runs(&["weight x 0 2 = ", "weight s 2 = 1 2", "y = Resize(x, _, s)"], "float32 [0, 4] ");
}

#[test]
fn half_as_many_elements_are_the_first_of_each_pair() {
    runs(
        &["opset 9", "weight x 2 = 1 2", "weight s 1 = 0.5", "y = Upsample(x, s)"],
        "float32 [1] 1",
    );
}
