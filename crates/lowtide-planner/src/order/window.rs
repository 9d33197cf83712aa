//! Window search: make the peak of an order lower by running a few tasks around it in another order.
//!
//! ~~~text
//! needed  ▂▃▅▇█▇▅▃▂▁▂▃     the tasks of the window are ordered anew by [`layers`](super::layers), so that all of it
//!            [ window )    needs less than the peak; then the next peak is looked for, which may lie elsewhere
//! ~~~
//! Windows grow until one helps, and begin small again after a success. Which share of a window lies before the peak
//! comes from a sequence that looks random and has a fixed seed. The target is first well below the peak, then just
//! below it. Ends when no window of any size helps, the peak meets the bound, or the steps are used up.
//! Cost: a window costs its own tasks, whatever the size of the graph.

use super::layers::{Found, search};
use super::profile::Profile;
use crate::meter::Meter;
use crate::random;

/// How long windows are, and how many steps each task and set of a layer may cost.
const LENGTHS: [usize; 7] = [12, 24, 48, 96, 192, 384, 768];
const STEPS_A_SET: u64 = 40;

/// Lowers the peak of an order, at best to `bound`, with at most `width` sets a layer.
pub(crate) fn lower(
    profile: &mut Profile<'_>,
    bound: u64,
    width: usize,
    seed: &mut u64,
    meter: &mut Meter<'_>,
) {
    while profile.peak() > bound && !meter.is_out() {
        if !lower_once(profile, bound, width, seed, meter) {
            return;
        }
    }
}

/// Lowers the first peak; `false` if nothing helps.
fn lower_once(
    profile: &mut Profile<'_>,
    bound: u64,
    width: usize,
    seed: &mut u64,
    meter: &mut Meter<'_>,
) -> bool {
    let peak = profile.peak();
    let Some(step) = profile.next_peak(0, peak) else { return false };
    let below = (peak - 1).min((peak - peak / 32).max(bound));
    for length in LENGTHS {
        for target in [below, peak - 1] {
            if meter.is_out() {
                return false;
            }
            let before = length / 8 + random::index(length * 3 / 4, seed);
            let start = step.saturating_sub(before);
            let end = (start + length).min(profile.order().len());
            if try_window(profile, start..end.max(step + 1), (target, width), meter) {
                return true;
            }
        }
        if length >= profile.order().len() {
            break;
        }
    }
    false
}

fn try_window(
    profile: &mut Profile<'_>,
    window: std::ops::Range<usize>,
    (target, width): (u64, usize),
    meter: &mut Meter<'_>,
) -> bool {
    let part = profile.stretch(window.clone());
    meter.spend(4 * window.len() as u64);
    let steps = STEPS_A_SET.saturating_mul(window.len() as u64).saturating_mul(width as u64);
    let found = meter.with_at_most(steps, |meter| search(&part, target, width, meter));
    let Found::Order(order) = found else { return false };
    profile.reorder(window, &part, &order);
    true
}
