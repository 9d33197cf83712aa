//! [`Scales`]: which scale and zero point belong to an element.
//!
//! ~~~text
//! one for all            [1]
//! one along an axis      [c]                   of [n, c, h, w], axis 1
//! one for each block     [n, c/2, h, w]        of [n, c, h, w], axis 1, block size 2
//! ~~~

use crate::kernels::facts::{input_dims, unsupported};
use crate::kernels::reduce::Lines;
use lowtide_core::operator::{Call, NoKernel, call};

#[derive(Clone, Copy, Debug)]
pub(super) struct Scales {
    lines: Lines,
    /// How many neighbours along the axis share one; `None` if blocks have no size.
    block: Option<usize>,
}

impl Scales {
    /// Those of inputs 1 and 2, for elements of input 0.
    pub(super) fn read(call: &Call<'_>) -> Result<Self, NoKernel> {
        let (x, scale) = (input_dims(call, 0)?, input_dims(call, 1)?);
        let scales: usize = scale.iter().product();
        if call.has(2) && input_dims(call, 2)?.iter().product::<usize>() != scales {
            return unsupported("zero points of another number than scales");
        }
        let count = x.iter().product();
        if scales == 1 {
            return Ok(Self { lines: Lines { outer: 1, along: 1, inner: count }, block: None });
        }
        let axis = call::axis(call.int_or("axis", 1), x.len())?;
        let lines = Lines::of(&x, axis);
        let block = usize::try_from(call.int_or("block_size", 0)).unwrap_or(0);
        if block == 0 && scale == [lines.along] {
            return Ok(Self { lines, block: None });
        }
        let blocks = lines.along.checked_div(block).unwrap_or(0);
        let is_blocked = blocks * block == lines.along
            && scale.len() == x.len()
            && (0..x.len()).all(|at| scale[at] == if at == axis { blocks } else { x[at] });
        if is_blocked && block > 0 {
            return Ok(Self { lines, block: Some(block) });
        }
        unsupported(format!("scales {scale:?} of {x:?}"))
    }

    /// Makes each element of the output of one of the input, and of the number of its scale.
    pub(super) fn each<T: Copy, U>(&self, x: &[T], out: &mut [U], make: impl Fn(T, usize) -> U) {
        let Lines { along, inner, .. } = self.lines;
        if out.is_empty() {
            return;
        }
        for (row, (x, out)) in x.chunks_exact(inner).zip(out.chunks_exact_mut(inner)).enumerate() {
            let Some(block) = self.block else {
                let number = row % along;
                out.iter_mut().zip(x).for_each(|(out, &x)| *out = make(x, number));
                continue;
            };
            let first = (row / along * (along / block) + row % along / block) * inner;
            for (number, (out, &x)) in (first..).zip(out.iter_mut().zip(x)) {
                *out = make(x, number);
            }
        }
    }
}
