//! Shape rules of operators with bodies: their outputs are what all runs of the bodies agree on.
//!
//! ~~~text
//! If    then: [4, 8]   else: [4, 9]      ──>  [4, ?]
//! Loop  carried [n] ──body──> [n + 1]    ──>  carried [?]; what it collects gets the trips as first dimension
//! ~~~

use crate::call::{Call, Facts, Misfit};
use crate::expr::Expr;
use crate::fact::{Extent, Fact};
use crate::infer::Inference;
use lowtide_core::{Body, DType, Value};

/// From a call, and what is known of the values that its bodies capture, to its outputs.
pub(crate) type ControlRule = fn(&mut Inference<'_>, &Call<'_>, &[&Fact]) -> Facts;

/// The rule of a type, if it has bodies.
pub(crate) fn rule(domain: &str, kind: &str) -> Option<ControlRule> {
    match (domain, kind) {
        ("", "If") => Some(if_),
        ("", "Loop") => Some(loop_),
        ("", "Scan") => Some(scan),
        _ => None,
    }
}

fn body<'a>(call: &Call<'a>, name: &str) -> Result<&'a Body, Misfit> {
    match call.op.attribute(name) {
        Some(Value::Body(body)) => Ok(body),
        _ => Err(Misfit(format!("it has no body `{name}`"))),
    }
}

fn if_(inference: &mut Inference<'_>, call: &Call<'_>, captured: &[&Fact]) -> Facts {
    let (then, other) = (body(call, "then_branch")?, body(call, "else_branch")?);
    let chosen = call.input(0).ints().and_then(|values| values.first().copied());
    match chosen {
        Some(0) => Ok(inference.body(other, &[], captured)),
        Some(_) => Ok(inference.body(then, &[], captured)),
        None => {
            let then = inference.body(then, &[], captured);
            let other = inference.body(other, &[], captured);
            Ok(then.iter().zip(&other).map(|(a, b)| common(a, b)).collect())
        }
    }
}

/// What two tensors have in common. Elements are not followed through a choice.
fn common(a: &Fact, b: &Fact) -> Fact {
    let dims = match (&a.dims, &b.dims) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            Some(a.iter().zip(b).map(|(a, b)| a.clone().filter(|_| a == b)).collect())
        }
        _ => None,
    };
    let elements = a.elements.clone().filter(|_| a == b);
    Fact::new(a.dtype.filter(|_| a.dtype == b.dtype), dims).with(elements)
}

/// What stays true of carried values from trip to trip: the body is inferred until it adds nothing new.
/// `run` gives the outputs of a trip from the carried values; `take` picks those that are carried on.
fn carried(
    initial: Vec<Fact>,
    mut run: impl FnMut(&[Fact]) -> Vec<Fact>,
    take: impl Fn(&[Fact]) -> Vec<Fact>,
) -> (Vec<Fact>, Vec<Fact>) {
    // Each round can only lose knowledge; three are enough for type, rank and dimensions of straight bodies.
    const ROUNDS: usize = 3;
    let mut state = initial;
    for _ in 0..ROUNDS {
        let outputs = run(&state);
        let next: Vec<Fact> =
            state.iter().zip(take(&outputs)).map(|(a, b)| common(a, &b)).collect();
        if next == state {
            return (state, outputs);
        }
        state = next;
    }
    let nothing: Vec<Fact> = state.iter().map(|fact| Fact::of_type(fact.dtype)).collect();
    let outputs = run(&nothing);
    (nothing, outputs)
}

fn loop_(inference: &mut Inference<'_>, call: &Call<'_>, captured: &[&Fact]) -> Facts {
    let body = body(call, "body")?;
    let count = call.inputs.len().saturating_sub(2);
    let initial: Vec<Fact> = (2..2 + count).map(|at| call.input(at).clone()).collect();
    let counter = Fact::of_dims(DType::I64, &[]);
    let condition = Fact::of_dims(DType::Bool, &[]);
    let run = |state: &[Fact]| {
        let inputs = [&[counter.clone(), condition.clone()], state].concat();
        inference.body(body, &inputs, captured)
    };
    let take = |outputs: &[Fact]| outputs.iter().skip(1).take(count).cloned().collect();
    let (state, outputs) = carried(initial, run, take);
    // Without a condition a loop makes all its trips; with one, perhaps fewer.
    let limit = call.input(0).elements.as_ref().and_then(|values| values.first()?.clone());
    let trips = limit.and_then(|limit| limit.int()?.larger(&Expr::ZERO)).filter(|_| !call.has(1));
    let collected = outputs.into_iter().skip(1 + count).map(|one| stacked(&one, 0, trips.clone()));
    Ok(state.into_iter().chain(collected).collect())
}

/// A tensor for each trip, put together along a new axis.
fn stacked(one: &Fact, axis: usize, trips: Extent) -> Fact {
    let dims = one.dims.clone().filter(|dims| axis <= dims.len()).map(|mut dims| {
        dims.insert(axis, trips);
        dims
    });
    Fact::new(one.dtype, dims)
}

fn scan(inference: &mut Inference<'_>, call: &Call<'_>, captured: &[&Fact]) -> Facts {
    let body = body(call, "body")?;
    let scanned = usize::try_from(call.int_or("num_scan_inputs", 0)).unwrap_or(0);
    let count = call.inputs.len().checked_sub(scanned);
    let count = count.ok_or_else(|| Misfit(format!("it scans {scanned} inputs and has fewer")))?;
    // The eighth version had a batch axis and the lengths as its first input; nothing is told of it.
    if call.opset < 9 {
        return Ok(Vec::new());
    }
    let axes = call.ints("scan_input_axes").unwrap_or_default();
    let mut trips = None;
    let mut slices = Vec::new();
    for (index, at) in (count..call.inputs.len()).enumerate() {
        let mut slice = Fact::new(call.dtype(at), None);
        if let Some(dims) = call.dims(at) {
            let axis = crate::call::axis(axes.get(index).copied().unwrap_or(0), dims.len())?;
            let mut rest = dims.to_vec();
            trips = rest.remove(axis).or(trips);
            slice.dims = Some(rest);
        }
        slices.push(slice);
    }
    let initial: Vec<Fact> = (0..count).map(|at| call.input(at).clone()).collect();
    let run = |state: &[Fact]| inference.body(body, &[state, &slices].concat(), captured);
    let take = |outputs: &[Fact]| outputs.iter().take(count).cloned().collect();
    let (state, outputs) = carried(initial, run, take);
    let axes = call.ints("scan_output_axes").unwrap_or_default();
    let collected = outputs.into_iter().skip(count).enumerate().map(|(index, one)| {
        let rank = one.dims.as_ref().map_or(0, |dims| dims.len() + 1);
        let axis = crate::call::axis(axes.get(index).copied().unwrap_or(0), rank.max(1));
        axis.map(|axis| stacked(&one, axis, trips.clone()))
    });
    let collected = collected.collect::<Result<Vec<_>, _>>()?;
    Ok(state.into_iter().chain(collected).collect())
}
