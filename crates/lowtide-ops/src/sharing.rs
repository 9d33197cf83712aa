//! Sharing: the rules of operator types in, what each operator of this graph may or must share out.
//!
//! ~~~text
//! weight w ─ Reshape ─ v ─ Reshape ─ y (output)     v is a view of w;
//!                      └── Relu ──── z              y is a copy, or the caller would hold a weight;
//!                                                   z may not lie on v, whose bytes are the weight's
//! ~~~
//! A view is taken only if it is as large as its base, or one of the sizes is not known: then the file
//! cannot contradict it. An output may lie on an input only if both have the same fixed number of equally
//! wide elements: then nothing was broadcast, and element i comes to lie on element i. Parts and pieces have fixed
//! sizes and lie in memory that a plan may place: neither a weight's nor the caller's. What a whole has twice is no
//! part of it, as it cannot lie in two places.
//! Cost: linear.

use crate::known::Known;
use lowtide_core::operator::{Inside, SharingRule};
use lowtide_core::{
    Bytes, Dim, IndexVec, Lists, ModelOp, OpId, Operator, Registry, Sharing, Size, Tensor,
    TensorId, TensorKind,
};
use std::collections::{BTreeMap, BTreeSet};

/// What the operators of a graph share.
#[derive(Debug)]
pub(crate) struct Shares {
    /// For each operator.
    pub(crate) of_op: IndexVec<OpId, Vec<Sharing>>,
    /// Views whose base has another size; they became copies.
    pub(crate) contradictions: Vec<(OpId, String)>,
}

/// Applies the rules of all operators.
pub(crate) fn shares(known: Known<'_>, tensors: &IndexVec<TensorId, Tensor>) -> Shares {
    let (model, registry) = (known.source, known.registry);
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
        let is_placed = |tensor: TensorId| callers[tensor].is_none();
        of_op[id].extend(inside(known, op, tensors).filter(|sharing| match *sharing {
            Sharing::PartOf { input, .. } => is_placed(input),
            Sharing::PieceOf { of, .. } => is_placed(of),
            _ => false,
        }));
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

/// Parts and pieces of an operator, as far as the sizes agree.
fn inside<'a>(
    known: Known<'a>,
    op: &'a ModelOp,
    tensors: &'a IndexVec<TensorId, Tensor>,
) -> impl Iterator<Item = Sharing> + 'a {
    let (inputs, outputs) = (known.facts(&op.inputs), known.facts(&op.outputs));
    let rule = known.operator(op).map(|rule| rule.inside(&known.call(op, &inputs), &outputs));
    let operand = |list: &[Option<TensorId>], at: usize| list.get(at).copied().flatten();
    let mut counts = BTreeMap::new();
    for &input in op.inputs.iter().flatten() {
        *counts.entry(input).or_insert(0) += 1;
    }
    let ends_inside = |inner: TensorId, outer: TensorId, offset: Bytes| {
        let bytes = tensors[inner].size.fixed().filter(|&bytes| bytes > Bytes::ZERO)?;
        let end = offset.checked_add(bytes)?;
        tensors[outer].size.fixed().filter(|&size| end <= size)
    };
    rule.unwrap_or_default().into_iter().filter_map(move |inside| match inside {
        Inside::Part { input, offset } => {
            let (input, output) = (operand(&op.inputs, input)?, operand(&op.outputs, 0)?);
            let is_once = counts.get(&input) == Some(&1);
            ends_inside(input, output, offset).filter(|_| is_once)?;
            Some(Sharing::PartOf { input, output, offset })
        }
        Inside::Piece { output, offset } => {
            let (of, output) = (operand(&op.inputs, 0)?, operand(&op.outputs, output)?);
            ends_inside(output, of, offset)?;
            Some(Sharing::PieceOf { output, of, offset })
        }
    })
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
    fn parts_lie_one_behind_the_other() {
        let a = ["input x 2 3", "a 2 3 = Conv(x)", "b 1 3 = Conv(x)"];
        let of = |more: &[&str], wanted: &str| check(&[&a[..], more].concat(), wanted);
        of(&["y 3 3 = Concat(a, b) {axis=0}"], "a at 0 B of y, b at 24 B of y");
        of(&["y 3 3 = Concat(a, b) {axis=-2}"], "a at 0 B of y, b at 24 B of y");
        of(&["c 2 3 = Conv(x)", "y 2 6 = Concat(a, c) {axis=1}"], "");
        of(&["y 5 3 = Concat(a, b, a) {axis=0}"], "b at 24 B of y");
        of(
            &[
                "v 1 2 3 = Unsqueeze(a)",
                "u 1 1 3 = Unsqueeze(b)",
                "y 1 3 3 = Concat(u, v) {axis=1}",
            ],
            "v in a, u in b, u at 0 B of y, v at 12 B of y",
        );
    }

    #[test]
    fn what_no_plan_places_is_no_part() {
        let a = ["input x 3", "weight w 3", "v 3 = Identity(x)", "a 3 = Conv(x)"];
        let call = "y 12 = Concat(x, a, w, v) {axis=0}";
        check(&[&a[..], &[call]].concat(), "v in x, a at 12 B of y");
        check(&["input x 4", "a 2; b 2 = Split(x)", "y 4 = Conv(a, b)"], "");
    }

    #[test]
    fn parts_have_fixed_sizes_and_whole_bytes() {
        check(
            &["input x ? 3", "a ? 3 = Conv(x)", "b 1 3 = Conv(x)", "y ? 3 = Concat(a, b) {axis=0}"],
            "",
        );
        check(
            &[
                "input x u4 2",
                "a u4 2 = Conv(x)",
                "b u4 2 = Conv(x)",
                "y u4 4 = Concat(a, b) {axis=0}",
            ],
            "",
        );
    }

    #[test]
    fn pieces_are_runs_of_elements() {
        let a = ["input x 4 6", "a 4 6 = Conv(x)", "weight o i64 1 = 1", "weight t i64 1 = 3"];
        let of = |more: &[&str], wanted: &str| {
            check(&[&a[..], more, &["z 1 = Conv(x)"]].concat(), wanted);
        };
        of(&["p 2 6; q 2 6 = Split(a)"], "p at 0 B of a, q at 48 B of a");
        of(&["p 4 3; q 4 3 = Split(a) {axis=1}"], "");
        of(
            &["opset 11", "p 1 6; q 3 6 = Split(a) {split=[1, 3]}"],
            "p at 0 B of a, q at 24 B of a",
        );
        of(&["y 2 6 = Slice(a, o, t)"], "y at 24 B of a");
        of(&["y 4 2 = Slice(a, o, t, o)"], "");
        of(&["opset 9", "y 1 2 = Slice(a) {starts=[2, -3], ends=[3, -1]}"], "y at 60 B of a");
        of(&["opset 9", "y 4 6 = Slice(a) {starts=[-9], ends=[9]}"], "y at 0 B of a");
    }

    #[test]
    fn a_slice_with_steps_is_no_run() {
        let lists = [
            "weight s i64 1 = 3",
            "weight e i64 1 = 0",
            "weight o i64 1 = 0",
            "weight t i64 1 = -1",
        ];
        let call = ["input x 4", "a 4 = Conv(x)", "y 3 = Slice(a, s, e, o, t)", "z 1 = Conv(x)"];
        check(&[&lists[..], &call].concat(), "");
        let call =
            ["input x 4 2", "a 4 2 = Conv(x)", "y 1 2 = Slice(a, s, t, o, u)", "z 1 = Conv(x)"];
        let lists = [
            "weight s i64 1 = 2",
            "weight o i64 1 = 0",
            "weight t i64 1 = 1",
            "weight u i64 1 = -1",
        ];
        check(&[&lists[..], &call].concat(), "y at 16 B of a");
    }

    #[test]
    fn indices_that_follow_each_other_are_a_piece() {
        let of = |index: &str, call: &str, wanted: &str| {
            check(&["input x 4 6", "a 4 6 = Conv(x)", index, call, "z 1 = Conv(x)"], wanted);
        };
        of("weight i i64 = 2", "y 6 = Gather(a, i)", "y at 48 B of a");
        of("weight i i64 = -1", "y 6 = Gather(a, i)", "y at 72 B of a");
        of("weight i i64 2 = 1 2", "y 2 6 = Gather(a, i)", "y at 24 B of a");
        of("weight i i64 2 = 2 1", "y 2 6 = Gather(a, i)", "");
        of("weight i i64 = 1", "y 4 = Gather(a, i) {axis=1}", "");
    }

    #[test]
    fn what_moves_nothing_is_all_of_its_input() {
        let of = |call: &str, wanted: &str| {
            let x = "input x 1 4 6";
            check(&[x, "a 1 4 6 = Relu(x)", call, "z 1 = Conv(x)"], wanted);
        };
        of("y 4 1 6 = Transpose(a) {perm=[1, 0, 2]}", "a on x, y at 0 B of a");
        of("y 6 1 4 = Transpose(a) {perm=[2, 0, 1]}", "a on x");
        of("y 1 4 6 = Pad(a) {pads=[0, 0, 0, 0, 0, 0]}", "a on x, y at 0 B of a");
        of("y 1 4 6 = Pad(a) {pads=[0, 1, 0, 0, -1, 0]}", "a on x");
    }

    #[test]
    fn known_and_unknown_types_without_rule_share_nothing() {
        check(&["input x 6", "y 6 = Conv(x)", "z 6 = Mystery(y)"], "");
    }
}
