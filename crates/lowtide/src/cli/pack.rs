//! `lowtide pack`.

use super::args::PackArgs;
use super::{Answer, out, progress};
use anyhow::{Context, bail};
use lowtide::core::check::{PlacementFault, check_bound, check_placement};
use lowtide::core::{Bound, BufferId, Bytes, Problem, Step};
use lowtide::formats::{self, NamedProblem, PackSummary};
use lowtide::planner::{Budget, Packing, Witness, pack, placement_bound, witness};

pub(super) fn run(args: &PackArgs) -> anyhow::Result<Answer> {
    let name = args.problem.display().to_string();
    out::check_targets(&[&args.problem], &[args.output.as_deref()])?;
    let bytes = out::read_file(&args.problem)?;
    let named = formats::read_problem(&bytes)
        .with_context(|| format!("`{name}` is not a placement problem that can be read"))?;
    let bound = placement_bound(&named.problem);
    let start = Figures { name: &name, named: &named, bound };
    if args.check { start.judge(args) } else { start.solve(args) }
}

/// So many buffers are named in a message.
const MOST_NAMED: usize = 20;

struct Figures<'a> {
    name: &'a str,
    named: &'a NamedProblem,
    bound: Bound,
}

impl Figures<'_> {
    fn solve(&self, args: &PackArgs) -> anyhow::Result<Answer> {
        let problem =
            &self.named.pinned().with_context(|| format!("`{}` is no problem", self.name))?;
        let steps = args.effort.steps();
        let (packing, seconds) =
            progress::during(&format!("packing {}", self.name), || pack(problem, steps));
        let faults = check_placement(problem, &packing.placement);
        if let Some(fault) = faults.first() {
            // Only fixed offsets can clash; whatever else were wrong would be our own fault.
            bail!("`{}` fixes offsets that cannot be kept: {}", self.name, self.words(fault));
        }
        check_bound(problem, &packing.bound).context("the packer's bound is not shown")?;
        if let Some(path) = &args.output {
            let placement = &packing.placement;
            out::write_file(path, |file| formats::write_placement(self.named, placement, file))?;
        }
        let Packing { placement, rule, bound, .. } = packing;
        let (rule, arena) = (format!("placed by {rule}"), placement.size);
        let proven = Figures { name: self.name, named: self.named, bound };
        print(args, &proven.summary(args, arena, Vec::new(), seconds), &rule)?;
        Ok(proven.within(args, problem, arena))
    }

    /// Whether the arena fits the capacity, if one was given; says why not.
    fn within(&self, args: &PackArgs, problem: &Problem, arena: Bytes) -> Answer {
        let Some(capacity) = args.capacity.filter(|&capacity| arena > capacity) else {
            return Answer::Yes;
        };
        let why = if self.bound.bytes > capacity {
            let bound = &self.bound;
            let why = self.why_not(problem, capacity, args.effort.steps());
            format!(
                "impossible: no placement takes less than {} ({}){why}",
                bound.bytes, bound.proof
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
    fn why_not(&self, problem: &Problem, capacity: Bytes, steps: u64) -> String {
        let Some(Witness { items, is_smallest }) = witness(problem, capacity, Budget::of(steps))
        else {
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
        match *fault {
            PlacementFault::Overlap { first, second, byte, step } => {
                let (first, second) = (self.id(first), self.id(second));
                let time = self.named.times[Step(step).index()];
                format!("`{first}` and `{second}` both take byte {byte} at time {time}")
            }
            PlacementFault::Misaligned { item, offset, align } => {
                format!("`{}` lies at {offset}, wanted a multiple of {align}", self.id(item))
            }
            PlacementFault::Outside { item, end, size } => {
                format!("`{}` ends at {end}, the arena has {size} bytes", self.id(item))
            }
            PlacementFault::OffPin { item, found, wanted } => {
                format!("`{}` lies at {found}, wanted its fixed offset {wanted}", self.id(item))
            }
            _ => fault.to_string(),
        }
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
            buffers: self.named.problem.items().len(),
            lower_bound_bytes: self.bound.bytes.0,
            bound_proof: self.bound.proof.to_string(),
            arena_bytes: arena.0,
            proven: faults.is_empty() && arena <= self.bound.bytes,
            faults,
            seconds,
        }
    }
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
    lines.extend(summary.faults.iter().map(|fault| format!("  fault: {fault}")));
    out::print(&(lines.join("\n") + "\n"))
}
