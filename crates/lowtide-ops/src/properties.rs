//! Properties of inference over random models.
//!
//! ~~~text
//! x [a, 3, b] ─ random operators ─ y [a, floor((b + 1)/2)]     names first, then a = 4 and b = 7
//!      a = 4, b = 7 first, then the same operators             gives the same shapes
//! ~~~
//! And whatever attributes and inputs an operator has, its rule comes to an end.

use crate::ResolveConfig;
use crate::fact::Fact;
use crate::infer::{Facts, Inferred, infer};
use crate::standard;
use crate::testing::model;
use arbitrary::{Result, Unstructured};
use lowtide_core::{Attribute, Dim, GraphId, Model, OpId, Operator, TensorId, Value};
use std::collections::BTreeMap;

const MAIN: GraphId = GraphId::new(0);

fn numbers(a: u64, b: u64) -> ResolveConfig {
    let dims = BTreeMap::from([("a".to_owned(), a), ("b".to_owned(), b)]);
    ResolveConfig { dims, ..ResolveConfig::default() }
}

fn inferred(lines: &[String], config: &ResolveConfig) -> Inferred {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    infer(&model(&lines, ""), MAIN, config, &standard())
}

/// Numbers from `low` to `high`, as a list in a line.
fn list(u: &mut Unstructured<'_>, low: i64, high: i64, count: usize) -> Result<String> {
    let words: Result<Vec<String>> =
        (0..count).map(|_| Ok(u.int_in_range(low..=high)?.to_string())).collect();
    Ok(words?.join(", "))
}

type Known = (String, Vec<i64>);

/// A few lines of a model: an operator with windows on `x`.
fn with_windows(u: &mut Unstructured<'_>, t: &str, (x, dims): &Known) -> Result<Vec<String>> {
    let spatial = dims.len().saturating_sub(2);
    let channels = dims.get(1).copied().unwrap_or(1);
    let strides = list(u, 1, 3, spatial)?;
    let kernel = list(u, 1, 3, spatial)?;
    let pads = list(u, 0, 1, 2 * spatial)?;
    let hangs = u.int_in_range(0..=1)?;
    let auto = *u.choose(&["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])?;
    let weight = kernel.replace(',', "");
    Ok(match u.int_in_range(0..=5)? {
        0 => vec![format!(
            "{t} = MaxPool({x}) {{kernel_shape=[{kernel}], strides=[{strides}], pads=[{pads}], ceil_mode={hangs}}}"
        )],
        1 => vec![format!(
            "{t} = AveragePool({x}) {{kernel_shape=[{kernel}], strides=[{strides}], auto_pad={auto}}}"
        )],
        2 => vec![
            format!("weight {t}w 4 {channels} {weight}"),
            format!("{t} = Conv({x}, {t}w) {{strides=[{strides}], auto_pad={auto}}}"),
        ],
        3 => vec![
            format!("weight {t}w {channels} 2 {weight}"),
            format!("{t} = ConvTranspose({x}, {t}w) {{strides=[{strides}], auto_pad={auto}}}"),
        ],
        4 => vec![format!("{t} = GlobalAveragePool({x})")],
        _ => vec![format!("{t} = DepthToSpace({x}) {{blocksize=2}}")],
    })
}

/// An operator whose second input, or list, is in the file.
fn with_numbers(u: &mut Unstructured<'_>, t: &str, (x, dims): &Known) -> Result<Vec<String>> {
    let rank = dims.len();
    let axis = *u.choose(&[-1, 0, 1, 2, 3])?;
    let pads = list(u, -1, 2, 2 * rank)?.replace(',', "");
    let repeats = list(u, 1, 3, rank)?.replace(',', "");
    let scales = vec![*u.choose(&["2", "0.5", "1", "3"])?; rank].join(" ");
    let (start, end) = (u.int_in_range(-6..=6)?, *u.choose(&[-7, -1, 0, 2, 5, i64::MAX])?);
    Ok(match u.int_in_range(0..=5)? {
        0 => {
            vec![format!("weight {t}p i64 {} = {pads}", 2 * rank), format!("{t} = Pad({x}, {t}p)")]
        }
        1 => vec![
            format!("weight {t}s i64 1 = {start}"),
            format!("weight {t}e i64 1 = {end}"),
            format!("weight {t}a i64 1 = {axis}"),
            format!("{t} = Slice({x}, {t}s, {t}e, {t}a)"),
        ],
        2 => vec![format!("weight {t}s {rank} = {scales}"), format!("{t} = Resize({x}, _, {t}s)")],
        3 => vec![format!("weight {t}s i64 {rank} = {repeats}"), format!("{t} = Tile({x}, {t}s)")],
        4 => vec![format!("weight {t}s i64 2 = 0 -1"), format!("{t} = Reshape({x}, {t}s)")],
        _ => vec![
            format!("weight {t}i i64 2 = 0 0"),
            format!("{t} = Gather({x}, {t}i) {{axis={axis}}}"),
        ],
    })
}

/// An operator whose result depends on a shape.
fn with_shapes(u: &mut Unstructured<'_>, t: &str, x: &str, y: &str) -> Result<Vec<String>> {
    let behind: &[String] = &match u.int_in_range(0..=3)? {
        0 => [format!("{t} = Expand({y}, {t}s)")].to_vec(),
        1 => vec![format!("{t}p = ReduceProd({t}s)"), format!("{t} = Reshape({x}, {t}p)")],
        2 => vec![
            format!("weight {t}i i64 = 0"),
            format!("{t}g = Gather({t}s, {t}i)"),
            format!("weight {t}o i64 = 1"),
            format!("{t} = Range({t}i, {t}g, {t}o)"),
        ],
        _ => vec![format!("{t}z = ConstantOfShape({t}s)"), format!("{t} = Sub({t}z, {y})")],
    };
    Ok([&[format!("{t}s = Shape({x})")], behind].concat())
}

/// An operator on tensors of these names and shapes, its first result named `t`.
fn operator(u: &mut Unstructured<'_>, t: &str, tensors: &[Known]) -> Result<Vec<String>> {
    let known = u.choose(tensors)?.clone();
    let (x, y) = (&known.0, &u.choose(tensors)?.0);
    let (axis, keeps) = (*u.choose(&[-1, 0, 1, 2, 3])?, u.int_in_range(0..=1)?);
    Ok(match u.int_in_range(0..=11)? {
        0 => vec![format!("{t} = Relu({x})")],
        1 => vec![format!("{t} = Add({x}, {y})")],
        2 => vec![format!("{t} = Concat({x}, {y}) {{axis={axis}}}")],
        3 => vec![format!("{t} = Transpose({x})")],
        4 => vec![format!("{t} = Flatten({x}) {{axis={axis}}}")],
        5 => vec![format!("{t} = ReduceMean({x}) {{axes=[{axis}], keepdims={keeps}}}")],
        6 => vec![format!("{t} = MatMul({x}, {y})")],
        7 => vec![format!("{t}; {t}r = Split({x}) {{axis={axis}}}")],
        8 => vec![format!("{t} = Unsqueeze({x}) {{axes=[{axis}]}}")],
        9 => with_shapes(u, t, x, y)?,
        10 => with_numbers(u, t, &known)?,
        _ => with_windows(u, t, &known)?,
    })
}

/// Operators that fit the numbers; those that do not are taken back.
fn random_model(u: &mut Unstructured<'_>, config: &ResolveConfig) -> Result<Vec<String>> {
    let shapes = ["a 3 b", "1 4 b b", "a b", "b", "2 a 1", "a 8 b 5"];
    let mut lines =
        vec![format!("input x {}", u.choose(&shapes)?), format!("input y {}", u.choose(&shapes)?)];
    for index in 0..u.int_in_range(1..=6)? {
        let known = known_tensors(&lines, config);
        let added = operator(u, &format!("t{index}"), &known)?;
        let longer = [lines.clone(), added].concat();
        if inferred(&longer, config).contradictions.is_empty() {
            lines = longer;
        }
    }
    Ok(lines)
}

fn known_tensors(lines: &[String], config: &ResolveConfig) -> Vec<Known> {
    let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
    let model = model(&texts, "");
    let facts = infer(&model, MAIN, config, &standard()).facts;
    let rows = model.graphs[MAIN].tensors.iter().zip(&facts);
    rows.filter_map(|(row, fact)| Some((row.name.clone(), fact.known_dims()?))).collect()
}

/// Each shape in names, with the numbers put in, is the shape in numbers.
fn agree(names: &Facts, numbers: &Facts, value: &dyn Fn(&str) -> Option<i64>, lines: &[String]) {
    for (id, open) in names.iter_enumerated() {
        let (Some(open), Some(known)) = (&open.dims, &numbers[id].dims) else { continue };
        assert_eq!(open.len(), known.len(), "{lines:#?}");
        for (open, known) in open.iter().zip(known) {
            let (Some(open), Some(known)) = (open, known) else { continue };
            assert_eq!(open.eval(value), known.known(), "tensor {id:?}: {open} in {lines:#?}");
        }
    }
}

#[test]
fn names_become_numbers_before_or_after() {
    arbtest::arbtest(|u| {
        let (a, b) = (u.int_in_range(1..=9)?, u.int_in_range(1..=9)?);
        let config = numbers(a, b);
        let lines = random_model(u, &config)?;
        let value = |name: &str| i64::try_from(if name == "a" { a } else { b }).ok();
        let open = inferred(&lines, &ResolveConfig::default());
        assert!(open.contradictions.is_empty(), "{:?} {lines:#?}", open.contradictions);
        agree(&open.facts, &inferred(&lines, &config).facts, &value, &lines);
        Ok(())
    })
    .budget_ms(3000);
}

const ATTRIBUTES: [&str; 46] = [
    "axis",
    "axes",
    "strides",
    "dilations",
    "pads",
    "kernel_shape",
    "group",
    "auto_pad",
    "perm",
    "output_shape",
    "output_padding",
    "ceil_mode",
    "keepdims",
    "blocksize",
    "to",
    "dtype",
    "shape",
    "scales",
    "hidden_size",
    "direction",
    "layout",
    "equation",
    "k",
    "split",
    "starts",
    "ends",
    "batch_dims",
    "transA",
    "transB",
    "num_heads",
    "q_num_heads",
    "kv_num_heads",
    "N",
    "size",
    "step",
    "dim",
    "sample_size",
    "onesided",
    "signal_ndim",
    "ngram_indexes",
    "qkv_hidden_sizes",
    "noop_with_empty_axes",
    "output_height",
    "pooled_shape",
    "channels_last",
    "num_scan_inputs",
];

fn random_int(u: &mut Unstructured<'_>) -> Result<i64> {
    let extreme = [i64::MIN, i64::MIN + 1, -1, 0, 1, 2, 1 << 40, i64::MAX - 1, i64::MAX];
    if u.ratio(1, 3)? { Ok(*u.choose(&extreme)?) } else { u.int_in_range(-5..=9) }
}

fn random_value(u: &mut Unstructured<'_>) -> Result<Value> {
    let count = u.int_in_range(0..=6)?;
    Ok(match u.int_in_range(0..=4)? {
        0 => Value::Int(random_int(u)?),
        1 => Value::Ints((0..count).map(|_| random_int(u)).collect::<Result<_>>()?),
        2 => Value::Floats((0..count).map(|_| u.arbitrary()).collect::<Result<_>>()?),
        3 => Value::Float(u.arbitrary()?),
        _ => {
            let texts = [
                "SAME_UPPER",
                "VALID",
                "bidirectional",
                "ij,jk->ik",
                "...i->i...",
                "not_larger",
                "->,",
            ];
            Value::Text(u.choose(&texts)?.as_bytes().to_vec())
        }
    })
}

fn random_input(u: &mut Unstructured<'_>, name: &str) -> Result<String> {
    let dtype = *u.choose(&["f32", "i64", "i64", "u8", "bool"])?;
    if u.ratio(1, 8)? {
        return Ok(format!("weight {name} {dtype} 0 4294967296 4294967296 = "));
    }
    let rank = u.int_in_range(0..=5)?;
    if u.ratio(1, 2)? {
        let count: usize = u.int_in_range(0..=6)?;
        let words: Result<Vec<String>> = (0..count)
            .map(|_| Ok(if dtype == "i64" { random_int(u)?.to_string() } else { "1".to_owned() }))
            .collect();
        return Ok(format!("weight {name} {dtype} {count} = {}", words?.join(" ")));
    }
    let words = ["a", "b", "?", "0", "1", "2", "3", "8", "9223372036854775807", "4294967296"];
    let dims: Result<Vec<&str>> = (0..rank).map(|_| Ok(*u.choose(&words)?)).collect();
    Ok(format!("input {name} {dtype} {}", dims?.join(" ")))
}

/// Any operator of the tables with any inputs and attributes.
fn random_call(u: &mut Unstructured<'_>) -> Result<Model> {
    let registry = standard();
    let operators: Vec<&dyn Operator> = registry.iter().collect();
    let operator = *u.choose(&operators)?;
    let count = u.int_in_range(0..=6)?;
    let mut lines: Vec<String> =
        (0..count).map(|at| random_input(u, &format!("x{at}"))).collect::<Result<_>>()?;
    let inputs: Vec<String> = (0..count).map(|at| format!("x{at}")).collect();
    lines.push(format!("y; z; w = {}({})", operator.kind(), inputs.join(", ")));
    lines.push(format!("opset {}", u.int_in_range(1..=25)?));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut model = model(&lines, "");
    let op = &mut model.graphs[MAIN].ops[OpId::new(0)];
    operator.domain().clone_into(&mut op.domain);
    for _ in 0..u.int_in_range(0..=6)? {
        let name = (*u.choose(&ATTRIBUTES)?).to_owned();
        op.attributes.push(Attribute { name, value: random_value(u)? });
    }
    Ok(model)
}

#[test]
fn no_call_is_too_odd() {
    arbtest::arbtest(|u| {
        let model = random_call(u)?;
        // Sizes may be too large for memory, which is an error and no panic.
        let registry = standard();
        for config in [ResolveConfig::default(), numbers(3, 1 << 62)] {
            if let Ok(resolved) = crate::resolve(&model, MAIN, &config, &registry) {
                drop(crate::prepare(&model, resolved.graph, &resolved.facts, &registry));
            }
        }
        Ok(())
    })
    .budget_ms(4000);
}

#[test]
fn a_shape_below_zero_is_a_contradiction() {
    let lines = ["weight s i64 1 = -5", "y = ConstantOfShape(s)"].map(str::to_owned);
    let Inferred { facts, contradictions } = inferred(&lines, &ResolveConfig::default());
    assert_eq!(facts[TensorId::new(1)], Fact::default());
    assert!(
        contradictions.values().all(|line| line.ends_with("shape [-5] has a dimension below 0"))
    );
    assert!(matches!(
        model(&["input x n"], "").graphs[MAIN].tensors[TensorId::new(0)].shape.as_deref(),
        Some([Dim::Named(_)])
    ));
}
