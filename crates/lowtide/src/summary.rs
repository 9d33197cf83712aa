//! What people and scripts want to know of a plan, in one plain value.

use crate::Loaded;
use lowtide_core::{Bytes, Graph, Occupant, Plan, Reuse, Size, Step};
use lowtide_formats::{
    ByWorkersRow, ColouringRow, ColoursRow, PlanSummary, TimeRow, TriedRow, WorkersRow,
};
use lowtide_planner::{
    Fenced, PlanConfig, Planned, Times, colours, critical_path, makespan, plan_in_order,
};
use std::num::NonZeroUsize;

/// The figures of a plan; `seconds` is what planning took.
pub fn summary(
    model: &str,
    loaded: &Loaded,
    planned: &Planned,
    config: &PlanConfig,
    seconds: f64,
) -> PlanSummary {
    let Loaded { graph, .. } = loaded;
    let Planned { plan, order, tried, .. } = planned;
    let complete = plan.stats.pool_tensors == 0;
    let tried = tried.iter().map(|tried| TriedRow {
        rule: tried.rule.to_owned(),
        peak_bytes: tried.peak.0,
        arena_bytes: tried.arena.0,
        makespan_seconds: tried.makespan,
    });
    PlanSummary {
        model: model.to_owned(),
        fingerprint: graph.fingerprint().to_string(),
        ops: loaded.file_ops,
        runs: plan.schedule.len(),
        tensors: graph.tensors().len(),
        weights_bytes: graph.weights_bytes().0,
        no_reuse_bytes: plan.stats.no_reuse_bytes.0,
        file_order_bytes: planned.file_order_bytes().0,
        peak_live_bytes: plan.stats.peak_live_bytes.0,
        peak_step: plan.stats.peak_step.0,
        least_peak_bytes: planned.least_peak.0,
        least_peak_proven: complete && planned.least_peak_proven(),
        lower_bound_bytes: plan.order_bound.bytes.0,
        placement_bound_bytes: plan.placement_bound.bytes.0,
        arena_bytes: plan.stats.arena_bytes.0,
        pool_tensors: plan.stats.pool_tensors,
        fences: plan.fences(),
        complete,
        order_proven: complete && plan.order_proven(),
        placement_proven: complete && plan.placement_proven(),
        order_rule: plan.order_rule.clone(),
        reuse: plan.reuse.name().to_owned(),
        align_bytes: plan.align.bytes().0,
        tried: tried.collect(),
        colours: (plan.reuse == Reuse::Colour).then(|| colours_row(graph, order, config)),
        unknown_ops: loaded.unknown_ops.clone(),
        open_dims: loaded.open_dims.clone(),
        time: time_row(graph, planned, config),
        seconds,
    }
}

/// None where no time is known and none was asked for.
fn time_row(graph: &Graph, planned: &Planned, config: &PlanConfig) -> Option<TimeRow> {
    let times = Times::of(graph);
    let workers = planned.least_makespan.map(|least| workers_row(graph, planned, config, least));
    if times.unknown() == graph.ops().len() && workers.is_none() {
        return None;
    }
    let path = critical_path(graph, &times);
    Some(TimeRow {
        critical_path_seconds: path.seconds,
        critical_path: path.ops.iter().map(|op| op.raw()).collect(),
        total_seconds: times.total(),
        untimed_ops: times.unknown(),
        workers,
    })
}

fn workers_row(graph: &Graph, planned: &Planned, config: &PlanConfig, least: f64) -> WorkersRow {
    let times = Times::of(graph);
    let other = other_plan(graph, planned, config);
    let (with, without) = if config.fences {
        (Some(&planned.plan), other.as_ref())
    } else {
        (other.as_ref(), Some(&planned.plan))
    };
    let arena = |plan: Option<&Plan>| plan.map(|plan| plan.stats.arena_bytes.0);
    let fenced = Fenced::new(graph, with.unwrap_or(&planned.plan), &times);
    let span = |workers| makespan(graph, &planned.order, &times, workers);
    let mut counts: Vec<NonZeroUsize> =
        [1, 2, 4, 8].into_iter().filter_map(NonZeroUsize::new).collect();
    counts.push(config.workers);
    counts.sort_unstable();
    counts.dedup();
    let row = |workers: NonZeroUsize| ByWorkersRow {
        workers: workers.get(),
        makespan_seconds: span(workers),
        fenced_makespan_seconds: fenced.makespan(workers),
    };
    WorkersRow {
        workers: config.workers.get(),
        makespan_seconds: span(config.workers),
        least_makespan_seconds: least,
        fenced_critical_path_seconds: fenced.critical_path(),
        fenced_arena_bytes: arena(with),
        unfenced_arena_bytes: arena(without),
        unfenced_bound_bytes: without.map(|plan| plan.placement_bound.bytes.0),
        by_workers: counts.into_iter().map(row).collect(),
    }
}

/// In the same order, without fences if the plan may have some, and with them if not.
fn other_plan(graph: &Graph, planned: &Planned, config: &PlanConfig) -> Option<Plan> {
    let config = PlanConfig { fences: !config.fences, ..config.clone() };
    (config.reuse == Reuse::Pack).then(|| plan_in_order(graph, &planned.order, &config))
}

fn colours_row(graph: &Graph, order: &lowtide_core::Order, config: &PlanConfig) -> ColoursRow {
    let found = colours(graph, order, config);
    let row = |(colours, bytes): (usize, Bytes)| ColouringRow { colours, bytes: bytes.0 };
    ColoursRow { optimum: found.optimum, by_start: row(found.by_start), by_end: row(found.by_end) }
}

/// Something that is held at some step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The tensor's name, or whose scratch it is.
    pub name: String,
    /// How many bytes it takes.
    pub size: Size,
    /// From when to when it is held.
    pub first_step: Step,
    /// The last step at which it is held.
    pub last_step: Step,
}

/// What stands in the arena at the peak step, the largest first. Of a tensor that is overwritten in place at
/// that step and the one that comes over it, both are listed.
pub fn standing_at_peak(graph: &Graph, plan: &Plan) -> Vec<Standing> {
    let step = plan.stats.peak_step;
    let held = plan.residences.iter().filter(|residence| {
        let is_there = residence.span.contains(step);
        is_there && plan.buffers[residence.buffer].offset.is_some()
    });
    let mut standing: Vec<Standing> = held
        .map(|residence| Standing {
            name: match residence.what {
                Occupant::Tensor(tensor) => graph.tensors()[tensor].name.to_string(),
                Occupant::Scratch(run) => format!("scratch of {}", graph.op_label(plan.op(run))),
            },
            size: residence.size,
            first_step: residence.span.start,
            last_step: Step(residence.span.end.0 - 1),
        })
        .collect();
    standing.sort_by_key(|row| (std::cmp::Reverse(row.size.bound()), row.first_step));
    standing
}
