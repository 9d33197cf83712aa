//! [`Taps`]: along one axis, which elements of the input each place of the output is made of, and how much of each.
//!
//! ~~~text
//! nearest   one element                 linear   two: 1 - r, r
//! cubic     four, of a cubic spline     with antialias, so many more as the output is smaller
//! ~~~
//! Elements beyond the ends are those at the ends, unless they are left out and the others count for more.

use super::coordinates::{Change, Coordinates};
use crate::kernels::facts::unsupported;
use lowtide_core::operator::{KernelError, NoKernel};

/// More entries of a table than any image needs.
const MOST: usize = 1 << 26;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    Nearest(Rounding),
    Linear,
    /// With the parameter of the spline.
    Cubic(f32),
}

/// To which element the nearest one is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    PreferFloor,
    PreferCeil,
    Floor,
    Ceil,
    /// Down; up where the output is smaller.
    Simple,
}

impl Rounding {
    pub(super) fn of(name: &str) -> Result<Self, NoKernel> {
        Ok(match name {
            "round_prefer_floor" => Self::PreferFloor,
            "round_prefer_ceil" => Self::PreferCeil,
            "floor" => Self::Floor,
            "ceil" => Self::Ceil,
            other => return unsupported(format!("rounding {other}")),
        })
    }

    fn round(self, place: f32, scale: f32) -> f32 {
        match self {
            Self::PreferFloor => (place - 0.5).ceil(),
            Self::PreferCeil => (place + 0.5).floor(),
            Self::Simple if scale < 1.0 => place.ceil(),
            Self::Floor | Self::Simple => place.floor(),
            Self::Ceil => place.ceil(),
        }
    }
}

/// The taps of one axis.
#[derive(Debug)]
pub(super) struct Taps {
    pub(super) input: usize,
    pub(super) output: usize,
    /// Elements of a place that there is memory for.
    pub(super) count: usize,
    /// `count` elements for each place, and their weights.
    pub(super) index: Vec<usize>,
    pub(super) weight: Vec<f32>,
    /// Which places are taken from beyond the input, where that is not what is at its end.
    pub(super) is_outside: Vec<bool>,
    /// Whether each place is the element at this place.
    pub(super) is_plain: bool,
    /// Whether elements beyond the ends are left out.
    pub(super) excludes_outside: bool,
    mode: Mode,
    antialiases: bool,
}

impl Taps {
    pub(super) fn new(
        input: usize,
        output: usize,
        mode: Mode,
        antialiases: bool,
    ) -> Result<Self, NoKernel> {
        if input == 0 && output > 0 {
            return Err(NoKernel::Misfit(format!("{output} places of none")));
        }
        // The size may have been rounded up from a little less.
        let least = (number(output) - 0.5) / number(input);
        let count = if antialiases { reach(mode, least).1 } else { reach(mode, 1.0).1 };
        let len = output.checked_mul(count).filter(|&len| len <= MOST);
        let Some(len) = len else { return unsupported(format!("{output} places of {input}")) };
        Ok(Self {
            input,
            output,
            count,
            index: vec![0; len],
            weight: vec![0.0; len],
            is_outside: vec![false; output],
            is_plain: false,
            excludes_outside: false,
            mode,
            antialiases,
        })
    }

    /// The places where elements stand, and those of the taps of one.
    pub(super) fn of(&self, place: usize) -> impl Iterator<Item = (usize, f32)> {
        let range = place * self.count..(place + 1) * self.count;
        let taps = self.index[range.clone()].iter().zip(&self.weight[range]);
        taps.filter(|&(_, &weight)| weight != 0.0).map(|(&index, &weight)| (index, weight))
    }

    /// Fills the table.
    pub(super) fn fill(
        &mut self,
        coordinates: Coordinates,
        scale: f32,
        region: (f32, f32),
    ) -> Result<(), KernelError> {
        let (input, output) = (number(self.input), number(self.output));
        let change = Change { input, output, scale, region };
        let narrowing = if self.antialiases { scale.min(1.0) } else { 1.0 };
        let (first, count) = reach(self.mode, narrowing);
        if count > self.count {
            let message = format!("a scale of {scale}, from {input} to {output} elements");
            return Err(KernelError::Value(message));
        }
        self.is_plain = self.input == self.output;
        for place in 0..self.output {
            let source = coordinates.source(number(place), change);
            let crops = coordinates == Coordinates::TfCropAndResize;
            self.is_outside[place] = crops && !(0.0..=input - 1.0).contains(&source);
            match self.mode {
                Mode::Nearest(rounding) => self.set_nearest(place, rounding.round(source, scale)),
                _ => self.set(place, source, (first, count), narrowing),
            }
            self.is_plain &= !self.is_outside[place] && self.of(place).eq([(place, 1.0)]);
        }
        Ok(())
    }

    fn set_nearest(&mut self, place: usize, source: f32) {
        self.index[place] = self.clamped(source);
        self.weight[place] = 1.0;
    }

    /// The element at a whole place, or at the end of the input that it lies behind.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped")]
    fn clamped(&self, place: f32) -> usize {
        (place.max(0.0) as usize).min(self.input.saturating_sub(1))
    }

    /// The elements around a place, the first one so far before it.
    fn set(&mut self, place: usize, source: f32, (first, count): (f32, usize), narrowing: f32) {
        let whole = source.floor();
        let range = place * self.count..(place + 1) * self.count;
        self.weight[range.clone()].fill(0.0);
        let mut total = 0.0;
        for (step, at) in range.clone().take(count).enumerate() {
            let element = whole + first + number(step);
            let is_inside = (0.0..number(self.input)).contains(&element);
            let weight = weight(self.mode, (element - source) * narrowing);
            self.index[at] = self.clamped(element);
            self.weight[at] = if is_inside || !self.excludes_outside { weight } else { 0.0 };
            total += self.weight[at];
        }
        let is_whole = !self.excludes_outside && !self.antialiases;
        if total != 0.0 && !is_whole {
            self.weight[range].iter_mut().for_each(|weight| *weight /= total);
        }
    }
}

/// The first element before a place, and how many there are, where so many fewer places are wanted.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and is checked"
)]
fn reach(mode: Mode, scale: f32) -> (f32, usize) {
    let side: f32 = match mode {
        Mode::Nearest(_) => return (0.0, 1),
        Mode::Linear => 1.0,
        Mode::Cubic(_) => 2.0,
    };
    let scale = if scale > 0.0 { scale.min(1.0) } else { 1.0 };
    let first = (-side / scale).floor() + 1.0;
    (first, (2.0 - 2.0 * first) as usize)
}

/// How much an element counts at this distance.
fn weight(mode: Mode, distance: f32) -> f32 {
    let x = distance.abs();
    match mode {
        Mode::Nearest(_) => 1.0,
        Mode::Linear => (1.0 - x).max(0.0),
        Mode::Cubic(a) if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
        Mode::Cubic(a) if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
        Mode::Cubic(_) => 0.0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "as runtimes do")]
fn number(value: usize) -> f32 {
    value as f32
}
