//! Placement into several spaces: [`SpacesProblem`] in, [`SpacesPlacement`] out.
//!
//! ~~~text
//! items          a  b  c  d  e
//! space 0, 8 KiB    a  c  e            the fastest; too small for all, so what is worth most stays
//! space 1           b  d               b was spilled first: at step 4 space 0 was 3 KiB over
//! ~~~
//! Spaces stand in order of preference and may have a capacity each; names belong to the command line. An item
//! says what it is worth in a fast space, and may be bound to one. A fixed offset means something only in a fixed
//! space, so an item with a pin has to have one.

use crate::{BufferId, Bytes, Id, IndexVec, Item, Problem, SpaceId, Step};

/// So many spaces at most: memories of one machine.
pub const MAX_SPACES: usize = 64;

/// All weights together are at most this, so that sums of them do not overflow.
const MAX_WEIGHT: u64 = u64::MAX >> 1;

/// What an item wants of the spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// What it is worth in a fast space: the bytes that are moved to and from it, or how often it is accessed.
    pub weight: u64,
    /// The space in which it has to lie.
    pub space: Option<SpaceId>,
}

impl Stay {
    /// Any space, worth as much as it has bytes: each is written and read once.
    pub fn anywhere(item: &Item) -> Self {
        Self { weight: item.extent().0, space: None }
    }
}

/// Items, and the spaces into which they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpacesProblem {
    problem: Problem,
    capacities: IndexVec<SpaceId, Option<Bytes>>,
    stays: IndexVec<BufferId, Stay>,
}

/// Why items and spaces make no problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SpacesError {
    #[error("{found} spaces, wanted 1 to {MAX_SPACES}")]
    SpaceCount { found: usize },
    #[error("{found} stays for {wanted} items")]
    WrongLength { found: usize, wanted: usize },
    #[error("item {item} has to lie in {space}, there are {spaces} spaces")]
    UnknownSpace { item: BufferId, space: SpaceId, spaces: usize },
    #[error("item {item} has a fixed offset and no fixed space")]
    PinWithoutSpace { item: BufferId },
    #[error("with item {item} the weights add up to more than {limit}")]
    TooHeavy { item: BufferId, limit: u64 },
}

impl SpacesProblem {
    /// Checks that ids are in range and sums do not overflow. No capacity: unlimited.
    pub fn new(
        problem: Problem,
        capacities: IndexVec<SpaceId, Option<Bytes>>,
        stays: IndexVec<BufferId, Stay>,
    ) -> Result<Self, SpacesError> {
        let spaces = capacities.len();
        if spaces == 0 || spaces > MAX_SPACES {
            return Err(SpacesError::SpaceCount { found: spaces });
        }
        let (found, wanted) = (stays.len(), problem.items().len());
        if found != wanted {
            return Err(SpacesError::WrongLength { found, wanted });
        }
        let mut total = 0_u64;
        for (item, stay) in stays.iter_enumerated() {
            if let Some(space) = stay.space.filter(|space| space.index() >= spaces) {
                return Err(SpacesError::UnknownSpace { item, space, spaces });
            }
            if problem.items()[item].pin.is_some() && stay.space.is_none() {
                return Err(SpacesError::PinWithoutSpace { item });
            }
            let sum = total.checked_add(stay.weight).filter(|&sum| sum <= MAX_WEIGHT);
            total = sum.ok_or(SpacesError::TooHeavy { item, limit: MAX_WEIGHT })?;
        }
        Ok(Self { problem, capacities, stays })
    }

    /// The items.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The capacity of each space, the fastest first.
    pub fn capacities(&self) -> &IndexVec<SpaceId, Option<Bytes>> {
        &self.capacities
    }

    /// What each item wants.
    pub fn stays(&self) -> &IndexVec<BufferId, Stay> {
        &self.stays
    }

    /// Whether an item alone may lie in a space and fits into it.
    pub fn allows(&self, item: BufferId, space: SpaceId) -> bool {
        let is_wanted = self.stays[item].space.is_none_or(|wanted| wanted == space);
        let is_large = self.capacities[space].is_some_and(|capacity| self.need(item) > capacity);
        is_wanted && !is_large
    }

    /// The least space that takes this item alone.
    pub fn need(&self, item: BufferId) -> Bytes {
        let item = &self.problem.items()[item];
        item.pin.unwrap_or_default() + item.extent()
    }
}

/// Where each item of a problem of several spaces lies.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SpacesPlacement {
    /// The space of each item.
    pub spaces: IndexVec<BufferId, SpaceId>,
    /// Offset of each item's base in its space.
    pub offsets: IndexVec<BufferId, Bytes>,
    /// Size of the arena in each space: no item ends beyond it.
    pub sizes: IndexVec<SpaceId, Bytes>,
    /// What had to leave a space, in the order in which it left; one row a space that an item has left.
    pub spills: Vec<Spill>,
}

impl SpacesPlacement {
    /// The items of a space, by their ids.
    pub fn items_in(&self, space: SpaceId) -> Vec<BufferId> {
        let homes = self.spaces.iter_enumerated();
        homes.filter(|&(_, &home)| home == space).map(|(id, _)| id).collect()
    }
}

/// An item that left a space for a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spill {
    /// What left.
    pub item: BufferId,
    /// Which space.
    pub from: SpaceId,
    /// Why.
    pub why: SpillReason,
}

/// Why an item left a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpillReason {
    /// It alone is larger than the space.
    TooLarge,
    /// With what had left before it gone, the space was still too full while the item lives: the most at this
    /// step, by so many bytes.
    Over {
        /// When.
        step: Step,
        /// Bytes above the capacity.
        bytes: Bytes,
    },
    /// What is live would fit, but no placement of it within the capacity was found.
    NotPlaced,
}
