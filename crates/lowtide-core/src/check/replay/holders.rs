//! [`Holders`]: which residences hold each byte.
//!
//! ~~~text
//! w  [0 ──────────────── 64)      sets: [0,16) {x0, w}  [16,64) {x1, w}
//! x0 [0 ── 16) x1 [16 ── 64)      x0 is freed: [0,16) {w}; the bytes stay held
//! ~~~
//! Equal sets are kept once, and neighbours of one set are one segment.
//! Cost: O(log n) for each segment touched, times the size of its set.

use crate::ResidenceId;
use crate::check::shadow::{Range, Segments};
use std::collections::BTreeMap;

/// More residences than these do not hold one byte.
const MOST_HOLDERS: usize = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SetId(usize);

/// What a residence meets where it is allocated.
pub(super) struct Met {
    /// Who else holds bytes of it, each once.
    pub(super) others: Vec<ResidenceId>,
    /// Bytes that nobody held before.
    pub(super) fresh: u64,
    /// Whether so many hold some byte that one of them was forgotten.
    pub(super) is_crowded: bool,
}

#[derive(Debug, Default)]
pub(super) struct Holders {
    segments: Segments<SetId>,
    /// Each sorted, and never empty.
    sets: Vec<Vec<ResidenceId>>,
    ids: BTreeMap<Vec<ResidenceId>, SetId>,
    /// Sets made and entries of them looked at so far, weighted by what they cost.
    pub(super) work: u64,
}

impl Holders {
    fn intern(&mut self, set: Vec<ResidenceId>) -> SetId {
        self.work += 4 + set.len() as u64;
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        let id = SetId(self.sets.len());
        self.sets.push(set.clone());
        self.ids.insert(set, id);
        id
    }

    fn touched(&self, range: Range) -> Vec<(Range, SetId)> {
        self.segments.overlapping(range).collect()
    }

    /// `id` holds the bytes of `range` from now on, beside who does already.
    pub(super) fn add(&mut self, range: Range, id: ResidenceId) -> Met {
        let touched = self.touched(range);
        let alone = self.intern(vec![id]);
        self.segments.set(range, alone);
        let mut met = Met { others: Vec::new(), fresh: range.len(), is_crowded: false };
        for (part, set) in touched {
            let mut set = self.sets[set.0].clone();
            met.others.extend_from_slice(&set);
            met.fresh -= part.len();
            if set.len() == MOST_HOLDERS {
                met.is_crowded = true;
                set.pop();
            }
            if let Err(place) = set.binary_search(&id) {
                set.insert(place, id);
            }
            let set = self.intern(set);
            self.segments.set(part, set);
        }
        met.others.sort_unstable();
        met.others.dedup();
        met
    }

    /// `id` no longer holds the bytes of `range`; returns those that nobody holds now.
    pub(super) fn remove(&mut self, range: Range, id: ResidenceId) -> Vec<Range> {
        let mut given_back = Vec::new();
        for (part, set) in self.touched(range) {
            let mut set = self.sets[set.0].clone();
            self.work += set.len() as u64;
            let Ok(place) = set.binary_search(&id) else { continue };
            set.remove(place);
            if set.is_empty() {
                self.segments.clear(part);
                given_back.push(part);
            } else {
                let set = self.intern(set);
                self.segments.set(part, set);
            }
        }
        given_back
    }

    /// Whether `id` holds all bytes of `range`.
    pub(super) fn is_held_by(&self, range: Range, id: ResidenceId) -> bool {
        let mut reached = range.start.offset;
        for (part, set) in self.segments.overlapping(range) {
            if part.start.offset > reached || self.sets[set.0].binary_search(&id).is_err() {
                return false;
            }
            reached = part.end;
        }
        reached >= range.end
    }
}
