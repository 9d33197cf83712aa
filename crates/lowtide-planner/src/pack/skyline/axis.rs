//! [`Axis`]: items by the section in which they start.
//!
//! ~~~text
//! step      0    3 4       9     12      a step at which an item starts or ends begins a section
//! section   | 0  |1|   2   |  3  |
//! ~~~

use lowtide_core::{BufferId, Problem};

/// Sections, and the items that take bytes, sorted by start.
pub(super) struct Axis {
    /// Steps in each section.
    pub(super) lengths: Vec<u32>,
    /// Bytes that live in each section.
    pub(super) loads: Vec<u64>,
    /// How many items start before each section; one entry more than there are sections.
    pub(super) first: Vec<u32>,
    /// Section in which each item starts.
    pub(super) starts: Vec<u32>,
    /// Section after the last one of each item.
    pub(super) ends: Vec<u32>,
    /// Extent of each item.
    pub(super) bytes: Vec<u64>,
    /// What each item is worth beside its length: large ones a little more.
    pub(super) factors: Vec<f32>,
    pub(super) ids: Vec<BufferId>,
    /// Mean extent of an item.
    pub(super) mean_bytes: u64,
}

impl Axis {
    pub(super) fn new(problem: &Problem) -> Self {
        let mut steps = Vec::with_capacity(2 * problem.items().len());
        let mut items = Vec::with_capacity(problem.items().len());
        for (id, item) in problem.items().iter_enumerated() {
            let span = item.span();
            if item.extent().0 > 0 && !span.is_empty() {
                steps.extend([span.start.0, span.end.0]);
                items.push((span.start.0, span.end.0, id));
            }
        }
        steps.sort_unstable();
        steps.dedup();
        items.sort_unstable();
        let section = |step: u32| as_u32(steps.partition_point(|&other| other < step));
        let starts: Vec<u32> = items.iter().map(|&(start, _, _)| section(start)).collect();
        let ends: Vec<u32> = items.iter().map(|&(_, end, _)| section(end)).collect();
        let ids: Vec<BufferId> = items.into_iter().map(|(_, _, id)| id).collect();
        let lengths: Vec<u32> = steps.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let first = firsts(&starts, lengths.len());
        let bytes: Vec<u64> = ids.iter().map(|&id| problem.items()[id].extent().0).collect();
        let loads = loads(&starts, &ends, &bytes, lengths.len());
        let mean_bytes = bytes.iter().sum::<u64>() / (bytes.len() as u64).max(1);
        let factors = bytes.iter().map(|&bytes| factor(bytes)).collect();
        Self { lengths, loads, first, starts, ends, bytes, factors, ids, mean_bytes }
    }

    pub(super) fn sections(&self) -> u32 {
        as_u32(self.lengths.len())
    }
}

/// Only operations that give the same number on every machine: roots, no powers.
fn factor(bytes: u64) -> f32 {
    real(bytes).sqrt().sqrt().sqrt().sqrt()
}

fn firsts(starts: &[u32], sections: usize) -> Vec<u32> {
    let mut first = vec![0; sections + 1];
    for &start in starts {
        first[start as usize + 1] += 1;
    }
    for section in 0..sections {
        first[section + 1] += first[section];
    }
    first
}

fn loads(starts: &[u32], ends: &[u32], bytes: &[u64], sections: usize) -> Vec<u64> {
    let mut comes = vec![0; sections + 1];
    let mut goes = vec![0; sections + 1];
    for item in 0..starts.len() {
        comes[starts[item] as usize] += bytes[item];
        goes[ends[item] as usize] += bytes[item];
    }
    let mut load = 0;
    let live = comes.iter().zip(&goes).take(sections).map(|(come, go)| {
        load = load + come - go;
        load
    });
    live.collect()
}

#[expect(clippy::cast_precision_loss, reason = "a guess of what something is worth")]
pub(super) fn real(number: u64) -> f32 {
    number as f32
}

pub(super) fn as_u32(index: usize) -> u32 {
    u32::try_from(index).expect("at most u32::MAX items and sections")
}
