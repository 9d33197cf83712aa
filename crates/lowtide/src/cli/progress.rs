//! Tells on stderr that long work goes on, and how long it took.

use super::out;
use lowtide::planner::Progress;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Work shorter than this is not talked about.
const FIRST: Duration = Duration::from_secs(1);
/// From then on, each time so much longer.
const GROWTH: u32 = 2;

/// Does `work`, telling what it is after one second, after two, four and so on. Returns its seconds too.
pub(super) fn during<T>(what: &str, work: impl FnOnce() -> T) -> (T, f64) {
    let start = now();
    let (done, is_done) = mpsc::channel::<()>();
    let result = thread::scope(|scope| {
        scope.spawn(move || {
            let mut wait = FIRST;
            while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                out::message(&format!("{what}: {:.0} s", start.elapsed().as_secs_f64()));
                wait *= GROWTH;
            }
        });
        let result = work();
        drop(done);
        result
    });
    (result, start.elapsed().as_secs_f64())
}

/// Ends a search when so much time has passed from now on; never without a limit.
pub(super) fn until(limit: Option<Duration>) -> impl Fn(Progress) -> ControlFlow<()> {
    let start = now();
    move |_| match limit {
        Some(limit) if start.elapsed() >= limit => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the command line says how long a plan took")]
fn now() -> Instant {
    Instant::now()
}
