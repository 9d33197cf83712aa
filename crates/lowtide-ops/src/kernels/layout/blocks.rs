//! `DepthToSpace` and `SpaceToDepth`: blocks of places become channels, and back.
//!
//! ~~~text
//! x [n, 4, h, w] as [n, 2, 2, 1, h, w] ─ axes in another order ─ [n, 1, h, 2, w, 2] as [n, 1, 2*h, 2*w]
//! ~~~

use super::copy::copy;
use super::transpose::permuted;
use crate::kernels::facts::{input_dims, unsupported};
use crate::kernels::function;
use crate::kernels::types::{Made, elements, elements_mut, with_width};
use lowtide_core::operator::{Call, Fact, Misfit, NoKernel};

pub(crate) fn depth_to_space(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    let ([n, c, h, w], side) = (image(call)?, side(call)?);
    let inner = c / side.saturating_mul(side);
    match call.text("mode") {
        None | Some("DCR") => moved(call, &[n, side, side, inner, h, w], &[0, 3, 4, 1, 5, 2]),
        Some("CRD") => moved(call, &[n, inner, side, side, h, w], &[0, 1, 4, 2, 5, 3]),
        Some(other) => unsupported(format!("mode {other}")),
    }
}

pub(crate) fn space_to_depth(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    let ([n, c, h, w], side) = (image(call)?, side(call)?);
    moved(call, &[n, c, h / side, side, w / side, side], &[0, 3, 5, 1, 2, 4])
}

fn image(call: &Call<'_>) -> Result<[usize; 4], NoKernel> {
    let dims = input_dims(call, 0)?;
    let misfit = |dims: Vec<usize>| Misfit(format!("rank {}, wanted 4", dims.len()));
    Ok(dims.try_into().map_err(misfit)?)
}

fn side(call: &Call<'_>) -> Result<usize, NoKernel> {
    let side = usize::try_from(call.int_or("blocksize", 0)).ok().filter(|&side| side > 0);
    side.ok_or_else(|| Misfit("the block size is not 1 or more".to_owned()).into())
}

fn moved(call: &Call<'_>, dims: &[usize], order: &[usize]) -> Made {
    let walk = permuted(dims, order)?;
    with_width!(call.dtype(0), E => Ok(function(move |operands| {
        let from = elements::<E>(operands.input(0)?)?;
        copy(&walk, from, elements_mut::<E>(operands, 0)?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::runs;

    const X: &str = "weight x 1 8 1 2 = 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15";

    #[test]
    fn channels_become_blocks_in_one_of_two_orders() {
        let of = |mode: &str, wanted: &str| {
            let call = format!("y = DepthToSpace(x) {{blocksize=2{mode}}}");
            runs(&[X, &call], &format!("float32 [1, 2, 2, 4] {wanted}"));
        };
        of("", "0 4 1 5 8 12 9 13 2 6 3 7 10 14 11 15");
        of(", mode=CRD", "0 2 1 3 4 6 5 7 8 10 9 11 12 14 13 15");
    }

    #[test]
    fn blocks_become_channels() {
        let lines = ["weight x i8 1 1 2 4 = 0 1 2 3 4 5 6 7", "y = SpaceToDepth(x) {blocksize=2}"];
        runs(&lines, "int8 [1, 4, 1, 2] 0 2 1 3 4 6 5 7");
    }
}
