//! [`check_placement`]: does a placement of a bare problem keep its items apart?
//!
//! A sweep over time keeps the bytes that are taken at the moment; a rectangle that comes looks whether its
//! bytes are free. Written apart from every packer, and unlike them.

use crate::{BufferId, Placement, Problem};
use std::collections::BTreeMap;

/// One fault of a placement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PlacementFault {
    #[error("{found} offsets for {wanted} items")]
    WrongLength { found: usize, wanted: usize },
    #[error("item {item} lies at {offset}, wanted a multiple of {align}")]
    Misaligned { item: BufferId, offset: u64, align: u64 },
    #[error("item {item} ends at {end}, the arena has {size} bytes")]
    Outside { item: BufferId, end: u64, size: u64 },
    #[error("item {item} lies at {found}, wanted its fixed offset {wanted}")]
    OffPin { item: BufferId, found: u64, wanted: u64 },
    #[error("items {first} and {second} both take byte {byte} at step {step}")]
    Overlap { first: BufferId, second: BufferId, byte: u64, step: u32 },
}

/// All faults of a placement; empty means that it is right. Cost: O(n log n) when it is.
pub fn check_placement(problem: &Problem, placement: &Placement) -> Vec<PlacementFault> {
    let (found, wanted) = (placement.offsets.len(), problem.items().len());
    if found != wanted {
        return vec![PlacementFault::WrongLength { found, wanted }];
    }
    let mut faults = Vec::new();
    for (id, item) in problem.items().iter_enumerated() {
        let offset = placement.offsets[id];
        if !offset.is_aligned(item.align) {
            let align = item.align.bytes().0;
            faults.push(PlacementFault::Misaligned { item: id, offset: offset.0, align });
        }
        let end = offset.checked_add(item.extent());
        if end.is_none_or(|end| end > placement.size) {
            let (end, size) = (end.map_or(u64::MAX, |end| end.0), placement.size.0);
            faults.push(PlacementFault::Outside { item: id, end, size });
        }
        if let Some(pin) = item.pin.filter(|&pin| pin != offset) {
            let (found, wanted) = (offset.0, pin.0);
            faults.push(PlacementFault::OffPin { item: id, found, wanted });
        }
    }
    if !faults.iter().any(|fault| matches!(fault, PlacementFault::Outside { .. })) {
        overlaps(problem, placement, &mut faults);
    }
    faults
}

fn overlaps(problem: &Problem, placement: &Placement, faults: &mut Vec<PlacementFault>) {
    // Ends before starts at the same step: touching lifetimes do not overlap.
    let mut moments = Vec::new();
    for (id, item) in problem.items().iter_enumerated() {
        for rect in item.rects() {
            if rect.takes_bytes() {
                let start = (placement.offsets[id] + rect.offset).0;
                moments.push((rect.span.start.0, true, start, start + rect.bytes.0, id));
                moments.push((rect.span.end.0, false, start, start + rect.bytes.0, id));
            }
        }
    }
    moments.sort_unstable();
    let mut taken: BTreeMap<(u64, BufferId), u64> = BTreeMap::new();
    for (step, comes, start, end, id) in moments {
        if !comes {
            taken.remove(&(start, id));
            continue;
        }
        let below = taken.range(..(start, id)).next_back().filter(|&(_, &top)| top > start);
        let above = taken.range((start, id)..).next().filter(|&(&(bottom, _), _)| bottom < end);
        if let Some((&(bottom, first), _)) = below.or(above) {
            let byte = bottom.max(start);
            faults.push(PlacementFault::Overlap { first, second: id, byte, step });
        }
        taken.insert((start, id), end);
    }
}
