//! The reader of plans.

use super::{ALLOC, COMPACT, EXEC, FENCE, FORMAT, FREE, MAX_FILE, PLAN_VERSION, PlanFileError};
use crate::column::{Cell, Column, Misfit, Scalar};
use crate::value::Value;
use lowtide_core::{
    Align, Bound, Buffer, BufferId, Bytes, Event, Fingerprint, IndexVec, Interval, Lists, Occupant,
    OpId, Owner, Plan, PlanStats, Proof, Residence, ResidenceId, Reuse, RunId, Size, Space,
    SpaceId, SpaceKind, Step, TensorId,
};
use serde::Deserialize;

/// Reads a plan file. What the plan means is judged by the checker, not here.
pub fn read_plan(bytes: &[u8]) -> Result<Plan, PlanFileError> {
    let found = Bytes(bytes.len() as u64);
    if found > MAX_FILE {
        return Err(PlanFileError::TooLong { found, limit: MAX_FILE });
    }
    // Another version may have other fields, so its number is looked at before anything else.
    let Header { format, version } = serde_json::from_slice(bytes)?;
    if format != Value::Text(FORMAT.into()) {
        return Err(PlanFileError::Format { found: format.to_string() });
    }
    if version != Value::Whole(PLAN_VERSION.into()) {
        let found = version.to_string();
        return Err(PlanFileError::Version { found, wanted: PLAN_VERSION });
    }
    plan(serde_json::from_slice(bytes)?)
}

#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    format: Value,
    #[serde(default)]
    version: Value,
}

#[derive(Deserialize)]
struct Document {
    fingerprint: Value,
    reuse: Value,
    inputs: Value,
    outputs: Value,
    align: Value,
    order_rule: String,
    stats: StatsRow,
    order_bound: BoundRow,
    placement_bound: BoundRow,
    spaces: Column<Space>,
    schedule: Column<OpId>,
    bindings: Column<Operands>,
    buffers: BufferColumns,
    residences: ResidenceColumns,
    events: Column<Event>,
}

fn plan(file: Document) -> Result<Plan, PlanFileError> {
    let mut bindings = Lists::new();
    for Operands(run) in file.bindings.rows("bindings")? {
        bindings.push(run);
    }
    Ok(Plan {
        fingerprint: Scalar::at("fingerprint", &file.fingerprint)?,
        reuse: Scalar::at("reuse", &file.reuse)?,
        inputs: Scalar::at("inputs", &file.inputs)?,
        outputs: Scalar::at("outputs", &file.outputs)?,
        align: Scalar::at("align", &file.align)?,
        order_rule: file.order_rule,
        schedule: file.schedule.rows("schedule")?.into(),
        bindings,
        spaces: file.spaces.rows("spaces")?.into(),
        buffers: buffers(file.buffers)?,
        residences: residences(file.residences)?,
        events: file.events.rows("events")?,
        order_bound: bound("order_bound", file.order_bound)?,
        placement_bound: bound("placement_bound", file.placement_bound)?,
        stats: stats(&file.stats)?,
    })
}

impl Scalar for Fingerprint {
    const WANTED: &'static str = "32 hexadecimal digits";

    fn of(value: &Value) -> Option<Self> {
        let Value::Text(text) = value else { return None };
        Self::parse(text)
    }
}

impl Scalar for Reuse {
    const WANTED: &'static str = "\"pack\", \"colour\" or \"none\"";

    fn of(value: &Value) -> Option<Self> {
        let Value::Text(text) = value else { return None };
        Self::ALL.into_iter().find(|reuse| reuse.name() == &**text)
    }
}

impl Scalar for Owner {
    const WANTED: &'static str = "\"caller\" or \"arena\"";

    fn of(value: &Value) -> Option<Self> {
        let Value::Text(text) = value else { return None };
        [Self::Caller, Self::Arena].into_iter().find(|memory| memory.name() == &**text)
    }
}

impl Scalar for Step {
    const WANTED: &'static str = u32::WANTED;

    fn of(value: &Value) -> Option<Self> {
        u32::of(value).map(Self)
    }
}

#[derive(Deserialize)]
pub(crate) struct SpaceRow {
    kind: Value,
    size: Value,
}

impl Cell for Space {
    type Raw = SpaceRow;

    fn read(row: SpaceRow, index: usize) -> Result<Self, Misfit> {
        let kind = SpaceKind::at(format!("[{index}].kind"), &row.kind)?;
        Ok(Self { kind, size: Bytes::at(format!("[{index}].size"), &row.size)? })
    }
}

impl Scalar for SpaceKind {
    const WANTED: &'static str = "\"arena\" or \"pool\"";

    fn of(value: &Value) -> Option<Self> {
        let Value::Text(text) = value else { return None };
        let mut kinds = [Self::Arena, Self::Pool].into_iter();
        kinds.find(|&kind| super::write::space_name(kind) == &**text)
    }
}

/// The residences of one run's operands.
struct Operands(Vec<Option<ResidenceId>>);

impl Cell for Operands {
    type Raw = Column<Option<ResidenceId>>;

    fn read(column: Self::Raw, index: usize) -> Result<Self, Misfit> {
        column.rows(&format!("[{index}]")).map(Self)
    }
}

impl Cell for Event {
    type Raw = (Value, Value);

    fn read((kind, id): Self::Raw, index: usize) -> Result<Self, Misfit> {
        let id = u32::of(&id).map_or_else(|| u32::at(format!("[{index}][1]"), &id), Ok)?;
        let name = if let Value::Text(name) = &kind { &**name } else { "" };
        match name {
            ALLOC => Ok(Self::Alloc(ResidenceId::new(id))),
            EXEC => Ok(Self::Exec(RunId::new(id))),
            FREE => Ok(Self::Free(ResidenceId::new(id))),
            FENCE => Ok(Self::Fence(RunId::new(id))),
            COMPACT => Ok(Self::Compact(RunId::new(id))),
            _ => Err(Misfit {
                place: format!("[{index}][0]"),
                found: kind.to_string(),
                wanted: "\"ALLOC\", \"FENCE\", \"EXEC\", \"FREE\" or \"COMPACT\"",
            }),
        }
    }
}

#[derive(Deserialize)]
struct BufferColumns {
    space: Column<SpaceId>,
    align: Column<Align>,
    offset: Column<Option<Bytes>>,
    first_part: Column<ResidenceId>,
    end_part: Column<ResidenceId>,
}

fn buffers(columns: BufferColumns) -> Result<IndexVec<BufferId, Buffer>, PlanFileError> {
    let mut table = Table::new("buffers");
    let space = table.column("space", columns.space)?;
    let align = table.column("align", columns.align)?;
    let offset = table.column("offset", columns.offset)?;
    let start = table.column("first_part", columns.first_part)?;
    let end = table.column("end_part", columns.end_part)?;
    let row = |index: usize| Buffer {
        space: space[index],
        align: align[index],
        parts: start[index]..end[index],
        offset: offset[index],
    };
    Ok((0..space.len()).map(row).collect())
}

#[derive(Deserialize)]
struct ResidenceColumns {
    tensor: Column<Option<TensorId>>,
    scratch_of: Column<Option<RunId>>,
    buffer: Column<BufferId>,
    offset: Column<Bytes>,
    size: Column<Size>,
    start: Column<Step>,
    end: Column<Step>,
}

fn residences(
    columns: ResidenceColumns,
) -> Result<IndexVec<ResidenceId, Residence>, PlanFileError> {
    let mut table = Table::new("residences");
    let tensor = table.column("tensor", columns.tensor)?;
    let scratch_of = table.column("scratch_of", columns.scratch_of)?;
    let buffer = table.column("buffer", columns.buffer)?;
    let offset = table.column("offset", columns.offset)?;
    let size = table.column("size", columns.size)?;
    let start = table.column("start", columns.start)?;
    let end = table.column("end", columns.end)?;
    let row = |index: usize| {
        Ok(Residence {
            what: occupant(tensor[index], scratch_of[index], index)?,
            buffer: buffer[index],
            offset: offset[index],
            size: size[index],
            span: Interval::new(start[index], end[index]),
        })
    };
    (0..tensor.len()).map(row).collect::<Result<Vec<_>, _>>().map(IndexVec::from)
}

fn occupant(
    tensor: Option<TensorId>,
    scratch_of: Option<RunId>,
    index: usize,
) -> Result<Occupant, PlanFileError> {
    let found = match (tensor, scratch_of) {
        (Some(tensor), None) => return Ok(Occupant::Tensor(tensor)),
        (None, Some(run)) => return Ok(Occupant::Scratch(run)),
        (None, None) => "neither the bytes of a tensor nor scratch",
        (Some(_), Some(_)) => "the bytes of a tensor and scratch",
    };
    let (place, found) = (format!("residences[{index}]"), found.to_owned());
    Err(PlanFileError::Value { place, found, wanted: "one of `tensor` and `scratch_of`" })
}

/// Columns of one length.
struct Table {
    name: &'static str,
    first: Option<(String, usize)>,
}

impl Table {
    fn new(name: &'static str) -> Self {
        Self { name, first: None }
    }

    fn column<T>(&mut self, name: &str, column: Column<T>) -> Result<Vec<T>, PlanFileError> {
        let name = format!("{}.{name}", self.name);
        let rows = column.rows(&name)?;
        let (other, wanted) = self.first.get_or_insert_with(|| (name.clone(), rows.len()));
        if rows.len() == *wanted {
            return Ok(rows);
        }
        let (other, wanted) = (other.clone(), *wanted);
        Err(PlanFileError::Length { column: name, found: rows.len(), other, wanted })
    }
}

#[derive(Deserialize)]
struct BoundRow {
    bytes: Value,
    proof: ProofRow,
}

#[derive(Deserialize)]
struct ProofRow {
    kind: Value,
    #[serde(default)]
    op: Value,
    #[serde(default)]
    step: Value,
    #[serde(default)]
    align: Value,
    #[serde(default)]
    buffers: Option<Column<BufferId>>,
}

fn bound(name: &str, row: BoundRow) -> Result<Bound, Misfit> {
    let bytes = Bytes::at(format!("{name}.bytes"), &row.bytes)?;
    Ok(Bound { bytes, proof: proof(&format!("{name}.proof"), row.proof)? })
}

fn proof(name: &str, row: ProofRow) -> Result<Proof, Misfit> {
    let step = || Step::at(format!("{name}.step"), &row.step);
    let kind = if let Value::Text(kind) = &row.kind { &**kind } else { "" };
    Ok(match (kind, row.buffers) {
        ("trivial", _) => Proof::Trivial,
        ("outputs", _) => Proof::Outputs,
        ("working_set", _) => Proof::WorkingSet(OpId::at(format!("{name}.op"), &row.op)?),
        ("live_sum", _) => Proof::LiveSum(step()?),
        ("stacked", _) => {
            Proof::Stacked { step: step()?, align: Align::at(format!("{name}.align"), &row.align)? }
        }
        ("items", Some(buffers)) => Proof::Items(buffers.rows(&format!("{name}.buffers"))?.into()),
        ("items", None) => {
            return Err(misfit(format!("{name}.buffers"), &Value::default(), "a list"));
        }
        ("search", _) => Proof::Search,
        _ => return Err(misfit(format!("{name}.kind"), &row.kind, PROOFS)),
    })
}

const PROOFS: &str =
    "\"trivial\", \"working_set\", \"outputs\", \"live_sum\", \"stacked\", \"items\" or \"search\"";

fn misfit(place: String, found: &Value, wanted: &'static str) -> Misfit {
    Misfit { place, found: found.to_string(), wanted }
}

#[derive(Deserialize)]
struct StatsRow {
    no_reuse_bytes: Value,
    peak_live_bytes: Value,
    peak_step: Value,
    arena_bytes: Value,
    pool_tensors: Value,
}

fn stats(row: &StatsRow) -> Result<PlanStats, Misfit> {
    let pool_tensors = u32::at("stats.pool_tensors", &row.pool_tensors)?;
    Ok(PlanStats {
        no_reuse_bytes: Scalar::at("stats.no_reuse_bytes", &row.no_reuse_bytes)?,
        peak_live_bytes: Scalar::at("stats.peak_live_bytes", &row.peak_live_bytes)?,
        peak_step: Scalar::at("stats.peak_step", &row.peak_step)?,
        arena_bytes: Scalar::at("stats.arena_bytes", &row.arena_bytes)?,
        pool_tensors: pool_tensors as usize,
    })
}
