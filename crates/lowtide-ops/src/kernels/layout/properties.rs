//! Random shapes and parameters against an oracle, which says for each index of the result which element it is.
//!
//! ~~~text
//! Slice of x [5, 3], axis 0 from 4 to 0 by -2      y[i, j] = x[4 - 2 * i, j]
//! ~~~
//! Elements of `x` are numbered, so the result shows where each came from.

use crate::kernels::testing::{execute, runs};
use crate::testing::model;
use arbitrary::{Result, Unstructured};

fn words<T: ToString>(all: &[T], between: &str) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join(between)
}

/// Up to four short axes, or two longer ones.
fn shape(u: &mut Unstructured<'_>, least: usize) -> Result<Vec<usize>> {
    let (rank, most) = if u.ratio(1, 4)? { (2, 20) } else { (4, 4) };
    (0..u.int_in_range(1..=rank)?).map(|_| u.int_in_range(least..=most)).collect()
}

/// All indices of a shape, in order.
fn indices(dims: &[usize]) -> Vec<Vec<usize>> {
    let longer = |all: Vec<Vec<usize>>, &len: &usize| {
        let with = |start: &Vec<usize>, at: usize| [&start[..], &[at]].concat();
        all.iter().flat_map(|start| (0..len).map(move |at| with(start, at))).collect()
    };
    dims.iter().fold(vec![Vec::new()], longer)
}

/// The number of the element at an index.
fn number(index: &[usize], dims: &[usize]) -> usize {
    index.iter().zip(dims).fold(0, |all, (at, len)| all * len + at)
}

/// Runs an operator on numbered elements of one of several widths; `of` gives the element for each index of `to`, or
/// none for one that is 0.
fn check(
    u: &mut Unstructured<'_>,
    dims: &[usize],
    more: &[String],
    to: &[usize],
    of: impl Fn(&[usize]) -> Option<Vec<usize>>,
) -> Result<()> {
    let types =
        [("u8", "uint8", 1 << 8), ("f16", "float16", 1 << 16), ("i32", "int32", usize::MAX)];
    let wide = [("i64", "int64", usize::MAX)];
    let (dtype, name, most) = *u.choose(&[&types[..], &wide].concat())?;
    let numbers: Vec<usize> = (1..=dims.iter().product()).map(|at| at % most).collect();
    let x = format!("weight x {dtype} {} = {}", words(dims, " "), words(&numbers, " "));
    let lines: Vec<&str> = [&x].into_iter().chain(more).map(String::as_str).collect();
    let element = |index: &Vec<usize>| of(index).map_or(0, |from| numbers[number(&from, dims)]);
    let wanted: Vec<usize> = indices(to).iter().map(element).collect();
    runs(&lines, &format!("{name} [{}] {}", words(to, ", "), words(&wanted, " ")));
    Ok(())
}

#[test]
fn axes_are_put_in_any_order() {
    arbtest::arbtest(|u| {
        let dims = shape(u, 0)?;
        let mut order: Vec<usize> = (0..dims.len()).collect();
        for at in 1..order.len() {
            order.swap(at, u.int_in_range(0..=at)?);
        }
        let to: Vec<usize> = order.iter().map(|&at| dims[at]).collect();
        let call = format!("y = Transpose(x) {{perm=[{}]}}", words(&order, ", "));
        check(u, &dims, &[call], &to, |index| {
            let mut from = vec![0; index.len()];
            order.iter().zip(index).for_each(|(&at, &place)| from[at] = place);
            Some(from)
        })
    })
    .budget_ms(1500);
}

/// Which places of an axis a slice takes, one by one, as Python does.
fn taken(len: usize, start: i64, end: i64, step: i64) -> Vec<usize> {
    let len = i64::try_from(len).unwrap();
    let from_start = |at: i64| if at < 0 { at + len } else { at };
    let last = if step > 0 { len } else { (len - 1).max(0) };
    let mut at = from_start(start).clamp(0, last);
    let mut all = Vec::new();
    while at < len && if step > 0 { at < from_start(end) } else { at > from_start(end).max(-1) } {
        all.push(usize::try_from(at).unwrap());
        at += step;
    }
    all
}

#[test]
fn anything_is_cut_out() {
    arbtest::arbtest(|u| {
        let dims = shape(u, 0)?;
        let parameters = |u: &mut Unstructured<'_>| -> Result<[i64; 3]> {
            let step = *u.choose(&[1, 1, 2, 3, -1, -2, -30])?;
            Ok([u.int_in_range(-25..=25)?, u.int_in_range(-25..=25)?, step])
        };
        let cuts: Vec<[i64; 3]> = dims.iter().map(|_| parameters(u)).collect::<Result<_>>()?;
        let places: Vec<Vec<usize>> =
            dims.iter().zip(&cuts).map(|(&len, &[a, b, step])| taken(len, a, b, step)).collect();
        let list = |name: &str, part: usize| {
            let all: Vec<i64> = cuts.iter().map(|cut| cut[part]).collect();
            format!("weight {name} i64 {} = {}", all.len(), words(&all, " "))
        };
        let lines =
            [list("s", 0), list("e", 1), list("t", 2), "y = Slice(x, s, e, _, t)".to_owned()];
        let to: Vec<usize> = places.iter().map(Vec::len).collect();
        let of =
            |index: &[usize]| Some(index.iter().zip(&places).map(|(&at, all)| all[at]).collect());
        check(u, &dims, &lines, &to, of)
    })
    .budget_ms(1500);
}

/// The element that a place outside is like, step by step from inside.
fn like(mode: &str, place: i64, len: i64) -> Option<i64> {
    let mut at = place;
    while !(0..len).contains(&at) {
        at = match mode {
            "edge" => at.clamp(0, len - 1),
            "wrap" => at + if at < 0 { len } else { -len },
            "reflect" if len == 1 => 0,
            "reflect" if at < 0 => -at,
            "reflect" => 2 * (len - 1) - at,
            _ => return None,
        };
    }
    Some(at)
}

#[test]
fn anything_is_padded() {
    arbtest::arbtest(|u| {
        let dims = shape(u, 1)?;
        let mode = *u.choose(&["constant", "edge", "reflect", "wrap"])?;
        let pads: Vec<[i64; 2]> = (dims.iter())
            .map(|_| Ok([u.int_in_range(-2..=5)?, u.int_in_range(-2..=5)?]))
            .collect::<Result<_>>()?;
        let signed: Vec<i64> = dims.iter().map(|&len| i64::try_from(len).unwrap()).collect();
        let kept = |at: usize| signed[at] + pads[at][0].min(0) + pads[at][1].min(0);
        if (0..dims.len()).any(|at| kept(at) < 1) {
            return Ok(());
        }
        let all: Vec<i64> =
            pads.iter().map(|pad| pad[0]).chain(pads.iter().map(|pad| pad[1])).collect();
        let lines = [
            format!("weight p i64 {} = {}", all.len(), words(&all, " ")),
            format!("y = Pad(x, p) {{mode={mode}}}"),
        ];
        let grown = |at: usize| usize::try_from(signed[at] + pads[at][0] + pads[at][1]).unwrap();
        let to: Vec<usize> = (0..dims.len()).map(grown).collect();
        check(u, &dims, &lines, &to, |index| {
            let place = |(at, &index): (usize, &usize)| {
                let inside =
                    like(mode, i64::try_from(index).unwrap() - pads[at][0].max(0), kept(at))?;
                usize::try_from(inside - pads[at][0].min(0)).ok()
            };
            index.iter().enumerate().map(place).collect()
        })
    })
    .budget_ms(1500);
}

#[test]
fn anything_is_gathered() {
    arbtest::arbtest(|u| {
        let (dims, shape) = (shape(u, 1)?, shape(u, 0)?);
        let axis = u.int_in_range(0..=dims.len() - 1)?;
        let len = i64::try_from(dims[axis]).unwrap();
        let all: Vec<i64> = (0..shape.iter().product())
            .map(|_| u.int_in_range(-len..=len - 1))
            .collect::<Result<_>>()?;
        let lines = [
            format!("weight i i32 {} = {}", words(&shape, " "), words(&all, " ")),
            format!("y = Gather(x, i) {{axis={axis}}}"),
        ];
        let to = [&dims[..axis], &shape, &dims[axis + 1..]].concat();
        check(u, &dims, &lines, &to, |index| {
            let (before, rest) = index.split_at(axis);
            let (within, after) = rest.split_at(shape.len());
            let at = all[number(within, &shape)];
            let at = usize::try_from(if at < 0 { at + len } else { at }).unwrap();
            Some([before, &[at], after].concat())
        })
    })
    .budget_ms(1500);
}

/// Integers that inference does not follow: a weight, of which an operator turns the bits.
fn hidden(u: &mut Unstructured<'_>, name: &str, len: usize) -> Result<[String; 2]> {
    let extreme = [i64::MIN, i64::MIN + 1, 1 << 40, i64::MAX - 1, i64::MAX];
    let own: Vec<usize> =
        (0..u.int_in_range(0..=2)?).map(|_| u.int_in_range(0..=3)).collect::<Result<_>>()?;
    let dims = if u.ratio(1, 2)? { own } else { vec![len] };
    let value = |u: &mut Unstructured<'_>| -> Result<i64> {
        if u.ratio(1, 6)? { Ok(!*u.choose(&extreme)?) } else { Ok(!u.int_in_range(-4..=4)?) }
    };
    let all: Vec<i64> = (0..dims.iter().product()).map(|_| value(u)).collect::<Result<_>>()?;
    let weight = format!("weight {name}t i64 {} = {}", words(&dims, " "), words(&all, " "));
    Ok([weight, format!("{name} = BitwiseNot({name}t)")])
}

#[test]
fn no_data_is_too_odd() {
    let calls = [
        ("Slice(x, a, b, c, d)", &["", "{axes=[1]}"][..]),
        ("Pad(x, a, _, b)", &["", "{mode=edge}", "{mode=wrap}", "{mode=reflect}"]),
        ("Gather(x, a)", &["", "{axis=-1}"]),
        ("GatherElements(x, a)", &["", "{axis=-1}"]),
        ("GatherND(x, a)", &["", "{batch_dims=1}"]),
        ("ScatterElements(x, a, x)", &["", "{axis=-1}", "{axis=-1, reduction=add}"]),
        ("ScatterND(x, a, x)", &["", "{reduction=max}"]),
        ("Expand(x, a)", &[""]),
        ("Tile(x, a)", &[""]),
        ("Reshape(x, a)", &[""]),
        ("Split(x, a)", &["", "{axis=1}"]),
        ("ConstantOfShape(a)", &[""]),
        ("Range(a, b, c)", &[""]),
        ("OneHot(a, b, x)", &["", "{axis=0}"]),
        ("ReverseSequence(x, a)", &["", "{batch_axis=0, time_axis=1}"]),
        ("CenterCropPad(x, a)", &["", "{axes=[1]}"]),
        ("Trilu(x, a)", &["", "{upper=0}"]),
        ("Clip(a, b, c)", &[""]),
        ("Mod(a, b)", &["", "{fmod=1}"]),
        ("Div(a, b)", &[""]),
        ("Pow(a, b)", &[""]),
    ];
    arbtest::arbtest(|u| {
        let (call, attributes) = u.choose(&calls)?;
        let attributes = u.choose(attributes)?;
        let (dims, to) = (shape(u, 0)?, shape(u, 0)?);
        let elements: Vec<usize> = (1..=dims.iter().product()).collect();
        let x = format!("weight x i64 {} = {}", words(&dims, " "), words(&elements, " "));
        let len = u.int_in_range(0..=4)?;
        let lists = ["a", "b", "c", "d"].map(|name| hidden(u, name, len));
        let lists = lists.into_iter().collect::<Result<Vec<_>>>()?.concat();
        let to = if u.ratio(1, 2)? { dims } else { to };
        let declared =
            if u.ratio(1, 3)? { String::new() } else { format!(" i64 {}", words(&to, " ")) };
        let call = format!("y{declared} = {call} {attributes}").trim_end().to_owned();
        let lines = [&[x], &lists[..], &[call]].concat();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        drop(execute(&model(&lines, "")));
        Ok(())
    })
    .budget_ms(3000);
}
