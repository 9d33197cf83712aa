//! `lowtide plan`.

use super::args::PlanArgs;
use super::{Answer, out, progress, text};
use anyhow::Context;
use lowtide::core::Step;
use lowtide::planner::lifetimes;
use lowtide::{Loaded, Planned, formats, load, plan, summary};

pub(super) fn run(args: &PlanArgs) -> anyhow::Result<Answer> {
    let config = args.config();
    let options = args.model.options()?;
    let path = &args.model.model;
    let name = path.display().to_string();
    let (loaded, _) = progress::during(&format!("reading {name}"), || load(path, &options));
    let loaded = loaded?;
    for text in &loaded.contradictions {
        out::message(&format!("warning: {text}"));
    }
    let (planned, seconds) =
        progress::during(&format!("planning {name}"), || plan(&loaded.graph, &config));
    let planned = planned.context("the flags make no plan")?;
    write_files(args, &loaded, &planned)?;
    let figures = summary(&name, &loaded, &planned, &config, seconds);
    let text = if args.json { figures.to_json() } else { text::plan(&loaded, &planned, &figures) };
    out::print(&text)?;
    Ok(Answer::Yes)
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
    debug_assert!(planned.plan.stats.peak_step <= Step::from_index(planned.plan.schedule.len()));
    Ok(())
}
