//! [`check_bound`]: does the certificate of a bound on a bare problem show what the bound claims?
//!
//! ~~~text
//! offset ^ |  c  |......      stacked: a, b and c start at multiples of `align`; the dots can hold nothing
//!        | |   b   |....      that is as strict, so all but the topmost take their bytes rounded up.
//!        | |    a     |.
//!        +---------------> bytes, rounded up
//! ~~~
//! What need not start there may lie in the holes, but each of these takes at most one hole away: between two
//! coarse ones that have none of them in between, a hole stays. So with `k` coarse rectangles and any `m` of
//! the others, all their bytes are needed, and the `k - 1 - m` smallest holes.

use super::together;
use crate::{Align, Bound, Bytes, Item, Problem, Proof, Rect, Step};

/// What is known of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Its certificate shows it.
    Certified,
    /// It has none: a search has found it, and nobody can look that up.
    Quoted,
}

/// Why a bound is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum BoundFault {
    #[error("the bound has a proof of the wrong kind, or of what is not there: {found}")]
    WrongProof { found: String },
    #[error("the bound claims {found}, its certificate shows {shown}")]
    NotShown { found: Bytes, shown: Bytes },
    #[error("the bound claims {bound} for {items} items, which fit into less")]
    ItemsFit { bound: Bytes, items: usize },
    #[error("the bound claims {bound} for {items} items, too hard for the checker to show")]
    TooHard { bound: Bytes, items: usize },
}

/// Judges a lower bound on the arena of a problem. Cost: linear; for [`Proof::Items`] a search that gives up
/// after a fixed number of steps.
pub fn check_bound(problem: &Problem, bound: &Bound) -> Result<Shown, BoundFault> {
    let wrong = || BoundFault::WrongProof { found: bound.proof.to_string() };
    let shown = match &bound.proof {
        Proof::Trivial => Bytes::ZERO,
        Proof::LiveSum(step) => live_sum(problem, *step),
        Proof::Stacked { step, align } => stacked(problem, *step, *align),
        Proof::Items(_) => return items(problem, bound),
        Proof::Search => return Ok(Shown::Quoted),
        Proof::WorkingSet(_) | Proof::Outputs => return Err(wrong()),
    };
    if bound.bytes > shown {
        return Err(BoundFault::NotShown { found: bound.bytes, shown });
    }
    Ok(Shown::Certified)
}

/// Every named item once, and no placement of them in one byte less than the claim.
fn items(problem: &Problem, bound: &Bound) -> Result<Shown, BoundFault> {
    let Proof::Items(ids) = &bound.proof else { return Ok(Shown::Quoted) };
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    let is_repeated = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    let named: Option<Vec<&Item>> = sorted.iter().map(|&id| problem.items().get(id)).collect();
    let Some(named) = named.filter(|_| !is_repeated) else {
        return Err(BoundFault::WrongProof { found: bound.proof.to_string() });
    };
    // What the largest one needs by itself takes no trying, whatever its shape.
    let alone = |item: &&Item| item.pin.unwrap_or_default() + item.extent();
    if bound.bytes <= named.iter().map(alone).max().unwrap_or_default() {
        return Ok(Shown::Certified);
    }
    let (bound, items) = (bound.bytes, named.len());
    match together::fit(&named, bound.saturating_sub(Bytes(1))) {
        Some(false) => Ok(Shown::Certified),
        Some(true) => Err(BoundFault::ItemsFit { bound, items }),
        None => Err(BoundFault::TooHard { bound, items }),
    }
}

/// The rectangles at a step with their items; none after the last step.
fn live(problem: &Problem, step: Step) -> impl Iterator<Item = (&Item, &Rect)> {
    let rects = problem.items().iter().flat_map(|item| item.rects().iter().map(move |r| (item, r)));
    let is_live = move |(_, rect): &(&Item, &Rect)| rect.span.contains(step);
    rects.filter(is_live)
}

fn live_sum(problem: &Problem, step: Step) -> Bytes {
    let sum = |sum: u64, (_, rect): (&Item, &Rect)| sum.saturating_add(rect.bytes.0);
    Bytes(live(problem, step).fold(0, sum))
}

/// What the rectangles at a step need if those that have to start at multiples of `align` do.
fn stacked(problem: &Problem, step: Step, align: Align) -> Bytes {
    let mut sum: u64 = 0;
    let (mut holes, mut others) = (Vec::new(), Vec::new());
    for (item, rect) in live(problem, step).filter(|(_, rect)| rect.bytes > Bytes::ZERO) {
        if starts_at_multiple(item, rect, align) {
            sum = sum.saturating_add(rect.bytes.0);
            holes.push(rect.bytes.0.wrapping_neg() & (align.bytes().0 - 1));
        } else {
            others.push(rect.bytes.0);
        }
    }
    holes.sort_unstable();
    others.sort_unstable_by(|a, b| b.cmp(a));
    // Nothing has to lie above the topmost one.
    holes.pop();
    let mut lost: u64 = holes.iter().sum();
    let mut most = sum.saturating_add(lost);
    for bytes in others {
        lost -= holes.pop().unwrap_or(0);
        sum = sum.saturating_add(bytes);
        most = most.max(sum.saturating_add(lost));
    }
    Bytes(most)
}

/// Whether a rectangle starts at a multiple of `align` wherever its item may lie.
fn starts_at_multiple(item: &Item, rect: &Rect, align: Align) -> bool {
    let base = item.pin.map_or(item.align >= align, |pin| pin.is_aligned(align));
    base && rect.offset.is_aligned(align)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TinyLimits, fits, least_arena, tiny_problem};
    use crate::{BufferId, Interval};

    const ALL: TinyLimits = TinyLimits { items: 5, rects: 2, aligns: true, pins: true };

    fn judge(problem: &Problem, bytes: u64, proof: Proof) -> Result<Shown, BoundFault> {
        check_bound(problem, &Bound { bytes: Bytes(bytes), proof })
    }

    fn items(ids: &[u32]) -> Proof {
        Proof::Items(ids.iter().map(|&id| BufferId::new(id)).collect())
    }

    fn stacked(step: u32, align: u64) -> Proof {
        Proof::Stacked { step: Step(step), align: Align::new(align).unwrap() }
    }

    /// Sizes and alignments, all of one time.
    fn pile(rows: &[(u64, u64)]) -> Problem {
        let span = Interval::new(Step(0), Step(1));
        let item = |&(bytes, align)| Item::new(Bytes(bytes), span, Align::new(align).unwrap());
        Problem::new(rows.iter().map(item).collect()).unwrap()
    }

    /// The most that a certificate shows, which is the least arena of such a pile or less.
    fn check_most(rows: &[(u64, u64)], proof: &Proof, wanted: u64) {
        let problem = pile(rows);
        assert_eq!(judge(&problem, wanted, proof.clone()), Ok(Shown::Certified));
        assert!(judge(&problem, wanted + 1, proof.clone()).is_err());
    }

    #[test]
    fn holes_below_the_topmost_count() {
        check_most(&[(5, 8), (6, 8), (7, 8)], &stacked(0, 8), 21);
        check_most(&[(5, 8), (6, 8), (7, 8)], &stacked(0, 1), 18);
    }

    #[test]
    fn what_may_lie_in_the_holes_takes_one_each() {
        // Both holes but the largest, of 3, are of 1 and 2; a byte takes the larger one.
        check_most(&[(5, 8), (6, 8), (7, 8), (1, 1)], &stacked(0, 8), 21);
        check_most(&[(5, 8), (6, 8), (7, 8), (4, 1)], &stacked(0, 8), 23);
    }

    #[test]
    fn items_alone_need_what_trying_shows() {
        check_most(&[(5, 8), (6, 8), (7, 8)], &items(&[0, 1, 2]), 21);
        check_most(&[(5, 8), (6, 8), (7, 8)], &items(&[1, 2]), 14);
        check_most(&[(5, 8)], &items(&[]), 0);
    }

    #[test]
    fn proofs_of_what_is_not_there() {
        let problem = pile(&[(4, 1), (4, 1)]);
        let op = crate::OpId::new(0);
        let named = [items(&[0, 2]), items(&[0, 0]), Proof::Outputs, Proof::WorkingSet(op)];
        for proof in named {
            let fault = judge(&problem, 1, proof).unwrap_err();
            assert!(matches!(fault, BoundFault::WrongProof { .. }), "{fault}");
        }
        for proof in [Proof::Trivial, Proof::LiveSum(Step(1)), stacked(1, 1)] {
            let fault = judge(&problem, 1, proof).unwrap_err();
            assert!(matches!(fault, BoundFault::NotShown { .. }), "{fault}");
        }
    }

    #[test]
    fn a_search_is_quoted() {
        assert_eq!(judge(&pile(&[(4, 1)]), 99, Proof::Search), Ok(Shown::Quoted));
    }

    #[test]
    fn an_item_of_many_rectangles_needs_its_extent() {
        let rect = |at| {
            let span = Interval::new(Step(at), Step(at + 1));
            Rect { offset: Bytes(u64::from(at)), bytes: Bytes(1), span }
        };
        let rects: Vec<Rect> = (0..100).map(rect).collect();
        let item = Item { rects: rects.into(), align: Align::ONE, pin: None };
        let problem = Problem::new([item].into_iter().collect()).unwrap();
        assert_eq!(judge(&problem, 100, items(&[0])), Ok(Shown::Certified));
        assert!(judge(&problem, 101, items(&[0])).is_err());
    }

    #[test]
    fn what_is_too_hard_is_not_shown() {
        let rows: Vec<(u64, u64)> = (0..65).map(|size| (size + 100, 64)).collect();
        let ids: Vec<u32> = (0..65).collect();
        let fault = judge(&pile(&rows), 65 * 192, items(&ids)).unwrap_err();
        assert!(matches!(fault, BoundFault::TooHard { items: 65, .. }), "{fault}");
    }

    #[test]
    fn no_certificate_shows_more_than_the_least_arena() {
        arbtest::arbtest(|u| {
            let problem = tiny_problem(u, ALL)?;
            let Some(least) = least_arena(&problem) else { return Ok(()) };
            for step in 0..u32::try_from(problem.steps()).unwrap() {
                assert!(judge(&problem, least.0 + 1, Proof::LiveSum(Step(step))).is_err());
                for align in [1, 2, 4, 8] {
                    let claim = judge(&problem, least.0 + 1, stacked(step, align));
                    assert!(claim.is_err(), "{step} {align} {problem:#?}");
                }
            }
            Ok(())
        })
        .budget_ms(2000);
    }

    #[test]
    fn items_need_exactly_what_brute_force_says() {
        arbtest::arbtest(|u| {
            let problem = tiny_problem(u, ALL)?;
            let ids: Vec<u32> = problem.items().ids().map(BufferId::raw).collect();
            let size = Bytes(u.int_in_range(0..=40)?);
            // None of that size, so one byte more is needed; or one, and no more is.
            let shown = judge(&problem, size.0 + 1, items(&ids));
            assert_eq!(shown.is_err(), fits(&problem, size), "{size} {problem:#?}");
            if let Some(least) = least_arena(&problem) {
                assert_eq!(judge(&problem, least.0, items(&ids)), Ok(Shown::Certified));
                let more = judge(&problem, least.0 + 1, items(&ids)).unwrap_err();
                assert!(matches!(more, BoundFault::ItemsFit { .. }), "{problem:#?}");
            }
            Ok(())
        })
        .budget_ms(3000);
    }
}
