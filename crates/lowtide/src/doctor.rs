//! A plan to the plan that it is held against: the same order, every tensor in memory of its own.
//!
//! ~~~text
//! Plan, perhaps wrong ──its schedule, if that is an order──> safe plan, judged
//! ~~~

use lowtide_core::{CheckedPlan, Faults, Graph, Id, Order, Plan, Reuse, check};
use lowtide_planner::{PlanConfig, plan_in_order};

/// A plan without reuse, in the order of `plan`, or in that of the file if that is none.
pub fn safe_plan(graph: &Graph, plan: &Plan) -> Result<CheckedPlan, Faults> {
    let schedule = plan.schedule.iter().copied();
    let ops = schedule.filter(|op| op.index() < graph.ops().len()).collect();
    let order = Order::new(graph, ops).unwrap_or_else(|_| graph.file_order());
    let config = PlanConfig {
        reuse: Reuse::Safe,
        inputs: plan.inputs,
        outputs: plan.outputs,
        align: plan.align,
        ..PlanConfig::default()
    };
    check(graph, plan_in_order(graph, &order, &config))
}
