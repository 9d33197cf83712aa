//! One pass: from the lowest valley to the next one, until no item waits.

use super::axis::Axis;
use super::ground::{Ground, Valley};
use super::row::Row;
use crate::meter::Meter;
use crate::pack::random;
use lowtide_core::{Bytes, IndexVec, Placement, Problem};

/// What differs from pass to pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    /// The arena that is hoped for.
    pub(super) target: Bytes,
    /// A wall lower than the mean item divided by this is levelled; 0: none is.
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
        if rise > tower.tolerance {
            meter.spend(tower.find(valley));
        }
        if rise <= tower.tolerance || tower.candidates.is_empty() {
            tower.level(valley);
            continue;
        }
        meter.spend(tower.weigh(valley.start));
        tower.choose(valley.start);
        waiting -= tower.row.chosen.len();
        tower.place(valley);
    }
    Some(tower.placement).filter(|placement| placement.size < limit)
}

struct Tower<'a> {
    problem: &'a Problem,
    axis: &'a Axis,
    target: u64,
    tolerance: u64,
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
    /// Sum of the weights from the start of the valley to each section.
    sums: Vec<f32>,
    row: Row,
    parts: Vec<(u32, u64)>,
    /// The arena comes to at least this.
    least: Bytes,
    placement: Placement,
}

/// Items looked at in a valley, once some of them fit. Wide valleys are filled piece by piece.
const LOOKED_AT: u32 = 4096;

/// Of the target: what counts as hardly any waste left.
const LITTLE: f32 = 0.001;

impl<'a> Tower<'a> {
    fn new(problem: &'a Problem, axis: &'a Axis, pass: Pass) -> Self {
        let offsets = IndexVec::filled(problem.items().len(), Bytes::ZERO);
        let mut tower = Self {
            problem,
            axis,
            target: pass.target.0,
            tolerance: axis.mean_bytes.checked_div(pass.tolerance).unwrap_or(0),
            ground: Ground::new(axis.sections()),
            waits: waits(axis.ids.len()),
            factors: factors(problem, axis, pass),
            spent: axis.loads.clone(),
            weights: vec![0.0; axis.lengths.len()],
            candidates: Vec::new(),
            sums: Vec::new(),
            row: Row::default(),
            parts: Vec::new(),
            least: Bytes::ZERO,
            placement: Placement { offsets, size: Bytes::ZERO },
        };
        tower.waste(0, axis.sections(), 0, 0);
        tower
    }

    /// Counts bytes as lost in some sections, up to a height; those sections become more precious.
    fn waste(&mut self, start: u32, end: u32, bytes: u64, height: u64) {
        let target = real(self.target);
        for section in start as usize..end as usize {
            self.spent[section] += bytes;
            // More than the height: items wait, and with them the arena comes to what is spent.
            if self.spent[section] > height.max(self.least.0) {
                self.least = Bytes(self.spent[section]);
            }
            let slack = real(self.target.saturating_sub(self.spent[section])) / target;
            let length = real(u64::from(self.axis.lengths[section]));
            self.weights[section] = length / (slack + LITTLE);
        }
    }

    /// Finds waiting items that fit between the walls; returns how many were looked at.
    fn find(&mut self, valley: Valley) -> u64 {
        self.candidates.clear();
        let mut item = self.axis.first[valley.start as usize];
        let limit = self.axis.first[valley.end as usize];
        let mut looked_at = 0;
        while item < limit && (looked_at < LOOKED_AT || self.candidates.is_empty()) {
            let word = self.waits[item as usize / 64] >> (item % 64);
            looked_at += 1;
            if word == 0 {
                item = (item / 64 + 1) * 64;
                continue;
            }
            item += word.trailing_zeros();
            if item < limit && self.axis.ends[item as usize] <= valley.end {
                self.candidates.push(item);
            }
            item += 1;
        }
        u64::from(looked_at) + 1
    }

    /// Sums up the weights of sections up to the last candidate's end; returns what that and the choice of a
    /// row cost: a candidate's place in it is found by bisection.
    fn weigh(&mut self, start: u32) -> u64 {
        let ends = self.candidates.iter().map(|&item| self.axis.ends[item as usize]);
        let end = ends.max().unwrap_or(start);
        self.sums.clear();
        self.sums.push(0.0);
        let mut sum = 0.0;
        for weight in &self.weights[start as usize..end as usize] {
            sum += weight;
            self.sums.push(sum);
        }
        self.sums.len() as u64 + self.candidates.len() as u64 * 12
    }

    /// Long items are worth more than their parts: they are the hard ones to place later.
    fn choose(&mut self, start: u32) {
        let Self { axis, sums, factors, .. } = self;
        let worth = |item: u32| {
            let at = |section: u32| sums[(section - start) as usize];
            let length = at(axis.ends[item as usize]) - at(axis.starts[item as usize]);
            // At least a bit, whatever is lost in rounding: some candidate is always chosen.
            (length * length.sqrt().sqrt() * factors[item as usize]).max(f32::MIN_POSITIVE)
        };
        self.row.choose(&self.candidates, &axis.starts, &axis.ends, worth);
    }

    fn place(&mut self, valley: Valley) {
        self.parts.clear();
        let mut covered = valley.start;
        for chosen in 0..self.row.chosen.len() {
            let at = self.row.chosen[chosen] as usize;
            let (start, end) = (self.axis.starts[at], self.axis.ends[at]);
            let id = self.axis.ids[at];
            let placed = &self.problem.items()[id];
            let base = Bytes(valley.height).align_up(placed.align);
            let base = base.expect("a problem's sizes fit with padding");
            if base.0 > valley.height {
                self.waste(start, end, base.0 - valley.height, base.0);
            }
            let top = base + placed.extent();
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

/// Large items are worth a little more, for the same reason as long ones. Only operations that give the same
/// number on every machine: roots, no powers.
fn factors(problem: &Problem, axis: &Axis, pass: Pass) -> Vec<f32> {
    let mut state = u64::from(pass.seed) + 0x9e37_79b9_7f4a_7c15;
    let factors = axis.ids.iter().map(|&id| {
        let random = real(random::next(&mut state) >> 40) / real(1 << 24) - 0.5;
        let bytes = real(problem.items()[id].extent().0);
        bytes.sqrt().sqrt().sqrt().sqrt() * (1.0 + pass.noise * random)
    });
    factors.collect()
}

#[expect(clippy::cast_precision_loss, reason = "a guess of what an item is worth")]
fn real(number: u64) -> f32 {
    number as f32
}
