//! Windows that slide over axes: attributes of convolutions and pools in, extents of the output out.
//!
//! ~~~text
//! pad |x x x x x x| pad        kernel 3, stride 2, pads (1, 1):  floor((6 + 2 - 3)/2) + 1 = 3 windows
//!  [~~~]   [~~~]
//!      [~~~]                   a dilation d spreads a kernel k over (k - 1)*d + 1
//! ~~~

use super::{add, div, mul, number, sub, whole};
use crate::call::{Call, Misfit};
use crate::expr::Expr;
use crate::fact::Extent;

/// What the attributes say of the windows, an entry an axis.
pub(super) struct Windows {
    pub(super) kernel: Vec<Extent>,
    pub(super) strides: Vec<i64>,
    pub(super) dilations: Vec<i64>,
    pub(super) padding: Padding,
}

/// How the ends of an axis are padded.
pub(super) enum Padding {
    /// By these many elements, before and after.
    Explicit(Vec<(i64, i64)>),
    /// So that the strides alone decide how many windows there are.
    Same,
}

impl Windows {
    /// Reads strides, dilations and pads of windows of these extents.
    pub(super) fn read(call: &Call<'_>, kernel: Vec<Extent>) -> Result<Self, Misfit> {
        let rank = kernel.len();
        let strides = positive(call, "strides", rank)?;
        let dilations = positive(call, "dilations", rank)?;
        Ok(Self { kernel, strides, dilations, padding: padding(call, rank)? })
    }

    /// How far a window reaches along an axis.
    pub(super) fn reach(&self, axis: usize) -> Extent {
        let steps = sub(&self.kernel[axis], &whole(1));
        add(&mul(&steps, &whole(self.dilations[axis])), &whole(1))
    }

    /// How many windows fit along each axis.
    pub(super) fn fit(&self, input: &[Extent]) -> Result<Vec<Extent>, Misfit> {
        input.iter().enumerate().map(|(axis, len)| self.fit_axis(axis, len, false)).collect()
    }

    /// The same, where the last window may hang over the end (but not begin there).
    pub(super) fn fit_hanging_over(&self, input: &[Extent]) -> Result<Vec<Extent>, Misfit> {
        input.iter().enumerate().map(|(axis, len)| self.fit_axis(axis, len, true)).collect()
    }

    fn fit_axis(&self, axis: usize, len: &Extent, hangs: bool) -> Result<Extent, Misfit> {
        let stride = self.strides[axis];
        let Padding::Explicit(pads) = &self.padding else {
            return Ok(div(&add(len, &whole(stride - 1)), stride));
        };
        let (before, after) = pads[axis];
        let padded = add(&add(len, &whole(before)), &whole(after));
        let reach = self.reach(axis);
        let room = sub(&padded, &reach);
        if let (Some(room), Some(padded), Some(reach)) =
            (number(&room), number(&padded), number(&reach))
            && room < 0
        {
            return Err(Misfit(format!("a window of {reach} does not fit into {padded}")));
        }
        if !hangs {
            return Ok(add(&div(&room, stride), &whole(1)));
        }
        let all = add(&div(&add(&room, &whole(stride - 1)), stride), &whole(1));
        Ok(self.drop_outer(axis, len, all))
    }

    /// A last window that would begin in the padding behind the input does not count.
    fn drop_outer(&self, axis: usize, len: &Extent, all: Extent) -> Extent {
        let Padding::Explicit(pads) = &self.padding else { return all };
        let (before, after) = pads[axis];
        let stride = self.strides[axis];
        let reach = number(&self.reach(axis))?;
        if after.checked_add(stride)? <= reach {
            return all;
        }
        let begin = add(len, &whole(before.checked_add(stride - 1)?));
        let inside = div(&begin, stride);
        if after > reach {
            // So wide a padding can hold several windows, of which only the last one is dropped.
            let (all, inside) = (number(&all)?, number(&inside)?);
            return whole(if all > inside { all - 1 } else { all });
        }
        all?.smaller(&inside?)
    }

    /// The extents that these windows leave when each is put down instead of taken.
    pub(super) fn spread(&self, input: &[Extent], extra: &[i64]) -> Vec<Extent> {
        let one = |(axis, len): (usize, &Extent)| {
            let stride = whole(self.strides[axis]);
            let Padding::Explicit(pads) = &self.padding else { return mul(len, &stride) };
            let (before, after) = pads[axis];
            let last = mul(&sub(len, &whole(1)), &stride);
            let end = add(&add(&last, &self.reach(axis)), &whole(extra[axis]));
            sub(&sub(&end, &whole(before)), &whole(after))
        };
        input.iter().enumerate().map(one).collect()
    }
}

/// A list of numbers from 1 up, an entry an axis; all 1 if it is absent.
fn positive(call: &Call<'_>, name: &str, rank: usize) -> Result<Vec<i64>, Misfit> {
    let Some(list) = call.ints(name) else { return Ok(vec![1; rank]) };
    check_len(name, list.len(), rank)?;
    match list.iter().find(|&&value| value < 1) {
        Some(value) => Err(Misfit(format!("{name} has {value}, wanted 1 or more"))),
        None => Ok(list.to_vec()),
    }
}

/// A list has an entry for each axis.
pub(super) fn check_len(name: &str, found: usize, wanted: usize) -> Result<(), Misfit> {
    if found == wanted {
        return Ok(());
    }
    Err(Misfit(format!("{name} has {found} entries, wanted {wanted}")))
}

fn padding(call: &Call<'_>, rank: usize) -> Result<Padding, Misfit> {
    match call.text("auto_pad") {
        Some("SAME_UPPER" | "SAME_LOWER") => return Ok(Padding::Same),
        Some("VALID") => return Ok(Padding::Explicit(vec![(0, 0); rank])),
        _ => {}
    }
    let Some(list) = call.ints("pads") else { return Ok(Padding::Explicit(vec![(0, 0); rank])) };
    check_len("pads", list.len(), 2 * rank)?;
    let (before, after) = list.split_at(rank);
    Ok(Padding::Explicit(before.iter().copied().zip(after.iter().copied()).collect()))
}

/// The extents of the kernel as an attribute has them.
pub(super) fn kernel_shape(call: &Call<'_>) -> Option<Vec<Extent>> {
    Some(call.ints("kernel_shape")?.iter().map(|&len| Some(Expr::Known(len))).collect())
}
