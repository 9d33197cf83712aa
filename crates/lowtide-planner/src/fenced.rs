//! How long a plan takes when fences make runs wait too.
//!
//! ~~~text
//! order on 2 workers, data alone:   a a b b      with FENCE a before c:   a a b b
//!                                   c c . .                               . . c c
//! ~~~
//! As in [`time`](crate::time), a free worker takes the first run of the schedule that waits for nothing. Cost:
//! O((runs + waits) log runs).

use crate::Times;
use lowtide_core::{Graph, Id, Lists, Plan, RunId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroUsize;

/// What waits for what in a plan, and how long each run takes.
#[derive(Clone, Debug)]
pub struct Fenced {
    followers: Lists<RunId, RunId>,
    waits: Vec<u32>,
    seconds: Vec<f64>,
}

impl Fenced {
    /// The waits of a plan of `graph`.
    pub fn new(graph: &Graph, plan: &Plan, times: &Times) -> Self {
        let pairs = plan.waits(graph);
        let mut waits = vec![0; plan.schedule.len()];
        for (_, after) in &pairs {
            waits[after.index()] += 1;
        }
        let seconds = plan.schedule.iter().map(|&op| times.seconds()[op]).collect();
        Self { followers: Lists::group(plan.schedule.len(), &pairs), waits, seconds }
    }

    /// Seconds of the longest chain of runs that wait for each other: no number of workers is faster.
    pub fn critical_path(&self) -> f64 {
        let mut starts = vec![0.0_f64; self.seconds.len()];
        let mut last = 0.0_f64;
        for run in 0..starts.len() {
            let end = starts[run] + self.seconds[run];
            last = last.max(end);
            for follower in &self.followers[RunId::from_index(run)] {
                starts[follower.index()] = starts[follower.index()].max(end);
            }
        }
        last
    }

    /// Seconds on so many workers.
    pub fn makespan(&self, workers: NonZeroUsize) -> f64 {
        let mut waits = self.waits.clone();
        let first = (0..waits.len()).filter(|&run| waits[run] == 0).map(Reverse);
        let mut ready: BinaryHeap<Reverse<usize>> = first.collect();
        // By their ends as bits, which compare like the times, as none is negative.
        let mut running: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut now = 0.0_f64;
        loop {
            while running.len() < workers.get() {
                let Some(Reverse(run)) = ready.pop() else { break };
                running.push(Reverse(((now + self.seconds[run]).to_bits(), run)));
            }
            let Some(Reverse((end, run))) = running.pop() else { return now };
            now = f64::from_bits(end);
            for follower in &self.followers[RunId::from_index(run)] {
                waits[follower.index()] -= 1;
                if waits[follower.index()] == 0 {
                    ready.push(Reverse(follower.index()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlanConfig, critical_path, plan};
    use lowtide_core::Reuse;
    use lowtide_core::testing::layered_random;

    #[test]
    fn fences_never_make_it_faster_and_without_them_all_is_as_the_order_alone() {
        for seed in 0..20 {
            let graph = layered_random(80, 8, seed);
            let times = Times::of(&graph);
            let fenced = |reuse| {
                let config = PlanConfig { reuse, ..PlanConfig::default() };
                Fenced::new(&graph, &plan(&graph, &config).unwrap().plan, &times)
            };
            let (safe, pack) = (fenced(Reuse::Safe), fenced(Reuse::Pack));
            let path = critical_path(&graph, &times).seconds;
            assert!((safe.critical_path() - path).abs() < 1e-9 * path);
            assert!(pack.critical_path() >= path - 1e-9 * path);
            let total = times.total();
            assert!((pack.makespan(NonZeroUsize::MIN) - total).abs() < 1e-9 * total);
            let many = NonZeroUsize::new(80).unwrap();
            assert!((safe.makespan(many) - path).abs() < 1e-9 * path);
        }
    }
}
