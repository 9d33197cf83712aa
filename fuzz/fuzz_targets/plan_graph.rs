//! Random graphs, planned, judged by the checker.
#![no_main]

use lowtide_core::testing::{Limits, graph};
use lowtide_planner::{PlanConfig, plan};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut choices = arbitrary::Unstructured::new(data);
    if let Ok(graph) = graph(&mut choices, Limits::all(32)) {
        let planned =
            plan(&graph, &PlanConfig::default()).expect("the default weights are weights");
        lowtide_core::check(&graph, planned.plan).expect("a plan is right");
    }
});
