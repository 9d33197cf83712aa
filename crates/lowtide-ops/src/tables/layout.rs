//! Operators that move elements or make them, but compute nothing with them.
//!
//! ~~~text
//! Reshape x[2,3] -> y[6]     the same bytes: a view
//! Transpose, Concat          other places: a copy
//!                            of a piece, or of nothing in between: the one may lie inside the other
//! ScatterND data -> y        a copy of `data` with some elements replaced: it may lie on `data`
//! ~~~

use super::Table;
use crate::declaration::{Rule, copies, overwrites, row};
use crate::inside;
use crate::kernels::{compute, layout as run};
use crate::shapes::{conv, image, layout, like_first, pad, random, resize, select, slice, text};
use crate::work;

/// The rows.
pub(super) static TABLE: Table = Table {
    cost: Some(work::nothing),
    rows: &[
        copies("AffineGrid").shape(image::affine_grid).cost(work::some_each),
        copies("Bernoulli").shape(random::like).cost(work::some_each),
        copies("CenterCropPad")
            .shape(pad::center_crop_pad)
            .kernel(run::pad::center_crop_pad)
            .moves(),
        copies("Col2Im").shape(conv::col2im).cost(work::one_each_read),
        copies("Compress")
            .shape(select::compress)
            .measure(run::compress::count)
            .cost(work::one_each_read)
            .kernel(run::compress::compress)
            .moves(),
        copies("Concat")
            .inside(inside::concat)
            .shape(layout::concat)
            .kernel(run::concat::concat)
            .moves(),
        copies("Constant"),
        copies("ConstantOfShape")
            .shape(layout::constant_of_shape)
            .kernel(run::make::constant_of_shape)
            .moves(),
        copies("DepthToSpace")
            .shape(image::depth_to_space)
            .kernel(run::blocks::depth_to_space)
            .moves(),
        row("Dropout", Rule::ViewWhenInferring)
            .shape(layout::dropout)
            .kernel(run::view::dropout)
            .moves(),
        copies("Expand")
            .inside(inside::repeat)
            .shape(layout::expand)
            .kernel(run::repeat::expand)
            .moves(),
        copies("EyeLike").shape(random::like).kernel(run::make::eye_like),
        row("Flatten", Rule::View).shape(layout::flatten).kernel(run::view::view).moves(),
        copies("Gather")
            .inside(inside::gather)
            .shape(layout::gather)
            .kernel(run::gather::gather)
            .moves(),
        copies("GatherElements")
            .shape(select::gather_elements)
            .kernel(run::gather::gather_elements)
            .moves(),
        copies("GatherND").shape(select::gather_nd).kernel(run::gather::gather_nd).moves(),
        copies("GridSample").shape(image::grid_sample).cost(work::some_each),
        row("Identity", Rule::View).shape(layout::identity).kernel(run::view::view).moves(),
        copies("ImageDecoder").shape(image::decode),
        copies("Multinomial").shape(random::multinomial).cost(work::some_each),
        copies("NonZero")
            .shape(select::non_zero)
            .measure(run::non_zero::count)
            .cost(work::one_each_read)
            .kernel(run::non_zero::non_zero)
            .moves(),
        copies("OneHot").shape(select::one_hot).kernel(run::one_hot::one_hot),
        copies("Pad").inside(inside::pad).shape(pad::pad).kernel(run::pad::pad).moves(),
        copies("RandomNormal").shape(random::of_shape).cost(work::some_each),
        copies("RandomNormalLike").shape(random::like).cost(work::some_each),
        copies("RandomUniform").shape(random::of_shape).cost(work::some_each),
        copies("RandomUniformLike").shape(random::like).cost(work::some_each),
        copies("Range").shape(layout::range).kernel(run::make::range),
        copies("RegexFullMatch").shape(text::matches),
        row("Reshape", Rule::View).shape(layout::reshape).kernel(run::view::view).moves(),
        copies("Resize").shape(resize::resize).cost(work::some_each).kernel(compute::resize),
        copies("ReverseSequence").shape(like_first).kernel(run::reverse::reverse_sequence).moves(),
        overwrites("Scatter", &[0])
            .shape(like_first)
            .kernel(run::scatter::scatter_elements)
            .moves(),
        overwrites("ScatterElements", &[0])
            .shape(like_first)
            .kernel(run::scatter::scatter_elements)
            .moves(),
        overwrites("ScatterND", &[0]).shape(like_first).kernel(run::scatter::scatter_nd).moves(),
        copies("Shape").shape(layout::shape).kernel(run::make::shape).moves(),
        copies("Size").shape(layout::size).kernel(run::make::size).moves(),
        copies("Slice").inside(inside::slice).shape(slice::slice).kernel(run::slice::slice).moves(),
        copies("SpaceToDepth")
            .shape(image::space_to_depth)
            .kernel(run::blocks::space_to_depth)
            .moves(),
        copies("Split")
            .inside(inside::split)
            .shape(layout::split)
            .kernel(run::split::split)
            .moves(),
        row("Squeeze", Rule::View).shape(layout::squeeze).kernel(run::view::view).moves(),
        copies("StringConcat").shape(text::concat),
        copies("StringNormalizer").shape(text::normalise),
        copies("StringSplit").shape(text::split),
        overwrites("TensorScatter", &[0]).shape(like_first),
        copies("TfIdfVectorizer").shape(text::tf_idf).cost(work::one_each_read),
        copies("Tile").inside(inside::repeat).shape(layout::tile).kernel(run::repeat::tile).moves(),
        copies("Transpose")
            .inside(inside::transpose)
            .shape(layout::transpose)
            .kernel(run::transpose::transpose)
            .moves(),
        copies("Unique").shape(select::unique).cost(work::one_each_read),
        row("Unsqueeze", Rule::View).shape(layout::unsqueeze).kernel(run::view::view).moves(),
        copies("Upsample").shape(resize::upsample).cost(work::some_each).kernel(compute::upsample),
    ],
};
