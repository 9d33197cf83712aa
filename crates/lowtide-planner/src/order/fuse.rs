//! Tasks that may as well run one right after the other become one: the search has fewer to order, and loses nothing.
//!
//! ~~~text
//! sinking     w ─ dequantise ─ v ─ conv        a source runs just before its only reader, if that needs at least as
//!                                              much while it runs: earlier, its bytes would only wait
//! following   conv ─ u ─ relu ─ v              a task that waits for one other only, and leaves no more live than it
//!                                              found, runs right after that, if it needs no more while it runs
//! ~~~
//! Both hold for whatever else has run, so some best order has them side by side. Sources that become the only ones
//! before a task make it a source in its turn, so whole chains of constants sink. Cost: near-linear.

use super::flow::{Flow, Over, most_saved};
use lowtide_core::{Id, IndexVec, Lists, OpId};

/// Tasks with more cells are left alone.
const MOST_CELLS: usize = 64;

/// The same flow in fewer tasks; tasks are numbered in a topological order.
pub(crate) fn fuse(flow: &Flow, topological: &[OpId]) -> Flow {
    let mut fuser = Fuser::new(flow);
    fuser.settle();
    for &task in topological {
        fuser.visit(task);
    }
    fuser.finish(topological)
}

struct Fuser<'f> {
    flow: &'f Flow,
    /// The task that each was joined to.
    group: IndexVec<OpId, OpId>,
    ops: IndexVec<OpId, Vec<OpId>>,
    births: IndexVec<OpId, Vec<u32>>,
    uses: IndexVec<OpId, Vec<u32>>,
    overs: IndexVec<OpId, Vec<Over>>,
    extra: IndexVec<OpId, u64>,
    users: Vec<u32>,
}

impl<'f> Fuser<'f> {
    fn new(flow: &'f Flow) -> Self {
        let lists = |lists: &Lists<OpId, u32>| lists.iter().map(<[u32]>::to_vec).collect();
        Self {
            flow,
            group: flow.tasks().collect(),
            ops: flow.ops.iter().map(<[OpId]>::to_vec).collect(),
            births: lists(&flow.births),
            uses: lists(&flow.uses),
            overs: flow.overs.iter().map(<[Over]>::to_vec).collect(),
            extra: flow.extra.clone(),
            users: flow.users.clone(),
        }
    }

    fn bytes(&self, cells: &[u32]) -> u64 {
        cells.iter().map(|&cell| self.flow.bytes[cell as usize]).sum()
    }

    /// Where an output can be written over something in every order, what it saves is no question.
    fn settle(&mut self) {
        for task in self.flow.tasks() {
            self.settle_task(task);
        }
    }

    fn settle_task(&mut self, task: OpId) {
        let is_one_output = |overs: &[Over]| overs.iter().all(|o| o.output == overs[0].output);
        let overs = &self.overs[task];
        if overs.is_empty() || !is_one_output(overs) {
            return;
        }
        let dies = |over: &Over| {
            let cells = &self.flow.over_cells[over.cells.0 as usize..over.cells.1 as usize];
            cells.iter().all(|&cell| self.users[cell as usize] == 1)
        };
        if let Some(over) = overs.iter().find(|over| dies(over)) {
            self.extra[task] -= over.saves;
            self.overs[task].clear();
        }
    }

    fn group_of(&mut self, task: OpId) -> OpId {
        let mut root = task;
        while self.group[root] != root {
            root = self.group[root];
        }
        let mut at = task;
        while self.group[at] != root {
            at = std::mem::replace(&mut self.group[at], root);
        }
        root
    }

    fn visit(&mut self, task: OpId) {
        let flow = self.flow;
        let mut before = None;
        for &earlier in &flow.before[task] {
            let group = self.group_of(earlier);
            if group != task && before.is_some_and(|known| known != group) {
                return;
            }
            before = if group == task { before } else { Some(group) };
        }
        match before {
            None => self.sink(task),
            Some(earlier) => self.follow(task, earlier),
        }
    }

    /// Joins a source to its only reader.
    fn sink(&mut self, task: OpId) {
        let flow = self.flow;
        let Some(&next) = flow.after[task].first() else { return };
        let reader = self.group_of(next);
        let is_alone = flow.after[task].iter().all(|&other| self.group[other] == reader);
        let is_read_once = self.births[task].iter().all(|&cell| self.users[cell as usize] == 1);
        let born = self.bytes(&self.births[task]);
        let room = born + self.extra[reader] - most_saved(&self.overs[reader]);
        if reader == task
            || !is_alone
            || !is_read_once
            || !self.uses[task].is_empty()
            || !self.overs[task].is_empty()
            || self.extra[task] > room
            || self.uses[reader].len() > MOST_CELLS
        {
            return;
        }
        self.settle_task(reader);
        self.extra[reader] += born;
        let births = std::mem::take(&mut self.births[task]);
        self.uses[reader].retain(|cell| !births.contains(cell));
        for &cell in &births {
            self.users[cell as usize] = 0;
        }
        let mut ops = std::mem::take(&mut self.ops[task]);
        ops.append(&mut self.ops[reader]);
        self.ops[reader] = ops;
        self.group[task] = reader;
    }

    /// Joins a task to the only one that it waits for.
    fn follow(&mut self, task: OpId, earlier: OpId) {
        let freed: u64 = self.uses[task]
            .iter()
            .filter(|&&cell| self.users[cell as usize] == 1)
            .map(|&cell| self.flow.bytes[cell as usize])
            .sum();
        let living = |cell: &&u32| self.users[**cell as usize] > 0;
        let left: u64 = self.births[earlier]
            .iter()
            .filter(living)
            .map(|&cell| self.flow.bytes[cell as usize])
            .sum();
        let born = self.bytes(&self.births[task]);
        let lists = [&self.uses[task], &self.uses[earlier], &self.births[earlier]];
        if born > freed
            || !self.overs[task].is_empty()
            || left + self.extra[task] > self.extra[earlier] - most_saved(&self.overs[earlier])
            || lists.iter().any(|list| list.len() > MOST_CELLS)
        {
            return;
        }
        for cell in std::mem::take(&mut self.uses[task]) {
            let is_own = self.births[earlier].contains(&cell);
            if is_own || self.uses[earlier].contains(&cell) {
                self.users[cell as usize] -= 1;
            } else {
                self.uses[earlier].push(cell);
            }
        }
        let users = &self.users;
        self.births[earlier].retain(|&cell| users[cell as usize] > 0);
        let births = std::mem::take(&mut self.births[task]);
        self.births[earlier].extend(births);
        let ops = std::mem::take(&mut self.ops[task]);
        self.ops[earlier].extend(ops);
        self.group[task] = earlier;
    }

    fn finish(mut self, topological: &[OpId]) -> Flow {
        let heads: Vec<OpId> =
            topological.iter().copied().filter(|&task| self.group[task] == task).collect();
        let mut numbers = IndexVec::filled(topological.len(), OpId::new(0));
        for (number, &head) in heads.iter().enumerate() {
            numbers[head] = OpId::from_index(number);
        }
        let mut pairs = Vec::new();
        for &task in topological {
            let to = numbers[self.group_of(task)];
            for &earlier in &self.flow.before[task] {
                let from = numbers[self.group_of(earlier)];
                if from != to {
                    pairs.push((from, to));
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let back: Vec<(OpId, OpId)> = pairs.iter().map(|&(from, to)| (to, from)).collect();
        let mut fused = Flow {
            after: Lists::group(heads.len(), &pairs),
            before: Lists::group(heads.len(), &back),
            bytes: self.flow.bytes.clone(),
            over_cells: self.flow.over_cells.clone(),
            start: self.flow.start,
            users: std::mem::take(&mut self.users),
            heads: heads.iter().copied().collect(),
            ..Flow::default()
        };
        for &head in &heads {
            self.uses[head].sort_unstable();
            fused.births.push(self.births[head].iter().copied());
            fused.uses.push(self.uses[head].iter().copied());
            fused.overs.push(self.overs[head].iter().copied());
            fused.extra.push(self.extra[head]);
            fused.ops.push(self.ops[head].iter().copied());
        }
        fused
    }
}
