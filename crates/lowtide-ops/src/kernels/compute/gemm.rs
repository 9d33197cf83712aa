//! `Gemm`: two matrices and a third that is added in, `alpha * a * b + beta * c` out.
//!
//! ~~~text
//! c [n], beta 1 ──> added to each row as it is finished
//! c else        ──> spread over the output first, which the product is then added to
//! ~~~

use super::product::{Matrix, Terms, WithProducts, add_product, hidden_bytes, multiply};
use crate::kernels::facts::{input_dims, output_dims, same_type, unsupported};
use crate::kernels::function;
use crate::kernels::number::{Number, by_type};
use lowtide_core::DType;
use lowtide_core::operator::{Call, Fact, Input, Kernel, KernelError, NoKernel, Operands};
use rten_gemm::BiasVector;

pub(crate) fn gemm(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    same_type(call, 1)?;
    same_type(call, 2)?;
    let gemm = Gemm::new(call, outputs)?;
    if call.dtype(0) == Some(DType::F32) {
        let hidden = hidden_bytes(gemm.m, gemm.k, gemm.n);
        let run = move |operands: &mut Operands<'_>| gemm.run(operands);
        return Ok(Box::new(WithProducts { run, hidden }));
    }
    by_type!(call.dtype(0), [F64: f64, I32: i32, I64: i64, U32: u32, U64: u64], plain(gemm))
}

struct Gemm {
    m: usize,
    k: usize,
    n: usize,
    turns_a: bool,
    turns_b: bool,
    alpha: f32,
    beta: f32,
    /// From an element of c to the one below, and to the one on its right; 0 where it is taken again.
    c_strides: (usize, usize),
}

impl Gemm {
    fn new(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Result<Self, NoKernel> {
        let out = output_dims(outputs, 0)?;
        let &[m, n] = &out[..] else { return unsupported("outputs that are no matrices") };
        let a = input_dims(call, 0)?;
        let turns_a = call.flag("transA");
        if turns_a && a.len() != 2 {
            return unsupported("a transposed input of another rank than 2");
        }
        let k = if turns_a { a[0] } else { a[1..].iter().product() };
        let c = if call.has(2) { input_dims(call, 2)? } else { Vec::new() };
        let (alpha, beta) = (call.float("alpha"), call.float("beta"));
        Ok(Self {
            m,
            k,
            n,
            turns_a,
            turns_b: call.flag("transB"),
            alpha: alpha.unwrap_or(1.0),
            beta: beta.unwrap_or(1.0),
            c_strides: spread(&c, (m, n))?,
        })
    }

    fn a<'a, T>(&self, data: &'a [T]) -> Matrix<'a, T> {
        let (rows, cols) = if self.turns_a { (self.k, self.m) } else { (self.m, self.k) };
        Matrix::new(data, rows, cols).turned_if(self.turns_a)
    }

    fn b<'a, T>(&self, data: &'a [T]) -> Matrix<'a, T> {
        let (rows, cols) = if self.turns_b { (self.n, self.k) } else { (self.k, self.n) };
        Matrix::new(data, rows, cols).turned_if(self.turns_b)
    }

    fn run(&self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let a = self.a(operands.input(0)?.values()?);
        let b = self.b(operands.input(1)?.values()?);
        let c = operands.optional(2).map(Input::values::<f32>).transpose()?;
        let out = operands.values_mut(0)?;
        let only_product = Terms { alpha: self.alpha, ..Terms::PRODUCT };
        let Some(c) = c.filter(|_| self.beta != 0.0) else {
            return multiply(out, a, b, only_product);
        };
        let is_one = (self.beta - 1.0).abs() < f32::EPSILON;
        if is_one && self.c_strides == (0, 1) {
            return multiply(out, a, b, Terms { bias: Some(BiasVector::Row(c)), ..only_product });
        }
        self.fill(out, c);
        multiply(out, a, b, Terms { beta: self.beta, ..only_product })
    }

    fn run_plain<T: Number>(&self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let a = self.a(operands.input(0)?.values::<T>()?);
        let b = self.b(operands.input(1)?.values::<T>()?);
        let c = operands.optional(2).map(Input::values::<T>).transpose()?;
        let out = operands.values_mut::<T>(0)?;
        out.fill(T::ZERO);
        let factor = |value: f32| T::of_f64(value.into());
        if let Some(c) = c {
            self.fill(out, c);
            for out in &mut *out {
                *out = out.times(factor(self.beta));
            }
        }
        add_product(out, a, b, factor(self.alpha));
        Ok(())
    }

    /// Spreads c over the output.
    fn fill<T: Copy>(&self, out: &mut [T], c: &[T]) {
        if self.n == 0 {
            return;
        }
        let (below, right) = self.c_strides;
        for (row, out) in out.chunks_mut(self.n).enumerate() {
            let from = row * below;
            match right {
                0 => out.fill(c[from]),
                _ => out.copy_from_slice(&c[from..][..self.n]),
            }
        }
    }
}

fn plain<T: Number>(gemm: Gemm) -> Box<dyn Kernel> {
    function(move |operands| gemm.run_plain::<T>(operands))
}

/// The strides of a matrix that is spread over `[m, n]`.
fn spread(c: &[usize], (m, n): (usize, usize)) -> Result<(usize, usize), NoKernel> {
    let (rows, cols) = match *c {
        [] => (1, 1),
        [cols] => (1, cols),
        [rows, cols] => (rows, cols),
        _ => return unsupported(format!("a third input of rank {}", c.len())),
    };
    if (rows != 1 && rows != m) || (cols != 1 && cols != n) {
        return Err(NoKernel::Misfit(format!("{c:?} does not spread over [{m}, {n}]")));
    }
    let below = if rows == 1 { 0 } else { cols };
    Ok((below, usize::from(cols != 1)))
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::runs;

    const A: &str = "weight a 2 3 = 1 2 3 4 5 6";
    const B: &str = "weight b 3 2 = 1 0 0 1 1 1";

    #[test]
    fn the_third_is_spread_over_the_product() {
        runs(&[A, B, "y = Gemm(a, b)"], "float32 [2, 2] 4 5 10 11");
        let with = |c: &str, wanted: &str| runs(&[A, B, c, "y = Gemm(a, b, c)"], wanted);
        with("weight c 2 = 10 20", "float32 [2, 2] 14 25 20 31");
        with("weight c 2 1 = 10 20", "float32 [2, 2] 14 15 30 31");
        with("weight c = 10", "float32 [2, 2] 14 15 20 21");
        with("weight c 1 1 = 10", "float32 [2, 2] 14 15 20 21");
        with("weight c 2 2 = 1 2 3 4", "float32 [2, 2] 5 7 13 15");
    }

    #[test]
    fn terms_are_scaled_and_sides_turned() {
        runs(
            &[A, B, "weight c 2 = 10 20", "y = Gemm(a, b, c) {alpha=2.0, beta=0.5}"],
            "float32 [2, 2] 13 20 25 32",
        );
        runs(
            &[
                "weight a 3 2 = 1 4 2 5 3 6",
                "weight b 2 3 = 1 0 1 0 1 1",
                "y = Gemm(a, b) {transA=1, transB=1}",
            ],
            "float32 [2, 2] 4 5 10 11",
        );
        runs(
            &[
                "weight a 3 1 = 1 2 3",
                "weight b 2 3 = 1 0 1 0 1 1",
                "y = Gemm(a, b) {transA=1, transB=1}",
            ],
            "float32 [1, 2] 4 5",
        );
        runs(
            &[
                "weight a i32 1 2 = 2 3",
                "weight b i32 2 1 = 4 5",
                "weight c i32 1 = 7",
                "y = Gemm(a, b, c) {alpha=2.0}",
            ],
            "int32 [1, 1] 53",
        );
    }
}
