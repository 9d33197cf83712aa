//! Sharing: the rules of operator types in, what each operator of this graph may or must share out.
//!
//! ~~~text
//! weight w ─ Reshape ─ v ─ Reshape ─ y (output)     v is a view of w;
//!                      └── Relu ──── z              y is a copy, or the caller would hold a weight;
//!                                                   z may not lie on v, whose bytes are the weight's
//! ~~~
//! A view is taken only if it is as large as its base, or one of the sizes is not known: then the file
//! cannot contradict it. An output may lie on an input only if both have the same fixed number of equally
//! wide elements: then nothing was broadcast, and element i comes to lie on element i.
//! Cost: linear.

use lowtide_core::operator::SharingRule;
use lowtide_core::{
    Bytes, Dim, IndexVec, Lists, ModelGraph, ModelOp, OpId, Operator, Registry, Sharing, Size,
    Tensor, TensorId, TensorKind,
};
use std::collections::BTreeSet;

/// What the operators of a graph share.
#[derive(Debug)]
pub(crate) struct Shares {
    /// For each operator.
    pub(crate) of_op: IndexVec<OpId, Vec<Sharing>>,
    /// Views whose base has another size; they became copies.
    pub(crate) contradictions: Vec<(OpId, String)>,
}

/// Applies the rules of all operators.
pub(crate) fn shares(
    model: &ModelGraph,
    tensors: &IndexVec<TensorId, Tensor>,
    registry: &Registry,
) -> Shares {
    let rules: Vec<SharingRule> = model.ops.iter().map(|op| rule(registry, op)).collect();
    let rules: IndexVec<OpId, SharingRule> = IndexVec::from(rules);
    let mut contradictions = Vec::new();
    let views: Vec<View> = model
        .ops
        .iter_enumerated()
        .filter_map(|(by, op)| view(op, by, rules[by], tensors, &mut contradictions))
        .collect();
    let callers = callers_bytes(&views, tensors);
    let mut of_op: IndexVec<OpId, Vec<Sharing>> = IndexVec::filled(model.ops.len(), Vec::new());
    for View { by, of, output } in views {
        if callers[of].is_none() || !tensors[output].is_output {
            of_op[by].push(Sharing::View { output, of, offset: Some(Bytes::ZERO) });
        }
    }
    for (id, op) in model.ops.iter_enumerated() {
        let fits = |&(output, of): &(TensorId, TensorId)| {
            callers[of] != Some(TensorKind::Weight) && match_exactly(&tensors[output], &tensors[of])
        };
        let permitted = overwrites(op, rules[id]).into_iter().filter(fits);
        of_op[id].extend(permitted.map(|(output, of)| Sharing::MayOverwrite { output, of }));
    }
    Shares { of_op, contradictions }
}

fn rule(registry: &Registry, op: &ModelOp) -> SharingRule {
    registry.find(&op.domain, &op.kind).map_or(SharingRule::Copies, Operator::sharing)
}

fn first_output(op: &ModelOp) -> Option<TensorId> {
    op.outputs.first().copied().flatten()
}

#[derive(Clone, Copy)]
struct View {
    by: OpId,
    of: TensorId,
    output: TensorId,
}

/// The view that an operator makes, if its rule and the sizes say so.
fn view(
    op: &ModelOp,
    by: OpId,
    rule: SharingRule,
    tensors: &IndexVec<TensorId, Tensor>,
    contradictions: &mut Vec<(OpId, String)>,
) -> Option<View> {
    if !rule.is_view(op) {
        return None;
    }
    let (of, output) = (op.inputs.first().copied().flatten()?, first_output(op)?);
    match (tensors[of].size, tensors[output].size) {
        (Size::Fixed(base), Size::Fixed(bytes)) if base != bytes => {
            contradictions.push((by, contradiction(op, by, &tensors[of], &tensors[output])));
            None
        }
        (base, size) => {
            let fits =
                base.bound().is_none() || size.bound().is_none() || base.bound() == size.bound();
            fits.then_some(View { by, of, output })
        }
    }
}

fn contradiction(op: &ModelOp, by: OpId, of: &Tensor, output: &Tensor) -> String {
    let label = if op.name.is_empty() { format!("{} ({by})", op.kind) } else { op.name.clone() };
    let shape = |tensor: &Tensor| Dim::shape_text(tensor.shape.as_deref().unwrap_or_default());
    format!(
        "operator `{label}`: `{}` of shape {} and {} is to be a view of `{}` of shape {} and {}",
        output.name,
        shape(output),
        output.size,
        of.name,
        shape(of),
        of.size
    )
}

/// For each tensor whose bytes, through views, are a weight's or an input's: which of them. A graph output
/// is neither, as it is copied.
fn callers_bytes(
    views: &[View],
    tensors: &IndexVec<TensorId, Tensor>,
) -> IndexVec<TensorId, Option<TensorKind>> {
    let pairs: Vec<(TensorId, TensorId)> =
        views.iter().map(|view| (view.of, view.output)).collect();
    let views_of = Lists::group(tensors.len(), &pairs);
    let own = |tensor: &Tensor| (tensor.kind != TensorKind::Computed).then_some(tensor.kind);
    let mut callers: IndexVec<TensorId, Option<TensorKind>> = tensors.iter().map(own).collect();
    let mut reached: Vec<TensorId> = tensors.ids().filter(|&id| callers[id].is_some()).collect();
    while let Some(base) = reached.pop() {
        for &view in views_of[base].iter().filter(|&&view| !tensors[view].is_output) {
            callers[view] = callers[base];
            reached.push(view);
        }
    }
    callers
}

/// Pairs of output and input that the rule of an operator permits, each once, in the order of preference.
fn overwrites(op: &ModelOp, rule: SharingRule) -> Vec<(TensorId, TensorId)> {
    let Some(output) = first_output(op) else { return Vec::new() };
    let mut seen = BTreeSet::new();
    let positions = rule.overwrites(op).into_iter();
    let inputs = positions.filter_map(|position| op.inputs.get(position).copied().flatten());
    inputs.filter(|&input| seen.insert(input)).map(|input| (output, input)).collect()
}

/// Whether element i of one takes the place of element i of the other.
fn match_exactly(output: &Tensor, of: &Tensor) -> bool {
    let layout = |tensor: &Tensor| {
        let bits = tensor.dtype?.bits()?;
        tensor.size.fixed()?;
        Some((bits, Dim::element_count(tensor.shape.as_deref()?)?))
    };
    layout(output).is_some_and(|wanted| layout(of) == Some(wanted))
}

#[cfg(test)]
mod tests {
    use crate::ResolveConfig;
    use crate::testing::{bounds, model, resolve_with, shares};
    use lowtide_core::{GraphId, OpId, Value};

    /// Sharing of all operators of a graph whose last tensor is its output.
    #[track_caller]
    fn check(lines: &[&str], wanted: &str) {
        let resolved = resolve_with(lines, "", &ResolveConfig::default()).unwrap();
        assert_eq!(shares(&resolved.graph), wanted);
    }

    #[test]
    fn a_reshape_is_a_view() {
        check(&["input x 2 3", "y 6 = Reshape(x)", "z 1 = Conv(y)"], "y in x");
        check(&["weight x 2 3", "y 6 = Identity(x)", "z 1 = Conv(y)"], "y in x");
    }

    #[test]
    fn a_view_may_have_a_size_that_is_not_known() {
        check(&["input x 2 3", "y ? = Reshape(x)", "z 1 = Conv(y)"], "y in x");
        check(&["input x ? 3", "y 6 = Reshape(x)", "z 1 = Conv(y)"], "y in x");
    }

    #[test]
    fn views_with_other_bounds_than_their_base_are_copies() {
        let lines = ["input x n 3", "y 6 = Reshape(x)", "z 1 = Conv(y)"];
        let in_x = resolve_with(&lines, "z", &bounds("n", 2)).unwrap();
        let elsewhere = resolve_with(&lines, "z", &bounds("n", 9)).unwrap();
        assert_eq!((&*shares(&in_x.graph), &*shares(&elsewhere.graph)), ("y in x", ""));
        assert!(elsewhere.contradictions.is_empty());
    }

    #[test]
    fn a_view_of_another_size_contradicts_the_file() {
        let lines = ["input x 2 3", "y 7 = Reshape(x)"];
        let resolved = resolve_with(&lines, "y", &ResolveConfig::default()).unwrap();
        let message = "operator `Reshape (op0)`: `y` of shape [7] and 28 B is to be a view of `x` of \
            shape [2, 3] and 24 B";
        assert_eq!(resolved.contradictions, [message]);
        assert_eq!(shares(&resolved.graph), "");
    }

    #[test]
    fn an_output_is_no_view_of_the_callers_bytes() {
        check(&["weight w 6", "y 6 = Reshape(w)"], "");
        check(&["input x 6", "v 6 = Reshape(x)", "y 6 = Reshape(v)"], "v in x");
        check(&["input x 6", "a 6 = Conv(x)", "y 6 = Reshape(a)"], "y in a");
        let lines = ["input x 6", "y 6 = Reshape(x)", "z 6 = Reshape(y)"];
        let resolved = resolve_with(&lines, "y z", &ResolveConfig::default()).unwrap();
        assert_eq!(shares(&resolved.graph), "z in y");
    }

    #[test]
    fn elementwise_outputs_may_lie_on_an_input() {
        check(&["input x 6", "y 6 = Relu(x)"], "y on x");
        check(&["input x 6", "input z 6", "y 6 = Add(x, z)"], "y on x, y on z");
        check(&["input x 6", "y 6 = Mul(x, x)"], "y on x");
        check(&["input x 6", "input z 6", "y 6 = Sum(x, z, x)"], "y on x, y on z");
        check(&["input x 6", "y 6 = Softmax(x)"], "y on x");
        check(&["input x 6", "i 1 = Conv(x)", "y 6 = ScatterND(x, i, i)"], "y on x");
    }

    #[test]
    fn a_broadcast_input_is_left_alone() {
        check(&["input x 2 3", "input b 3", "y 2 3 = Add(x, b)"], "y on x");
        check(&["input x 1 3", "input b 2 1", "y 2 3 = Add(x, b)"], "");
    }

    #[test]
    fn a_weight_is_never_overwritten_nor_its_views() {
        check(&["input x 6", "weight w 6", "y 6 = Add(x, w)"], "y on x");
        check(&["weight w 6", "v 2 3 = Reshape(w)", "y 2 3 = Relu(v)"], "v in w");
    }

    #[test]
    fn elements_of_another_width_are_left_alone() {
        check(&["input x 6", "y i64 6 = Cast(x)"], "");
        check(&["input x 6", "y i32 6 = Cast(x)"], "y on x");
        check(&["input x 6", "input z 6", "y bool 6 = Less(x, z)"], "");
        check(
            &["input c bool 6", "input x 6", "input z 6", "y 6 = Where(c, x, z)"],
            "y on x, y on z",
        );
        check(&["input c bool 6", "input x bool 6", "y bool 6 = Where(c, x, x)"], "y on x, y on c");
    }

    #[test]
    fn only_fixed_sizes_are_overwritten() {
        check(&["input x ? 3", "y ? 3 = Relu(x)"], "");
        let bounded =
            resolve_with(&["input x n 3", "y n 3 = Relu(x)"], "y", &bounds("n", 9)).unwrap();
        assert_eq!(shares(&bounded.graph), "");
    }

    #[test]
    fn training_shares_nothing() {
        check(&["input x 6", "y 6 = Dropout(x)", "z 1 = Conv(y)"], "y in x");
        check(&["input x 6", "y 6; m 6 = Dropout(x)", "z 1 = Conv(y)"], "");
        check(&["input x 6", "input r 1", "y 6 = Dropout(x, r, r)", "z 1 = Conv(y)"], "");
        check(&["input x 6", "y 6 = BatchNormalization(x)"], "y on x");
        check(&["input x 6", "y 6; m 1 = BatchNormalization(x)"], "");
    }

    #[test]
    fn a_training_mode_of_zero_is_inference() {
        for (mode, wanted) in [(0, "y on x"), (1, "")] {
            let mut model = model(&["input x 6", "y 6 = BatchNormalization(x)"], "y");
            let name = "training_mode".to_owned();
            let attribute = lowtide_core::Attribute { name, value: Value::Int(mode) };
            model.graphs[GraphId::new(0)].ops[OpId::new(0)].attributes.push(attribute);
            let resolved = crate::resolve(
                &model,
                GraphId::new(0),
                &ResolveConfig::default(),
                &crate::standard(),
            );
            assert_eq!(shares(&resolved.unwrap().graph), wanted);
        }
    }

    #[test]
    fn known_and_unknown_types_without_rule_share_nothing() {
        check(&["input x 6", "y 6 = Conv(x)", "z 6 = Mystery(y)"], "");
    }
}
