//! No kernel panics, or gives other bits in place, whatever it is given.
//!
//! ~~~text
//! a type with a kernel, small tensors of any shape, attributes that some operator has ──execute──> outputs or an error
//! ~~~

use super::testing::{execute, operators};
use crate::testing::model;
use arbitrary::{Result, Unstructured};
use lowtide_core::{Attribute, GraphId, Model, OpId, Operator, Value};

const MAIN: GraphId = GraphId::new(0);

/// Attributes that steer kernels: integers, lists of them, and words.
const INTS: [&str; 24] = [
    "axis",
    "group",
    "keepdims",
    "ceil_mode",
    "storage_order",
    "count_include_pad",
    "to",
    "transA",
    "transB",
    "exclusive",
    "reverse",
    "largest",
    "sorted",
    "blocksize",
    "batch_axis",
    "time_axis",
    "batch_dims",
    "num_groups",
    "num_outputs",
    "upper",
    "fmod",
    "p",
    "start",
    "end",
];
const LISTS: [&str; 12] = [
    "axes",
    "kernel_shape",
    "strides",
    "pads",
    "dilations",
    "perm",
    "split",
    "starts",
    "ends",
    "output_padding",
    "output_shape",
    "shape",
];
const WORDS: [(&str, &[&str]); 6] = [
    ("auto_pad", &["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]),
    ("mode", &["nearest", "linear", "cubic", "reflect", "edge", "wrap", "constant", "CRD"]),
    ("coordinate_transformation_mode", &["align_corners", "asymmetric", "tf_crop_and_resize"]),
    ("reduction", &["add", "mul", "max", "min"]),
    ("direction", &["LEFT", "RIGHT", "reverse", "bidirectional"]),
    ("approximate", &["tanh", "none"]),
];

/// A shape of a few elements.
fn random_dims(u: &mut Unstructured<'_>) -> Result<Vec<usize>> {
    let rank = u.int_in_range(0..=4)?;
    (0..rank).map(|_| Ok(*u.choose(&[0, 1, 1, 1, 2, 2, 3, 4])?)).collect()
}

/// A weight of a shape.
fn random_weight(
    u: &mut Unstructured<'_>,
    name: &str,
    dtype: &str,
    dims: &[usize],
) -> Result<String> {
    let mut words = Vec::new();
    for _ in 0..dims.iter().product::<usize>() {
        let odd = dtype != "f32" && dtype != "bool" && u.ratio(1, 20)?;
        words.push(match dtype {
            _ if odd => (*u.choose(&["127", "100"])?).to_owned(),
            "f32" => {
                (*u.choose(&["0.5", "-1.5", "2", "NaN", "inf", "-inf", "-0.0", "1e30"])?).to_owned()
            }
            "bool" | "u8" => u.int_in_range(0..=1)?.to_string(),
            _ => u.int_in_range(-3..=4)?.to_string(),
        });
    }
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    Ok(format!("weight {name} {dtype} {} = {}", dims.join(" "), words.join(" ")))
}

fn random_attribute(u: &mut Unstructured<'_>) -> Result<Attribute> {
    let small = |u: &mut Unstructured<'_>| u.int_in_range(-2..=4_i64);
    let (name, value) = match u.int_in_range(0..=3)? {
        0 => (*u.choose(&INTS)?, Value::Int(small(u)?)),
        1 => {
            let count = u.int_in_range(0..=4)?;
            let list = (0..count).map(|_| small(u)).collect::<Result<_>>()?;
            (*u.choose(&LISTS)?, Value::Ints(list))
        }
        2 => (
            *u.choose(&["alpha", "beta", "epsilon", "gamma", "value"])?,
            Value::Float(u.arbitrary()?),
        ),
        _ => {
            let (name, words) = *u.choose(&WORDS)?;
            (name, Value::Text(u.choose(words)?.as_bytes().to_vec()))
        }
    };
    Ok(Attribute { name: name.to_owned(), value })
}

/// Any operator with small inputs, whose first results are wanted.
fn random_call(u: &mut Unstructured<'_>) -> Result<Model> {
    let operators: Vec<&dyn Operator> = operators().iter().collect();
    let operator = *u.choose(&operators)?;
    let main = *u.choose(&["f32", "f32", "f32", "i64", "i32", "u8", "bool", "i8"])?;
    let (mut lines, mut dims) = (Vec::new(), random_dims(u)?);
    let count = *u.choose(&[1, 1, 2, 2, 3, 4, 5])?;
    for at in 0..count {
        let dtype = if at > 0 && u.ratio(1, 3)? { "i64" } else { main };
        if u.ratio(1, 2)? {
            dims = random_dims(u)?;
        }
        lines.push(random_weight(u, &format!("x{at}"), dtype, &dims)?);
    }
    let results = ["y", "y; z", "y; z; w"];
    let inputs: Vec<String> = (0..count).map(|at| format!("x{at}")).collect();
    let call = format!("{}({})", operator.kind(), inputs.join(", "));
    lines.push(format!("{} = {call}", u.choose(&results)?));
    lines.push(format!("opset {}", u.choose(&[6, 9, 11, 13, 17, 18, 21])?));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut model = model(&lines, "y");
    let op = &mut model.graphs[MAIN].ops[OpId::new(0)];
    operator.domain().clone_into(&mut op.domain);
    for _ in 0..u.int_in_range(0..=4)? {
        op.attributes.push(random_attribute(u)?);
    }
    Ok(model)
}

#[test]
fn no_kernel_panics_whatever_it_is_given() {
    let (mut runs, mut tries) = (0, 0);
    arbtest::arbtest(|u| {
        tries += 1;
        let model = random_call(u)?;
        let done = std::panic::catch_unwind(|| execute(&model).is_ok());
        runs += usize::from(done.unwrap_or_else(|_| panic!("{:#?}", model.main_graph())));
        Ok(())
    })
    .budget_ms(5000);
    assert!(runs > 20, "only {runs} of {tries} calls were run");
}
