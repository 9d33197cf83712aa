//! Operators that move elements or make them, but compute nothing with them.
//!
//! ~~~text
//! Reshape x[2,3] -> y[6]     the same bytes: a view
//! Transpose, Concat          other places: a copy
//! ScatterND data -> y        a copy of `data` with some elements replaced: it may lie on `data`
//! ~~~

use super::Table;
use crate::declaration::{Rule, copies, overwrites, row};
use crate::kernels::compute;
use crate::shapes::{conv, image, layout, like_first, pad, random, resize, select, slice, text};
use crate::work;

/// The rows.
pub(super) static TABLE: Table = Table {
    cost: Some(work::nothing),
    rows: &[
        copies("AffineGrid").shape(image::affine_grid).cost(work::some_each),
        copies("Bernoulli").shape(random::like).cost(work::some_each),
        copies("CenterCropPad").shape(pad::center_crop_pad),
        copies("Col2Im").shape(conv::col2im).cost(work::one_each_read),
        copies("Compress").shape(select::compress).cost(work::one_each_read),
        copies("Concat").shape(layout::concat),
        copies("Constant"),
        copies("ConstantOfShape").shape(layout::constant_of_shape),
        copies("DepthToSpace").shape(image::depth_to_space),
        row("Dropout", Rule::ViewWhenInferring).shape(layout::dropout),
        copies("Expand").shape(layout::expand),
        copies("EyeLike").shape(random::like),
        row("Flatten", Rule::View).shape(layout::flatten),
        copies("Gather").shape(layout::gather),
        copies("GatherElements").shape(select::gather_elements),
        copies("GatherND").shape(select::gather_nd),
        copies("GridSample").shape(image::grid_sample).cost(work::some_each),
        row("Identity", Rule::View).shape(layout::identity),
        copies("ImageDecoder").shape(image::decode),
        copies("Multinomial").shape(random::multinomial).cost(work::some_each),
        copies("NonZero").shape(select::non_zero).cost(work::one_each_read),
        copies("OneHot").shape(select::one_hot),
        copies("Pad").shape(pad::pad),
        copies("RandomNormal").shape(random::of_shape).cost(work::some_each),
        copies("RandomNormalLike").shape(random::like).cost(work::some_each),
        copies("RandomUniform").shape(random::of_shape).cost(work::some_each),
        copies("RandomUniformLike").shape(random::like).cost(work::some_each),
        copies("Range").shape(layout::range),
        copies("RegexFullMatch").shape(text::matches),
        row("Reshape", Rule::View).shape(layout::reshape),
        copies("Resize").shape(resize::resize).cost(work::some_each).kernel(compute::resize),
        copies("ReverseSequence").shape(like_first),
        overwrites("Scatter", &[0]).shape(like_first),
        overwrites("ScatterElements", &[0]).shape(like_first),
        overwrites("ScatterND", &[0]).shape(like_first),
        copies("Shape").shape(layout::shape),
        copies("Size").shape(layout::size),
        copies("Slice").shape(slice::slice),
        copies("SpaceToDepth").shape(image::space_to_depth),
        copies("Split").shape(layout::split),
        row("Squeeze", Rule::View).shape(layout::squeeze),
        copies("StringConcat").shape(text::concat),
        copies("StringNormalizer").shape(text::normalise),
        copies("StringSplit").shape(text::split),
        overwrites("TensorScatter", &[0]).shape(like_first),
        copies("TfIdfVectorizer").shape(text::tf_idf).cost(work::one_each_read),
        copies("Tile").shape(layout::tile),
        copies("Transpose").shape(layout::transpose),
        copies("Unique").shape(select::unique).cost(work::one_each_read),
        row("Unsqueeze", Rule::View).shape(layout::unsqueeze),
        copies("Upsample").shape(resize::upsample).cost(work::some_each).kernel(compute::upsample),
    ],
};
