//! Lower bounds for every order, by minimum cuts.
//!
//! ~~~text
//! while v runs:   what v waits for has run │ everything else may or may not have │ what waits for v has not
//!                        (source)          │   the cheapest choice: a minimum cut │         (sink)
//! ~~~
//! What is live is a submodular function of the set of tasks that have run, so the least of it over all sets that v
//! may see is a minimum cut: an edge of a cell's bytes from its writer (if that has run) to its users (until they all
//! have), and edges without limit from each task to what it waits for. A flow that is not yet the greatest is a valid
//! bound too, so the work can end at any time.
//! Cost: for each task looked at, linear in the graph, and Dinic's algorithm (1970) on the tasks that are neither
//! before nor after it.

use super::flow::Flow;
use crate::meter::Meter;
use lowtide_core::{IndexVec, OpId};

/// The writer and the users of each cell.
#[derive(Debug)]
pub(crate) struct Cuts<'f> {
    flow: &'f Flow,
    writers: Vec<Option<OpId>>,
    users: Vec<Vec<OpId>>,
    side: IndexVec<OpId, Side>,
    nodes: IndexVec<OpId, u32>,
    network: Network,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Before,
    After,
    Free,
}

impl<'f> Cuts<'f> {
    pub(crate) fn new(flow: &'f Flow) -> Self {
        let mut writers = vec![None; flow.bytes.len()];
        let mut users = vec![Vec::new(); flow.bytes.len()];
        for task in flow.tasks() {
            flow.births[task].iter().for_each(|&cell| writers[cell as usize] = Some(task));
            flow.uses[task].iter().for_each(|&cell| users[cell as usize].push(task));
        }
        Self {
            flow,
            writers,
            users,
            side: IndexVec::filled(flow.len(), Side::Free),
            nodes: IndexVec::filled(flow.len(), 0),
            network: Network::default(),
        }
    }

    /// What is needed at least while `task` runs, whatever has run before.
    pub(crate) fn bound(&mut self, task: OpId, meter: &mut Meter<'_>) -> u64 {
        self.take_sides(task, meter);
        let free: Vec<OpId> =
            self.flow.tasks().filter(|&other| self.side[other] == Side::Free).collect();
        self.network.clear();
        for &other in &free {
            self.nodes[other] = self.network.node();
        }
        meter.spend((self.flow.len() + self.flow.bytes.len()) as u64 / 16 + free.len() as u64);
        for &other in &free {
            for &earlier in &self.flow.before[other] {
                if self.side[earlier] == Side::Free {
                    self.network.edge(self.nodes[other], self.nodes[earlier], u64::MAX);
                }
            }
        }
        let mut always: u64 = 0;
        for cell in 0..self.flow.bytes.len() {
            let bytes = self.flow.bytes[cell];
            let is_kept = self.users[cell].len() < self.flow.users[cell] as usize;
            let from = match self.writers[cell] {
                Some(writer) => match self.side[writer] {
                    Side::After => continue,
                    Side::Before => SOURCE,
                    Side::Free => self.nodes[writer],
                },
                None if self.flow.users[cell] == 0 => continue,
                None => SOURCE,
            };
            if writer_is_sinkless(is_kept, &self.users[cell], &self.side) {
                if from == SOURCE {
                    always += bytes;
                } else {
                    self.network.edge(from, SINK, bytes);
                }
            } else {
                self.until_all_have(from, cell, None, bytes);
            }
        }
        always += self.flow.extra[task] - self.flow.most_saved(task);
        always += self.what_may_not_be_saved(task);
        always + self.network.max_flow(meter)
    }

    /// Live as long as some free user of `cell` (other than `but`) has not run.
    fn until_all_have(&mut self, from: u32, cell: usize, but: Option<OpId>, bytes: u64) {
        let is_free = |user: &&OpId| self.side[**user] == Side::Free && Some(**user) != but;
        let free: Vec<u32> =
            self.users[cell].iter().filter(is_free).map(|&user| self.nodes[user]).collect();
        match free[..] {
            [] => {}
            [user] => self.network.edge(from, user, bytes),
            _ => {
                let node = self.network.node();
                self.network.edge(from, node, bytes);
                for &user in &free {
                    self.network.edge(node, user, u64::MAX);
                }
            }
        }
    }

    /// An output with one thing to be written over can only be if all others have used that: until then it takes
    /// its bytes. Of several things any may do, which is no cut.
    fn what_may_not_be_saved(&mut self, task: OpId) -> u64 {
        let flow = self.flow;
        let overs = &flow.overs[task];
        let mut never = 0;
        for over in overs {
            let others = overs.iter().filter(|other| other.output == over.output).count();
            let cells = &flow.over_cells[over.cells.0 as usize..over.cells.1 as usize];
            let [cell] = *cells else { continue };
            if others > 1 {
                continue;
            }
            let cell = cell as usize;
            let is_kept = self.users[cell].len() < flow.users[cell] as usize;
            let comes_later = |&user: &OpId| self.side[user] == Side::After && user != task;
            if is_kept || self.users[cell].iter().any(comes_later) {
                never += over.saves;
            } else {
                self.until_all_have(SOURCE, cell, Some(task), over.saves);
            }
        }
        never
    }

    /// Which tasks have run, and which have not, whenever `task` runs.
    fn take_sides(&mut self, task: OpId, meter: &mut Meter<'_>) {
        self.side = IndexVec::filled(self.flow.len(), Side::Free);
        self.side[task] = Side::After;
        let flow = self.flow;
        for (edges, side) in [(&flow.before, Side::Before), (&flow.after, Side::After)] {
            let mut stack = vec![task];
            while let Some(at) = stack.pop() {
                meter.spend(1);
                for &next in &edges[at] {
                    if self.side[next] == Side::Free {
                        self.side[next] = side;
                        stack.push(next);
                    }
                }
            }
        }
    }
}

/// Whether a cell whose writer has run stays: somebody uses it who has not.
fn writer_is_sinkless(is_kept: bool, users: &[OpId], side: &IndexVec<OpId, Side>) -> bool {
    is_kept || users.iter().any(|&user| side[user] == Side::After)
}

const SOURCE: u32 = 0;
const SINK: u32 = 1;
const NONE: u32 = u32::MAX;

/// A network with a flow through it. Edge `e ^ 1` is edge `e` backward.
#[derive(Debug, Default)]
struct Network {
    /// The last edge of each node.
    last: Vec<u32>,
    /// For each edge: where it leads, what it still can take, the edge before it at its node.
    edges: Vec<(u32, u64, u32)>,
    level: Vec<u32>,
    next: Vec<u32>,
}

impl Network {
    fn clear(&mut self) {
        self.last.clear();
        self.last.extend([NONE, NONE]);
        self.edges.clear();
    }

    fn node(&mut self) -> u32 {
        self.last.push(NONE);
        u32::try_from(self.last.len() - 1).expect("nodes fit u32")
    }

    fn edge(&mut self, from: u32, to: u32, capacity: u64) {
        for (from, to, capacity) in [(from, to, capacity), (to, from, 0)] {
            let edge = u32::try_from(self.edges.len()).expect("edges fit u32");
            let before = std::mem::replace(&mut self.last[from as usize], edge);
            self.edges.push((to, capacity, before));
        }
    }

    /// The greatest flow, or as much of it as the meter allows.
    fn max_flow(&mut self, meter: &mut Meter<'_>) -> u64 {
        let mut flow = 0;
        while self.last.len() > 2 && !meter.is_out() && self.find_levels(meter) {
            self.next.clone_from(&self.last);
            while !meter.is_out() {
                let more = self.augment(meter);
                if more == 0 {
                    break;
                }
                flow += more;
            }
        }
        flow
    }

    /// Distances from the source along edges that can take more; whether the sink is reached.
    fn find_levels(&mut self, meter: &mut Meter<'_>) -> bool {
        self.level.clear();
        self.level.resize(self.last.len(), NONE);
        self.level[SOURCE as usize] = 0;
        let mut queue = vec![SOURCE];
        let mut at = 0;
        while let Some(&node) = queue.get(at) {
            at += 1;
            meter.spend(1);
            let mut edge = self.last[node as usize];
            while edge != NONE {
                let (to, capacity, before) = self.edges[edge as usize];
                if capacity > 0 && self.level[to as usize] == NONE {
                    self.level[to as usize] = self.level[node as usize] + 1;
                    queue.push(to);
                }
                edge = before;
            }
        }
        self.level[SINK as usize] != NONE
    }

    /// Sends as much as one path of rising levels takes; 0 if there is none left.
    fn augment(&mut self, meter: &mut Meter<'_>) -> u64 {
        let mut path: Vec<u32> = Vec::new();
        let mut node = SOURCE;
        while node != SINK {
            meter.spend(1);
            let edge = self.next[node as usize];
            if edge == NONE {
                // A dead end: back, and never here again.
                let Some(back) = path.pop() else { return 0 };
                node = self.edges[back as usize ^ 1].0;
                self.next[node as usize] = self.edges[self.next[node as usize] as usize].2;
                continue;
            }
            let (to, capacity, before) = self.edges[edge as usize];
            if capacity > 0 && self.level[to as usize] == self.level[node as usize] + 1 {
                path.push(edge);
                node = to;
            } else {
                self.next[node as usize] = before;
            }
        }
        let some = path.iter().map(|&edge| self.edges[edge as usize].1).min().unwrap_or(0);
        for &edge in &path {
            self.edges[edge as usize].1 = self.edges[edge as usize].1.saturating_sub(some);
            let back = &mut self.edges[edge as usize ^ 1].1;
            *back = back.saturating_add(some);
        }
        some
    }
}
