//! [`Given`]: scales, sizes and the region of a call, from attributes or inputs.
//!
//! ~~~text
//! scales [1, 1, 2, 2]        as they are
//! sizes  [1, 3, 64, 64]      size / length of the input; one for all axes where the aspect is kept
//! roi    [starts, ends]      where the region begins and ends
//! ~~~
//! An entry an axis, or one for each that an attribute lists.

use crate::kernels::facts::input_dims;
use lowtide_core::operator::{Call, KernelError, NoKernel, Operands, call};

/// Where they come from.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// Axes that entries belong to, in their order.
    axes: Vec<usize>,
    /// Scales that are attributes.
    listed: Vec<f32>,
    /// Inputs that are there and not empty.
    scales: Option<usize>,
    sizes: Option<usize>,
    region: Option<usize>,
    /// Which scale all axes have.
    shared: Option<fn(f32, f32) -> f32>,
}

impl Given {
    pub(super) fn of_resize(call: &Call<'_>) -> Result<Self, NoKernel> {
        let rank = input_dims(call, 0)?.len();
        let axes = match call.ints("axes") {
            Some(list) => list.iter().map(|&at| call::axis(at, rank)).collect::<Result<_, _>>()?,
            None => (0..rank).collect(),
        };
        if call.opset < 11 {
            return Ok(Self { axes, scales: Some(1), ..Self::default() });
        }
        let filled = |at: usize| {
            let count = call.input(at).element_count();
            (call.has(at) && count.is_some_and(|count| count > 0)).then_some(at)
        };
        let shared: Option<fn(f32, f32) -> f32> = match call.text("keep_aspect_ratio_policy") {
            Some("not_larger") => Some(f32::min),
            Some("not_smaller") => Some(f32::max),
            _ => None,
        };
        let given = Self {
            axes,
            listed: Vec::new(),
            region: filled(1),
            scales: filled(2),
            sizes: filled(3),
            shared,
        };
        given.check(call)
    }

    pub(super) fn of_upsample(call: &Call<'_>) -> Result<Self, NoKernel> {
        let axes = (0..input_dims(call, 0)?.len()).collect();
        if let Some(list) = call.floats("scales") {
            return Self { axes, listed: list.to_vec(), ..Self::default() }.check(call);
        }
        if let (Some(height), Some(width)) = (call.float("height_scale"), call.float("width_scale"))
        {
            let listed = vec![1.0, 1.0, height, width];
            return Self { axes, listed, ..Self::default() }.check(call);
        }
        Self { axes, scales: Some(1), ..Self::default() }.check(call)
    }

    fn check(self, call: &Call<'_>) -> Result<Self, NoKernel> {
        let lists = [(self.scales, 1), (self.sizes, 1), (self.region, 2)];
        for (at, each) in lists.into_iter().filter_map(|(at, each)| Some((at?, each))) {
            // A region that nothing is taken from may be of any length.
            let is_used = each == 1
                || call.text("coordinate_transformation_mode") == Some("tf_crop_and_resize");
            let found = input_dims(call, at)?.iter().product::<usize>();
            if is_used && found != each * self.axes.len() {
                return Err(NoKernel::Misfit(format!("input {at} has {found} elements")));
            }
        }
        if self.scales.is_none() && self.sizes.is_none() && self.listed.len() != self.axes.len() {
            return Err(NoKernel::Misfit("neither scales nor sizes for all axes".to_owned()));
        }
        Ok(self)
    }

    /// What they are in this run.
    pub(super) fn values<'a>(&'a self, operands: &Operands<'a>) -> Result<Values<'a>, KernelError> {
        let floats = |at: Option<usize>| at.map(|at| operands.input(at)?.values::<f32>());
        let sizes = self.sizes.map(|at| operands.input(at)?.values::<i64>()).transpose()?;
        let scales = floats(self.scales).transpose()?;
        let shared = match (self.shared, sizes) {
            (Some(choose), Some(sizes)) => {
                let dims = operands.input(0)?.dims;
                let ratio = |(&axis, &size): (&usize, &i64)| ratio(size, dims[axis]);
                self.axes.iter().zip(sizes).map(ratio).reduce(choose)
            }
            _ => None,
        };
        Ok(Values {
            axes: &self.axes,
            scales: scales.unwrap_or(&self.listed),
            sizes,
            shared,
            region: floats(self.region).transpose()?,
        })
    }
}

/// Scales, sizes and region of a run.
pub(super) struct Values<'a> {
    axes: &'a [usize],
    scales: &'a [f32],
    sizes: Option<&'a [i64]>,
    /// The scale of all axes that are listed, where they share one.
    shared: Option<f32>,
    region: Option<&'a [f32]>,
}

impl Values<'_> {
    fn entry(&self, axis: usize) -> Option<usize> {
        self.axes.iter().position(|&listed| listed == axis)
    }

    /// The scale of an axis, which has to fit to the length that was planned.
    pub(super) fn scale(
        &self,
        axis: usize,
        input: usize,
        output: usize,
    ) -> Result<f32, KernelError> {
        let misfit = |what: &str| {
            KernelError::Value(format!("{what} along axis {axis}, from {input} to {output}"))
        };
        let Some(entry) = self.entry(axis) else { return Ok(1.0) };
        if let Some(scale) = self.shared {
            return Ok(scale);
        }
        if let Some(&size) = self.sizes.and_then(|sizes| sizes.get(entry)) {
            let fits = usize::try_from(size) == Ok(output);
            return if fits {
                Ok(ratio(size, input))
            } else {
                Err(misfit("another size than planned"))
            };
        }
        let scale = self.scales.get(entry).copied().filter(|&scale| scale > 0.0);
        scale.ok_or_else(|| misfit("no scale above 0"))
    }

    /// Where the region begins and ends along an axis.
    pub(super) fn region(&self, axis: usize) -> (f32, f32) {
        let ends = |entry: usize| {
            let region = self.region?;
            Some((*region.get(entry)?, *region.get(self.axes.len() + entry)?))
        };
        self.entry(axis).and_then(ends).unwrap_or((0.0, 1.0))
    }
}

#[expect(clippy::cast_precision_loss, reason = "as runtimes do")]
fn ratio(size: i64, input: usize) -> f32 {
    size as f32 / input as f32
}
