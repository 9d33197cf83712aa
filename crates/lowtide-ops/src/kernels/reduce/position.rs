//! `ArgMax` and `ArgMin`: where the largest or smallest element of each line is.
//!
//! ~~~text
//! 3 7 7 1 ──ArgMax──> 1      the first of equals, or the last
//! ~~~

use super::lines::Lines;
use crate::kernels::function;
use crate::kernels::number::{Number, by_type};
use lowtide_core::operator::{Call, Fact, Kernel, NoKernel};
use std::cmp::Ordering;

pub(crate) fn arg_max(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    position(call, Ordering::Greater)
}

pub(crate) fn arg_min(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    position(call, Ordering::Less)
}

fn position(call: &Call<'_>, wanted: Ordering) -> Result<Box<dyn Kernel>, NoKernel> {
    let lines = Lines::read(call, 0)?;
    if lines.along == 0 && lines.outer * lines.inner > 0 {
        return Err(NoKernel::Misfit("a line without elements has no largest one".to_owned()));
    }
    let find = Find { lines, wanted, is_last: call.flag("select_last_index") };
    by_type!(
        call.dtype(0),
        [F32: f32, F64: f64, I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64],
        of(find)
    )
}

fn of<T: Number>(find: Find) -> Box<dyn Kernel> {
    function(move |operands| {
        let x = operands.input(0)?.values::<T>()?;
        find.all(x, operands.values_mut(0)?);
        Ok(())
    })
}

struct Find {
    lines: Lines,
    wanted: Ordering,
    is_last: bool,
}

impl Find {
    fn all<T: Number>(&self, x: &[T], out: &mut [i64]) {
        let inner = self.lines.inner;
        if out.is_empty() {
            return;
        }
        let slabs = x.chunks_exact(self.lines.slab());
        for (slab, out) in slabs.zip(out.chunks_exact_mut(inner)) {
            out.fill(0);
            let rows = slab.chunks_exact(inner).zip(0_i64..).skip(1);
            for (row, at) in rows {
                for (col, (place, &x)) in out.iter_mut().zip(row).enumerate() {
                    let best = usize::try_from(*place).map_or(x, |row| slab[row * inner + col]);
                    if self.beats(x, best) {
                        *place = at;
                    }
                }
            }
        }
    }

    fn beats<T: Number>(&self, x: T, best: T) -> bool {
        match x.partial_cmp(&best) {
            Some(Ordering::Equal) => self.is_last,
            ordering => ordering == Some(self.wanted),
        }
    }
}
