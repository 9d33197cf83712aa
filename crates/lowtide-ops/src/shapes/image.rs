//! Rules of operators that move between channels and places, or sample an image on a grid.
//!
//! ~~~text
//! x [n, 4*c, h, w] ──DepthToSpace, blocks of 2──>  [n, c, 2*h, 2*w]
//! x [n, c, h, w]   grid [n, 8, 9, 2]   ──GridSample──>  [n, c, 8, 9]
//! ~~~

use super::{div, known, mul, number, ranked, whole};
use crate::call::{Call, Facts, Misfit};
use crate::fact::{Extent, Fact};
use lowtide_core::DType;

fn block(call: &Call<'_>) -> Result<(i64, i64), Misfit> {
    let side = call.int_or("blocksize", 0);
    match side.checked_mul(side).filter(|_| side > 0) {
        Some(area) => Ok((side, area)),
        None => Err(Misfit(format!("the block size is {side}, wanted 1 or more"))),
    }
}

fn divided(dim: &Extent, by: i64) -> Result<Extent, Misfit> {
    match number(dim) {
        Some(len) if len % by != 0 => Err(Misfit(format!("{len} is no multiple of {by}"))),
        _ => Ok(div(dim, by)),
    }
}

pub(crate) fn depth_to_space(call: &Call<'_>) -> Facts {
    let (side, area) = block(call)?;
    let dims = match ranked(call, 0, 4)? {
        Some([n, c, h, w]) => {
            let grown = |dim: &Extent| mul(dim, &whole(side));
            vec![n.clone(), divided(c, area)?, grown(h), grown(w)]
        }
        _ => vec![None; 4],
    };
    Ok(vec![call.typed(0, Some(dims))])
}

pub(crate) fn space_to_depth(call: &Call<'_>) -> Facts {
    let (side, area) = block(call)?;
    let dims = match ranked(call, 0, 4)? {
        Some([n, c, h, w]) => {
            vec![n.clone(), mul(c, &whole(area)), divided(h, side)?, divided(w, side)?]
        }
        _ => vec![None; 4],
    };
    Ok(vec![call.typed(0, Some(dims))])
}

pub(crate) fn grid_sample(call: &Call<'_>) -> Facts {
    let rank = call.rank(0).or(call.rank(1));
    let mut dims = vec![call.dim(0, 0).or_else(|| call.dim(1, 0)), call.dim(0, 1)];
    match (call.dims(1), rank) {
        (Some(grid), Some(rank)) if grid.len() != rank => {
            let found = grid.len();
            return Err(Misfit(format!("the grid has rank {found}, the image {rank}")));
        }
        (Some(grid), _) if grid.len() >= 2 => dims.extend_from_slice(&grid[1..grid.len() - 1]),
        (_, Some(rank)) if rank >= 2 => dims.resize(rank, None),
        _ => return Ok(vec![call.typed(0, None)]),
    }
    Ok(vec![call.typed(0, Some(dims))])
}

/// `AffineGrid`: a place in the image for each place of the result, whose size is an input.
pub(crate) fn affine_grid(call: &Call<'_>) -> Facts {
    let Some(rank) = super::rank_by(call, 1).filter(|&rank| rank >= 2) else {
        return Ok(vec![call.typed(0, None)]);
    };
    let size = call.exprs(1).filter(|size| size.len() == rank).unwrap_or_else(|| vec![None; rank]);
    let mut dims = vec![size[0].clone().or_else(|| call.dim(0, 0))];
    dims.extend_from_slice(&size[2..]);
    dims.push(known(rank - 2));
    Ok(vec![call.typed(0, Some(dims))])
}

/// `ImageDecoder`: height, width, channels.
pub(crate) fn decode(call: &Call<'_>) -> Facts {
    let channels = if call.text("pixel_format") == Some("Grayscale") { 1 } else { 3 };
    Ok(vec![Fact::new(Some(DType::U8), Some(vec![None, None, whole(channels)]))])
}

#[cfg(test)]
mod tests {
    use crate::testing::{infers, misfits};

    #[test]
    fn blocks_move_between_channels_and_places() {
        infers(&["input x n 12 h w", "y = DepthToSpace(x) {blocksize=2}"], "f32 [n, 3, 2*h, 2*w]");
        infers(
            &["input x n 3 8 w", "y = SpaceToDepth(x) {blocksize=2}"],
            "f32 [n, 12, 4, floor(w/2)]",
        );
    }

    #[test]
    fn a_grid_has_the_places_of_the_result() {
        infers(&["input x n 3 5 5", "input g n 8 9 2", "y = GridSample(x, g)"], "f32 [n, 3, 8, 9]");
        infers(
            &["input t n 2 3", "weight s i64 4 = 2 3 5 6", "y = AffineGrid(t, s)"],
            "f32 [2, 5, 6, 2]",
        );
    }

    #[test]
    fn blocks_are_whole() {
        misfits(
            &["input x 1 10 4 4", "y = DepthToSpace(x) {blocksize=2}"],
            "10 is no multiple of 4",
        );
        misfits(
            &["input x 1 8 4 4", "y = DepthToSpace(x)"],
            "the block size is 0, wanted 1 or more",
        );
    }
}
