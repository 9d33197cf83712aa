//! [`Meter`]: how much work may still be done, and somebody who looks on and may end it.
//!
//! ~~~text
//! steps ──part──> meter of a stage ──give back──> what it did not need
//!                   | every million steps
//!                   v
//!                 watch(Progress) ──Break──> every meter is out
//! ~~~
//! Work is counted in steps, not in seconds, so that the same budget gives the same result on every machine. A clock
//! belongs to the caller: whoever has a time limit breaks when it is over.

use lowtide_core::Bytes;
use std::cell::Cell;
use std::fmt;
use std::ops::ControlFlow;

/// How far a search has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Steps done so far.
    pub steps: u64,
    /// The smallest arena so far; none at the very start.
    pub arena: Option<Bytes>,
    /// No arena is smaller than this.
    pub bound: Bytes,
}

/// Somebody who looks on: called about every millisecond of work; [`ControlFlow::Break`] ends it, with the best so far.
pub type Watch<'w> = dyn Fn(Progress) -> ControlFlow<()> + 'w;

/// Nobody looks on.
const UNWATCHED: &Watch<'static> = &|_| ControlFlow::Continue(());

/// How much work may be done, and who looks on.
#[derive(Clone, Copy)]
pub struct Budget<'w> {
    /// Steps; what a step is, each search says.
    pub steps: u64,
    /// Who looks on.
    pub watch: &'w Watch<'w>,
}

impl Budget<'_> {
    /// So many steps, and nobody looks on.
    pub fn of(steps: u64) -> Self {
        Self { steps, watch: UNWATCHED }
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("steps", &self.steps).finish_non_exhaustive()
    }
}

/// So many steps are done before somebody is asked again.
const UNASKED: u64 = 1 << 20;

/// What all meters of one search share.
pub(crate) struct Watched<'w> {
    watch: &'w Watch<'w>,
    steps: Cell<u64>,
    arena: Cell<Option<Bytes>>,
    bound: Cell<Bytes>,
    is_ended: Cell<bool>,
}

impl<'w> Watched<'w> {
    pub(crate) fn new(watch: &'w Watch<'w>) -> Self {
        Self {
            watch,
            steps: Cell::new(0),
            arena: Cell::new(None),
            bound: Cell::new(Bytes::ZERO),
            is_ended: Cell::new(false),
        }
    }

    /// Whether somebody has ended the search.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.get()
    }

    /// Steps done when somebody was asked last.
    pub(crate) fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// What is known, for those who look on.
    pub(crate) fn tell(&self, arena: Bytes, bound: Bytes) {
        self.arena.set(Some(arena));
        self.bound.set(bound);
    }

    fn ask(&self, done: u64) {
        self.steps.set(self.steps.get().saturating_add(done));
        if self.is_ended() {
            return;
        }
        let (steps, arena, bound) = (self.steps.get(), self.arena.get(), self.bound.get());
        if (self.watch)(Progress { steps, arena, bound }).is_break() {
            self.is_ended.set(true);
        }
    }
}

/// Steps that may still be done.
pub(crate) struct Meter<'w> {
    /// Those until somebody is asked again.
    fuel: u64,
    /// Those beyond.
    reserve: u64,
    watched: &'w Watched<'w>,
}

impl<'w> Meter<'w> {
    pub(crate) fn new(steps: u64, watched: &'w Watched<'w>) -> Self {
        let fuel = steps.min(UNASKED);
        Self { fuel, reserve: steps - fuel, watched }
    }

    /// What all meters of this search share.
    pub(crate) fn watched(&self) -> &'w Watched<'w> {
        self.watched
    }

    /// Counts steps as done.
    pub(crate) fn spend(&mut self, steps: u64) {
        if steps < self.fuel {
            self.fuel -= steps;
        } else {
            self.refuel(steps);
        }
    }

    fn refuel(&mut self, steps: u64) {
        let left = self.left().saturating_sub(steps);
        self.watched.ask(UNASKED.max(steps));
        *self = Self::new(left, self.watched);
    }

    /// Steps that are left.
    pub(crate) fn left(&self) -> u64 {
        if self.watched.is_ended() { 0 } else { self.fuel + self.reserve }
    }

    /// Whether no more may be done.
    pub(crate) fn is_out(&self) -> bool {
        self.fuel == 0 || self.watched.is_ended()
    }

    /// Runs a stage with at most so many of the steps.
    pub(crate) fn with_at_most<T>(
        &mut self,
        steps: u64,
        stage: impl FnOnce(&mut Meter<'w>) -> T,
    ) -> T {
        let some = steps.min(self.left());
        let kept = self.left() - some;
        let mut part = Meter::new(some, self.watched);
        let result = stage(&mut part);
        *self = Meter::new(kept + part.left(), self.watched);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_gives_back_what_it_does_not_need() {
        let watched = Watched::new(Budget::of(0).watch);
        let mut meter = Meter::new(10, &watched);
        meter.with_at_most(6, |part| {
            part.spend(2);
            assert_eq!(part.left(), 4);
        });
        assert_eq!(meter.left(), 8);
        meter.with_at_most(100, |part| part.spend(100));
        assert!(meter.is_out());
    }

    #[test]
    fn whoever_looks_on_is_asked_and_ends_all_meters() {
        let calls = Cell::new(0);
        let watch = |progress: Progress| {
            calls.set(calls.get() + 1);
            assert_eq!(progress.arena, Some(Bytes(7)));
            if calls.get() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let watched = Watched::new(&watch);
        watched.tell(Bytes(7), Bytes(5));
        let mut meter = Meter::new(u64::MAX, &watched);
        meter.with_at_most(u64::MAX / 2, |part| {
            while !part.is_out() {
                part.spend(UNASKED);
            }
        });
        assert_eq!((calls.get(), meter.left()), (3, 0));
        assert!(meter.is_out());
    }
}
