//! What is known of buffers in several spaces, in words: ids to names, steps to times of the table.
//!
//! ~~~text
//! Over { step 7, 3 KiB }, item b4, space0  ──>  `conv3` from sram: at time 120 it was over by 3.00 KiB
//! ~~~

use super::pack::{MOST_NAMED, time_of};
use lowtide::core::check::{PlacementFault, SpacesFault};
use lowtide::core::{BufferId, Bytes, IndexVec, SpaceId, Step};
use lowtide::formats::{NamedProblem, NamedSpace, SpaceRow, SpacesSummary, SpilledRow};
use lowtide::planner::SpacesPackError;

/// What buffers, spaces and steps are called.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) named: &'a NamedProblem,
    pub(super) spaces: &'a IndexVec<SpaceId, NamedSpace>,
}

impl<'a> Names<'a> {
    pub(super) fn id(&self, item: BufferId) -> &'a str {
        &self.named.ids[item]
    }

    pub(super) fn space(&self, space: SpaceId) -> &'a str {
        &self.spaces[space].name
    }

    /// The time at which a step begins.
    pub(super) fn time(&self, step: Step) -> i64 {
        time_of(self.named, step)
    }

    /// Why there is no placement, without the verdict.
    pub(super) fn why_not(&self, error: &SpacesPackError) -> String {
        match *error {
            SpacesPackError::TooLarge { item, need, largest } => {
                let id = self.id(item);
                format!("`{id}` needs {need}, the largest space in which it may lie has {largest}")
            }
            SpacesPackError::SpaceTooSmall { space, need, capacity } => {
                let name = self.space(space);
                format!("what may lie only in {name} needs {need}, its capacity is {capacity}")
            }
            SpacesPackError::TooMuch { step, need, room } => {
                let time = self.time(step);
                format!(
                    "at time {time} {need} are live that may lie only in spaces of together {room}"
                )
            }
            SpacesPackError::PinsClash { first, second } => {
                let (first, second) = (self.id(first), self.id(second));
                format!("those of `{first}` and `{second}` clash")
            }
            SpacesPackError::PinMisaligned { item } => {
                format!("that of `{}` is no multiple of its alignment", self.id(item))
            }
            SpacesPackError::NotFound { item, need, space, capacity } => {
                let (id, name) = (self.id(item), self.space(space));
                format!(
                    "`{id}`, which needs {need}, found no place in {name}, the last one for it, with {capacity}"
                )
            }
            _ => error.to_string(),
        }
    }

    pub(super) fn fault(&self, fault: &SpacesFault) -> String {
        match fault {
            SpacesFault::OverCapacity { space, found, capacity } => {
                format!("{} takes {found} bytes, its capacity is {capacity}", self.space(*space))
            }
            SpacesFault::Placement { space, fault } => {
                format!("in {}: {}", self.space(*space), self.placement_fault(fault))
            }
            _ => fault.to_string(),
        }
    }

    fn placement_fault(&self, fault: &PlacementFault) -> String {
        super::pack::fault_in_words(self.named, fault)
    }
}

/// The summary as people read it.
pub(super) fn text(summary: &SpacesSummary, verdict: &str) -> String {
    let SpacesSummary { problem, buffers, spaces, spilled, faults, .. } = summary;
    let mut lines = vec![format!("{problem}: {buffers} buffers, {verdict}")];
    let width = spaces.iter().map(|space| space.name.chars().count()).max().unwrap_or(0);
    // Faults may be that sizes are wrong; what they would be says nothing then.
    if faults.is_empty() {
        lines.extend(spaces.iter().map(|space| space_line(space, width)));
    }
    if !spilled.is_empty() {
        lines.push(format!("  spilled, in this order: {}", spilled.len()));
        lines.extend(spilled.iter().take(MOST_NAMED).map(spilled_line));
        let more = spilled.len().saturating_sub(MOST_NAMED);
        lines.extend((more > 0).then(|| format!("    and {more} more")));
    }
    lines.extend(faults.iter().map(|fault| format!("  fault: {fault}")));
    lines.join("\n") + "\n"
}

fn space_line(space: &SpaceRow, width: usize) -> String {
    let SpaceRow { name, buffers, weight, bound_proof, .. } = space;
    let used = Bytes(space.used_bytes);
    let capacity = space.capacity_bytes.map(|capacity| format!(" of {}", Bytes(capacity)));
    let capacity = capacity.unwrap_or_default();
    let least = if space.proven { "the least, proven" } else { "not proven the least" };
    let bound = Bytes(space.lower_bound_bytes);
    let most = space.most_weight.map(|most| format!(" of at most {most}")).unwrap_or_default();
    format!(
        "  {name:width$}  {used}{capacity}, {least}; {buffers} buffers; lower bound {bound}, {bound_proof}; weight {weight}{most}"
    )
}

fn spilled_line(row: &SpilledRow) -> String {
    let SpilledRow { id, from, why, time, over_bytes } = row;
    let why = match (time, over_bytes) {
        (Some(time), &Some(bytes)) => format!("at time {time} it was over by {}", Bytes(bytes)),
        _ if *why == "too_large" => "the buffer alone is larger".to_owned(),
        _ => "there was room, but no placement was found".to_owned(),
    };
    format!("    `{id}` from {from}: {why}")
}
