//! Claims about quantised numbers.

use crate::kernels::testing::{run, runs};

#[test]
fn numbers_become_integers_and_back() {
    let x = "weight x 4 = -1000 -0.25 0.75 1000";
    runs(&[x, "weight s = 0.5", "y = QuantizeLinear(x, s)"], "uint8 [4] 0 0 2 255");
    runs(
        &[x, "weight s = 0.5", "weight z i8 = 10", "y = QuantizeLinear(x, s, z)"],
        "int8 [4] -128 10 12 127",
    );
    runs(
        &[
            "weight x u8 2 = 128 130",
            "weight s = 0.5",
            "weight z u8 = 128",
            "y = DequantizeLinear(x, s, z)",
        ],
        "float32 [2] 0 1",
    );
    runs(
        &["weight x i32 2 = -3 5", "weight s = 2", "y = DequantizeLinear(x, s)"],
        "float32 [2] -6 10",
    );
}

#[test]
fn scales_belong_to_an_axis_or_to_blocks() {
    runs(
        &["weight x i8 2 2 = 1 2 3 4", "weight s 2 = 1 10", "y = DequantizeLinear(x, s) {axis=0}"],
        "float32 [2, 2] 1 2 30 40",
    );
    runs(
        &[
            "weight x i8 1 4 = 1 2 3 4",
            "weight s 1 2 = 1 10",
            "y = DequantizeLinear(x, s) {block_size=2}",
        ],
        "float32 [1, 4] 1 2 30 40",
    );
}

#[test]
fn a_range_is_found() {
    let lines = ["weight x 3 = -51 0 204", "y; s; z = DynamicQuantizeLinear(x)"];
    assert_eq!(run(&lines, "y s z"), ["uint8 [3] 0 51 255", "float32 [] 1", "uint8 [] 51"]);
}

#[test]
fn bytes_are_multiplied() {
    let (a, b) = ("weight a u8 2 2 = 1 2 3 4", "weight b i8 2 2 = 1 -1 0 2");
    runs(&[a, b, "y = MatMulInteger(a, b)"], "int32 [2, 2] 1 3 3 5");
    runs(&[a, b, "weight z u8 = 1", "y = MatMulInteger(a, b, z)"], "int32 [2, 2] 0 2 2 4");
    runs(
        &[
            a,
            b,
            "weight s = 0.5",
            "weight z u8 = 1",
            "weight w i8 = 0",
            "y = QLinearMatMul(a, s, z, b, s, w, s, z)",
        ],
        "uint8 [2, 2] 1 2 2 3",
    );
}

#[test]
fn bytes_are_convolved() {
    let (x, w) = ("weight x u8 1 1 2 2 = 2 3 4 5", "weight w u8 1 1 2 2 = 1 1 1 1");
    runs(
        &[x, w, "weight z u8 = 1", "y = ConvInteger(x, w, z) {pads=[0, 0, 1, 1]}"],
        "int32 [1, 1, 2, 2] 10 6 7 4",
    );
    runs(
        &[
            x,
            w,
            "weight s = 0.5",
            "weight z u8 = 1",
            "weight n u8 = 0",
            "weight b i32 1 = 4",
            "y = QLinearConv(x, s, z, w, s, n, s, z, b)",
        ],
        "uint8 [1, 1, 1, 1] 8",
    );
}
