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
use crate::tables::of_domain;
use crate::testing::model;
use arbitrary::{Result, Unstructured};
use lowtide_core::{Attribute, Dim, GraphId, Model, OpId, TensorId, Value};
use std::collections::BTreeMap;

const MAIN: GraphId = GraphId::new(0);

fn numbers(a: u64, b: u64) -> ResolveConfig {
    let dims = BTreeMap::from([("a".to_owned(), a), ("b".to_owned(), b)]);
    ResolveConfig { dims, ..ResolveConfig::default() }
}

fn inferred(lines: &[String], config: &ResolveConfig) -> Inferred {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    infer(&model(&lines, ""), MAIN, config)
}

/// One line of a model, or a few: an operator on tensors of these names and shapes.
fn operator(
    u: &mut Unstructured<'_>,
    name: &str,
    tensors: &[(String, Vec<i64>)],
) -> Result<Vec<String>> {
    let (x, dims) = u.choose(tensors)?.clone();
    let (y, _) = u.choose(tensors)?.clone();
    let rank = dims.len();
    let spatial = rank.saturating_sub(2);
    let axis = *u.choose(&[-1, 0, 1, 2, 3])?;
    let list = |u: &mut Unstructured<'_>, low: i64, high: i64, count: usize| -> Result<String> {
        let words: Result<Vec<String>> =
            (0..count).map(|_| Ok(u.int_in_range(low..=high)?.to_string())).collect();
        Ok(words?.join(", "))
    };
    let window = format!(
        "kernel_shape=[{}], strides=[{}], pads=[{}], ceil_mode={}",
        list(u, 1, 3, spatial)?,
        list(u, 1, 3, spatial)?,
        list(u, 0, 1, 2 * spatial)?,
        u.int_in_range(0..=1)?
    );
    let strides = list(u, 1, 3, spatial)?;
    let auto = *u.choose(&["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])?;
    let kernel = list(u, 1, 3, spatial)?.replace(',', "");
    let channels = dims.get(1).copied().unwrap_or(1);
    let kind = u.int_in_range(0..=24)?;
    Ok(match kind {
        0 => vec![format!("{name} = Relu({x})")],
        1 => vec![format!("{name} = Add({x}, {y})")],
        2 => vec![format!("{name} = Concat({x}, {y}) {{axis={axis}}}")],
        3 => vec![format!("{name} = Transpose({x})")],
        4 => vec![format!("{name} = Flatten({x}) {{axis={axis}}}")],
        5 => vec![format!(
            "{name} = ReduceMean({x}) {{axes=[{axis}], keepdims={}}}",
            u.int_in_range(0..=1)?
        )],
        6 => vec![format!("{name} = MaxPool({x}) {{{window}}}")],
        7 => vec![format!(
            "{name} = AveragePool({x}) {{kernel_shape=[{strides}], strides=[{strides}], auto_pad={auto}}}"
        )],
        8 => vec![
            format!("weight {name}w 4 {channels} {kernel}"),
            format!("{name} = Conv({x}, {name}w) {{strides=[{strides}], auto_pad={auto}}}"),
        ],
        9 => vec![
            format!("weight {name}w {channels} 2 {kernel}"),
            format!(
                "{name} = ConvTranspose({x}, {name}w) {{strides=[{strides}], auto_pad={auto}}}"
            ),
        ],
        10 => vec![format!("{name} = MatMul({x}, {y})")],
        11 => vec![
            format!(
                "weight {name}p i64 {} = {}",
                2 * rank,
                list(u, -1, 2, 2 * rank)?.replace(',', "")
            ),
            format!("{name} = Pad({x}, {name}p)"),
        ],
        12 => vec![
            format!("weight {name}s i64 1 = {}", u.int_in_range(-6..=6)?),
            format!("weight {name}e i64 1 = {}", u.choose(&[-7, -1, 0, 2, 5, i64::MAX])?),
            format!("weight {name}a i64 1 = {axis}"),
            format!("{name} = Slice({x}, {name}s, {name}e, {name}a)"),
        ],
        13 => vec![
            format!(
                "weight {name}s {rank} = {}",
                vec![*u.choose(&["2", "0.5", "1", "3"])?; rank].join(" ")
            ),
            format!("{name} = Resize({x}, _, {name}s)"),
        ],
        14 => vec![
            format!("weight {name}s i64 {rank} = {}", list(u, 1, 3, rank)?.replace(',', "")),
            format!("{name} = Tile({x}, {name}s)"),
        ],
        15 => {
            vec![format!("weight {name}s i64 2 = 0 -1"), format!("{name} = Reshape({x}, {name}s)")]
        }
        16 => vec![format!("{name}s = Shape({x})"), format!("{name} = Expand({y}, {name}s)")],
        17 => vec![
            format!("{name}s = Shape({x})"),
            format!("{name}p = ReduceProd({name}s)"),
            format!("{name} = Reshape({x}, {name}p)"),
        ],
        18 => vec![
            format!("{name}s = Shape({x})"),
            format!("weight {name}i i64 = 0"),
            format!("{name}g = Gather({name}s, {name}i)"),
            format!("weight {name}o i64 = 1"),
            format!("{name} = Range({name}i, {name}g, {name}o)"),
        ],
        19 => vec![format!("{name} = GlobalAveragePool({x})")],
        20 => vec![format!("{name} = DepthToSpace({x}) {{blocksize=2}}")],
        21 => vec![format!("{name}; {name}t = Split({x}) {{axis={axis}}}")],
        22 => vec![
            format!("weight {name}i i64 2 = 0 0"),
            format!("{name} = Gather({x}, {name}i) {{axis={axis}}}"),
        ],
        23 => vec![format!("{name} = Unsqueeze({x}) {{axes=[{axis}]}}")],
        _ => vec![
            format!("{name}s = Shape({x})"),
            format!("{name}z = ConstantOfShape({name}s)"),
            format!("{name} = Sub({name}z, {y})"),
        ],
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

fn known_tensors(lines: &[String], config: &ResolveConfig) -> Vec<(String, Vec<i64>)> {
    let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
    let model = model(&texts, "");
    let facts = infer(&model, MAIN, config).facts;
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
    let domain = *u.choose(&["", "com.microsoft"])?;
    let tables = of_domain(domain);
    let rows = u.choose(tables)?.rows;
    let row = u.choose(rows)?;
    let count = u.int_in_range(0..=6)?;
    let mut lines: Vec<String> =
        (0..count).map(|at| random_input(u, &format!("x{at}"))).collect::<Result<_>>()?;
    let inputs: Vec<String> = (0..count).map(|at| format!("x{at}")).collect();
    lines.push(format!("y; z; w = {}({})", row.kind, inputs.join(", ")));
    lines.push(format!("opset {}", u.int_in_range(1..=25)?));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut model = model(&lines, "");
    let op = &mut model.graphs[MAIN].ops[OpId::new(0)];
    domain.clone_into(&mut op.domain);
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
        drop(crate::resolve(&model, MAIN, &ResolveConfig::default()));
        drop(crate::resolve(&model, MAIN, &numbers(3, 1 << 62)));
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
