//! `Einsum`: a sum over named axes of products of tensors.
//!
//! ~~~text
//! bhid,bhjd->bhij    b, h of all: products side by side    i of a, j of b: rows and columns    d of both: the sum
//!                    ──> for each b, h: [i, d] x [d, j], in single precision by rten-gemm
//! abc,cd,ae->be      anything else: loops over all axes, each tensor with a step for each
//! ~~~
//! An axis that a tensor does not have, or has once, has step 0 there; a letter that a term names twice is its diagonal. Cost of
//! the loops: the product of all axes, times the tensors.

use super::product::{Matrix, Terms, WithProducts, hidden_bytes, multiply};
use crate::kernels::facts::{input_dims, same_type};
use crate::kernels::function;
use crate::kernels::number::{Number, by_type};
use crate::kernels::strides::strides;
use crate::shapes::einsum::Equation;
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact, Kernel, KernelError, NoKernel, Operands};
use std::collections::BTreeMap;

/// Tensors in one call.
const MOST: usize = 8;

pub(crate) fn einsum(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    if call.inputs.len() > MOST {
        return Err(NoKernel::Unsupported(format!("more than {MOST} inputs")));
    }
    (1..call.inputs.len()).try_for_each(|at| same_type(call, at))?;
    let sum = Sum::new(call)?;
    if call.dtype(0) == Some(DType::F32)
        && call.inputs.len() == 2
        && let Some(mut products) = Products::new(&sum)
    {
        let hidden = hidden_bytes(products.m.len, products.k.len, products.n.len);
        let hidden = hidden.max(hidden_bytes(products.n.len, products.k.len, products.m.len));
        let run = move |operands: &mut Operands<'_>| products.run(operands);
        return Ok(Box::new(WithProducts { run, hidden }));
    }
    by_type!(
        call.dtype(0),
        [F32: f32, F64: f64, I32: i32, I64: i64, U32: u32, U64: u64],
        loops(sum)
    )
}

/// What an axis is called: by a letter, or as one of those that dots stand for, counted from the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Letter(char),
    Dot(usize),
}

/// One axis: its length, and how far apart neighbours are in each tensor.
#[derive(Clone, Copy, Debug)]
struct Axis {
    len: usize,
    inputs: [usize; MOST],
    output: usize,
}

impl Axis {
    /// The place of none.
    const NONE: Self = Self { len: 1, inputs: [0; MOST], output: 0 };
}

/// Axes of the output, the last the fastest, and those that are summed over.
#[derive(Clone, Debug)]
struct Sum {
    kept: Vec<Axis>,
    summed: Vec<Axis>,
    inputs: usize,
}

/// The names of the axes of a tensor of some rank.
fn names(before: &[char], after: Option<&[char]>, rank: usize) -> Vec<Name> {
    let after_len = after.map_or(0, <[char]>::len);
    let dots = rank.saturating_sub(before.len() + after_len);
    let letters = |part: &[char]| part.iter().copied().map(Name::Letter).collect::<Vec<_>>();
    let dots = (0..dots).rev().map(Name::Dot).collect();
    [letters(before), dots, letters(after.unwrap_or_default())].concat()
}

impl Sum {
    fn new(call: &Call<'_>) -> Result<Self, NoKernel> {
        let equation = Equation::read(call)?;
        let mut axes: BTreeMap<Name, Axis> = BTreeMap::new();
        let mut dots = 0;
        for (at, term) in equation.inputs.iter().enumerate() {
            let dims = input_dims(call, at)?;
            let names = names(&term.before, term.after.as_deref(), dims.len());
            dots = dots.max(names.iter().filter(|name| matches!(name, Name::Dot(_))).count());
            for ((name, &len), stride) in names.into_iter().zip(&dims).zip(strides(&dims)) {
                let axis = axes.entry(name).or_insert(Axis::NONE);
                if len != 1 {
                    axis.len = len;
                    axis.inputs[at] += stride;
                }
            }
        }
        let (before, after) = equation.result();
        let rank = before.len() + after.as_ref().map_or(0, |after| after.len() + dots);
        let mut kept = Vec::new();
        for name in names(&before, after.as_deref(), rank) {
            // A letter of the result that no input has, or that stands there twice, was refused with its shape.
            let axis = axes.remove(&name);
            kept.push(axis.ok_or_else(|| NoKernel::Misfit(format!("{name:?} is no axis")))?);
        }
        let dims: Vec<usize> = kept.iter().map(|axis| axis.len).collect();
        for (axis, stride) in kept.iter_mut().zip(strides(&dims)) {
            axis.output = stride;
        }
        Ok(Self { kept, summed: axes.into_values().collect(), inputs: call.inputs.len() })
    }
}

/// Counts through some axes, with the place of each tensor.
#[derive(Clone, Debug)]
struct Counter {
    axes: Vec<Axis>,
    index: Vec<usize>,
}

impl Counter {
    fn new(axes: Vec<Axis>) -> Self {
        Self { index: vec![0; axes.len()], axes }
    }

    fn len(&self) -> usize {
        if self.axes.iter().any(|axis| axis.len == 0) {
            return 0;
        }
        self.axes.iter().map(|axis| axis.len).product()
    }

    /// Moves places to the next index; after the last one back to the first.
    fn step(&mut self, inputs: &mut [usize; MOST], output: &mut usize) {
        for (axis, index) in self.axes.iter().zip(&mut self.index).rev() {
            *index += 1;
            let wraps = *index == axis.len;
            for (place, stride) in
                inputs.iter_mut().zip(axis.inputs).chain([(&mut *output, axis.output)])
            {
                *place += stride;
                *place -= if wraps { stride * axis.len } else { 0 };
            }
            if !wraps {
                return;
            }
            *index = 0;
        }
    }
}

fn loops<T: Number>(sum: Sum) -> Box<dyn Kernel> {
    let inputs = sum.inputs;
    let (mut kept, mut summed) = (Counter::new(sum.kept), Counter::new(sum.summed));
    function(move |operands| {
        let mut values: [&[T]; MOST] = [&[]; MOST];
        for (at, values) in values.iter_mut().take(inputs).enumerate() {
            *values = operands.input(at)?.values()?;
        }
        let values = &values[..inputs];
        let out = operands.values_mut::<T>(0)?;
        let (mut places, mut output) = ([0; MOST], 0);
        for _ in 0..kept.len() {
            let mut total = T::Wide::ZERO;
            for _ in 0..summed.len() {
                let factors = values.iter().zip(places).map(|(values, at)| values[at].widen());
                total = total.plus(factors.fold(T::Wide::ONE, T::Wide::times));
                summed.step(&mut places, &mut 0);
            }
            out[output] = T::narrow(total);
            kept.step(&mut places, &mut output);
        }
        Ok(())
    })
}

/// Products of matrices, side by side.
#[derive(Clone, Debug)]
struct Products {
    stack: Counter,
    m: Axis,
    k: Axis,
    n: Axis,
}

impl Products {
    /// A sum as products; none if it is no such sum, or its axes do not lie as those of matrices.
    fn new(sum: &Sum) -> Option<Self> {
        let (mut stack, mut m, mut n, mut k) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for axis in sum.kept.iter().filter(|axis| axis.len != 1) {
            match axis.inputs {
                [0, 0, ..] => return None,
                [_, 0, ..] => m.push(*axis),
                [0, _, ..] => n.push(*axis),
                _ => stack.push(*axis),
            }
        }
        for axis in sum.summed.iter().filter(|axis| axis.len != 1) {
            if axis.inputs[0] == 0 || axis.inputs[1] == 0 {
                return None;
            }
            k.push(*axis);
        }
        k.sort_by_key(|axis| std::cmp::Reverse(axis.inputs));
        let (m, n, k) = (joined(&m)?, joined(&n)?, joined(&k)?);
        let is_row = |along: Axis| along.len == 1 || along.output == 1;
        let fits = is_row(m) || is_row(n);
        fits.then(|| Self { stack: Counter::new(stack), m, k, n })
    }

    fn run(&mut self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let (a, b) = (operands.input(0)?.values::<f32>()?, operands.input(1)?.values::<f32>()?);
        let out = operands.values_mut::<f32>(0)?;
        if out.is_empty() {
            return Ok(());
        }
        let (mut places, mut output) = ([0; MOST], 0);
        for _ in 0..self.stack.len() {
            let a = matrix(a, places[0], (self.m, self.k), 0);
            let b = matrix(b, places[1], (self.n, self.k), 1);
            let out = &mut out[output..];
            // Its rows are those of the axis that is not the fastest of the output.
            if self.n.len == 1 || self.n.output == 1 {
                product(out, a, b.turned(), self.m)?;
            } else {
                product(out, b, a.turned(), self.n)?;
            }
            self.stack.step(&mut places, &mut output);
        }
        Ok(())
    }
}

/// Axes that lie like one in all tensors.
fn joined(axes: &[Axis]) -> Option<Axis> {
    let Some((last, outer)) = axes.split_last() else { return Some(Axis::NONE) };
    outer.iter().rev().try_fold(*last, |inner, outer| {
        let whole = |stride: usize| stride.checked_mul(inner.len);
        let mut pairs =
            outer.inputs.iter().zip(inner.inputs).chain([(&outer.output, inner.output)]);
        let fits = pairs.all(|(&outer, inner)| whole(inner) == Some(outer));
        fits.then_some(Axis { len: outer.len * inner.len, ..inner })
    })
}

/// Rows along one axis and columns along another of input `which`.
fn matrix(data: &[f32], at: usize, (rows, cols): (Axis, Axis), which: usize) -> Matrix<'_, f32> {
    let stride = |axis: Axis, other: Axis| match axis.len {
        1 => other.inputs[which].max(1) * other.len,
        _ => axis.inputs[which],
    };
    Matrix {
        data: data.get(at..).unwrap_or_default(),
        rows: rows.len,
        cols: cols.len,
        row_stride: stride(rows, cols),
        col_stride: if cols.len == 1 { 1 } else { cols.inputs[which] },
    }
}

/// A product whose rows are some way apart.
fn product(
    out: &mut [f32],
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
    rows: Axis,
) -> Result<(), KernelError> {
    if a.rows == 1 || rows.output == b.cols {
        return multiply(&mut out[..a.rows * b.cols], a, b, Terms::PRODUCT);
    }
    for row in 0..a.rows {
        let a = Matrix { data: &a.data[(row * a.row_stride).min(a.data.len())..], rows: 1, ..a };
        multiply(&mut out[row * rows.output..][..b.cols], a, b, Terms::PRODUCT)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{floats, runs};

    const A: &str = "weight a 2 2 = 1 2 3 4";
    const B: &str = "weight b 2 2 = 5 6 7 8";

    #[test]
    fn letters_say_what_is_summed() {
        for (equation, wanted) in [
            ("ij,jk->ik", "float32 [2, 2] 19 22 43 50"),
            ("ij,jk->ki", "float32 [2, 2] 19 43 22 50"),
            ("ij,ij->", "float32 [] 70"),
            ("ij,kl->ikjl", "float32 [2, 2, 2, 2] 5 6 10 12 7 8 14 16 15 18 20 24 21 24 28 32"),
            ("ij,kj", "float32 [2, 2] 17 23 39 53"),
            ("ii,jk->i", "float32 [2] 26 104"),
        ] {
            runs(&[A, B, &format!("y = Einsum(a, b) {{equation={equation}}}")], wanted);
        }
        runs(&[A, "y = Einsum(a) {equation=ii}"], "float32 [] 5");
        runs(&[A, "y = Einsum(a) {equation=i...->...i}"], "float32 [2, 2] 1 3 2 4");
        runs(
            &["weight a i64 2 = 3 4", "y = Einsum(a, a, a) {equation=i,i,i->i}"],
            "int64 [2] 27 64",
        );
    }

    /// Lines of a call of two tensors of small whole numbers, whose sums are exact in both precisions.
    fn lines(equation: &str, dtype: &str) -> Vec<String> {
        let inputs = equation.split("->").next().unwrap().split(',');
        let len = |letter: char| 2 + usize::from(letter == 'k') + 3 * usize::from(letter == 'n');
        let weight = |(at, term): (usize, &str)| {
            let dims: Vec<usize> = term.chars().map(len).collect();
            let count: usize = dims.iter().product();
            let values: Vec<String> = (0..count).map(|i| ((i * 7 + at) % 11).to_string()).collect();
            let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
            format!("weight x{at} {dtype} {} = {}", dims.join(" "), values.join(" "))
        };
        let call = format!("y = Einsum(x0, x1) {{equation={equation}}}");
        inputs.enumerate().map(weight).chain([call]).collect()
    }

    #[test]
    fn products_are_what_loops_make() {
        for equation in [
            "bmk,bkn->bmn",
            "bmk,bnk->bmn",
            "bkm,bkn->bnm",
            "bmhk,bnhk->bhmn",
            "bhmn,bnhk->bmhk",
            "mk,kn->mn",
            "mij,ijn->mn",
            "mij,jin->mn",
            "bm,bn->bmn",
            "bk,bk->b",
            "bmk,bk->bm",
            "k,bkn->bn",
            "amk,bkn->abmn",
            "amk,bkn->bamn",
            "mk,nk->",
            "bmk,bkn->mbn",
        ] {
            assert_eq!(
                floats(&lines(equation, "f32")),
                floats(&lines(equation, "f64")),
                "{equation}"
            );
        }
    }
}
