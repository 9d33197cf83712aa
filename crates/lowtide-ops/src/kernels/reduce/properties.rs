//! Random reductions against plain loops over indices.
//!
//! ~~~text
//! random shape and axes ──kernel──> y
//!                       ──each element to its place in a table──> the same, up to rounding
//! ~~~

use crate::kernels::testing::{floats, numbers};

/// How much of an output place an element is, and to which one it belongs.
fn place(mut at: usize, dims: &[usize], goes: &[bool]) -> usize {
    let (mut place, mut stride) = (0, 1);
    for (&len, &goes) in dims.iter().zip(goes).rev() {
        if !goes {
            place += at % len * stride;
            stride *= len;
        }
        at /= len;
    }
    place
}

fn folded(kind: &str, values: &[f64]) -> f64 {
    let (count, none) = (values.len(), values.is_empty());
    let sum = |term: fn(f64) -> f64| values.iter().map(|&x| term(x)).sum::<f64>();
    match kind {
        "Sum" => sum(|x| x),
        #[expect(clippy::cast_precision_loss, reason = "there are few")]
        "Mean" => sum(|x| x) / count as f64,
        "Prod" => values.iter().product(),
        "L1" => sum(f64::abs),
        "L2" => sum(|x| x * x).sqrt(),
        "SumSquare" => sum(|x| x * x),
        "LogSumExp" => sum(f64::exp).ln(),
        "Max" if none => f64::NEG_INFINITY,
        "Max" => values.iter().copied().reduce(f64::max).unwrap(),
        "Min" if none => f64::INFINITY,
        _ => values.iter().copied().reduce(f64::min).unwrap(),
    }
}

#[test]
fn any_axes_of_any_shape_are_folded() {
    arbtest::arbtest(|u| {
        let kinds = ["Sum", "Mean", "Prod", "L1", "L2", "SumSquare", "LogSumExp", "Max", "Min"];
        let (kind, keeps) = (*u.choose(&kinds)?, u.int_in_range(0..=1)?);
        let rank = u.int_in_range(1..=5)?;
        let mut dims = Vec::new();
        let mut goes = Vec::new();
        for _ in 0..rank {
            dims.push(*u.choose(&[1, 2, 3, 5, 17, 0])?);
            goes.push(u.arbitrary()?);
        }
        let x = numbers(u, dims.iter().product())?;
        let words = |list: Vec<String>| list.join(" ");
        let axes: Vec<String> = (0..rank).filter(|&at| goes[at]).map(|at| at.to_string()).collect();
        let lines = [
            format!(
                "weight x {} = {}",
                words(dims.iter().map(ToString::to_string).collect()),
                words(x.iter().map(ToString::to_string).collect())
            ),
            format!("weight a i64 {} = {}", axes.len(), words(axes)),
            format!("y = Reduce{kind}(x, a) {{keepdims={keeps}, noop_with_empty_axes=1}}"),
        ];
        let kept = dims.iter().zip(&goes).filter(|row| !row.1).map(|row| row.0).product();
        let mut parts = vec![Vec::new(); kept];
        for (at, &value) in x.iter().enumerate() {
            parts[place(at, &dims, &goes)].push(value);
        }
        for (found, part) in floats(&lines).iter().zip(&parts) {
            let wanted = folded(kind, part);
            let is_same = found.is_nan() && wanted.is_nan() || found.to_bits() == wanted.to_bits();
            let is_near = (found - wanted).abs() <= 1e-5 * (1.0 + wanted.abs());
            assert!(is_same || is_near, "{found} and not {wanted}: {lines:?}");
        }
        Ok(())
    });
}
