//! `Resize` and `Upsample`: an image in, the same image with other numbers of places along some axes out.
//!
//! ~~~text
//! output place ──coordinates──> place in the input ──taps──> a few elements with weights, for each axis
//! output row = sum over the taps of the outer axes of (row of the input ──taps of the last axis)
//! ~~~
//! Scales, sizes and the region may come from other operators, so the tables of taps are filled when it runs, into
//! memory that is there from the start.

mod apply;
mod coordinates;
mod given;
mod taps;
#[cfg(test)]
mod tests;

use self::coordinates::Coordinates;
use self::given::Given;
use self::taps::{Mode, Rounding, Taps};
use crate::kernels::facts::{input_dims, output_dims, unsupported};
use crate::kernels::function;
use crate::kernels::number::{Number, Real, by_type};
use crate::kernels::reduce::check_rank;
use lowtide_core::operator::{Call, Fact, Kernel, KernelError, NoKernel, Operands};

pub(crate) fn resize(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let coordinates = match (call.opset, call.text("coordinate_transformation_mode")) {
        (..11, _) => Coordinates::Asymmetric,
        (_, None) => Coordinates::HalfPixel,
        (_, Some(name)) => Coordinates::of(name)?,
    };
    let rounding = match (call.opset, call.text("nearest_mode")) {
        (..11, _) => Rounding::Simple,
        (_, None) => Rounding::PreferFloor,
        (_, Some(name)) => Rounding::of(name)?,
    };
    let given = Given::of_resize(call)?;
    make(call, outputs, Kind { coordinates, mode: mode(call, rounding)?, given })
}

pub(crate) fn upsample(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let given = Given::of_upsample(call)?;
    let mode = mode(call, Rounding::Floor)?;
    make(call, outputs, Kind { coordinates: Coordinates::Asymmetric, mode, given })
}

fn mode(call: &Call<'_>, rounding: Rounding) -> Result<Mode, NoKernel> {
    match call.text("mode").unwrap_or("nearest") {
        "nearest" => Ok(Mode::Nearest(rounding)),
        "linear" | "bilinear" | "trilinear" => Ok(Mode::Linear),
        "cubic" => Ok(Mode::Cubic(call.float("cubic_coeff_a").unwrap_or(-0.75))),
        other => unsupported(format!("mode {other}")),
    }
}

/// How places are found, and elements between places.
struct Kind {
    coordinates: Coordinates,
    mode: Mode,
    given: Given,
}

fn make(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
    kind: Kind,
) -> Result<Box<dyn Kernel>, NoKernel> {
    let (x, out) = (input_dims(call, 0)?, output_dims(outputs, 0)?);
    check_rank(&x)?;
    if x.len() != out.len() {
        return Err(NoKernel::Misfit(format!("{x:?} cannot become {out:?}")));
    }
    let is_nearest = matches!(kind.mode, Mode::Nearest(_));
    let antialiases = call.flag("antialias") && !is_nearest;
    let mut axes = Vec::new();
    for (&input, &output) in x.iter().zip(&out) {
        let mut taps = Taps::new(input, output, kind.mode, antialiases)?;
        taps.excludes_outside = call.flag("exclude_outside");
        axes.push(taps);
    }
    let extrapolated = call.float("extrapolation_value").unwrap_or(0.0);
    let resize = Resize { kind, axes, extrapolated };
    if is_nearest {
        return by_type!(
            call.dtype(0),
            [F32: f32, F64: f64, I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64, Bool: u8],
            nearest(resize)
        );
    }
    by_type!(call.dtype(0), [F32: f32, F64: f64], interpolated(resize))
}

struct Resize {
    kind: Kind,
    axes: Vec<Taps>,
    extrapolated: f32,
}

fn nearest<T: Number>(mut resize: Resize) -> Box<dyn Kernel> {
    function(move |operands| {
        resize.fill(operands)?;
        let x = operands.input(0)?.values::<T>()?;
        let outside = T::of_f64(resize.extrapolated.into());
        apply::nearest(&resize.axes, x, operands.values_mut::<T>(0)?, outside);
        Ok(())
    })
}

fn interpolated<T: Real>(mut resize: Resize) -> Box<dyn Kernel> {
    function(move |operands| {
        resize.fill(operands)?;
        let x = operands.input(0)?.values::<T>()?;
        let outside = T::of_f64(resize.extrapolated.into());
        apply::interpolate(&resize.axes, x, operands.values_mut::<T>(0)?, outside);
        Ok(())
    })
}

impl Resize {
    /// Fills the tables for what this run is given.
    fn fill(&mut self, operands: &Operands<'_>) -> Result<(), KernelError> {
        let Kind { coordinates, given, .. } = &self.kind;
        let values = given.values(operands)?;
        for (axis, taps) in self.axes.iter_mut().enumerate() {
            let scale = values.scale(axis, taps.input, taps.output)?;
            let region = values.region(axis);
            taps.fill(*coordinates, scale, region)?;
        }
        Ok(())
    }
}
