//! Chooses the row: items that do not live together and are worth most in sum.
//!
//! ~~~text
//! section          0   1   2   3   4   5      best from a section on: that from the next section on, or
//! candidates       [a──────────)   [c──)      an item that starts here + best from its end on
//!                      [b──────────)
//! best from here   a+c b   c   c   c   0
//! ~~~
//! Cost: O(c + s) for c candidates and s sections, all in the order of memory.

/// Memory that is used again for each row.
#[derive(Default)]
pub(super) struct Row {
    /// Best sum from each section on.
    best: Vec<f32>,
    /// Whether the best from a candidate's start on begins with it, or with one before it in the list.
    taken: Vec<bool>,
    /// Places in the list of the candidates that are chosen, by start.
    pub(super) chosen: Vec<u32>,
}

impl Row {
    /// Chooses among candidates, given by start and end, sorted by start, all within the first `sections`.
    pub(super) fn choose(
        &mut self,
        candidates: &[(u32, u32)],
        sections: usize,
        worth: impl Fn(usize) -> f32,
    ) {
        self.best.resize(self.best.len().max(sections + 1), 0.0);
        self.taken.clear();
        self.taken.resize(candidates.len(), false);
        let mut best = 0.0;
        let mut filled = sections + 1;
        for at in (0..candidates.len()).rev() {
            let (start, end) = (candidates[at].0 as usize, candidates[at].1 as usize);
            if start < filled {
                self.best[start..filled].fill(best);
                filled = start;
            }
            let sum = worth(at) + self.best[end];
            if sum > best {
                best = sum;
                self.best[start] = sum;
                self.taken[at] = true;
            }
        }
        self.follow(candidates);
    }

    fn follow(&mut self, candidates: &[(u32, u32)]) {
        self.chosen.clear();
        let mut covered = 0;
        for (at, &(start, end)) in candidates.iter().enumerate() {
            if self.taken[at] && start >= covered {
                self.chosen.push(super::axis::as_u32(at));
                covered = end;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_short_items_beat_one_that_overlaps_both() {
        let spans = [(0, 2), (1, 4), (3, 5)];
        let mut row = Row::default();
        row.choose(&spans, 5, |item| [2.0, 3.0, 2.0][item]);
        assert_eq!(row.chosen, [0, 2]);
        row.choose(&spans, 5, |item| [2.0, 5.0, 2.0][item]);
        assert_eq!(row.chosen, [1]);
    }

    #[test]
    fn of_items_that_start_together_the_best_is_chosen() {
        let spans = [(0, 2), (0, 3), (0, 1), (3, 4)];
        let mut row = Row::default();
        row.choose(&spans, 4, |item| [2.0, 3.0, 1.0, 1.0][item]);
        assert_eq!(row.chosen, [1, 3]);
    }
}
