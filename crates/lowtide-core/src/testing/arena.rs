//! The oracle of placement: tiny random problems, and the least arena of one by trying every offset.
//!
//! ~~~text
//! arena of 5?  b0 at 0, 1, 2, ...  b1 at 0, 1, 2, ...  nothing fits     arena of 6?  ...  fits: 6 is the least
//! ~~~
//! Knows no bound and no order, so it can judge whatever does. Cost: exponential; for up to seven small items.

use crate::{Align, Bytes, Interval, Item, Problem, Rect, Step};
use arbitrary::{Result, Unstructured};

/// What a tiny problem may have.
#[derive(Clone, Copy, Debug)]
pub struct TinyLimits {
    /// At most this many items.
    pub items: usize,
    /// At most this many rectangles for an item: staircases, and lifetimes with gaps.
    pub rects: usize,
    /// Alignments above one byte.
    pub aligns: bool,
    /// Fixed offsets.
    pub pins: bool,
}

/// A random problem of a few small items.
pub fn tiny_problem(u: &mut Unstructured<'_>, limits: TinyLimits) -> Result<Problem> {
    let count = u.int_in_range(1..=limits.items)?;
    let items = (0..count).map(|_| tiny_item(u, limits)).collect::<Result<_>>()?;
    Ok(Problem::new(items).expect("tiny sizes are in range"))
}

fn tiny_item(u: &mut Unstructured<'_>, limits: TinyLimits) -> Result<Item> {
    let mut rects = Vec::new();
    let mut start = u.int_in_range(0..=4)?;
    for _ in 0..u.int_in_range(1..=limits.rects)? {
        let end = start + u.int_in_range(1..=3)?;
        let offset = if limits.rects > 1 { u.int_in_range(0..=3)? } else { 0 };
        let bytes = Bytes(u.int_in_range(0..=6)?);
        let span = Interval::new(Step(start), Step(end));
        rects.push(Rect { offset: Bytes(offset), bytes, span });
        start = end + u.int_in_range(0..=1)?;
    }
    let align = if limits.aligns { *u.choose(&[1, 1, 2, 4, 8])? } else { 1 };
    let align = Align::new(align).expect("a power of two");
    let is_pinned = limits.pins && u.ratio(1, 4)?;
    let pin = if is_pinned { Some(Bytes(u.int_in_range(0..=2)? * align.bytes().0)) } else { None };
    Ok(Item { rects: rects.into(), align, pin })
}

/// The size of the least arena; `None` if there is none, as fixed offsets may clash.
pub fn least_arena(problem: &Problem) -> Option<Bytes> {
    let items = problem.items().iter();
    // Side by side, above all that is fixed, everything has room.
    let room =
        |item: &Item| item.extent().0 + item.align.bytes().0 + item.pin.map_or(0, |pin| pin.0);
    let most = items.map(room).sum();
    // What one item takes alone is no bound of anybody's, and saves the most hopeless tries.
    let alone = |item: &Item| item.pin.unwrap_or_default().0 + item.extent().0;
    let least = problem.items().iter().map(alone).max().unwrap_or(0);
    (least..=most).map(Bytes).find(|&size| fits(problem, size))
}

/// Whether there is a placement of this size.
pub fn fits(problem: &Problem, size: Bytes) -> bool {
    go_on(problem.items().as_slice(), size, &mut Vec::new())
}

/// Tries every offset of the item after those that are placed.
fn go_on(items: &[Item], size: Bytes, placed: &mut Vec<Bytes>) -> bool {
    let Some(item) = items.get(placed.len()) else { return true };
    let mut at = Bytes::ZERO;
    while at + item.extent() <= size {
        let mut others = items.iter().zip(placed.iter());
        let is_free = others.all(|(other, &there)| are_apart(item, at, other, there));
        if is_free && item.pin.is_none_or(|pin| pin == at) {
            placed.push(at);
            if go_on(items, size, placed) {
                return true;
            }
            placed.pop();
        }
        at += item.align.bytes();
    }
    false
}

fn are_apart(a: &Item, at_a: Bytes, b: &Item, at_b: Bytes) -> bool {
    a.rects().iter().all(|one| {
        b.rects().iter().all(|other| {
            at_a + one.end() <= at_b + other.offset
                || at_b + other.end() <= at_a + one.offset
                || !one.span.overlaps(other.span)
                || one.bytes == Bytes::ZERO
                || other.bytes == Bytes::ZERO
        })
    })
}
