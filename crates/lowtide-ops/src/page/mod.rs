//! The page of operators, `docs/operators.md`: made from the declarations, and held against them by the test in here.
//!
//! ~~~text
//! declarations ──────────────────────────┐
//! examples.txt   Pow | 1 7 12 13 15 | x {T} 3 / a {T1} / y = Pow(x, a)
//!                run in each type: T = f32, f64, ...  ──> | Pow | 1, 7, 12, 13, 15 | in place of input 0 or 1 | T: f32 f64 .. |
//! ~~~
//! An example is a model of one operator, as the tests of this crate write them; tensors are zeros where no elements
//! stand. What is in braces is tried with each type, while the others keep their first one (`f32`, or as in `{T=u8}`).
//! So the page says what ran, in place too, and every kernel runs at least once in each of its types.
//!
//! `UPDATE_EXPECT=1 cargo test -p lowtide-ops page` writes the page anew.

use crate::declaration::{Declaration, Rule};
use crate::kernels::testing::execute;
use crate::tables::declarations;
use crate::testing::model;
use expect_test::expect_file;
use lowtide_core::{Dim, GraphId, Model, Source};
use std::collections::BTreeMap;
use std::fmt::Write;

const EXAMPLES: &str = include_str!("examples.txt");
const INTRODUCTION: &str = include_str!("introduction.md");

/// All types that a kernel could calculate in.
const TYPES: &str = "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool";

/// A row of the file of examples.
struct Example {
    /// The versions of the operator set in which the operator's definition is new.
    versions: String,
    /// A model of one operator; empty if there is no kernel to run it.
    text: String,
}

/// By name, with the domain in front unless it is the standard one.
fn examples() -> BTreeMap<&'static str, Example> {
    let row = |line: &'static str| {
        let mut parts = line.splitn(3, " | ");
        let name = parts.next().unwrap();
        let versions = parts.next().unwrap().replace(' ', ", ");
        (name, Example { versions, text: parts.next().unwrap_or_default().to_owned() })
    };
    EXAMPLES.lines().map(row).collect()
}

/// The name and the first type of everything in braces.
fn variables(text: &str) -> Vec<(&str, &str)> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for part in text.split('{').skip(1).filter(|part| part.starts_with(char::is_uppercase)) {
        let inside = part.split('}').next().unwrap();
        let (name, first) = inside.split_once('=').unwrap_or((inside, "f32"));
        if found.iter().all(|row| row.0 != name) {
            found.push((name, first));
        }
    }
    found
}

/// The example with one of its variables of another type.
fn typed(example: &str, name: &str, dtype: &str) -> Model {
    let mut text = example.to_owned();
    for (variable, first) in variables(example) {
        let dtype = if variable == name { dtype } else { first };
        text = text.replace(&format!("{{{variable}={first}}}"), dtype);
        text = text.replace(&format!("{{{variable}}}"), dtype);
    }
    let line = |part: &str| {
        if part.contains('(') { part.to_owned() } else { format!("weight {part}") }
    };
    let lines: Vec<String> = text.split(" / ").map(line).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    filled(model(&lines, "y"))
}

/// With zeros in weights that have no elements.
fn filled(mut model: Model) -> Model {
    let graph = &mut model.graphs[GraphId::new(0)];
    for (id, tensor) in graph.tensors.iter_enumerated() {
        if tensor.source == Source::Initializer {
            let known =
                |dim: &Dim| if let Dim::Known(count) = dim { *count } else { panic!("{dim:?}") };
            let dims = tensor.shape.iter().flatten().map(known);
            let bytes = tensor.dtype.unwrap().bytes(dims.product()).unwrap();
            let zeros = vec![0; usize::try_from(bytes.0).unwrap()];
            graph.data.entry(id).or_insert_with(|| zeros.into());
        }
    }
    model
}

/// The types of each variable in which the example runs, such as `T: f32 f64`; an error if there is none.
fn types(text: &str) -> Result<String, String> {
    let variables = variables(text);
    let first = execute(&typed(text, "", ""));
    first.map_err(|error| format!("{error}: {text}"))?;
    let of_variable = |&(name, _): &(&str, &str)| {
        let runs = |dtype: &&str| execute(&typed(text, name, dtype)).is_ok();
        let found: Vec<&str> = TYPES.split(' ').filter(runs).collect();
        let found = found.join(" ");
        format!("{name}: {}", if found == TYPES { "all" } else { &found })
    };
    let all: Vec<String> = variables.iter().map(of_variable).collect();
    Ok(if all.is_empty() { "yes".to_owned() } else { all.join("; ") })
}

fn name(row: &Declaration) -> String {
    let dot = if row.domain.is_empty() { "" } else { "." };
    format!("{}{dot}{}", row.domain, row.kind)
}

/// How its first output shares bytes.
fn sharing(row: &Declaration) -> String {
    let of_rule = match row.rule {
        Rule::View => "a view",
        Rule::ViewWhenInferring => "a view, in inference",
        Rule::OverwriteAny => "in place of any input",
        Rule::OverwriteWhenInferring => "in place of input 0, in inference",
        Rule::Copies => "",
        Rule::Overwrite(inputs) => {
            let inputs: Vec<String> = inputs.iter().map(usize::to_string).collect();
            return format!("in place of input {}", inputs.join(" or "));
        }
    };
    match (row.inside.is_some(), of_rule) {
        (true, "") => "parts inside the whole".to_owned(),
        (true, rule) => format!("{rule}; parts inside the whole"),
        (false, rule) => rule.to_owned(),
    }
}

fn line(row: &Declaration, example: Option<&Example>) -> Result<String, String> {
    let versions = example.map_or("1", |example| &example.versions);
    let shapes = match (row.shape.is_some(), row.measure.is_some()) {
        (_, true) => "in the run",
        (true, false) => "yes",
        (false, false) => "",
    };
    let kernel = if row.kernel.is_some() {
        let text = example.map(|example| &example.text).filter(|text| !text.is_empty());
        types(text.ok_or_else(|| format!("{} has a kernel and no example", name(row)))?)?
    } else {
        "no".to_owned()
    };
    Ok(format!("| {} | {versions} | {shapes} | {} | {kernel} |\n", row.kind, sharing(row)))
}

fn page() -> String {
    let (mut page, mut wrong) = (INTRODUCTION.to_owned(), Vec::new());
    let examples = examples();
    for domain in ["", "com.microsoft"] {
        let mut rows: Vec<Declaration> =
            declarations().filter(|row| row.domain == domain).collect();
        rows.sort_by_key(|row| row.kind);
        let kernels = rows.iter().filter(|row| row.kernel.is_some()).count();
        let title = if domain.is_empty() { "The standard domain" } else { domain };
        write!(page, "\n## {title}\n\n{} operators, {kernels} with a kernel.\n\n", rows.len())
            .unwrap();
        page += "| operator | versions | shapes | shares bytes | kernel, types |\n|---|---|---|---|---|\n";
        for row in &rows {
            let known = examples.get(name(row).as_str());
            assert!(known.is_some() || !domain.is_empty(), "{} has no versions", row.kind);
            line(row, known).map_or_else(|error| wrong.push(error), |line| page += &line);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    page
}

#[test]
fn the_page_of_operators_says_what_is_declared_and_runs() {
    expect_file!["../../../../docs/operators.md"].assert_eq(&page());
}

#[test]
fn every_example_is_of_a_declared_operator() {
    let declared: Vec<String> = declarations().map(|row| name(&row)).collect();
    for (name, example) in examples() {
        assert!(declared.iter().any(|row| row == name), "{name} is not declared");
        assert!(example.text.is_empty() || example.text.contains(&format!("= {name}(")), "{name}");
    }
}
