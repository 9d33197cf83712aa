//! What could stay in a space at the very most: a bound on the value that any choice keeps.
//!
//! ~~~text
//! live ^      ██            at the worst step so many bytes must leave; what is worth least for a byte, and parts of
//!  cap |╌╌╌╌╌╌██╌╌╌╌╌█╌╌    items, lose no more than any choice of whole ones. The items of that step are then left
//!      |  ███████████████   out, and the next step that is still over loses more, of other items
//!      +----------------> step
//! ~~~
//! Losses at steps that share no item add up. Cost: O(n log n) for each step looked at, and few are.

use super::loads::Loads;
use super::offer::Offer;
use lowtide_core::{Rect, Step};

/// Steps at which a loss is looked for.
const MOST_STEPS: usize = 64;

/// No choice keeps more of the offered value within the capacity.
pub(super) fn most_kept(offer: &Offer<'_>, capacity: i64) -> u128 {
    let mut open = vec![true; offer.items.len()];
    let all = offer.total(&open);
    let mut loads = Loads::new(&offer.loads(&open, capacity));
    let mut lost = 0_u128;
    for _ in 0..MOST_STEPS {
        let Some((excess, step)) = loads.peak().filter(|&(excess, _)| excess > 0) else { break };
        let here: Vec<(usize, u64)> = live_at(offer, &open, step).collect();
        lost += least_loss(offer, &here, excess.unsigned_abs());
        for &(at, _) in &here {
            open[at] = false;
            offer.add(&mut loads, at, -1);
        }
    }
    all - lost
}

/// The items at a step that are not left out, with their bytes there.
fn live_at(offer: &Offer<'_>, open: &[bool], step: usize) -> impl Iterator<Item = (usize, u64)> {
    let step = Step::from_index(step);
    let is_live = move |rect: &&Rect| rect.span.contains(step);
    let bytes = move |at: usize| -> u64 {
        let rects = offer.problem.problem().items()[offer.items[at]].rects().iter();
        rects.filter(is_live).map(|rect| rect.bytes.0).sum()
    };
    let items = (0..open.len()).filter(|&at| open[at]);
    items.map(move |at| (at, bytes(at))).filter(|&(_, bytes)| bytes > 0)
}

/// The least that is lost when so many bytes leave, parts of items allowed.
fn least_loss(offer: &Offer<'_>, here: &[(usize, u64)], mut excess: u64) -> u128 {
    let may_leave = here.iter().filter(|&&(at, _)| !offer.must_stay[at]);
    let mut rows: Vec<(u64, u64)> =
        may_leave.map(|&(at, bytes)| (offer.value(at), bytes)).collect();
    rows.sort_by(|a, b| {
        (u128::from(a.0) * u128::from(b.1)).cmp(&(u128::from(b.0) * u128::from(a.1)))
    });
    let mut lost = 0_u128;
    for (value, bytes) in rows {
        if excess >= bytes {
            excess -= bytes;
            lost += u128::from(value);
            continue;
        }
        // Rounded up: a choice loses whole values, so no less than the next whole number.
        return lost + (u128::from(value) * u128::from(excess)).div_ceil(u128::from(bytes));
    }
    lost
}
