//! Which outputs of one operator are written over which of its inputs, when several could.
//!
//! ~~~text
//! y0 over a or b,  y1 over a          y0 takes b, so that y1 can take a
//! ~~~
//! Outputs come one after the other, those that save most first; one that finds its inputs taken asks whether their
//! holders can move on to another one (augmenting paths). As what can be paired is a matroid, that saves the most.
//! Cost: outputs times pairs, of one operator.

/// Something of `one` can go with something of `other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) one: u32,
    pub(crate) other: u32,
    /// What it is worth to pair `one`, with whatever it is.
    pub(crate) worth: u64,
}

/// The rows that are chosen; no `one` and no `other` occurs in two of them. Rows of one `one` stand together, in the
/// order of preference.
pub(crate) fn pair(rows: &[Pair]) -> Vec<usize> {
    let is_first = |at: &usize| *at == 0 || rows[at - 1].one != rows[*at].one;
    let mut firsts: Vec<usize> = (0..rows.len()).filter(is_first).collect();
    firsts.sort_by_key(|&at| (std::cmp::Reverse(rows[at].worth), at));
    let mut chosen: Vec<usize> = Vec::new();
    for first in firsts {
        augment(rows, first, &mut chosen);
    }
    chosen.sort_unstable();
    chosen
}

/// Finds a row for the `one` that begins at `first`, moving others where that helps.
fn augment(rows: &[Pair], first: usize, chosen: &mut Vec<usize>) {
    // Breadth first: each row that was reached, and over which row of another `one`.
    let mut reached: Vec<(usize, Option<usize>)> = Vec::new();
    let block =
        |first: usize| (first..rows.len()).take_while(move |&at| rows[at].one == rows[first].one);
    reached.extend(block(first).map(|at| (at, None)));
    let mut next = 0;
    while next < reached.len() {
        let (at, _) = reached[next];
        let holder = chosen.iter().position(|&held| rows[held].other == rows[at].other);
        let Some(holder) = holder else {
            return swap(rows, &reached, next, chosen);
        };
        let start = rows.iter().position(|row| row.one == rows[chosen[holder]].one).unwrap_or(0);
        for other in block(start) {
            let is_new = !reached.iter().any(|&(known, _)| rows[known].other == rows[other].other);
            if is_new {
                reached.push((other, Some(next)));
            }
        }
        next += 1;
    }
}

/// Chooses the row at `end`, and moves the `one`s on the way there.
fn swap(rows: &[Pair], reached: &[(usize, Option<usize>)], end: usize, chosen: &mut Vec<usize>) {
    let mut at = Some(end);
    while let Some(index) = at {
        let (row, from) = reached[index];
        chosen.retain(|&held| rows[held].one != rows[row].one);
        chosen.push(row);
        at = from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[(u32, u32, u64)], wanted: &[usize]) {
        let rows: Vec<Pair> =
            rows.iter().map(|&(one, other, worth)| Pair { one, other, worth }).collect();
        assert_eq!(pair(&rows), wanted);
    }

    #[test]
    fn preference_counts_where_all_find_something() {
        check(&[(0, 7, 1), (0, 8, 1)], &[0]);
        check(&[(0, 7, 1), (0, 8, 1), (1, 8, 1)], &[0, 2]);
    }

    #[test]
    fn one_moves_on_for_another() {
        check(&[(0, 7, 5), (0, 8, 5), (1, 7, 1)], &[1, 2]);
        check(&[(0, 1, 3), (0, 2, 3), (1, 1, 2), (1, 3, 2), (2, 1, 1), (2, 2, 1)], &[0, 3, 5]);
    }

    #[test]
    fn what_is_worth_more_comes_first() {
        check(&[(0, 7, 1), (1, 7, 9)], &[1]);
    }
}
