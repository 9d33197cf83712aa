//! What is written over what.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use lowtide_core::{Bytes, Graph, GraphBuilder, Op, Plan, Sharing, Size, TensorId, check};
use lowtide_planner::{PlanConfig, plan};

const SIZE: Size = Size::Fixed(Bytes(64));

fn good(graph: &Graph) -> Plan {
    plan(graph, &PlanConfig::default()).unwrap().plan
}

/// Plans `op` reading `a` with these sharings; is its last output written over `a`?
fn is_overwritten(
    outputs: &[&str],
    sharing: impl Fn(TensorId, &[TensorId]) -> Vec<Sharing>,
) -> bool {
    let mut b = GraphBuilder::new("in place");
    let x = b.input("x", SIZE);
    let a = b.computed("a", SIZE);
    b.op(Op::new("first", "A", [x], [a]));
    let outputs: Vec<TensorId> = outputs.iter().map(|&name| b.computed(name, SIZE)).collect();
    let mut op = Op::new("second", "B", [a], outputs.clone());
    op.sharing = sharing(a, &outputs);
    b.op(op);
    b.output(*outputs.last().unwrap());
    let graph = b.finish().unwrap();
    let plan = good(&graph);
    assert!(check(&graph, plan.clone()).is_ok());
    plan.stats.arena_bytes == Bytes(64)
}

#[test]
fn an_output_is_not_written_over_what_its_own_operator_changes() {
    let over = |a, outputs: &[TensorId]| Sharing::MayOverwrite {
        output: outputs[outputs.len() - 1],
        of: a,
    };
    assert!(is_overwritten(&["y"], |a, outputs| vec![over(a, outputs)]));
    assert!(!is_overwritten(&["a'", "y"], |a, outputs| vec![
        Sharing::Mutates { output: outputs[0], of: a },
        over(a, outputs)
    ]));
}

#[test]
fn an_output_is_not_written_over_a_view_in_another_order() {
    for (offset, wanted) in [(Some(Bytes::ZERO), 64), (None, 128)] {
        let mut b = GraphBuilder::new("transposed");
        let x = b.input("x", SIZE);
        let [a, view, y] = ["a", "v", "y"].map(|name| b.computed(name, SIZE));
        b.op(Op::new("first", "A", [x], [a]));
        b.op(Op::new("view", "T", [a], [view]).sharing(Sharing::View {
            output: view,
            of: a,
            offset,
        }));
        b.op(Op::new("last", "B", [view], [y])
            .sharing(Sharing::MayOverwrite { output: y, of: view }));
        b.output(y);
        let graph = b.finish().unwrap();
        assert_eq!(good(&graph).stats.arena_bytes, Bytes(wanted));
    }
}
