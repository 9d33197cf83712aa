//! Sections: stretches between tasks that everything else comes before or after, ordered one by one.
//!
//! ~~~text
//! ┌ a ┐       ┌ d ┐           x and y come before or after all others, whatever the order: what has run by then is
//! ┤   ├─ x ─ ─┤   ├─ y        known, so {a, b} and {d, e} are problems of their own, and the peak is the largest of
//! └ b ┘       └ e ┘           their peaks
//! ~~~
//! Only sections that need more than the bound known so far are searched, the worst first; a section that is the same
//! as one before, up to what is live around it, has the same answer (repeated cells of a network). A section without
//! an order below some bytes raises the bound of the whole. Cost: linear to find them, and the search's.

use super::flow::Flow;
use super::layers::{Found, search};
use super::profile::Profile;
use crate::meter::Meter;
use lowtide_core::OpId;
use std::collections::BTreeMap;
use std::ops::Range;

/// Targets that are tried between what is out of reach for a width and what is known.
const TRIES: usize = 16;

/// Sets a layer that are tried first.
const FEW: usize = 32;

/// Searches all sections of an order with at most `width` sets a layer. Returns the bound of the whole, at least
/// `bound`.
pub(crate) fn lower(
    profile: &mut Profile<'_>,
    flow: &Flow,
    bound: u64,
    width: usize,
    meter: &mut Meter<'_>,
) -> u64 {
    let mut rows: Vec<(u64, Range<usize>)> = sections(flow, profile.order())
        .into_iter()
        .map(|section| (peak_of(profile, &section), section))
        .collect();
    rows.sort_by_key(|(peak, section)| (std::cmp::Reverse(*peak), section.start));
    let count = rows.len() as u64;
    let mut solver = Solver { profile, known: Known::default(), bound, width };
    for (peak, section) in rows {
        if peak <= solver.bound || meter.is_out() {
            break;
        }
        // One hard section leaves something for the others.
        let steps = meter.left() / 2 + meter.left() / (2 * count);
        meter.with_at_most(steps, |meter| solver.solve(&section, meter));
    }
    solver.bound
}

fn peak_of(profile: &Profile<'_>, section: &Range<usize>) -> u64 {
    section.clone().map(|step| profile.needed(step)).max().unwrap_or(0)
}

struct Solver<'p, 'f> {
    profile: &'p mut Profile<'f>,
    known: Known,
    bound: u64,
    width: usize,
}

impl Solver<'_, '_> {
    /// Half way between the bound and what is known, which each answer brings closer; where none comes, at the bound,
    /// and just below what is known: there a search that ends proves that to be the least.
    fn solve(&mut self, section: &Range<usize>, meter: &mut Meter<'_>) {
        let mut open = 0;
        for _ in 0..TRIES {
            let peak = peak_of(self.profile, section);
            if peak <= self.bound || meter.is_out() {
                return;
            }
            let target = match open {
                0 => self.bound.midpoint(peak),
                1 => peak - 1,
                _ => self.bound,
            };
            // One target that is too hard leaves something for the others.
            let steps = meter.left() / 2;
            match meter.with_at_most(steps, |meter| self.try_target(section, target, meter)) {
                Found::Order(_) | Found::Nothing(_) => open = open.min(1),
                Found::Open if open < 2 => open += 1,
                Found::Open => return,
            }
        }
    }

    fn try_target(&mut self, section: &Range<usize>, target: u64, meter: &mut Meter<'_>) -> Found {
        let peak = peak_of(self.profile, section);
        let part = self.profile.stretch(section.clone());
        meter.spend(4 * section.len() as u64);
        // A few sets a layer are enough to find an order where one is easily found; all are to show that there is none.
        let few = self.width.min(FEW);
        let mut found = self.known.search(&part, target, few, meter);
        if found == Found::Open && few < self.width {
            found = self.known.search(&part, target, self.width, meter);
        }
        match &found {
            Found::Order(order) => self.profile.reorder(section.clone(), &part, order),
            Found::Nothing(more) => self.bound = self.bound.max((*more).min(peak)),
            Found::Open => {}
        }
        found
    }
}

/// Where an order falls apart: each section ends with a task that is comparable with all others.
pub(crate) fn sections(flow: &Flow, order: &[OpId]) -> Vec<Range<usize>> {
    let mut steps = lowtide_core::IndexVec::filled(order.len(), 0_usize);
    for (step, &task) in order.iter().enumerate() {
        steps[task] = step;
    }
    let last = |step: usize| {
        let before = flow.before[order[step]].iter();
        before.map(|&earlier| steps[earlier] + 1).max().unwrap_or(0)
    };
    let first = |step: usize| {
        let after = flow.after[order[step]].iter();
        after.map(|&later| steps[later]).min().unwrap_or(usize::MAX)
    };
    // All that come later have to come from `step` or later, all that come before have to lead there.
    let mut later = vec![usize::MAX; order.len() + 1];
    for step in (0..order.len()).rev() {
        later[step] = later[step + 1].min(last(step));
    }
    let (mut sections, mut start, mut reach) = (Vec::new(), 0, 0);
    for step in 0..order.len() {
        if later[step + 1] > step && reach <= step {
            sections.push(start..step + 1);
            start = step + 1;
        }
        reach = reach.max(first(step));
    }
    if start < order.len() {
        sections.push(start..order.len());
    }
    sections
}

/// What was found of sections that look alike.
#[derive(Default)]
struct Known(BTreeMap<Vec<u64>, Found>);

impl Known {
    fn search(&mut self, part: &Flow, target: u64, width: usize, meter: &mut Meter<'_>) -> Found {
        if target < part.start {
            // Something that stays throughout is too much already.
            return search(part, target, width, meter);
        }
        let key = key(part, target - part.start, width);
        if let Some(found) = self.0.get(&key) {
            return match found {
                Found::Nothing(more) => Found::Nothing(more + part.start),
                found => found.clone(),
            };
        }
        let found = search(part, target, width, meter);
        let kept = match &found {
            Found::Nothing(more) => Found::Nothing(more - part.start),
            found => found.clone(),
        };
        if !(meter.is_out() && found == Found::Open) {
            self.0.insert(key, kept);
        }
        found
    }
}

/// All that a search depends on, but for what is live around it.
fn key(part: &Flow, target: u64, width: usize) -> Vec<u64> {
    let mut key = vec![target, width as u64, part.len() as u64];
    let mut list = |items: &mut dyn Iterator<Item = u64>| {
        let start = key.len();
        key.push(0);
        key.extend(items);
        key[start] = (key.len() - start) as u64;
    };
    for task in part.tasks() {
        list(&mut part.before[task].iter().map(|earlier| u64::from(earlier.raw())));
        list(&mut part.births[task].iter().map(|&cell| u64::from(cell)));
        list(&mut part.uses[task].iter().map(|&cell| u64::from(cell)));
        let overs = &part.overs[task];
        list(&mut overs.iter().flat_map(|over| {
            // Which of them exclude each other, whatever the storages are called.
            let first = overs.iter().position(|other| other.of == over.of).unwrap_or_default();
            let [start, end] = [over.cells.0, over.cells.1].map(u64::from);
            [u64::from(over.output), first as u64, over.saves, start, end]
        }));
    }
    list(&mut part.extra.iter().copied());
    list(&mut part.bytes.iter().copied());
    list(&mut part.users.iter().map(|&users| u64::from(users)));
    list(&mut part.over_cells.iter().map(|&cell| u64::from(cell)));
    key
}
