//! Operators that move elements or make them, but compute nothing with them.
//!
//! ~~~text
//! Reshape x[2,3] -> y[6]     the same bytes: a view
//! Transpose, Concat          other places: a copy
//! ScatterND data -> y        a copy of `data` with some elements replaced: it may lie on `data`
//! ~~~

use super::Table;
use crate::declaration::{Rule, copies, overwrites, row};
use crate::shapes::{layout, like_first};

/// The rows.
pub(super) static TABLE: Table = &[
    copies("AffineGrid"),
    copies("Bernoulli"),
    copies("CenterCropPad"),
    copies("Col2Im"),
    copies("Compress"),
    copies("Concat").shape(layout::concat),
    copies("Constant"),
    copies("ConstantOfShape").shape(layout::constant_of_shape),
    copies("DepthToSpace"),
    row("Dropout", Rule::ViewWhenInferring).shape(layout::dropout),
    copies("Expand").shape(layout::expand),
    copies("EyeLike"),
    row("Flatten", Rule::View).shape(layout::flatten),
    copies("Gather").shape(layout::gather),
    copies("GatherElements"),
    copies("GatherND"),
    copies("GridSample"),
    row("Identity", Rule::View).shape(layout::identity),
    copies("ImageDecoder"),
    copies("Multinomial"),
    copies("NonZero"),
    copies("OneHot"),
    copies("Pad"),
    copies("RandomNormal"),
    copies("RandomNormalLike"),
    copies("RandomUniform"),
    copies("RandomUniformLike"),
    copies("Range").shape(layout::range),
    copies("RegexFullMatch"),
    row("Reshape", Rule::View).shape(layout::reshape),
    copies("Resize"),
    copies("ReverseSequence").shape(like_first),
    overwrites("Scatter", &[0]).shape(like_first),
    overwrites("ScatterElements", &[0]).shape(like_first),
    overwrites("ScatterND", &[0]).shape(like_first),
    copies("Shape").shape(layout::shape),
    copies("Size").shape(layout::size),
    copies("Slice").shape(layout::slice),
    copies("SpaceToDepth"),
    copies("Split").shape(layout::split),
    row("Squeeze", Rule::View).shape(layout::squeeze),
    copies("StringConcat"),
    copies("StringNormalizer"),
    copies("StringSplit"),
    overwrites("TensorScatter", &[0]).shape(like_first),
    copies("TfIdfVectorizer"),
    copies("Tile").shape(layout::tile),
    copies("Transpose").shape(layout::transpose),
    copies("Unique"),
    row("Unsqueeze", Rule::View).shape(layout::unsqueeze),
    copies("Upsample"),
];
