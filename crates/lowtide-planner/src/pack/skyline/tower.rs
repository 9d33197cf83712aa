//! One pass: from the lowest valley to the next one, until no item waits.

use super::axis::{Axis, real};
use super::ground::{Ground, Valley};
use super::row::Row;
use crate::meter::Meter;
use crate::random;
use lowtide_core::{Bytes, IndexVec, Placement, Problem};

/// What differs from pass to pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    /// The arena that is hoped for.
    pub(super) target: Bytes,
    /// Sections count by the square of their slack.
    pub(super) squared: bool,
    /// Items looked at in a valley, once some of them fit. Wide valleys are filled piece by piece.
    pub(super) looked_at: u32,
    /// A wall lower than this is levelled.
    pub(super) tolerance: u64,
    /// By how much the worth of items is varied, as a share.
    pub(super) noise: f32,
    pub(super) seed: u32,
}

/// Packs in one pass; `None` if the arena comes to `limit` or more, or the steps run out.
pub(super) fn build(
    problem: &Problem,
    axis: &Axis,
    pass: Pass,
    limit: Bytes,
    meter: &mut Meter<'_>,
) -> Option<Placement> {
    let mut tower = Tower::new(problem, axis, pass);
    let mut waiting = axis.ids.len();
    while waiting > 0 {
        if tower.least.max(tower.placement.size) >= limit || meter.is_out() {
            return None;
        }
        let valley = tower.ground.lowest();
        let rise = valley.wall - valley.height;
        if rise > pass.tolerance {
            meter.spend(tower.find(valley));
        }
        if rise <= pass.tolerance || tower.candidates.is_empty() {
            tower.level(valley);
            continue;
        }
        tower.choose();
        waiting -= tower.row.chosen.len();
        tower.place(valley);
    }
    Some(tower.placement).filter(|placement| placement.size < limit)
}

struct Tower<'a> {
    problem: &'a Problem,
    axis: &'a Axis,
    pass: Pass,
    ground: Ground,
    /// A bit for each item that has no place yet.
    waits: Vec<u64>,
    /// What an item is worth beside its length.
    factors: Vec<f32>,
    /// Load of each section, and what was lost there below the skyline.
    spent: Vec<u64>,
    /// What it is worth to cover each section.
    weights: Vec<f32>,
    candidates: Vec<u32>,
    /// Sections of the candidates, from the start of the valley.
    spans: Vec<(u32, u32)>,
    /// Sum of the weights from the start of the valley to each section.
    sums: Vec<f32>,
    row: Row,
    parts: Vec<(u32, u64)>,
    /// The arena comes to at least this.
    least: Bytes,
    placement: Placement,
}

/// Of the target: what counts as hardly any waste left.
const LITTLE: f32 = 0.001;

impl<'a> Tower<'a> {
    fn new(problem: &'a Problem, axis: &'a Axis, pass: Pass) -> Self {
        let offsets = IndexVec::filled(problem.items().len(), Bytes::ZERO);
        let mut tower = Self {
            problem,
            axis,
            pass,
            ground: Ground::new(axis.sections()),
            waits: waits(axis.ids.len()),
            factors: factors(axis, pass),
            spent: axis.loads.clone(),
            weights: vec![0.0; axis.lengths.len()],
            candidates: Vec::new(),
            spans: Vec::new(),
            sums: Vec::new(),
            row: Row::default(),
            parts: Vec::new(),
            least: Bytes::ZERO,
            placement: Placement { offsets, size: Bytes::ZERO },
        };
        tower.waste(0, axis.sections(), 0, 0);
        tower
    }

    /// Counts bytes as lost in some sections, up to a height; those sections become more precious, the more the
    /// less slack they have left: by the square, so that where there is none the row has next to no gap.
    fn waste(&mut self, start: u32, end: u32, bytes: u64, height: u64) {
        let target = real(self.pass.target.0);
        for section in start as usize..end as usize {
            self.spent[section] += bytes;
            // More than the height: items wait, and with them the arena comes to what is spent.
            if self.spent[section] > height.max(self.least.0) {
                self.least = Bytes(self.spent[section]);
            }
            let left = self.pass.target.0.saturating_sub(self.spent[section]);
            let slack = real(left) / target + LITTLE;
            let length = real(u64::from(self.axis.lengths[section]));
            let slack = if self.pass.squared { slack * slack } else { slack };
            self.weights[section] = length / slack;
        }
    }

    /// Finds waiting items that fit between the walls; returns what that and the choice of a row cost.
    fn find(&mut self, valley: Valley) -> u64 {
        self.candidates.clear();
        self.spans.clear();
        let mut item = self.axis.first[valley.start as usize];
        let limit = self.axis.first[valley.end as usize];
        let mut last = valley.start;
        let mut looked_at = 0;
        while item < limit && (looked_at < self.pass.looked_at || self.candidates.is_empty()) {
            let word = self.waits[item as usize / 64] >> (item % 64);
            looked_at += 1;
            if word == 0 {
                item = (item / 64 + 1) * 64;
                continue;
            }
            item += word.trailing_zeros();
            if item < limit && self.axis.ends[item as usize] <= valley.end {
                let (start, end) = (self.axis.starts[item as usize], self.axis.ends[item as usize]);
                self.candidates.push(item);
                self.spans.push((start - valley.start, end - valley.start));
                last = last.max(end);
            }
            item += 1;
        }
        self.weigh(valley.start, last);
        // In the time that a pair takes elsewhere, two are looked at here, and eight sections.
        1 + u64::midpoint(u64::from(looked_at), self.candidates.len() as u64)
            + self.sums.len() as u64 / 8
    }

    /// Sums up the weights of sections up to the last candidate's end.
    fn weigh(&mut self, start: u32, end: u32) {
        self.sums.clear();
        self.sums.push(0.0);
        let mut sum = 0.0;
        let sums = self.weights[start as usize..end as usize].iter().map(|weight| {
            sum += weight;
            sum
        });
        self.sums.extend(sums);
    }

    /// Long items are worth more than their parts, large ones a little more: they are the hard ones to place
    /// later. Only operations that give the same number on every machine: roots, no powers.
    fn choose(&mut self) {
        let Self { factors, sums, spans, candidates, row, .. } = self;
        let worth = |at: usize| {
            let (start, end) = spans[at];
            let item = candidates[at];
            let length = sums[end as usize] - sums[start as usize];
            // At least a bit, whatever is lost in rounding: some candidate is always chosen.
            let worth = length * length.sqrt().sqrt() * factors[item as usize];
            worth.max(f32::MIN_POSITIVE)
        };
        row.choose(spans, sums.len() - 1, worth);
    }

    fn place(&mut self, valley: Valley) {
        self.parts.clear();
        let mut covered = valley.start;
        for chosen in 0..self.row.chosen.len() {
            let at = self.candidates[self.row.chosen[chosen] as usize] as usize;
            let (start, end) = (self.axis.starts[at], self.axis.ends[at]);
            let id = self.axis.ids[at];
            let base = Bytes(valley.height).align_up(self.problem.items()[id].align);
            let base = base.expect("a problem's sizes fit with padding");
            if base.0 > valley.height {
                self.waste(start, end, base.0 - valley.height, base.0);
            }
            let top = base + Bytes(self.axis.bytes[at]);
            self.placement.offsets[id] = base;
            self.placement.size = self.placement.size.max(top);
            self.waits[at / 64] &= !(1 << (at % 64));
            if start > covered {
                self.parts.push((start, valley.height));
            }
            self.parts.push((end, top.0));
            covered = end;
        }
        if covered < valley.end {
            self.parts.push((valley.end, valley.height));
        }
        self.ground.cover(valley, &self.parts);
    }

    /// Gives the valley up: raises it to its lower wall.
    fn level(&mut self, valley: Valley) {
        self.waste(valley.start, valley.end, valley.wall - valley.height, valley.wall);
        self.ground.cover(valley, &[(valley.end, valley.wall)]);
    }
}

fn waits(items: usize) -> Vec<u64> {
    let mut waits = vec![u64::MAX; items / 64];
    waits.push((1 << (items % 64)) - 1);
    waits
}

/// What items are worth beside their length, with noise.
fn factors(axis: &Axis, pass: Pass) -> Vec<f32> {
    let mut state = u64::from(pass.seed) + 0x9e37_79b9_7f4a_7c15;
    let factors = axis.factors.iter().map(|factor| {
        let random = real(random::next(&mut state) >> 40) / real(1 << 24) - 0.5;
        factor * (1.0 + pass.noise * random)
    });
    factors.collect()
}
