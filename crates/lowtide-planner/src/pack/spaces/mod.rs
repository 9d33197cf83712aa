//! Items and spaces of different worth to a placement in each: what is worth most lies in the fastest space.
//!
//! ~~~text
//!           ┌─ space 0 (fastest): may lie here ──choose, pack──> stays │ spilled, in order
//! all items ┤                                                          v
//!           └─ space 1: bound to it, too large for 0, spilled ────────> ...   the last takes the rest
//! ~~~
//! Spaces are filled one after the other, so that nothing is given up in a space for the sake of a later one,
//! except what does not fit there. `offer` says what stays, `fill` places it, `proof` says when nothing can be
//! placed, `most` how much more could stay. If the last space has a capacity too and is too small for the rest,
//! all is done once more with every space filled as full as possible, whatever it is worth. That fails, and an
//! answer may still exist: it is called impossible only where that is shown.
//! Cost: near-linear apart from `pack`, which is called at most some thirty times a space.

mod fill;
mod loads;
mod most;
mod offer;
mod over;
mod proof;
mod report;

use crate::meter::{Budget, Meter, Watched};
use fill::{Filler, NotFilled};
use lowtide_core::{
    Bound, BufferId, Bytes, Id, IndexVec, Rect, SpaceId, SpacesPlacement, SpacesProblem, Step,
};
use offer::Offer;
use report::Report;

/// A placement into several spaces, and how good it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpacesPacking {
    /// Where each item lies, and what was spilled.
    pub placement: SpacesPlacement,
    /// What is known of each space.
    pub spaces: IndexVec<SpaceId, FilledSpace>,
    /// No choice of items keeps more weight in the first space.
    pub most_first: u64,
    /// Pairs of items looked at, and other work in the same measure.
    pub steps: u64,
}

/// One space of a packing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilledSpace {
    /// Items in it.
    pub items: usize,
    /// Their weights together.
    pub weight: u64,
    /// No placement of these items is smaller, and why; it numbers them among themselves, by their ids.
    pub bound: Bound,
    /// Which rule placed them.
    pub rule: &'static str,
}

/// Why there is no packing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SpacesPackError {
    #[error(
        "impossible: item {item} needs {need}, the largest space in which it may lie has {largest}"
    )]
    TooLarge { item: BufferId, need: Bytes, largest: Bytes },
    #[error("impossible: what may lie only in {space} needs {need}, its capacity is {capacity}")]
    SpaceTooSmall { space: SpaceId, need: Bytes, capacity: Bytes },
    #[error(
        "impossible: at step {step} {need} are live that may lie only in spaces of together {room}"
    )]
    TooMuch { step: Step, need: Bytes, room: Bytes },
    #[error("impossible: the fixed offsets of items {first} and {second} clash")]
    PinsClash { first: BufferId, second: BufferId },
    #[error("impossible: the fixed offset of item {item} is no multiple of its alignment")]
    PinMisaligned { item: BufferId },
    #[error(
        "not found within the effort, and not excluded: item {item}, which needs {need}, found no \
         place in {space}, the last one for it, with {capacity}"
    )]
    NotFound { item: BufferId, need: Bytes, space: SpaceId, capacity: Bytes },
}

impl SpacesPackError {
    /// Whether it is shown that there is none; else only none was found.
    pub fn is_impossible(&self) -> bool {
        !matches!(self, Self::NotFound { .. })
    }
}

/// Packs into several spaces within a budget of pairs, the fastest space first.
pub fn pack_spaces(
    problem: &SpacesProblem,
    budget: Budget<'_>,
) -> Result<SpacesPacking, SpacesPackError> {
    proof::is_not_excluded(problem)?;
    let watched = Watched::new(budget.watch);
    let mut meter = Meter::new(budget.steps, &watched);
    let weights = problem.stays().iter().map(|stay| stay.weight).collect();
    let is_limited = problem.capacities().iter().all(Option::is_some);
    let share = if is_limited { budget.steps.div_ceil(2) } else { budget.steps };
    let first = meter.with_at_most(share, |part| attempt(problem, &weights, part));
    if !is_limited || !matches!(first, Err(SpacesPackError::NotFound { .. })) {
        return first;
    }
    attempt(problem, &areas(problem), &mut meter).map_err(|second| {
        // What is shown is worth more than what was found first.
        if second.is_impossible() { second } else { first.err().unwrap_or(second) }
    })
}

/// Bytes times steps: what counts when spaces are to be as full as possible.
fn areas(problem: &SpacesProblem) -> IndexVec<BufferId, u64> {
    let area = |rect: &Rect| u128::from(rect.bytes.0) * u128::from(rect.span.len());
    let items = problem.problem().items().iter();
    let sums = items.map(|item| item.rects().iter().map(area).sum::<u128>());
    sums.map(|sum| u64::try_from(sum).unwrap_or(u64::MAX)).collect()
}

/// Fills one space after the other, counting items by these values.
fn attempt(
    problem: &SpacesProblem,
    values: &IndexVec<BufferId, u64>,
    meter: &mut Meter<'_>,
) -> Result<SpacesPacking, SpacesPackError> {
    let allowed = meter.left();
    let mut filler = Filler { problem, meter };
    let mut report = Report::new(problem);
    let mut open: Vec<BufferId> = problem.problem().items().ids().collect();
    for space in problem.capacities().ids() {
        let may_lie = |id: &BufferId| problem.allows(*id, space);
        let here: Vec<BufferId> = open.iter().copied().filter(may_lie).collect();
        let later = || problem.capacities().ids().skip(space.index() + 1);
        let must_stay =
            here.iter().map(|&id| !later().any(|other| problem.allows(id, other))).collect();
        let offer = Offer { problem, items: &here, must_stay, values };
        let filled = filler.fill(&offer, space);
        let filled = filled.map_err(|error| not_filled(&offer, space, &error))?;
        report.add(&offer, space, &open, filled);
        open.retain(|&id| !report.is_placed(id));
    }
    Ok(report.finish(allowed - filler.meter.left()))
}

fn not_filled(offer: &Offer<'_>, space: SpaceId, error: &NotFilled) -> SpacesPackError {
    let problem = offer.problem;
    let capacity = problem.capacities()[space].unwrap_or(Bytes::MAX_TOTAL);
    let NotFilled { item, least } = *error;
    let bound = proof::bound_to(problem, space);
    let mut stay = offer.items.iter().zip(&offer.must_stay).filter(|&(_, &must)| must);
    if least > capacity && stay.all(|(item, _)| bound.binary_search(item).is_ok()) {
        return SpacesPackError::SpaceTooSmall { space, need: least, capacity };
    }
    SpacesPackError::NotFound { item, need: problem.need(item), space, capacity }
}
