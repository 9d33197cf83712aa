//! `lowtide pack`.

use super::args::PackArgs;
use super::{Answer, out, progress};
use anyhow::{Context, bail};
use lowtide::core::check::{PlacementFault, check_placement};
use lowtide::core::{BufferId, Bytes, Step};
use lowtide::formats::{self, NamedProblem, PackSummary};
use lowtide::planner::{live_bound, live_sums, pack};

pub(super) fn run(args: &PackArgs) -> anyhow::Result<Answer> {
    let name = args.problem.display().to_string();
    out::check_targets(&[&args.problem], &[args.output.as_deref()])?;
    let bytes = out::read_file(&args.problem)?;
    let named = formats::read_problem(&bytes)
        .with_context(|| format!("`{name}` is not a placement problem that can be read"))?;
    let bound = live_bound(&live_sums(&named.problem)).bytes;
    let start = Figures { name: &name, named: &named, bound };
    if args.check { start.judge(args) } else { start.solve(args) }
}

struct Figures<'a> {
    name: &'a str,
    named: &'a NamedProblem,
    bound: Bytes,
}

impl Figures<'_> {
    fn solve(&self, args: &PackArgs) -> anyhow::Result<Answer> {
        let problem =
            &self.named.pinned().with_context(|| format!("`{}` is no problem", self.name))?;
        let steps = args.effort.steps();
        let (packing, seconds) = progress::during(&format!("packing {}", self.name), || {
            pack(problem, self.bound, steps)
        });
        let faults = check_placement(problem, &packing.placement);
        if let Some(fault) = faults.first() {
            // Only fixed offsets can clash; whatever else were wrong would be our own fault.
            bail!("`{}` fixes offsets that cannot be kept: {}", self.name, self.words(fault));
        }
        if let Some(path) = &args.output {
            let placement = &packing.placement;
            out::write_file(path, |file| formats::write_placement(self.named, placement, file))?;
        }
        let rule = format!("placed by {}", packing.rule);
        let proven = Figures { bound: packing.bound, ..*self };
        print(args, &proven.summary(args, packing.placement.size, Vec::new(), seconds), &rule)?;
        Ok(proven.within(args, packing.placement.size))
    }

    /// Whether the arena fits the capacity, if one was given; says why not.
    fn within(&self, args: &PackArgs, arena: Bytes) -> Answer {
        let Some(capacity) = args.capacity.filter(|&capacity| arena > capacity) else {
            return Answer::Yes;
        };
        let why = if self.bound > capacity {
            format!("none is smaller than {}", self.bound)
        } else {
            "no smaller one was found, though none is excluded".to_owned()
        };
        let text =
            format!("over capacity: the arena takes {arena}, the capacity is {capacity}; {why}");
        out::message(&text);
        Answer::No
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
        Ok(if faults.is_empty() { self.within(args, placement.size) } else { Answer::No })
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
            lower_bound_bytes: self.bound.0,
            arena_bytes: arena.0,
            proven: faults.is_empty() && arena <= self.bound,
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
        lines.push(format!("  lower bound  {}", size(*lower_bound_bytes)));
    }
    lines.extend(summary.faults.iter().map(|fault| format!("  fault: {fault}")));
    out::print(&(lines.join("\n") + "\n"))
}
