//! Rules of convolutions.
//!
//! ~~~text
//! x [n, c, h, w]   weight [m, c/groups, kh, kw]   ──Conv──>           [n, m, windows, windows]
//! x [n, c, h, w]   weight [c, m/groups, kh, kw]   ──ConvTranspose──>  [n, m, what the windows leave]
//! ~~~
//! Of an input without a shape the rank is that of the weight.

use super::window::{Windows, check_len, kernel_shape};
use super::{mul, number, of_rank, whole};
use crate::call::{Call, Facts, Misfit, equal, shape_text};
use crate::fact::{Extent, Fact};
use lowtide_core::DType;

pub(crate) fn conv(call: &Call<'_>) -> Facts {
    convolved(call, 1, call.dtype(0))
}

pub(crate) fn conv_integer(call: &Call<'_>) -> Facts {
    convolved(call, 1, Some(DType::I32))
}

/// `QLinearConv`: the weight is the fourth input, the type that of the output's zero point.
pub(crate) fn qlinear_conv(call: &Call<'_>) -> Facts {
    convolved(call, 3, call.dtype(7).or(call.dtype(0)))
}

fn convolved(call: &Call<'_>, weight: usize, dtype: Option<DType>) -> Facts {
    let dims = conv_dims(call, weight)?;
    let rank = call.rank(0).or(call.rank(weight));
    Ok(vec![dims.map_or_else(|| of_rank(dtype, rank), |dims| Fact::new(dtype, Some(dims)))])
}

fn conv_dims(call: &Call<'_>, weight: usize) -> Result<Option<Vec<Extent>>, Misfit> {
    let Some((x, w)) = call.dims(0).zip(call.dims(weight)) else { return Ok(None) };
    check_ranks(x, w)?;
    let groups = call.int_or("group", 1);
    equal(&x[1], &mul(&w[1], &whole(groups)), "channels of the input and of the weight")?;
    let windows = Windows::read(call, kernel_of(call, w)?)?;
    let mut dims = vec![x[0].clone(), w[0].clone()];
    dims.extend(windows.fit(&x[2..])?);
    Ok(Some(dims))
}

fn check_ranks(x: &[Extent], w: &[Extent]) -> Result<(), Misfit> {
    if x.len() == w.len() && x.len() >= 2 {
        return Ok(());
    }
    let (x, w) = (shape_text(x), shape_text(w));
    Err(Misfit(format!("input {x} and weight {w} have different ranks, or less than 2")))
}

/// The extents of the kernel, which attribute and weight agree on.
fn kernel_of(call: &Call<'_>, w: &[Extent]) -> Result<Vec<Extent>, Misfit> {
    let own = &w[2..];
    let Some(stated) = kernel_shape(call) else { return Ok(own.to_vec()) };
    check_len("kernel_shape", stated.len(), own.len())?;
    let both = stated.iter().zip(own);
    both.map(|(a, b)| equal(a, b, "kernel_shape and the weight")).collect()
}

pub(crate) fn conv_transpose(call: &Call<'_>) -> Facts {
    let dtype = call.dtype(0);
    let Some((x, w)) = call.dims(0).zip(call.dims(1)) else {
        return Ok(vec![of_rank(dtype, call.rank(0).or(call.rank(1)))]);
    };
    check_ranks(x, w)?;
    equal(&x[1], &w[0], "channels of the input and of the weight")?;
    let mut dims = vec![x[0].clone(), mul(&w[1], &whole(call.int_or("group", 1)))];
    dims.extend(transposed(call, &x[2..], w)?);
    Ok(vec![Fact::new(dtype, Some(dims))])
}

fn transposed(call: &Call<'_>, x: &[Extent], w: &[Extent]) -> Result<Vec<Extent>, Misfit> {
    if let Some(list) = call.ints("output_shape") {
        // Some files give batch and channels too.
        let list = if list.len() == x.len() + 2 { &list[2..] } else { list };
        check_len("output_shape", list.len(), x.len())?;
        return Ok(list.iter().map(|&len| whole(len)).collect());
    }
    let zeros = vec![0; x.len()];
    let extra = call.ints("output_padding").unwrap_or(&zeros);
    check_len("output_padding", extra.len(), x.len())?;
    let windows = Windows::read(call, kernel_of(call, w)?)?;
    let dims = windows.spread(x, extra);
    match dims.iter().find_map(|dim| number(dim).filter(|&len| len < 0)) {
        Some(len) => Err(Misfit(format!("the padding leaves {len} elements of an axis"))),
        None => Ok(dims),
    }
}

/// `DeformConv`: the offsets say where, not how many.
pub(crate) fn deform_conv(call: &Call<'_>) -> Facts {
    convolved(call, 1, call.dtype(0))
}

/// Convolutions whose channels come last; the weight's order of axes is not relied on.
pub(crate) fn conv_channels_last(call: &Call<'_>) -> Facts {
    let dtype = call.dtype(0);
    let Some((x, w)) = call.dims(0).zip(call.dims(1)) else {
        return Ok(vec![of_rank(dtype, call.rank(0).or(call.rank(1)))]);
    };
    check_ranks(x, w)?;
    let spatial = x.len() - 2;
    let kernel = kernel_shape(call).unwrap_or_else(|| vec![None; spatial]);
    check_len("kernel_shape", kernel.len(), spatial)?;
    let windows = Windows::read(call, kernel)?;
    let mut dims = vec![x[0].clone()];
    dims.extend(windows.fit(&x[1..x.len() - 1])?);
    dims.push(w[0].clone());
    Ok(vec![Fact::new(dtype, Some(dims))])
}

/// `Col2Im`: blocks laid down on an image whose shape is an input.
pub(crate) fn col2im(call: &Call<'_>) -> Facts {
    let dtype = call.dtype(0);
    let rank = super::rank_by(call, 1).or(super::rank_by(call, 2));
    let Some(rank) = rank else { return Ok(vec![Fact::of_type(dtype)]) };
    let image =
        call.exprs(1).filter(|image| image.len() == rank).unwrap_or_else(|| vec![None; rank]);
    let block = call.exprs(2).and_then(|block| super::product(&block));
    let channels = call.dim(0, 1).zip(block).and_then(|(all, block)| all.div_exactly(&block));
    let mut dims = vec![call.dim(0, 0), channels];
    dims.extend(image);
    Ok(vec![Fact::new(dtype, Some(dims))])
}

#[cfg(test)]
mod tests {
    use crate::testing::{infers, misfits};

    #[test]
    fn windows_fit_into_the_padded_input() {
        infers(
            &[
                "input x 1 3 224 224",
                "weight w 8 3 7 7",
                "y = Conv(x, w) {strides=[2, 2], pads=[3, 3, 3, 3]}",
            ],
            "f32 [1, 8, 112, 112]",
        );
        infers(
            &["input x n 4 h", "weight w 8 2 3", "y = Conv(x, w) {group=2, dilations=[2]}"],
            "f32 [n, 8, h - 4]",
        );
    }

    #[test]
    fn windows_over_a_name_are_an_expression_of_it() {
        infers(
            &[
                "input x n 3 h w",
                "weight w 8 3 3 3",
                "y = Conv(x, w) {strides=[2, 2], pads=[1, 1, 1, 1]}",
            ],
            "f32 [n, 8, floor((h + 1)/2), floor((w + 1)/2)]",
        );
        infers(
            &[
                "input x 1 3 h",
                "weight w 8 3 3",
                "a = Conv(x, w) {strides=[2], pads=[1, 1]}",
                "weight v 8 8 3",
                "y = Conv(a, v) {strides=[2], pads=[1, 1]}",
            ],
            "f32 [1, 8, floor((h + 3)/4)]",
        );
    }

    #[test]
    fn with_automatic_padding_the_strides_decide() {
        infers(
            &[
                "input x 1 1 5 6 7",
                "weight w 1 1 3 3 3",
                "y = Conv(x, w) {strides=[2, 2, 2], auto_pad=SAME_UPPER}",
            ],
            "f32 [1, 1, 3, 3, 4]",
        );
        infers(
            &["input x 1 1 7", "weight w 1 1 3", "y = Conv(x, w) {strides=[2], auto_pad=VALID}"],
            "f32 [1, 1, 3]",
        );
    }

    #[test]
    fn integers_are_summed_up_in_32_bits() {
        infers(
            &["input x u8 1 1 4 4", "weight w u8 2 1 3 3", "y = ConvInteger(x, w)"],
            "i32 [1, 2, 2, 2]",
        );
        infers(
            &[
                "input x u8 1 1 4 4",
                "weight s",
                "weight z u8",
                "weight w u8 2 1 3 3",
                "weight o i8",
                "y = QLinearConv(x, s, z, w, s, z, s, o)",
            ],
            "i8 [1, 2, 2, 2]",
        );
    }

    #[test]
    fn transposed_windows_are_put_down() {
        infers(
            &[
                "input x 1 3 5 5",
                "weight w 3 2 3 3",
                "y = ConvTranspose(x, w) {strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]}",
            ],
            "f32 [1, 2, 10, 10]",
        );
        infers(
            &[
                "input x n 4 h",
                "weight w 4 2 4",
                "y = ConvTranspose(x, w) {strides=[2], group=2, pads=[1, 1]}",
            ],
            "f32 [n, 4, 2*h]",
        );
        infers(
            &[
                "input x 1 3 5",
                "weight w 3 2 3",
                "y = ConvTranspose(x, w) {strides=[2], auto_pad=SAME_LOWER}",
            ],
            "f32 [1, 2, 10]",
        );
        infers(
            &[
                "input x 1 3 5",
                "weight w 3 2 3",
                "y = ConvTranspose(x, w) {strides=[2], output_shape=[12]}",
            ],
            "f32 [1, 2, 12]",
        );
    }

    #[test]
    fn blocks_are_laid_down_on_an_image() {
        infers(
            &[
                "input x 1 10 6",
                "weight i i64 2 = 3 4",
                "weight b i64 2 = 1 5",
                "y = Col2Im(x, i, b)",
            ],
            "f32 [1, 2, 3, 4]",
        );
    }

    #[test]
    fn what_does_not_fit_is_said() {
        misfits(
            &["input x 1 3 5", "weight w 8 4 3", "y = Conv(x, w)"],
            "channels of the input and of the weight: 3 and 4 should be equal",
        );
        misfits(
            &["input x 1 3 2", "weight w 8 3 3", "y = Conv(x, w)"],
            "a window of 3 does not fit into 2",
        );
        misfits(
            &["input x 1 3 5", "weight w 8 3 3", "y = Conv(x, w) {strides=[0]}"],
            "strides has 0, wanted 1 or more",
        );
        misfits(
            &["input x 1 3 5", "weight w 8 3 3", "y = Conv(x, w) {pads=[1]}"],
            "pads has 1 entries, wanted 2",
        );
    }
}
