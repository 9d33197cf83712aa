//! Operators that make elements: `Shape`, `Size`, `ConstantOfShape`, `Range`, `EyeLike`.
//!
//! ~~~text
//! x [2, 3] ─ Shape ─ 2 3           known when the kernel is made
//! start 1, limit 7, step 2 ─ Range ─ 1 3 5       start + i * step
//! ~~~

use super::lists::{Numbers, check};
use super::slice::check_dims;
use crate::kernels::facts::{input_dims, output_dims, same_type};
use crate::kernels::function;
use crate::kernels::number::Number;
use crate::kernels::strides::count;
use crate::kernels::types::{Made, elements_mut, with_type, with_width};
use lowtide_core::operator::{Call, Fact, KernelError, Misfit, Operands};
use lowtide_core::{DType, Value};

pub(crate) fn shape(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    let dims = input_dims(call, 0)?;
    let rank = i64::try_from(dims.len()).unwrap_or(i64::MAX);
    let from_start = |at: i64| if at < 0 { at.saturating_add(rank) } else { at };
    let index = |at: i64| usize::try_from(from_start(at).clamp(0, rank)).unwrap_or(0);
    let start = index(call.int_or("start", 0));
    let end = index(call.int("end").unwrap_or(rank)).max(start);
    integers(&dims[start..end])
}

pub(crate) fn size(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    integers(&[count(&input_dims(call, 0)?)])
}

/// An output of these elements.
fn integers(all: &[usize]) -> Made {
    let all: Vec<i64> = all.iter().map(|&one| i64::try_from(one).unwrap_or(i64::MAX)).collect();
    Ok(function(move |operands| {
        let y = operands.values_mut::<i64>(0)?;
        check_dims([all.len()].into_iter(), &[y.len()])?;
        y.copy_from_slice(&all);
        Ok(())
    }))
}

pub(crate) fn constant_of_shape(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let dtype = outputs.first().copied().flatten().and_then(|output| output.dtype);
    let shape = Numbers::new(call, "shape", 0)?;
    let mut bytes = [0; 16];
    if let Some(Value::Tensor(value)) = call.op.attribute("value") {
        let data = value.data.as_deref().filter(|data| data.len() <= bytes.len());
        let data = data.ok_or_else(|| Misfit("the value is not one element".to_owned()))?;
        bytes[..data.len()].copy_from_slice(data);
    }
    with_width!(dtype, E => Ok(function(move |operands| {
        let dims = shape.get(operands, "dimensions")?;
        let dims = dims.iter().map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX));
        check_dims(dims, operands.output(0)?.dims)?;
        let value = bytemuck::pod_read_unaligned(&bytes[..size_of::<E>()]);
        elements_mut::<E>(operands, 0)?.fill(value);
        Ok(())
    })))
}

/// `Range`. Fractions are calculated each on its own, so that rounding does not add up.
pub(crate) fn range(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    same_type(call, 1).and(same_type(call, 2))?;
    match call.dtype(0) {
        dtype @ Some(DType::F32 | DType::F64) => with_type!(floats: dtype, T => {
            let at = |Steps { start, step, .. }: Steps<T>, count| start + step * T::of_f64(count);
            Ok(function(move |operands| fill_range(operands, at)))
        }),
        dtype => with_type!(integers: dtype, T => {
            let next = |Steps { step, last, .. }: Steps<T>, _| last.plus(step);
            Ok(function(move |operands| fill_range(operands, next)))
        }),
    }
}

/// Where a range begins, how it goes on, and the element before the next one.
#[derive(Clone, Copy)]
struct Steps<T> {
    start: T,
    step: T,
    last: T,
}

fn fill_range<T: Number>(
    operands: &mut Operands<'_>,
    next: impl Fn(Steps<T>, f64) -> T,
) -> Result<(), KernelError> {
    let part = |at: usize| {
        let none = || KernelError::Value(format!("input {at} has no element"));
        operands.input(at)?.values::<T>()?.first().copied().ok_or_else(none)
    };
    let (start, limit, step) = (part(0)?, part(1)?, part(2)?);
    let found = ((limit.to_f64() - start.to_f64()) / step.to_f64()).ceil().max(0.0);
    let y = operands.values_mut::<T>(0)?;
    let (mut steps, mut count) = (Steps { start, step, last: start }, 0.0);
    for y in &mut *y {
        *y = steps.last;
        count += 1.0;
        steps.last = next(steps, count);
    }
    check("how many elements there are", &found, &count)
}

pub(crate) fn eye_like(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Made {
    let [_, columns] = output_dims(outputs, 0)?[..] else {
        return Err(Misfit("the rank is not 2".to_owned()).into());
    };
    let k = call.int_or("k", 0);
    let dtype = outputs[0].and_then(|output| output.dtype);
    with_type!(values: dtype, T => Ok(function(move |operands| {
        let y = operands.values_mut::<T>(0)?;
        y.fill(T::ZERO);
        for (row, y) in y.chunks_exact_mut(columns.max(1)).enumerate() {
            let on = usize::try_from(k.saturating_add_unsigned(row as u64)).ok();
            if let Some(one) = on.and_then(|on| y.get_mut(on)) {
                *one = T::ONE;
            }
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{fails, runs};

    #[test]
    fn shapes_become_elements() {
        let x = "weight x 2 3 = 1 2 3 4 5 6";
        runs(&[x, "y = Shape(x)"], "int64 [2] 2 3");
        runs(&[x, "y = Shape(x) {start=-1}"], "int64 [1] 3");
        runs(&[x, "y = Shape(x) {start=1, end=-1}"], "int64 [0] ");
        runs(&[x, "y = Size(x)"], "int64 [] 6");
    }

    #[test]
    fn constants_fill_a_shape() {
        runs(&["weight s i64 2 = 1 3", "y = ConstantOfShape(s)"], "float32 [1, 3] 0 0 0");
        let call = "y = ConstantOfShape(s) {value=tensor i32 7}";
        runs(&["weight s i64 1 = 2", call], "int32 [2] 7 7");
        runs(&["weight s i64 0 =", call], "int32 [] 7");
    }

    #[test]
    fn ranges_end_before_their_limit() {
        let of = |dtype: &str, parts: [&str; 3], wanted: &str| {
            let part = |(name, value): (&str, &str)| format!("weight {name} {dtype} = {value}");
            let lines: Vec<String> = ["a", "b", "c"].into_iter().zip(parts).map(part).collect();
            runs(&[&lines[0], &lines[1], &lines[2], "y = Range(a, b, c)"], wanted);
        };
        of("i64", ["1", "8", "3"], "int64 [3] 1 4 7");
        of("i32", ["3", "-3", "-2"], "int32 [3] 3 1 -1");
        of("i64", ["3", "3", "1"], "int64 [0] ");
        of("f32", ["0", "0.5", "0.1"], "float32 [5] 0 0.1 0.2 0.3 0.4");
    }

    #[test]
    fn a_range_is_as_long_as_was_planned() {
        // Inference does not follow the bits of -2 to 1.
        let lines = ["weight a i64 = 0", "weight t i64 = -2", "b = BitwiseNot(t)"];
        let found = [&lines[..], &["weight c i64 = 1", "y i64 2 = Range(a, b, c)"]].concat();
        fails(&found, "how many elements there are: 1.0, wanted 2.0");
    }

    #[test]
    fn one_diagonal_is_ones() {
        let x = "weight x f16 2 3 = 0 0 0 0 0 0";
        runs(&[x, "y = EyeLike(x) {dtype=1}"], "float32 [2, 3] 1 0 0 0 1 0");
        runs(&[x, "y = EyeLike(x) {dtype=9, k=-1}"], "bool [2, 3] 0 0 0 1 0 0");
        runs(&[x, "y = EyeLike(x)"], "float16 [2, 3] 15360 0 0 0 15360 0");
    }
}
