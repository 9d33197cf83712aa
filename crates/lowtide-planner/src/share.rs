//! Lifetimes to buffers: which residences lie on the same bytes?
//!
//! ~~~text
//! x ─ conv ─ a ─ relu ─ b ─ add ─ c       a: [0,2)   b: [1,3)   c: [2,..)
//!      a dies where b is written and has its size: b is written over a; c over b.
//!      One buffer of three residences instead of three buffers, two of them live at each step.
//! ~~~
//!
//! An output is written over an input when the operator allows it, the input's whole storage dies there, the
//! sizes are fixed and equal, no other operand lies on those bytes, their elements stand in the same order, and
//! the storage is neither the caller's nor an output of the graph. That is never worse for the live sum, which
//! would hold both during that step. Tensors of unknown size, and unknown scratch, go to the pool, each on its
//! own. Cost: O(n log n).

use crate::PlanConfig;
use crate::lifetimes::storage_lifetimes;
use lowtide_core::{
    Buffer, BufferId, Bytes, Graph, Id, IndexVec, Interval, Item, Lifetimes, Occupant, Op, Order,
    Problem, Residence, ResidenceId, Reuse, RunId, Sharing, Size, Space, SpaceId, SpaceKind, Step,
    TensorId, TensorKind,
};

use std::collections::BTreeSet;

/// The space of planned offsets.
pub(crate) const ARENA: SpaceId = SpaceId::new(0);
/// The space for what has no bound; only there if something needs it.
pub(crate) const POOL: SpaceId = SpaceId::new(1);

/// Residences and buffers without offsets.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) residences: IndexVec<ResidenceId, Residence>,
    pub(crate) buffers: IndexVec<BufferId, Buffer>,
    /// Where each storage stays.
    pub(crate) of_tensor: IndexVec<TensorId, Option<ResidenceId>>,
    /// Where the scratch of each run stays.
    pub(crate) of_scratch: IndexVec<RunId, Option<ResidenceId>>,
}

/// Decides what shares bytes under `order`.
pub(crate) fn share(graph: &Graph, order: &Order, config: &PlanConfig) -> Layout {
    let lifetimes = placed_lifetimes(graph, order, config);
    let mut sharing = InPlace::new(graph, &lifetimes);
    if config.in_place && config.reuse != Reuse::Safe {
        for (run, &op) in order.schedule().iter_enumerated() {
            sharing.overwrite_dying_inputs(run, &graph.ops()[op]);
        }
    }
    let successors = sharing.successors;
    LayoutBuilder::new(graph, order, config, &lifetimes).run(&successors)
}

/// Lifetimes of the storages that a plan has to place.
fn placed_lifetimes(graph: &Graph, order: &Order, config: &PlanConfig) -> Lifetimes {
    let mut lifetimes = storage_lifetimes(graph, order);
    let all = Interval::new(Step::ZERO, Step::from_index(order.len()));
    for (id, tensor) in graph.tensors().iter_enumerated() {
        if !config.places(graph, id) {
            lifetimes[id] = None;
        } else if tensor.kind == TensorKind::Input {
            // The caller writes it before the first step; as an output it stays although nothing reads it.
            let life = lifetimes[id].or(tensor.is_output.then_some(all));
            lifetimes[id] = life.map(|life| Interval { start: Step::ZERO, ..life });
        }
    }
    lifetimes
}

/// Which storage is written over which.
struct InPlace<'a> {
    graph: &'a Graph,
    lifetimes: &'a Lifetimes,
    /// What is written over each storage.
    successors: IndexVec<TensorId, Option<TensorId>>,
    has_predecessor: IndexVec<TensorId, bool>,
}

impl<'a> InPlace<'a> {
    fn new(graph: &'a Graph, lifetimes: &'a Lifetimes) -> Self {
        let len = graph.tensors().len();
        let (successors, has_predecessor) =
            (IndexVec::filled(len, None), IndexVec::filled(len, false));
        Self { graph, lifetimes, successors, has_predecessor }
    }

    fn overwrite_dying_inputs(&mut self, run: RunId, op: &Op) {
        let is_permission = |sharing: &&Sharing| matches!(sharing, Sharing::MayOverwrite { .. });
        let mut permissions = op.sharing.iter().filter(is_permission).peekable();
        if permissions.peek().is_none() {
            return;
        }
        let mut storages: Vec<TensorId> =
            op.inputs.iter().map(|&t| self.graph.storage(t)).collect();
        storages.sort_unstable();
        // What the operator changes in place is no place for another output.
        let changed = op.sharing.iter().filter_map(|sharing| match *sharing {
            Sharing::Mutates { of, .. } => Some(self.graph.storage(of)),
            _ => None,
        });
        let changed: BTreeSet<TensorId> = changed.collect();
        for sharing in permissions {
            let &Sharing::MayOverwrite { output, of } = sharing else { continue };
            let storage = self.graph.storage(of);
            let first = storages.partition_point(|&other| other < storage);
            let is_alone = storages.get(first + 1) != Some(&storage);
            if is_alone && !changed.contains(&storage) && self.may_follow(run, output, of) {
                self.successors[storage] = Some(output);
                self.has_predecessor[output] = true;
            }
        }
    }

    /// Whether `output` can be written over the storage of `of` in this run.
    fn may_follow(&self, run: RunId, output: TensorId, of: TensorId) -> bool {
        let storage = self.graph.storage(of);
        let size = |tensor: TensorId| self.graph.tensors()[tensor].size.fixed();
        let dies = |life: Interval| life.end == run.step().next();
        self.graph.is_storage(output)
            && self.lifetimes[storage].is_some_and(dies)
            && self.lifetimes[output].is_some()
            && !self.graph.holds_output(storage)
            && self.successors[storage].is_none()
            && !self.has_predecessor[output]
            && size(output).is_some()
            && size(output) == size(storage)
            && size(of) == size(storage)
            && self.graph.extent(of).bytes == size(storage)
            && self.graph.extent(of).is_exact
    }
}

struct LayoutBuilder<'a> {
    graph: &'a Graph,
    order: &'a Order,
    config: &'a PlanConfig,
    lifetimes: &'a Lifetimes,
    layout: Layout,
}

impl<'a> LayoutBuilder<'a> {
    fn new(
        graph: &'a Graph,
        order: &'a Order,
        config: &'a PlanConfig,
        lifetimes: &'a Lifetimes,
    ) -> Self {
        let layout = Layout {
            residences: IndexVec::new(),
            buffers: IndexVec::new(),
            of_tensor: IndexVec::filled(graph.tensors().len(), None),
            of_scratch: IndexVec::filled(order.len(), None),
        };
        Self { graph, order, config, lifetimes, layout }
    }

    /// Buffers in the order of their first step: inputs, then what each run writes, then its scratch.
    fn run(mut self, successors: &IndexVec<TensorId, Option<TensorId>>) -> Layout {
        let mut is_head: IndexVec<TensorId, bool> =
            self.lifetimes.iter().map(Option::is_some).collect();
        for &follower in successors.iter().flatten() {
            is_head[follower] = false;
        }
        for (id, tensor) in self.graph.tensors().iter_enumerated() {
            if tensor.kind == TensorKind::Input && is_head[id] {
                self.chain(id, successors);
            }
        }
        for (run, &op) in self.order.schedule().iter_enumerated() {
            let graph = self.graph;
            for &output in graph.ops()[op].outputs.iter().filter(|&&output| is_head[output]) {
                self.chain(output, successors);
            }
            if let Some(size) = graph.ops()[op].needed_scratch() {
                let span = Interval::new(run.step(), run.step().next());
                self.layout.of_scratch[run] =
                    Some(self.residence(Occupant::Scratch(run), size, span));
                self.close(size);
            }
        }
        self.layout
    }

    /// A buffer of a storage and all that is written over it, one after the other.
    fn chain(&mut self, head: TensorId, successors: &IndexVec<TensorId, Option<TensorId>>) {
        let size = self.graph.tensors()[head].size;
        let mut next = Some(head);
        while let Some(tensor) = next {
            let span = self.lifetimes[tensor].expect("a placed storage has a lifetime");
            let id = self.residence(Occupant::Tensor(tensor), size, span);
            self.layout.of_tensor[tensor] = Some(id);
            next = successors[tensor];
        }
        self.close(size);
    }

    fn residence(&mut self, what: Occupant, size: Size, span: Interval) -> ResidenceId {
        let buffer = BufferId::from_index(self.layout.buffers.len());
        self.layout.residences.push(Residence { what, buffer, offset: Bytes::ZERO, size, span })
    }

    /// Makes a buffer of the residences since the last one.
    fn close(&mut self, size: Size) {
        let start = self.layout.buffers.iter().last().map_or(ResidenceId::new(0), |b| b.parts.end);
        let end = ResidenceId::from_index(self.layout.residences.len());
        let space = if size.bound().is_some() { ARENA } else { POOL };
        let (align, parts) = (self.config.align, start..end);
        self.layout.buffers.push(Buffer { space, align, parts, offset: None });
    }
}

impl Layout {
    /// The placement problem of the arena, and which buffer each of its items is.
    pub(crate) fn problem(&self) -> (Problem, Vec<BufferId>) {
        let in_arena = |(_, buffer): &(BufferId, &Buffer)| buffer.space == ARENA;
        let buffers = self.buffers.iter_enumerated().filter(in_arena);
        let (items, ids): (Vec<Item>, Vec<BufferId>) =
            buffers.map(|(id, buffer)| (self.item(buffer), id)).unzip();
        let problem = Problem::new(IndexVec::from(items));
        (problem.expect("a graph's sizes fit with padding"), ids)
    }

    /// All residences of a buffer lie on the same bytes, one after the other: one rectangle.
    fn item(&self, buffer: &Buffer) -> Item {
        let parts = self.residences.range(buffer.parts.clone());
        let span = parts.iter().map(|part| part.span).reduce(Interval::hull);
        let bytes = parts[0].size.bound().expect("what lies in the arena has a bound");
        let padded = bytes.align_up(buffer.align).expect("a graph's sizes fit with padding");
        Item::new(padded, span.expect("a buffer holds a residence"), buffer.align)
    }

    /// The memories, the pool only if it is used.
    pub(crate) fn spaces(&self, arena: Bytes) -> IndexVec<SpaceId, Space> {
        let mut spaces = vec![Space { kind: SpaceKind::Arena, size: arena }];
        if self.buffers.iter().any(|buffer| buffer.space == POOL) {
            spaces.push(Space { kind: SpaceKind::Pool, size: Bytes::ZERO });
        }
        IndexVec::from(spaces)
    }
}
