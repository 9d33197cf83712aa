//! `ReduceSum` and the like, and global pools: a tensor in, one element for each kept place out.
//!
//! ~~~text
//! the inner axes go    x x x x x x x x -> y     a row at a time, several sums side by side
//! the outer axes go    x x x x x x x x
//!                      x x x x x x x x          a block of columns at a time, a sum each
//!                      y y y y y y y y
//! ~~~

use super::kinds::{Fold, LengthL1, LengthL2};
use super::split::{MAX_RANK, Split, check_rank};
use crate::kernels::facts::{input_dims, output_dims, unsupported};
use crate::kernels::function;
use crate::kernels::number::{Number, by_type};
use crate::kernels::vectorise::vectorised;
use lowtide_core::operator::{Call, Fact, Input, Kernel, KernelError, NoKernel, Operands, call};
use std::marker::PhantomData;

/// Sums of a row that are kept at once.
const LANES: usize = 16;
/// Columns whose sums are kept at once.
const BLOCK: usize = 128;

pub(crate) fn reduce<F: Fold>(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let axes = Axes::read(call, outputs)?;
    by_type!(call.dtype(0), [F32: f32, F64: f64, I32: i32, I64: i64], of(axes, PhantomData::<F>))
}

/// The same for what also small integers and truth values have.
pub(crate) fn extreme<F: Fold>(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let axes = Axes::read(call, outputs)?;
    by_type!(
        call.dtype(0),
        [F32: f32, F64: f64, I8: i8, I32: i32, I64: i64, U8: u8, U32: u32, U64: u64, Bool: u8],
        of(axes, PhantomData::<F>)
    )
}

/// A pool whose window is the whole image.
pub(crate) fn over_image<F: Fold>(
    call: &Call<'_>,
    _: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let dims = input_dims(call, 0)?;
    check_rank(&dims)?;
    let known = Some(Split::new(&dims, |at| at >= 2));
    let axes = Axes { known, none_is_all: true, keeps: true };
    by_type!(call.dtype(0), [F32: f32, F64: f64], of(axes, PhantomData::<F>))
}

/// `GlobalLpPool`: which length is meant is an attribute.
pub(crate) fn over_image_by_p(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    match call.int_or("p", 2) {
        1 => over_image::<LengthL1>(call, outputs),
        2 => over_image::<LengthL2>(call, outputs),
        p => unsupported(format!("p = {p}")),
    }
}

/// Which axes go.
struct Axes {
    /// `None` if the second input names them when the model runs.
    known: Option<Split>,
    /// Whether all go where none are named.
    none_is_all: bool,
    keeps: bool,
}

impl Axes {
    fn read(call: &Call<'_>, outputs: &[Option<&Fact>]) -> Result<Self, NoKernel> {
        let dims = input_dims(call, 0)?;
        check_rank(&dims)?;
        output_dims(outputs, 0)?;
        let none_is_all = !call.flag("noop_with_empty_axes");
        let keeps = call.int_or("keepdims", 1) != 0;
        let Ok(list) = call.ints_either("axes", 1) else {
            return Ok(Self { known: None, none_is_all, keeps });
        };
        let list = call::axes(&list.unwrap_or_default(), dims.len())?;
        let is_all = list.is_empty() && none_is_all;
        let split = Split::new(&dims, |at| is_all || list.contains(&at));
        Ok(Self { known: Some(split), none_is_all, keeps })
    }

    fn split(&self, operands: &mut Operands<'_>) -> Result<Split, KernelError> {
        let Self { known, none_is_all, keeps } = *self;
        if let Some(split) = known {
            return Ok(split);
        }
        let dims = operands.input(0)?.dims;
        let list = operands.optional(1).map_or(Ok(&[][..]), Input::values::<i64>)?;
        let mut goes = [list.is_empty() && none_is_all; MAX_RANK];
        for &axis in list {
            let at = call::axis(axis, dims.len()).map_err(|misfit| KernelError::Value(misfit.0))?;
            goes[at] = true;
        }
        let planned = operands.output(0)?.dims;
        let left = dims.iter().zip(goes).filter(|&(_, goes)| keeps || !goes);
        if !left.map(|(&len, goes)| if goes { 1 } else { len }).eq(planned.iter().copied()) {
            let message = format!("the axes {list:?} of {dims:?} do not leave {planned:?}");
            return Err(KernelError::Value(message));
        }
        Ok(Split::new(dims, |at| goes[at]))
    }
}

fn of<T: Number>(axes: Axes, kind: PhantomData<impl Fold>) -> Box<dyn Kernel> {
    with::<T, _>(axes, kind)
}

fn with<T: Number, F: Fold>(axes: Axes, _: PhantomData<F>) -> Box<dyn Kernel> {
    function(move |operands| {
        let split = axes.split(operands)?;
        let x = operands.input(0)?.values::<T>()?;
        fold::<T, F>(&split, x, operands.values_mut::<T>(0)?);
        Ok(())
    })
}

fn fold<T: Number, F: Fold>(split: &Split, x: &[T], out: &mut [T]) {
    let count = split.gone.len();
    let ((outer, inner), (gone, row)) = (split.kept.inner(), split.gone.inner());
    if inner == 0 {
        return;
    }
    for (place, out) in outer.places().zip(out.chunks_exact_mut(inner)) {
        if inner > 1 {
            for (block, out) in out.chunks_mut(BLOCK).enumerate() {
                let rows = gone.places().map(|gone| place + gone + block * BLOCK);
                vectorised(
                    #[inline(always)]
                    || fold_columns::<T, F>(x, rows, out, count),
                );
            }
            continue;
        }
        let rows = gone.places().map(|gone| fold_row::<T, F>(&x[place + gone..][..row]));
        out[0] = F::finish(rows.fold(F::empty::<T>(), F::merge::<T>), count);
    }
}

/// Folds rows that begin at these places into one.
#[expect(clippy::inline_always, reason = "compiled for the vectors of its caller")]
#[inline(always)]
fn fold_columns<T: Number, F: Fold>(
    x: &[T],
    rows: impl Iterator<Item = usize>,
    out: &mut [T],
    count: usize,
) {
    let mut sums = [F::empty::<T>(); BLOCK];
    let sums = &mut sums[..out.len()];
    for row in rows {
        for (sum, &x) in sums.iter_mut().zip(&x[row..][..out.len()]) {
            *sum = F::add(*sum, x);
        }
    }
    for (out, &sum) in out.iter_mut().zip(&*sums) {
        *out = F::finish(sum, count);
    }
}

/// What all elements of a row come to.
pub(crate) fn fold_row<T: Number, F: Fold>(row: &[T]) -> F::Sum<T> {
    vectorised(
        #[inline(always)]
        || {
            let mut sums = [F::empty::<T>(); LANES];
            let (pieces, rest) = row.as_chunks::<LANES>();
            for piece in pieces {
                for lane in 0..LANES {
                    sums[lane] = F::add(sums[lane], piece[lane]);
                }
            }
            for (sum, &x) in sums.iter_mut().zip(rest) {
                *sum = F::add(*sum, x);
            }
            sums.into_iter().fold(F::empty::<T>(), F::merge::<T>)
        },
    )
}
