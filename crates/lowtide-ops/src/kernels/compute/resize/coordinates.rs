//! [`Coordinates`]: from a place in the output to a place in the input, along one axis.
//!
//! ~~~text
//! asymmetric      |0   |1   |2        places are corners:  x / scale
//! half_pixel      | 0  | 1  | 2       places are centres:  (x + 0.5) / scale - 0.5
//! align_corners   0    1    2         the first and the last places lie on each other
//! ~~~
//! In single precision, as runtimes calculate.

use crate::kernels::facts::unsupported;
use lowtide_core::operator::NoKernel;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfHalfPixel,
    TfCropAndResize,
}

/// One axis, as it becomes another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) input: f32,
    pub(super) output: f32,
    pub(super) scale: f32,
    /// Where the region begins and ends, from 0 to 1.
    pub(super) region: (f32, f32),
}

impl Coordinates {
    pub(super) fn of(name: &str) -> Result<Self, NoKernel> {
        Ok(match name {
            "half_pixel" => Self::HalfPixel,
            "half_pixel_symmetric" => Self::HalfPixelSymmetric,
            "pytorch_half_pixel" => Self::PytorchHalfPixel,
            "align_corners" => Self::AlignCorners,
            "asymmetric" => Self::Asymmetric,
            "tf_half_pixel_for_nn" => Self::TfHalfPixel,
            "tf_crop_and_resize" => Self::TfCropAndResize,
            other => return unsupported(format!("coordinates {other}")),
        })
    }

    /// The place in the input that a place in the output is taken from.
    pub(super) fn source(self, place: f32, change: Change) -> f32 {
        let Change { input, output, scale, region } = change;
        let half_pixel = (place + 0.5) / scale - 0.5;
        match self {
            Self::HalfPixelSymmetric => {
                // Where the output is a part of a place too short, both ends share it.
                let adjustment = output / (scale * input);
                input / 2.0 * (1.0 - adjustment) + half_pixel
            }
            Self::PytorchHalfPixel if output <= 1.0 => 0.0,
            Self::HalfPixel | Self::PytorchHalfPixel => half_pixel,
            Self::AlignCorners => {
                let last = scale * input - 1.0;
                if last > 0.0 { place * (input - 1.0) / last } else { 0.0 }
            }
            Self::Asymmetric => place / scale,
            Self::TfHalfPixel => (place + 0.5) / scale,
            Self::TfCropAndResize if output <= 1.0 => 0.5 * (region.0 + region.1) * (input - 1.0),
            Self::TfCropAndResize => {
                let step = (region.1 - region.0) * (input - 1.0) / (output - 1.0);
                region.0 * (input - 1.0) + place * step
            }
        }
    }
}
