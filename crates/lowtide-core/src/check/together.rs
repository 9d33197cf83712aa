//! Can these items be placed together within a capacity? Every way is tried, or the checker says nothing.
//!
//! ~~~text
//! two rectangles of one time:   ┌─ r ─┐  or  ┌─ s ─┐     each choice is a rule: who is above lies at least
//!                               └─ s ─┘      └─ r ─┘     so far above, rounded up to its alignment
//! ~~~
//! The rules have a least solution (everything as low as they allow), found by applying them until nothing
//! moves, and a greatest one down from the capacity. If they cross, there is no way on. If the least one
//! leaves two rectangles on the same bytes, one of them has to be above, and both are tried; if it leaves
//! none, it is a placement. So nothing is lost whatever shapes, alignments and fixed offsets there are.
//! No code and no idea is shared with the planner's search, which places one item after the other.
//!
//! Cost: exponential at worst; it gives up after [`MOST_WORK`] steps.

use crate::{Align, Bytes, Interval, Item, Rects};

/// More rectangles are not tried.
const MOST_RECTS: usize = 64;
/// Rules applied and rectangles looked at before it gives up; a fraction of a second.
const MOST_WORK: u64 = 1 << 25;
/// Offsets and distances up to here add up without overflow.
const MOST_BYTES: u64 = 1 << 61;

/// Whether the items fit; `None` if that is too hard to tell.
pub(super) fn fit(items: &[&Item], capacity: Bytes) -> Option<bool> {
    match Search::new(items, capacity)? {
        Some((mut search, root)) => search.run(root),
        None => Some(false),
    }
}

/// A rectangle of an item.
#[derive(Clone, Copy, Debug)]
struct Piece {
    item: usize,
    offset: i64,
    bytes: i64,
    span: Interval,
}

/// `upper` lies at least `gap` above `lower`, which may be negative for shapes that reach into each other.
#[derive(Clone, Copy, Debug)]
struct Rule {
    lower: usize,
    upper: usize,
    gap: i64,
}

impl Rule {
    fn above(upper: Piece, lower: Piece) -> Self {
        let gap = lower.offset + lower.bytes - upper.offset;
        Self { lower: lower.item, upper: upper.item, gap }
    }
}

/// What is decided so far, and what follows.
#[derive(Clone, Debug)]
struct Node {
    /// The least and the greatest offset of each item.
    low: Vec<i64>,
    high: Vec<i64>,
    rules: Vec<Rule>,
    /// Pairs of pieces of one time of which nobody knows yet who is above.
    open: Vec<(Piece, Piece)>,
}

/// What became of a node.
enum End {
    Dead,
    Found,
    Branch(Piece, Piece),
}

struct Search {
    aligns: Vec<i64>,
    /// The pieces at each time at which one comes.
    moments: Vec<Vec<Piece>>,
    work: u64,
}

impl Search {
    /// `None` if it is too much; `Some(None)` if an item alone does not fit.
    #[expect(clippy::option_option, reason = "too much to tell is not the same as no")]
    fn new(items: &[&Item], capacity: Bytes) -> Option<Option<(Self, Node)>> {
        let pieces = pieces(items)?;
        let capacity = signed(capacity)?;
        let aligns = items.iter().map(|item| grid(item.align)).collect();
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for item in items {
            let top = capacity - signed(item.extent())?;
            let pin = item.pin.map_or(Some(None), |pin| signed(pin).map(Some))?;
            low.push(up(pin.unwrap_or(0), grid(item.align)));
            high.push(down(pin.map_or(top, |pin| pin.min(top)), grid(item.align)));
        }
        if low.iter().zip(&high).any(|(low, high)| low > high) {
            return Some(None);
        }
        let (rules, open) = pairs(items, &pieces);
        let root = Node { low, high, rules, open };
        Some(Some((Self { aligns, moments: moments(&pieces), work: MOST_WORK }, root)))
    }

    fn run(&mut self, root: Node) -> Option<bool> {
        let mut nodes = vec![root];
        while let Some(mut node) = nodes.pop() {
            match self.follow(&mut node)? {
                End::Dead => {}
                End::Found => return Some(true),
                End::Branch(a, b) => {
                    let mut other = node.clone();
                    node.rules.push(Rule::above(a, b));
                    other.rules.push(Rule::above(b, a));
                    nodes.extend([node, other]);
                }
            }
        }
        Some(false)
    }

    fn spend(&mut self, work: usize) -> Option<()> {
        self.work = self.work.checked_sub(work as u64)?;
        Some(())
    }

    /// Draws all conclusions; `None` if the work is used up.
    fn follow(&mut self, node: &mut Node) -> Option<End> {
        loop {
            if !self.apply(node)? || !self.has_room(node)? {
                return Some(End::Dead);
            }
            self.spend(node.open.len())?;
            let known = node.rules.len();
            if !decide(node) {
                return Some(End::Dead);
            }
            if node.rules.len() == known {
                break;
            }
        }
        Some(Self::next(node))
    }

    /// The largest of the pairs that take the same bytes if all lies as low as it can.
    fn next(node: &mut Node) -> End {
        let clash = |&(a, b): &(Piece, Piece)| {
            let (at, other) = (node.low[a.item] + a.offset, node.low[b.item] + b.offset);
            at < other + b.bytes && other < at + a.bytes
        };
        let clashes = (0..node.open.len()).filter(|&index| clash(&node.open[index]));
        let size = |&index: &usize| node.open[index].0.bytes.min(node.open[index].1.bytes);
        clashes.max_by_key(size).map_or(End::Found, |index| {
            let (a, b) = node.open.swap_remove(index);
            End::Branch(a, b)
        })
    }

    /// Applies the rules until nothing moves; `Some(false)` if something has no place left.
    fn apply(&mut self, node: &mut Node) -> Option<bool> {
        let mut moved = true;
        while moved {
            moved = false;
            self.spend(node.rules.len() + 1)?;
            for &Rule { lower, upper, gap } in &node.rules {
                let low = up(node.low[lower] + gap, self.aligns[upper]);
                let high = down(node.high[upper] - gap, self.aligns[lower]);
                moved |= low > node.low[upper] || high < node.high[lower];
                node.low[upper] = node.low[upper].max(low);
                node.high[lower] = node.high[lower].min(high);
                if node.low[upper] > node.high[upper] || node.low[lower] > node.high[lower] {
                    return Some(false);
                }
            }
        }
        Some(true)
    }

    /// Whether at each moment those that start at a byte or above have room from there to their highest top,
    /// and those that end at a byte or below from their lowest bottom to there.
    fn has_room(&mut self, node: &Node) -> Option<bool> {
        for index in 0..self.moments.len() {
            self.spend(2 * self.moments[index].len())?;
            let reach = |piece: &Piece| {
                let (low, high) = (node.low[piece.item], node.high[piece.item]);
                (low + piece.offset, high + piece.offset + piece.bytes, piece.bytes)
            };
            let mut reaches: Vec<(i64, i64, i64)> = self.moments[index].iter().map(reach).collect();
            reaches.sort_unstable_by_key(|&(bottom, ..)| std::cmp::Reverse(bottom));
            let (mut sum, mut highest) = (0, i64::MIN);
            for &(bottom, top, bytes) in &reaches {
                (sum, highest) = (sum + bytes, highest.max(top));
                if sum > highest - bottom {
                    return Some(false);
                }
            }
            reaches.sort_unstable_by_key(|&(_, top, _)| top);
            let (mut sum, mut lowest) = (0, i64::MAX);
            for &(bottom, top, bytes) in &reaches {
                (sum, lowest) = (sum + bytes, lowest.min(bottom));
                if sum > top - lowest {
                    return Some(false);
                }
            }
        }
        Some(true)
    }
}

/// Makes rules of the pairs of which only one can be above; `false` if neither can.
fn decide(node: &mut Node) -> bool {
    let Node { low, high, rules, open } = node;
    let can_be_above = |upper: Piece, lower: Piece| {
        low[lower.item] + lower.offset + lower.bytes <= high[upper.item] + upper.offset
    };
    let mut is_alive = true;
    open.retain(|&(a, b)| {
        let ways = (can_be_above(a, b), can_be_above(b, a));
        match ways {
            (true, false) => rules.push(Rule::above(a, b)),
            (false, true) => rules.push(Rule::above(b, a)),
            (true, true) => {}
            (false, false) => is_alive = false,
        }
        ways == (true, true)
    });
    is_alive
}

/// All rectangles that take bytes; `None` if these are too many or too large.
fn pieces(items: &[&Item]) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    for (index, item) in items.iter().enumerate() {
        for rect in item.rects() {
            let (offset, bytes) = (signed(rect.offset)?, signed(rect.bytes)?);
            if bytes > 0 && !rect.span.is_empty() {
                pieces.push(Piece { item: index, offset, bytes, span: rect.span });
            }
            if pieces.len() > MOST_RECTS {
                return None;
            }
        }
    }
    Some(pieces)
}

/// Who may lie on whom. Of items that are alike, the first is the lower one: they can change places.
fn pairs(items: &[&Item], pieces: &[Piece]) -> (Vec<Rule>, Vec<(Piece, Piece)>) {
    let (mut rules, mut open) = (Vec::new(), Vec::new());
    for (index, &a) in pieces.iter().enumerate() {
        let others = pieces[index + 1..].iter().filter(|b| b.item != a.item);
        for &b in others.filter(|b| b.span.overlaps(a.span)) {
            let (one, other) = (items[a.item], items[b.item]);
            if one == other && one.pin.is_none() && matches!(one.rects, Rects::One(_)) {
                rules.push(Rule::above(b, a));
            } else {
                open.push((a, b));
            }
        }
    }
    (rules, open)
}

fn moments(pieces: &[Piece]) -> Vec<Vec<Piece>> {
    let mut starts: Vec<_> = pieces.iter().map(|piece| piece.span.start).collect();
    starts.sort_unstable();
    starts.dedup();
    let at = |step| pieces.iter().filter(move |p| p.span.contains(step));
    starts.into_iter().map(|step| at(step).copied().collect()).collect()
}

fn signed(bytes: Bytes) -> Option<i64> {
    i64::try_from(bytes.0).ok().filter(|_| bytes.0 <= MOST_BYTES)
}

fn grid(align: Align) -> i64 {
    i64::try_from(align.bytes().0).expect("an alignment is far below")
}

fn up(offset: i64, grid: i64) -> i64 {
    (offset + grid - 1) & -grid
}

fn down(offset: i64, grid: i64) -> i64 {
    offset & -grid
}
