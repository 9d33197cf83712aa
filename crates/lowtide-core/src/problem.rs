//! Bare placement: [`Problem`] in, [`Placement`] out.
//!
//! An item is what a buffer looks like to a packer: rectangles over time at fixed distances. Most items are
//! one rectangle; a staircase (a concat written in place) or a lifetime with gaps has several.
//!
//! ~~~text
//! offset ^      ┌──────┐
//!        |  ┌───┘ rect └──┐      one item of two rectangles: moved as a whole,
//!        |  │    rect     │      placed at the offset of its base
//!        |  └─────────────┘
//!        +---------------------> step
//! ~~~

use crate::{Align, BufferId, Bytes, IndexVec, Interval, Step};

/// A rectangle of bytes over steps, at a distance from the base of its item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rect {
    /// First byte, counted from the item's base.
    pub offset: Bytes,
    /// Height in bytes.
    pub bytes: Bytes,
    /// When these bytes are taken.
    pub span: Interval,
}

impl Rect {
    /// The byte after the last one, counted from the item's base.
    pub fn end(&self) -> Bytes {
        self.offset + self.bytes
    }

    /// Whether it keeps anything out: some bytes at some step.
    pub fn takes_bytes(&self) -> bool {
        self.bytes > Bytes::ZERO && !self.span.is_empty()
    }
}

/// What is to be placed as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its rectangles; none is empty.
    pub rects: Rects,
    /// Its offset is a multiple of this.
    pub align: Align,
    /// An offset that it must have.
    pub pin: Option<Bytes>,
}

/// The rectangles of an item. Nearly always one, which is kept without an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rects {
    /// One rectangle.
    One(Rect),
    /// Several.
    Many(Box<[Rect]>),
}

impl Rects {
    /// The rectangles.
    pub fn as_slice(&self) -> &[Rect] {
        match self {
            Self::One(rect) => std::slice::from_ref(rect),
            Self::Many(rects) => rects,
        }
    }
}

impl From<Vec<Rect>> for Rects {
    fn from(rects: Vec<Rect>) -> Self {
        match <[Rect; 1]>::try_from(rects) {
            Ok([rect]) => Self::One(rect),
            Err(rects) => Self::Many(rects.into_boxed_slice()),
        }
    }
}

impl Item {
    /// An item of one rectangle.
    pub fn new(bytes: Bytes, span: Interval, align: Align) -> Self {
        let rects = Rects::One(Rect { offset: Bytes::ZERO, bytes, span });
        Self { rects, align, pin: None }
    }

    /// Its rectangles.
    pub fn rects(&self) -> &[Rect] {
        self.rects.as_slice()
    }

    /// The byte after its last one, counted from its base.
    pub fn extent(&self) -> Bytes {
        self.rects().iter().map(Rect::end).max().unwrap_or_default()
    }

    /// Whether it keeps anything out.
    pub fn takes_bytes(&self) -> bool {
        self.rects().iter().any(Rect::takes_bytes)
    }

    /// From its first step to its last one.
    pub fn span(&self) -> Interval {
        let spans = self.rects().iter().map(|rect| rect.span);
        spans.reduce(Interval::hull).unwrap_or_default()
    }
}

/// Items that share one space. Distances and sizes add up to at most [`Bytes::MAX_TOTAL`], so that no
/// packer overflows; [`Problem::new`] sees to it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Problem {
    items: IndexVec<BufferId, Item>,
    steps: usize,
    /// Empty if all steps last as long.
    durations: Vec<u64>,
}

/// Why items make no problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemError {
    /// Sizes out of range.
    #[error("with item {item} the sizes and offsets add up to more than {limit}")]
    TooLarge {
        /// The first item that is too much.
        item: BufferId,
        /// The limit.
        limit: Bytes,
    },
}

impl Problem {
    /// Checks that the sizes are in range.
    pub fn new(items: IndexVec<BufferId, Item>) -> Result<Self, ProblemError> {
        let mut total = Bytes::ZERO;
        let mut end = Step::ZERO;
        for (id, item) in items.iter_enumerated() {
            let too_large = || ProblemError::TooLarge { item: id, limit: Bytes::MAX_TOTAL };
            let mut extent = Bytes::ZERO;
            for rect in item.rects() {
                extent = extent.max(rect.offset.checked_add(rect.bytes).ok_or_else(too_large)?);
                end = end.max(rect.span.end);
            }
            let extent = item.pin.unwrap_or_default().checked_add(extent);
            let padded = extent.and_then(|extent| extent.align_up(Align::MAX));
            let sum = padded.and_then(|padded| total.checked_add(padded));
            total = sum.filter(|&sum| sum <= Bytes::MAX_TOTAL).ok_or_else(too_large)?;
        }
        Ok(Self { items, steps: end.index(), durations: Vec::new() })
    }

    /// The same problem with steps that last longer or shorter. Which placements are right does not depend on it;
    /// a search places first what lives long, and finds more when it knows how long that is.
    #[must_use]
    pub fn with_durations(self, durations: Vec<u64>) -> Self {
        Self { durations, ..self }
    }

    /// The problem of some of its items, each named once: these are numbered anew, steps are not.
    #[must_use]
    pub fn part(&self, items: &[BufferId]) -> Self {
        let items: IndexVec<BufferId, Item> =
            items.iter().map(|&id| self.items[id].clone()).collect();
        Self { items, steps: self.steps, durations: self.durations.clone() }
    }

    /// The same problem with these offsets fixed, and no others.
    pub fn with_pins(
        &self,
        pins: &IndexVec<BufferId, Option<Bytes>>,
    ) -> Result<Self, ProblemError> {
        let items = self.items.iter().zip(pins);
        let pinned = items.map(|(item, &pin)| Item { pin, ..item.clone() }).collect();
        Ok(Self::new(pinned)?.with_durations(self.durations.clone()))
    }

    /// How long a step lasts: 1 if nothing is known.
    pub fn duration(&self, step: Step) -> u64 {
        self.durations.get(step.index()).copied().unwrap_or(1)
    }

    /// The items.
    pub fn items(&self) -> &IndexVec<BufferId, Item> {
        &self.items
    }

    /// Number of steps: all spans end here or before.
    pub fn steps(&self) -> usize {
        self.steps
    }
}

/// Where each item of a problem lies.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Placement {
    /// Offset of each item's base.
    pub offsets: IndexVec<BufferId, Bytes>,
    /// Size of the arena: no item ends beyond it.
    pub size: Bytes,
}
