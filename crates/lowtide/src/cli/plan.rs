//! `lowtide plan`.

use super::args::PlanArgs;
use super::{Answer, out, progress, text};
use anyhow::Context;
use lowtide::core::Bytes;
use lowtide::onnx::write_reordered;
use lowtide::planner::{lifetimes, plan_watched};
use lowtide::{LoadOptions, Loaded, Planned, formats, load, summary};
use std::iter;
use std::path::Path;

pub(super) fn run(args: &PlanArgs) -> anyhow::Result<Answer> {
    let config = args.time.config(&args.planner.config());
    let options = LoadOptions { machine: args.time.machine(), ..args.model.options()? };
    let path = &args.model.model;
    let targets =
        [&args.output, &args.events, &args.lifetimes, &args.problem, &args.graph, &args.onnx];
    let sources: Vec<&Path> =
        iter::once(path.as_path()).chain(args.time.times.as_deref()).collect();
    out::check_targets(&sources, &targets.map(Option::as_deref))?;
    let name = path.display().to_string();
    let (loaded, _) = progress::during(&format!("reading {name}"), || load(path, &options));
    let loaded = args.time.measured(loaded?)?;
    let warnings = loaded.weights.iter().flat_map(|report| &report.warnings);
    for text in warnings.chain(&loaded.contradictions) {
        out::message(&format!("warning: {text}"));
    }
    let (planned, seconds) = progress::during(&format!("planning {name}"), || {
        plan_watched(&loaded.graph, &config, &progress::until(args.planner.time_limit))
    });
    let planned = planned.context("the flags make no plan")?;
    write_files(args, &loaded, &planned)?;
    for flag in args.planner.unused().into_iter().chain(args.time.unused(&args.planner)) {
        out::message(&format!("warning: {flag} means nothing with this --order and --mode"));
    }
    if let Some(text) = args.time.warning(&loaded) {
        out::message(&format!("warning: {text}"));
    }
    let figures = summary(&name, &loaded, &planned, &config, seconds);
    let text = if args.json { figures.to_json() } else { text::plan(&loaded, &planned, &figures) };
    out::print(&text)?;
    Ok(within(args.capacity, Bytes(figures.arena_bytes), Bytes(figures.lower_bound_bytes)))
}

fn write_onnx(path: &Path, from: &Path, loaded: &Loaded, planned: &Planned) -> anyhow::Result<()> {
    let file =
        loaded.file.as_ref().context("--onnx writes ONNX models, and this is a graph file")?;
    let external = loaded.weights.as_ref().is_some_and(|report| report.external > Bytes::ZERO);
    if external && path.parent() != from.parent() {
        let text = "warning: this model has weights in other files, which have to lie beside it";
        out::message(text);
    }
    let order = planned.order.schedule().as_slice();
    out::write_file(path, |out| write_reordered(file, order, out))
}

/// Whether the arena fits the capacity, if one was given; says why not.
pub(super) fn within(capacity: Option<Bytes>, arena: Bytes, bound: Bytes) -> Answer {
    let Some(capacity) = capacity else { return Answer::Yes };
    if arena <= capacity {
        return Answer::Yes;
    }
    let why = if bound > capacity {
        format!("no order can do with less than {bound}")
    } else {
        format!("no smaller one was found, though none is excluded down to {bound}")
    };
    out::message(&format!(
        "over capacity: the arena takes {arena}, the capacity is {capacity}; {why}"
    ));
    Answer::No
}

fn write_files(args: &PlanArgs, loaded: &Loaded, planned: &Planned) -> anyhow::Result<()> {
    let graph = &loaded.graph;
    if let Some(path) = &args.output {
        out::write_file(path, |file| formats::write_plan(&planned.plan, file))?;
    }
    if let Some(path) = &args.events {
        out::write_file(path, |file| formats::write_events(graph, &planned.plan, file))?;
    }
    if let Some(path) = &args.lifetimes {
        let lives = lifetimes(graph, &planned.order);
        out::write_file(path, |file| {
            formats::write_lifetimes(graph, &planned.order, &lives, file)
        })?;
    }
    if let Some(path) = &args.problem {
        out::write_file(path, |file| {
            formats::write_plan_problem(Some(graph), &planned.plan, file)
        })?;
    }
    if let Some(path) = &args.onnx {
        write_onnx(path, &args.model.model, loaded, planned)?;
    }
    if let Some(path) = &args.graph {
        out::write_file(path, |file| formats::write_graph(graph, file))?;
    }
    Ok(())
}
