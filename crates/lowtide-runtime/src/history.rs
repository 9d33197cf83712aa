//! [`History`]: which tensors the blocks of an arena held lately, for whoever looks for a wrong reuse.
//!
//! ~~~text
//! record ──> | r4 op2 | r5 op3 | r1 op4 |  ...  (a ring: the newest takes the place of the oldest)
//!                                        └──near(bytes)──> text: what was written over or beside them
//! ~~~
//! All memory is set aside at the beginning: recording allocates nothing. Cost: constant for a record, linear in the
//! ring for a text.

use crate::guard::bytes_of;
use crate::redzone::written;
use lowtide_core::{Bytes, Graph, Occupant, OpId, Plan, Ran, ResidenceId, RunId};
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::time::Duration;

/// One write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Where, and whose bytes these are from then on.
    pub residence: ResidenceId,
    /// By which operator.
    pub op: OpId,
    /// In which run of it.
    pub run: RunId,
    /// On which worker.
    pub worker: u32,
    /// When it was done, since the run of the whole graph began.
    pub at: Duration,
}

/// The last writes into the arena of one plan.
#[derive(Clone, Debug)]
pub struct History {
    /// Full or not, never longer than `most`.
    ring: Vec<Recorded>,
    most: NonZeroUsize,
    /// Where the next record goes once the ring is full: at the oldest.
    next: usize,
}

impl History {
    /// Room for the last `most` writes.
    pub fn new(most: NonZeroUsize) -> Self {
        Self { ring: Vec::with_capacity(most.get()), most, next: 0 }
    }

    /// Room for all writes of one run of a plan.
    pub fn for_run(graph: &Graph, plan: &Plan) -> Self {
        let runs = plan.schedule.ids();
        let writes: usize = runs.map(|run| written(graph, plan, run).count()).sum();
        Self::new(NonZeroUsize::new(writes).unwrap_or(NonZeroUsize::MIN))
    }

    /// Forgets everything: before another run, whose times begin anew.
    pub fn clear(&mut self) {
        self.ring.clear();
        self.next = 0;
    }

    /// Remembers one write, and forgets the oldest one if there is no room.
    pub fn record(&mut self, row: Recorded) {
        if self.ring.len() < self.most.get() {
            self.ring.push(row);
            return;
        }
        self.ring[self.next] = row;
        self.next = (self.next + 1) % self.most;
    }

    /// Remembers all that an operator wrote: outputs and scratch.
    pub fn record_all(&mut self, graph: &Graph, plan: &Plan, ran: &Ran) {
        let Ran { run, worker, end: at, .. } = *ran;
        for residence in written(graph, plan, run) {
            self.record(Recorded { residence, op: plan.op(run), run, worker, at });
        }
    }

    /// All that is remembered, in the order in which it was recorded.
    pub fn iter(&self) -> impl Iterator<Item = &Recorded> {
        let (newer, older) = self.ring.split_at(self.next);
        older.iter().chain(newer)
    }

    /// What was written over or at most `reach` beside some bytes of the arena, newest last: for people.
    ///
    /// # Panics
    /// If the graph or the plan is not the one whose writes were recorded.
    pub fn near(&self, graph: &Graph, plan: &Plan, bytes: Range<usize>, reach: usize) -> String {
        let mut text = format!("bytes [{}, {}) of the arena", bytes.start, bytes.end);
        let at = |row: &Recorded| Some((*row, bytes_of(plan, row.residence)?));
        let mut rows: Vec<(Recorded, Range<usize>)> = self.iter().filter_map(at).collect();
        rows.retain(|(_, range)| !range.is_empty() && distance(range, &bytes) <= reach);
        // Workers record one after the other, but not always in the order of time.
        rows.sort_by_key(|(row, _)| row.at);
        let oldest = if self.ring.len() == self.most.get() {
            format!(" (of the last {} writes)", self.most)
        } else {
            String::new()
        };
        if rows.is_empty() {
            let _ = writeln!(text, ": nothing was written over or beside them{oldest}");
            return text;
        }
        let _ = writeln!(text, ", and what was written over or beside them{oldest}, newest last:");
        for (row, range) in &rows {
            let _ = writeln!(text, "{}", line(graph, plan, row, &place(range, &bytes)));
        }
        text
    }
}

/// How many bytes lie between two ranges.
fn distance(range: &Range<usize>, from: &Range<usize>) -> usize {
    range.start.saturating_sub(from.end).max(from.start.saturating_sub(range.end))
}

/// Where a range lies, seen from others.
fn place(range: &Range<usize>, from: &Range<usize>) -> String {
    let gap = Bytes(distance(range, from) as u64);
    if range.end <= from.start {
        return format!("ends {gap} before");
    }
    if from.end <= range.start {
        return format!("begins {gap} behind");
    }
    "lies over them".to_owned()
}

fn line(graph: &Graph, plan: &Plan, row: &Recorded, place: &str) -> String {
    let residence = &plan.residences[row.residence];
    let what = match residence.what {
        Occupant::Tensor(tensor) => format!("`{}`", graph.tensor_label(tensor)),
        Occupant::Scratch(_) => "its scratch".to_owned(),
    };
    let range = bytes_of(plan, row.residence).unwrap_or_default();
    format!(
        "  {:>9.6} s  worker {}  step {}  `{}` wrote {what} at [{}, {}) in {}, for steps {}: {place}",
        row.at.as_secs_f64(),
        row.worker,
        row.run.step(),
        graph.op_label(row.op),
        range.start,
        range.end,
        residence.buffer,
        residence.span,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Row, plan};

    /// t1 comes where t0 was, t2 lies a little above them, t3 far away.
    const ROWS: [Row; 4] = [(0, 64, 1), (0, 48, 4), (128, 64, 4), (400, 64, 4)];

    /// Run after run, again and again, ten microseconds each, on two workers.
    fn ran(time: u32) -> Ran {
        let start = Duration::from_micros(10 * u64::from(time));
        let (run, end) = (RunId::new(time % 4), start + Duration::from_micros(10));
        Ran { run, worker: time % 2, waited: Duration::ZERO, start, end }
    }

    /// What is told of `[64, 66)` after so many rounds.
    fn told(most: usize, rounds: u32, reach: usize) -> Vec<String> {
        let (graph, plan) = plan(&ROWS);
        let mut history = History::new(NonZeroUsize::new(most).unwrap());
        for time in 0..4 * rounds {
            history.record_all(&graph, &plan, &ran(time));
        }
        history.near(&graph, &plan, 64..66, reach).lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_newest_comes_last() {
        let wanted = [
            "bytes [64, 66) of the arena, and what was written over or beside them, newest last:",
            "   0.000010 s  worker 0  step 0  `o0` wrote `t0` at [0, 64) in b0, for steps [0, 1): ends 0 B before",
            "   0.000020 s  worker 1  step 1  `o1` wrote `t1` at [0, 48) in b1, for steps [1, 4): ends 16 B before",
            "   0.000030 s  worker 0  step 2  `o2` wrote `t2` at [128, 192) in b2, for steps [2, 4): begins 62 B behind",
        ];
        assert_eq!(told(10, 1, 64), wanted);
        assert_eq!(told(10, 1, 15), wanted[..2]);
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let told = told(3, 2, 64);
        assert!(told[0].ends_with("(of the last 3 writes), newest last:"), "{}", told[0]);
        let steps: Vec<&str> = told[1..].iter().map(|line| &line[25..31]).collect();
        assert_eq!(steps, ["step 1", "step 2"]);
    }

    #[test]
    fn nothing_near_is_said() {
        let (graph, plan) = plan(&ROWS);
        let history = History::for_run(&graph, &plan);
        let wanted = "bytes [1, 2) of the arena: nothing was written over or beside them\n";
        assert_eq!(history.near(&graph, &plan, 1..2, 64), wanted);
        assert_eq!(history.most.get(), 4);
    }

    #[test]
    fn recording_allocates_nothing() {
        let (graph, plan) = plan(&ROWS);
        let mut history = History::for_run(&graph, &plan);
        let before = (history.ring.as_ptr(), history.ring.capacity());
        for time in 0..100 {
            history.record_all(&graph, &plan, &ran(time));
        }
        assert_eq!((history.ring.as_ptr(), history.ring.capacity()), before);
        let last: Vec<u32> = history.iter().map(|row| row.run.raw()).collect();
        assert_eq!(last, [0, 1, 2, 3]);
        history.clear();
        assert_eq!(history.iter().count(), 0);
    }
}
