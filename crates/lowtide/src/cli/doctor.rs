//! `lowtide doctor`.
//!
//! ~~~text
//! model, plan ──check──> faults                        ┐
//! model, plan, arrays ──diagnose, beside safe mode──> ─┴─> the first tensor that differs, the pair to blame
//! ~~~
//! The plan may be wrong in any way; only one whose tables mean nothing cannot be followed.

use super::args::DoctorArgs;
use super::given::{self, Given};
use super::{Answer, doctor_text, out, progress};
use anyhow::Context;
use lowtide::core::Interval;
use lowtide::formats::{DifferenceRow, DoctorSummary, FindingRow, StayRow, UseRow};
use lowtide::runtime::{Difference, Finding, Stay, Use, diagnose, input_specs};
use lowtide::{Plan, TensorRef, check, safe_plan};

pub(super) fn run(args: &DoctorArgs) -> anyhow::Result<Answer> {
    let Given { arrays, options, loaded, name } = given::read(&args.model, &args.given)?;
    let config = args.planner.config();
    let plan =
        given::plan(args.plan.as_deref(), (&config, args.planner.time_limit), &loaded, &name)?;
    let faults = faults(&loaded.graph, &plan);
    let program = given::program(&args.given, &loaded, &options);
    let program = program.with_context(|| format!("`{name}` cannot be run"))?;
    let inputs = given::inputs(&args.given, &input_specs(&program)?, arrays)?;
    let inputs: Vec<TensorRef<'_>> = inputs.iter().map(given::as_tensor).collect();
    let safe = safe_plan(&loaded.graph, &plan).context(given::OUR_FAULT)?;
    let examine = || diagnose(program, &safe, &plan, &inputs);
    let (diagnosis, _) = progress::during(&format!("examining {name}"), examine);
    let diagnosis = diagnosis.with_context(|| match &args.plan {
        Some(path) => format!("`{}` cannot be followed", path.display()),
        None => format!("`{name}` cannot be examined"),
    })?;
    let summary = DoctorSummary {
        model: name,
        plan: args.plan.as_ref().map(|path| path.display().to_string()),
        ok: diagnosis.finding.is_none() && faults.is_empty(),
        steps: plan.schedule.len(),
        runs: diagnosis.runs,
        compared: diagnosis.compared,
        finding: diagnosis.finding.as_ref().map(finding),
        faults,
    };
    let text = if args.json { summary.to_json() } else { doctor_text::text(&summary) };
    out::print(&text)?;
    Ok(if summary.ok { Answer::Yes } else { Answer::No })
}

/// What the checker says of a plan.
fn faults(graph: &lowtide::Graph, plan: &Plan) -> Vec<String> {
    let faults = check(graph, plan.clone()).map_or_else(|faults| faults.0, |_| Vec::new());
    faults.iter().map(ToString::to_string).collect()
}

fn finding(finding: &Finding) -> FindingRow {
    FindingRow {
        tensor: finding.tensor.clone(),
        operand: finding.operand.clone(),
        seen: finding.seen.as_ref().map(use_row),
        cause: finding.cause.name().to_owned(),
        why: doctor_text::why(finding),
        difference: finding.difference.as_ref().map(difference),
        victim: finding.victim.as_ref().map(stay),
        culprit: finding.culprit.as_ref().map(stay),
        writer: finding.writer.as_ref().map(use_row),
    }
}

fn difference(difference: &Difference) -> DifferenceRow {
    DifferenceRow {
        element: difference.element,
        address: difference.address.map(|address| address.0),
        found: difference.found.clone(),
        wanted: difference.wanted.clone(),
        bytes: difference.bytes,
    }
}

fn use_row(row: &Use) -> UseRow {
    UseRow { step: row.step.map(|step| step.0), op: row.op.clone(), kind: row.kind.clone() }
}

fn stay(stay: &Stay) -> StayRow {
    let ends = |span: Interval| [span.start.0, span.end.0];
    StayRow {
        residence: stay.residence.raw(),
        name: stay.name.clone(),
        buffer: stay.buffer.raw(),
        start: stay.start.0,
        end: stay.end.0,
        held: stay.held.map(ends),
        needed: stay.needed.map(ends),
        writers: stay.writers.iter().map(use_row).collect(),
        readers: stay.readers.iter().map(use_row).collect(),
        is_output: stay.is_output,
    }
}
