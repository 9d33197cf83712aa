//! Broadcasting of random shapes against an oracle, which finds the elements of each index by counting.
//!
//! ~~~text
//! y [2, 3, 4]   a [3, 1]   b [2, 1, 4]     y[1, 2, 3] = a[2, 0] - b[1, 0, 3]
//! ~~~

use crate::kernels::testing::runs;
use arbitrary::{Result, Unstructured};

/// A tensor of a test: a name, a shape, and whole numbers as elements.
struct Tensor {
    name: &'static str,
    dims: Vec<usize>,
    elements: Vec<i64>,
}

impl Tensor {
    /// With a shape that is broadcast to `to`.
    fn random(u: &mut Unstructured<'_>, name: &'static str, to: &[usize]) -> Result<Self> {
        let kept = &to[u.int_in_range(0..=to.len())?..];
        let dim = |&dim: &usize| Ok(if u.ratio(1, 3)? { 1 } else { dim });
        let dims: Vec<usize> = kept.iter().map(dim).collect::<Result<_>>()?;
        let factor = u.int_in_range(1..=100)?;
        let elements = (0_i64..).map(|at| (at * factor) % 101).take(dims.iter().product());
        Ok(Self { name, elements: elements.collect(), dims })
    }

    fn line(&self, dtype: &str) -> String {
        let Self { name, dims, elements } = self;
        format!("weight {name} {dtype} {} = {}", words(dims), words(elements))
    }

    /// The element that is broadcast to an index of the shape `to`.
    fn at(&self, mut index: usize, to: &[usize]) -> i64 {
        let (mut place, mut stride) = (0, 1);
        let own = std::iter::repeat_n(&1, to.len() - self.dims.len()).chain(&self.dims);
        for (&len, &own) in to.iter().zip(own.collect::<Vec<_>>()).rev() {
            place += if own == 1 { 0 } else { index % len * stride };
            (index, stride) = (index / len, stride * own);
        }
        self.elements[place]
    }
}

fn words<T: ToString>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

/// A shape; some have more elements than a piece.
fn shape(u: &mut Unstructured<'_>) -> Result<Vec<usize>> {
    let (rank, most) = if u.ratio(1, 4)? { (3, 12) } else { (4, 4) };
    (0..u.int_in_range(0..=rank)?).map(|_| u.int_in_range(0..=most)).collect()
}

/// Whether the inputs give this shape when they are broadcast to each other.
fn gives(tensors: &[&Tensor], to: &[usize]) -> bool {
    let dim = |tensor: &Tensor, axis: usize| {
        let own = (axis + tensor.dims.len()).checked_sub(to.len());
        own.map_or(1, |own| tensor.dims[own])
    };
    let has_rank = tensors.iter().any(|tensor| tensor.dims.len() == to.len());
    has_rank && (0..to.len()).all(|axis| tensors.iter().any(|tensor| dim(tensor, axis) == to[axis]))
}

/// Runs an operator on random tensors; `of` says what it calculates.
fn check(call: &str, result: &str, dtypes: [&str; 3], of: fn(i64, i64, i64) -> i64) {
    arbtest::arbtest(|u| {
        let to = shape(u)?;
        let [a, b] = [Tensor::random(u, "a", &to)?, Tensor::random(u, "b", &to)?];
        let c = Tensor::random(u, "c", &to)?;
        let used: &[&Tensor] = if call.contains('c') { &[&a, &b, &c] } else { &[&a, &b] };
        if !gives(used, &to) {
            return Ok(());
        }
        let [x, y, z] = dtypes;
        let lines = [a.line(x), b.line(y), c.line(z), format!("y = {call}")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let element = |at| of(a.at(at, &to), b.at(at, &to), c.at(at, &to));
        let wanted: Vec<i64> = (0..to.iter().product()).map(element).collect();
        let shape: Vec<String> = to.iter().map(ToString::to_string).collect();
        runs(&lines, &format!("{result} [{}] {}", shape.join(", "), words(&wanted)));
        Ok(())
    })
    .budget_ms(700);
}

#[test]
fn two_inputs_of_any_shapes_are_broadcast() {
    check("Sub(a, b)", "float32", ["f32", "f32", "f32"], |a, b, _| a - b);
    check("Mul(a, b)", "int64", ["i64", "i64", "i64"], |a, b, _| a * b);
    check("Less(a, b)", "bool", ["u8", "u8", "u8"], |a, b, _| (a < b).into());
}

#[test]
fn three_inputs_of_any_shapes_are_broadcast() {
    check("Sum(a, c, b)", "float32", ["f32", "f32", "f32"], |a, b, c| a + b + c);
    check("Max(a, b, c)", "int16", ["i16", "i16", "i16"], |a, b, c| a.max(b).max(c));
    let choose = |a, b, c| if a == 0 { c } else { b };
    check("Where(a, b, c)", "int32", ["bool", "i32", "i32"], choose);
    check("Where(a, b, c)", "uint8", ["bool", "u8", "u8"], choose);
}
