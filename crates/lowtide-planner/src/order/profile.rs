//! [`Profile`]: an order with what each step needs, and stretches of it as flows of their own.
//!
//! ~~~text
//! needed   2  5  9  4  9  3       tree of maxima: where is the first peak?  step 2
//!               [i ... j)         a stretch: its tasks, with what is live before it. Whatever their order is, the
//!                                 rest of the profile stays as it is.
//! ~~~
//! Cost: a stretch costs its tasks with their edges and cells; a change in it that, and a logarithm.

use super::flow::{Flow, Over, Walk};
use lowtide_core::{Id, IndexVec, Lists, OpId};
use std::ops::Range;

#[derive(Clone, Debug)]
pub(crate) struct Profile<'f> {
    flow: &'f Flow,
    order: Vec<OpId>,
    steps: IndexVec<OpId, u32>,
    needed: Vec<u64>,
    /// What is live before each step.
    live: Vec<u64>,
    /// For each cell, the last step that uses it; the number of steps if it is kept.
    last: Vec<u32>,
    /// Greatest of `needed` below each node; node 1 is the root.
    tree: Vec<u64>,
    leaves: usize,
    /// For each cell, in which stretch it was met last, and its number there.
    met: Vec<(u32, u32)>,
    stretches: u32,
}

impl<'f> Profile<'f> {
    pub(crate) fn new(flow: &'f Flow, order: Vec<OpId>) -> Self {
        let (len, cells) = (order.len(), flow.bytes.len());
        let leaves = len.next_power_of_two().max(1);
        let mut profile = Self {
            flow,
            steps: IndexVec::filled(len, 0),
            needed: vec![0; len],
            live: vec![0; len],
            last: vec![0; cells],
            tree: vec![0; 2 * leaves],
            leaves,
            met: vec![(0, 0); cells],
            stretches: 0,
            order,
        };
        profile.follow();
        profile
    }

    fn follow(&mut self) {
        let mut walk = Walk::new(self.flow);
        let mut counts = vec![0_u32; self.last.len()];
        for at in 0..self.order.len() {
            let task = self.order[at];
            self.steps[task] = index(at);
            self.live[at] = walk.live;
            self.needed[at] = walk.run(task);
            for &cell in &self.flow.uses[task] {
                self.last[cell as usize] = index(at);
                counts[cell as usize] += 1;
            }
        }
        for (cell, &count) in counts.iter().enumerate() {
            if count < self.flow.users[cell] {
                self.last[cell] = index(self.order.len());
            }
        }
        self.refresh(0..self.order.len());
    }

    /// Brings the tree up to date with the steps of a stretch.
    fn refresh(&mut self, stretch: Range<usize>) {
        if stretch.is_empty() {
            return;
        }
        for at in stretch.clone() {
            self.tree[self.leaves + at] = self.needed[at];
        }
        let (mut first, mut last) =
            ((self.leaves + stretch.start) >> 1, (self.leaves + stretch.end - 1) >> 1);
        while last > 0 {
            for node in first..=last {
                self.tree[node] = self.tree[2 * node].max(self.tree[2 * node + 1]);
            }
            (first, last) = (first / 2, last / 2);
        }
    }

    pub(crate) fn peak(&self) -> u64 {
        self.tree[1]
    }

    /// The first step from `from` on that needs at least `bytes`.
    pub(crate) fn next_peak(&self, from: usize, bytes: u64) -> Option<usize> {
        let mut node = self.leaves + from;
        if from >= self.order.len() {
            return None;
        }
        // Up until a subtree to the right has it, then down to its first.
        while self.tree[node] < bytes {
            while node % 2 == 1 {
                node /= 2;
                if node <= 1 {
                    return None;
                }
            }
            node += 1;
        }
        while node < self.leaves {
            node *= 2;
            node += usize::from(self.tree[node] < bytes);
        }
        (node - self.leaves < self.order.len()).then_some(node - self.leaves)
    }

    pub(crate) fn order(&self) -> &[OpId] {
        &self.order
    }

    pub(crate) fn needed(&self, step: usize) -> u64 {
        self.needed[step]
    }

    /// The tasks of a stretch as a flow: numbered by their step, counted from the first.
    pub(crate) fn stretch(&mut self, stretch: Range<usize>) -> Flow {
        self.stretches += 1;
        let mut part = Flow { start: self.live[stretch.start], ..Flow::default() };
        let mut pairs = Vec::new();
        for at in stretch.clone() {
            let (task, number) = (self.order[at], OpId::from_index(at - stretch.start));
            let before = self.flow.before[task].iter().map(|&earlier| self.steps[earlier] as usize);
            let before = before.filter(|step| stretch.contains(step));
            let mut list: Vec<OpId> =
                before.map(|step| OpId::from_index(step - stretch.start)).collect();
            list.sort_unstable();
            pairs.extend(list.iter().map(|&earlier| (earlier, number)));
            part.before.push(list);
            part.extra.push(self.flow.extra[task]);
            part.ops.push([task]);
            self.cells(task, stretch.end, &mut part);
        }
        part.after = Lists::group(stretch.len(), &pairs);
        part
    }

    /// Adds the cells of a task to a stretch that ends before step `end`.
    fn cells(&mut self, task: OpId, end: usize, part: &mut Flow) {
        let flow = self.flow;
        let births: Vec<u32> =
            flow.births[task].iter().map(|&cell| self.meet(cell, end, part)).collect();
        let uses: Vec<u32> =
            flow.uses[task].iter().map(|&cell| self.meet(cell, end, part)).collect();
        for &cell in &uses {
            part.users[cell as usize] += 1;
        }
        let mut overs = Vec::new();
        for over in &flow.overs[task] {
            let start = index(part.over_cells.len());
            for &cell in &flow.over_cells[over.cells.0 as usize..over.cells.1 as usize] {
                let cell = self.meet(cell, end, part);
                part.over_cells.push(cell);
            }
            overs.push(Over { cells: (start, index(part.over_cells.len())), ..*over });
        }
        part.births.push(births);
        part.uses.push(uses);
        part.overs.push(overs);
    }

    /// The number of a cell in a stretch.
    fn meet(&mut self, cell: u32, end: usize, part: &mut Flow) -> u32 {
        let met = &mut self.met[cell as usize];
        if met.0 != self.stretches {
            *met = (self.stretches, index(part.bytes.len()));
            part.bytes.push(self.flow.bytes[cell as usize]);
            part.users.push(u32::from(self.last[cell as usize] as usize >= end));
        }
        met.1
    }

    /// Runs the tasks of a stretch in another order, by their numbers in it.
    pub(crate) fn reorder(&mut self, stretch: Range<usize>, part: &Flow, order: &[OpId]) {
        let mut walk = Walk::new(part);
        let end = index(stretch.end);
        for (at, &number) in stretch.clone().zip(order) {
            let task = part.ops[number][0];
            self.order[at] = task;
            self.steps[task] = index(at);
            self.live[at] = walk.live;
            self.needed[at] = walk.run(number);
            for &cell in &self.flow.uses[task] {
                let last = &mut self.last[cell as usize];
                if *last < end {
                    *last = index(at);
                }
            }
        }
        self.refresh(stretch);
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("steps and cells fit u32")
}
