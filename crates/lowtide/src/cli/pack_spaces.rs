//! `lowtide pack --space`: a table and spaces to a space and an offset for each buffer.
//!
//! ~~~text
//! table, --space sram=256KiB --space dram ──> SpacesProblem ──pack_spaces──> fits: spaces, spill order      exit 0
//!                                                   │                        impossible, or not found       exit 1
//!                                                   └──────check_spaces────> with --check: right, or faults
//! ~~~
//! What is found is checked before it is told, as is each bound.

use super::args::PackArgs;
use super::pack::proof_in_words;
use super::{Answer, out, pack, pack_spaces_text, progress};
use anyhow::{Context, bail};
use lowtide::core::check::{check_bound, check_spaces};
use lowtide::core::{
    Bound, Bytes, Id, IndexVec, Problem, SpaceId, SpacesPlacement, SpacesProblem, Spill,
    SpillReason,
};
use lowtide::formats::{self, NamedSpace, SpaceRow, SpacesSummary, SpilledRow};
use lowtide::planner::{Budget, SpacesPackError, SpacesPacking, pack_spaces, placement_bound};
use pack_spaces_text::Names;
use std::collections::BTreeSet;

pub(super) fn run(args: &PackArgs) -> anyhow::Result<Answer> {
    let spaces: IndexVec<SpaceId, NamedSpace> = args.space.iter().cloned().collect();
    are_spaces(&spaces)?;
    let named = &pack::read(&args.problem)?;
    let file = args.problem.display().to_string();
    let problem = &named.in_spaces(&spaces).with_context(|| {
        format!("`{file}` is not a placement problem that can be placed into these spaces")
    })?;
    let task = Task { file, names: Names { named, spaces: &spaces }, problem };
    if args.check { task.judge(args) } else { task.solve(args) }
}

/// Names are given once, and only the last space may have no capacity: nothing would come into those behind it.
fn are_spaces(spaces: &IndexVec<SpaceId, NamedSpace>) -> anyhow::Result<()> {
    let mut names = BTreeSet::new();
    for (id, space) in spaces.iter_enumerated() {
        let name = &space.name;
        if !names.insert(name) {
            bail!("--space gives `{name}` twice");
        }
        if space.capacity.is_none() && id.index() + 1 < spaces.len() {
            bail!(
                "--space {name} has no capacity, and is not the last: nothing would come into the \
                 spaces behind it; wanted a capacity, as in {name}=256KiB"
            );
        }
    }
    Ok(())
}

struct Task<'a> {
    file: String,
    names: Names<'a>,
    problem: &'a SpacesProblem,
}

impl Task<'_> {
    fn solve(&self, args: &PackArgs) -> anyhow::Result<Answer> {
        let (packed, seconds) = progress::during(&format!("packing {}", self.file), || {
            let watch = progress::until(args.time_limit);
            pack_spaces(
                self.problem,
                Budget { steps: args.effort.effort().pack_steps(), watch: &watch },
            )
        });
        let summary = SpacesSummary { seconds, ..self.summary() };
        match packed {
            Ok(packing) => self.placed(args, &packing, summary),
            Err(error) => self.not_placed(args, &error, summary),
        }
    }

    fn placed(
        &self,
        args: &PackArgs,
        packing: &SpacesPacking,
        summary: SpacesSummary,
    ) -> anyhow::Result<Answer> {
        let placement = &packing.placement;
        if let Some(fault) = check_spaces(self.problem, placement).first() {
            bail!("the packer's placement is wrong: {}", self.names.fault(fault));
        }
        if let Some(path) = &args.output {
            let (named, spaces) = (self.names.named, self.names.spaces);
            out::write_file(path, |file| {
                formats::write_spaces_placement(named, spaces, placement, file)
            })?;
        }
        let mut spaces = Vec::with_capacity(packing.spaces.len());
        for (space, filled) in packing.spaces.iter_enumerated() {
            let row = self.row(self.problem.problem(), placement, space, &filled.bound)?;
            let is_first = space.index() == 0;
            spaces.push(SpaceRow { most_weight: is_first.then_some(packing.most_first), ..row });
        }
        let spilled = placement.spills.iter().map(|spill| self.spilled(spill)).collect();
        let steps = packing.steps;
        let summary = SpacesSummary { ok: true, spaces, spilled, steps, ..summary };
        print(args, &summary, "placed")?;
        Ok(Answer::Yes)
    }

    fn not_placed(
        &self,
        args: &PackArgs,
        error: &SpacesPackError,
        summary: SpacesSummary,
    ) -> anyhow::Result<Answer> {
        let why = self.names.why_not(error);
        if matches!(
            error,
            SpacesPackError::PinsClash { .. } | SpacesPackError::PinMisaligned { .. }
        ) {
            // As with one space: the table contradicts itself, whatever spaces there are.
            bail!("`{}` fixes offsets that cannot be kept: {why}", self.file);
        }
        let impossible = error.is_impossible();
        let verdict = if impossible { "impossible" } else { "not found" };
        let summary =
            SpacesSummary { impossible: Some(impossible), why: Some(why.clone()), ..summary };
        print(args, &summary, verdict)?;
        let rest = if impossible {
            "impossible"
        } else {
            "none was found within the effort, and none is excluded"
        };
        out::message(&format!("does not fit: {rest}: {why}"));
        Ok(Answer::No)
    }

    fn judge(&self, args: &PackArgs) -> anyhow::Result<Answer> {
        let given = self.names.named.placement_in_spaces(self.names.spaces);
        let placement = given.with_context(|| format!("`{}` cannot be judged", self.file))?;
        let (faults, seconds) = progress::during(&format!("checking {}", self.file), || {
            check_spaces(self.problem, &placement)
        });
        let faults: Vec<String> = faults.iter().map(|fault| self.names.fault(fault)).collect();
        let ok = faults.is_empty();
        // Without fixed offsets: those that are judged are no reason for a bound.
        let problem = &self.names.named.problem;
        let mut spaces = Vec::new();
        for space in self.names.spaces.ids() {
            let bound = placement_bound(&problem.part(&placement.items_in(space)));
            let row = self.row(problem, &placement, space, &bound)?;
            spaces.push(SpaceRow { proven: ok && row.proven, ..row });
        }
        let summary = SpacesSummary { ok, spaces, faults, seconds, ..self.summary() };
        print(args, &summary, if ok { "right" } else { "wrong" })?;
        Ok(if ok { Answer::Yes } else { Answer::No })
    }

    /// What is known before anything is placed.
    fn summary(&self) -> SpacesSummary {
        let buffers = self.problem.problem().items().len();
        SpacesSummary { problem: self.file.clone(), buffers, ..SpacesSummary::default() }
    }

    /// A space of a placement; its bound has to be shown.
    fn row(
        &self,
        problem: &Problem,
        placement: &SpacesPlacement,
        space: SpaceId,
        bound: &Bound,
    ) -> anyhow::Result<SpaceRow> {
        let items = placement.items_in(space);
        check_bound(&problem.part(&items), bound).context("the packer's bound is not shown")?;
        let used = placement.sizes[space];
        let NamedSpace { name, capacity } = &self.names.spaces[space];
        Ok(SpaceRow {
            name: name.clone(),
            capacity_bytes: capacity.map(|capacity| capacity.0),
            used_bytes: used.0,
            buffers: items.len(),
            lower_bound_bytes: bound.bytes.0,
            bound_proof: proof_in_words(self.names.named, &bound.proof),
            proven: used <= bound.bytes,
            weight: items.iter().map(|&item| self.problem.stays()[item].weight).sum(),
            most_weight: None,
        })
    }

    fn spilled(&self, spill: &Spill) -> SpilledRow {
        let (why, over) = match spill.why {
            SpillReason::TooLarge => ("too_large", None),
            SpillReason::Over { step, bytes } => ("over", Some((step, bytes))),
            _ => ("not_placed", None),
        };
        SpilledRow {
            id: self.names.id(spill.item).to_owned(),
            from: self.names.space(spill.from).to_owned(),
            why,
            time: over.map(|(step, _)| self.names.time(step)),
            over_bytes: over.map(|(_, Bytes(bytes))| bytes),
        }
    }
}

fn print(args: &PackArgs, summary: &SpacesSummary, verdict: &str) -> anyhow::Result<()> {
    if args.json {
        return out::print(&summary.to_json());
    }
    out::print(&pack_spaces_text::text(summary, verdict))
}
