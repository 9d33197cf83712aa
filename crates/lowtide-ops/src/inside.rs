//! What an operator only moves: which inputs may lie inside its output, which outputs inside its input, and where.
//!
//! ~~~text
//! Concat axis 0     a [2, 3] ──┐  y [3, 3]: a lies at byte 0 of y, b at byte 24, one behind the other
//!                   b [1, 3] ──┘
//! Concat axis 1     rows of a and b take turns in y: neither lies there as a whole
//! Split, Slice, Gather of what is contiguous     the same the other way round
//! Transpose of unit dimensions, Expand, Tile and Pad that change nothing     all of the input
//! ~~~
//! A rule answers only if all shapes, and the values that it depends on, are numbers before the run, and elements take
//! whole bytes.

use crate::call::{Call, axis};
use crate::fact::Fact;
use lowtide_core::operator::Inside;
use lowtide_core::{Bytes, DType};

/// From a call and what is known of its outputs to what lies inside what; `None` if that cannot be told.
pub(crate) type InsideRule = fn(&Call<'_>, &[Option<&Fact>]) -> Option<Vec<Inside>>;

/// The shape of a tensor in numbers.
fn dims(fact: &Fact) -> Option<Vec<u64>> {
    fact.known_dims()?.into_iter().map(|dim| u64::try_from(dim).ok()).collect()
}

fn product(dims: &[u64]) -> Option<u64> {
    dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim))
}

/// The bytes of an element of input 0.
fn width(call: &Call<'_>) -> Option<u64> {
    let bits = call.dtype(0).and_then(DType::bits)?;
    (bits > 0 && bits % 8 == 0).then_some(u64::from(bits) / 8)
}

/// Bytes of one place on an axis of a tensor that nothing but unit dimensions stands before.
fn below(dims: &[u64], at: usize, width: u64) -> Option<u64> {
    (product(&dims[..at])? == 1).then_some(())?;
    product(&dims[at + 1..])?.checked_mul(width)
}

/// All of output 0 lies in input 0, from a byte on.
fn piece(offset: u64) -> Vec<Inside> {
    vec![Inside::Piece { output: 0, offset: Bytes(offset) }]
}

fn first_output(outputs: &[Option<&Fact>]) -> Option<Vec<u64>> {
    dims(outputs.first().copied().flatten()?)
}

/// The inputs of `Concat`, one behind the other.
pub(crate) fn concat(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Option<Vec<Inside>> {
    let whole = first_output(outputs)?;
    // Before version 4 the axis had a default.
    let at = axis(call.int_or("axis", 1), whole.len()).ok()?;
    let below = below(&whole, at, width(call)?)?;
    let (mut parts, mut offset) = (Vec::new(), 0_u64);
    for input in 0..call.inputs.len() {
        parts.push(Inside::Part { input, offset: Bytes(offset) });
        let len = *dims(call.input(input))?.get(at)?;
        offset = offset.checked_add(len.checked_mul(below)?)?;
    }
    Some(parts)
}

/// The outputs of `Split`, one behind the other; behind one that is not wanted, no more is told.
pub(crate) fn split(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Option<Vec<Inside>> {
    let base = dims(call.input(0))?;
    let at = axis(call.int_or("axis", 0), base.len()).ok()?;
    let below = below(&base, at, width(call)?)?;
    let (mut pieces, mut offset) = (Vec::new(), 0_u64);
    for (output, fact) in outputs.iter().enumerate() {
        let Some(fact) = fact else { break };
        pieces.push(Inside::Piece { output, offset: Bytes(offset) });
        let len = *dims(fact)?.get(at)?;
        offset = offset.checked_add(len.checked_mul(below)?)?;
    }
    Some(pieces)
}

/// What `Slice` takes, if that is one run of elements.
pub(crate) fn slice(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Option<Vec<Inside>> {
    let (base, taken) = (dims(call.input(0))?, first_output(outputs)?);
    let starts = call.ints("starts").map(<[i64]>::to_vec).or_else(|| call.ints_of(1))?;
    let axes = call.ints_either("axes", 3).ok()?;
    let axes = axes.unwrap_or_else(|| (0_i64..).take(starts.len()).collect());
    let steps = call.ints_either("steps", 4).ok()?.unwrap_or_else(|| vec![1; starts.len()]);
    let is_even = [axes.len(), steps.len()] == [starts.len(); 2] && base.len() == taken.len();
    (is_even && !taken.contains(&0)).then_some(())?;
    // Before this axis one place is taken of each, behind it all of them.
    let run = taken.iter().position(|&len| len != 1).unwrap_or(taken.len());
    (taken.get(run + 1..) == base.get(run + 1..)).then_some(())?;
    let mut first = vec![0_u64; base.len()];
    for ((&start, &at), &step) in starts.iter().zip(&axes).zip(&steps) {
        let at = axis(at, base.len()).ok()?;
        (at < run || step == 1).then_some(())?;
        first[at] = place(start, base[at])?;
    }
    let mut offset = 0_u64;
    for (&len, &first) in base.iter().zip(&first) {
        offset = offset.checked_mul(len)?.checked_add(first)?;
    }
    Some(piece(offset.checked_mul(width(call)?)?))
}

/// A place on an axis, which may count from the end and lie beyond it.
fn place(at: i64, len: u64) -> Option<u64> {
    let len = i64::try_from(len).ok()?;
    let from_start = if at < 0 { at.saturating_add(len) } else { at };
    u64::try_from(from_start.clamp(0, (len - 1).max(0))).ok()
}

/// What `Gather` takes, if its indices follow each other.
pub(crate) fn gather(call: &Call<'_>, _: &[Option<&Fact>]) -> Option<Vec<Inside>> {
    let base = dims(call.input(0))?;
    let at = axis(call.int_or("axis", 0), base.len()).ok()?;
    let below = below(&base, at, width(call)?)?;
    let len = i64::try_from(base[at]).ok()?;
    let from_start = |index: i64| if index < 0 { index.saturating_add(len) } else { index };
    let indices: Vec<i64> = call.ints_of(1)?.into_iter().map(from_start).collect();
    let follow = indices.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
    let is_inside = indices.iter().all(|index| (0..len).contains(index));
    let first = u64::try_from(*indices.first()?).ok()?;
    let offset = first.checked_mul(below)?;
    (follow && is_inside).then(|| piece(offset))
}

/// `Transpose` that leaves the order of all dimensions but those of 1.
pub(crate) fn transpose(call: &Call<'_>, _: &[Option<&Fact>]) -> Option<Vec<Inside>> {
    let base = dims(call.input(0))?;
    let reversed = || (0_i64..).take(base.len()).collect::<Vec<_>>().into_iter().rev().collect();
    let order = call.ints("perm").map_or_else(reversed, <[i64]>::to_vec);
    let order: Vec<usize> =
        order.iter().map(|&one| usize::try_from(one).ok()).collect::<Option<_>>()?;
    let is_moved = |at: &usize| base.get(*at).is_none_or(|&len| len != 1);
    let keeps_its_order = order.into_iter().filter(is_moved).eq((0..base.len()).filter(is_moved));
    width(call)?;
    keeps_its_order.then(|| piece(0))
}

/// `Expand` and `Tile` that repeat nothing.
pub(crate) fn repeat(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Option<Vec<Inside>> {
    let (base, whole) = (dims(call.input(0))?, first_output(outputs)?);
    width(call)?;
    (product(&base)? == product(&whole)?).then(|| piece(0))
}

/// `Pad` by nothing.
pub(crate) fn pad(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Option<Vec<Inside>> {
    let pads = call.ints_either("pads", 1).ok()??;
    if pads.iter().all(|&pad| pad == 0) { repeat(call, outputs) } else { None }
}
