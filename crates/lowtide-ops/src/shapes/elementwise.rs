//! Rules of operators that work element by element, and the arithmetic on elements that shapes hide behind.
//!
//! ~~~text
//! a [batch, 1, 4]                 dimensions from the right; 1 is broadcast
//! b       [3, 4]   ──>  y [batch, 3, 4]
//! ~~~
//! Of two dimensions with names that are not the same, one could be 1: the result is that of broadcasting them.

use crate::call::{Call, Facts, Misfit, shape_text};
use crate::expr::Expr;
use crate::fact::{Element, Extent, Fact, MAX_ELEMENTS, Scalar, count};
use lowtide_core::DType;

/// The shape of two that are broadcast to each other.
pub(crate) fn broadcast(a: &[Extent], b: &[Extent]) -> Result<Vec<Extent>, Misfit> {
    let rank = a.len().max(b.len());
    let from_right = |dims: &[Extent], at: usize| -> Extent {
        let at = (at + dims.len()).checked_sub(rank);
        at.map_or(Some(Expr::ONE), |at| dims[at].clone())
    };
    let mut dims = Vec::with_capacity(rank);
    for at in 0..rank {
        let (x, y) = (from_right(a, at), from_right(b, at));
        let number = |dim: &Extent| dim.as_ref().and_then(Expr::known);
        if let (Some(p), Some(q)) = (number(&x), number(&y))
            && p != q
            && p != 1
            && q != 1
        {
            let (a, b) = (shape_text(a), shape_text(b));
            return Err(Misfit(format!("{a} and {b} cannot be broadcast to each other")));
        }
        dims.push(match (x, y) {
            (Some(x), Some(y)) => x.broadcast(&y),
            // A number other than 1 is the result, whatever the other one is.
            (known, None) | (None, known) => {
                known.filter(|dim| dim.known().is_some_and(|dim| dim != 1))
            }
        });
    }
    Ok(dims)
}

/// The shape of all inputs broadcast to each other.
pub(crate) fn broadcast_all(call: &Call<'_>) -> Result<Option<Vec<Extent>>, Misfit> {
    let mut result: Option<Vec<Extent>> = Some(Vec::new());
    for at in (0..call.inputs.len()).filter(|&at| call.has(at)) {
        result = match (result, call.dims(at)) {
            (Some(a), Some(b)) => Some(broadcast(&a, b)?),
            _ => None,
        };
    }
    Ok(result)
}

/// Calculates an element from one of each input.
type Calculate = fn(&[&Scalar]) -> Element;

/// The elements of a result of shape `dims`, calculated from those of the inputs.
fn calculate(call: &Call<'_>, dims: Option<&[Extent]>, with: Calculate) -> Option<Vec<Element>> {
    let dims: Vec<i64> = dims?.iter().map(|dim| dim.as_ref()?.known()).collect::<Option<_>>()?;
    let total = count(&dims).filter(|&total| total <= MAX_ELEMENTS)?;
    let inputs: Vec<(&[Element], Vec<i64>)> = (0..call.inputs.len())
        .filter(|&at| call.has(at))
        .map(|at| Some((call.elements(at)?, call.input(at).known_dims()?)))
        .collect::<Option<_>>()?;
    let element = |index: usize| -> Element {
        let values: Vec<&Scalar> = inputs
            .iter()
            .map(|(elements, from)| elements[source(index, &dims, from)].as_ref())
            .collect::<Option<_>>()?;
        with(&values)
    };
    Some((0..total).map(element).collect())
}

/// The element of a tensor of shape `from` that is broadcast to element `index` of shape `to`.
pub(crate) fn source(index: usize, to: &[i64], from: &[i64]) -> usize {
    let (mut rest, mut at, mut stride) = (index, 0, 1);
    for (axis, &dim) in to.iter().enumerate().rev() {
        let dim = usize::try_from(dim).expect("shapes are not negative").max(1);
        let position = rest % dim;
        rest /= dim;
        if let Some(own) = (axis + from.len()).checked_sub(to.len()) {
            let own = usize::try_from(from[own]).expect("shapes are not negative");
            if own != 1 {
                at += position * stride;
            }
            stride *= own;
        }
    }
    at
}

/// A rule of inputs that are broadcast: type of the result, and how elements are calculated.
fn broadcasting(call: &Call<'_>, dtype: Option<DType>, with: Option<Calculate>) -> Facts {
    let dims = broadcast_all(call)?;
    let elements = with.and_then(|with| calculate(call, dims.as_deref(), with));
    Ok(vec![Fact::new(dtype, dims).with(elements)])
}

fn first_type(call: &Call<'_>) -> Option<DType> {
    (0..call.inputs.len()).find_map(|at| call.dtype(at))
}

/// Two values, both integers or both numbers.
enum Two<'a> {
    Ints(&'a Expr, &'a Expr),
    Floats(f64, f64),
}

fn two<'a>(values: &[&'a Scalar]) -> Option<Two<'a>> {
    let &[a, b] = values else { return None };
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => Some(Two::Ints(a, b)),
        (a, b) => Some(Two::Floats(a.number()?, b.number()?)),
    }
}

pub(super) fn arithmetic(
    values: &[&Scalar],
    ints: fn(&Expr, &Expr) -> Option<Expr>,
    floats: fn(f64, f64) -> f64,
) -> Element {
    match two(values)? {
        Two::Ints(a, b) => ints(a, b).map(Scalar::Int),
        Two::Floats(a, b) => Some(Scalar::Float(floats(a, b))),
    }
}

fn truth(value: bool) -> Scalar {
    Scalar::Int(Expr::Known(value.into()))
}

/// Compares two values without names; of the same expression it is known that it equals itself.
fn comparison(values: &[&Scalar], holds: fn(std::cmp::Ordering) -> bool) -> Element {
    let order = match two(values)? {
        Two::Ints(a, b) if a == b => std::cmp::Ordering::Equal,
        Two::Ints(a, b) if a.is_at_least(&b.add(&Expr::ONE)?) => std::cmp::Ordering::Greater,
        Two::Ints(a, b) if b.is_at_least(&a.add(&Expr::ONE)?) => std::cmp::Ordering::Less,
        Two::Ints(..) => return None,
        Two::Floats(a, b) => a.partial_cmp(&b)?,
    };
    Some(truth(holds(order)))
}

/// Rules of binary arithmetic, by name.
macro_rules! binary {
    ($($name:ident: $ints:expr, $floats:expr;)*) => {$(
        pub(crate) fn $name(call: &Call<'_>) -> Facts {
            broadcasting(call, first_type(call), Some(|values| arithmetic(values, $ints, $floats)))
        }
    )*};
}

binary! {
    add: Expr::add, |a, b| a + b;
    sub: Expr::sub, |a, b| a - b;
    mul: Expr::mul, |a, b| a * b;
    modulo: Expr::rem, |a, b| a % b;
    pow: power, f64::powf;
}

/// Division; names that were cast to floating point are divided only where nothing is lost.
pub(crate) fn div(call: &Call<'_>) -> Facts {
    let dtype = first_type(call);
    let is_float = matches!(dtype, None | Some(DType::F16 | DType::BF16 | DType::F32 | DType::F64));
    let exactly: Calculate = |values| arithmetic(values, Expr::div_exactly, |a, b| a / b);
    let truncating: Calculate = |values| arithmetic(values, truncating_div, |a, b| a / b);
    broadcasting(call, dtype, Some(if is_float { exactly } else { truncating }))
}

/// Integer division rounds toward zero; for what is not negative that is down.
fn truncating_div(a: &Expr, b: &Expr) -> Option<Expr> {
    if let (Some(a), Some(b)) = (a.known(), b.known()) {
        return a.checked_div(b).map(Expr::Known);
    }
    let are_natural = a.is_at_least(&Expr::ZERO) && b.is_at_least(&Expr::ZERO);
    if are_natural { a.div(b) } else { a.div_exactly(b) }
}

fn power(a: &Expr, b: &Expr) -> Option<Expr> {
    let exponent = u32::try_from(b.known()?).ok()?;
    a.known()?.checked_pow(exponent).map(Expr::Known)
}

/// Rules of comparisons, by name.
macro_rules! comparing {
    ($($name:ident: $holds:expr;)*) => {$(
        pub(crate) fn $name(call: &Call<'_>) -> Facts {
            broadcasting(call, Some(DType::Bool), Some(|values| comparison(values, $holds)))
        }
    )*};
}

comparing! {
    equal: std::cmp::Ordering::is_eq;
    less: std::cmp::Ordering::is_lt;
    less_or_equal: std::cmp::Ordering::is_le;
    greater: std::cmp::Ordering::is_gt;
    greater_or_equal: std::cmp::Ordering::is_ge;
}

fn bools(values: &[&Scalar]) -> Option<Vec<bool>> {
    values.iter().map(|value| Some(value.int()?.known()? != 0)).collect()
}

pub(crate) fn and(call: &Call<'_>) -> Facts {
    let with: Calculate = |values| Some(truth(bools(values)?.iter().all(|&value| value)));
    broadcasting(call, Some(DType::Bool), Some(with))
}

pub(crate) fn or(call: &Call<'_>) -> Facts {
    let with: Calculate = |values| Some(truth(bools(values)?.iter().any(|&value| value)));
    broadcasting(call, Some(DType::Bool), Some(with))
}

pub(crate) fn xor(call: &Call<'_>) -> Facts {
    let with: Calculate = |values| {
        let count = bools(values)?.iter().filter(|&&value| value).count();
        Some(truth(count % 2 == 1))
    };
    broadcasting(call, Some(DType::Bool), Some(with))
}

pub(crate) fn not(call: &Call<'_>) -> Facts {
    let with: Calculate = |values| Some(truth(!bools(values)?.first().copied()?));
    let only = Call { inputs: call.inputs.get(..1).unwrap_or_default(), ..*call };
    broadcasting(&only, Some(DType::Bool), Some(with))
}

/// Inputs of one type broadcast to each other; their elements are not followed.
pub(crate) fn same_type(call: &Call<'_>) -> Facts {
    broadcasting(call, first_type(call), None)
}

/// A truth value for each element of the first input.
pub(crate) fn predicate(call: &Call<'_>) -> Facts {
    Ok(vec![Fact::new(Some(DType::Bool), call.input(0).dims.clone())])
}

pub(crate) fn max(call: &Call<'_>) -> Facts {
    broadcasting(call, first_type(call), Some(|values| fold(values, Expr::larger, f64::max)))
}

pub(crate) fn min(call: &Call<'_>) -> Facts {
    broadcasting(call, first_type(call), Some(|values| fold(values, Expr::smaller, f64::min)))
}

pub(crate) fn sum(call: &Call<'_>) -> Facts {
    broadcasting(call, first_type(call), Some(|values| fold(values, Expr::add, |a, b| a + b)))
}

/// The elements folded into one.
pub(super) fn fold(
    values: &[&Scalar],
    ints: fn(&Expr, &Expr) -> Option<Expr>,
    floats: fn(f64, f64) -> f64,
) -> Element {
    let (first, rest) = values.split_first()?;
    rest.iter().try_fold((*first).clone(), |a, b| arithmetic(&[&a, b], ints, floats))
}

/// `Where(condition, x, y)`.
pub(crate) fn choose(call: &Call<'_>) -> Facts {
    let with: Calculate = |values| {
        let &[condition, x, y] = values else { return None };
        let chosen = if condition.int()?.known()? != 0 { x } else { y };
        Some(chosen.clone())
    };
    broadcasting(call, call.dtype(1).or(call.dtype(2)), Some(with))
}

/// A rule of one input whose numbers are calculated.
fn unary(call: &Call<'_>, ints: fn(&Expr) -> Option<Expr>, floats: fn(f64) -> f64) -> Facts {
    let Fact { dtype, dims, elements } = call.input(0);
    let element = |value: &Element| match value.as_ref()? {
        Scalar::Int(value) => ints(value).map(Scalar::Int),
        Scalar::Float(value) => Some(Scalar::Float(floats(*value))),
    };
    let elements = elements.as_ref().map(|values| values.iter().map(element).collect());
    Ok(vec![Fact::new(*dtype, dims.clone()).with(elements)])
}

pub(crate) fn neg(call: &Call<'_>) -> Facts {
    unary(call, |value| Expr::ZERO.sub(value), |value| -value)
}

pub(crate) fn abs(call: &Call<'_>) -> Facts {
    let of = |value: &Expr| {
        if value.is_at_least(&Expr::ZERO) {
            return Some(value.clone());
        }
        value.known()?.checked_abs().map(Expr::Known)
    };
    unary(call, of, f64::abs)
}

pub(crate) fn floor(call: &Call<'_>) -> Facts {
    unary(call, |value| Some(value.clone()), f64::floor)
}

pub(crate) fn ceil(call: &Call<'_>) -> Facts {
    unary(call, |value| Some(value.clone()), f64::ceil)
}

pub(crate) fn round(call: &Call<'_>) -> Facts {
    unary(call, |value| Some(value.clone()), f64::round_ties_even)
}

pub(crate) fn sqrt(call: &Call<'_>) -> Facts {
    unary(call, |_| None, f64::sqrt)
}

/// `Cast(to)`, and `CastLike` by its second input. A name stays a name through floating point, as exporters
/// calculate sizes there; numbers are truncated on the way back.
pub(crate) fn cast(call: &Call<'_>) -> Facts {
    let dtype = if call.op.kind == "CastLike" { call.dtype(1) } else { call.dtype_of("to") };
    let Fact { dims, elements, .. } = call.input(0);
    let element = |value: &Element| cast_element(value.as_ref()?, dtype?);
    let elements = elements.as_ref().map(|values| values.iter().map(element).collect());
    Ok(vec![Fact::new(dtype, dims.clone()).with(elements)])
}

fn cast_element(value: &Scalar, to: DType) -> Element {
    let is_float = matches!(to, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
    match (value, to) {
        (Scalar::Int(value), DType::Bool) => Some(truth(value.known()? != 0)),
        (Scalar::Float(value), DType::Bool) => Some(truth(*value != 0.0)),
        (Scalar::Int(value), _) if is_float && value.known().is_some() => {
            Some(Scalar::Float(Scalar::Int(value.clone()).number()?))
        }
        (Scalar::Int(value), DType::I64 | DType::F32 | DType::F64) => {
            Some(Scalar::Int(value.clone()))
        }
        // Narrow types wrap around; what fits into the narrowest is the same in all of them.
        (Scalar::Int(value), _) => {
            let most = if matches!(to, DType::I32 | DType::U32) { i32::MAX.into() } else { 127 };
            let fits = (0..=most).contains(&value.known()?);
            fits.then(|| Scalar::Int(value.clone()))
        }
        (Scalar::Float(value), _) if is_float => Some(Scalar::Float(*value)),
        (Scalar::Float(value), DType::I64 | DType::I32) => {
            let limit = 2_f64.powi(31);
            #[expect(clippy::cast_possible_truncation, reason = "the value is in range")]
            let whole = value.trunc() as i64;
            (value.abs() < limit).then_some(Scalar::Int(Expr::Known(whole)))
        }
        _ => None,
    }
}
