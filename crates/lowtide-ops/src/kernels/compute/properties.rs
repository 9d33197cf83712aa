//! Random products and convolutions against plain loops over indices.
//!
//! ~~~text
//! random sizes, strides, pads, groups ──kernel──> y
//!                                     ──loops───> the same, up to rounding
//! ~~~

use crate::kernels::testing::{floats, numbers};
use arbitrary::{Result, Unstructured};

/// For each property; most of a case is the making of the model.
const BUDGET: u64 = 500;

fn arbitrary_of(u: &mut Unstructured<'_>, low: usize, high: usize) -> Result<usize> {
    u.int_in_range(low..=high)
}

/// Whether two results are the same up to rounding.
#[track_caller]
fn assert_near(found: &[f64], wanted: &[f64], lines: &[String]) {
    assert_eq!(found.len(), wanted.len(), "{lines:?}");
    for (found, wanted) in found.iter().zip(wanted) {
        let is_near = (found - wanted).abs() <= 1e-4 * (1.0 + wanted.abs());
        assert!(is_near, "{found} and not {wanted}: {lines:?}");
    }
}

fn weight(name: &str, dtype: &str, dims: &[usize], values: &[f64]) -> String {
    let text = |list: &[String]| list.join(" ");
    let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    format!("weight {name} {dtype} {} = {}", text(&dims), text(&values))
}

/// Axes for a stack, where some are 1.
fn stack(u: &mut Unstructured<'_>, full: &[usize]) -> Result<Vec<usize>> {
    let kept = arbitrary_of(u, 0, full.len())?;
    let dims = &full[full.len() - kept..];
    dims.iter().map(|&len| Ok(if u.arbitrary()? { len } else { 1 })).collect()
}

#[test]
fn products_are_sums_over_the_inner_index() {
    arbtest::arbtest(|u| {
        let (m, k, n) = (arbitrary_of(u, 0, 9)?, arbitrary_of(u, 0, 40)?, arbitrary_of(u, 0, 40)?);
        let full = [arbitrary_of(u, 1, 3)?, arbitrary_of(u, 1, 3)?];
        let (mut a, mut b) = (stack(u, &full)?, stack(u, &full)?);
        let dtype = *u.choose(&["f32", "f64", "i32"])?;
        let outer = outer_of(&a, &b);
        let (a_stack, b_stack) = (a.clone(), b.clone());
        a.extend([m, k]);
        b.extend([k, n]);
        let (x, y) = (numbers(u, a.iter().product())?, numbers(u, b.iter().product())?);
        let lines =
            [weight("a", dtype, &a, &x), weight("b", dtype, &b, &y), "y = MatMul(a, b)".to_owned()];
        let mut wanted = Vec::new();
        for at in 0..outer.iter().product() {
            let (x, y) = (
                &x[place(at, &outer, &a_stack) * m * k..],
                &y[place(at, &outer, &b_stack) * k * n..],
            );
            for (row, col) in (0..m * n).map(|at| (at / n, at % n)) {
                wanted.push((0..k).map(|inner| x[row * k + inner] * y[inner * n + col]).sum());
            }
        }
        assert_near(&floats(&lines), &wanted, &lines);
        Ok(())
    })
    .budget_ms(BUDGET);
}

fn outer_of(a: &[usize], b: &[usize]) -> Vec<usize> {
    let of = |dims: &[usize], back: usize| dims.len().checked_sub(back).map_or(1, |at| dims[at]);
    (1..=a.len().max(b.len())).rev().map(|back| of(a, back).max(of(b, back))).collect()
}

/// Which matrix of a stack belongs to place `at` of the broadcast one.
fn place(at: usize, outer: &[usize], own: &[usize]) -> usize {
    let (mut at, mut place, mut stride) = (at, 0, 1);
    for (back, &len) in outer.iter().rev().enumerate() {
        let own = own.len().checked_sub(back + 1).map_or(1, |at| own[at]);
        place += if own == 1 { 0 } else { at % len } * stride;
        stride *= own;
        at /= len;
    }
    place
}

#[test]
fn either_side_of_a_product_may_be_turned() {
    arbtest::arbtest(|u| {
        let (m, k, n) = (arbitrary_of(u, 1, 20)?, arbitrary_of(u, 1, 20)?, arbitrary_of(u, 1, 40)?);
        let (turns_a, turns_b): (bool, bool) = (u.arbitrary()?, u.arbitrary()?);
        let (a, b, c) = (numbers(u, m * k)?, numbers(u, k * n)?, numbers(u, m * n)?);
        let c_dims = u.choose(&[vec![m, n], vec![n], vec![m, 1], vec![1]])?.clone();
        let sides = [if turns_a { [k, m] } else { [m, k] }, if turns_b { [n, k] } else { [k, n] }];
        let lines = [
            weight("a", "f32", &sides[0], &a),
            weight("b", "f32", &sides[1], &b),
            weight("c", "f32", &c_dims, &c[..c_dims.iter().product()]),
            format!(
                "y = Gemm(a, b, c) {{transA={}, transB={}, alpha=0.5, beta=2.0}}",
                u8::from(turns_a),
                u8::from(turns_b)
            ),
        ];
        let mut wanted = Vec::new();
        for (row, col) in (0..m * n).map(|at| (at / n, at % n)) {
            let a_at = |inner: usize| a[if turns_a { inner * m + row } else { row * k + inner }];
            let b_at = |inner: usize| b[if turns_b { col * k + inner } else { inner * n + col }];
            let c_at = match c_dims[..] {
                [_, 1] => row,
                [1] => 0,
                [_] => col,
                _ => row * n + col,
            };
            let sum: f64 = (0..k).map(|inner| a_at(inner) * b_at(inner)).sum();
            wanted.push(0.5 * sum + 2.0 * c[c_at]);
        }
        assert_near(&floats(&lines), &wanted, &lines);
        Ok(())
    })
    .budget_ms(BUDGET);
}

/// A convolution over one or two axes.
#[derive(Debug)]
struct Case {
    batch: usize,
    groups: usize,
    channels: usize,
    filters: usize,
    /// Input, kernel, stride, dilation, pad before and after, of each axis.
    axes: Vec<[usize; 6]>,
}

impl Case {
    fn arbitrary(u: &mut Unstructured<'_>) -> Result<Self> {
        let rank = arbitrary_of(u, 1, 2)?;
        let axis = |u: &mut Unstructured<'_>| {
            let (kernel, dilation) = (arbitrary_of(u, 1, 5)?, arbitrary_of(u, 1, 2)?);
            let (before, after) = (arbitrary_of(u, 0, 3)?, arbitrary_of(u, 0, 3)?);
            let least = ((kernel - 1) * dilation + 1).saturating_sub(before + after).max(1);
            let input = arbitrary_of(u, least, least + 12)?;
            Ok([input, kernel, arbitrary_of(u, 1, 3)?, dilation, before, after])
        };
        Ok(Self {
            batch: arbitrary_of(u, 1, 2)?,
            groups: arbitrary_of(u, 1, 3)?,
            channels: arbitrary_of(u, 1, 3)?,
            filters: arbitrary_of(u, 1, 4)?,
            axes: (0..rank).map(|_| axis(u)).collect::<Result<_>>()?,
        })
    }

    /// Channels apart, with the kernel that most of such have.
    fn by_channel(u: &mut Unstructured<'_>) -> Result<Self> {
        let stride = arbitrary_of(u, 1, 2)?;
        let axis = |u: &mut Unstructured<'_>| {
            let before = *u.choose(&[1, 1, 1, 0])?;
            Ok([arbitrary_of(u, 2, 20)?, 3, stride, 1, before, 1])
        };
        let (batch, groups) = (arbitrary_of(u, 1, 2)?, arbitrary_of(u, 1, 4)?);
        let axes = vec![axis(u)?, axis(u)?];
        Ok(Self { batch, groups, channels: 1, filters: 1, axes })
    }

    /// The same as two axes.
    fn plane(&self) -> [[usize; 6]; 2] {
        match self.axes[..] {
            [width] => [[1, 1, 1, 1, 0, 0], width],
            _ => [self.axes[0], self.axes[1]],
        }
    }

    fn attributes(&self) -> String {
        let list = |of: usize| self.axes.iter().map(move |axis| axis[of].to_string());
        let text = |words: Vec<String>| words.join(", ");
        format!(
            "group={}, strides=[{}], dilations=[{}], pads=[{}]",
            self.groups,
            text(list(2).collect()),
            text(list(3).collect()),
            text(list(4).chain(list(5)).collect()),
        )
    }

    fn dims(&self, outer: [usize; 2], of: usize) -> Vec<usize> {
        outer.into_iter().chain(self.axes.iter().map(|axis| axis[of])).collect()
    }
}

fn windows(&[input, kernel, stride, dilation, before, after]: &[usize; 6]) -> usize {
    (input + before + after - (kernel - 1) * dilation - 1) / stride + 1
}

/// Calls a function with each filter, channel in its group, place of the output, place of the input and tap.
fn each_product(case: &Case, mut call: impl FnMut([usize; 2], [usize; 2], [usize; 2])) {
    let [height, width] = case.plane();
    let (rows, cols) = (windows(&height), windows(&width));
    let inside = |axis: &[usize; 6], window: usize, tap: usize| {
        (window * axis[2] + tap * axis[3]).checked_sub(axis[4]).filter(|&at| at < axis[0])
    };
    let planes = case.batch * case.groups * case.filters * case.channels;
    let taps = height[1] * width[1];
    for at in 0..planes * rows * cols * taps {
        let (tap, window, plane) =
            (at % taps, at / taps % (rows * cols), at / (taps * rows * cols));
        let y = inside(&height, window / cols, tap / width[1]);
        let x = inside(&width, window % cols, tap % width[1]);
        let (Some(y), Some(x)) = (y, x) else { continue };
        let (channel, filter) = (plane % case.channels, plane / case.channels);
        call([filter, channel], [window, y * width[0] + x], [tap, rows * cols]);
    }
}

#[test]
fn convolutions_are_sums_over_taps() {
    arbtest::arbtest(|u| {
        let case = if u.arbitrary()? { Case::by_channel(u)? } else { Case::arbitrary(u)? };
        let Case { batch, groups, channels, filters, .. } = case;
        let x_dims = case.dims([batch, groups * channels], 0);
        let w_dims = case.dims([groups * filters, channels], 1);
        let x = numbers(u, x_dims.iter().product())?;
        let w = numbers(u, w_dims.iter().product())?;
        let bias = numbers(u, groups * filters)?;
        let dtype = *u.choose(&["f32", "f32", "f64"])?;
        let lines = [
            weight("x", dtype, &x_dims, &x),
            weight("w", dtype, &w_dims, &w),
            weight("b", dtype, &[groups * filters], &bias),
            format!("y = Conv(x, w, b) {{{}}}", case.attributes()),
        ];
        let [height, width] = case.plane();
        let (image, taps) = (height[0] * width[0], height[1] * width[1]);
        let places = windows(&height) * windows(&width);
        let mut wanted: Vec<f64> = (0..batch * groups * filters * places)
            .map(|at| bias[at / places % (groups * filters)])
            .collect();
        each_product(&case, |[filter, channel], [window, place], [tap, places]| {
            let x_plane = filter / filters * channels + channel;
            let w_plane = filter % (groups * filters) * channels + channel;
            wanted[filter * places + window] +=
                x[x_plane * image + place] * w[w_plane * taps + tap];
        });
        assert_near(&floats(&lines), &wanted, &lines);
        Ok(())
    })
    .budget_ms(BUDGET);
}

#[test]
fn transposed_convolutions_are_the_way_back() {
    arbtest::arbtest(|u| {
        let case = Case::arbitrary(u)?;
        let Case { batch, groups, channels, filters, .. } = case;
        // Its input has a place for each window, its output the places that they slide over.
        let [height, width] = case.plane();
        let x_dims: Vec<usize> =
            [batch, groups * filters].into_iter().chain(case.axes.iter().map(windows)).collect();
        let w_dims = case.dims([groups * filters, channels], 1);
        let x = numbers(u, x_dims.iter().product())?;
        let w = numbers(u, w_dims.iter().product())?;
        let extra: Vec<String> = case.axes.iter().map(|axis| leftover(axis).to_string()).collect();
        let lines = [
            weight("x", "f32", &x_dims, &x),
            weight("w", "f32", &w_dims, &w),
            format!(
                "y = ConvTranspose(x, w) {{{}, output_padding=[{}]}}",
                case.attributes(),
                extra.join(", ")
            ),
        ];
        let (image, taps) = (height[0] * width[0], height[1] * width[1]);
        let mut wanted = vec![0.0; batch * groups * channels * image];
        each_product(&case, |[filter, channel], [window, place], [tap, places]| {
            let plane = filter / filters * channels + channel;
            let w_plane = filter % (groups * filters) * channels + channel;
            wanted[plane * image + place] += x[filter * places + window] * w[w_plane * taps + tap];
        });
        assert_near(&floats(&lines), &wanted, &lines);
        Ok(())
    })
    .budget_ms(BUDGET);
}

/// Places at the end that no window reaches.
fn leftover(&[input, kernel, stride, dilation, before, after]: &[usize; 6]) -> usize {
    (input + before + after - (kernel - 1) * dilation - 1) % stride
}
