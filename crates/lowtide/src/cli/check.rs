//! `lowtide check`.

use super::args::CheckArgs;
use super::{Answer, out, progress};
use anyhow::Context;
use lowtide::formats::{self, CheckSummary};
use lowtide::{check, load};

pub(super) fn run(args: &CheckArgs) -> anyhow::Result<Answer> {
    let options = args.model.options()?;
    let model = args.model.model.display().to_string();
    let plan_name = args.plan.display().to_string();
    let (loaded, _) =
        progress::during(&format!("reading {model}"), || load(&args.model.model, &options));
    let loaded = loaded?;
    let bytes = out::read_file(&args.plan)?;
    let (plan, _) =
        progress::during(&format!("reading {plan_name}"), || formats::read_plan(&bytes));
    let plan = plan.with_context(|| format!("`{plan_name}` is not a plan that can be read"))?;
    let (arena, bound) = (plan.stats.arena_bytes, plan.order_bound.bytes);
    let (judged, seconds) =
        progress::during(&format!("checking {plan_name}"), || check(&loaded.graph, plan));
    let faults = judged.err();
    let answer = if faults.is_none() { Answer::Yes } else { Answer::No };
    let text = if args.json {
        let faults = faults.map_or_else(Vec::new, |faults| faults.0);
        let faults = faults.iter().map(ToString::to_string).collect();
        let summary = CheckSummary {
            model,
            plan: plan_name,
            ok: answer == Answer::Yes,
            arena_bytes: arena.0,
            lower_bound_bytes: bound.0,
            faults,
            seconds,
        };
        summary.to_json()
    } else {
        match faults {
            None => format!(
                "{plan_name}: right; arena {arena}, bounds verified: no order below {bound}\n"
            ),
            Some(faults) => format!("{plan_name}: {faults}\n"),
        }
    };
    out::print(&text)?;
    Ok(answer)
}
