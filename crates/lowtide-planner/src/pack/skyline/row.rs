//! Chooses the row: items that do not live together and are worth most in sum.
//!
//! ~~~text
//! candidates by start   [a───)  [c──)      best from c on: c, or without c
//!                          [b────)         best from a on: a + best from c on, or without a
//! ~~~
//! Cost: O(c log c) for c candidates.

/// Memory that is used again for each row.
#[derive(Default)]
pub(super) struct Row {
    /// Where each candidate starts; side by side, since each is looked for again and again.
    starts: Vec<u32>,
    /// Best sum from each candidate on.
    sums: Vec<f32>,
    /// For a candidate that is taken: where the next one may start.
    next: Vec<Option<u32>>,
    /// Candidates chosen, by start.
    pub(super) chosen: Vec<u32>,
}

impl Row {
    /// Chooses among candidates that are sorted by start.
    pub(super) fn choose(
        &mut self,
        candidates: &[u32],
        starts: &[u32],
        ends: &[u32],
        worth: impl Fn(u32) -> f32,
    ) {
        let count = candidates.len();
        self.starts.clear();
        self.starts.extend(candidates.iter().map(|&item| starts[item as usize]));
        self.sums.clear();
        self.sums.resize(count + 1, 0.0);
        self.next.clear();
        self.next.resize(count, None);
        for at in (0..count).rev() {
            let item = candidates[at];
            let end = ends[item as usize];
            let after = self.starts[at + 1..].partition_point(|&start| start < end);
            let next = at + 1 + after;
            let sum = worth(item) + self.sums[next];
            self.sums[at] = self.sums[at + 1];
            if sum > self.sums[at] {
                self.sums[at] = sum;
                self.next[at] = Some(super::axis::as_u32(next));
            }
        }
        self.follow(candidates);
    }

    fn follow(&mut self, candidates: &[u32]) {
        self.chosen.clear();
        let mut at = 0;
        while at < candidates.len() {
            if let Some(next) = self.next[at] {
                self.chosen.push(candidates[at]);
                at = next as usize;
                continue;
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_short_items_beat_one_that_overlaps_both() {
        let (starts, ends) = ([0, 1, 3], [2, 4, 5]);
        let mut row = Row::default();
        row.choose(&[0, 1, 2], &starts, &ends, |item| [2.0, 3.0, 2.0][item as usize]);
        assert_eq!(row.chosen, [0, 2]);
        row.choose(&[0, 1, 2], &starts, &ends, |item| [2.0, 5.0, 2.0][item as usize]);
        assert_eq!(row.chosen, [1]);
    }
}
