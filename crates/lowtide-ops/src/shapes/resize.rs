//! Rules of operators that scale images.
//!
//! ~~~text
//! x [n, c, h, w]   scales [1, 1, 2, 0.5]   ──>  [n, c, 2*h, floor(w/2)]
//!                  sizes  [1, 8, 64, 64]   ──>  [1, 8, 64, 64]
//! ~~~
//! A product with a scale is calculated in single precision and rounded down, as runtimes do it.

use super::window::check_len;
use super::{div, number, whole};
use crate::call::{Call, Facts, Misfit, axis};
use crate::expr::Expr;
use crate::fact::{Extent, Scalar};

/// A length times a scale, rounded down.
fn scaled(len: &Extent, scale: Option<f64>) -> Extent {
    let (len, scale) = (len.as_ref()?, scale.filter(|scale| *scale >= 0.0)?);
    if let Some(len) = len.known() {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "as runtimes do"
        )]
        let product = (len as f32 * scale as f32).floor();
        return whole_of(product.into());
    }
    if let Some(Expr::Known(scale)) = whole_of(scale).filter(|_| scale.fract() == 0.0) {
        return len.mul(&Expr::Known(scale));
    }
    let inverse = scale.recip();
    let Some(Expr::Known(by)) = whole_of(inverse).filter(|_| inverse.fract() == 0.0) else {
        return None;
    };
    div(&Some(len.clone()), by)
}

/// A number without a fraction as an integer, if it is in the range where all integers are numbers.
fn whole_of(value: f64) -> Extent {
    #[expect(clippy::cast_possible_truncation, reason = "the value is in range")]
    let integer = value as i64;
    (value.abs() < 2_f64.powi(53)).then_some(Expr::Known(integer))
}

/// Numbers of input `at`, each if it is known; `None` if it is absent or empty, or not even the count is known.
fn numbers(call: &Call<'_>, at: usize) -> Option<Vec<Option<f64>>> {
    let elements = call.elements(at).filter(|elements| !elements.is_empty())?;
    Some(elements.iter().map(|one| one.as_ref().and_then(Scalar::number)).collect())
}

pub(crate) fn resize(call: &Call<'_>) -> Facts {
    let (scales, sizes) = if call.opset < 11 { (1, usize::MAX) } else { (2, 3) };
    let Some(dims) = call.dims(0) else { return Ok(vec![call.typed(0, None)]) };
    let axes = match call.ints("axes") {
        Some(list) => list.iter().map(|&at| axis(at, dims.len())).collect::<Result<Vec<_>, _>>()?,
        None => (0..dims.len()).collect(),
    };
    let mut result = dims.to_vec();
    for &at in &axes {
        result[at] = None;
    }
    if let Some(wanted) = call.exprs(sizes).filter(|wanted| !wanted.is_empty()) {
        check_len("sizes", wanted.len(), axes.len())?;
        for (&at, len) in axes.iter().zip(fitted(call, dims, &axes, wanted)) {
            result[at] = len;
        }
    } else if let Some(scales) = numbers(call, scales).filter(|_| !crops(call)) {
        check_len("scales", scales.len(), axes.len())?;
        for (&at, scale) in axes.iter().zip(scales) {
            result[at] = scaled(&dims[at], scale);
        }
    }
    Ok(vec![call.typed(0, Some(result))])
}

/// The region of interest takes part in the size.
fn crops(call: &Call<'_>) -> bool {
    call.text("coordinate_transformation_mode") == Some("tf_crop_and_resize")
}

/// The sizes as asked for, or with one scale for all axes so that none is larger (or smaller) than asked for.
fn fitted(call: &Call<'_>, dims: &[Extent], axes: &[usize], wanted: Vec<Extent>) -> Vec<Extent> {
    let choose: fn(f32, f32) -> f32 = match call.text("keep_aspect_ratio_policy") {
        Some("not_larger") => f32::min,
        Some("not_smaller") => f32::max,
        _ => return wanted,
    };
    #[expect(clippy::cast_precision_loss, reason = "as runtimes do")]
    let ratio = |(&at, wanted): (&usize, &Extent)| {
        let (len, wanted) = (number(&dims[at])?, number(wanted)?);
        (len > 0).then(|| wanted as f32 / len as f32)
    };
    let ratios: Option<Vec<f32>> = axes.iter().zip(&wanted).map(ratio).collect();
    let Some(scale) = ratios.and_then(|ratios| ratios.into_iter().reduce(choose)) else {
        return vec![None; wanted.len()];
    };
    #[expect(clippy::cast_precision_loss, reason = "as runtimes do")]
    let one = |&at: &usize| whole_of(f64::from((number(&dims[at])? as f32 * scale).round()));
    axes.iter().map(one).collect()
}

/// `Upsample`: scales as an attribute, before that two of them, later as an input.
pub(crate) fn upsample(call: &Call<'_>) -> Facts {
    let Some(dims) = call.dims(0) else { return Ok(vec![call.typed(0, None)]) };
    let listed =
        call.floats("scales").map(|list| list.iter().map(|&one| Some(one.into())).collect());
    let pair = || {
        let (h, w) = (call.float("height_scale")?, call.float("width_scale")?);
        Some(vec![Some(1.0), Some(1.0), Some(h.into()), Some(w.into())])
    };
    let scales: Option<Vec<Option<f64>>> = listed.or_else(pair).or_else(|| numbers(call, 1));
    let scales = scales.unwrap_or_else(|| vec![None; dims.len()]);
    check_len("scales", scales.len(), dims.len())?;
    let result = dims.iter().zip(scales).map(|(len, scale)| scaled(len, scale)).collect();
    Ok(vec![call.typed(0, Some(result))])
}

/// `CropAndResize`: an image of the wanted size for each region.
pub(crate) fn crop_and_resize(call: &Call<'_>) -> Facts {
    let size = call.exprs(3).filter(|size| size.len() == 2).unwrap_or_else(|| vec![None; 2]);
    let dims = [vec![call.dim(1, 0), call.dim(0, 1)], size].concat();
    Ok(vec![call.typed(0, Some(dims))])
}

/// `RoiAlign`: an image of the wanted size for each region.
pub(crate) fn roi_align(call: &Call<'_>) -> Facts {
    let size = |name: &str| match call.int_or(name, 1) {
        len if len < 0 => Err(Misfit(format!("{name} is {len}, wanted 0 or more"))),
        len => Ok(whole(len)),
    };
    let dims = vec![call.dim(1, 0), call.dim(0, 1), size("output_height")?, size("output_width")?];
    Ok(vec![call.typed(0, Some(dims))])
}

#[cfg(test)]
mod tests {
    use crate::testing::{infers, misfits};

    #[test]
    fn scales_are_multiplied_and_rounded_down() {
        infers(
            &["input x 1 3 5 w", "weight s 4 = 1 1 0.5 2", "y = Resize(x, _, s)"],
            "f32 [1, 3, 2, 2*w]",
        );
        infers(
            &["input x n 3 h w", "weight s 4 = 1 1 0.5 0.3", "y = Resize(x, _, s)"],
            "f32 [n, 3, floor(h/2), ?]",
        );
    }

    #[test]
    fn sizes_are_taken_as_they_are() {
        infers(
            &["input x n 3 5 5", "weight s i64 4 = 1 3 7 8", "y = Resize(x, _, _, s)"],
            "f32 [1, 3, 7, 8]",
        );
        infers(
            &["input x n 3 5 5", "weight s i64 2 = 7 8", "y = Resize(x, _, _, s) {axes=[2, 3]}"],
            "f32 [n, 3, 7, 8]",
        );
    }

    #[test]
    fn one_scale_may_be_chosen_for_all_axes() {
        infers(
            &[
                "input x 1 1 2 4",
                "weight s i64 2 = 7 8",
                "y = Resize(x, _, _, s) {axes=[2, 3], keep_aspect_ratio_policy=not_larger}",
            ],
            "f32 [1, 1, 4, 8]",
        );
        infers(
            &[
                "input x 1 1 2 4",
                "weight s i64 2 = 7 8",
                "y = Resize(x, _, _, s) {axes=[2, 3], keep_aspect_ratio_policy=not_smaller}",
            ],
            "f32 [1, 1, 7, 14]",
        );
    }

    #[test]
    fn early_versions_have_other_inputs() {
        infers(
            &["opset 10", "input x 1 1 2 4", "weight s 4 = 1 1 2 2", "y = Resize(x, s)"],
            "f32 [1, 1, 4, 8]",
        );
        infers(
            &["opset 7", "input x 1 1 2 4", "y = Upsample(x) {scales=[1.0, 1.0, 2.0, 3.5]}"],
            "f32 [1, 1, 4, 14]",
        );
    }

    #[test]
    fn regions_are_images() {
        infers(
            &[
                "input x 1 8 9 9",
                "input r k 4",
                "input b i64 k",
                "y = RoiAlign(x, r, b) {output_height=5, output_width=6}",
            ],
            "f32 [k, 8, 5, 6]",
        );
    }

    #[test]
    fn each_axis_has_a_scale() {
        misfits(
            &["input x 1 1 2 4", "weight s 2 = 1 1", "y = Resize(x, _, s)"],
            "scales has 2 entries, wanted 4",
        );
    }
}
