//! Running to the end: one worker follows the schedule, several take what may begin.
//!
//! ~~~text
//! worker 0   take f ── f ── finish f ── take h ── h ── ...        all on threads of one pool, of which kernels take what
//! worker 1   take g ── g ── finish g ── nothing: lend the thread  the workers leave: a worker without a run helps others
//! ~~~
//! A run for which the pool has too little memory free is parked, and its worker takes another; what is freed wakes it. One
//! worker has nothing else to take: it has blocks moved together, or fails.
//!
//! Workers begin together: one that began while another was inside a kernel could be taken up by that kernel's thread, and
//! wait there for itself.

use crate::RunError;
use crate::engine::{Outcome, Running, Worker};
use crate::handover::Handover;
use crate::redzone::damaged;
use lowtide_core::RunId;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Follows the schedule. Nothing is allocated.
pub(crate) fn alone(running: Running<'_>, worker: &mut Worker) -> Result<(), RunError> {
    for run in running.engine.plan.schedule.ids() {
        if let Outcome::Full(error) = running.execute(run, worker)? {
            again(running, run, worker, *error)?;
        }
        if let Some(guard) = &running.engine.guard {
            let holes = guard.zones.after(run);
            let damage = running.memory.between_runs(|bytes| damaged(bytes, holes));
            let op = running.engine.plan.op(run);
            let by = || format!("after operator `{}`", running.engine.graph.op_label(op));
            damage.map_or(Ok(()), |bytes| Err(running.engine.damage(bytes, by(), &worker.ran)))?;
        }
    }
    Ok(())
}

/// Another try for the only worker: enough may be free, but not together.
fn again(
    running: Running<'_>,
    run: RunId,
    worker: &mut Worker,
    error: RunError,
) -> Result<(), RunError> {
    let is_moved = running.engine.late.as_ref().is_some_and(|late| late.pooled.compact(0));
    if !is_moved {
        return Err(error);
    }
    match running.execute(run, worker)? {
        Outcome::Done { .. } => Ok(()),
        Outcome::Full(error) => Err(*error),
    }
}

/// Runs on as many threads of the current pool as there are workers; it has no fewer. Nothing is allocated.
pub(crate) fn together(
    running: Running<'_>,
    handover: &mut Handover,
    workers: &mut [Worker],
) -> Result<(), RunError> {
    handover.start();
    let team = Team {
        running,
        handover,
        size: workers.len(),
        begun: AtomicUsize::new(0),
        failure: Mutex::new(None),
    };
    team.send(workers);
    team.failure.into_inner().map_or(Ok(()), Err)
}

struct Team<'a> {
    running: Running<'a>,
    handover: &'a Handover,
    size: usize,
    begun: AtomicUsize,
    /// The first that went wrong.
    failure: Mutex<Option<RunError>>,
}

/// Ends the run for all when a kernel panics.
struct StopOnPanic<'a>(&'a Handover);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

impl Team<'_> {
    /// Each worker to a thread of its own.
    fn send(&self, workers: &mut [Worker]) {
        match workers {
            [] => {}
            [last] => self.work(last),
            [first, others @ ..] => {
                rayon::join(|| self.work(first), || self.send(others));
            }
        }
    }

    fn work(&self, worker: &mut Worker) {
        self.begun.fetch_add(1, Ordering::AcqRel);
        while self.begun.load(Ordering::Acquire) < self.size {
            std::thread::yield_now();
        }
        let _guard = StopOnPanic(self.handover);
        let mut next = None;
        while !self.handover.is_over() {
            let Some(run) = next.take().or_else(|| self.handover.take()) else {
                lend();
                continue;
            };
            // Taken before the pool is asked: what is freed from here on is not missed.
            let frees = self.handover.frees();
            match self.running.execute(run, worker) {
                Ok(Outcome::Done { freed }) => {
                    if freed {
                        self.handover.wake();
                    }
                    next = self.handover.finish(run);
                }
                Ok(Outcome::Full(error)) => {
                    if !self.handover.park(run, frees) {
                        self.fail(*error);
                    }
                }
                Err(error) => self.fail(error),
            }
        }
    }

    fn fail(&self, error: RunError) {
        self.failure.lock().get_or_insert(error);
        self.handover.stop();
    }
}

/// Does a piece of work of some kernel, if there is one.
fn lend() {
    if rayon::yield_now() != Some(rayon::Yield::Executed) {
        std::thread::yield_now();
    }
}
