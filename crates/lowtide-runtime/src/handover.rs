//! [`Handover`]: which run may begin now that others are over?
//!
//! ~~~text
//! waits:   f 0   g 0   h 2        ready: f, g          worker 0 takes f, worker 1 takes g: by the plan's order
//! f over:              h 1                             what ends last makes h ready, and its worker sees all that the
//! g over:              h 0        ready: h             others have written
//! ~~~
//! A run waits for those that write what it reads, for those that read what it changes, and for its fences. Counting down
//! acquires what was released by those that counted before, so whoever makes a run ready has seen all their writes; the
//! lock of the heap hands that on to who takes it. Nothing is allocated after it is made.
//!
//! A run that finds too little memory in the pool is *parked*: it is ready again when something is freed, and also when no
//! run is under way any more that could free anything. Then each is tried once more, and the last to fail ends all.

use crate::sync::{AtomicBool, AtomicU32, Mutex, Ordering, lock};
use lowtide_core::{Id, Lists, RunId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Runs that have not begun, and how many have.
#[derive(Debug, Default)]
struct Ready {
    /// Those that may begin, the earliest of the plan first.
    heap: BinaryHeap<Reverse<RunId>>,
    /// Those that wait for memory.
    parked: Vec<RunId>,
    /// Those that were taken and are neither over nor parked.
    under_way: usize,
}

impl Ready {
    fn pop(&mut self) -> Option<RunId> {
        let Reverse(run) = self.heap.pop()?;
        self.under_way += 1;
        Some(run)
    }

    fn unpark(&mut self) {
        self.heap.extend(self.parked.drain(..).map(Reverse));
    }

    fn is_stuck(&self) -> bool {
        self.under_way == 0 && self.heap.is_empty()
    }
}

#[derive(Debug)]
pub(crate) struct Handover {
    /// The runs that wait for each one.
    followers: Lists<RunId, RunId>,
    /// How many each run waits for.
    all: Vec<u32>,
    /// How many of them are not over.
    left: Vec<AtomicU32>,
    ready: Mutex<Ready>,
    /// Runs that are not over.
    open: AtomicU32,
    is_stopped: AtomicBool,
    /// How often something was freed.
    frees: AtomicU32,
    /// How counts are counted down: anything weaker loses writes.
    order: Ordering,
}

impl Handover {
    /// For so many runs, of which some wait for others.
    pub(crate) fn new(runs: usize, edges: &[(RunId, RunId)]) -> Self {
        let mut all = vec![0; runs];
        for (_, after) in edges {
            all[after.index()] += 1;
        }
        let left = all.iter().map(|&count| AtomicU32::new(count)).collect();
        let (heap, parked) = (BinaryHeap::with_capacity(runs), Vec::with_capacity(runs));
        let ready = Mutex::new(Ready { heap, parked, under_way: 0 });
        let followers = Lists::group(runs, edges);
        let (open, is_stopped) = (AtomicU32::new(0), AtomicBool::new(false));
        let (frees, order) = (AtomicU32::new(0), Ordering::AcqRel);
        Self { followers, all, left, ready, open, is_stopped, frees, order }
    }

    /// Begins anew. Nobody else uses it now.
    pub(crate) fn start(&mut self) {
        let mut ready = lock(&self.ready);
        ready.heap.clear();
        ready.parked.clear();
        ready.under_way = 0;
        for (run, (&all, left)) in (0..).map(RunId::new).zip(self.all.iter().zip(&self.left)) {
            left.store(all, Ordering::Relaxed);
            if all == 0 {
                ready.heap.push(Reverse(run));
            }
        }
        let runs = u32::try_from(self.all.len()).expect("runs have ids");
        self.open.store(runs, Ordering::Relaxed);
        self.is_stopped.store(false, Ordering::Relaxed);
    }

    /// The earliest run that may begin.
    pub(crate) fn take(&self) -> Option<RunId> {
        lock(&self.ready).pop()
    }

    /// `run` is over; returns the next one to begin, if any may.
    pub(crate) fn finish(&self, run: RunId) -> Option<RunId> {
        let mut ready = None;
        for &follower in &self.followers[run] {
            if self.left[follower.index()].fetch_sub(1, self.order) == 1 {
                ready.get_or_insert_with(|| lock(&self.ready)).heap.push(Reverse(follower));
            }
        }
        self.open.fetch_sub(1, Ordering::Release);
        let mut ready = ready.unwrap_or_else(|| lock(&self.ready));
        ready.under_way -= 1;
        if ready.is_stuck() {
            ready.unpark();
        }
        ready.pop()
    }

    /// How often something was freed, as far as is known here.
    pub(crate) fn frees(&self) -> u32 {
        self.frees.load(Ordering::Acquire)
    }

    /// Something was freed: parked runs may begin.
    pub(crate) fn wake(&self) {
        let mut ready = lock(&self.ready);
        self.frees.fetch_add(1, Ordering::Release);
        ready.unpark();
    }

    /// `run` found too little memory, after things were freed so often. It will begin anew; `false` if nothing is left
    /// that could free any.
    pub(crate) fn park(&self, run: RunId, frees: u32) -> bool {
        let mut ready = lock(&self.ready);
        ready.under_way -= 1;
        if self.frees.load(Ordering::Relaxed) != frees {
            ready.heap.push(Reverse(run));
            return true;
        }
        ready.parked.push(run);
        !ready.is_stuck()
    }

    /// Whether all runs are over, or nobody is to begin another.
    pub(crate) fn is_over(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire) || self.open.load(Ordering::Acquire) == 0
    }

    /// Nobody begins another run.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn pairs(rows: &[(u32, u32)]) -> Vec<(RunId, RunId)> {
        rows.iter().map(|&(a, b)| (RunId::new(a), RunId::new(b))).collect()
    }

    #[test]
    fn one_worker_keeps_the_order_of_the_plan() {
        let mut handover = Handover::new(5, &pairs(&[(0, 2), (1, 2), (0, 4)]));
        for _ in 0..2 {
            handover.start();
            let (mut found, mut next) = (Vec::new(), handover.take());
            while let Some(run) = next {
                found.push(run.raw());
                next = handover.finish(run);
            }
            assert_eq!((found, handover.is_over()), (vec![0, 1, 2, 3, 4], true));
        }
    }

    #[test]
    fn a_parked_run_begins_again_when_something_is_freed() {
        let mut handover = Handover::new(3, &pairs(&[(0, 2)]));
        handover.start();
        let (first, second) = (handover.take().unwrap(), handover.take().unwrap());
        let frees = handover.frees();
        assert!(handover.park(second, frees));
        assert_eq!(handover.take(), None);
        handover.wake();
        assert_eq!(handover.take(), Some(second));
        // What was freed after the pool was asked is not missed.
        assert!(handover.park(second, frees));
        assert_eq!(handover.take(), Some(second));
        assert_eq!(handover.finish(first), Some(RunId::new(2)));
    }

    #[test]
    fn what_waits_for_memory_is_tried_once_more_before_all_ends() {
        let mut handover = Handover::new(3, &[]);
        handover.start();
        let runs: Vec<RunId> = (0..3).map(|_| handover.take().unwrap()).collect();
        let frees = handover.frees();
        assert!(handover.park(runs[0], frees) && handover.park(runs[1], frees));
        // The last that was under way frees nothing.
        assert_eq!(handover.finish(runs[2]), Some(runs[0]));
        assert!(handover.park(runs[0], frees));
        assert_eq!(handover.take(), Some(runs[1]));
        assert!(!handover.park(runs[1], frees));
    }

    #[test]
    fn a_stop_is_forgotten_at_the_next_start() {
        let mut handover = Handover::new(1, &[]);
        handover.start();
        handover.stop();
        assert!(handover.is_over());
        handover.start();
        assert!(!handover.is_over());
    }
}

/// Every way in which two workers can interleave, over bytes that tell when two use them at once.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    /// Two ranges of bytes; `f` writes the first, `g` reads the second, `h` reads the first and writes the second.
    struct Memory {
        handover: Handover,
        bytes: [UnsafeCell<u32>; 2],
    }

    fn visit(memory: &Memory, run: RunId) {
        match run.raw() {
            0 => memory.bytes[0].with_mut(|_| {}),
            1 => memory.bytes[1].with(|_| {}),
            _ => {
                memory.bytes[0].with(|_| {});
                memory.bytes[1].with_mut(|_| {});
            }
        }
    }

    fn work(memory: &Memory, finishes_early: bool) {
        let mut next = None;
        loop {
            match next.take().or_else(|| memory.handover.take()) {
                Some(run) if finishes_early => {
                    next = memory.handover.finish(run);
                    visit(memory, run);
                }
                Some(run) => {
                    visit(memory, run);
                    next = memory.handover.finish(run);
                }
                None if memory.handover.is_over() => return,
                None => loom::thread::yield_now(),
            }
        }
    }

    /// `f` before `h` by data, `g` before `h` by a fence.
    fn check(edges: &[(u32, u32)], order: Ordering, finishes_early: bool) {
        let edges: Vec<_> = edges.iter().map(|&(a, b)| (RunId::new(a), RunId::new(b))).collect();
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let mut handover = Handover { order, ..Handover::new(3, &edges) };
            handover.start();
            let bytes = [UnsafeCell::new(0), UnsafeCell::new(0)];
            let memory = Arc::new(Memory { handover, bytes });
            let other = Arc::clone(&memory);
            let thread = loom::thread::spawn(move || work(&other, finishes_early));
            work(&memory, finishes_early);
            thread.join().unwrap();
        });
    }

    /// Memory for one run at a time.
    struct Block {
        handover: Handover,
        is_free: AtomicBool,
        bytes: UnsafeCell<u32>,
        runs: AtomicU32,
    }

    fn work_in_turn(block: &Block) {
        let handover = &block.handover;
        let mut next = None;
        while !handover.is_over() {
            let Some(run) = next.take().or_else(|| handover.take()) else {
                loom::thread::yield_now();
                continue;
            };
            let frees = handover.frees();
            let taken =
                block.is_free.compare_exchange(true, false, Ordering::AcqRel, Ordering::Acquire);
            if taken.is_err() {
                assert!(handover.park(run, frees), "a run gave up that could have been done");
                continue;
            }
            block.bytes.with_mut(|_| {});
            block.runs.fetch_add(1, Ordering::Relaxed);
            block.is_free.swap(true, Ordering::AcqRel);
            handover.wake();
            next = handover.finish(run);
        }
    }

    #[test]
    fn runs_that_need_the_same_memory_are_all_done() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let mut handover = Handover::new(3, &[(RunId::new(0), RunId::new(2))]);
            handover.start();
            let (is_free, bytes) = (AtomicBool::new(true), UnsafeCell::new(0));
            let block = Block { handover, is_free, bytes, runs: AtomicU32::new(0) };
            let block = Arc::new(block);
            let other = Arc::clone(&block);
            let thread = loom::thread::spawn(move || work_in_turn(&other));
            work_in_turn(&block);
            thread.join().unwrap();
            assert_eq!(block.runs.load(Ordering::Relaxed), 3);
        });
    }

    const ALL: [(u32, u32); 2] = [(0, 2), (1, 2)];

    // Seeded faults. The model checker tells what it finds by a panic, whose text says that two accesses met.

    #[test]
    fn what_is_ordered_never_meets() {
        check(&ALL, Ordering::AcqRel, false);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_missing_fence_is_found() {
        check(&ALL[..1], Ordering::AcqRel, false);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_run_that_is_said_to_be_over_too_early_is_found() {
        check(&ALL, Ordering::AcqRel, true);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn counting_without_order_is_found() {
        check(&ALL, Ordering::Relaxed, false);
    }
}
