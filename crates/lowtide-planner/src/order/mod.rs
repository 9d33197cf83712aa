//! Graph to orders: the one that needs least, others that come near, and a bound for all.
//!
//! ~~~text
//! Flow ─ fuse ─> tasks ─ rules ─> an order ─ cuts ─> a bound ─ sections, windows ─> better orders, a better bound
//! sets of        what may run     simple     for     of single tasks     search over sets of tasks, where the peak is
//! operators      side by side     rules      every order                 ends as soon as peak and bound meet
//! ~~~
//! Each rung is tried only if the one before has left a gap. All of it is exact in the [`flow`] model; what is written
//! down in the end is counted again from the residences.

mod cut;
pub(crate) mod flow;
mod fuse;
mod layers;
pub(crate) mod pair;
mod profile;
mod rules;
mod score;
mod sections;
#[cfg(test)]
mod tests;
mod window;

pub use score::score_order;

use crate::PlanConfig;
use crate::meter::Meter;
use crate::share::Ground;
use cut::Cuts;
use flow::{Flow, Walk, peak};
use lowtide_core::{Graph, OpId};
use profile::Profile;

/// An order, and who found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ranked {
    pub(crate) rule: &'static str,
    pub(crate) ops: Vec<OpId>,
    /// What it needs by the model.
    pub(crate) peak: u64,
}

/// What the ladder came to.
#[derive(Clone, Debug)]
pub(crate) struct Ladder {
    /// The best first.
    pub(crate) orders: Vec<Ranked>,
    /// No order needs less.
    pub(crate) bound: u64,
}

/// How far the ladder is climbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rungs {
    /// The order of the file, the score rule, and simple rules.
    Rules,
    /// Bounds and searches too.
    Search,
}

/// Where the windows' sequence of numbers begins.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// Sets that a layer of the search may keep, one pass after the other. Often few sets are within reach at all, so that
/// all are tried first, with a part of the steps.
const WIDTHS: [usize; 6] = [usize::MAX, 4, 32, 256, 4096, usize::MAX];
const FIRST_PART: u64 = 2;

/// Climbs the ladder; `None` if the graph has too many operators that wait for each other.
pub(crate) fn climb(
    graph: &Graph,
    config: &PlanConfig,
    ground: &Ground,
    rungs: Rungs,
    meter: &mut Meter<'_>,
) -> Option<Ladder> {
    let plain = Flow::new(graph, config, ground)?;
    let file: Vec<OpId> = graph.file_order().schedule().iter().copied().collect();
    let flow = fuse::fuse(&plain, &file);
    let score: Vec<OpId> = score_order(graph, config).schedule().iter().copied().collect();
    let mut bound = simple_bound(&flow);
    let mut found = vec![("file", flow.tasks().collect()), ("score", flow.tasks_of(&score))];
    let mut ranks: Vec<u64> = found.iter().map(|(_, tasks)| peak(&flow, tasks)).collect();
    for (rule, find) in rules::RULES {
        if ranks.iter().any(|&needed| needed <= bound) {
            break;
        }
        let tasks = find(&flow);
        ranks.push(peak(&flow, &tasks));
        found.push((rule, tasks));
    }
    let best = (0..ranks.len()).min_by_key(|&at| ranks[at]).expect("the file has an order");
    if rungs == Rungs::Search && ranks[best] > bound {
        let profile = Profile::new(&flow, found[best].1.clone());
        let mut search = Search { flow: &flow, bound, profile };
        let rung = search.run(meter);
        bound = search.bound;
        if let Some(rung) = rung {
            ranks.push(search.profile.peak());
            found.push((rung, search.profile.order().to_vec()));
        }
    }
    let rows = found.into_iter().zip(ranks);
    let mut orders: Vec<Ranked> = rows
        .map(|((rule, tasks), peak)| Ranked { rule, ops: flow.operators(&tasks), peak })
        .collect();
    orders.sort_by_key(|order| order.peak);
    bound = bound.min(orders[0].peak);
    Some(Ladder { orders, bound })
}

/// What any task needs by itself, and what is there in the end.
fn simple_bound(flow: &Flow) -> u64 {
    let bytes = |&cell: &u32| flow.bytes[cell as usize];
    let own = |task: OpId| {
        let used: u64 = flow.uses[task].iter().map(bytes).sum();
        (used + flow.extra[task]).saturating_sub(flow.most_saved(task))
    };
    let most = flow.tasks().map(own).max().unwrap_or(0);
    let mut walk = Walk::new(flow);
    for task in flow.tasks() {
        walk.run(task);
    }
    most.max(walk.live).max(flow.start)
}

/// The rungs that search.
struct Search<'f> {
    flow: &'f Flow,
    bound: u64,
    profile: Profile<'f>,
}

impl Search<'_> {
    /// Climbs until bound and peak meet, or the steps are used up; returns the rung that moved the peak last.
    fn run(&mut self, meter: &mut Meter<'_>) -> Option<&'static str> {
        let (mut rung, mut seed) = (None, SEED);
        let share = meter.left() / 8;
        meter.with_at_most(share, |meter| self.cut(meter));
        for (pass, width) in WIDTHS.into_iter().enumerate() {
            if self.is_done() || meter.is_out() {
                break;
            }
            let before = self.profile.peak();
            let share = meter.left() / if pass == 0 { FIRST_PART } else { 2 };
            self.bound = meter.with_at_most(share, |meter| {
                sections::lower(&mut self.profile, self.flow, self.bound, width, meter)
            });
            if self.profile.peak() < before {
                rung = Some("sections");
            }
            if pass == 0 {
                continue;
            }
            let before = self.profile.peak();
            let share = meter.left() / 2;
            meter.with_at_most(share, |meter| {
                window::lower(&mut self.profile, self.bound, width, &mut seed, meter);
            });
            if self.profile.peak() < before {
                rung = Some("windows");
                let share = meter.left() / 8;
                meter.with_at_most(share, |meter| self.cut(meter));
            }
        }
        rung
    }

    fn is_done(&self) -> bool {
        self.profile.peak() <= self.bound
    }

    /// Raises the bound by cuts, the tasks that need most first.
    fn cut(&mut self, meter: &mut Meter<'_>) {
        let mut cuts = Cuts::new(self.flow);
        let mut rows: Vec<(u64, OpId)> = (0..self.profile.order().len())
            .map(|step| (self.profile.needed(step), self.profile.order()[step]))
            .collect();
        rows.sort_by_key(|&(needed, task)| (std::cmp::Reverse(needed), task));
        for (needed, task) in rows {
            if needed <= self.bound || self.is_done() || meter.is_out() {
                return;
            }
            self.bound = self.bound.max(cuts.bound(task, meter));
        }
    }
}
