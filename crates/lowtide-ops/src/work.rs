//! How much operators calculate, by their shapes.
//!
//! ~~~text
//! Conv      an element of the result is as many products as a filter has weights
//! MatMul    ...                          as the inner dimension is long
//! LSTM      a step of one sequence meets each weight once
//! Softmax   a few calculations an element
//! ~~~
//! Biases start sums, so they count for nothing. What overflows is not known.

#![expect(clippy::unnecessary_wraps, reason = "all rules have one signature")]

use crate::call::Call;
use crate::expr::Expr;
use crate::fact::{Extent, Fact};
use crate::shapes::einsum::{Equation, axes};
use lowtide_core::operator::Work;

/// Calculations for an element of what is neither a copy nor one instruction, such as an exponential.
const SOME: u64 = 5;

fn flops(count: Option<u64>) -> Option<Work> {
    Some(Work { macs: 0, flops: count? })
}

fn macs(count: Option<u64>) -> Option<Work> {
    let macs = count?;
    Some(Work { macs, flops: macs.checked_mul(2)? })
}

fn size(fact: &Fact) -> Option<u64> {
    u64::try_from(fact.element_count()?).ok()
}

fn first(outputs: &[&Fact]) -> Option<u64> {
    size(outputs.first()?)
}

fn product(dims: &[Extent]) -> Option<u64> {
    let number = |dim: &Extent| u64::try_from(dim.as_ref().and_then(Expr::known)?).ok();
    dims.iter().try_fold(1_u64, |total, dim| total.checked_mul(number(dim)?))
}

fn times(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a?.checked_mul(b?)
}

fn plus(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a?.checked_add(b?)
}

/// Elements are moved, or made of nothing.
pub(crate) fn nothing(_: &Call<'_>, _: &[&Fact]) -> Option<Work> {
    Some(Work::default())
}

/// One calculation an element of the result.
pub(crate) fn one_each(_: &Call<'_>, outputs: &[&Fact]) -> Option<Work> {
    flops(first(outputs))
}

/// Several of them.
pub(crate) fn some_each(_: &Call<'_>, outputs: &[&Fact]) -> Option<Work> {
    flops(times(first(outputs), Some(SOME)))
}

/// One calculation an element of the first input.
pub(crate) fn one_each_read(call: &Call<'_>, _: &[&Fact]) -> Option<Work> {
    flops(size(call.input(0)))
}

/// One calculation an element of each window.
pub(crate) fn window(call: &Call<'_>, outputs: &[&Fact]) -> Option<Work> {
    let area = call
        .ints("kernel_shape")?
        .iter()
        .try_fold(1_u64, |area, &len| area.checked_mul(u64::try_from(len).ok()?));
    flops(times(first(outputs), area))
}

pub(crate) fn conv(call: &Call<'_>, outputs: &[&Fact]) -> Option<Work> {
    macs(times(first(outputs), product(call.dims(1)?.get(1..)?)))
}

pub(crate) fn qlinear_conv(call: &Call<'_>, outputs: &[&Fact]) -> Option<Work> {
    macs(times(first(outputs), product(call.dims(3)?.get(1..)?)))
}

/// Here an element of the input is what meets each weight of its channel.
pub(crate) fn conv_transpose(call: &Call<'_>, _: &[&Fact]) -> Option<Work> {
    macs(times(size(call.input(0)), product(call.dims(1)?.get(1..)?)))
}

pub(crate) fn matmul(call: &Call<'_>, outputs: &[&Fact]) -> Option<Work> {
    let dims = call.dims(0)?;
    let (is_turned, rank) = (call.int_or("transA", 0) != 0, dims.len());
    let at = if is_turned { rank.checked_sub(2)? } else { rank.checked_sub(1)? };
    // With the first axis moved behind the others, the inner one is the first.
    let at = if is_turned && call.flag("transBatchA") { 0 } else { at };
    macs(times(first(outputs), product(&dims[at..=at])))
}

pub(crate) fn gemm(call: &Call<'_>, outputs: &[&Fact]) -> Option<Work> {
    let dims = call.dims(0)?;
    let inner = if call.flag("transA") { dims.get(..1)? } else { dims.get(1..)? };
    macs(times(first(outputs), product(inner)))
}

/// All combinations of the letters meet, for each input after the first.
pub(crate) fn einsum(call: &Call<'_>, _: &[&Fact]) -> Option<Work> {
    let equation = Equation::read(call).ok()?;
    let axes = axes(call, &equation).ok()?;
    let letters: Vec<Extent> = axes.letters.into_values().collect();
    let all = times(product(&letters), product(&axes.dots?));
    let more = u64::try_from(equation.inputs.len().saturating_sub(1)).ok();
    if more == Some(0) { flops(all) } else { macs(times(all, more)) }
}

pub(crate) fn recurrent(call: &Call<'_>, _: &[&Fact]) -> Option<Work> {
    let steps = product(call.dims(0)?.get(..2)?);
    macs(times(steps, plus(size(call.input(1)), size(call.input(2)))))
}

/// Each query meets each key and each value: of a head folded or not.
pub(crate) fn attention(call: &Call<'_>, outputs: &[&Fact]) -> Option<Work> {
    let ([_, keys, _] | [_, _, keys, _]) = call.dims(1)? else { return None };
    let past = if call.op.domain.is_empty() { 4 } else { 6 };
    let own = product(std::slice::from_ref(keys));
    let before = if call.has(past) { product(&[call.dim(past, 2)]) } else { Some(0) };
    let both = plus(size(call.input(0)), first(outputs));
    macs(times(plus(own, before), both))
}

/// The same behind a product with the weight that makes queries, keys and values.
pub(crate) fn packed_attention(call: &Call<'_>, outputs: &[&Fact]) -> Option<Work> {
    let past = if call.op.kind == "QAttention" { 8 } else { 4 };
    let rows = product(call.dims(0)?.get(..2)?);
    let projected = times(rows, size(call.input(1)));
    let before = if call.has(past) { product(&[call.dim(past, 3)]) } else { Some(0) };
    let keys = plus(product(&[call.dim(0, 1)]), before);
    macs(plus(projected, times(keys, times(first(outputs), Some(2)))))
}

#[cfg(test)]
mod tests {
    use crate::testing::resolve_with;
    use crate::{Cost, ResolveConfig};

    fn last(lines: &[&str]) -> Option<Cost> {
        let resolved = resolve_with(lines, "", &ResolveConfig::default()).unwrap();
        resolved.costs.iter().next_back().copied().unwrap()
    }

    #[track_caller]
    fn check(lines: &[&str], macs: u64, flops: u64) {
        let cost = last(lines).unwrap();
        assert_eq!((cost.macs, cost.flops), (macs, flops));
    }

    #[test]
    fn products_count_twice() {
        check(&["input a 2 3 4", "input b 4 5", "y = MatMul(a, b)"], 120, 240);
        check(&["input a 4 3", "input b 5 4", "y = Gemm(a, b) {transA=1, transB=1}"], 60, 120);
        check(&["input a 3 4", "input b 4 5", "y = Einsum(a, b) {equation=ij,jk}"], 60, 120);
    }

    #[test]
    fn each_element_of_a_convolution_meets_a_filter() {
        let x = "input x 1 4 6 6";
        check(&[x, "weight w 8 2 3 3", "y = Conv(x, w) {group=2}"], 8 * 16 * 18, 16 * 16 * 18);
        let transposed = 4 * 36 * 8 * 9;
        check(&[x, "weight w 4 8 3 3", "y = ConvTranspose(x, w)"], transposed, 2 * transposed);
    }

    #[test]
    fn each_step_meets_each_weight() {
        let macs = 5 * 2 * (64 * 8 + 64 * 16);
        let lines = ["input x 5 2 8", "weight w 1 64 8", "weight r 1 64 16", "y = LSTM(x, w, r)"];
        check(&lines, macs, 2 * macs);
    }

    #[test]
    fn queries_meet_keys_and_values() {
        let lines = [
            "input q 1 5 8",
            "input k 1 7 8",
            "y = Attention(q, k, k) {q_num_heads=2, kv_num_heads=2}",
        ];
        check(&lines, 7 * (5 * 8 + 5 * 8), 2 * 7 * (5 * 8 + 5 * 8));
    }

    #[test]
    fn elements_and_windows_count_once() {
        check(&["input x 1 1 4 4", "y = MaxPool(x) {kernel_shape=[2, 2]}"], 0, 9 * 4);
        check(&["input x 4 4", "y = Add(x, x)"], 0, 16);
        check(&["input x 4 4", "y = Softmax(x)"], 0, 80);
        check(&["input x 4 4", "y = ReduceSum(x)"], 0, 16);
    }

    #[test]
    fn views_and_shapes_cost_nothing() {
        let view = ["input x 4 4", "a = Add(x, x)", "b = Flatten(a)", "y = Relu(b)"];
        assert_eq!(
            last(&view[..3]),
            Some(Cost { read_bytes: 0, written_bytes: 0, ..Cost::default() })
        );
        assert_eq!(last(&["input x n 4", "y = Shape(x)"]), Some(Cost::default()));
        let moved = Cost { read_bytes: 64, written_bytes: 64, ..Cost::default() };
        assert_eq!(last(&["input x 4 4", "y = Transpose(x)"]), Some(moved));
    }

    #[test]
    fn what_is_not_known_has_no_cost() {
        assert_eq!(last(&["input x n 4", "y = Relu(x)"]), None);
        assert_eq!(last(&["input x 4", "y 4 = Mystery(x)"]), None);
    }
}
