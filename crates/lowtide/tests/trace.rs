//! Traces of random graphs, planned, and run in time that is made up: one after the other, or side by side.
//!
//! ~~~text
//! graph ──plan──> Plan ──simulate──> Ran ──write_trace──> JSON, parsed: rows, counter, what is held in the end
//! ~~~
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use arbitrary::Unstructured;
use lowtide::core::testing::{Limits, graph};
use lowtide::core::{BufferId, IndexVec, Ran, ResidenceId, RunId, SpaceKind};
use lowtide::formats::{live_curve, write_trace};
use lowtide::{Bytes, Event, Graph, Plan, PlanConfig, plan};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Runs in the order of the plan, each on the worker that is free first, once its inputs are there.
fn simulate(graph: &Graph, plan: &Plan, workers: usize, u: &mut Unstructured<'_>) -> Vec<Ran> {
    let mut is_free_at = vec![Duration::ZERO; workers];
    let mut ready = IndexVec::filled(graph.tensors().len(), Duration::ZERO);
    let mut ran = Vec::new();
    for (run, &op) in plan.schedule.iter_enumerated() {
        let worker = (0..workers).min_by_key(|&at| is_free_at[at]).unwrap();
        let free = is_free_at[worker];
        let row = &graph.ops()[op];
        let start = row.inputs.iter().map(|&id| ready[id]).max().unwrap_or_default().max(free);
        let end = start + Duration::from_nanos(u.int_in_range(0..=5000).unwrap());
        for &output in &row.outputs {
            ready[output] = end;
        }
        is_free_at[worker] = end;
        let worker = u32::try_from(worker).unwrap();
        ran.push(Ran { run, worker, waited: start.saturating_sub(free), start, end });
    }
    ran
}

fn traced(graph: &Graph, plan: &Plan, ran: &[Ran]) -> Vec<Value> {
    let mut out = Vec::new();
    write_trace(graph, plan, ran, &mut out).unwrap();
    let trace: Value = serde_json::from_slice(&out).unwrap();
    trace["traceEvents"].as_array().unwrap().clone()
}

/// Nanoseconds of a field in microseconds.
fn nanos(event: &Value, field: &str) -> i64 {
    let micros = event[field].as_f64().unwrap();
    format!("{:.0}", micros * 1e3).parse().unwrap()
}

fn check_rows(events: &[Value], runs: usize) {
    let mut rows: BTreeMap<u64, Vec<(i64, i64)>> = BTreeMap::new();
    let mut steps = BTreeSet::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let start = nanos(event, "ts");
        let row = rows.entry(event["tid"].as_u64().unwrap()).or_default();
        row.push((start, start + nanos(event, "dur")));
        if event["name"] != "waits" {
            assert!(steps.insert(event["args"]["step"].as_u64().unwrap()), "twice");
        }
    }
    assert_eq!(steps.len(), runs);
    for row in rows.values_mut() {
        row.sort_unstable();
        assert!(row.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{row:?}");
    }
}

/// The counter after each moment.
fn counted(events: &[Value]) -> Vec<u64> {
    let counters = events.iter().filter(|event| event["ph"] == "C");
    counters.map(|event| event["args"]["bytes"].as_u64().unwrap()).collect()
}

/// Bytes in blocks that only what is never freed touches, each block of a buffer once.
fn never_freed(plan: &Plan) -> u64 {
    let mut kept: BTreeSet<ResidenceId> = plan.residences.ids().collect();
    for event in &plan.events {
        if let Event::Free(id) = event {
            kept.remove(id);
        }
    }
    let block = plan.align.bytes().0;
    let mut blocks: BTreeSet<(BufferId, u64)> = BTreeSet::new();
    for id in kept {
        let row = &plan.residences[id];
        let is_arena = plan.spaces[plan.buffers[row.buffer].space].kind == SpaceKind::Arena;
        let bytes = row.size.bound().unwrap_or_default();
        if is_arena && bytes > Bytes::ZERO {
            let end = (row.offset + bytes).0.div_ceil(block);
            blocks.extend((row.offset.0 / block..end).map(|at| (row.buffer, at)));
        }
    }
    blocks.len() as u64 * block
}

#[test]
fn whatever_runs_side_by_side_the_trace_is_sound() {
    arbtest::arbtest(|u| {
        let graph = graph(u, Limits::all(16))?;
        let plan = plan(&graph, &PlanConfig::default()).unwrap().plan;
        let workers = u.int_in_range(1..=4)?;
        let mut ran = simulate(&graph, &plan, workers, u);
        if u.ratio(1, 3)? {
            // What had nothing to do may be missing.
            ran.retain(|ran| ran.start < ran.end);
        }
        let events = traced(&graph, &plan, &ran);
        check_rows(&events, ran.len());
        let last = counted(&events).last().copied().unwrap_or(0);
        assert_eq!(last, if ran.is_empty() { 0 } else { never_freed(&plan) });
        Ok(())
    })
    .size_max(1 << 12)
    .budget_ms(2000);
}

#[test]
fn one_after_the_other_as_much_is_held_as_was_planned() {
    arbtest::arbtest(|u| {
        let graph = graph(u, Limits::all(16))?;
        let plan = plan(&graph, &PlanConfig::default()).unwrap().plan;
        let moment = |run: RunId, half: u64| Duration::from_nanos(10 * u64::from(run.raw()) + half);
        let ran = |run| {
            let (start, end) = (moment(run, 0), moment(run, 5));
            Ran { run, worker: 0, waited: Duration::ZERO, start, end }
        };
        let ran: Vec<Ran> = plan.schedule.ids().map(ran).collect();
        let held = counted(&traced(&graph, &plan, &ran)).into_iter().max().unwrap_or(0);
        let planned = live_curve(&plan).into_iter().max().unwrap_or_default();
        assert_eq!(held, planned.0);
        Ok(())
    })
    .size_max(1 << 12)
    .budget_ms(2000);
}
