//! An oracle for the checker: plans in which tensors were moved onto and into each other at random are followed byte
//! by byte. What the checker lets pass finds at every read what a run without any reuse would find.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use arbitrary::Unstructured;
use lowtide_core::testing::{Limits, describe, graph, random_bytes, random_words};
use lowtide_core::{
    Align, Bound, Bytes, Event, Fault, Graph, IndexVec, Occupant, Plan, ResidenceId, Sharing,
    SpaceId, Step, TensorId, TensorKind, check,
};
use lowtide_planner::{PlanConfig, plan};

/// What the storage of each value holds, from its first byte on: the same where parts and pieces say so.
type Values = IndexVec<TensorId, Vec<u8>>;

fn size(graph: &Graph, tensor: TensorId) -> usize {
    usize::try_from(graph.tensors()[tensor].size.fixed().unwrap().0).unwrap()
}

fn start(graph: &Graph, tensor: TensorId) -> usize {
    usize::try_from(graph.extent(tensor).start.0).unwrap()
}

fn values(graph: &Graph) -> Values {
    let own = |id: TensorId| random_bytes(u64::from(id.raw()) + 1, size(graph, graph.storage(id)));
    let mut values: Values = graph.tensors().ids().map(own).collect::<Vec<_>>().into();
    for &op in graph.file_order().schedule() {
        for &sharing in &graph.ops()[op].sharing {
            let (from, to, skip, offset) = match sharing {
                Sharing::PartOf { input, output, offset } => (input, output, 0, offset),
                Sharing::PieceOf { output, of, offset } => (of, output, offset.0, Bytes::ZERO),
                _ => continue,
            };
            let extent = graph.extent(from);
            if !extent.is_exact || extent.bytes != graph.tensors()[from].size.fixed() {
                continue;
            }
            let first = start(graph, from) + usize::try_from(skip).unwrap();
            let len = size(graph, from).min(size(graph, to));
            let at = usize::try_from(offset.0).unwrap();
            let bytes = values[graph.content(from)][first..first + len].to_vec();
            values[to][at..at + len].copy_from_slice(&bytes);
        }
    }
    values
}

/// Follows the events; how many reads found something else.
fn wrong_reads(graph: &Graph, plan: &Plan) -> usize {
    let values = values(graph);
    let arena = plan.spaces[SpaceId::new(0)].size.0;
    let mut memory = vec![0; usize::try_from(arena).unwrap()];
    let mut homes = IndexVec::filled(graph.tensors().len(), None);
    let mut wrong = 0;
    let place = |tensor: TensorId, home: ResidenceId| {
        let base = usize::try_from(plan.address(home).unwrap().1.0).unwrap();
        let bytes = usize::try_from(graph.extent(tensor).bytes.unwrap().0).unwrap();
        let first = start(graph, tensor);
        (base + first..base + first + bytes, first..first + bytes)
    };
    for &event in &plan.events {
        let Event::Exec(run) = event else { continue };
        let op = &graph.ops()[plan.op(run)];
        let row = &plan.bindings[run];
        for (&input, home) in op.inputs.iter().zip(row) {
            let Some((at, within)) = home.map(|home| place(input, home)) else { continue };
            wrong += usize::from(memory[at] != values[graph.content(input)][within]);
        }
        for (&output, &home) in op.outputs.iter().zip(&row[op.inputs.len()..]) {
            let Some(bound) = home.filter(|_| graph.content(output) == output) else { continue };
            let (at, within) = place(output, bound);
            memory[at].copy_from_slice(&values[output][within]);
            homes[output] = home;
        }
    }
    for (id, tensor) in graph.tensors().iter_enumerated().filter(|(_, tensor)| tensor.is_output) {
        let Some(home) = homes[graph.content(id)].filter(|_| tensor.kind == TensorKind::Computed)
        else {
            continue;
        };
        let (at, within) = place(id, home);
        wrong += usize::from(memory[at] != values[graph.content(id)][within]);
    }
    wrong
}

/// Gives each storage a place of its own, then moves some to where they may lie; how many were moved.
fn move_about(graph: &Graph, plan: &mut Plan, words: &mut dyn Iterator<Item = u64>) -> usize {
    let mut end = 0;
    for id in plan.buffers.ids().collect::<Vec<_>>() {
        let buffer = &mut plan.buffers[id];
        buffer.offset = Some(Bytes(end));
        end += plan.residences[buffer.parts.start].size.bound().unwrap().0;
    }
    let home = |tensor: TensorId| {
        let root = Occupant::Tensor(graph.storage(tensor));
        let (_, row) = plan.residences.iter_enumerated().find(|(_, row)| row.what == root)?;
        Some(row.buffer)
    };
    let mut moves = Vec::new();
    for &sharing in graph.ops().iter().flat_map(|op| &op.sharing) {
        let (inner, outer, offset) = match sharing {
            Sharing::PartOf { input, output, offset } => (input, output, offset),
            Sharing::PieceOf { output, of, offset } => (output, of, offset),
            Sharing::MayOverwrite { output, of } => (output, of, Bytes::ZERO),
            _ => continue,
        };
        let distance = graph.extent(outer).start + offset;
        let back = graph.extent(inner).start;
        moves.extend(home(inner).zip(home(outer)).map(|ends| (words.next(), ends, distance, back)));
    }
    let (mut moved, mut largest) = (0, end);
    moves.sort_by_key(|&(word, ..)| word);
    for (_, (inner, outer), distance, back) in moves {
        let word = words.next().unwrap();
        let slip = if word.is_multiple_of(16) { 4 } else { 0 };
        let at = plan.buffers[outer].offset.unwrap().0 + distance.0 + slip;
        if word % 4 == 1 || at < back.0 {
            continue;
        }
        plan.buffers[inner].offset = Some(Bytes(at - back.0));
        let bytes = plan.residences[plan.buffers[inner].parts.start].size.bound().unwrap();
        largest = largest.max(at + bytes.0);
        moved += 1;
    }
    plan.spaces[SpaceId::new(0)].size = Bytes(largest);
    moved
}

/// The same plan with the statistics that the checker wants, and what else it says.
fn faults(graph: &Graph, plan: &mut Plan) -> Vec<Fault> {
    (plan.order_bound, plan.placement_bound) = (Bound::NONE, Bound::NONE);
    for fault in check(graph, plan.clone()).map_or_else(|faults| faults.0, |_| Vec::new()) {
        let Fault::WrongStatistic { name, wanted, .. } = fault else { continue };
        match name {
            "peak_live_bytes" => plan.stats.peak_live_bytes = Bytes(wanted),
            "peak_step" => plan.stats.peak_step = Step(u32::try_from(wanted).unwrap()),
            _ => plan.stats.arena_bytes = Bytes(wanted),
        }
    }
    check(graph, plan.clone()).map_or_else(|faults| faults.0, |_| Vec::new())
}

#[test]
fn what_the_checker_lets_pass_reads_the_right_bytes() {
    let limits = Limits { open_sizes: false, ..Limits::all(12) };
    // Every tensor begins in a buffer of its own.
    let config =
        PlanConfig { align: Align::ONE, in_place: false, parts: false, ..PlanConfig::default() };
    let (mut passed, mut shared, mut refused, mut found) = (0, 0, 0, 0);
    for seed in 0..4000 {
        let bytes = random_bytes(seed, 1 << 11);
        let Ok(graph) = graph(&mut Unstructured::new(&bytes), limits) else { continue };
        let mut plan = plan(&graph, &config).unwrap().plan;
        let moved = move_about(&graph, &mut plan, &mut random_words(seed));
        let faults = faults(&graph, &mut plan);
        let wrong = wrong_reads(&graph, &plan);
        if faults.is_empty() {
            assert_eq!(wrong, 0, "seed {seed}: {}{plan:#?}", describe(&graph));
            passed += 1;
            shared += usize::from(moved > 0);
        } else {
            refused += 1;
            found += usize::from(wrong > 0);
        }
    }
    // Both sides are met often, and most of what is refused is wrong indeed.
    assert!(passed > 500 && shared > 200 && refused > 500, "{passed} {shared} {refused} {found}");
    assert!(found > 300, "{passed} {shared} {refused} {found}");
}
