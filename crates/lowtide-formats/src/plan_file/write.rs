//! The writer of plans. Everything streams: no column is built before it is written.

use super::{ALLOC, COMPACT, EXEC, FENCE, FORMAT, FREE, PLAN_VERSION};
use lowtide_core::{
    Bound, Event, Occupant, Plan, PlanStats, Proof, ResidenceId, Size, Space, SpaceKind,
};
use serde::ser::{Error, Serialize, SerializeStruct, Serializer};
use serde_json::ser::Formatter;
use std::io::{self, BufWriter, Write};

/// Writes a plan as a plan file.
pub fn write_plan(plan: &Plan, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, FieldLines::default());
    Document(plan).serialize(&mut serializer)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Compact JSON with each field of an object on a line of its own, except inside lists.
#[derive(Default)]
struct FieldLines {
    objects: usize,
    lists: usize,
}

impl Formatter for FieldLines {
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.objects += 1;
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.objects -= 1;
        out.write_all(b"}")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.lists += 1;
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.lists -= 1;
        out.write_all(b"]")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        if self.lists > 0 {
            return Ok(());
        }
        out.write_all(b"\n")?;
        (0..self.objects).try_for_each(|_| out.write_all(b" "))
    }
}

/// A list made row by row while it is written.
struct Column<'a, T, F> {
    rows: &'a [T],
    cell: F,
}

fn column<T, C: Serialize>(rows: &[T], cell: impl Fn(&T) -> C) -> impl Serialize {
    Column { rows, cell }
}

impl<T, C: Serialize, F: Fn(&T) -> C> Serialize for Column<'_, T, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows.iter().map(&self.cell))
    }
}

struct Document<'a>(&'a Plan);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let plan = self.0;
        let mut file = serializer.serialize_struct("plan", 17)?;
        file.serialize_field("format", FORMAT)?;
        file.serialize_field("version", &PLAN_VERSION)?;
        file.serialize_field("fingerprint", &plan.fingerprint.to_string())?;
        file.serialize_field("reuse", plan.reuse.name())?;
        file.serialize_field("inputs", plan.inputs.name())?;
        file.serialize_field("outputs", plan.outputs.name())?;
        file.serialize_field("align", &plan.align.bytes().0)?;
        file.serialize_field("order_rule", &plan.order_rule)?;
        file.serialize_field("stats", &Stats(&plan.stats))?;
        file.serialize_field("order_bound", &BoundRow(&plan.order_bound))?;
        file.serialize_field("placement_bound", &BoundRow(&plan.placement_bound))?;
        file.serialize_field("spaces", &column(plan.spaces.as_slice(), |&space| SpaceRow(space)))?;
        file.serialize_field("schedule", &column(plan.schedule.as_slice(), |op| op.raw()))?;
        file.serialize_field("bindings", &Bindings(plan))?;
        file.serialize_field("buffers", &Buffers(plan))?;
        file.serialize_field("residences", &Residences(plan))?;
        file.serialize_field("events", &column(&plan.events, |&event| EventCell(event)))?;
        file.end()
    }
}

struct Bindings<'a>(&'a Plan);

impl Serialize for Bindings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let runs = self.0.bindings.iter();
        serializer.collect_seq(runs.map(|run| column(run, |cell| cell.map(ResidenceId::raw))))
    }
}

struct Buffers<'a>(&'a Plan);

impl Serialize for Buffers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = self.0.buffers.as_slice();
        let mut table = serializer.serialize_struct("buffers", 5)?;
        table.serialize_field("space", &column(rows, |row| row.space.raw()))?;
        table.serialize_field("align", &column(rows, |row| row.align.bytes().0))?;
        table.serialize_field("offset", &column(rows, |row| row.offset.map(|bytes| bytes.0)))?;
        table.serialize_field("first_part", &column(rows, |row| row.parts.start.raw()))?;
        table.serialize_field("end_part", &column(rows, |row| row.parts.end.raw()))?;
        table.end()
    }
}

struct Residences<'a>(&'a Plan);

impl Serialize for Residences<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tensor = |what| match what {
            Occupant::Tensor(tensor) => Some(tensor.raw()),
            Occupant::Scratch(_) => None,
        };
        let scratch_of = |what| match what {
            Occupant::Scratch(run) => Some(run.raw()),
            Occupant::Tensor(_) => None,
        };
        let rows = self.0.residences.as_slice();
        let mut table = serializer.serialize_struct("residences", 7)?;
        table.serialize_field("tensor", &column(rows, |row| tensor(row.what)))?;
        table.serialize_field("scratch_of", &column(rows, |row| scratch_of(row.what)))?;
        table.serialize_field("buffer", &column(rows, |row| row.buffer.raw()))?;
        table.serialize_field("offset", &column(rows, |row| row.offset.0))?;
        table.serialize_field("size", &column(rows, |row| SizeCell::of(row.size)))?;
        table.serialize_field("start", &column(rows, |row| row.span.start.0))?;
        table.serialize_field("end", &column(rows, |row| row.span.end.0))?;
        table.end()
    }
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum SizeCell {
    Fixed(u64),
    AtMost { at_most: u64 },
    Unknown,
}

impl SizeCell {
    fn of(size: Size) -> Self {
        match size {
            Size::Fixed(bytes) => Self::Fixed(bytes.0),
            Size::AtMost(bytes) => Self::AtMost { at_most: bytes.0 },
            Size::Unknown => Self::Unknown,
        }
    }
}

struct SpaceRow(Space);

impl Serialize for SpaceRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_struct("space", 2)?;
        row.serialize_field("kind", space_name(self.0.kind))?;
        row.serialize_field("size", &self.0.size.0)?;
        row.end()
    }
}

/// The kind of a space, as files say it.
pub(crate) fn space_name(kind: SpaceKind) -> &'static str {
    match kind {
        SpaceKind::Arena => "arena",
        SpaceKind::Pool => "pool",
    }
}

struct EventCell(Event);

impl Serialize for EventCell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Event::Alloc(residence) => (ALLOC, residence.raw()).serialize(serializer),
            Event::Exec(run) => (EXEC, run.raw()).serialize(serializer),
            Event::Free(residence) => (FREE, residence.raw()).serialize(serializer),
            Event::Fence(run) => (FENCE, run.raw()).serialize(serializer),
            Event::Compact(run) => (COMPACT, run.raw()).serialize(serializer),
            other => Err(unspeakable(&format!("event {other:?}"))),
        }
    }
}

/// Core may learn an event or a proof before the plan file has a word for it.
fn unspeakable<E: Error>(what: &str) -> E {
    E::custom(format_args!("version {PLAN_VERSION} of the plan file has no word for {what}"))
}

struct BoundRow<'a>(&'a Bound);

impl Serialize for BoundRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_struct("bound", 2)?;
        row.serialize_field("bytes", &self.0.bytes.0)?;
        row.serialize_field("proof", &proof::<S::Error>(&self.0.proof)?)?;
        row.end()
    }
}

#[derive(serde::Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum ProofRow {
    Trivial,
    WorkingSet { op: u32 },
    Outputs,
    LiveSum { step: u32 },
    Stacked { step: u32, align: u64 },
    Items { buffers: Vec<u32> },
    Search,
}

fn proof<E: Error>(proof: &Proof) -> Result<ProofRow, E> {
    match proof {
        Proof::Trivial => Ok(ProofRow::Trivial),
        Proof::WorkingSet(op) => Ok(ProofRow::WorkingSet { op: op.raw() }),
        Proof::Outputs => Ok(ProofRow::Outputs),
        Proof::LiveSum(step) => Ok(ProofRow::LiveSum { step: step.0 }),
        Proof::Stacked { step, align } => {
            Ok(ProofRow::Stacked { step: step.0, align: align.bytes().0 })
        }
        Proof::Items(buffers) => {
            Ok(ProofRow::Items { buffers: buffers.iter().map(|id| id.raw()).collect() })
        }
        Proof::Search => Ok(ProofRow::Search),
        other => Err(unspeakable(&format!("proof {other:?}"))),
    }
}

struct Stats<'a>(&'a PlanStats);

impl Serialize for Stats<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stats = self.0;
        let mut row = serializer.serialize_struct("stats", 5)?;
        row.serialize_field("no_reuse_bytes", &stats.no_reuse_bytes.0)?;
        row.serialize_field("peak_live_bytes", &stats.peak_live_bytes.0)?;
        row.serialize_field("peak_step", &stats.peak_step.0)?;
        row.serialize_field("arena_bytes", &stats.arena_bytes.0)?;
        row.serialize_field("pool_tensors", &stats.pool_tensors)?;
        row.end()
    }
}
