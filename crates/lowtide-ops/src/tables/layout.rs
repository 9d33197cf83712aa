//! Operators that move elements or make them, but compute nothing with them.
//!
//! ~~~text
//! Reshape x[2,3] -> y[6]     the same bytes: a view
//! Transpose, Concat          other places: a copy
//! ScatterND data -> y        a copy of `data` with some elements replaced: it may lie on `data`
//! ~~~

use super::Table;
use crate::declaration::{Declaration, Rule, copies, overwrites};

/// The rows.
pub(super) static TABLE: Table = &[
    copies("AffineGrid"),
    copies("Bernoulli"),
    copies("CenterCropPad"),
    copies("Col2Im"),
    copies("Compress"),
    copies("Concat"),
    copies("Constant"),
    copies("ConstantOfShape"),
    copies("DepthToSpace"),
    Declaration { kind: "Dropout", rule: Rule::ViewWhenInferring },
    copies("Expand"),
    copies("EyeLike"),
    Declaration { kind: "Flatten", rule: Rule::View },
    copies("Gather"),
    copies("GatherElements"),
    copies("GatherND"),
    copies("GridSample"),
    Declaration { kind: "Identity", rule: Rule::View },
    copies("ImageDecoder"),
    copies("Multinomial"),
    copies("NonZero"),
    copies("OneHot"),
    copies("Pad"),
    copies("RandomNormal"),
    copies("RandomNormalLike"),
    copies("RandomUniform"),
    copies("RandomUniformLike"),
    copies("Range"),
    copies("RegexFullMatch"),
    Declaration { kind: "Reshape", rule: Rule::View },
    copies("Resize"),
    copies("ReverseSequence"),
    overwrites("Scatter", &[0]),
    overwrites("ScatterElements", &[0]),
    overwrites("ScatterND", &[0]),
    copies("Shape"),
    copies("Size"),
    copies("Slice"),
    copies("SpaceToDepth"),
    copies("Split"),
    Declaration { kind: "Squeeze", rule: Rule::View },
    copies("StringConcat"),
    copies("StringNormalizer"),
    copies("StringSplit"),
    overwrites("TensorScatter", &[0]),
    copies("TfIdfVectorizer"),
    copies("Tile"),
    copies("Transpose"),
    copies("Unique"),
    Declaration { kind: "Unsqueeze", rule: Rule::View },
    copies("Upsample"),
];
