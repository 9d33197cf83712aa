//! `lowtide pack`.

use super::args::PackArgs;
use super::{Answer, out, progress};
use anyhow::{Context, bail};
use lowtide::core::check::{PlacementFault, check_placement};
use lowtide::core::{BufferId, Bytes, Step};
use lowtide::formats::{self, NamedProblem, PackSummary};
use lowtide::planner::{PlanConfig, live_bound, live_sums, pack};

pub(super) fn run(args: &PackArgs) -> anyhow::Result<Answer> {
    let name = args.problem.display().to_string();
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
        let problem = &self.named.pinned().with_context(|| format!("`{}` is no problem", self.name))?;
        let steps = PlanConfig::default().pack_steps;
        let (packing, seconds) = progress::during(&format!("packing {}", self.name), || {
            pack(problem, self.bound, steps)
        });
        let faults = check_placement(problem, &packing.placement);
        if let Some(fault) = faults.first() {
            // Only fixed offsets can clash; whatever else were wrong would be our own fault.
            bail!("`{}` fixes offsets that cannot be kept: {}", self.name, self.words(fault));
        }
        if let Some(path) = &args.output {
            let write = |file: &mut dyn std::io::Write| {
                formats::write_placement(self.named, &packing.placement, file)
            };
            out::write_file(path, write)?;
        }
        let rule = format!("rule {}", packing.rule);
        self.print(args, packing.placement.size, seconds, &[], &rule)?;
        Ok(Answer::Yes)
    }

    fn judge(&self, args: &PackArgs) -> anyhow::Result<Answer> {
        let placement =
            self.named.placement().with_context(|| format!("`{}` cannot be judged", self.name))?;
        let (faults, seconds) = progress::during(&format!("checking {}", self.name), || {
            check_placement(&self.named.problem, &placement)
        });
        let verdict = if faults.is_empty() { "right" } else { "wrong" };
        let words: Vec<String> = faults.iter().map(|fault| self.words(fault)).collect();
        self.print(args, placement.size, seconds, &words, verdict)?;
        Ok(if faults.is_empty() { Answer::Yes } else { Answer::No })
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

    fn print(
        &self,
        args: &PackArgs,
        arena: Bytes,
        seconds: f64,
        faults: &[String],
        verdict: &str,
    ) -> anyhow::Result<()> {
        let proven = faults.is_empty() && arena <= self.bound;
        let buffers = self.named.problem.items().len();
        if args.json {
            let summary = PackSummary {
                problem: self.name.to_owned(),
                buffers,
                lower_bound_bytes: self.bound.0,
                arena_bytes: arena.0,
                proven,
                faults: faults.to_vec(),
                seconds,
            };
            return out::print(&summary.to_json());
        }
        let optimal = if proven { "optimal" } else { "not proven optimal" };
        let mut text = format!(
            "{}: {buffers} buffers, {verdict}\n  arena        {} ({})\n  lower bound  {} ({}), {optimal}\n",
            self.name, arena, arena.0, self.bound, self.bound.0
        );
        for fault in faults {
            text += &format!("  fault: {fault}\n");
        }
        out::print(&text)
    }
}
