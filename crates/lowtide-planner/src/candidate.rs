//! [`Candidate`]: one order, what shares bytes under it, and where all that lies.
//!
//! ~~~text
//! Order + Wishes ──share──> Layout ──problem──> Problem ──pack──> Placement ──> Plan
//! ~~~

use crate::apart::place_apart;
use crate::fences::add_fences;
use crate::meter::Meter;
use crate::share::{ARENA, Layout, Links, Wishes, share};
use crate::{
    Budget, PackRequest, Packing, PlanConfig, Tried, Watch, bounds, colour, events, pack_as_asked,
    placement_bound, red_zone,
};
use lowtide_core::{
    Bound, Buffer, BufferId, Bytes, Graph, Id, Order, Placement, Plan, PlanStats, Problem, Proof,
    Reuse, Size, Step,
};

/// One order with its sharing and placement.
pub(crate) struct Candidate {
    pub(crate) rule: &'static str,
    pub(crate) order: Order,
    /// Which parts and pieces were to stay in place.
    pub(crate) links: Links,
    pub(crate) layout: Layout,
    pub(crate) problem: Problem,
    /// The buffer of each item that is placed.
    pub(crate) buffers: Vec<BufferId>,
    pub(crate) placement: Placement,
    /// The most that is live.
    pub(crate) live: Bound,
    /// The steps with which it was packed.
    pub(crate) steps: u64,
    /// Below this no placement of this order can come.
    pub(crate) bound: Bound,
    /// Seconds on the workers; only with several.
    pub(crate) makespan: Option<f64>,
}

impl Candidate {
    /// Without a placement yet.
    pub(crate) fn new(
        rule: &'static str,
        order: Order,
        graph: &Graph,
        config: &PlanConfig,
        wishes: &Wishes,
    ) -> Self {
        let layout = share(graph, &order, config, wishes);
        let (problem, buffers) = layout.problem();
        let live = bounds::live_bound(&bounds::live_sums(&problem));
        let (placement, bound) = (Placement::default(), Bound::NONE);
        Self {
            rule,
            order,
            links: wishes.links,
            layout,
            problem,
            buffers,
            placement,
            live,
            steps: 0,
            bound,
            makespan: None,
        }
    }

    pub(crate) fn pack(&mut self, steps: u64, config: &PlanConfig, watch: &Watch<'_>) {
        let widened = red_zone::widened(&self.problem, config);
        let (placement, mut bound) =
            place(widened.as_ref().unwrap_or(&self.problem), steps, config, watch);
        if widened.is_some() {
            // A plan's bound is one for its buffers, which have no zones.
            bound = placement_bound(&self.problem);
        }
        if let Proof::Items(items) = &mut bound.proof {
            // In the plan, buffers that lie in no arena are counted too.
            items.iter_mut().for_each(|item| *item = self.buffers[item.index()]);
        }
        (self.placement, self.bound, self.steps) = (placement, bound, steps);
    }

    /// Places everything so that no fence is needed, unless it lies so already.
    pub(crate) fn set_apart(&mut self, graph: &Graph, config: &PlanConfig, meter: &mut Meter<'_>) {
        if self.plan(graph, config, &Bound::NONE).fences() == 0 {
            return;
        }
        let (placement, least) = place_apart(graph, self, config, meter);
        self.placement = placement;
        // As with zones everywhere, a plan's bound is one for its buffers.
        if least > self.bound.bytes && config.red_zone == Bytes::ZERO {
            self.bound = Bound { bytes: least, proof: Proof::Search };
        }
        self.placement.size = self.placement.size.max(self.bound.bytes);
    }

    pub(crate) fn tried(&self) -> Tried {
        let Self { rule, makespan, .. } = *self;
        Tried { rule, peak: self.live.bytes, arena: self.placement.size, makespan }
    }

    pub(crate) fn plan(&self, graph: &Graph, config: &PlanConfig, order_bound: &Bound) -> Plan {
        let mut buffers = self.layout.buffers.clone();
        for (&buffer, &offset) in self.buffers.iter().zip(&self.placement.offsets) {
            let row: &mut Buffer = &mut buffers[buffer];
            debug_assert_eq!(row.space, ARENA);
            row.offset = Some(offset);
        }
        let mut plan = Plan {
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
            events: events::events(graph, &self.order, &self.layout, config.compact_every),
            order_bound: order_bound.clone(),
            placement_bound: self.bound.clone(),
            stats: self.stats(graph, config),
        };
        add_fences(graph, &mut plan);
        plan
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

fn place(
    problem: &Problem,
    steps: u64,
    config: &PlanConfig,
    watch: &Watch<'_>,
) -> (Placement, Bound) {
    let placement = match config.reuse {
        Reuse::Pack => {
            let budget = Budget { steps, watch };
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
