//! Runs a graph by its plan: one block of memory, the events followed mechanically.
//!
//! ~~~text
//! x ─ double ─ a ─ relu ─ b ─ add ─ y        b is written over a, and y over b: one buffer for all three
//!  └─────────────────────────┘
//! ~~~

use lowtide::core::{OpId, ResidenceId, RunId};
use lowtide::{
    Bytes, CheckedPlan, Event, Graph, GraphBuilder, Op, PlanConfig, Sharing, Size, check, plan,
};
use std::ops::Range;

const LEN: usize = 4;

fn graph() -> Result<Graph, lowtide::GraphError> {
    let mut b = GraphBuilder::new("three operators");
    let size = Size::Fixed(Bytes(4 * LEN as u64));
    let x = b.input("x", size);
    let [doubled, active, y] = ["a", "b", "y"].map(|name| b.computed(name, size));
    b.op(Op::new("double", "Double", [x], [doubled]));
    b.op(Op::new("relu", "Relu", [doubled], [active])
        .sharing(Sharing::MayOverwrite { output: active, of: doubled }));
    b.op(Op::new("add", "Add", [active, x], [y])
        .sharing(Sharing::MayOverwrite { output: y, of: active }));
    b.output(y);
    b.finish()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = graph()?;
    let planned = plan(&graph, &PlanConfig::default())?;
    let checked = check(&graph, planned.plan)?;
    let output = run(&graph, &checked, &[1.0, -2.0, 3.0, -4.0]);
    assert!(output == [3.0, -2.0, 9.0, -4.0]);
    Ok(())
}

/// Where operand `at` of a run lies in the arena; `None` for the caller's memory.
fn place(checked: &CheckedPlan, run: RunId, at: usize) -> Option<Range<usize>> {
    let plan = checked.plan();
    let residence: ResidenceId = plan.bindings[run][at]?;
    let (_, start) = plan.address(residence)?;
    let bytes = plan.residences[residence].size.bound()?;
    let [start, len] = [start, bytes].map(|bytes| usize::try_from(bytes.0 / 4).expect("it fits"));
    Some(start..start + len)
}

/// Follows the events. ALLOC and FREE ask for nothing here: the offsets are planned.
fn run(graph: &Graph, checked: &CheckedPlan, x: &[f32; LEN]) -> Vec<f32> {
    let plan = checked.plan();
    let arena_bytes = usize::try_from(plan.stats.arena_bytes.0).expect("it fits");
    let mut arena = vec![f32::NAN; arena_bytes / 4];
    let mut output = Vec::new();
    for &event in &plan.events {
        if let Event::Exec(run) = event {
            let op: OpId = plan.op(run);
            let row = &graph.ops()[op];
            // A real runtime binds pointers once; operands are identical or disjoint, never half of each.
            let read =
                |at| place(checked, run, at).map_or(x.to_vec(), |range| arena[range].to_vec());
            let inputs: Vec<Vec<f32>> = (0..row.inputs.len()).map(read).collect();
            let values = match &*row.kind {
                "Double" => inputs[0].iter().map(|v| v * 2.0).collect::<Vec<_>>(),
                "Relu" => inputs[0].iter().map(|v| v.max(0.0)).collect(),
                _ => inputs[0].iter().zip(&inputs[1]).map(|(a, b)| a + b).collect(),
            };
            let place = place(checked, run, row.inputs.len()).expect("outputs lie in the arena");
            arena[place.clone()].copy_from_slice(&values);
            output = arena[place].to_vec();
        }
    }
    output
}
