//! [`Flow`]: what an order costs, without names: which bytes come and go with which operators.
//!
//! ~~~text
//! a ─ conv ─ b ─ relu ─ c        cell b: written by conv, used by relu
//!                                live after {conv}: b      after {conv, relu}: c
//! while relu runs: b + c, less c if c may be written over b and relu is the last that uses it
//! ~~~
//! What is live, and what an operator adds while it runs, depend only on the set of operators that have run: so a
//! search over these sets is exact. A [cell](crate::share::bodies::Cell) is held from its writer to its last user;
//! views and mutated values are users of the storage that they lie in, a whole is one of its parts.
//! Operators that may as well run one right after the other are one *task* (see [`fuse`](super::fuse)).

use super::pair::{Pair, pair};
use crate::PlanConfig;
use crate::share::Ground;
use crate::share::overlays::Overlay;
use lowtide_core::{Graph, Id, IndexVec, Lists, OpId, Owner, Size, TensorId, TensorKind};

/// More pairs of operators that wait for each other are not written down: a graph with more has only simple orders.
const MOST_EDGES: usize = 1 << 26;

/// Which outputs of a task may be written over which cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Over {
    /// Overlays of one output have the same number; only one of them can be.
    pub(crate) output: u32,
    /// The storage that is written over, by one output only.
    pub(crate) of: TensorId,
    /// Bytes that it saves while the task runs.
    pub(crate) saves: u64,
    /// The cells that have to die: a range in [`Flow::over_cells`].
    pub(crate) cells: (u32, u32),
}

/// The tasks of a graph, and the cells that they write and use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    /// Which tasks wait for each task, ascending, and for which each waits.
    pub(crate) after: Lists<OpId, OpId>,
    pub(crate) before: Lists<OpId, OpId>,
    /// Cells that each task writes and that somebody uses later.
    pub(crate) births: Lists<OpId, u32>,
    /// Cells that each task uses.
    pub(crate) uses: Lists<OpId, u32>,
    /// What each task adds while it runs: all that it writes, and scratch.
    pub(crate) extra: IndexVec<OpId, u64>,
    /// What may be written over what.
    pub(crate) overs: Lists<OpId, Over>,
    pub(crate) over_cells: Vec<u32>,
    /// Bytes of each cell.
    pub(crate) bytes: Vec<u64>,
    /// How many tasks use each cell; one more if it is kept to the end.
    pub(crate) users: Vec<u32>,
    /// What is live before the first task.
    pub(crate) start: u64,
    /// The operators of each task, in the order in which they run.
    pub(crate) ops: Lists<OpId, OpId>,
    /// The one of them that the others came to.
    pub(crate) heads: IndexVec<OpId, OpId>,
}

impl Flow {
    /// The flow of a graph, a task an operator; `None` if too many operators wait for each other.
    pub(crate) fn new(graph: &Graph, config: &PlanConfig, ground: &Ground) -> Option<Self> {
        let (after, before) = edges(graph)?;
        let mut cells = Cells::new(graph, config, ground);
        let len = graph.ops().len();
        let mut flow = Self { after, before, ..Self::default() };
        let mut births: Vec<(OpId, u32)> = Vec::new();
        let mut extra: IndexVec<OpId, u64> =
            graph.ops().iter().map(|op| padded(config, op.scratch)).collect();
        for (cell, writer) in cells.writers.iter().enumerate() {
            let id = u32::try_from(cell).expect("cells fit u32");
            match writer {
                Writer::Nobody => {}
                Writer::Caller => flow.start += cells.bytes[cell],
                Writer::Op(op) => {
                    extra[*op] += cells.bytes[cell];
                    if cells.users[cell] > 0 {
                        births.push((*op, id));
                    }
                }
            }
        }
        for op in graph.ops().ids() {
            flow.overs.push(overs(op, graph, ground, &cells, &mut flow.over_cells));
            flow.ops.push([op]);
            flow.heads.push(op);
        }
        flow.births = Lists::group(len, &births);
        flow.uses = std::mem::take(&mut cells.uses);
        (flow.bytes, flow.users, flow.extra) = (cells.bytes, cells.users, extra);
        Some(flow)
    }

    pub(crate) fn len(&self) -> usize {
        self.extra.len()
    }

    pub(crate) fn tasks(&self) -> impl DoubleEndedIterator<Item = OpId> + use<> {
        (0..self.len()).map(OpId::from_index)
    }

    /// Bytes that a task may save at most by writing over what dies.
    pub(crate) fn most_saved(&self, task: OpId) -> u64 {
        most_saved(&self.overs[task])
    }

    /// An order of tasks that needs no more than this one of operators.
    pub(crate) fn tasks_of(&self, ops: &[OpId]) -> Vec<OpId> {
        let mut tasks = IndexVec::filled(ops.len(), None);
        for task in self.tasks() {
            tasks[self.heads[task]] = Some(task);
        }
        ops.iter().filter_map(|&op| tasks[op]).collect()
    }

    /// The operators of an order of tasks.
    pub(crate) fn operators(&self, tasks: &[OpId]) -> Vec<OpId> {
        tasks.iter().flat_map(|&task| self.ops[task].iter().copied()).collect()
    }
}

fn padded(config: &PlanConfig, size: Size) -> u64 {
    let bytes = size.bound().unwrap_or_default().align_up(config.align);
    bytes.expect("a graph's sizes fit with padding").0
}

/// Who waits for whom: data, and mutations for the other readers of what they change.
fn edges(graph: &Graph) -> Option<(Lists<OpId, OpId>, Lists<OpId, OpId>)> {
    let mut before: Lists<OpId, OpId> = Lists::new();
    for op in graph.ops().ids() {
        before.push(graph.predecessors(op));
        if before.item_count() > MOST_EDGES {
            return None;
        }
    }
    let mut pairs = Vec::with_capacity(before.item_count());
    for op in graph.ops().ids() {
        pairs.extend(before[op].iter().map(|&earlier| (earlier, op)));
    }
    Some((Lists::group(graph.ops().len(), &pairs), before))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    Nobody,
    Caller,
    Op(OpId),
}

/// What happens to each cell.
struct Cells {
    bytes: Vec<u64>,
    writers: Vec<Writer>,
    users: Vec<u32>,
    uses: Lists<OpId, u32>,
}

impl Cells {
    fn new(graph: &Graph, config: &PlanConfig, ground: &Ground) -> Self {
        let len = ground.bytes.len();
        let mut cells = Self {
            bytes: ground.bytes.clone(),
            writers: vec![Writer::Nobody; len],
            users: vec![0; len],
            uses: Lists::new(),
        };
        // What fills a storage was written before it.
        let steps = graph.file_order();
        for (id, tensor) in graph.tensors().iter_enumerated() {
            for &cell in &ground.cells_of[id] {
                let writer = &mut cells.writers[cell as usize];
                match (tensor.kind, graph.writer(id), *writer) {
                    (TensorKind::Computed, Some(op), Writer::Op(other)) => {
                        let is_first = steps.step(op) < steps.step(other);
                        *writer = Writer::Op(if is_first { op } else { other });
                    }
                    (TensorKind::Computed, Some(op), Writer::Nobody) => *writer = Writer::Op(op),
                    (TensorKind::Input, ..) if config.inputs == Owner::Arena => {
                        *writer = Writer::Caller;
                    }
                    _ => {}
                }
            }
        }
        cells.count_users(graph, ground);
        cells
    }

    fn count_users(&mut self, graph: &Graph, ground: &Ground) {
        let mut list: Vec<u32> = Vec::new();
        for (id, op) in graph.ops().iter_enumerated() {
            list.clear();
            let written = op.outputs.iter().filter(|&&output| {
                // Where it fills a storage that others have begun, it uses their cells.
                graph.is_storage(output) && ground.is_filled[output]
            });
            let read = graph.reads(id).iter().map(|&tensor| graph.storage(tensor));
            for storage in read.chain(written.copied()) {
                list.extend(&ground.cells_of[storage]);
            }
            list.retain(|&cell| self.writers[cell as usize] != Writer::Op(id));
            list.sort_unstable();
            list.dedup();
            for &cell in &list {
                self.users[cell as usize] += 1;
            }
            self.uses.push(list.iter().copied());
        }
        let mut is_kept = vec![false; self.users.len()];
        for storage in graph.tensors().ids().filter(|&id| graph.holds_output(id)) {
            for &cell in &ground.cells_of[storage] {
                let is_new = !std::mem::replace(&mut is_kept[cell as usize], true);
                self.users[cell as usize] += u32::from(is_new);
            }
        }
        self.drop_unused_inputs();
    }

    /// An input that nothing needs is not placed.
    fn drop_unused_inputs(&mut self) {
        for (writer, &users) in self.writers.iter_mut().zip(&self.users) {
            if *writer == Writer::Caller && users == 0 {
                *writer = Writer::Nobody;
            }
        }
    }
}

/// What the outputs of an operator may be written over.
fn overs(
    op: OpId,
    graph: &Graph,
    ground: &Ground,
    cells: &Cells,
    over_cells: &mut Vec<u32>,
) -> Vec<Over> {
    let bytes = |cell: u32| cells.bytes[cell as usize];
    let sum = |id: TensorId| -> u64 { ground.cells_of[id].iter().map(|&cell| bytes(cell)).sum() };
    // In a relaxed sharing others may have written some of the output before.
    let written = |id: TensorId| -> u64 {
        let own = ground.cells_of[id].iter().copied();
        own.filter(|&cell| cells.writers[cell as usize] == Writer::Op(op)).map(bytes).sum()
    };
    let over = |overlay: &Overlay| {
        let output = graph.ops()[op].outputs.iter().position(|&output| output == overlay.output);
        let start = u32::try_from(over_cells.len()).expect("cells fit u32");
        over_cells.extend(ground.dying(overlay.over));
        let end = u32::try_from(over_cells.len()).expect("cells fit u32");
        Over {
            output: u32::try_from(output.unwrap_or(0)).expect("outputs fit u32"),
            of: overlay.over,
            saves: written(overlay.output).min(sum(overlay.over)),
            cells: (start, end),
        }
    };
    ground.overlays[op].iter().map(over).collect()
}

/// Follows an order: what is live, and what each task needs.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'f> {
    flow: &'f Flow,
    /// Users of each cell that have not run.
    left: Vec<u32>,
    pub(crate) live: u64,
}

impl<'f> Walk<'f> {
    pub(crate) fn new(flow: &'f Flow) -> Self {
        Self { flow, left: flow.users.clone(), live: flow.start }
    }

    /// Bytes while `task` runs next.
    pub(crate) fn needed(&self, task: OpId) -> u64 {
        self.live + self.flow.extra[task] - self.saved(task)
    }

    fn saved(&self, task: OpId) -> u64 {
        let overs = &self.flow.overs[task];
        if overs.is_empty() {
            return 0;
        }
        let dies = |over: &Over| {
            let cells = &self.flow.over_cells[over.cells.0 as usize..over.cells.1 as usize];
            cells.iter().all(|&cell| self.left[cell as usize] == 1)
        };
        saved(overs, dies)
    }

    /// Runs `task`; returns the bytes that were needed.
    pub(crate) fn run(&mut self, task: OpId) -> u64 {
        let needed = self.needed(task);
        for &cell in &self.flow.births[task] {
            self.live += self.flow.bytes[cell as usize];
        }
        for &cell in &self.flow.uses[task] {
            let left = &mut self.left[cell as usize];
            *left -= 1;
            if *left == 0 {
                self.live -= self.flow.bytes[cell as usize];
            }
        }
        needed
    }
}

/// Bytes saved if each output is written over something.
pub(crate) fn most_saved(overs: &[Over]) -> u64 {
    let is_first = |at: usize| at == 0 || overs[at - 1].output != overs[at].output;
    // Alternatives for one output save the same bytes.
    (0..overs.len()).filter(|&at| is_first(at)).map(|at| overs[at].saves).sum()
}

/// Bytes saved if as many outputs as can be are written over something that dies, the largest first.
pub(crate) fn saved(overs: &[Over], dies: impl Fn(&Over) -> bool) -> u64 {
    if overs[0].output == overs[overs.len() - 1].output {
        return overs.iter().find(|over| dies(over)).map_or(0, |over| over.saves);
    }
    let rows = overs.iter().filter(|over| dies(over));
    let rows: Vec<Pair> = rows
        .map(|over| Pair { one: over.output, other: over.of.raw(), worth: over.saves })
        .collect();
    pair(&rows).into_iter().map(|at| rows[at].worth).sum()
}

/// The most bytes that an order needs.
pub(crate) fn peak(flow: &Flow, tasks: &[OpId]) -> u64 {
    let mut walk = Walk::new(flow);
    tasks.iter().map(|&task| walk.run(task)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds;
    use crate::share::{Links, Wishes, share};
    use lowtide_core::testing::{Limits, graph, random_bytes};
    use lowtide_core::{Align, Order, Reuse};

    /// The model and the sharing of one order, for an alignment.
    fn peaks(graph: &Graph, order: &Order, links: Links, align: Align) -> (u64, u64) {
        let config = PlanConfig { align, reuse: Reuse::Pack, ..PlanConfig::default() };
        let wishes = Wishes::new(graph, &config, links);
        let flow = Flow::new(graph, &config, &Ground::new(graph, &config, &wishes)).unwrap();
        let tasks: Vec<OpId> = order.schedule().iter().copied().collect();
        let (problem, _) = share(graph, order, &config, &wishes).problem();
        (peak(&flow, &tasks), bounds::live_bound(&bounds::live_sums(&problem)).bytes.0)
    }

    #[test]
    fn the_model_is_never_above_what_is_live_and_nearly_always_equal() {
        let mut rows = 0;
        let mut equal = 0;
        for seed in 0..1_000 {
            let bytes = random_bytes(seed, 1 << 11);
            let mut source = arbitrary::Unstructured::new(&bytes);
            let Ok(graph) = graph(&mut source, Limits::all(12)) else { continue };
            let order = graph.file_order();
            let kinds = [Links::All, Links::Dying, Links::None];
            let aligns = [Align::ONE, Align::CACHE_LINE];
            for (links, align) in kinds.into_iter().flat_map(|links| aligns.map(|a| (links, a))) {
                let (model, live) = peaks(&graph, &order, links, align);
                assert!(model <= live, "seed {seed}, {links:?}: {model} above {live}");
                rows += 1;
                equal += usize::from(model == live);
            }
        }
        assert!(rows > 4_000 && equal * 100 >= rows * 97, "{equal} of {rows} are equal");
    }
}
