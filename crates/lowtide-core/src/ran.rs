//! [`Ran`]: when and where one run of an operator really took place.
//!
//! ~~~text
//! worker 0   |  run 0  |        run 2        |
//! worker 1   ~~ waited ~~|  run 1  |~~~~~~|  run 3  |      run 3 waited for a fence or for data
//!            0 ──────────────────────────────────────> time since the run of the whole graph began
//! ~~~
//! A runtime fills a vector of these, readers of traces read it. This crate looks at no clock.

use crate::RunId;
use std::time::Duration;

/// One run of an operator, as it really was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Which run of the schedule.
    pub run: RunId,
    /// On which worker, counted from 0.
    pub worker: u32,
    /// How long the worker waited for data and fences, just before the start.
    pub waited: Duration,
    /// When the operator started, since the run of the whole graph began.
    pub start: Duration,
    /// When it was done; not before `start`.
    pub end: Duration,
}
