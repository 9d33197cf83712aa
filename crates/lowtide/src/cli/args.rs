//! What can be typed.

use super::time::TimeArgs;
use clap::{Parser, Subcommand, ValueEnum};
use lowtide::core::{Align, Bytes, Owner, Reuse};
use lowtide::formats::NamedSpace;
use lowtide::onnx::ReadOptions;
use lowtide::planner::{ColourBy, Effort, OrderRule, PlanConfig, Preset, ScoreWeights};
use lowtide::{LoadOptions, ResolveConfig};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// Plans and runs computation graphs in the least memory.
///
/// Exit codes: 0 done; 1 ran, and the answer is no; 2 could not run.
#[derive(Debug, Parser)]
#[command(name = "lowtide", version, propagate_version = true)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Plan a model: choose an order, share and place its tensors, say how far from optimal that is.
    Plan(PlanArgs),
    /// Run a model by its plan, in one arena; show the time it takes, and the memory.
    Run(RunArgs),
    /// Judge a plan: replay it against its model. Exit code 1 if it has a fault.
    Check(CheckArgs),
    /// Hunt wrong reuse: follow a plan beside safe mode, name the first tensor that differs and who is to blame. Exit code
    /// 1 if one differs or the plan has a fault.
    Doctor(DoctorArgs),
    /// Show what a model consists of: operators with shapes, bytes, costs and lifetimes, and the totals.
    Inspect(InspectArgs),
    /// Solve a bare placement problem, or judge offsets made by others.
    Pack(PackArgs),
}

/// Which model, and what its open dimensions are.
#[derive(Debug, clap::Args)]
pub(super) struct ModelArgs {
    /// The model: .onnx, or .json / .json.gz in the neutral form (docs/graph-json.md); - is standard input.
    pub(super) model: PathBuf,
    /// Bind a named dimension, as in batch=8; may be repeated.
    #[arg(long, value_name = "NAME=N", value_parser = dim)]
    dim: Vec<(String, u64)>,
    /// Bound a named dimension from above, as in seq=512; may be repeated.
    #[arg(long, value_name = "NAME=N", value_parser = dim)]
    max_dim: Vec<(String, u64)>,
    /// Give an input its whole shape, as in image=1,3,224,224; may be repeated. Binds its named dimensions.
    #[arg(long, value_name = "INPUT=N,N,...", value_parser = shape)]
    shape: Vec<(String, Vec<u64>)>,
    /// Read the model's files into memory instead of mapping them: for files that may change underneath.
    #[arg(long)]
    no_mmap: bool,
}

impl ModelArgs {
    /// Whether `--shape` names this input.
    pub(super) fn gives_shape(&self, input: &str) -> bool {
        self.shape.iter().any(|(name, _)| name == input)
    }

    pub(super) fn options(&self) -> anyhow::Result<LoadOptions> {
        let dims = once("--dim", &self.dim)?;
        let max_dims = once("--max-dim", &self.max_dim)?;
        let shapes = once("--shape", &self.shape)?;
        let onnx = ReadOptions { mmap: !self.no_mmap, ..ReadOptions::default() };
        let resolve = ResolveConfig { dims, max_dims, shapes };
        Ok(LoadOptions { resolve, onnx, ..LoadOptions::default() })
    }
}

fn dim(text: &str) -> Result<(String, u64), String> {
    let wanted = "wanted NAME=N with a whole number N, as in batch=8";
    let (name, value) = text.split_once('=').ok_or(wanted)?;
    let value = value.trim().parse().map_err(|_| wanted)?;
    if name.trim().is_empty() {
        return Err(wanted.to_owned());
    }
    Ok((name.trim().to_owned(), value))
}

fn shape(text: &str) -> Result<(String, Vec<u64>), String> {
    let wanted = "wanted INPUT=N,N,... with whole numbers, as in image=1,3,224,224";
    // Names of inputs may hold anything; the shape is what stands behind the last sign.
    let (name, dims) = text.rsplit_once('=').ok_or(wanted)?;
    let numbers = dims.split(',').map(str::trim).filter(|dim| !dim.is_empty());
    let dims = numbers.map(|dim| dim.parse().map_err(|_| wanted.to_owned()));
    Ok((name.trim().to_owned(), dims.collect::<Result<_, String>>()?))
}

fn once<T: Clone + std::fmt::Debug>(
    flag: &str,
    pairs: &[(String, T)],
) -> anyhow::Result<BTreeMap<String, T>> {
    let mut map = BTreeMap::new();
    for (name, value) in pairs {
        if let Some(first) = map.insert(name.clone(), value.clone()) {
            anyhow::bail!("{flag} gives `{name}` twice: {first:?} and {value:?}");
        }
    }
    Ok(map)
}

#[derive(Debug, clap::Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    #[command(flatten)]
    pub(super) planner: PlannerArgs,
    #[command(flatten)]
    pub(super) time: TimeArgs,
    /// Answer no (exit code 1) if the arena is larger than this, as in 4MiB.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(super) capacity: Option<Bytes>,
    /// Write the plan (docs/plan-file.md).
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Write the event table as CSV (docs/csv.md).
    #[arg(long, value_name = "FILE")]
    pub(super) events: Option<PathBuf>,
    /// Write first and last use of every tensor as CSV (docs/csv.md).
    #[arg(long, value_name = "FILE")]
    pub(super) lifetimes: Option<PathBuf>,
    /// Write the placement problem of the plan's order in the MiniMalloc form, for `lowtide pack` and others (docs/csv.md).
    #[arg(long, value_name = "FILE")]
    pub(super) problem: Option<PathBuf>,
    /// Write the ONNX model with its operators in the planned order; all else stays as it was.
    #[arg(long, value_name = "FILE")]
    pub(super) onnx: Option<PathBuf>,
    /// Write the graph that was planned, with all names (docs/graph-json.md).
    #[arg(long, value_name = "FILE")]
    pub(super) graph: Option<PathBuf>,
    /// Print the figures as JSON (docs/json.md).
    #[arg(long)]
    pub(super) json: bool,
}

/// How a plan is made.
#[derive(Debug, clap::Args)]
pub(super) struct PlannerArgs {
    /// Which order of the operators.
    #[arg(long, value_enum, default_value_t)]
    order: OrderArg,
    /// What the model is run for: sets alpha and beta [default: inference].
    #[arg(long, value_enum)]
    preset: Option<PresetArg>,
    /// Weight of the bytes that an operator frees per second, in the score rule [default: 0.7].
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    alpha: Option<f64>,
    /// Weight of the distance to the end of the critical path, in the score rule [default: 0.3].
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    beta: Option<f64>,
    /// How memory is reused.
    #[arg(long, value_enum, default_value_t)]
    mode: ModeArg,
    /// In mode colour: whether buffers are coloured by their first or their last step [default: best].
    #[arg(long, value_enum)]
    colour_by: Option<ColourByArg>,
    /// Never write an output over an input.
    #[arg(long)]
    no_in_place: bool,
    /// Never write the parts of a concat straight into it, nor leave the pieces of a split where they are.
    #[arg(long)]
    no_parts: bool,
    /// Use bytes again only where data orders it, so that no worker waits for the sake of bytes; a larger arena. Not in
    /// mode colour.
    #[arg(long)]
    no_fences: bool,
    /// Where sizes are known only in the run: after so many operators blocks of the pool may be moved together; 0: never
    /// [default: 64].
    #[arg(long, value_name = "N")]
    compact_every: Option<u32>,
    /// Who owns the memory of the model's inputs.
    #[arg(long, alias = "input-memory", value_enum, default_value = "caller")]
    inputs: OwnerArg,
    /// Who owns the memory of the model's outputs.
    #[arg(long, alias = "output-memory", value_enum, default_value = "arena")]
    outputs: OwnerArg,
    /// Alignment of buffers in bytes: a power of two.
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = align)]
    align: Align,
    /// How long to look for a smaller arena, for each order that is tried.
    #[arg(long, value_enum, default_value_t)]
    effort: EffortArg,
    /// Look for smaller arenas no longer than so many seconds; what is found then depends on the machine.
    #[arg(long, value_name = "SECONDS", value_parser = time_limit)]
    pub(super) time_limit: Option<Duration>,
}

impl PlannerArgs {
    /// Whether the order is found, and not given by the file or one rule.
    pub(super) fn finds_order(&self) -> bool {
        matches!(self.order, OrderArg::Rules | OrderArg::Search)
    }

    /// Flags that were given and mean nothing beside the others.
    pub(super) fn unused(&self) -> Vec<&'static str> {
        let score = matches!(self.order, OrderArg::File);
        let colour = !matches!(self.mode, ModeArg::Colour);
        let flags = [
            ("--preset", score && self.preset.is_some()),
            ("--alpha", score && self.alpha.is_some()),
            ("--beta", score && self.beta.is_some()),
            ("--colour-by", colour && self.colour_by.is_some()),
        ];
        flags.iter().filter(|flag| flag.1).map(|flag| flag.0).collect()
    }

    pub(super) fn config(&self) -> PlanConfig {
        let preset = match self.preset.unwrap_or_default() {
            PresetArg::Inference => Preset::Inference,
            PresetArg::Training => Preset::Training,
            PresetArg::Dataflow => Preset::Dataflow,
        };
        let ScoreWeights { alpha, beta } = preset.weights();
        PlanConfig {
            order: match self.order {
                OrderArg::File => OrderRule::File,
                OrderArg::Score => OrderRule::Score,
                OrderArg::Rules => OrderRule::Rules,
                OrderArg::Search => OrderRule::Search,
            },
            score: ScoreWeights {
                alpha: self.alpha.unwrap_or(alpha),
                beta: self.beta.unwrap_or(beta),
            },
            reuse: match self.mode {
                ModeArg::Pack => Reuse::Pack,
                ModeArg::Colour => Reuse::Colour,
                ModeArg::Safe => Reuse::Safe,
            },
            colour_by: match self.colour_by.unwrap_or_default() {
                ColourByArg::Best => ColourBy::Best,
                ColourByArg::Start => ColourBy::Start,
                ColourByArg::End => ColourBy::End,
            },
            in_place: !self.no_in_place,
            inputs: self.inputs.into(),
            outputs: self.outputs.into(),
            align: self.align,
            parts: !self.no_parts,
            fences: !self.no_fences,
            compact_every: self.compact_every.unwrap_or(PlanConfig::default().compact_every),
            pack_steps: self.effort.effort().pack_steps(),
            order_steps: self.effort.effort().order_steps(),
            ..PlanConfig::default()
        }
    }
}

/// What says how a plan is made, and so nothing about a plan that is given.
const PLANNER_FLAGS: [&str; 15] = [
    "order",
    "mode",
    "alpha",
    "beta",
    "preset",
    "colour_by",
    "no_in_place",
    "no_fences",
    "compact_every",
    "no_parts",
    "inputs",
    "outputs",
    "align",
    "effort",
    "time_limit",
];

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that people type")]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    #[command(flatten)]
    pub(super) planner: PlannerArgs,
    /// Follow this plan, as `lowtide plan -o` wrote it, instead of making one.
    #[arg(long, value_name = "FILE", conflicts_with_all = PLANNER_FLAGS)]
    pub(super) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(super) given: GivenArgs,
    /// How many runs are timed.
    #[arg(long, value_name = "N", default_value = "1")]
    pub(super) repeat: NonZeroUsize,
    /// All threads; operators use inside what workers leave.
    #[arg(long, value_name = "N", default_value = "1", value_parser = threads)]
    pub(super) threads: NonZeroUsize,
    /// Operators that may run at once. Each takes a thread, so that there are at least as many.
    #[arg(long, value_name = "N", default_value = "1", value_parser = threads)]
    pub(super) workers: NonZeroUsize,
    /// Plan with red zones between blocks (a given plan keeps its holes), poison what is freed, and look for writes where
    /// nobody should.
    #[arg(long)]
    pub(super) guard: bool,
    /// Write what the last run did, as a trace that Perfetto and Chrome open (docs/trace.md).
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Do not run, and answer no (exit code 1), if the arena is larger than this, as in 4MiB.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(super) capacity: Option<Bytes>,
    /// The most that tensors may take at once whose size is known in the run only, as in 64MiB.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(super) pool_limit: Option<Bytes>,
    /// Write what the pool holds in the end into this file, as text for Prometheus.
    #[arg(long, value_name = "FILE")]
    pub(super) pool_metrics: Option<PathBuf>,
    /// Ask the system for huge pages.
    #[arg(long)]
    pub(super) huge_pages: bool,
    /// Show the time by type of operator.
    #[arg(long)]
    pub(super) profile: bool,
    /// Write each output as .npy into this folder.
    #[arg(long, value_name = "DIR")]
    pub(super) save_outputs: Option<PathBuf>,
    /// Print the figures as JSON (docs/json.md).
    #[arg(long)]
    pub(super) json: bool,
}

/// What a model is run on.
#[derive(Debug, clap::Args)]
pub(super) struct GivenArgs {
    /// Give an input its values, as in image=cat.npy; may be repeated. Its shape binds the input's open dimensions.
    #[arg(long, value_name = "INPUT=FILE", value_parser = input)]
    pub(super) input: Vec<(String, PathBuf)>,
    /// Random values for inputs that are not given, and for weights that the file leaves out. Dimensions that nobody has bound
    /// are 1.
    #[arg(long)]
    pub(super) random: bool,
    /// Which random values.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
}

#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    #[command(flatten)]
    pub(super) planner: PlannerArgs,
    /// Examine this plan, also one that `lowtide check` refuses, instead of making one.
    #[arg(long, value_name = "FILE", conflicts_with_all = PLANNER_FLAGS)]
    pub(super) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(super) given: GivenArgs,
    /// Print what was found as JSON (docs/json.md).
    #[arg(long)]
    pub(super) json: bool,
}

fn input(text: &str) -> Result<(String, PathBuf), String> {
    let wanted = "wanted INPUT=FILE, as in image=cat.npy";
    let (name, file) = text.split_once('=').ok_or(wanted)?;
    Ok((name.to_owned(), PathBuf::from(file)))
}

/// A number of threads that a machine could have.
pub(super) fn threads(text: &str) -> Result<NonZeroUsize, String> {
    const MOST: usize = 1024;
    let count = text.parse().ok().filter(|count: &NonZeroUsize| count.get() <= MOST);
    count.ok_or_else(|| format!("wanted a whole number from 1 to {MOST}"))
}

/// A number of bytes: 4096, 4KiB, 1.5MiB.
fn bytes(text: &str) -> Result<Bytes, String> {
    const UNITS: [(&str, u32); 7] =
        [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("PiB", 50), ("EiB", 60), ("B", 0)];
    let wanted = || format!("`{text}` is no number of bytes, as in 4096, 4KiB or 1.5MiB");
    let unit = UNITS.iter().find_map(|&(name, shift)| Some((text.strip_suffix(name)?, shift)));
    let (number, shift) = unit.unwrap_or((text, 0));
    if let Ok(whole) = number.trim().parse::<u64>() {
        return whole.checked_mul(1 << shift).map(Bytes).ok_or_else(wanted);
    }
    let part: f64 = number.trim().parse().map_err(|_| wanted())?;
    let value = part * 2_f64.powi(i32::try_from(shift).unwrap_or(0));
    if !(value >= 0.0 && value < 2_f64.powi(63)) {
        return Err(wanted());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let whole = value as u64;
    Ok(Bytes(whole))
}

/// Seconds, up to a year.
fn time_limit(text: &str) -> Result<Duration, String> {
    const MOST: f64 = 366.0 * 86_400.0;
    let seconds = text.parse().ok().filter(|seconds| (0.0..=MOST).contains(seconds));
    let wanted = || format!("wanted a number of seconds from 0 to {MOST}, as in 0.5");
    seconds.map(Duration::from_secs_f64).ok_or_else(wanted)
}

/// An offset and a number of bytes: 0:4KiB.
fn reserved(text: &str) -> Result<(Bytes, Bytes), String> {
    let wanted = "wanted OFFSET:BYTES, as in 0:4KiB";
    let (offset, count) = text.split_once(':').ok_or(wanted)?;
    let range = (bytes(offset)?, bytes(count)?);
    if range.1 == Bytes::ZERO { Err("wanted at least one byte".to_owned()) } else { Ok(range) }
}

/// A name, and how many bytes a space has: sram=256KiB, or dram.
fn space(text: &str) -> Result<NamedSpace, String> {
    let (name, capacity) =
        text.split_once('=').map_or((text, None), |(name, bytes)| (name, Some(bytes)));
    let name = name.trim();
    if name.is_empty() || name.contains(char::is_control) {
        return Err("wanted NAME or NAME=BYTES, as in sram=256KiB".to_owned());
    }
    let capacity = capacity.map(|text| bytes(text.trim())).transpose()?;
    Ok(NamedSpace { name: name.to_owned(), capacity })
}

fn align(text: &str) -> Result<Align, String> {
    let Bytes(bytes) = bytes(text)?;
    let most = Align::MAX.bytes().0;
    Align::new(bytes).ok_or_else(|| format!("{bytes} is not a power of two from 1 to {most}"))
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum OrderArg {
    /// The order of the file.
    File,
    /// A list rule: memory freed soon, and the critical path (see --alpha, --beta).
    Score,
    /// Many simple rules; the one with the smallest arena is kept.
    Rules,
    /// Simple rules, lower bounds, and a search that ends when they meet.
    #[default]
    Search,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum PresetArg {
    /// Memory first: alpha 0.7, beta 0.3.
    #[default]
    Inference,
    /// Throughput first: alpha 0.3, beta 0.7.
    Training,
    /// One graph driven for many rounds: as inference.
    Dataflow,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ModeArg {
    /// Each buffer gets an offset in one arena.
    #[default]
    Pack,
    /// Buffers of one colour share one block.
    Colour,
    /// Every tensor has its own memory.
    #[value(alias = "none")]
    Safe,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ColourByArg {
    /// Both ways, whichever takes fewer bytes.
    #[default]
    Best,
    /// By the first step: the fewest colours.
    Start,
    /// By the last step.
    End,
}

/// The same effort gives the same placement on every machine.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum EffortArg {
    /// Greedy rules, and a search of some milliseconds.
    Fast,
    /// A search of up to a second or two, where greedy rules do not meet the bound.
    #[default]
    Default,
    /// A search of a minute or so.
    Max,
}

impl EffortArg {
    pub(super) fn effort(self) -> Effort {
        match self {
            Self::Fast => Effort::Fast,
            Self::Default => Effort::Default,
            Self::Max => Effort::Max,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OwnerArg {
    /// The caller: they take no arena.
    Caller,
    /// The arena: they are copied in, or out.
    Arena,
}

impl From<OwnerArg> for Owner {
    fn from(arg: OwnerArg) -> Self {
        match arg {
            OwnerArg::Caller => Self::Caller,
            OwnerArg::Arena => Self::Arena,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    /// The plan, as `lowtide plan -o` writes it.
    pub(super) plan: PathBuf,
    /// Print the verdict as JSON (docs/json.md).
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct InspectArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    /// By what the operators are sorted, the largest first.
    #[arg(long, value_enum, default_value_t)]
    pub(super) sort: SortArg,
    /// Show only so many operators.
    #[arg(long, value_name = "N")]
    pub(super) top: Option<usize>,
    /// Print everything as JSON (docs/json.md).
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum SortArg {
    /// By their place in the file.
    #[default]
    Id,
    /// By their type.
    Type,
    /// By the bytes of their results.
    Bytes,
    /// By their multiplications.
    Macs,
    /// By all their calculations.
    Flops,
    /// By how long their results are needed.
    Life,
}

#[derive(Debug, clap::Args)]
pub(super) struct PackArgs {
    /// The problem in the MiniMalloc form (docs/csv.md).
    pub(super) problem: PathBuf,
    /// Answer no (exit code 1) if the arena is larger than this, as in 1MiB; as small is small enough.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(super) capacity: Option<Bytes>,
    /// How long to look for a smaller arena.
    #[arg(long, value_enum, default_value_t)]
    pub(super) effort: EffortArg,
    /// Look no longer than so many seconds; what is found then depends on the machine.
    #[arg(long, value_name = "SECONDS", value_parser = time_limit)]
    pub(super) time_limit: Option<Duration>,
    /// Leave buffers where this table has them, if the arena need not be larger for it, or keeps the capacity.
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub(super) keep: Option<PathBuf>,
    /// Bytes that no buffer may take, as in 0:4KiB: the first and how many. They are part of the arena. May be repeated.
    #[arg(long, value_name = "OFFSET:BYTES", value_parser = reserved, conflicts_with = "check")]
    pub(super) reserve: Vec<(Bytes, Bytes)>,
    /// Place into several spaces, as in sram=256KiB: a name and its capacity, the fastest first. Only the last may have no
    /// capacity. What is worth most stays in the fastest; the columns `space` and `weight` say more (docs/csv.md).
    #[arg(long, value_name = "NAME[=BYTES]", value_parser = space, conflicts_with_all = ["capacity", "keep", "reserve"])]
    pub(super) space: Vec<NamedSpace>,
    /// Judge the offsets of the file instead of finding some. Exit code 1 if they are wrong.
    #[arg(long, conflicts_with = "output")]
    pub(super) check: bool,
    /// Write the problem with its offsets (docs/csv.md).
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print the figures as JSON (docs/json.md).
    #[arg(long)]
    pub(super) json: bool,
}
