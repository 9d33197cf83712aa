//! The pipeline: tries the orders that the config asks for, keeps the one with the smallest arena.

use crate::meter::{Meter, Watched};
use crate::order::{Ranked, Rungs, climb};
use crate::share::{ARENA, Layout, Links, Wishes, share};
use crate::{
    Budget, ColourBy, Colouring, OrderRule, PackRequest, Packing, PlanConfig, Watch, bounds,
    colour, events, fewest_colours, pack_as_asked, placement_bound, score_order,
};
use lowtide_core::{
    Bound, Buffer, BufferId, Bytes, Graph, Id, Order, Placement, Plan, PlanStats, Problem, Proof,
    Reuse, Size, Step,
};

/// A plan and what was learned on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The order of its schedule.
    pub order: Order,
    /// The orders that were tried, the file's first.
    pub tried: Vec<Tried>,
}

impl Planned {
    /// The arena of the file order with the same sharing and packing.
    pub fn file_order_bytes(&self) -> Bytes {
        self.tried[0].arena
    }
}

/// One order that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The rule that found it.
    pub rule: &'static str,
    /// The most that is live at once.
    pub peak: Bytes,
    /// The arena.
    pub arena: Bytes,
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
}

/// Plans a graph. Cost: near-linear in its size; see [`PlanConfig::pack_steps`].
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
    Planner::new(graph, config, watch).run()
}

/// Plans a graph in an order of the caller's. Cost: near-linear.
pub fn plan_in_order(graph: &Graph, order: Order, config: &PlanConfig) -> Plan {
    let planner = Planner::new(graph, config, Budget::of(0).watch);
    let bound = bounds::order_bound(graph, config);
    planner.candidate("given", order).plan(graph, config, &bound)
}

/// The most that an order needs at once, with all that the plan would let share. Cost: near-linear.
pub fn peak_of(graph: &Graph, order: &Order, config: &PlanConfig) -> Bytes {
    let wishes = Wishes::new(graph, config, links(config));
    let (problem, _) = share(graph, order, config, &wishes).problem();
    bounds::live_bound(&bounds::live_sums(&problem)).bytes
}

fn links(config: &PlanConfig) -> Links {
    if config.parts { Links::Dying } else { Links::None }
}

/// Orders, packs and compares.
struct Planner<'a> {
    graph: &'a Graph,
    config: &'a PlanConfig,
    watch: &'a Watch<'a>,
    wishes: Wishes,
}

/// Orders that are packed, at most.
const MOST_PACKED: usize = 4;

impl<'a> Planner<'a> {
    fn new(graph: &'a Graph, config: &'a PlanConfig, watch: &'a Watch<'a>) -> Self {
        let wishes = Wishes::new(graph, config, links(config));
        Self { graph, config, watch, wishes }
    }

    fn run(&self) -> Result<Planned, PlanError> {
        let (graph, config) = (self.graph, self.config);
        let file = self.candidate("file", graph.file_order());
        let mut bound = bounds::order_bound(graph, config);
        let mut tried = vec![file.tried()];
        let mut best = file;
        for (rule, order) in self.orders(&best, &mut bound) {
            if best.placement.size <= bound.bytes {
                break;
            }
            let next = self.candidate(rule, order);
            tried.push(next.tried());
            if config.order == OrderRule::Score || next.placement.size < best.placement.size {
                best = next;
            }
        }
        Ok(Planned { plan: best.plan(graph, config, &bound), order: best.order, tried })
    }

    /// Orders that may be better than the file's, the most promising first; raises the bound.
    fn orders(&self, file: &Candidate, bound: &mut Bound) -> Vec<(&'static str, Order)> {
        let (graph, config) = (self.graph, self.config);
        let rungs = match config.order {
            OrderRule::File => return Vec::new(),
            OrderRule::Score => return vec![("score", score_order(graph, config))],
            _ if file.placement.size <= bound.bytes => return Vec::new(),
            OrderRule::Rules => Rungs::Rules,
            OrderRule::Search => Rungs::Search,
        };
        let watched = Watched::new(self.watch);
        watched.tell(file.placement.size, bound.bytes);
        let mut meter = Meter::new(config.order_steps, &watched);
        let Some(ladder) = climb(graph, config, &self.wishes, rungs, &mut meter) else {
            return vec![("score", score_order(graph, config))];
        };
        if ladder.bound > bound.bytes.0 {
            *bound = Bound { bytes: Bytes(ladder.bound), proof: Proof::Search };
        }
        let promising = ladder
            .orders
            .into_iter()
            .filter(|order| order.rule != "file" && Bytes(order.peak) < file.placement.size);
        let order = |ranked: Ranked| {
            let order = Order::new(graph, ranked.ops).expect("an order of tasks is one");
            (ranked.rule, order)
        };
        promising.take(MOST_PACKED).map(order).collect()
    }

    fn candidate(&self, rule: &'static str, order: Order) -> Candidate {
        Candidate::new(self, rule, order)
    }
}

/// One order with its sharing and placement.
struct Candidate {
    rule: &'static str,
    order: Order,
    layout: Layout,
    /// The buffer of each item that is placed.
    buffers: Vec<BufferId>,
    placement: Placement,
    /// The most that is live.
    live: Bound,
    /// Below this no placement of this order can come.
    bound: Bound,
}

impl Candidate {
    fn new(planner: &Planner<'_>, rule: &'static str, order: Order) -> Self {
        let Planner { graph, config, watch, wishes } = planner;
        let layout = share(graph, &order, config, wishes);
        let (problem, buffers) = layout.problem();
        let live = bounds::live_bound(&bounds::live_sums(&problem));
        let (placement, mut bound) = place(&problem, config, watch);
        if let Proof::Items(items) = &mut bound.proof {
            // In the plan, buffers that lie in no arena are counted too.
            items.iter_mut().for_each(|item| *item = buffers[item.index()]);
        }
        Self { rule, order, layout, buffers, placement, live, bound }
    }

    fn tried(&self) -> Tried {
        Tried { rule: self.rule, peak: self.live.bytes, arena: self.placement.size }
    }

    fn plan(&self, graph: &Graph, config: &PlanConfig, order_bound: &Bound) -> Plan {
        let mut buffers = self.layout.buffers.clone();
        for (&buffer, &offset) in self.buffers.iter().zip(&self.placement.offsets) {
            let row: &mut Buffer = &mut buffers[buffer];
            debug_assert_eq!(row.space, ARENA);
            row.offset = Some(offset);
        }
        Plan {
            fingerprint: graph.fingerprint(),
            reuse: config.reuse,
            inputs: config.inputs,
            outputs: config.outputs,
            align: config.align,
            order_rule: self.rule.to_owned(),
            schedule: self.order.schedule().clone(),
            bindings: events::bindings(graph, &self.order, &self.layout),
            spaces: self.layout.spaces(self.placement.size),
            buffers,
            residences: self.layout.residences.clone(),
            events: events::events(graph, &self.order, &self.layout),
            order_bound: order_bound.clone(),
            placement_bound: self.bound.clone(),
            stats: self.stats(graph, config),
        }
    }

    fn stats(&self, graph: &Graph, config: &PlanConfig) -> PlanStats {
        let placed =
            || graph.tensors().iter_enumerated().filter(|&(id, _)| config.places(graph, id));
        let padded = |bytes: Bytes| bytes.align_up(config.align).expect("sizes fit with padding");
        let peak_step = match self.live.proof {
            Proof::LiveSum(step) => step,
            _ => Step::ZERO,
        };
        PlanStats {
            no_reuse_bytes: placed().filter_map(|(_, t)| t.size.bound()).map(padded).sum(),
            peak_live_bytes: self.live.bytes,
            peak_step,
            arena_bytes: self.placement.size,
            pool_tensors: placed().filter(|(_, tensor)| tensor.size == Size::Unknown).count(),
        }
    }
}

fn place(problem: &Problem, config: &PlanConfig, watch: &Watch<'_>) -> (Placement, Bound) {
    let placement = match config.reuse {
        Reuse::Pack => {
            let budget = Budget { steps: config.pack_steps, watch };
            let request = PackRequest { budget, ..PackRequest::of(0) };
            let Packing { placement, bound, .. } = pack_as_asked(problem, request);
            return (placement, bound);
        }
        Reuse::Colour => colour(problem, config.colour_by).placement(),
        Reuse::Safe => side_by_side(problem),
    };
    (placement, placement_bound(problem))
}

/// Every item has its own bytes.
fn side_by_side(problem: &Problem) -> Placement {
    let mut placement = Placement::default();
    for item in problem.items() {
        let base = placement.size.align_up(item.align).expect("a problem's sizes fit with padding");
        placement.offsets.push(base);
        placement.size = base + item.extent();
    }
    placement
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
