//! Simple rules, one after the other: each gives an order in near-linear time.
//!
//! ~~~text
//! always run the ready task that ...                    rule
//!   frees most against what it writes                   freed      (XLA's list scheduler)
//!   fits under the peak so far and adds least           least peak (Inductor's LPMF, here O(n log n))
//!   became ready first / last                           breadth    / depth
//! walk back from what nobody waits for, and write down
//!   a task after all that it waits for                  reverse depth first (ONNX Runtime), by operands' weight (XLA)
//! ~~~
//! None is optimal; the best of all seldom is far off, and often meets the bound, which ends the search before it
//! begins.

use super::flow::{Flow, Walk};
use lowtide_core::{IndexVec, OpId};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// A rule's name, and the order that it gives.
pub(crate) type Rule = (&'static str, fn(&Flow) -> Vec<OpId>);

/// All rules.
pub(crate) const RULES: [Rule; 8] = [
    ("freed", freed),
    ("least peak", least_peak),
    ("reverse depth first", |flow| backward(flow, &backward_by_number)),
    ("post-order", |flow| backward(flow, &forward_by_number)),
    ("heaviest first", |flow| backward(flow, &weights(flow))),
    ("depth first", depth_first),
    ("breadth first", breadth_first),
    ("written last", written_last),
];

/// Which tasks wait for nothing any more.
struct Ready<'f> {
    flow: &'f Flow,
    missing: IndexVec<OpId, u32>,
}

impl<'f> Ready<'f> {
    fn new(flow: &'f Flow) -> Self {
        let count = |list: &[OpId]| u32::try_from(list.len()).expect("edges fit u32");
        Self { flow, missing: flow.before.iter().map(count).collect() }
    }

    fn first(&self) -> impl Iterator<Item = OpId> + '_ {
        self.flow.tasks().filter(|&task| self.missing[task] == 0)
    }

    /// Tells of each task that may run now that `task` has.
    fn run(&mut self, task: OpId, mut ready: impl FnMut(OpId)) {
        for &next in &self.flow.after[task] {
            self.missing[next] -= 1;
            if self.missing[next] == 0 {
                ready(next);
            }
        }
    }
}

fn breadth_first(flow: &Flow) -> Vec<OpId> {
    let mut ready = Ready::new(flow);
    let mut queue: VecDeque<OpId> = ready.first().collect();
    let mut order = Vec::with_capacity(flow.len());
    while let Some(task) = queue.pop_front() {
        order.push(task);
        ready.run(task, |next| queue.push_back(next));
    }
    order
}

fn depth_first(flow: &Flow) -> Vec<OpId> {
    let mut ready = Ready::new(flow);
    let mut stack: Vec<OpId> = ready.first().collect();
    stack.reverse();
    let mut order = Vec::with_capacity(flow.len());
    while let Some(task) = stack.pop() {
        order.push(task);
        let top = stack.len();
        ready.run(task, |next| stack.push(next));
        stack[top..].reverse();
    }
    order
}

/// How to sort what a task waits for; the last one is walked first.
type Preference<'a> = dyn Fn(&mut [OpId]) + 'a;

fn backward_by_number(tasks: &mut [OpId]) {
    tasks.sort_unstable();
}

fn forward_by_number(tasks: &mut [OpId]) {
    tasks.sort_unstable_by(|a, b| b.cmp(a));
}

/// Those that most tasks lean on come first, then the largest.
fn weights(flow: &Flow) -> impl Fn(&mut [OpId]) + use<> {
    let mut weights: IndexVec<OpId, (u64, u64)> = IndexVec::filled(flow.len(), (0, 0));
    for task in breadth_first(flow) {
        let users = flow.after[task].len() as u64;
        let mut sum = (users.saturating_sub(1), flow.extra[task]);
        for &earlier in &flow.before[task] {
            let (more, bytes) = weights[earlier];
            sum = (sum.0.saturating_add(more), sum.1.saturating_add(bytes));
        }
        // Shared tasks count once for each way that leads to them, which soon is too much for any number.
        weights[task] = (sum.0.min(1 << 40), sum.1.min(1 << 60));
    }
    move |tasks: &mut [OpId]| tasks.sort_by_key(|&task| (weights[task], Reverse(task)))
}

/// Walks back from the tasks that nobody waits for.
fn backward(flow: &Flow, sort: &Preference<'_>) -> Vec<OpId> {
    let mut leaves: Vec<OpId> = flow.tasks().filter(|&t| flow.after[t].is_empty()).collect();
    sort(&mut leaves);
    let mut seen = IndexVec::filled(flow.len(), false);
    let mut order = Vec::with_capacity(flow.len());
    let mut stack: Vec<(OpId, bool)> = leaves.into_iter().map(|task| (task, false)).collect();
    let mut list = Vec::new();
    while let Some((task, is_done)) = stack.pop() {
        if is_done {
            order.push(task);
        } else if !seen[task] {
            seen[task] = true;
            stack.push((task, true));
            list.clear();
            list.extend(flow.before[task].iter().filter(|&&earlier| !seen[earlier]));
            sort(&mut list);
            stack.extend(list.iter().map(|&earlier| (earlier, false)));
        }
    }
    order
}

/// Prefers what was written last: readers of fresh bytes.
fn written_last(flow: &Flow) -> Vec<OpId> {
    let mut ready = Ready::new(flow);
    let mut heap: BinaryHeap<(u32, Reverse<OpId>)> =
        ready.first().map(|task| (0, Reverse(task))).collect();
    let mut order = Vec::with_capacity(flow.len());
    while let Some((_, Reverse(task))) = heap.pop() {
        order.push(task);
        let now = u32::try_from(order.len()).expect("tasks fit u32");
        ready.run(task, |next| heap.push((now, Reverse(next))));
    }
    order
}

/// What running each task adds in the end. It only sinks, as more and more comes free with it.
struct Growth {
    of: IndexVec<OpId, i64>,
    /// For each cell, the xor of its users that have not run: the last one, when only one is left.
    users: Vec<u32>,
    left: Vec<u32>,
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("sizes of a graph are far below")
}

impl Growth {
    fn new(flow: &Flow) -> Self {
        let born = |list: &[u32]| list.iter().map(|&cell| signed(flow.bytes[cell as usize])).sum();
        let of = flow.births.iter().map(born).collect();
        let mut all = Self { of, users: vec![0; flow.bytes.len()], left: flow.users.clone() };
        for task in flow.tasks() {
            flow.uses[task].iter().for_each(|&cell| all.users[cell as usize] ^= task.raw());
        }
        for task in flow.tasks() {
            for &cell in flow.uses[task].iter().filter(|&&cell| all.left[cell as usize] == 1) {
                all.of[task] -= signed(flow.bytes[cell as usize]);
            }
        }
        all
    }

    /// Tells of each task with which more comes free, now that `task` has run.
    fn run(&mut self, flow: &Flow, task: OpId, mut sinks: impl FnMut(OpId)) {
        for &cell in &flow.uses[task] {
            let at = cell as usize;
            self.users[at] ^= task.raw();
            self.left[at] -= 1;
            // Of a cell that is kept, one user is left that is no task.
            let user = OpId::new(self.users[at]);
            if self.left[at] == 1 && flow.uses[user].binary_search(&cell).is_ok() && user != task {
                self.of[user] -= signed(flow.bytes[at]);
                sinks(user);
            }
        }
    }
}

fn freed(flow: &Flow) -> Vec<OpId> {
    let (mut ready, mut growth) = (Ready::new(flow), Growth::new(flow));
    let mut is_ready: IndexVec<OpId, bool> = IndexVec::filled(flow.len(), false);
    let mut heap: BinaryHeap<(Reverse<i64>, usize, Reverse<OpId>)> = BinaryHeap::new();
    let mut open: Vec<OpId> = ready.first().collect();
    let mut order = Vec::with_capacity(flow.len());
    loop {
        for task in open.drain(..) {
            is_ready[task] = true;
            heap.push((Reverse(growth.of[task]), flow.after[task].len(), Reverse(task)));
        }
        let Some((Reverse(key), _, Reverse(task))) = heap.pop() else { return order };
        // Better entries replace older ones, which are dropped when they come up.
        if !is_ready[task] || key != growth.of[task] {
            continue;
        }
        is_ready[task] = false;
        order.push(task);
        ready.run(task, |next| open.push(next));
        growth.run(flow, task, |user| {
            if is_ready[user] {
                open.push(user);
            }
        });
    }
}

fn least_peak(flow: &Flow) -> Vec<OpId> {
    let (mut ready, mut growth) = (Ready::new(flow), Growth::new(flow));
    let (mut walk, mut table) = (Walk::new(flow), Table::new(flow));
    let mut open: Vec<OpId> = ready.first().collect();
    let mut order = Vec::with_capacity(flow.len());
    let mut peak = 0;
    loop {
        for task in open.drain(..) {
            table.set(task, growth.of[task]);
        }
        let Some(task) = table.take(peak.max(walk.live) - walk.live) else { return order };
        peak = peak.max(walk.run(task));
        order.push(task);
        ready.run(task, |next| open.push(next));
        growth.run(flow, task, |user| {
            if table.has(user) {
                open.push(user);
            }
        });
    }
}

/// Tasks sorted by what they add while they run, with a tree of the least growth of the ready ones.
struct Table {
    /// Each task's place.
    places: IndexVec<OpId, usize>,
    tasks: Vec<OpId>,
    extra: Vec<u64>,
    tree: Vec<(i64, u32)>,
    leaves: usize,
    ready: BTreeSet<usize>,
}

const NOTHING: (i64, u32) = (i64::MAX, u32::MAX);

impl Table {
    fn new(flow: &Flow) -> Self {
        let mut tasks: Vec<OpId> = flow.tasks().collect();
        tasks.sort_by_key(|&task| (flow.extra[task], task));
        let mut places = IndexVec::filled(flow.len(), 0);
        for (place, &task) in tasks.iter().enumerate() {
            places[task] = place;
        }
        let leaves = tasks.len().next_power_of_two().max(1);
        let extra = tasks.iter().map(|&task| flow.extra[task]).collect();
        Self {
            places,
            tasks,
            extra,
            tree: vec![NOTHING; 2 * leaves],
            leaves,
            ready: BTreeSet::new(),
        }
    }

    fn has(&self, task: OpId) -> bool {
        self.ready.contains(&self.places[task])
    }

    fn put(&mut self, place: usize, key: (i64, u32)) {
        let mut node = self.leaves + place;
        self.tree[node] = key;
        while node > 1 {
            node /= 2;
            self.tree[node] = self.tree[2 * node].min(self.tree[2 * node + 1]);
        }
    }

    fn set(&mut self, task: OpId, growth: i64) {
        let place = self.places[task];
        self.ready.insert(place);
        self.put(place, (growth, task.raw()));
    }

    /// The ready task that adds at most `room` and grows least; if none fits, the one that adds least.
    fn take(&mut self, room: u64) -> Option<OpId> {
        let fitting = self.extra.partition_point(|&extra| extra <= room);
        let (_, best) = self.least(fitting);
        let place = match best {
            u32::MAX => self.ready.first().copied()?,
            task => self.places[OpId::new(task)],
        };
        self.ready.remove(&place);
        self.put(place, NOTHING);
        Some(self.tasks[place])
    }

    /// The least key among the first places.
    fn least(&self, count: usize) -> (i64, u32) {
        let (mut low, mut high) = (self.leaves, self.leaves + count);
        let mut least = NOTHING;
        while low < high {
            if low % 2 == 1 {
                least = least.min(self.tree[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                least = least.min(self.tree[high]);
            }
            (low, high) = (low / 2, high / 2);
        }
        least
    }
}
