//! Random graphs, run by their plans in every mode, against an interpreter that gives every storage memory of its own.
//!
//! ~~~text
//! graph ──plan, check──> session ── run ──> outputs  ==  outputs <── interpreter, file order, one vector a storage
//! ~~~
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod mixed;

use arbitrary::Unstructured;
use lowtide::core::operator::Program;
use lowtide::core::testing::{Limits, describe, graph};
use lowtide::core::{Bytes, IndexVec, Owner, Reuse, Sharing, Size, TensorId, TensorKind};
use lowtide::planner::OrderRule;
use lowtide::runtime::SessionError;
use lowtide::{Graph, GraphBuilder, PlanConfig, Session, SessionConfig, TensorRef, check, plan};
use mixed::{changes_external, external, ids, len, mixed, of_bytes, program};
use std::collections::BTreeMap;

/// Every storage in a vector of its own, operators in the order of the file.
fn interpreted(graph: &Graph) -> Vec<Vec<u8>> {
    let mut storages: IndexVec<TensorId, Vec<u8>> = graph
        .tensors()
        .ids()
        .map(|id| {
            let is_given = graph.tensors()[id].kind != TensorKind::Computed;
            if is_given { external(id, len(graph, id)) } else { vec![0; len(graph, id)] }
        })
        .collect();
    let range = |id: TensorId| {
        let start = usize::try_from(graph.extent(id).start.0).unwrap();
        start..start + len(graph, id)
    };
    for &op in graph.file_order().schedule().as_slice() {
        let row = &graph.ops()[op];
        let read = |&id: &TensorId| storages[graph.storage(id)][range(id)].to_vec();
        let inputs: Vec<Vec<u8>> = row.inputs.iter().map(read).collect();
        for (at, &output) in row.outputs.iter().enumerate() {
            if graph.content(output) == output {
                let values = mixed(graph, op, &inputs, at);
                storages[graph.storage(output)][range(output)].copy_from_slice(&values);
            }
        }
    }
    let outputs = graph.tensors().ids().filter(|&id| graph.tensors()[id].is_output);
    outputs.map(|id| storages[graph.storage(id)][range(id)].to_vec()).collect()
}

fn has_mutations(graph: &Graph) -> bool {
    let mut sharing = graph.ops().iter().flat_map(|op| &op.sharing);
    sharing.any(|sharing| matches!(sharing, Sharing::Mutates { .. }))
}

fn configs() -> impl Iterator<Item = PlanConfig> {
    let owners = [(Owner::Caller, Owner::Arena), (Owner::Arena, Owner::Caller)];
    Reuse::ALL.into_iter().flat_map(move |reuse| {
        owners.map(|(inputs, outputs)| PlanConfig {
            reuse,
            inputs,
            outputs,
            order: OrderRule::Search,
            ..PlanConfig::default()
        })
    })
}

/// A whole, of whose part something is written over that lies in another whole, is not padded there.
#[test]
fn a_whole_around_what_is_overwritten_in_another_whole() {
    let mut b = GraphBuilder::new("overwritten");
    let size = |bytes| Size::Fixed(Bytes(bytes));
    let x = b.input("x", size(64));
    let [a, whole, over, other] = [("a", 100), ("w", 100), ("b", 100), ("v", 200)]
        .map(|(name, bytes)| b.computed(name, size(bytes)));
    let y = b.computed("y", size(64));
    let part = |input, output, offset| Sharing::PartOf { input, output, offset: Bytes(offset) };
    b.op(lowtide::Op::new("A", "A", [x], [a]));
    b.op(lowtide::Op::new("W", "Concat", [a], [whole]).sharing(part(a, whole, 0)));
    b.op(lowtide::Op::new("Y", "Y", [whole], [y]).scratch(size(1024)));
    b.op(lowtide::Op::new("B", "B", [a, y], [over])
        .sharing(Sharing::MayOverwrite { output: over, of: a }));
    b.op(lowtide::Op::new("V", "Concat", [over], [other]).sharing(part(over, other, 64)));
    b.output(other);
    let graph = b.finish().unwrap();
    for config in configs() {
        check(&graph, plan(&graph, &config).unwrap().plan).unwrap();
    }
}

#[test]
fn every_plan_of_a_random_graph_runs_as_if_nothing_was_reused() {
    let mut compared = 0;
    arbtest::arbtest(|u: &mut Unstructured<'_>| {
        let limits = Limits { open_sizes: false, ..Limits::all(12) };
        let Some(graph) = of_bytes(&graph(u, limits)?) else { return Ok(()) };
        if changes_external(&graph) {
            return Ok(());
        }
        let wanted = interpreted(&graph);
        for config in configs() {
            let checked = check(&graph, plan(&graph, &config).unwrap().plan).unwrap();
            let guarded = SessionConfig { guard: true, ..SessionConfig::default() };
            let mut session = match Session::new(program(&graph), checked, &guarded) {
                Ok(session) => session,
                // An operator may read a whole of which it changes a piece; no kernel is given such operands.
                Err(SessionError::Overlap { .. }) if has_mutations(&graph) => return Ok(()),
                Err(error) => panic!("{error}\n{}", describe(&graph)),
            };
            let given: Vec<(Vec<usize>, Vec<u8>)> = ids(&graph, TensorKind::Input)
                .into_iter()
                .map(|id| (vec![len(&graph, id)], external(id, len(&graph, id))))
                .collect();
            let inputs: Vec<TensorRef<'_>> =
                given.iter().map(|(dims, bytes)| TensorRef::new(dims, bytes).unwrap()).collect();
            for _ in 0..2 {
                let outputs = session.run(&inputs).unwrap();
                let found: Vec<Vec<u8>> = outputs.iter().map(|out| out.bytes().to_vec()).collect();
                assert_eq!(found, wanted, "{config:?}\n{}", describe(&graph));
            }
            compared += 1;
        }
        Ok(())
    })
    .budget_ms(4000);
    assert!(compared > 20, "only {compared} plans were run");
}

#[test]
fn a_size_that_is_open_is_refused() {
    let mut builder = GraphBuilder::new("open");
    let x = builder.input("x", Size::Fixed(Bytes(4)));
    let y = builder.computed("y", Size::Unknown);
    builder.op(lowtide::Op::new("f", "F", [x], [y]));
    builder.output(y);
    let graph = builder.finish().unwrap();
    let checked = check(&graph, plan(&graph, &PlanConfig::default()).unwrap().plan).unwrap();
    let mut program =
        Program { shapes: IndexVec::filled(2, [4].into()), ..program_of_none(&graph) };
    program.inputs = vec![x];
    let error = Session::new(program, checked, &SessionConfig::default()).unwrap_err();
    let wanted = "tensor `x` has no size and type that are known before the run";
    assert_eq!(error.to_string(), wanted);
}

fn program_of_none(graph: &Graph) -> Program {
    Program {
        graph: graph.clone(),
        calls: graph.ops().iter().map(|_| None).collect(),
        late: BTreeMap::new(),
        shapes: IndexVec::new(),
        weights: IndexVec::filled(graph.tensors().len(), None),
        inputs: Vec::new(),
        outputs: Vec::new(),
    }
}
