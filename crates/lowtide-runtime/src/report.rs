//! Ids in, names and times out: who is to blame, written out as a [`Finding`].
//!
//! ~~~text
//! residence 3 ──> `a`, bytes 64..128, held in [2, 7), needed in [2, 10), readers: `Add` in step 9
//! ~~~
//! Cost: linear in the tensors of the graph, once.

use crate::blame::{Blame, Scene, Sight};
use crate::diagnosis::{Difference, Finding, Stay, Use};
use crate::marks::{Mark, Touch};
use lowtide_core::{Bytes, DType, Interval, Occupant, OpId, ResidenceId, TensorId};

impl Scene<'_> {
    pub(crate) fn written_out(&self, sight: &Sight, blame: Blame, mark: Option<Mark>) -> Finding {
        let writer = mark.and_then(|mark| match mark.touch {
            Touch::Wrote { run, .. } | Touch::Scratch { run, .. } => Some(run),
            _ => None,
        });
        let stay = |id: Option<ResidenceId>| id.map(|id| self.stay(id));
        Finding {
            seen: sight.run.map(|(run, _)| Use {
                step: Some(self.lives.step(sight.event)),
                ..self.use_of(self.plan.op(run))
            }),
            operand: sight.run.map_or("output".to_owned(), |(_, operand)| operand.to_string()),
            tensor: sight.tensor.map_or("scratch".to_owned(), |id| self.graph.tensor_label(id)),
            difference: None,
            victim: stay(blame.victim),
            culprit: stay(blame.culprit),
            writer: writer.map(|run| self.use_of(self.plan.op(run))),
            cause: blame.cause,
        }
    }

    pub(crate) fn use_of(&self, op: OpId) -> Use {
        Use {
            step: self.lives.step_of(op),
            op: self.graph.op_label(op),
            kind: self.graph.ops()[op].kind.to_string(),
        }
    }

    fn stay(&self, id: ResidenceId) -> Stay {
        let row = &self.plan.residences[id];
        let (writers, readers) = self.users(row.what);
        let name = match row.what {
            Occupant::Tensor(tensor) => self.graph.tensor_label(tensor),
            Occupant::Scratch(run) => {
                format!("scratch of {}", self.graph.op_label(self.plan.op(run)))
            }
        };
        let range = self.range(id).unwrap_or_default();
        let uses = |ops: Vec<OpId>| ops.into_iter().map(|op| self.use_of(op)).collect();
        Stay {
            residence: id,
            name,
            buffer: row.buffer,
            start: Bytes(range.start as u64),
            end: Bytes(range.end as u64),
            held: self.lives.held(id),
            needed: self.needed(id),
            writers: uses(writers),
            readers: uses(readers),
            is_output: matches!(row.what, Occupant::Tensor(tensor) if self.graph.holds_output(tensor)),
        }
    }

    /// Who writes into a storage and who reads it, each in the order of their steps.
    fn users(&self, what: Occupant) -> (Vec<OpId>, Vec<OpId>) {
        let root = match what {
            Occupant::Tensor(root) => root,
            Occupant::Scratch(run) => return (vec![self.plan.op(run)], Vec::new()),
        };
        let inside: Vec<TensorId> =
            self.graph.tensors().ids().filter(|&id| self.graph.storage(id) == root).collect();
        let is_content = |id: &&TensorId| self.graph.content(**id) == **id;
        let writers = inside.iter().filter(is_content).filter_map(|&id| self.graph.writer(id));
        let readers = inside.iter().flat_map(|&id| self.graph.readers(id).iter().copied());
        let sorted = |mut ops: Vec<OpId>| {
            ops.sort_by_key(|&op| (self.lives.step_of(op).is_none(), self.lives.step_of(op), op));
            ops.dedup();
            ops
        };
        (sorted(writers.collect()), sorted(readers.collect()))
    }

    /// From the first writer to the last reader, or to the end for an output.
    pub(crate) fn needed(&self, id: ResidenceId) -> Option<Interval> {
        let what = self.plan.residences[id].what;
        let (writers, readers) = self.users(what);
        let steps = writers.iter().chain(&readers).filter_map(|&op| self.lives.step_of(op));
        let start = steps.clone().min()?;
        let is_output = matches!(what, Occupant::Tensor(tensor) if self.graph.holds_output(tensor));
        let end = if is_output { self.lives.end() } else { steps.max()?.next() };
        Some(Interval::new(start, end))
    }
}

pub(crate) fn difference(
    dtype: Option<DType>,
    found: &[u8],
    wanted: &[u8],
    address: Option<usize>,
) -> Difference {
    let differs = |(at, (a, b)): (usize, (&u8, &u8))| (a != b).then_some(at);
    let mut differing = found.iter().zip(wanted).enumerate().filter_map(differs);
    let byte = differing.next().unwrap_or_default();
    let bits = dtype.and_then(DType::bits).unwrap_or(8);
    let width = usize::try_from(bits.div_ceil(8)).unwrap_or(1).max(1);
    let element = byte / width;
    let value = |bytes: &[u8]| {
        let bytes = bytes.get(element * width..(element + 1) * width).unwrap_or_default();
        text(dtype, bytes)
    };
    Difference {
        element,
        address: address.map(|address| Bytes(address as u64)),
        found: value(found),
        wanted: value(wanted),
        bytes: 1 + differing.count(),
    }
}

/// An element as people read it; as hexadecimal bytes where its type is no plain number.
fn text(dtype: Option<DType>, bytes: &[u8]) -> String {
    macro_rules! number {
        ($type:ty) => {
            bytes.try_into().ok().map(|bytes| <$type>::from_le_bytes(bytes).to_string())
        };
    }
    let number = match dtype {
        Some(DType::F32) => number!(f32),
        Some(DType::F64) => number!(f64),
        Some(DType::I8) => number!(i8),
        Some(DType::I16) => number!(i16),
        Some(DType::I32) => number!(i32),
        Some(DType::I64) => number!(i64),
        Some(DType::U16) => number!(u16),
        Some(DType::U32) => number!(u32),
        Some(DType::U64) => number!(u64),
        Some(DType::U8 | DType::Bool) => number!(u8),
        _ => None,
    };
    number.unwrap_or_else(|| {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("bytes {}", hex.join(" "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_that_differs_is_read_as_its_type() {
        let values = |values: [f32; 3]| values.map(f32::to_le_bytes).concat();
        let (found, wanted) = (values([1.0, 2.5, 0.0]), values([1.0, -2.5, 4.0]));
        let row = difference(Some(DType::F32), &found, &wanted, Some(71));
        assert_eq!((row.element, &*row.found, &*row.wanted), (1, "2.5", "-2.5"));
        assert_eq!((row.address, row.bytes), (Some(Bytes(71)), 3));
        let row = difference(Some(DType::F16), &[0, 0x3C], &[0, 0], None);
        assert_eq!((&*row.found, &*row.wanted), ("bytes 00 3c", "bytes 00 00"));
    }
}
