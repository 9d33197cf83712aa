//! `NonMaxSuppression`: of boxes that overlap, the one with the highest score.
//!
//! ~~~text
//! scores  0.9 0.8 0.7        order  a b c       a is kept; b covers more of a than the threshold: dropped;
//! boxes    a   b   c                            c is apart from a: kept           rows: batch, class, box
//! ~~~
//! Equal scores keep the order of the boxes. What is kept is found twice: to count it, and to write it. Cost for each class:
//! n log n, and the boxes times those that are kept.

use crate::kernels::facts::{input_dims, unsupported};
use crate::kernels::function;
use crate::kernels::types::Made;
use lowtide_core::DType;
use lowtide_core::operator::{Call, Dims, Fact, Input, KernelError, Misfit, Operands};

type Inputs<'i, 'a> = &'i [Option<Input<'a>>];

/// Scratch: the boxes of one class in the order of their scores.
pub(crate) fn order(call: &Call<'_>) -> Fact {
    Fact::new(Some(DType::U32), Some(vec![call.dim(0, 1)]))
}

/// How many boxes are kept in this run.
pub(crate) fn count(call: &Call<'_>, inputs: Inputs<'_, '_>) -> Dims {
    let misfit = |error: KernelError| Misfit(error.to_string());
    let task = Task::new(inputs, call.flag("center_point_box")).map_err(misfit)?;
    let mut count = 0;
    let mut order = vec![0; task.boxes_each];
    task.run(&mut order, |_| count += 1);
    Ok(vec![vec![count, 3]])
}

pub(crate) fn non_max_suppression(call: &Call<'_>, _: &[Option<&Fact>]) -> Made {
    if [call.dtype(0), call.dtype(1)] != [Some(DType::F32); 2] {
        return unsupported("boxes or scores that are not float32");
    }
    input_dims(call, 0).and(input_dims(call, 1))?;
    let has_centre = call.flag("center_point_box");
    Ok(function(move |operands| suppress(operands, has_centre)))
}

fn suppress(operands: &mut Operands<'_>, has_centre: bool) -> Result<(), KernelError> {
    let task = Task::new(&operands.inputs, has_centre)?;
    let (y, order) = operands.values_and_scratch::<i64, u32>(0)?;
    let wanted = y.len() / 3;
    let order = order.get_mut(..task.boxes_each).ok_or_else(|| value("too little scratch"))?;
    let mut count = 0;
    task.run(order, |row| {
        if let Some(to) = y.get_mut(3 * count..3 * count + 3) {
            for (to, one) in to.iter_mut().zip(row) {
                *to = i64::try_from(one).unwrap_or(i64::MAX);
            }
        }
        count += 1;
    });
    check("how many boxes are kept", count, wanted)
}

/// That two numbers are equal: one found in this run and one that is wanted.
fn check(what: &str, found: usize, wanted: usize) -> Result<(), KernelError> {
    if found == wanted {
        return Ok(());
    }
    Err(value(format!("{what}: {found}, wanted {wanted}")))
}

fn value(text: impl Into<String>) -> KernelError {
    KernelError::Value(text.into())
}

/// The operands of one run.
struct Task<'a> {
    boxes: &'a [f32],
    scores: &'a [f32],
    boxes_each: usize,
    classes: usize,
    most: usize,
    overlap: f32,
    /// Only higher scores take part.
    least: Option<f32>,
    has_centre: bool,
}

impl<'a> Task<'a> {
    fn new(inputs: Inputs<'_, 'a>, has_centre: bool) -> Result<Self, KernelError> {
        let input = |at: usize| inputs.get(at).copied().flatten();
        let (boxes, scores) = input(0).zip(input(1)).ok_or_else(|| value("an input is absent"))?;
        let (&[batches, boxes_each, 4], &[batches_too, classes, scores_each]) =
            (boxes.dims, scores.dims)
        else {
            let (boxes, scores) = (boxes.dims, scores.dims);
            return Err(value(format!("boxes of {boxes:?} and scores of {scores:?}")));
        };
        check("batches", batches_too, batches)?;
        check("scores of a class", scores_each, boxes_each)?;
        let number = |at| input(at).map(Input::values::<f32>).transpose();
        let number = |at| number(at).map(|all| all.and_then(<[f32]>::first).copied());
        let most = input(2).map(Input::values::<i64>).transpose()?;
        let most = most.and_then(<[i64]>::first).copied().unwrap_or(0);
        let overlap = number(3)?.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&overlap) {
            return Err(value(format!("a threshold of {overlap}, wanted one from 0 to 1")));
        }
        Ok(Self {
            boxes: boxes.values()?,
            scores: scores.values()?,
            boxes_each,
            classes,
            most: usize::try_from(most).unwrap_or(0),
            overlap,
            least: number(4)?,
            has_centre,
        })
    }

    /// Tells batch, class and box of each that is kept. `order` has room for the boxes of one batch.
    fn run(&self, order: &mut [u32], mut tell: impl FnMut([usize; 3])) {
        if self.boxes_each == 0 || self.classes == 0 {
            return;
        }
        let classes = self.scores.chunks_exact(self.boxes_each).enumerate();
        for (at, scores) in classes {
            let (batch, class) = (at / self.classes, at % self.classes);
            let boxes = &self.boxes[batch * self.boxes_each * 4..][..self.boxes_each * 4];
            let kept = self.kept(boxes, scores, order);
            order[..kept].iter().for_each(|&at| tell([batch, class, at as usize]));
        }
    }

    /// Moves the boxes of one class that are kept to the front; how many there are.
    fn kept(&self, boxes: &[f32], scores: &[f32], order: &mut [u32]) -> usize {
        let mut candidates = 0;
        for (at, &score) in (0..).zip(scores) {
            if self.least.is_none_or(|least| score > least) {
                order[candidates] = at;
                candidates += 1;
            }
        }
        // Both zeros are one score.
        let score = |at: u32| scores[at as usize] + 0.0;
        let order = &mut order[..candidates];
        order.sort_unstable_by(|&a, &b| score(b).total_cmp(&score(a)).then(a.cmp(&b)));
        let corners = |at: u32| Corners::of(&boxes[4 * at as usize..][..4], self.has_centre);
        let mut kept = 0;
        for at in 0..candidates {
            if kept >= self.most {
                break;
            }
            let one = corners(order[at]);
            let is_hidden =
                order[..kept].iter().any(|&other| corners(other).overlap(one) > self.overlap);
            if !is_hidden {
                order[kept] = order[at];
                kept += 1;
            }
        }
        kept
    }
}

/// The least and greatest coordinates of a box along both axes.
#[derive(Clone, Copy)]
struct Corners([(f32, f32); 2]);

impl Corners {
    fn of(numbers: &[f32], has_centre: bool) -> Self {
        let &[a, b, c, d] = numbers else { unreachable!("a box has four numbers") };
        if has_centre {
            let around = |centre: f32, size: f32| (centre - size / 2.0, centre + size / 2.0);
            return Self([around(a, c), around(b, d)]);
        }
        // Any two opposite corners.
        let sorted = |one: f32, other: f32| (one.min(other), one.max(other));
        Self([sorted(b, d), sorted(a, c)])
    }

    fn area(self) -> f32 {
        let Self([(left, right), (top, bottom)]) = self;
        (right - left) * (bottom - top)
    }

    /// What both cover, as a part of what either covers; 0 if a box is empty.
    fn overlap(self, other: Self) -> f32 {
        let both = |at: usize| {
            let (one, other) = (self.0[at], other.0[at]);
            (one.0.max(other.0), one.1.min(other.1))
        };
        let (x, y) = (both(0), both(1));
        if x.1 <= x.0 || y.1 <= y.0 {
            return 0.0;
        }
        let shared = Self([x, y]).area();
        let all = self.area() + other.area() - shared;
        let is_empty = shared <= 0.0 || self.area() <= 0.0 || other.area() <= 0.0 || all <= 0.0;
        if is_empty { 0.0 } else { shared / all }
    }
}

#[cfg(test)]
mod tests {
    use crate::kernels::testing::{fails, runs};

    // The cases of the standard: three places, of which two have a box that is a little beside another one.
    const CORNERS: &str =
        "weight b 1 6 4 = 0 0 1 1 0 0.1 1 1.1 0 -0.1 1 0.9 0 10 1 11 0 10.1 1 11.1 0 100 1 101";
    const FLIPPED: &str =
        "weight b 1 6 4 = 1 1 0 0 0 0.1 1 1.1 0 0.9 1 -0.1 0 10 1 11 1 10.1 0 11.1 1 101 0 100";
    const CENTRES: &str = "weight b 1 6 4 = 0.5 0.5 1 1 0.5 0.6 1 1 0.5 0.4 1 1 0.5 10.5 1 1 0.5 10.6 1 1 0.5 100.5 1 1";
    const SCORES: &str = "weight s 1 1 6 = 0.9 0.75 0.6 0.95 0.5 0.3";

    #[track_caller]
    fn keeps(boxes: &str, limits: [&str; 3], attributes: &str, rows: usize, wanted: &str) {
        let names = ["m i64", "o", "l"];
        let limit = |(name, value): (&&str, &&str)| format!("weight {name} = {value}");
        let limits: Vec<String> = names.iter().zip(&limits).map(limit).collect();
        let call = format!("y i64 {rows} 3 = NonMaxSuppression(b, s, m, o, l) {{{attributes}}}");
        let lines = [boxes, SCORES, &limits[0], &limits[1], &limits[2], &call];
        runs(&lines, &format!("int64 [{rows}, 3] {wanted}"));
    }

    #[test]
    fn the_highest_score_of_each_place_is_kept() {
        keeps(CORNERS, ["3", "0.5", "0"], "", 3, "0 0 3 0 0 0 0 0 5");
        keeps(FLIPPED, ["3", "0.5", "0"], "", 3, "0 0 3 0 0 0 0 0 5");
        keeps(CENTRES, ["3", "0.5", "0"], "center_point_box=1", 3, "0 0 3 0 0 0 0 0 5");
    }

    #[test]
    fn limits_leave_out_the_rest() {
        keeps(CORNERS, ["2", "0.5", "0"], "", 2, "0 0 3 0 0 0");
        keeps(CORNERS, ["3", "0.5", "0.4"], "", 2, "0 0 3 0 0 0");
        keeps(CORNERS, ["0", "0.5", "0"], "", 0, "");
        keeps(CORNERS, ["9", "1", "0"], "", 6, "0 0 3 0 0 0 0 0 1 0 0 2 0 0 4 0 0 5");
    }

    #[test]
    fn boxes_that_are_equal_are_one() {
        let ones = "0 0 1 1 ".repeat(10);
        let boxes = format!("weight b 1 10 4 = {ones}");
        let scores = format!("weight s 1 1 10 = {}", "0.9 ".repeat(10));
        let limits = ["weight m i64 1 = 3", "weight o 1 = 0.5", "weight l 1 = 0"];
        let call = "y i64 1 3 = NonMaxSuppression(b, s, m, o, l)";
        runs(&[&boxes, &scores, limits[0], limits[1], limits[2], call], "int64 [1, 3] 0 0 0");
    }

    #[test]
    fn classes_and_batches_are_apart() {
        let boxes = "weight b 2 2 4 = 0 0 1 1 0 0.1 1 1.1 0 0 1 1 0 5 1 6";
        let scores = "weight s 2 2 2 = 0.1 0.2 0.4 0.3 0.5 0.5 0.6 0.7";
        let limits = ["weight m i64 = 2", "weight o = 0.5"];
        let call = "y i64 6 3 = NonMaxSuppression(b, s, m, o)";
        let wanted = "int64 [6, 3] 0 0 1 0 1 0 1 0 0 1 0 1 1 1 1 1 1 0";
        runs(&[boxes, scores, limits[0], limits[1], call], wanted);
        let call = "y i64 0 3 = NonMaxSuppression(b, s)";
        runs(&[boxes, scores, call], "int64 [0, 3] ");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let lines = ["weight b 1 2 4 = 0 0 1 1 0 0 1 1", "weight s 1 1 3 = 1 2 3"];
        let call = "y i64 0 3 = NonMaxSuppression(b, s)";
        fails(&[lines[0], lines[1], call], "scores of a class: 3, wanted 2");
    }
}
