//! Problem to the same problem with a red zone behind each item: bytes of nobody's, in which a write beyond an end shows.
//!
//! ~~~text
//! item:   ┌───────┐ b         with zones:  ┌───────┐:      what lies above starts behind the dots, so that any two
//!     ┌───┘ rect  │       ──>          ┌───┘:::::::│:      items that live together are as far apart
//!     │   rect    └──┐                 │:  rect    └──┐
//! ~~~
//! Only packers see zones: the buffers of a plan keep their sizes, and what is told of live bytes and bounds is told of
//! the problem without zones. Cost: near-linear; quadratic in the rectangles of one item, of which few are allowed.

use crate::PlanConfig;
use crate::share::joined;
use lowtide_core::{Align, Bytes, Graph, Interval, Item, Problem, Rect, Rects, Size, Step};

/// An item of more rectangles than these is kept apart as a whole, as long as any of it is there.
const MOST_RECTS: usize = 64;

/// Whether all that a graph can place has room for a zone of its own.
pub(crate) fn has_room(graph: &Graph, zone: Bytes) -> bool {
    let sizes = graph.tensors().iter().map(|tensor| tensor.size);
    let scratch = graph.ops().iter().map(|op| op.scratch);
    // One at least, so that the zone itself is looked at.
    let sizes = sizes.chain(scratch).chain([Size::Fixed(Bytes::ZERO)]);
    let mut bytes = sizes.map(|size| size.bound().unwrap_or_default());
    // Rounded up as a zone and as an item is.
    let more = Align::MAX.bytes();
    let total = bytes.try_fold(Bytes::ZERO, |total, bytes| {
        let widened = bytes.checked_add(zone)?.checked_add(more)?.checked_add(more)?;
        total.checked_add(widened).filter(|&total| total <= Bytes::MAX_TOTAL)
    });
    total.is_some()
}

/// The items with their zones; nothing if there are to be none.
pub(crate) fn widened(problem: &Problem, config: &PlanConfig) -> Option<Problem> {
    if config.red_zone == Bytes::ZERO {
        return None;
    }
    let zone = config.red_zone.align_up(config.align);
    let zone = zone.expect("zones have room: `plan` has asked");
    let items = problem.items().iter().map(|item| widened_item(item, zone)).collect();
    Some(Problem::new(items).expect("zones have room: `plan` has asked"))
}

fn widened_item(item: &Item, zone: Bytes) -> Item {
    let rects: Vec<Rect> = item.rects().iter().copied().filter(Rect::takes_bytes).collect();
    if rects.is_empty() {
        return item.clone();
    }
    let widened = if rects.len() > MOST_RECTS {
        vec![Rect { offset: Bytes::ZERO, bytes: item.extent() + zone, span: item.span() }]
    } else {
        above_each(rects, zone)
    };
    Item { rects: Rects::from(widened), ..*item }
}

/// The bytes of rectangles and of a zone above each, none taken twice.
fn above_each(mut rects: Vec<Rect>, zone: Bytes) -> Vec<Rect> {
    for rect in &mut rects {
        rect.bytes += zone;
    }
    rects.sort_unstable();
    let mut times: Vec<Step> =
        rects.iter().flat_map(|rect| [rect.span.start, rect.span.end]).collect();
    times.sort_unstable();
    times.dedup();
    let mut taken = Vec::new();
    for pair in times.windows(2) {
        let span = Interval::new(pair[0], pair[1]);
        let first = taken.len();
        for rect in rects.iter().filter(|rect| rect.span.overlaps(span)) {
            match taken[first..].last_mut() {
                Some(last) if rect.offset <= Rect::end(last) => {
                    last.bytes = last.end().max(rect.end()).saturating_sub(last.offset);
                }
                _ => taken.push(Rect { span, ..*rect }),
            }
        }
    }
    joined(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rect([offset, bytes]: [u64; 2], [start, end]: [u32; 2]) -> Rect {
        let span = Interval::new(Step(start), Step(end));
        Rect { offset: Bytes(offset), bytes: Bytes(bytes), span }
    }

    #[track_caller]
    fn check_widened(rects: &[Rect], wanted: &[Rect]) {
        let item = Item { rects: Rects::from(rects.to_vec()), align: Align::ONE, pin: None };
        assert_eq!(widened_item(&item, Bytes(8)).rects(), wanted);
    }

    #[test]
    fn one_rectangle_grows() {
        check_widened(&[rect([0, 64], [1, 4])], &[rect([0, 72], [1, 4])]);
        check_widened(&[rect([0, 0], [1, 4])], &[rect([0, 0], [1, 4])]);
    }

    #[test]
    fn no_byte_of_a_staircase_is_taken_twice() {
        let stairs = [rect([0, 16], [0, 4]), rect([16, 16], [2, 4])];
        check_widened(&stairs, &[rect([0, 24], [0, 2]), rect([0, 40], [2, 4])]);
        let gap = [rect([0, 16], [0, 4]), rect([32, 16], [0, 4])];
        check_widened(&gap, &[rect([0, 24], [0, 4]), rect([32, 24], [0, 4])]);
    }

    #[test]
    fn what_comes_and_goes_often_is_kept_apart_as_a_whole() {
        let often: Vec<Rect> = (0..100).map(|at| rect([64, 64], [2 * at, 2 * at + 1])).collect();
        check_widened(&often, &[rect([0, 136], [0, 199])]);
    }
}
