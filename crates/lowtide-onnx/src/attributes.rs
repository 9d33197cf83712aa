//! Attributes: messages in, [`Value`]s out; and the one operator that is nothing but an attribute.
//!
//! ~~~text
//! AttributeProto { name: axis, type: INT, i: 1 }       ──>  Value::Int(1)
//! Constant { value: TensorProto { INT64, dims: [3] } } ──>  int64 [3], and no operator
//! ~~~
//! Bodies are not read here, since what they mean depends on the graphs around them; see `load`.

use crate::LoadError;
use crate::graph::Label;
use crate::proto::{AttributeProto, TensorProto};
use crate::values::Values;
use lowtide_core::{DType, TensorValue, Value};

/// What an attribute says that it is: its number in the file.
pub(crate) mod kind {
    pub(crate) const FLOAT: i32 = 1;
    pub(crate) const INT: i32 = 2;
    pub(crate) const TEXT: i32 = 3;
    pub(crate) const TENSOR: i32 = 4;
    pub(crate) const BODY: i32 = 5;
    pub(crate) const FLOATS: i32 = 6;
    pub(crate) const INTS: i32 = 7;
    pub(crate) const TEXTS: i32 = 8;
    pub(crate) const TENSORS: i32 = 9;
    pub(crate) const BODIES: i32 = 10;
    pub(crate) const SPARSE: i32 = 11;
    pub(crate) const SPARSES: i32 = 12;
    pub(crate) const TYPE: i32 = 13;
    pub(crate) const TYPES: i32 = 14;
}

/// The kind of an attribute; files of the first version do not state it, so there it is what is filled.
pub(crate) fn kind_of(attribute: &AttributeProto) -> i32 {
    let filled = [
        (attribute.g.is_some(), kind::BODY),
        (!attribute.graphs.is_empty(), kind::BODIES),
        (attribute.t.is_some(), kind::TENSOR),
        (attribute.sparse_tensor.is_some(), kind::SPARSE),
        (attribute.s.is_some(), kind::TEXT),
        (attribute.i.is_some(), kind::INT),
        (attribute.f.is_some(), kind::FLOAT),
        (!attribute.ints.is_empty(), kind::INTS),
        (!attribute.floats.is_empty(), kind::FLOATS),
        (!attribute.strings.is_empty(), kind::TEXTS),
    ];
    match attribute.r#type {
        0 => filled.iter().find(|row| row.0).map_or(0, |row| row.1),
        stated => stated,
    }
}

/// The value of an attribute that holds no graph.
pub(crate) fn plain_value(
    attribute: &AttributeProto,
    op: Label<'_>,
    values: &mut Values<'_>,
) -> Result<Value, LoadError> {
    Ok(match kind_of(attribute) {
        kind::FLOAT => Value::Float(attribute.f.unwrap_or_default()),
        kind::INT => Value::Int(attribute.i.unwrap_or_default()),
        kind::TEXT => Value::Text(attribute.s.as_deref().unwrap_or_default().to_vec()),
        kind::TENSOR => {
            let name = format_args!("{} of {op}", attribute.name);
            Value::Tensor(values.tensor(tensor_of(attribute, op)?, &name)?)
        }
        kind::FLOATS => Value::Floats(attribute.floats.clone()),
        kind::INTS => Value::Ints(attribute.ints.clone()),
        kind::TEXTS => Value::Texts(attribute.strings.iter().map(|text| text.to_vec()).collect()),
        kind::TENSORS => Value::Other("tensors"),
        kind::SPARSE => Value::Other("sparse tensor"),
        kind::SPARSES => Value::Other("sparse tensors"),
        kind::TYPE => Value::Other("type"),
        kind::TYPES => Value::Other("types"),
        _ => Value::Other("unknown"),
    })
}

fn tensor_of<'p>(
    attribute: &'p AttributeProto,
    op: Label<'_>,
) -> Result<&'p TensorProto, LoadError> {
    attribute.t.as_deref().ok_or_else(|| empty(attribute, op, "a tensor"))
}

/// An attribute that lacks what its kind promises.
pub(crate) fn empty(attribute: &AttributeProto, op: Label<'_>, wanted: &'static str) -> LoadError {
    LoadError::EmptyAttribute { op: op.to_string(), attribute: attribute.name.clone(), wanted }
}

/// Calls have taken all references to their attributes; one that is left means nothing.
pub(crate) fn check_references(op: Label<'_>) -> Result<(), LoadError> {
    let mut attributes = op.node.attribute.iter();
    match attributes.find(|attribute| !attribute.ref_attr_name.is_empty()) {
        None => Ok(()),
        Some(stray) => Err(LoadError::StrayReference {
            op: op.to_string(),
            attribute: stray.name.clone(),
            to: stray.ref_attr_name.clone(),
        }),
    }
}

/// The name that a constant defines.
pub(crate) fn constant_output(op: Label<'_>) -> Result<&str, LoadError> {
    let named = || op.node.output.iter().filter(|name| !name.is_empty());
    match (named().next(), named().count(), op.node.output.len()) {
        (Some(name), 1, 1) => Ok(name),
        (_, found, _) => Err(LoadError::BadConstant {
            op: op.to_string(),
            found: format!("{found} named outputs"),
            wanted: "just one output, named",
        }),
    }
}

/// The value of a constant.
pub(crate) fn constant(op: Label<'_>, values: &mut Values<'_>) -> Result<TensorValue, LoadError> {
    let name = constant_output(op)?;
    let is_value = |attribute: &&AttributeProto| VALUES.contains(&attribute.name.as_str());
    let found: Vec<_> = op.node.attribute.iter().filter(is_value).collect();
    match found[..] {
        [attribute] => constant_value(attribute, name, op, values),
        _ => Err(LoadError::BadConstant {
            op: op.to_string(),
            found: format!("{} values", found.len()),
            wanted: "one",
        }),
    }
}

/// The attributes that are a constant's value.
const VALUES: [&str; 8] = [
    "value",
    "sparse_value",
    "value_int",
    "value_ints",
    "value_float",
    "value_floats",
    "value_string",
    "value_strings",
];

fn constant_value(
    value: &AttributeProto,
    name: &str,
    op: Label<'_>,
    values: &mut Values<'_>,
) -> Result<TensorValue, LoadError> {
    let ints = |ints: &[i64]| ints.iter().flat_map(|i| i.to_le_bytes()).collect();
    let floats = |floats: &[f32]| floats.iter().flat_map(|f| f.to_le_bytes()).collect();
    let strings = |dims| TensorValue { dtype: DType::String, dims, data: None };
    let scalar = Vec::new;
    Ok(match value.name.as_str() {
        "value" => values.tensor(tensor_of(value, op)?, &name)?,
        "value_int" => {
            values.written_out(DType::I64, scalar(), ints(&[value.i.unwrap_or_default()]))
        }
        "value_float" => {
            values.written_out(DType::F32, scalar(), floats(&[value.f.unwrap_or_default()]))
        }
        "value_ints" => {
            values.written_out(DType::I64, vec![value.ints.len() as u64], ints(&value.ints))
        }
        "value_floats" => {
            values.written_out(DType::F32, vec![value.floats.len() as u64], floats(&value.floats))
        }
        "value_string" => strings(scalar()),
        "value_strings" => strings(vec![value.strings.len() as u64]),
        _ => return Err(LoadError::Sparse { tensor: name.to_owned() }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{NodeProto, SparseTensorProto};
    use crate::testing::{fails, first_op, graph, load, op, tensor, weight, with};
    use lowtide_core::{Data, Dim, Source, TensorId};

    fn named(name: &str) -> AttributeProto {
        AttributeProto { name: name.to_owned(), ..AttributeProto::default() }
    }

    /// What a constant with this attribute becomes: its type and value; no operator is left of it.
    #[track_caller]
    fn constant(attribute: AttributeProto, dtype: DType, dims: &[u64], bytes: Option<&[u8]>) {
        let mut proto = graph("-> y", &["y = Relu(c)"]);
        proto.node.insert(0, with(op("c = Constant()"), attribute));
        let model = load(proto);
        let (main, found) = (model.main_graph(), tensor(model.main_graph(), "c"));
        assert_eq!((found.dtype, found.source), (Some(dtype), Source::Constant));
        assert_eq!(found.shape, Some(dims.iter().copied().map(Dim::Known).collect()));
        assert_eq!((main.ops.len(), main.file_op_count()), (1, 2));
        assert_eq!(main.data.get(&TensorId::new(0)).map(|data| &data[..]), bytes);
    }

    #[test]
    fn a_constant_is_a_weight_and_no_operator() {
        constant(
            AttributeProto { t: Some(Box::new(weight("", &[2, 3]))), ..named("value") },
            DType::F32,
            &[2, 3],
            Some(&[0; 24]),
        );
        let seven = [7, 0, 0, 0, 0, 0, 0, 0];
        let int = AttributeProto { i: Some(7), ..named("value_int") };
        constant(int, DType::I64, &[], Some(&seven));
        let ints = AttributeProto { ints: vec![7], ..named("value_ints") };
        constant(ints, DType::I64, &[1], Some(&seven));
        let half = 0.5_f32.to_le_bytes();
        let float = AttributeProto { f: Some(0.5), ..named("value_float") };
        constant(float, DType::F32, &[], Some(&half));
        let floats = AttributeProto { floats: vec![0.5], ..named("value_floats") };
        constant(floats, DType::F32, &[1], Some(&half));
        constant(named("value_string"), DType::String, &[], None);
        constant(named("value_strings"), DType::String, &[0], None);
    }

    #[test]
    fn a_sparse_constant_is_refused() {
        let sparse = SparseTensorProto { values: Some(weight("", &[1])) };
        let sparse =
            AttributeProto { sparse_tensor: Some(Box::new(sparse)), ..named("sparse_value") };
        let message = "tensor `c` is sparse; sparse initializers and constants are not supported";
        fails(lone(with(op("c = Constant()"), sparse)), message);
    }

    fn lone(constant: NodeProto) -> crate::proto::GraphProto {
        let mut proto = graph("-> c", &[]);
        proto.node.push(constant);
        proto
    }

    #[test]
    fn a_constant_has_one_value_and_one_output() {
        let none = lone(op("one: c = Constant()"));
        fails(none, "operator `one` is a Constant with 0 values, wanted one");
        let two = with(with(op("one: c = Constant()"), named("value_int")), named("value_float"));
        fails(lone(two), "operator `one` is a Constant with 2 values, wanted one");
        let nowhere = with(op("one: = Constant()"), named("value_int"));
        let message =
            "operator `one` is a Constant with 0 named outputs, wanted just one output, named";
        fails(lone(nowhere), message);
    }

    #[test]
    fn a_constant_of_another_domain_is_an_operator() {
        let mut proto = lone(op("c = Constant()"));
        proto.node[0].domain = "com.example".to_owned();
        assert_eq!(load(proto).main_graph().ops.len(), 1);
    }

    #[track_caller]
    fn check(attribute: AttributeProto, wanted: Value) {
        let mut proto = graph("x -> y", &[]);
        proto.node.push(with(op("y = F(x)"), attribute));
        assert_eq!(first_op(load(proto).main_graph()).attribute("a").cloned(), Some(wanted));
    }

    #[test]
    fn the_stated_kind_decides() {
        let zero = |number| AttributeProto { r#type: number, ..named("a") };
        check(zero(kind::INT), Value::Int(0));
        check(zero(kind::FLOAT), Value::Float(0.0));
        check(zero(kind::TEXT), Value::Text(Vec::new()));
        check(zero(kind::INTS), Value::Ints(Vec::new()));
        check(zero(kind::TYPE), Value::Other("type"));
        check(zero(77), Value::Other("unknown"));
    }

    #[test]
    fn without_a_stated_kind_what_is_filled_decides() {
        check(AttributeProto { i: Some(3), ..named("a") }, Value::Int(3));
        check(AttributeProto { ints: vec![3, 4], ..named("a") }, Value::Ints(vec![3, 4]));
        check(AttributeProto { s: Some("s".into()), ..named("a") }, Value::Text(b"s".to_vec()));
        check(
            AttributeProto { strings: vec!["s".into()], ..named("a") },
            Value::Texts(vec![b"s".to_vec()]),
        );
        let tensor = AttributeProto { t: Some(Box::new(weight("", &[5]))), ..named("a") };
        let data = Some(Data::from_static(&[0; 20]));
        check(tensor, Value::Tensor(TensorValue { dtype: DType::F32, dims: vec![5], data }));
    }

    #[test]
    fn a_reference_outside_a_function_is_an_error() {
        let stray = AttributeProto { ref_attr_name: "b".to_owned(), ..named("value_int") };
        let message =
            "attribute `value_int` of operator `one` refers to `b` of a call, but is in none";
        for kind in ["F", "Constant"] {
            fails(lone(with(op(&format!("one: c = {kind}()")), stray.clone())), message);
        }
    }

    #[test]
    fn a_stated_kind_has_its_value() {
        for (number, wanted) in [(kind::TENSOR, "a tensor"), (kind::BODY, "a graph")] {
            let mut proto = graph("x -> y", &[]);
            let attribute = AttributeProto { r#type: number, ..named("a") };
            proto.node.push(with(op("one: y = F(x)"), attribute));
            fails(
                proto,
                &format!("attribute `a` of operator `one` holds nothing, wanted {wanted}"),
            );
        }
    }
}
