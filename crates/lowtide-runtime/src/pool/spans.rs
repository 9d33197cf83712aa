//! [`Spans`]: who holds which bytes of the segments. Numbers only: no byte is touched here.
//!
//! ~~~text
//! segment 0   [ held 3 ][ free ........ ][ held 1 ][ free .. ]                    untouched
//!                          |                          |
//! lists by class   640 ────┘              320 ────────┘          the bitmap says which lists are not empty
//! ~~~
//! A request takes from the list of its class, or from the next one that is not empty: then it is lent a part, and what is
//! left waits in the list of its own size. When what was lent is free again it joins its free neighbours and so goes home; a
//! free span never has a free neighbour. Every operation takes constant time; looking for a list is one bit scan. A segment
//! is address space first: what has never been touched counts as nothing, and is used last; so do pages that were given back.
//! Source: Masmano, Ripoll, Crespo and Real, TLSF: a new dynamic memory allocator for real-time systems, 2004, with the steps
//! between classes as its second level; boundary tags after Knuth.

use super::classes::{MOST_CLASSES, SizeClasses};
use super::pages::{PAGE, Pages};
use lowtide_core::Bytes;
use std::ops::Range;

/// A span, free or held.
pub(super) type SpanId = u32;

/// No span.
const NONE: SpanId = SpanId::MAX;

/// Where a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: u32,
    pub(super) start: u64,
}

/// What is done with a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the list of this class; none if it is too small for any.
    Free(Option<u8>),
    /// Held as a block of this class; lent if it was cut from a span of a larger one.
    Held { class: u8, is_lent: bool },
    /// No span: the row is spare.
    Spare,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    place: Place,
    bytes: u64,
    state: State,
    /// The neighbours in the segment.
    below: SpanId,
    above: SpanId,
    /// The neighbours in the list of free spans.
    before: SpanId,
    after: SpanId,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    bytes: u64,
    /// Spans end here: above it nothing has been touched.
    touched: u64,
    held: u64,
    /// The spans at both ends.
    lowest: SpanId,
    highest: SpanId,
}

/// So many spans of a list are looked at for the smallest: more do not lose less.
const LOOKS: usize = 8;

/// One block that is moved: bytes of it come to lie elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) id: SpanId,
    pub(super) from: Place,
    pub(super) to: Place,
    pub(super) bytes: u64,
}

/// Pages of a segment that hold nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spare {
    pub(super) segment: u32,
    pub(super) pages: Range<u64>,
}

/// Blocks by class, and what is lent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClassCount {
    pub(super) held: u64,
    pub(super) lent: u64,
    pub(super) free: u64,
}

#[derive(Debug)]
pub(super) struct Spans {
    classes: SizeClasses,
    /// Whether what is free joins its neighbours. Else what was lent never goes home: only to show what that does.
    joins: bool,
    /// All spans, and rows that are spare.
    rows: Vec<Span>,
    spare: Vec<SpanId>,
    /// The first of each list.
    heads: Vec<SpanId>,
    /// Which lists are not empty.
    listed: u128,
    segments: Vec<Option<Segment>>,
    /// Which pages of each are resident.
    pages: Vec<Pages>,
    counts: Vec<ClassCount>,
    /// Bytes of all segments, what has been touched of them, and pages that are resident.
    pub(super) mapped: u64,
    pub(super) touched: u64,
    pub(super) total: u64,
    /// Bytes of blocks that are held.
    pub(super) held: u64,
    /// The most that was held, and since the last [`Spans::restart_peak`].
    pub(super) peak: u64,
    pub(super) recent_peak: u64,
}

impl Spans {
    pub(super) fn new(classes: SizeClasses, joins: bool) -> Self {
        let lists = classes.len();
        Self {
            classes,
            joins,
            rows: Vec::new(),
            spare: Vec::new(),
            heads: vec![NONE; lists],
            listed: 0,
            segments: Vec::new(),
            pages: Vec::new(),
            counts: vec![ClassCount::default(); lists],
            mapped: 0,
            touched: 0,
            total: 0,
            held: 0,
            peak: 0,
            recent_peak: 0,
        }
    }

    pub(super) fn classes(&self) -> &SizeClasses {
        &self.classes
    }

    pub(super) fn counts(&self) -> &[ClassCount] {
        &self.counts
    }

    pub(super) fn place(&self, id: SpanId) -> Place {
        self.rows[id as usize].place
    }

    /// Adds memory; the number of the segment.
    pub(super) fn add_segment(&mut self, bytes: Bytes) -> u32 {
        let at = self.segments.iter().position(Option::is_none).unwrap_or(self.segments.len());
        if at == self.segments.len() {
            self.segments.push(None);
            self.pages.push(Pages::default());
        }
        let (touched, held, lowest, highest) = (0, 0, NONE, NONE);
        self.segments[at] = Some(Segment { bytes: bytes.0, touched, held, lowest, highest });
        self.pages[at] = Pages::new(bytes.0);
        self.mapped += bytes.0;
        u32::try_from(at).expect("segments are few")
    }

    /// The segments of which no byte is held, and what is resident of them.
    pub(super) fn idle(&self) -> impl Iterator<Item = (u32, Bytes)> {
        let rows = (0..).zip(&self.segments);
        let rows = rows.filter_map(|(at, row)| row.as_ref().map(|segment| (at, segment)));
        rows.filter(|(_, segment)| segment.held == 0)
            .map(|(at, segment)| (at, Bytes(self.resident(at, Pages::around(0, segment.touched)))))
    }

    /// All bytes of a segment.
    pub(super) fn bytes_of(&self, segment: u32) -> Bytes {
        Bytes(self.segments[segment as usize].as_ref().map_or(0, |segment| segment.bytes))
    }

    /// Takes an idle segment out; what was resident of it.
    pub(super) fn remove_segment(&mut self, segment: u32) -> Bytes {
        let row = self.segments[segment as usize].expect("the segment is there");
        assert_eq!(row.held, 0, "somebody holds bytes of segment {segment}");
        let mut next = row.lowest;
        while next != NONE {
            let id = next;
            next = self.rows[id as usize].above;
            self.unlist(id);
            self.drop_span(id);
        }
        let resident = self.resident(segment, Pages::around(0, row.touched));
        self.segments[segment as usize] = None;
        self.total -= resident;
        self.touched -= row.touched;
        self.mapped -= row.bytes;
        Bytes(resident)
    }

    /// The most that was held since the last call.
    pub(super) fn restart_peak(&mut self) -> u64 {
        std::mem::replace(&mut self.recent_peak, self.held)
    }

    /// A block of a class where nothing has been touched yet, with what is free below that; none if no segment has room.
    pub(super) fn extend(&mut self, class: usize) -> Option<SpanId> {
        let bytes = self.classes.size(class).0;
        let at = (0..self.segments.len()).find(|&at| self.room_above(at) >= bytes)?;
        let segment = self.segments[at]?;
        let id = if self.is_free(segment.highest) {
            self.unlist(segment.highest);
            segment.highest
        } else {
            let place = Place { segment: narrow_id(at), start: segment.touched };
            self.add_span(place, 0, (segment.highest, NONE))
        };
        let more = bytes - self.rows[id as usize].bytes;
        self.rows[id as usize].bytes = bytes;
        self.rows[id as usize].state = State::Held { class: narrow(class), is_lent: false };
        self.segment(self.place(id)).touched += more;
        self.touched += more;
        self.note_held(class, id, false);
        Some(id)
    }

    /// Whether a segment has room above for a block of a class.
    pub(super) fn can_extend(&self, class: usize) -> bool {
        let bytes = self.classes.size(class).0;
        (0..self.segments.len()).any(|at| self.room_above(at) >= bytes)
    }

    /// Bytes at the upper end of a segment that nobody holds.
    fn room_above(&self, at: usize) -> u64 {
        let Some(segment) = &self.segments[at] else { return 0 };
        let is_free = self.is_free(segment.highest);
        let below = if is_free { self.rows[segment.highest as usize].bytes } else { 0 };
        segment.bytes - segment.touched + below
    }

    /// A block of a class: from its own list, or lent from that of the next larger one; none if no span is large enough.
    pub(super) fn take(&mut self, class: usize) -> Option<SpanId> {
        let above = self.listed & (u128::MAX << class);
        if above == 0 {
            return None;
        }
        let from = above.trailing_zeros() as usize;
        let id = self.best_of(self.heads[from]);
        self.unlist(id);
        let bytes = self.classes.size(class).0;
        let (place, found, above) = {
            let span = &mut self.rows[id as usize];
            let found = std::mem::replace(&mut span.bytes, bytes);
            span.state = State::Held { class: narrow(class), is_lent: from > class };
            (span.place, found, span.above)
        };
        if found > bytes {
            let rest = Place { start: place.start + bytes, ..place };
            let rest = self.add_span(rest, found - bytes, (id, above));
            self.list(rest);
        }
        self.note_held(class, id, from > class);
        Some(id)
    }

    /// The spans of a list from one on.
    fn list_from(&self, first: SpanId) -> impl Iterator<Item = SpanId> {
        let there = |id: SpanId| (id != NONE).then_some(id);
        std::iter::successors(there(first), move |&id| there(self.rows[id as usize].after))
    }

    /// The smallest of the first spans of a list, the lowest of such.
    fn best_of(&self, head: SpanId) -> SpanId {
        // Only where pages were given back a look at them is worth it.
        let has_gaps = self.total < self.touched;
        let size = |id: &SpanId| {
            let Span { place, bytes, .. } = self.rows[*id as usize];
            let pages = Pages::around(place.start, bytes);
            let is_gap = has_gaps && {
                let all = (pages.end - pages.start) * PAGE;
                self.resident(place.segment, pages) < all
            };
            (bytes, is_gap, place.segment, place.start)
        };
        self.list_from(head).take(LOOKS).min_by_key(size).unwrap_or(head)
    }

    fn note_held(&mut self, class: usize, id: SpanId, is_lent: bool) {
        let Span { place, bytes, .. } = self.rows[id as usize];
        let count = &mut self.counts[class];
        count.held += 1;
        count.lent += u64::from(is_lent);
        self.held += bytes;
        self.peak = self.peak.max(self.held);
        self.recent_peak = self.recent_peak.max(self.held);
        self.segment(place).held += bytes;
        self.mark(place, bytes);
    }

    /// A block is free again.
    ///
    /// # Panics
    /// If it was not held.
    pub(super) fn give(&mut self, id: SpanId) {
        let Span { place, bytes, state, .. } = self.rows[id as usize];
        let State::Held { class, is_lent } = state else {
            panic!("block {id} is given back twice")
        };
        let count = &mut self.counts[usize::from(class)];
        count.held -= 1;
        count.lent -= u64::from(is_lent);
        self.held -= bytes;
        self.segment(place).held -= bytes;
        let id = if self.joins { self.joined(id) } else { id };
        self.list(id);
    }

    /// The largest hole, which may be the untouched end of a segment.
    pub(super) fn largest_hole(&self) -> Bytes {
        let above = (0..self.segments.len()).map(|at| Bytes(self.room_above(at))).max();
        self.largest(|_| true).max(above.unwrap_or_default())
    }

    /// Free bytes that are neither in idle segments nor in the largest of the other holes: what could be had by moving blocks
    /// together, but for the ends of segments.
    pub(super) fn scattered(&self) -> Bytes {
        let idle = self.segments.iter().flatten().filter(|segment| segment.held == 0);
        let idle: u64 = idle.map(|segment| segment.touched).sum();
        let is_idle = |segment: u32| {
            self.segments[segment as usize].as_ref().is_some_and(|segment| segment.held == 0)
        };
        let largest = self.largest(|span| !is_idle(span.place.segment));
        Bytes(self.touched - self.held - idle - largest.0)
    }

    /// The largest free span of some. Cost: the length of the list that it is in, and of those above.
    fn largest(&self, counts: impl Fn(&Span) -> bool) -> Bytes {
        let of_list = |&head: &SpanId| {
            let spans = self.list_from(head).map(|id| &self.rows[id as usize]);
            spans.filter(|span| counts(span)).map(|span| Bytes(span.bytes)).max()
        };
        self.heads.iter().rev().find_map(of_list).unwrap_or_default()
    }

    /// Moves all that is held together, to the lowest places of the first segments; the moves, to be done in this order.
    /// Cost: O(spans · log spans).
    pub(super) fn compact(&mut self) -> Vec<Move> {
        let mut held: Vec<SpanId> = (0..narrow_id(self.rows.len()))
            .filter(|&id| matches!(self.rows[id as usize].state, State::Held { .. }))
            .collect();
        held.sort_unstable_by_key(|&id| {
            let Place { segment, start } = self.place(id);
            (segment, start)
        });
        let moves = self.together(&held);
        self.rebuild(&held);
        moves
    }

    /// New places for blocks in the order of their places, none of them behind the old one.
    fn together(&mut self, held: &[SpanId]) -> Vec<Move> {
        let mut moves = Vec::new();
        let mut next = Place { segment: 0, start: 0 };
        for &id in held {
            let Span { place: from, bytes, .. } = self.rows[id as usize];
            let room = |place: Place| {
                let segment = self.segments[place.segment as usize]?;
                (place.start + bytes <= segment.touched).then_some(())
            };
            while room(next).is_none() {
                next = Place { segment: next.segment + 1, start: 0 };
            }
            if next != from {
                moves.push(Move { id, from, to: next, bytes });
            }
            self.rows[id as usize].place = next;
            self.mark(next, bytes);
            next.start += bytes;
        }
        moves
    }

    /// Makes neighbours, lists and counts anew from the places of what is held.
    fn rebuild(&mut self, held: &[SpanId]) {
        for id in 0..narrow_id(self.rows.len()) {
            if matches!(self.rows[id as usize].state, State::Free(_)) {
                self.drop_span(id);
            }
        }
        self.heads.fill(NONE);
        self.listed = 0;
        for count in &mut self.counts {
            count.free = 0;
        }
        let mut rest = held;
        for at in 0..narrow_id(self.segments.len()) {
            let count = rest.partition_point(|&id| self.place(id).segment == at);
            let (mine, others) = rest.split_at(count);
            rest = others;
            self.chain(at, mine);
        }
    }

    /// The spans of one segment, of which these are held, one after the other from its beginning.
    fn chain(&mut self, at: u32, held: &[SpanId]) {
        let Some(segment) = self.segments[at as usize] else { return };
        let mut below = NONE;
        let mut start = 0;
        for &id in held {
            let span = &mut self.rows[id as usize];
            (span.below, span.above) = (below, NONE);
            if let State::Held { is_lent, class } = &mut span.state {
                // What is left of the larger span is elsewhere now.
                self.counts[usize::from(*class)].lent -= u64::from(std::mem::take(is_lent));
            }
            start += span.bytes;
            if below != NONE {
                self.rows[below as usize].above = id;
            }
            below = id;
        }
        let mut lowest = held.first().copied().unwrap_or(NONE);
        let mut highest = below;
        if start < segment.touched {
            let place = Place { segment: at, start };
            highest = self.add_span(place, segment.touched - start, (below, NONE));
            self.list(highest);
            lowest = if lowest == NONE { highest } else { lowest };
        }
        self.segments[at as usize] = Some(Segment { held: start, lowest, highest, ..segment });
    }

    /// Bytes of those of these pages that are resident.
    fn resident(&self, segment: u32, pages: Range<u64>) -> u64 {
        self.pages[segment as usize].count(pages) * PAGE
    }

    /// The pages of a block are, or will soon be, memory.
    fn mark(&mut self, place: Place, bytes: u64) {
        let pages = Pages::around(place.start, bytes);
        self.total += self.pages[place.segment as usize].mark(pages) * PAGE;
    }

    /// Whole pages of free spans, in the largest ones, so many bytes of which are resident, if there are; none in spans that
    /// have less than `least` to give. Cost: the lists that are looked at, and a bit for each page in them.
    pub(super) fn spare_pages(&self, wanted: u64, least: u64) -> Vec<Spare> {
        let lists = self.heads.iter().rev().flat_map(|&head| self.list_from(head));
        let lists = lists.map(|id| &self.rows[id as usize]);
        // Some are too small for any list.
        let is_small = |span: &&Span| least == 0 && span.state == State::Free(None);
        let mut left = wanted;
        let mut found = Vec::new();
        for &Span { place, bytes, .. } in lists.chain(self.rows.iter().filter(is_small)) {
            // Those of lower lists are smaller still.
            if left == 0 || bytes < least {
                break;
            }
            let pages = Pages::inside(place.start, bytes);
            let resident = self.resident(place.segment, pages.clone());
            if resident < least.max(PAGE) {
                continue;
            }
            let few = left.div_ceil(PAGE);
            let pages = self.pages[place.segment as usize].last(pages, few);
            left = left.saturating_sub(resident);
            found.push(Spare { segment: place.segment, pages });
        }
        found
    }

    /// The system has taken these pages back; bytes of those that were resident.
    pub(super) fn discard(&mut self, spare: &Spare) -> u64 {
        let gone = self.pages[spare.segment as usize].clear(spare.pages.clone()) * PAGE;
        self.total -= gone;
        gone
    }

    fn segment(&mut self, place: Place) -> &mut Segment {
        self.segments[place.segment as usize].as_mut().expect("a span lies in a segment")
    }

    /// A span with its free neighbours, none of which is in a list any more.
    fn joined(&mut self, id: SpanId) -> SpanId {
        let Span { below, above, .. } = self.rows[id as usize];
        if self.is_free(above) {
            self.unlist(above);
            self.absorb(id, above);
        }
        if !self.is_free(below) {
            return id;
        }
        self.unlist(below);
        self.absorb(below, id);
        below
    }

    fn is_free(&self, id: SpanId) -> bool {
        id != NONE && matches!(self.rows[id as usize].state, State::Free(_))
    }

    /// A span takes the bytes of the one above it.
    fn absorb(&mut self, id: SpanId, above: SpanId) {
        let Span { bytes, above: next, .. } = self.rows[above as usize];
        let span = &mut self.rows[id as usize];
        span.bytes += bytes;
        span.above = next;
        let place = span.place;
        match next {
            NONE => self.segment(place).highest = id,
            next => self.rows[next as usize].below = id,
        }
        self.drop_span(above);
    }

    /// A new span between two neighbours.
    fn add_span(&mut self, place: Place, bytes: u64, (below, above): (SpanId, SpanId)) -> SpanId {
        let state = State::Free(None);
        let span = Span { place, bytes, state, below, above, before: NONE, after: NONE };
        let id = self.spare.pop().unwrap_or_else(|| narrow_id(self.rows.len()));
        if id as usize == self.rows.len() {
            self.rows.push(span);
        } else {
            self.rows[id as usize] = span;
        }
        match below {
            NONE => self.segment(place).lowest = id,
            below => self.rows[below as usize].above = id,
        }
        match above {
            NONE => self.segment(place).highest = id,
            above => self.rows[above as usize].below = id,
        }
        id
    }

    fn drop_span(&mut self, id: SpanId) {
        self.rows[id as usize].state = State::Spare;
        self.spare.push(id);
    }

    /// Puts a span into the list of its size.
    fn list(&mut self, id: SpanId) {
        let class = self.classes.within(self.rows[id as usize].bytes);
        let span = &mut self.rows[id as usize];
        span.state = State::Free(class.map(narrow));
        let Some(class) = class else { return };
        let head = std::mem::replace(&mut self.heads[class], id);
        (span.before, span.after) = (NONE, head);
        if head != NONE {
            self.rows[head as usize].before = id;
        }
        self.listed |= 1 << class;
        self.counts[class].free += 1;
    }

    /// Takes a span out of its list.
    fn unlist(&mut self, id: SpanId) {
        let Span { state, before, after, .. } = self.rows[id as usize];
        let State::Free(Some(class)) = state else { return };
        let class = usize::from(class);
        match before {
            NONE => self.heads[class] = after,
            before => self.rows[before as usize].after = after,
        }
        if after != NONE {
            self.rows[after as usize].before = before;
        }
        if self.heads[class] == NONE {
            self.listed &= !(1 << class);
        }
        self.counts[class].free -= 1;
    }
}

fn narrow(class: usize) -> u8 {
    const { assert!(MOST_CLASSES <= 256) };
    u8::try_from(class).expect("classes are few")
}

fn narrow_id(id: usize) -> SpanId {
    SpanId::try_from(id).ok().filter(|&id| id != NONE).expect("spans fit u32")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    impl Spans {
        /// That neighbours, lists, counts and sums say the same.
        fn check(&self) {
            let (mut touched, mut held, mut listed) = (0, 0, vec![0; self.classes.len()]);
            for segment in self.segments.iter().flatten() {
                let (mut next, mut below, mut start, mut held_here) = (segment.lowest, NONE, 0, 0);
                let mut was_free = false;
                while next != NONE {
                    let span = &self.rows[next as usize];
                    assert_eq!((span.below, span.place.start), (below, start));
                    let is_free = matches!(span.state, State::Free(_));
                    assert!(!(self.joins && was_free && is_free), "free neighbours at {start}");
                    match span.state {
                        State::Free(class) => {
                            let wanted = self.classes.within(span.bytes);
                            assert_eq!(class.map(usize::from), wanted);
                            if let Some(class) = wanted {
                                listed[class] += 1;
                            }
                        }
                        State::Held { class, .. } => {
                            assert_eq!(self.classes.size(usize::from(class)).0, span.bytes);
                            held_here += span.bytes;
                        }
                        State::Spare => panic!("a spare row is a neighbour"),
                    }
                    (below, was_free) = (next, is_free);
                    start += span.bytes;
                    next = span.above;
                }
                assert_eq!((start, held_here), (segment.touched, segment.held));
                assert_eq!(below, segment.highest);
                touched += start;
                held += held_here;
            }
            assert_eq!((touched, held), (self.touched, self.held));
            for (class, &wanted) in listed.iter().enumerate() {
                let (mut next, mut before, mut found) = (self.heads[class], NONE, 0);
                while next != NONE {
                    assert_eq!(self.rows[next as usize].before, before);
                    (before, next) = (next, self.rows[next as usize].after);
                    found += 1;
                }
                assert_eq!((found, self.counts[class].free), (wanted, wanted));
                assert_eq!(self.listed & (1 << class) != 0, found > 0);
            }
        }
    }

    fn random(state: &mut u64, below: u64) -> u64 {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % below
    }

    fn spans(joins: bool) -> Spans {
        let mut spans = Spans::new(SizeClasses::default(), joins);
        spans.add_segment(Bytes(1 << 20));
        spans.add_segment(Bytes(1 << 18));
        spans.add_segment(Bytes(1 << 18));
        spans
    }

    #[test]
    fn held_blocks_are_apart_whatever_happens() {
        for (seed, joins) in [(1, true), (2, true), (3, false)] {
            let (mut spans, mut state) = (spans(joins), seed);
            let mut held: BTreeMap<SpanId, u64> = BTreeMap::new();
            for round in 0..4_000 {
                let class = usize::try_from(random(&mut state, 30)).unwrap();
                if random(&mut state, 2) == 0 {
                    if let Some(id) = spans.take(class).or_else(|| spans.extend(class)) {
                        let bytes = spans.classes.size(class).0;
                        assert_eq!(held.insert(id, bytes), None);
                    }
                } else if let Some(&id) = held.keys().nth(class % held.len().max(1)) {
                    held.remove(&id);
                    spans.give(id);
                }
                if round % 500 == 499 {
                    let moves = spans.compact();
                    assert!(moves.iter().all(|row| held[&row.id] == row.bytes));
                    assert_eq!(spans.scattered().0 > 0, spans.holes() > 1);
                }
                spans.check();
                assert_eq!(held.values().sum::<u64>(), spans.held);
            }
            for &id in held.keys() {
                spans.give(id);
            }
            spans.check();
            assert_eq!((spans.held, spans.idle().count()), (0, 3));
            spans.remove_segment(0);
            spans.check();
            assert_eq!(spans.mapped, 1 << 19);
        }
    }

    /// Pages that were ever in a block since they were given back, one by one.
    #[derive(Default)]
    struct Naive(BTreeSet<(u32, u64)>);

    impl Naive {
        fn touch(&mut self, spans: &Spans, id: SpanId) {
            let Span { place, bytes, .. } = spans.rows[id as usize];
            let all = (place.start..place.start + bytes).step_by(256);
            self.0.extend(all.map(|at| (place.segment, at / PAGE)));
        }

        /// Gives back what nobody holds, and nothing else.
        fn discard(&mut self, spans: &Spans, held: &BTreeSet<SpanId>, spare: &Spare) {
            for &id in held {
                let Span { place, bytes, .. } = spans.rows[id as usize];
                let pages = &spare.pages;
                let is_apart =
                    place.start >= pages.end * PAGE || place.start + bytes <= pages.start * PAGE;
                assert!(place.segment != spare.segment || is_apart, "block {id} loses pages");
            }
            self.0
                .retain(|(segment, page)| *segment != spare.segment || !spare.pages.contains(page));
        }
    }

    #[test]
    fn resident_pages_are_those_of_a_naive_count() {
        for seed in 1..4 {
            let (mut spans, mut state) = (spans(true), seed);
            let (mut held, mut naive) = (BTreeSet::new(), Naive::default());
            for round in 0..3_000 {
                let class = usize::try_from(random(&mut state, 34)).unwrap();
                if random(&mut state, 2) == 0 {
                    if let Some(id) = spans.take(class).or_else(|| spans.extend(class)) {
                        held.insert(id);
                        naive.touch(&spans, id);
                    }
                } else if let Some(&id) = held.iter().nth(class % held.len().max(1)) {
                    held.remove(&id);
                    spans.give(id);
                }
                if round % 20 == 19 {
                    for spare in spans.spare_pages(random(&mut state, 300_000), 0) {
                        let before = naive.0.len();
                        naive.discard(&spans, &held, &spare);
                        let gone = spans.discard(&spare);
                        assert_eq!(gone, PAGE * (before - naive.0.len()) as u64);
                    }
                }
                if round % 500 == 499 {
                    spans.compact();
                    for &id in &held {
                        naive.touch(&spans, id);
                    }
                }
                spans.check();
                assert_eq!(spans.total, naive.0.len() as u64 * PAGE);
            }
            let all = spans.spare_pages(u64::MAX, 0);
            for spare in &all {
                spans.discard(spare);
            }
            assert!(spans.spare_pages(u64::MAX, 0).is_empty());
        }
    }

    impl Spans {
        /// Holes outside of idle segments.
        fn holes(&self) -> usize {
            let idle: Vec<u32> = self.idle().map(|(at, _)| at).collect();
            let is_hole = |span: &&Span| {
                matches!(span.state, State::Free(_)) && !idle.contains(&span.place.segment)
            };
            self.rows.iter().filter(is_hole).count()
        }
    }

    #[test]
    fn what_is_lent_goes_home() {
        let mut spans = spans(true);
        let large = spans.classes.of(Bytes(1 << 20)).unwrap();
        let first = spans.extend(large).unwrap();
        spans.give(first);
        let small = spans.take(0).unwrap();
        assert_eq!(spans.counts[0], ClassCount { held: 1, lent: 1, free: 0 });
        assert_eq!((spans.take(large), spans.extend(large)), (None, None));
        spans.give(small);
        assert_eq!(spans.take(large), Some(small));
    }

    #[test]
    #[should_panic(expected = "given back twice")]
    fn a_block_is_given_back_once() {
        let mut spans = spans(true);
        let id = spans.extend(0).unwrap();
        spans.give(id);
        spans.give(id);
    }
}
