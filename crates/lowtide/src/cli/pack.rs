//! `lowtide pack`.

use super::args::PackArgs;
use super::{Answer, out, pack_spaces, progress};
use anyhow::{Context, bail};
use lowtide::core::check::{PlacementFault, check_bound, check_placement};
use lowtide::core::{Bound, BufferId, Bytes, Placement, Problem, Proof, Step};
use lowtide::formats::{self, MovedRow, NamedProblem, PackSummary};
use lowtide::planner::{
    Budget, Earlier, PackRequest, Packing, Stopped, Witness, pack_as_asked, placement_bound,
    witness,
};
use std::path::Path;

pub(super) fn run(args: &PackArgs) -> anyhow::Result<Answer> {
    out::check_targets(&[&args.problem], &[args.output.as_deref()])?;
    if !args.space.is_empty() {
        return pack_spaces::run(args);
    }
    let name = args.problem.display().to_string();
    let mut named = read_plain(&args.problem)?;
    named.reserve(&args.reserve).context("--reserve asks for too much")?;
    let bound = placement_bound(&named.problem);
    let start = Figures { name: &name, named: &named, bound };
    if args.check { start.judge(args) } else { start.solve(args) }
}

/// A problem of one space.
fn read_plain(path: &Path) -> anyhow::Result<NamedProblem> {
    let named = read(path)?;
    named.names_no_space().with_context(|| {
        format!("`{}` names spaces, which want to be given with --space", path.display())
    })?;
    Ok(named)
}

pub(super) fn read(path: &Path) -> anyhow::Result<NamedProblem> {
    let bytes = out::read_file(path)?;
    formats::read_problem(&bytes).with_context(|| {
        format!("`{}` is not a placement problem that can be read", path.display())
    })
}

/// So many buffers are named in a message.
pub(super) const MOST_NAMED: usize = 20;

struct Figures<'a> {
    name: &'a str,
    named: &'a NamedProblem,
    bound: Bound,
}

impl Figures<'_> {
    fn solve(&self, args: &PackArgs) -> anyhow::Result<Answer> {
        let problem =
            &self.named.pinned().with_context(|| format!("`{}` is no problem", self.name))?;
        let earlier = args.keep.as_deref().map(read_plain).transpose()?;
        let earlier = earlier.map(|earlier| self.named.offsets_of(&earlier));
        let (packing, seconds) = progress::during(&format!("packing {}", self.name), || {
            let watch = progress::until(args.time_limit);
            let budget = Budget { steps: args.effort.effort().pack_steps(), watch: &watch };
            let request = PackRequest { budget, goal: args.capacity, earlier: earlier.as_ref() };
            pack_as_asked(problem, request)
        });
        let faults = check_placement(problem, &packing.placement);
        if let Some(fault) = faults.first() {
            // Only fixed offsets can clash; whatever else were wrong would be our own fault.
            let what = if args.reserve.is_empty() { "fixes" } else { "and --reserve fix" };
            bail!("`{}` {what} offsets that cannot be kept: {}", self.name, self.words(fault));
        }
        check_bound(problem, &packing.bound).context("the packer's bound is not shown")?;
        if let Some(path) = &args.output {
            let placement = &packing.placement;
            out::write_file(path, |file| formats::write_placement(self.named, placement, file))?;
        }
        let Packing { placement, rule, bound, steps, stopped } = packing;
        let proven = Figures { name: self.name, named: self.named, bound };
        let summary = PackSummary {
            stopped: Some(name_of(stopped)),
            steps,
            moved: earlier.map(|earlier| self.moved(&earlier, &placement)),
            ..proven.summary(args, placement.size, Vec::new(), seconds)
        };
        print(args, &summary, &format!("placed by {rule}"))?;
        Ok(proven.within(args, problem, placement.size))
    }

    /// Buffers that lie elsewhere than before.
    fn moved(&self, earlier: &Earlier, placement: &Placement) -> Vec<MovedRow> {
        let rows = earlier.iter_enumerated().filter_map(|(id, &from)| {
            let (from, to) = (from?.0, placement.offsets[id].0);
            (from != to).then(|| MovedRow { id: self.id(id).to_owned(), from, to })
        });
        rows.collect()
    }

    /// Whether the arena fits the capacity, if one was given; says why not.
    fn within(&self, args: &PackArgs, problem: &Problem, arena: Bytes) -> Answer {
        let Some(capacity) = args.capacity.filter(|&capacity| arena > capacity) else {
            return Answer::Yes;
        };
        let why = if self.bound.bytes > capacity {
            let bound = &self.bound;
            let why = self.why_not(args, problem, capacity);
            format!(
                "impossible: no placement takes less than {} ({}){why}",
                bound.bytes,
                proof_in_words(self.named, &bound.proof)
            )
        } else if args.check {
            "other offsets may fit".to_owned()
        } else {
            "none was found within the effort, and none is excluded".to_owned()
        };
        let text =
            format!("over capacity: the arena takes {arena}, the capacity is {capacity}; {why}");
        out::message(&text);
        Answer::No
    }

    /// The buffers that cannot be placed together within a capacity, if they are found.
    fn why_not(&self, args: &PackArgs, problem: &Problem, capacity: Bytes) -> String {
        let watch = progress::until(args.time_limit);
        let budget = Budget { steps: args.effort.effort().pack_steps(), watch: &watch };
        let Some(Witness { items, is_smallest }) = witness(problem, capacity, budget) else {
            return String::new();
        };
        if let [item] = items[..] {
            return format!("; `{}` alone takes more", self.id(item));
        }
        let named = items.iter().take(MOST_NAMED).map(|&item| format!("`{}`", self.id(item)));
        let named = named.collect::<Vec<_>>().join(", ");
        let more = items.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let rest = if is_smallest { "; with any one of them left out, these fit" } else { "" };
        let count = items.len();
        format!(";\n  {count} buffers cannot be placed together within it: {named}{more}{rest}")
    }

    fn judge(&self, args: &PackArgs) -> anyhow::Result<Answer> {
        let placement =
            self.named.placement().with_context(|| format!("`{}` cannot be judged", self.name))?;
        let (faults, seconds) = progress::during(&format!("checking {}", self.name), || {
            check_placement(&self.named.problem, &placement)
        });
        let verdict = if faults.is_empty() { "right" } else { "wrong" };
        let words = faults.iter().map(|fault| self.words(fault)).collect();
        print(args, &self.summary(args, placement.size, words, seconds), verdict)?;
        Ok(if faults.is_empty() {
            self.within(args, &self.named.problem, placement.size)
        } else {
            Answer::No
        })
    }

    fn words(&self, fault: &PlacementFault) -> String {
        fault_in_words(self.named, fault)
    }

    fn id(&self, item: BufferId) -> &str {
        &self.named.ids[item]
    }

    fn summary(
        &self,
        args: &PackArgs,
        arena: Bytes,
        faults: Vec<String>,
        seconds: f64,
    ) -> PackSummary {
        PackSummary {
            problem: self.name.to_owned(),
            ok: faults.is_empty() && args.capacity.is_none_or(|capacity| arena <= capacity),
            buffers: self.named.problem.items().len() - args.reserve.len(),
            lower_bound_bytes: self.bound.bytes.0,
            bound_proof: proof_in_words(self.named, &self.bound.proof),
            arena_bytes: arena.0,
            proven: faults.is_empty() && arena <= self.bound.bytes,
            stopped: None,
            steps: 0,
            moved: None,
            faults,
            seconds,
        }
    }
}

/// A fault with the names and times of its table.
pub(super) fn fault_in_words(named: &NamedProblem, fault: &PlacementFault) -> String {
    let id = |item: BufferId| &named.ids[item];
    match *fault {
        PlacementFault::Overlap { first, second, byte, step } => {
            let (first, second) = (id(first), id(second));
            let time = time_of(named, Step(step));
            format!("`{first}` and `{second}` both take byte {byte} at time {time}")
        }
        PlacementFault::Misaligned { item, offset, align } => {
            format!("`{}` lies at {offset}, wanted a multiple of {align}", id(item))
        }
        PlacementFault::Outside { item, end, size } => {
            format!("`{}` ends at {end}, the arena has {size} bytes", id(item))
        }
        PlacementFault::OffPin { item, found, wanted } => {
            format!("`{}` lies at {found}, wanted its fixed offset {wanted}", id(item))
        }
        _ => fault.to_string(),
    }
}

/// The time of the table at which a step begins.
pub(super) fn time_of(named: &NamedProblem, step: Step) -> i64 {
    named.times.get(step.index()).copied().unwrap_or_default()
}

/// A proof with the times of its table.
pub(super) fn proof_in_words(named: &NamedProblem, proof: &Proof) -> String {
    match *proof {
        Proof::LiveSum(step) => format!("live at time {}", time_of(named, step)),
        Proof::Stacked { step, align } => {
            format!("live at time {}, stacked at multiples of {align}", time_of(named, step))
        }
        _ => proof.to_string(),
    }
}

/// As in JSON.
fn name_of(stopped: Stopped) -> &'static str {
    match stopped {
        Stopped::AtBound => "at_bound",
        Stopped::AtGoal => "at_goal",
        Stopped::OutOfSteps => "out_of_steps",
        Stopped::Ended => "ended",
        Stopped::OutOfIdeas => "out_of_ideas",
    }
}

fn stopped_in_words(why: &str, steps: u64) -> String {
    let why = match why {
        "at_bound" => "at the bound",
        "at_goal" => "within the capacity",
        "out_of_steps" => "the effort is used up",
        "ended" => "the time is over",
        _ => "nothing was left to try",
    };
    format!("{why}, after {steps} steps")
}

fn moved_in_words(moved: &[MovedRow]) -> Vec<String> {
    let rows = moved.iter().take(MOST_NAMED);
    let rows = rows.map(|row| format!("    `{}` from {} to {}", row.id, row.from, row.to));
    let more = moved.len().saturating_sub(MOST_NAMED);
    let more = (more > 0).then(|| format!("    and {more} more"));
    let count = format!("  moved        {} of those that had a place", moved.len());
    std::iter::once(count).chain(rows).chain(more).collect()
}

fn print(args: &PackArgs, summary: &PackSummary, verdict: &str) -> anyhow::Result<()> {
    if args.json {
        return out::print(&summary.to_json());
    }
    let PackSummary { problem, buffers, arena_bytes, lower_bound_bytes, .. } = summary;
    let size = |bytes: u64| {
        let short = Bytes(bytes).to_string();
        if bytes < 1024 { short } else { format!("{short} ({bytes} B)") }
    };
    let mut lines = vec![format!("{problem}: {buffers} buffers, {verdict}")];
    if summary.faults.is_empty() {
        let optimal = if summary.proven { "optimal, proven" } else { "not proven optimal" };
        lines.push(format!("  arena        {}, {optimal}", size(*arena_bytes)));
        let bound = size(*lower_bound_bytes);
        lines.push(format!("  lower bound  {bound}, {}", summary.bound_proof));
    }
    lines.extend(
        summary
            .stopped
            .map(|why| format!("  stopped      {}", stopped_in_words(why, summary.steps))),
    );
    lines.extend(summary.moved.iter().flat_map(|moved| moved_in_words(moved)));
    lines.extend(summary.faults.iter().map(|fault| format!("  fault: {fault}")));
    out::print(&(lines.join("\n") + "\n"))
}
