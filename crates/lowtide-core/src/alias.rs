//! Which tensors lie in the same memory, and which mutations have to wait for which readers.
//!
//! Views and mutations make a forest: each tensor hangs from the one whose bytes it takes.
//!
//! ~~~text
//!        x [0,64)                 root: x owns the storage
//!       /        \                
//!  view v [0,32)  view u [32,64)  u is not touched by m
//!      |                          
//!  m: v' [0,32) mutates v         m waits for the other readers of v and x: their bytes change under them
//!      |                          
//!  view z [0,32)                  z hangs from v', so it sees the new bytes
//! ~~~
//!
//! A mutation waits for the readers of every value of its storage whose bytes it touches and that does not
//! hang from its own output. Values that hang not even from the nearest mutated value above it were waited
//! for by the mutation that made that one (it covers at least the same bytes, as extents only narrow on the
//! way down), so a chain of n mutations has O(n) waits, not n².
//! Cost: O((n + waits) log n) for disjoint slices.

use crate::{Bytes, GraphError, IndexVec, Lists, Op, OpId, Sharing, Tensor, TensorId};

/// Which bytes of which storage a tensor takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The tensor that owns the storage.
    pub root: TensorId,
    /// Where in the storage it starts.
    pub start: Bytes,
    /// How many bytes it may touch; `None` if the storage's size is unknown.
    pub bytes: Option<Bytes>,
    /// Whether byte i of the tensor is byte i from the start: false below a view without an offset, whose
    /// elements may lie in another order.
    pub is_exact: bool,
}

impl Extent {
    fn end(self) -> u64 {
        self.bytes.map_or(u64::MAX, |bytes| self.start.0.saturating_add(bytes.0))
    }
}

/// The forest, with what follows from it. Part of a [`Graph`](crate::Graph).
#[derive(Clone, Debug, Default)]
pub(crate) struct Storages {
    extents: IndexVec<TensorId, Extent>,
    contents: IndexVec<TensorId, TensorId>,
    overwritten_by: Lists<OpId, TensorId>,
    overwriters: Lists<TensorId, OpId>,
}

/// How a tensor hangs from another one.
#[derive(Clone, Copy)]
enum Link {
    View { of: TensorId, offset: Option<Bytes> },
    Mutation { of: TensorId, by: OpId },
}

impl Link {
    fn of(self) -> TensorId {
        match self {
            Self::View { of, .. } | Self::Mutation { of, .. } => of,
        }
    }
}

type Links = IndexVec<TensorId, Option<Link>>;

impl Storages {
    /// Before the forest is known: nothing waits.
    pub(crate) fn without_waits(ops: usize, tensors: usize) -> Self {
        Self {
            overwritten_by: Lists::group(ops, &[]),
            overwriters: Lists::group(tensors, &[]),
            ..Self::default()
        }
    }

    pub(crate) fn has_waits(&self) -> bool {
        self.overwritten_by.item_count() > 0
    }

    /// Reads the forest off the operators, which come in a topological order of their data.
    pub(crate) fn build(
        ops: &IndexVec<OpId, Op>,
        tensors: &IndexVec<TensorId, Tensor>,
        order: &[OpId],
    ) -> Result<Self, GraphError> {
        let links = links(ops, tensors)?;
        let (extents, contents) = extents(ops, tensors, &links, order)?;
        refuse_double_mutations(ops, tensors)?;
        let waits = Forest::new(&links, &extents, ops, order).waits(ops)?;
        refuse_changed_outputs(ops, tensors, &waits)?;
        let backward: Vec<(TensorId, OpId)> = waits.iter().map(|&(op, t)| (t, op)).collect();
        Ok(Self {
            extents,
            contents,
            overwritten_by: Lists::group(ops.len(), &waits),
            overwriters: Lists::group(tensors.len(), &backward),
        })
    }

    pub(crate) fn extent(&self, tensor: TensorId) -> Extent {
        self.extents[tensor]
    }

    pub(crate) fn content(&self, tensor: TensorId) -> TensorId {
        self.contents[tensor]
    }

    pub(crate) fn overwritten_by(&self, op: OpId) -> &[TensorId] {
        &self.overwritten_by[op]
    }

    pub(crate) fn overwriters(&self, tensor: TensorId) -> &[OpId] {
        &self.overwriters[tensor]
    }
}

/// The link of each tensor; an error if it has two.
fn links(
    ops: &IndexVec<OpId, Op>,
    tensors: &IndexVec<TensorId, Tensor>,
) -> Result<Links, GraphError> {
    let mut links: Links = IndexVec::filled(tensors.len(), None);
    for (by, op) in ops.iter_enumerated() {
        for sharing in &op.sharing {
            let (output, link) = match *sharing {
                Sharing::View { output, of, offset } => (output, Link::View { of, offset }),
                Sharing::Mutates { output, of } => (output, Link::Mutation { of, by }),
                Sharing::MayOverwrite { .. } | Sharing::PartOf { .. } | Sharing::PieceOf { .. } => {
                    continue;
                }
            };
            if links[output].replace(link).is_some() {
                let tensor = tensors[output].label(output);
                return Err(GraphError::SharesTwice { op: op.label().to_owned(), tensor });
            }
        }
    }
    Ok(links)
}

type Extents = (IndexVec<TensorId, Extent>, IndexVec<TensorId, TensorId>);

/// Where each tensor lies in its storage, and whose write fills those bytes; bases come before views.
fn extents(
    ops: &IndexVec<OpId, Op>,
    tensors: &IndexVec<TensorId, Tensor>,
    links: &Links,
    order: &[OpId],
) -> Result<Extents, GraphError> {
    let own = |(root, tensor): (TensorId, &Tensor)| Extent {
        root,
        start: Bytes::ZERO,
        bytes: tensor.size.bound(),
        is_exact: true,
    };
    let mut extents: IndexVec<TensorId, Extent> = tensors.iter_enumerated().map(own).collect();
    let mut contents: IndexVec<TensorId, TensorId> = tensors.ids().collect();
    for &op in order {
        for &output in &ops[op].outputs {
            match links[output] {
                None => {}
                Some(Link::View { of, offset }) => {
                    extents[output] = view_extent(tensors, extents[of], (output, of), offset)?;
                    contents[output] = contents[of];
                }
                Some(Link::Mutation { of, .. }) => {
                    refuse_resizing(tensors, output, of)?;
                    extents[output] = extents[of];
                }
            }
        }
    }
    Ok((extents, contents))
}

fn view_extent(
    tensors: &IndexVec<TensorId, Tensor>,
    base: Extent,
    (view, of): (TensorId, TensorId),
    offset: Option<Bytes>,
) -> Result<Extent, GraphError> {
    let Some(offset) = offset else { return Ok(Extent { is_exact: false, ..base }) };
    let bytes = tensors[view].size.bound();
    let outside = || GraphError::ViewOutside {
        view: tensors[view].label(view),
        base: tensors[of].label(of),
        end: offset.0.saturating_add(bytes.unwrap_or_default().0),
        base_size: tensors[of].size,
    };
    let end = offset.checked_add(bytes.unwrap_or_default()).ok_or_else(outside)?;
    // Below a view in another order an offset counts that view's elements, which may lie anywhere.
    let limit = if base.is_exact { base.bytes } else { tensors[of].size.bound() };
    if limit.is_some_and(|limit| end > limit) || end > Bytes::MAX_TOTAL {
        return Err(outside());
    }
    if !base.is_exact {
        return Ok(base);
    }
    // Without a size of its own, a view may reach to the end of its base.
    let rest = base.bytes.map(|all| all - offset);
    Ok(Extent { start: base.start + offset, bytes: bytes.or(rest), ..base })
}

fn refuse_resizing(
    tensors: &IndexVec<TensorId, Tensor>,
    output: TensorId,
    of: TensorId,
) -> Result<(), GraphError> {
    if tensors[output].size == tensors[of].size {
        return Ok(());
    }
    Err(GraphError::MutationResizes {
        tensor: tensors[output].label(output),
        size: tensors[output].size,
        of: tensors[of].label(of),
        of_size: tensors[of].size,
    })
}

/// Two mutations of one value each wait for the other, as both read it.
fn refuse_double_mutations(
    ops: &IndexVec<OpId, Op>,
    tensors: &IndexVec<TensorId, Tensor>,
) -> Result<(), GraphError> {
    let mut by: IndexVec<TensorId, Option<OpId>> = IndexVec::filled(tensors.len(), None);
    for (id, op) in ops.iter_enumerated() {
        for sharing in &op.sharing {
            let Sharing::Mutates { of, .. } = *sharing else { continue };
            if let Some(first) = by[of].replace(id) {
                return Err(GraphError::MutatedTwice {
                    tensor: tensors[of].label(of),
                    first: ops[first].label().to_owned(),
                    second: op.label().to_owned(),
                });
            }
        }
    }
    Ok(())
}

fn refuse_changed_outputs(
    ops: &IndexVec<OpId, Op>,
    tensors: &IndexVec<TensorId, Tensor>,
    waits: &[(OpId, TensorId)],
) -> Result<(), GraphError> {
    match waits.iter().find(|&&(_, tensor)| tensors[tensor].is_output) {
        None => Ok(()),
        Some(&(op, tensor)) => Err(GraphError::OutputMutated {
            tensor: tensors[tensor].label(tensor),
            op: ops[op].label().to_owned(),
        }),
    }
}

/// Views that overlap mutated slices on all sides could make waits quadratic; real graphs have a few each.
const WAITS_PER_MEMBER: usize = 64;
const SPARE_WAITS: usize = 4_000_000;

/// The tensors of all shared storages, each storage's in preorder, so that what hangs from a tensor is a
/// range of positions.
struct Forest<'a> {
    links: &'a Links,
    extents: &'a IndexVec<TensorId, Extent>,
    /// Tensors in preorder.
    members: Vec<TensorId>,
    /// Where each tensor stands in `members`, and where what hangs from it ends; `None` if it shares nothing.
    place: IndexVec<TensorId, Option<(u32, u32)>>,
    mutations: Vec<Mutation>,
}

#[derive(Clone, Copy)]
struct Mutation {
    op: OpId,
    output: TensorId,
    /// The nearest mutated value above, or the root: what does not hang from it need not be waited for.
    scope: TensorId,
}

impl<'a> Forest<'a> {
    fn new(
        links: &'a Links,
        extents: &'a IndexVec<TensorId, Extent>,
        ops: &IndexVec<OpId, Op>,
        order: &[OpId],
    ) -> Self {
        let mut edges = Vec::new();
        let mut mutations = Vec::new();
        let mut scopes: IndexVec<TensorId, TensorId> = links.ids().collect();
        for &output in order.iter().flat_map(|&op| &ops[op].outputs) {
            let Some(link) = links[output] else { continue };
            edges.push((link.of(), output));
            let scope = scopes[link.of()];
            match link {
                Link::View { .. } => scopes[output] = scope,
                Link::Mutation { by, .. } => mutations.push(Mutation { op: by, output, scope }),
            }
        }
        let mut forest =
            Self { links, extents, members: Vec::new(), place: IndexVec::new(), mutations };
        // Without a mutation nothing has to wait, and the preorder is not needed. What hangs side by side stands
        // in the order of its bytes, so that a subtree of positions is a compact range of them.
        if !forest.mutations.is_empty() {
            edges.sort_by_key(|&(_, child)| (extents[child].start, extents[child].end(), child));
            forest.walk(&Lists::group(links.len(), &edges));
        }
        forest
    }

    fn walk(&mut self, children: &Lists<TensorId, TensorId>) {
        self.place = IndexVec::filled(self.links.len(), None);
        let roots = self.links.ids().filter(|&t| self.links[t].is_none());
        for root in roots.filter(|&t| !children[t].is_empty()).collect::<Vec<_>>() {
            let mut stack = vec![(root, false)];
            while let Some((tensor, done)) = stack.pop() {
                let here = u32::try_from(self.members.len()).expect("at most u32::MAX tensors");
                if done {
                    let start = self.place[tensor].expect("entered before").0;
                    self.place[tensor] = Some((start, here));
                    continue;
                }
                self.place[tensor] = Some((here, here));
                self.members.push(tensor);
                stack.push((tensor, true));
                stack.extend(children[tensor].iter().rev().map(|&child| (child, false)));
            }
        }
    }

    /// For every mutation, the values whose readers come before it.
    fn waits(&self, ops: &IndexVec<OpId, Op>) -> Result<Vec<(OpId, TensorId)>, GraphError> {
        let range = |&member: &TensorId| {
            let extent = self.extents[member];
            // Of no bytes, it overlaps nothing: its place in the tree stays empty.
            if extent.end() > extent.start.0 { (extent.start.0, extent.end()) } else { EMPTY }
        };
        let ranges: Vec<(u64, u64)> = self.members.iter().map(range).collect();
        let index = OverlapIndex::new(&ranges);
        let limit = WAITS_PER_MEMBER * self.members.len() + SPARE_WAITS;
        let mut waits = Vec::new();
        for &Mutation { op, output, scope } in &self.mutations {
            let extent = self.extents[output];
            let touched = (extent.start.0, extent.end());
            let (scope_start, scope_end) = self.place[scope].expect("something hangs from it");
            let (own_start, own_end) = self.place[output].expect("a mutated value shares");
            let mut found = |position: u32| waits.push((op, self.members[position as usize]));
            index.each(scope_start..own_start, touched, &mut found);
            index.each(own_end..scope_end, touched, &mut found);
            if waits.len() > limit {
                return Err(GraphError::TooManyWaits { op: ops[op].label().to_owned(), limit });
            }
        }
        Ok(waits)
    }
}

/// Finds the ranges of bytes, among those at some positions, that overlap a given one: a tree over the
/// positions with the least start and the greatest end of each subtree.
struct OverlapIndex {
    leaves: usize,
    /// Node 1 is the root; the children of node n are 2n and 2n + 1.
    nodes: Vec<(u64, u64)>,
}

/// A range that no other overlaps, and that leaves minima and maxima as they are.
const EMPTY: (u64, u64) = (u64::MAX, 0);

impl OverlapIndex {
    fn new(ranges: &[(u64, u64)]) -> Self {
        let leaves = ranges.len().next_power_of_two();
        let mut nodes = vec![EMPTY; 2 * leaves];
        nodes[leaves..leaves + ranges.len()].copy_from_slice(ranges);
        for node in (1..leaves).rev() {
            let (left, right) = (nodes[2 * node], nodes[2 * node + 1]);
            nodes[node] = (left.0.min(right.0), left.1.max(right.1));
        }
        Self { leaves, nodes }
    }

    fn each(
        &self,
        positions: std::ops::Range<u32>,
        touched: (u64, u64),
        found: &mut dyn FnMut(u32),
    ) {
        let (first, last) = (positions.start as usize, positions.end as usize);
        if touched.0 >= touched.1 {
            return;
        }
        let mut stack = vec![(1_usize, 0_usize, self.leaves)];
        while let Some((node, start, end)) = stack.pop() {
            let (low, high) = self.nodes[node];
            let misses = high <= touched.0 || touched.1 <= low;
            if end <= first || last <= start || misses {
                continue;
            }
            if node >= self.leaves {
                found(u32::try_from(start).expect("positions fit u32"));
                continue;
            }
            let middle = start.midpoint(end);
            stack.push((2 * node + 1, middle, end));
            stack.push((2 * node, start, middle));
        }
    }
}
