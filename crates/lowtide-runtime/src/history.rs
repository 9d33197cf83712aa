//! What has run to which tensors the blocks of an arena held, for whoever looks for a wrong reuse.
//!
//! ~~~text
//! | run 2 on worker 0 | run 3 on worker 1 | ...  ──near(bytes)──> text: what was written over or beside them, newest last
//! ~~~
//! Nothing is kept for this during a run but who ran when ([`Ran`]). Cost: linear in the runs.

use crate::guard::bytes_of;
use crate::redzone::written;
use lowtide_core::{Bytes, Graph, Occupant, Plan, Ran, ResidenceId};
use std::fmt::Write;
use std::ops::Range;

/// What runs of a plan wrote over or at most `reach` beside some bytes of the arena, newest last: for people.
pub(crate) fn near<'r>(
    graph: &Graph,
    plan: &Plan,
    ran: impl IntoIterator<Item = &'r Ran>,
    bytes: Range<usize>,
    reach: usize,
) -> String {
    let mut text = format!("bytes [{}, {}) of the arena", bytes.start, bytes.end);
    let writes = ran.into_iter().flat_map(|ran| {
        let written = written(graph, plan, ran.run);
        written.filter_map(move |id| Some((ran, id, bytes_of(plan, id)?)))
    });
    let is_near = |range: &Range<usize>| !range.is_empty() && distance(range, &bytes) <= reach;
    let mut rows: Vec<_> = writes.filter(|(_, _, range)| is_near(range)).collect();
    // Workers note what they ran one after the other, but not always in the order of time.
    rows.sort_by_key(|(ran, ..)| ran.end);
    if rows.is_empty() {
        text.push_str(": nothing was written over or beside them\n");
        return text;
    }
    text.push_str(", and what was written over or beside them, newest last:\n");
    for (ran, id, range) in rows {
        let place = place(&range, &bytes);
        let _ = writeln!(text, "{}: {place}", line(graph, plan, ran, id, &range));
    }
    text
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

fn line(graph: &Graph, plan: &Plan, ran: &Ran, id: ResidenceId, range: &Range<usize>) -> String {
    let residence = &plan.residences[id];
    let what = match residence.what {
        Occupant::Tensor(tensor) => format!("`{}`", graph.tensor_label(tensor)),
        Occupant::Scratch(_) => "its scratch".to_owned(),
    };
    format!(
        "  {:>9.6} s  worker {}  step {}  `{}` wrote {what} at [{}, {}) in {}, for steps {}",
        ran.end.as_secs_f64(),
        ran.worker,
        ran.run.step(),
        graph.op_label(plan.op(ran.run)),
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
    use lowtide_core::RunId;
    use std::time::Duration;

    /// t1 comes where t0 was, t2 lies a little above them, t3 far away.
    const ROWS: [Row; 4] = [(0, 64, 1), (0, 48, 4), (128, 64, 4), (400, 64, 4)];

    /// Run after run, ten microseconds each, on two workers.
    fn ran(run: u32) -> Ran {
        let start = Duration::from_micros(10 * u64::from(run));
        let end = start + Duration::from_micros(10);
        Ran { run: RunId::new(run), worker: run % 2, waited: Duration::ZERO, start, end }
    }

    /// What is told of `[64, 66)` after these runs.
    fn told(runs: &[u32], reach: usize) -> Vec<String> {
        let (graph, plan) = plan(&ROWS);
        let ran: Vec<Ran> = runs.iter().map(|&run| ran(run)).collect();
        near(&graph, &plan, &ran, 64..66, reach).lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_newest_comes_last() {
        let wanted = [
            "bytes [64, 66) of the arena, and what was written over or beside them, newest last:",
            "   0.000010 s  worker 0  step 0  `o0` wrote `t0` at [0, 64) in b0, for steps [0, 1): ends 0 B before",
            "   0.000020 s  worker 1  step 1  `o1` wrote `t1` at [0, 48) in b1, for steps [1, 4): ends 16 B before",
            "   0.000030 s  worker 0  step 2  `o2` wrote `t2` at [128, 192) in b2, for steps [2, 4): begins 62 B behind",
        ];
        assert_eq!(told(&[1, 3, 2, 0], 64), wanted);
        assert_eq!(told(&[0, 1, 2, 3], 15), wanted[..2]);
    }

    #[test]
    fn nothing_near_is_said() {
        let wanted = "bytes [64, 66) of the arena: nothing was written over or beside them";
        assert_eq!(told(&[3], 64), [wanted]);
        assert_eq!(told(&[], 64), [wanted]);
    }
}
