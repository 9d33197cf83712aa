//! Calls and what becomes of them.

use super::*;
use crate::proto::AttributeProto;
use crate::testing::{body, file, graph, op, shaped, tensor, try_load, with};
use lowtide_core::{Dim, Model, ModelGraph, Value};

/// A function: `a, b -> y` and its operators.
fn function(name: &str, interface: &str, ops: &[&str]) -> FunctionProto {
    let GraphProto { node, input, output, .. } = graph(interface, ops);
    let names = |infos: Vec<ValueInfoProto>| infos.into_iter().map(|info| info.name).collect();
    let (input, output) = (names(input), names(output));
    FunctionProto { name: name.to_owned(), input, output, node, ..FunctionProto::default() }
}

fn gelu() -> FunctionProto {
    function("Gelu", "x -> y", &["e: t = Erf(x)", "y = Mul(x, t)"])
}

fn load(graph: GraphProto, functions: Vec<FunctionProto>) -> Result<Model, String> {
    let model = ModelProto { functions, ..file(graph) };
    try_load(&model, &Limits::default()).map_err(|error| error.to_string())
}

/// The operators of a graph as text.
fn shown(graph: &ModelGraph) -> Vec<String> {
    let name = |id: &Option<_>| id.map_or("", |id| graph.tensors[id].name.as_str());
    let shown = graph.ops.iter().map(|op| {
        let list = |ids: &[_]| ids.iter().map(name).collect::<Vec<_>>().join(", ");
        format!("{}: {} = {}({})", op.name, list(&op.outputs), op.kind, list(&op.inputs))
    });
    shown.collect()
}

#[track_caller]
fn check(graph: GraphProto, functions: Vec<FunctionProto>, wanted: &[&str]) {
    assert_eq!(shown(load(graph, functions).unwrap().main_graph()), wanted);
}

#[track_caller]
fn refuses(graph: GraphProto, functions: Vec<FunctionProto>, message: &str) {
    assert_eq!(load(graph, functions).unwrap_err(), message);
}

#[test]
fn a_call_becomes_the_operators_of_its_function() {
    let proto = graph("a -> c", &["r: b = Relu(a)", "act: c = Gelu(b)"]);
    let wanted = ["r: b = Relu(a)", "act/e: act/t = Erf(b)", "act/Mul_1: c = Mul(b, act/t)"];
    check(proto, vec![gelu()], &wanted);
}

#[test]
fn calls_without_names_and_with_one_name_keep_apart() {
    let proto = graph("a -> d", &["b = Gelu(a)", "f: c = Gelu(b)", "f: d = Gelu(c)"]);
    let model = load(proto, vec![gelu()]).unwrap();
    let names: Vec<_> = model.main_graph().ops.iter().map(|op| op.name.as_str()).collect();
    assert_eq!(names, ["Gelu_0/e", "Gelu_0/Mul_1", "f/e", "f/Mul_1", "f_1/e", "f_1/Mul_1"]);
}

#[test]
fn names_of_the_model_are_not_taken() {
    let proto = graph("f/t, a -> b", &["f: b = Gelu(a)"]);
    check(proto, vec![gelu()], &["f_1/e: f_1/t = Erf(a)", "f_1/Mul_1: b = Mul(a, f_1/t)"]);
    let outer = function("F", "x -> y", &["g/t = Relu(x)", "g: y = Gelu(g/t)"]);
    let wanted = [
        "f/Relu_0: f/g/t = Relu(a)",
        "f/g_1/e: f/g_1/t = Erf(f/g/t)",
        "f/g_1/Mul_1: b = Mul(f/g/t, f/g_1/t)",
    ];
    check(graph("a -> b", &["f: b = F(a)"]), vec![outer, gelu()], &wanted);
}

#[test]
fn functions_call_functions() {
    let outer = function("F", "x -> y", &["g: y = Gelu(x)"]);
    let wanted = ["f/g/e: f/g/t = Erf(a)", "f/g/Mul_1: b = Mul(a, f/g/t)"];
    check(graph("a -> b", &["f: b = F(a)"]), vec![outer, gelu()], &wanted);
}

#[test]
fn what_a_call_leaves_out_is_absent() {
    let f = || function("F", "x, s -> y, z", &["y = Clip(x, s)", "z = Relu(x)"]);
    let wanted = ["f/Clip_0: b = Clip(a, )", "f/Relu_1: f/z = Relu(a)"];
    check(graph("a -> b", &["f: b = F(a)"]), vec![f()], &wanted);
    check(graph("a -> b", &["f: b, = F(a, )"]), vec![f()], &wanted);
}

#[test]
fn an_output_that_is_an_input_is_copied() {
    let f = function("F", "x -> x, y, y", &["y = Relu(x)"]);
    let wanted =
        ["f/Relu_0: c = Relu(a)", "f/Identity: b = Identity(a)", "f/Identity: d = Identity(c)"];
    check(graph("a -> b, c, d", &["f: b, c, d = F(a)"]), vec![f], &wanted);
}

fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { name: name.to_owned(), f: Some(value), r#type: 1, ..AttributeProto::default() }
}

fn reference(name: &str, to: &str) -> AttributeProto {
    let (name, ref_attr_name) = (name.to_owned(), to.to_owned());
    AttributeProto { name, ref_attr_name, r#type: 1, ..AttributeProto::default() }
}

/// What `alpha` of the operator in a function becomes under a call with these attributes.
fn alpha(given: &[AttributeProto], defaults: Vec<AttributeProto>) -> Option<Value> {
    let mut f = function("F", "x -> y", &[]);
    f.node.push(with(op("y = Elu(x)"), reference("alpha", "a")));
    f.attribute_proto = defaults;
    let mut proto = graph("a -> b", &["b = F(a)"]);
    proto.node[0].attribute = given.to_vec();
    let model = load(proto, vec![f]).unwrap();
    model.main_graph().ops.iter().next().unwrap().attribute("alpha").cloned()
}

#[test]
fn an_attribute_is_the_calls_or_the_default_or_none() {
    let given = [float("a", 2.0), float("alpha", 3.0)];
    assert_eq!(alpha(&given, vec![float("a", 1.0)]), Some(Value::Float(2.0)));
    assert_eq!(alpha(&[], vec![float("a", 1.0)]), Some(Value::Float(1.0)));
    assert_eq!(alpha(&[], Vec::new()), None);
}

#[test]
fn attributes_pass_through_calls_and_into_constants() {
    let mut inner = function("G", "-> y", &[]);
    inner.node.push(with(op("y = Constant()"), reference("value_float", "v")));
    let mut outer = function("F", "-> y", &[]);
    outer.node.push(with(op("y = G()"), reference("v", "u")));
    let mut proto = graph("-> b", &["b = F()"]);
    proto.node[0].attribute = vec![float("u", 0.5)];
    let model = load(proto, vec![inner, outer]).unwrap();
    let data: Vec<_> = model.main_graph().data.values().collect();
    assert_eq!(data, [&0.5_f32.to_le_bytes()[..]]);
}

#[test]
fn bodies_call_functions() {
    let mut proto = graph("c, a -> y", &[]);
    let branch = graph("-> v", &["f: v = Gelu(a)"]);
    proto.node.push(with(op("y = If(c)"), body("then_branch", branch)));
    let model = load(proto, vec![gelu()]).unwrap();
    let inner = model.graphs.iter().last().unwrap();
    assert_eq!(shown(inner), ["f/e: f/t = Erf(a)", "f/Mul_1: v = Mul(a, f/t)"]);
}

#[test]
fn bodies_in_functions_see_its_names_and_may_hide_them() {
    // `x` and `s` are inputs of the function; the body has an `x` of its own and reads `s` and `t`.
    let branch = graph("-> v", &["x = Relu(s)", "v = Sum(x, t)"]);
    let mut f = function("F", "c, x, s -> y", &["t = Relu(x)"]);
    f.node.push(with(op("i: y = If(c)"), body("then_branch", branch)));
    let proto = graph("a, c -> b", &["f: b = F(c, a, a)"]);
    let model = load(proto, vec![f]).unwrap();
    let inner = model.graphs.iter().last().unwrap();
    assert_eq!(shown(inner), [": f/x = Relu(a)", ": f/v = Sum(f/x, f/t)"]);
}

#[test]
fn a_body_given_as_attribute_sees_the_names_of_the_caller() {
    let mut f = function("F", "c -> y", &[]);
    f.node.push(with(op("y = If(c)"), reference("then_branch", "t")));
    let mut proto = graph("c, x -> b", &["b = F(c)"]);
    proto.node[0].attribute = vec![body("t", graph("-> v", &["v = Relu(x)"]))];
    let model = load(proto, vec![f]).unwrap();
    assert_eq!(shown(model.graphs.iter().last().unwrap()), [": v = Relu(x)"]);
}

#[test]
fn declarations_of_inner_tensors_come_along_without_names_of_dimensions() {
    let f = FunctionProto { value_info: vec![shaped("t", "N 4"), shaped("x", "9")], ..gelu() };
    let model = load(graph("a -> b", &["f: b = Gelu(a)"]), vec![f]).unwrap();
    let shape = |name| tensor(model.main_graph(), name).shape.clone();
    assert_eq!((shape("f/t"), shape("a")), (Some(vec![Dim::Unknown, Dim::Known(4)]), None));
}

#[test]
fn overload_and_domain_tell_functions_apart() {
    let mut one = function("F", "x -> y", &["y = One(x)"]);
    one.domain = "d".to_owned();
    let mut two =
        FunctionProto { domain: "d".to_owned(), ..function("F", "x -> y", &["y = Two(x)"]) };
    two.overload = "2".to_owned();
    let mut proto = graph("a -> c", &["b = F(a)", "g: c = F(b)"]);
    (proto.node[1].domain, proto.node[1].overload) = ("d".to_owned(), "2".to_owned());
    check(proto, vec![one.clone(), two], &[": b = F(a)", "g/Two_0: c = Two(b)"]);
    let message = "the file has two functions `F` of one domain and overload, wanted one";
    refuses(graph("a -> a", &[]), vec![one.clone(), one], message);
}

#[test]
fn operator_sets_of_functions_are_the_models_where_it_has_none() {
    let row = |domain: &str, version| OperatorSetIdProto { domain: domain.to_owned(), version };
    let called = FunctionProto { opset_import: vec![row("", 13), row("d", 2)], ..gelu() };
    let idle = FunctionProto { opset_import: vec![row("e", 1)], ..function("I", "x -> x", &[]) };
    let model = ModelProto {
        functions: vec![called, idle],
        opset_import: vec![row("", 17)],
        ..file(graph("a -> b", &["b = Gelu(a)"]))
    };
    let bytes = prost::Message::encode_to_vec(&model).into();
    let loaded = crate::read_bytes(bytes, None, &crate::ReadOptions::default()).unwrap();
    assert_eq!(loaded.model.opsets, [(String::new(), 17), ("d".to_owned(), 2)]);
    let warning = "function `Gelu` wants version 13 of operator set `ai.onnx`, version 17 is used";
    assert_eq!(loaded.report.warnings, [warning]);
}

#[test]
fn a_call_gives_no_more_than_the_function_takes() {
    let message = "operator `f` calls function `Gelu` with 2 inputs, it has 1";
    refuses(graph("a -> b", &["f: b = Gelu(a, a)"]), vec![gelu()], message);
    let message = "operator `f` calls function `Gelu` with 2 outputs, it has 1";
    refuses(graph("a -> b", &["f: b, c = Gelu(a)"]), vec![gelu()], message);
}

#[test]
fn a_function_defines_its_outputs_and_reads_only_its_own() {
    let f = function("F", "x -> y", &[]);
    let message = "function `F` outputs `y`, which nothing defines";
    refuses(graph("a -> b", &["b = F(a)"]), vec![f], message);
    let f = function("F", "x -> y", &["y = Relu(a)"]);
    let message = "operator `f/Relu_0` reads `f/a`, which nothing defines";
    refuses(graph("a -> b", &["f: b = F(a)"]), vec![f], message);
}

#[test]
fn a_function_that_calls_itself_is_an_error() {
    let f = function("F", "x -> y", &["y = F(x)"]);
    let message = "function `F` is called more than 32 deep; does it call itself?";
    refuses(graph("a -> b", &["b = F(a)"]), vec![f], message);
}

/// Functions of which each calls the next four times, the last one being this.
fn doubling(last: FunctionProto) -> Vec<FunctionProto> {
    let calls = |callee: usize| -> Vec<String> {
        (0..4).map(|i| format!("{} = F{callee}(x)", ["y", "a", "b", "c"][i])).collect()
    };
    let mut functions: Vec<_> = (0..15)
        .map(|i| {
            let calls = calls(i + 1);
            let calls: Vec<_> = calls.iter().map(String::as_str).collect();
            function(&format!("F{i}"), "x -> y", &calls)
        })
        .collect();
    functions.push(FunctionProto { name: "F15".to_owned(), ..last });
    functions
}

#[test]
fn functions_that_grow_without_end_are_refused() {
    let proto = || graph("a -> b", &["b = F0(a)"]);
    let small = Limits { max_ops: 10_000, ..Limits::default() };
    let functions = doubling(function("", "x -> x", &[]));
    let empty = ModelProto { functions, ..file(proto()) };
    let functions = doubling(function("", "x -> y", &["y = Relu(x)"]));
    let full = ModelProto { functions, ..file(proto()) };
    for model in [empty, full] {
        let error = try_load(&model, &small).unwrap_err();
        assert!(matches!(error, LoadError::TooManyOps { .. }), "{error}");
    }
    let mut long = function("", "x -> y", &["y = Relu(x)"]);
    long.node[0].attribute = vec![AttributeProto { ints: vec![1; 1 << 17], ..float("", 0.0) }];
    let long = ModelProto { functions: doubling(long), ..file(proto()) };
    let few = Limits { max_function_bytes: 9_000_000, ..small };
    let message = "the operators of called functions take more than 9000000 bytes, the limit";
    assert_eq!(try_load(&long, &few).unwrap_err().to_string(), message);
}
