//! Rules of operators that move elements or make them. Elements of small tensors move along.
//!
//! ~~~text
//! x [batch, 197, 768] ─ Shape ─ [batch, 197, 768] ─ Slice ─ [batch] ┐
//!                                                          [197, -1] ┴ Concat ─ [batch, 197, -1] ─ Reshape
//! ~~~

use super::elementwise::{broadcast, source};
use super::{elements, int, known, like_first, of_rank, product};
use crate::call::{Call, Facts, Misfit, NotKnown, axes, axis, shape_text};
use crate::expr::Expr;
use crate::fact::{Element, Extent, Fact, MAX_ELEMENTS, Scalar, count};
use lowtide_core::{DType, Value};

pub(crate) fn shape(call: &Call<'_>) -> Facts {
    let Some(dims) = call.dims(0) else { return Ok(vec![of_rank(Some(DType::I64), Some(1))]) };
    let range = clamped(call.int_or("start", 0), call.int("end"), dims.len());
    let dims = &dims[range];
    let fact = Fact::new(Some(DType::I64), Some(vec![known(dims.len())]));
    Ok(vec![fact.with(Some(dims.iter().cloned().map(int).collect()))])
}

/// `start..end`, which may count from the end, within `0..len`.
fn clamped(start: i64, end: Option<i64>, len: usize) -> std::ops::Range<usize> {
    let signed = i64::try_from(len).expect("ranks are small");
    let from_start = |at: i64| if at < 0 { at.saturating_add(signed) } else { at };
    let index = |at: i64| usize::try_from(from_start(at).clamp(0, signed)).expect("clamped");
    let (start, end) = (index(start), end.map_or(len, index));
    start..end.max(start)
}

pub(crate) fn size(call: &Call<'_>) -> Facts {
    let total = call.dims(0).and_then(product);
    Ok(vec![Fact::of_dims(DType::I64, &[]).with(Some(vec![int(total)]))])
}

pub(crate) fn identity(call: &Call<'_>) -> Facts {
    Ok(vec![call.input(0).clone()])
}

/// `Dropout`: what goes in, and a mask.
pub(crate) fn dropout(call: &Call<'_>) -> Facts {
    let mut facts = like_first(call)?;
    // Before the tenth version the mask had the type of the data.
    let dtype = if call.opset < 10 { call.dtype(0) } else { Some(DType::Bool) };
    facts.push(Fact::new(dtype, call.input(0).dims.clone()));
    Ok(facts)
}

pub(crate) fn reshape(call: &Call<'_>) -> Facts {
    let dtype = call.dtype(0);
    let wanted = match call.ints("shape") {
        Some(dims) => Some(dims.iter().map(|&dim| Some(Expr::Known(dim))).collect()),
        None => call.exprs(1),
    };
    let Some(wanted): Option<Vec<Extent>> = wanted else {
        let rank = call.input(1).known_dims().and_then(|dims| usize::try_from(*dims.first()?).ok());
        return Ok(vec![of_rank(dtype, rank.filter(|&rank| rank <= 64))]);
    };
    let dims = reshaped(call, &wanted)?;
    Ok(vec![Fact::new(dtype, Some(dims)).with(call.input(0).elements.clone())])
}

/// Zeros are copied from the input, -1 is what makes the number of elements right.
fn reshaped(call: &Call<'_>, wanted: &[Extent]) -> Result<Vec<Extent>, Misfit> {
    let number = |dim: &Extent| dim.as_ref().and_then(Expr::known);
    let copies_zeros = call.int_or("allowzero", 0) == 0;
    let mut dims = Vec::with_capacity(wanted.len());
    let mut rest = None;
    for (at, dim) in wanted.iter().enumerate() {
        dims.push(match number(dim) {
            Some(0) if copies_zeros => call.dims(0).and_then(|dims| dims.get(at)?.clone()),
            Some(-1) => {
                if rest.replace(at).is_some() {
                    return Err(Misfit(format!("shape {} has two -1", shape_text(wanted))));
                }
                None
            }
            Some(value) if value < -1 => {
                return Err(Misfit(format!("shape {} is negative", shape_text(wanted))));
            }
            _ => dim.clone(),
        });
    }
    let total = call.dims(0).and_then(product);
    if let Some(at) = rest {
        let others: Vec<Extent> =
            dims.iter().enumerate().filter(|row| row.0 != at).map(|row| row.1.clone()).collect();
        let others = product(&others);
        dims[at] =
            total.as_ref().zip(others).and_then(|(total, others)| total.div_exactly(&others));
    }
    check_count(call, total, &dims)?;
    Ok(dims)
}

fn check_count(call: &Call<'_>, total: Extent, dims: &[Extent]) -> Result<(), Misfit> {
    let known = |value: Extent| value.and_then(|value| value.known());
    // A name may stand for -1 in a shape that is calculated, so only numbers are compared.
    let all_known = dims.iter().all(|dim| dim.as_ref().is_some_and(|dim| dim.known().is_some()));
    match (known(total), known(product(dims)).filter(|_| all_known)) {
        (Some(from), Some(to)) if from != to => {
            let from = shape_text(call.dims(0).unwrap_or_default());
            Err(Misfit(format!("{from} cannot become {}", shape_text(dims))))
        }
        _ => Ok(()),
    }
}

pub(crate) fn flatten(call: &Call<'_>) -> Facts {
    let Some(dims) = call.dims(0) else { return Ok(vec![of_rank(call.dtype(0), Some(2))]) };
    let at = call.int_or("axis", 1);
    let is_end = usize::try_from(at).is_ok_and(|at| at == dims.len());
    let at = if is_end { dims.len() } else { axis(at, dims.len())? };
    let dims = vec![product(&dims[..at]), product(&dims[at..])];
    Ok(vec![Fact::new(call.dtype(0), Some(dims)).with(call.input(0).elements.clone())])
}

pub(crate) fn squeeze(call: &Call<'_>) -> Facts {
    let dtype = call.dtype(0);
    let Some(dims) = call.dims(0) else { return Ok(vec![Fact::of_type(dtype)]) };
    let is_one = |at: usize| dims[at].as_ref().and_then(Expr::known) == Some(1);
    let removed = match call.ints_either("axes", 1) {
        Err(NotKnown) => return Ok(vec![Fact::of_type(dtype)]),
        // Runtimes differ: no axis is removed, or all that can be.
        Ok(Some(list)) if list.is_empty() => return Ok(vec![Fact::of_type(dtype)]),
        Ok(Some(list)) => axes(&list, dims.len())?,
        Ok(None) if dims.iter().any(|dim| dim.as_ref().and_then(Expr::known).is_none()) => {
            return Ok(vec![Fact::of_type(dtype)]);
        }
        Ok(None) => (0..dims.len()).filter(|&at| is_one(at)).collect(),
    };
    for &at in &removed {
        if dims[at].as_ref().and_then(Expr::known).is_some_and(|dim| dim != 1) {
            return Err(Misfit(format!("axis {at} of {} is not 1", shape_text(dims))));
        }
    }
    let kept = (0..dims.len()).filter(|at| removed.binary_search(at).is_err());
    let dims = kept.map(|at| dims[at].clone()).collect();
    Ok(vec![Fact::new(dtype, Some(dims)).with(call.input(0).elements.clone())])
}

pub(crate) fn unsqueeze(call: &Call<'_>) -> Facts {
    let dtype = call.dtype(0);
    let (Some(dims), Ok(Some(list))) = (call.dims(0), call.ints_either("axes", 1)) else {
        return Ok(vec![Fact::of_type(dtype)]);
    };
    let rank = dims.len() + list.len();
    let added = axes(&list, rank)?;
    let mut old = dims.iter().cloned();
    let dims = (0..rank).map(|at| match added.binary_search(&at) {
        Ok(_) => Some(Expr::ONE),
        Err(_) => old.next().expect("one old dimension for each place that is not new"),
    });
    let fact = Fact::new(dtype, Some(dims.collect()));
    Ok(vec![fact.with(call.input(0).elements.clone())])
}

pub(crate) fn transpose(call: &Call<'_>) -> Facts {
    let Fact { dtype, dims, .. } = call.input(0);
    let Some(dims) = dims else { return Ok(vec![Fact::of_type(*dtype)]) };
    let order = match call.ints("perm") {
        Some(list) => list.iter().map(|&at| axis(at, dims.len())).collect::<Result<_, _>>()?,
        None => (0..dims.len()).rev().collect::<Vec<_>>(),
    };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted != (0..dims.len()).collect::<Vec<_>>() {
        return Err(Misfit(format!("perm {order:?} does not order {} axes", dims.len())));
    }
    let fact = Fact::new(*dtype, Some(order.iter().map(|&at| dims[at].clone()).collect()));
    let elements = elements::transpose(call, &order);
    Ok(vec![fact.with(elements)])
}

pub(crate) fn concat(call: &Call<'_>) -> Facts {
    let inputs = || (0..call.inputs.len()).filter(|&at| call.has(at));
    let dtype = inputs().find_map(|at| call.dtype(at));
    let Some(all) = inputs().map(|at| call.dims(at)).collect::<Option<Vec<_>>>() else {
        let rank = inputs().find_map(|at| call.rank(at));
        return Ok(vec![of_rank(dtype, rank)]);
    };
    let Some((first, rest)) = all.split_first() else { return Ok(Vec::new()) };
    let at = axis(call.int_or("axis", 1), first.len())?;
    let mut dims = first.to_vec();
    for other in rest {
        if other.len() != dims.len() {
            let (a, b) = (shape_text(first), shape_text(other));
            return Err(Misfit(format!("{a} and {b} have different ranks")));
        }
        for (index, dim) in dims.iter_mut().enumerate() {
            *dim = if index == at {
                dim.as_ref().zip(other[at].as_ref()).and_then(|(a, b)| a.add(b))
            } else {
                let what = format!("axis {index} of the inputs");
                crate::call::equal(dim, &other[index], &what)?
            };
        }
    }
    let fact = Fact::new(dtype, Some(dims));
    let elements = elements::concat(call, &fact, at);
    Ok(vec![fact.with(elements)])
}

pub(crate) fn split(call: &Call<'_>) -> Facts {
    let dtype = call.dtype(0);
    let outputs = call.output_count();
    let Some(dims) = call.dims(0) else { return Ok(vec![Fact::of_type(dtype); outputs]) };
    let at = axis(call.int_or("axis", 0), dims.len())?;
    let sizes: Vec<Extent> = match call.ints_either("split", 1) {
        Err(NotKnown) => vec![None; outputs],
        Ok(Some(list)) => list.iter().map(|&size| Some(Expr::Known(size))).collect(),
        Ok(None) => even_split(dims[at].as_ref(), outputs),
    };
    let total = sizes.iter().cloned().try_fold(Expr::ZERO, |sum, size| sum.add(&size?));
    crate::call::equal(&total, &dims[at], "the sum of the parts and the axis")?;
    let part = |size: Extent| {
        let mut dims = dims.to_vec();
        dims[at] = size;
        Fact::new(dtype, Some(dims))
    };
    let mut facts: Vec<Fact> = sizes.into_iter().map(part).collect();
    split_elements(call, &mut facts);
    Ok(facts)
}

/// Equal parts, the last one perhaps smaller.
fn even_split(len: Option<&Expr>, outputs: usize) -> Vec<Extent> {
    let count = known(outputs.max(1));
    let part = len.zip(count).and_then(|(len, count)| {
        if len.known().is_some() { len.div_up(&count) } else { len.div_exactly(&count) }
    });
    let rest = |at: usize| len?.sub(&part.as_ref()?.mul(&known(at)?)?)?.larger(&Expr::ZERO);
    let size = |at: usize| if at + 1 == outputs { rest(at) } else { part.clone() };
    (0..outputs).map(size).collect()
}

fn split_elements(call: &Call<'_>, facts: &mut [Fact]) {
    let (Some(elements), Some(1)) = (call.elements(0), call.rank(0)) else { return };
    let mut from = 0_usize;
    for fact in facts {
        let Some(count) = fact.element_count() else { return };
        let Some(end) = from.checked_add(count) else { return };
        let part = elements.get(from..end).map(<[Element]>::to_vec);
        *fact = fact.clone().with(part);
        from = end;
    }
}

pub(crate) fn gather(call: &Call<'_>) -> Facts {
    let dtype = call.dtype(0);
    let (Some(data), Some(indices)) = (call.dims(0), call.dims(1)) else {
        let rank = call.rank(0).zip(call.rank(1)).map(|(a, b)| (a + b).saturating_sub(1));
        return Ok(vec![of_rank(dtype, rank)]);
    };
    let at = axis(call.int_or("axis", 0), data.len())?;
    let dims = [&data[..at], indices, &data[at + 1..]].concat();
    Ok(vec![Fact::new(dtype, Some(dims)).with(elements::gather(call, at))])
}

pub(crate) fn expand(call: &Call<'_>) -> Facts {
    let dtype = call.dtype(0);
    let (Some(dims), Some(wanted)) = (call.dims(0), call.exprs(1)) else {
        let rank = call.input(1).known_dims().and_then(|dims| usize::try_from(*dims.first()?).ok());
        let rank = rank.zip(call.rank(0)).map(|(a, b)| a.max(b));
        return Ok(vec![of_rank(dtype, rank.filter(|&rank| rank <= 64))]);
    };
    let fact = Fact::new(dtype, Some(broadcast(dims, &wanted)?));
    let elements = repeated(call, &fact);
    Ok(vec![fact.with(elements)])
}

fn repeated(call: &Call<'_>, to: &Fact) -> Option<Vec<Element>> {
    let (elements, from, to) = (call.elements(0)?, call.input(0).known_dims()?, to.known_dims()?);
    let total = count(&to).filter(|&total| total <= MAX_ELEMENTS)?;
    (from.len() <= to.len()).then_some(())?;
    Some((0..total).map(|index| elements[source(index, &to, &from)].clone()).collect())
}

pub(crate) fn tile(call: &Call<'_>) -> Facts {
    let dtype = call.dtype(0);
    let Some(dims) = call.dims(0) else { return Ok(vec![Fact::of_type(dtype)]) };
    let Some(times) = call.exprs(1) else { return Ok(vec![of_rank(dtype, Some(dims.len()))]) };
    if times.len() != dims.len() {
        return Err(Misfit(format!("{} repeats for {} axes", times.len(), dims.len())));
    }
    let grown = dims.iter().zip(&times).map(|(dim, times)| dim.as_ref()?.mul(times.as_ref()?));
    Ok(vec![Fact::new(dtype, Some(grown.collect()))])
}

pub(crate) fn constant_of_shape(call: &Call<'_>) -> Facts {
    let value = match call.op.attribute("value") {
        Some(Value::Tensor(value)) => Some(value),
        _ => None,
    };
    let dtype = value.map_or(DType::F32, |value| value.dtype);
    let Some(dims) = call.exprs(0) else {
        let rank = call.input(0).known_dims().and_then(|dims| usize::try_from(*dims.first()?).ok());
        return Ok(vec![of_rank(Some(dtype), rank.filter(|&rank| rank <= 64))]);
    };
    let fact = Fact::new(Some(dtype), Some(dims));
    let element = match value {
        None => Some(Some(Scalar::Float(0.0))),
        Some(value) => value.data.as_ref().and_then(|data| {
            crate::fact::elements_of(dtype, &[1], data).and_then(|mut one| one.pop())
        }),
    };
    let total = fact.element_count().filter(|&total| total <= MAX_ELEMENTS);
    let elements = element.zip(total).map(|(element, total)| vec![element; total]);
    Ok(vec![fact.with(elements)])
}

pub(crate) fn range(call: &Call<'_>) -> Facts {
    let dtype = call.dtype(0).or(call.dtype(1));
    let scalar = |at: usize| call.elements(at)?.first()?.clone();
    let parts = scalar(0).zip(scalar(1)).zip(scalar(2));
    let Some(((start, limit), step)) = parts else { return Ok(vec![of_rank(dtype, Some(1))]) };
    let len = match (start.int(), limit.int(), step.int()) {
        (Some(start), Some(limit), Some(step)) => {
            let distance = limit.sub(start);
            let len = distance.and_then(|distance| distance.div_up(step));
            len.and_then(|len| len.larger(&Expr::ZERO))
        }
        _ => float_range(&start, &limit, &step),
    };
    let fact = Fact::new(dtype, Some(vec![len]));
    let total = fact.element_count().filter(|&total| total <= MAX_ELEMENTS);
    let elements = total.and_then(|total| {
        let (start, step) = (start.int()?, step.int()?);
        let at = |index: usize| int(known(index).and_then(|i| start.add(&step.mul(&i)?)));
        Some((0..total).map(at).collect())
    });
    Ok(vec![fact.with(elements)])
}

fn float_range(start: &Scalar, limit: &Scalar, step: &Scalar) -> Extent {
    let len = ((limit.number()? - start.number()?) / step.number()?).ceil().max(0.0);
    #[expect(clippy::cast_possible_truncation, reason = "the value is in range")]
    let whole = len as i64;
    (len < 2_f64.powi(53)).then_some(Expr::Known(whole))
}

#[cfg(test)]
mod tests {
    use crate::testing::resolve_with;

    #[test]
    fn parts_whose_sum_passes_all_numbers_are_too_large() {
        let most = "9223372036854775807";
        let lines = [
            "input x 2".to_owned(),
            "s i64 = Shape(x)".to_owned(),
            format!("a; b; c = Split(s) {{split=[{most}, {most}, {most}]}}"),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let error = resolve_with(&lines, "", &crate::ResolveConfig::default()).unwrap_err();
        assert!(error.to_string().contains("takes more than"), "{error}");
    }
}
