//! The pipeline: tries the orders that the config asks for, keeps the one with the smallest arena.

use crate::candidate::Candidate;
use crate::meter::{Meter, Watched};
use crate::mix::mix;
use crate::order::{Ranked, Rungs, climb};
use crate::share::{Ground, Links, Wishes, share};
use crate::tradeoff::{Clock, Limit, Offer};
use crate::{
    Budget, ColourBy, Colouring, OrderRule, PlanConfig, Watch, bounds, colour, fewest_colours,
    red_zone, score_order,
};
use lowtide_core::{Bound, Bytes, Graph, Order, Plan, Proof, Reuse};
use std::collections::BTreeSet;

/// A plan and what was learned on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The order of its schedule.
    pub order: Order,
    /// The orders that were packed, the file's first.
    pub tried: Vec<Tried>,
    /// The least that any order tried needs at once. The plan's own peak can be above it, as an order that needs a little
    /// more may fit into the smaller arena.
    pub least_peak: Bytes,
    /// The least makespan of all orders that were looked at; only with several workers.
    pub least_makespan: Option<f64>,
}

impl Planned {
    /// The arena of the file order with the same sharing and packing.
    pub fn file_order_bytes(&self) -> Bytes {
        let files = self.tried.iter().filter(|row| row.rule == "file");
        files.map(|row| row.arena).min().unwrap_or_default()
    }

    /// Whether no order needs less than the best one that was tried.
    pub fn least_peak_proven(&self) -> bool {
        self.least_peak <= self.plan.order_bound.bytes
    }
}

/// One order that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// The rule that found it.
    pub rule: &'static str,
    /// The most that is live at once.
    pub peak: Bytes,
    /// The arena.
    pub arena: Bytes,
    /// Seconds on the workers; only with several.
    pub makespan: Option<f64>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A weight of the score rule that is no weight.
    #[error("weight {name} of the score rule is {value}, wanted a finite number, 0 or more")]
    BadWeight {
        /// Which weight.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// Red zones that have no room beside the sizes of the graph.
    #[error("red zones of {value} behind all buffers have no room")]
    RedZone {
        /// How large they were to be.
        value: Bytes,
    },
    /// Colours give bytes from one buffer to the next as the order goes.
    #[error("mode colour has no plan without fences")]
    ColourWithoutFences,
    /// A slowdown that is none.
    #[error("the slowdown is at most {value}, wanted a number, 0 or more")]
    BadSlowdown {
        /// Its value.
        value: f64,
    },
}

/// Plans a graph. Cost: near-linear in its size, and the budgets [`PlanConfig::order_steps`] (twice if parts can stay in
/// place) and [`PlanConfig::pack_steps`] where the bounds are not met before.
pub fn plan(graph: &Graph, config: &PlanConfig) -> Result<Planned, PlanError> {
    plan_watched(graph, config, Budget::of(0).watch)
}

/// [`plan()`] with somebody who looks on, and may end the search for smaller arenas: the plan is then made of what is
/// known by that time.
pub fn plan_watched(
    graph: &Graph,
    config: &PlanConfig,
    watch: &Watch<'_>,
) -> Result<Planned, PlanError> {
    for (name, value) in [("alpha", config.score.alpha), ("beta", config.score.beta)] {
        if !(value.is_finite() && value >= 0.0) {
            return Err(PlanError::BadWeight { name, value });
        }
    }
    if let Some(value) = config.slowdown.filter(|&value| value.is_nan() || value < 0.0) {
        return Err(PlanError::BadSlowdown { value });
    }
    if config.reuse == Reuse::Colour && !config.fences {
        return Err(PlanError::ColourWithoutFences);
    }
    if config.red_zone > Bytes::ZERO && !red_zone::has_room(graph, config.red_zone) {
        return Err(PlanError::RedZone { value: config.red_zone });
    }
    Ok(Planner::new(graph, config, watch).run())
}

/// Plans a graph in an order of the caller's. Cost: near-linear.
///
/// # Panics
/// If there is no room for red zones: see [`PlanError::RedZone`].
pub fn plan_in_order(graph: &Graph, order: &Order, config: &PlanConfig) -> Plan {
    let mut planner = Planner::new(graph, config, Budget::of(0).watch);
    let wishes = all_wishes(graph, config);
    for wishes in &wishes {
        planner.try_order("given", order.clone(), wishes);
    }
    planner.refine();
    let watched = Watched::new(planner.watch);
    planner.set_apart(&mut Meter::new(config.pack_steps / APART, &watched));
    let bound = bounds::order_bound(graph, config);
    planner.candidates[0].plan(graph, config, &bound)
}

/// The most that an order needs at once, with all that a plan may let share. Cost: near-linear.
pub fn peak_of(graph: &Graph, order: &Order, config: &PlanConfig) -> Bytes {
    let peak = |wishes: &Wishes| {
        let (problem, _) = share(graph, order, config, wishes).problem();
        bounds::live_bound(&bounds::live_sums(&problem)).bytes
    };
    all_wishes(graph, config).iter().map(peak).min().unwrap_or_default()
}

/// What may share, in the different ways that can be best, all parts in place first.
fn all_wishes(graph: &Graph, config: &PlanConfig) -> Vec<Wishes> {
    let mut all: Vec<Wishes> = Vec::new();
    for links in Links::ALL {
        let wishes = Wishes::new(graph, config, if config.parts { links } else { Links::None });
        if all.iter().all(|known| known.bodies != wishes.bodies) {
            all.push(wishes);
        }
    }
    all
}

/// Finds orders, packs them, and keeps the smallest arenas.
struct Planner<'a> {
    graph: &'a Graph,
    config: &'a PlanConfig,
    watch: &'a Watch<'a>,
    /// No order needs less, whatever shares bytes.
    floor: Bound,
    /// All that was packed, the smallest arena first.
    candidates: Vec<Candidate>,
    tried: Vec<Tried>,
    clock: Option<Clock>,
}

/// Orders that are packed for each way to share, at most.
const MOST_PACKED: usize = 4;
/// First every order is packed with this part of the steps.
const FIRST_PACKING: u64 = 64;
/// Less than such a part of an arena is not worth the seconds of a packing.
const NEGLIGIBLE: u64 = 1024;
/// Then some are packed again with this one: at most five, and two more when something has been mixed.
const SECOND_PACKING: u64 = 16;
/// Without fences everything is placed anew with such a part of the steps.
const APART: u64 = 4;
/// How many of the smallest arenas are packed again.
const REFINED: usize = 2;
/// Orders for which some operators copy after all.
const MIXED: usize = 3;

impl<'a> Planner<'a> {
    fn new(graph: &'a Graph, config: &'a PlanConfig, watch: &'a Watch<'a>) -> Self {
        let floor = bounds::order_bound(graph, config);
        let clock = Clock::new(graph, config);
        Self { graph, config, watch, floor, candidates: Vec::new(), tried: Vec::new(), clock }
    }

    fn run(mut self) -> Planned {
        let (graph, config) = (self.graph, self.config);
        let watched = Watched::new(self.watch);
        let mut meter = Meter::new(config.order_steps, &watched);
        let mut bounds = Vec::new();
        let ways = all_wishes(graph, config);
        let is_choice = ways.len() > 1;
        // Steps for the bound of all mixtures.
        let kept = if is_choice { config.order_steps / 4 } else { 0 };
        for wishes in ways {
            // Each way to share has a bound of its own; that of no parts is never the lowest.
            let is_met = bounds.iter().any(|&bound| self.least() <= bound);
            if self.least() <= self.floor.bytes || (is_met && wishes.links == Links::None) {
                break;
            }
            watched.tell(self.least(), self.floor.bytes);
            bounds.push(if wishes.links == Links::None {
                // As many as if parts were off, so that they never make a plan worse.
                let mut meter = Meter::new(config.order_steps, &watched);
                self.try_wishes(&wishes, &mut meter)
            } else {
                let share = meter.left().saturating_sub(kept) / 4 * 3;
                meter.with_at_most(share, |meter| self.try_wishes(&wishes, meter))
            });
        }
        let least = bounds.into_iter().min().unwrap_or_default();
        self.refine();
        self.mix(self.floor.bytes.max(least));
        self.refine();
        let least_makespan = self.trade();
        // The ways to share were searched whole. Where some of one and some of another can need less than either, that
        // is no bound.
        let least = if is_choice && least > self.floor.bytes {
            self.relaxed_bound(&mut meter)
        } else {
            least
        };
        let bound = if least > self.floor.bytes {
            Bound { bytes: least, proof: Proof::Search }
        } else {
            self.floor.clone()
        };
        self.set_apart(&mut Meter::new(config.pack_steps / APART, &watched));
        let best = self.candidates.swap_remove(0);
        let plan = best.plan(graph, config, &bound);
        let least_peak = self.tried.iter().map(|row| row.peak).min().unwrap_or_default();
        Planned { plan, order: best.order, tried: self.tried, least_peak, least_makespan }
    }

    /// A bound for all mixtures of the ways to share; only where an order is searched.
    fn relaxed_bound(&self, meter: &mut Meter<'_>) -> Bytes {
        let (graph, config) = (self.graph, self.config);
        let rungs = match config.order {
            OrderRule::File | OrderRule::Score => return Bytes::ZERO,
            OrderRule::Rules => Rungs::Rules,
            OrderRule::Search => Rungs::Search,
        };
        let ground = Ground::relaxed(graph, config);
        let ladder = ground.and_then(|ground| climb(graph, config, &ground, rungs, meter));
        ladder.map_or(Bytes::ZERO, |ladder| Bytes(ladder.bound))
    }

    /// The smallest arena so far.
    fn least(&self) -> Bytes {
        self.candidates.iter().map(|one| one.placement.size).min().unwrap_or(Bytes(u64::MAX))
    }

    /// Packs the file's order and the most promising ones; returns a bound for all orders that share like this.
    fn try_wishes(&mut self, wishes: &Wishes, meter: &mut Meter<'_>) -> Bytes {
        let (graph, config, floor) = (self.graph, self.config, self.floor.bytes);
        let rungs = match config.order {
            OrderRule::File | OrderRule::Score => None,
            OrderRule::Rules => Some(Rungs::Rules),
            OrderRule::Search => Some(Rungs::Search),
        };
        if config.order != OrderRule::Score || self.tried.is_empty() {
            self.try_order("file", graph.file_order(), wishes);
        }
        if config.order == OrderRule::Score {
            // The file's order only stands for comparison.
            self.candidates.retain(|one| one.rule != "file");
            self.try_order("score", score_order(graph, config), wishes);
        }
        let Some(rungs) = rungs.filter(|_| self.least() > floor) else { return floor };
        let Some(ladder) = climb(graph, config, &Ground::new(graph, config, wishes), rungs, meter)
        else {
            self.try_order("score", score_order(graph, config), wishes);
            return floor;
        };
        let bound = floor.max(Bytes(ladder.bound));
        let orders = ladder.orders.into_iter().filter(|order| order.rule != "file");
        for Ranked { rule, ops, peak } in orders.take(MOST_PACKED) {
            if self.least() <= bound || Bytes(peak) >= self.least() {
                break;
            }
            let order = Order::new(graph, ops).expect("an order of tasks is one");
            self.try_order(rule, order, wishes);
        }
        bound
    }

    fn try_order(&mut self, rule: &'static str, order: Order, wishes: &Wishes) {
        let (graph, config) = (self.graph, self.config);
        let mut candidate = Candidate::new(rule, order, graph, config, wishes);
        candidate.makespan =
            self.clock.as_ref().map(|clock| clock.makespan(graph, &candidate.order));
        candidate.pack(config.pack_steps / FIRST_PACKING, config, self.watch);
        self.tried.push(candidate.tried());
        self.candidates.push(candidate);
    }

    /// Of one way to share, the order that needs least.
    fn least_live(&self, links: Links) -> Option<usize> {
        let alike = (0..self.candidates.len()).filter(|&at| self.candidates[at].links == links);
        alike.min_by_key(|&at| self.candidates[at].live.bytes)
    }

    /// Packs the promising candidates again, with more steps, and puts the smallest arena first.
    fn refine(&mut self) {
        self.sort();
        let steps = self.config.pack_steps / SECOND_PACKING;
        for index in self.promising() {
            let least = self.least();
            let candidate = &mut self.candidates[index];
            let lost = least.saturating_sub(candidate.live.bytes);
            if candidate.steps < steps && lost.0 > least.0 / NEGLIGIBLE {
                candidate.pack(steps, self.config, self.watch);
            }
        }
        self.sort();
        self.note_best();
    }

    /// Corrects the row of the smallest arena.
    fn note_best(&mut self) {
        let best = &self.candidates[0];
        let is_same = |row: &&mut Tried| {
            (row.rule, row.peak, row.makespan) == (best.rule, best.live.bytes, best.makespan)
        };
        let same = self.tried.iter_mut().find(is_same);
        if let Some(row) = same {
            *row = best.tried();
        }
    }

    /// Without fences, places the promising candidates anew, and puts the smallest arena first.
    fn set_apart(&mut self, meter: &mut Meter<'_>) {
        let config = self.config;
        if config.fences || config.reuse != Reuse::Pack {
            return;
        }
        let promising: BTreeSet<usize> = self.promising().into_iter().collect();
        let all = std::mem::take(&mut self.candidates).into_iter().enumerate();
        self.candidates =
            all.filter(|(at, _)| promising.contains(at)).map(|(_, one)| one).collect();
        for (left, at) in (1..=self.candidates.len()).rev().zip(0..) {
            let share = meter.left() / left as u64;
            let candidate = &mut self.candidates[at];
            meter.with_at_most(share, |meter| candidate.set_apart(self.graph, config, meter));
        }
        self.sort();
        self.note_best();
    }

    /// The smallest arenas, and of each way to share the order that needs least: parts in place need less, and are
    /// harder to pack.
    fn promising(&self) -> Vec<usize> {
        let mut found: Vec<usize> = (0..self.candidates.len().min(REFINED)).collect();
        found.extend(Links::ALL.into_iter().filter_map(|links| self.least_live(links)));
        found
    }

    /// Where bytes are lost to placement, lets some operators copy what they could leave in place.
    fn mix(&mut self, bound: Bytes) {
        if !self.config.parts || self.config.reuse != Reuse::Pack {
            return;
        }
        let mut orders: Vec<usize> = (0..self.candidates.len()).collect();
        orders.sort_by_key(|&at| {
            (self.candidates[at].live.bytes, self.candidates[at].placement.size)
        });
        let mut mixed: Vec<Candidate> = Vec::new();
        for at in orders {
            let from = &self.candidates[at];
            let lost = self.least().saturating_sub(bound.max(from.live.bytes));
            let is_known = mixed.iter().any(|other| other.order == from.order);
            if mixed.len() == MIXED || is_known || lost.0 <= self.least().0 / NEGLIGIBLE {
                continue;
            }
            mixed.extend(mix(self.graph, self.config, from, bound, self.watch));
        }
        self.tried.extend(mixed.iter().map(Candidate::tried));
        self.candidates.extend(mixed);
    }

    /// Where the best order takes too long on the workers, tries quicker ones and keeps what is within the limit; returns
    /// the least makespan.
    fn trade(&mut self) -> Option<f64> {
        let (clock, best) = (self.clock.clone()?, &self.candidates[0]);
        let mut offers = clock.offers(self.graph, self.config, &best.order);
        let tried = self.tried.iter().filter_map(|row| row.makespan);
        let fastest = offers.iter().map(|offer| offer.makespan).chain(tried).reduce(f64::min)?;
        let is_given = matches!(self.config.order, OrderRule::File | OrderRule::Score);
        let slowdown = self.config.slowdown.filter(|_| !is_given);
        let limit = Limit { fastest, slowdown: slowdown.unwrap_or(f64::INFINITY) };
        if best.makespan.is_none_or(|makespan| limit.admits(makespan)) {
            return Some(fastest);
        }
        self.candidates.retain(|one| one.makespan.is_some_and(|makespan| limit.admits(makespan)));
        offers.retain(|offer| limit.admits(offer.makespan));
        for wishes in all_wishes(self.graph, self.config) {
            for Offer { rule, order, .. } in &offers {
                self.try_order(rule, order.clone(), &wishes);
            }
        }
        self.refine();
        Some(fastest)
    }

    fn sort(&mut self) {
        self.candidates.sort_by_key(|one| (one.placement.size, one.live.bytes));
    }
}

/// How an order's buffers can be coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colours {
    /// The fewest colours that any colouring uses.
    pub optimum: usize,
    /// Colours and bytes when coloured by the first step.
    pub by_start: (usize, Bytes),
    /// Colours and bytes when coloured by the last step.
    pub by_end: (usize, Bytes),
}

/// Colours the buffers of `order` both ways.
pub fn colours(graph: &Graph, order: &Order, config: &PlanConfig) -> Colours {
    let wishes = Wishes::new(graph, config, Links::None);
    let (problem, _) = share(graph, order, config, &wishes).problem();
    let measure = |by| {
        let colouring: Colouring = colour(&problem, by);
        (colouring.blocks.len(), colouring.bytes())
    };
    Colours {
        optimum: fewest_colours(&problem),
        by_start: measure(ColourBy::Start),
        by_end: measure(ColourBy::End),
    }
}
