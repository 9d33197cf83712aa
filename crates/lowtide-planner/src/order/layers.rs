//! Search over sets of tasks that have run: is there an order that needs no more than a target?
//!
//! ~~~text
//! {}  ──a──> {a}  ──b──> {a,b}        a state is a set; what is live follows from it, so each set is kept once,
//!   └──b──> {b}  ──a──┘               however it was reached. Layer k: sets of k tasks.
//! ~~~
//! A step is allowed if it needs at most the target. Where no step of a reached set is, the set is dead; if all are,
//! and none was left out, no order meets the target, and the least that was refused is a new lower bound.
//! Two rules cut the search and lose nothing, because what comes free only grows with the set: a task that fits and
//! leaves no more live than before runs at once (*safe commit*), and so does a chain of tasks each of which only the
//! one before made ready, if no set on the way has less live than its end and that is no more than at its start.
//! With a width, only so many sets of a layer are kept, those with the least live; then only success means something.
//! Serenity (Ahn et al., `MLSys` 2020) searches the same sets; the commits and the width are from here.
//! Cost: states times ready tasks times their edges, in steps of the meter.

use super::flow::{Flow, Over, saved};
use crate::meter::Meter;
use crate::random;
use lowtide_core::OpId;
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// An order that meets the target.
    Order(Vec<OpId>),
    /// No order meets it; none needs less than this.
    Nothing(u64),
    /// It was left open.
    Open,
}

/// Looks for an order of all tasks that needs at most `target`, among at most `width` sets a layer.
pub(crate) fn search(flow: &Flow, target: u64, width: usize, meter: &mut Meter<'_>) -> Found {
    Search::new(flow, target, width).run(meter)
}

/// Steps from a set that are followed whatever the width; those with the least live come first.
const LEAST_BRANCHES: usize = 8;
/// So many users of cells are looked at in one step.
const LOOKS: u64 = 8;

/// A set of tasks. Tasks come in an order that some schedule follows, and a set that is reached has nearly all up to
/// some task and none beyond: only the words between are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Bits {
    /// So many words before these are full.
    full: u32,
    words: SmallVec<[u64; 2]>,
}

impl Bits {
    fn has(&self, task: u32) -> bool {
        let word = task / 64;
        word < self.full || {
            let word = self.words.get((word - self.full) as usize);
            word.is_some_and(|word| word & (1 << (task % 64)) != 0)
        }
    }

    fn insert(&mut self, task: u32) {
        let at = (task / 64 - self.full) as usize;
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
        }
        self.words[at] |= 1 << (task % 64);
        let full = self.words.iter().take_while(|&&word| word == u64::MAX).count();
        if full > 0 {
            self.words.drain(..full);
            self.full += index(full);
        }
    }
}

/// Tasks, mostly so few that they need no memory of their own.
type Few = SmallVec<[u32; 8]>;

/// A set that was reached.
#[derive(Clone, Debug)]
struct State {
    bits: Bits,
    /// Equal sets have equal ones.
    hash: u64,
    live: u64,
    /// Tasks that may run next, ascending.
    ready: Few,
    /// Where its tasks are written down.
    trail: u32,
}

/// The tasks that led from one set to another: a range of [`Search::log`].
#[derive(Clone, Copy, Debug)]
struct Trail {
    before: u32,
    tasks: (u32, u32),
}

#[expect(clippy::disallowed_types, reason = "it is only asked, never walked through")]
type Known = std::collections::HashMap<u64, u32, BuildHasherDefault<Hashed>>;

#[derive(Default)]
struct Layer {
    states: Vec<State>,
    /// By its hash, a state that has it.
    known: Known,
}

struct Search<'f> {
    flow: &'f Flow,
    target: u64,
    width: usize,
    /// Tasks that use each cell: a range of `users`, from the start of the cell to that of the next.
    first_user: Vec<u32>,
    users: Vec<u32>,
    hashes: Vec<u64>,
    is_kept: Vec<bool>,
    /// What it costs to look at the cells of each task: next to nothing but for those with many.
    looks: Vec<u64>,
    layers: BTreeMap<usize, Layer>,
    trails: Vec<Trail>,
    log: Vec<u32>,
    /// The least that was needed by a step that was refused.
    refused: u64,
    is_cut: bool,
}

impl<'f> Search<'f> {
    fn new(flow: &'f Flow, target: u64, width: usize) -> Self {
        let (first_user, users) = users(flow);
        let is_kept = first_user.windows(2).zip(&flow.users);
        let is_kept = is_kept.map(|(range, &count)| range[1] - range[0] < count).collect();
        let used = |cell: &u32| first_user[*cell as usize + 1] - first_user[*cell as usize];
        let look = |task| flow.uses[task].iter().map(|cell| u64::from(used(cell))).sum::<u64>();
        let looks = flow.tasks().map(|task| look(task) / LOOKS).collect();
        let mut seed = SEED;
        let hashes = flow.tasks().map(|_| random::next(&mut seed)).collect();
        Self {
            flow,
            target,
            width,
            is_kept,
            looks,
            first_user,
            users,
            hashes,
            layers: BTreeMap::new(),
            trails: Vec::new(),
            log: Vec::new(),
            refused: u64::MAX,
            is_cut: false,
        }
    }

    fn run(mut self, meter: &mut Meter<'_>) -> Found {
        let root = self.root();
        let all = root.ready.clone();
        self.reach(root, 0, all, meter);
        while let Some((count, mut layer)) = self.layers.pop_first() {
            if count == self.flow.len() {
                return Found::Order(self.order(layer.states[0].trail));
            }
            if layer.states.len() > self.width {
                layer.states.sort_by_key(|state| state.live);
                layer.states.truncate(self.width);
                self.is_cut = true;
            }
            drop(layer.known);
            for state in layer.states {
                if meter.is_out() {
                    return Found::Open;
                }
                self.expand(&state, count, meter);
            }
        }
        if self.is_cut { Found::Open } else { Found::Nothing(self.refused) }
    }

    fn root(&mut self) -> State {
        let is_ready = |task: &OpId| self.flow.before[*task].is_empty();
        let ready = self.flow.tasks().filter(is_ready).map(OpId::raw).collect();
        let trail = self.trail(u32::MAX, &[]);
        State { bits: Bits::default(), hash: 0, live: self.flow.start, ready, trail }
    }

    fn trail(&mut self, before: u32, tasks: &[u32]) -> u32 {
        let start = self.log.len();
        self.log.extend_from_slice(tasks);
        let tasks = (index(start), index(self.log.len()));
        self.trails.push(Trail { before, tasks });
        index(self.trails.len() - 1)
    }

    fn order(&self, mut trail: u32) -> Vec<OpId> {
        let mut order = Vec::new();
        while trail != u32::MAX {
            let Trail { before, tasks } = self.trails[trail as usize];
            let tasks = &self.log[tasks.0 as usize..tasks.1 as usize];
            order.extend(tasks.iter().rev().map(|&task| OpId::new(task)));
            trail = before;
        }
        order.reverse();
        order
    }

    fn expand(&mut self, state: &State, count: usize, meter: &mut Meter<'_>) {
        let mut steps: Vec<(u64, u32)> = Vec::with_capacity(state.ready.len());
        for &task in &state.ready {
            let needed = self.needed(state, task);
            if needed > self.target {
                self.refused = self.refused.min(needed);
            } else {
                steps.push((self.live_after(state, task), task));
            }
        }
        let looks: u64 = state.ready.iter().map(|&task| self.looks[task as usize]).sum();
        meter.spend(2 * state.ready.len() as u64 + looks);
        let branches = (self.width / 4).max(LEAST_BRANCHES);
        if steps.len() > branches {
            steps.sort_unstable();
            steps.truncate(branches);
            self.is_cut = true;
        }
        for (_, task) in steps {
            let mut next = state.clone();
            let mut touched = Few::new();
            self.step(&mut next, task, &mut touched, meter);
            next.trail = self.trail(state.trail, &[task]);
            self.reach(next, count + 1, touched, meter);
        }
    }

    /// Commits what is safe, then keeps the set if it is new. Only the `touched` tasks may have become safe.
    fn reach(&mut self, mut state: State, mut count: usize, touched: Few, meter: &mut Meter<'_>) {
        let mut run = Few::new();
        let (mut open, mut least) = (touched, state.live);
        while let Some(task) = open.pop() {
            if state.ready.binary_search(&task).is_err() {
                continue;
            }
            let Some(tasks) = self.safe(&state, task, meter) else { continue };
            for &task in &tasks {
                self.step(&mut state, task, &mut open, meter);
            }
            run.extend_from_slice(&tasks);
            if state.live < least {
                // What had no room may have some now.
                least = state.live;
                open.extend_from_slice(&state.ready);
            }
        }
        count += run.len();
        let layer = self.layers.entry(count).or_default();
        if let Some(&known) = layer.known.get(&state.hash)
            && layer.states[known as usize].bits == state.bits
        {
            return;
        }
        // Where two sets have one hash, the second is found no more, and at worst is followed twice.
        layer.known.insert(state.hash, index(layer.states.len()));
        if !run.is_empty() {
            state.trail = self.trail(state.trail, &run);
        }
        self.layers.entry(count).or_default().states.push(state);
    }

    /// The tasks from `task` on that may as well run now.
    fn safe(&self, state: &State, task: u32, meter: &mut Meter<'_>) -> Option<Few> {
        meter.spend(2 + self.looks[task as usize]);
        if self.needed(state, task) > self.target {
            return None;
        }
        if self.live_after(state, task) <= state.live {
            return Some(smallvec![task]);
        }
        self.safe_chain(state, task, meter)
    }

    /// A chain from `first` on that ends with no more live than now, and no less live on the way.
    fn safe_chain(&self, state: &State, first: u32, meter: &mut Meter<'_>) -> Option<Few> {
        const LONGEST: usize = 8;
        let mut chain: Few = smallvec![first];
        let mut next = self.only_follower(state, first)?;
        meter.spend(2 + state.bits.words.len() as u64 / 4);
        let mut at = state.clone();
        let mut least = u64::MAX;
        self.step(&mut at, first, &mut Few::new(), meter);
        while chain.len() < LONGEST {
            least = least.min(at.live);
            if self.needed(&at, next) > self.target {
                return None;
            }
            let follower = self.only_follower(&at, next);
            self.step(&mut at, next, &mut Few::new(), meter);
            chain.push(next);
            if at.live <= state.live {
                return (at.live <= least).then_some(chain);
            }
            next = follower?;
        }
        None
    }

    /// The one task that `task` makes ready.
    fn only_follower(&self, state: &State, task: u32) -> Option<u32> {
        let is_ready = |next: &&OpId| {
            let before = self.flow.before[**next].iter();
            let mut others = before.filter(|earlier| earlier.raw() != task);
            others.all(|earlier| state.bits.has(earlier.raw()))
        };
        let mut fresh = self.flow.after[OpId::new(task)].iter().filter(is_ready);
        let only = fresh.next()?;
        fresh.next().is_none().then_some(only.raw())
    }

    // The model, on sets.

    fn users(&self, cell: u32) -> &[u32] {
        let range = &self.first_user[cell as usize..cell as usize + 2];
        &self.users[range[0] as usize..range[1] as usize]
    }

    fn is_last(&self, state: &State, task: u32, cell: u32) -> bool {
        !self.is_kept[cell as usize]
            && self.users(cell).iter().all(|&user| user == task || state.bits.has(user))
    }

    fn needed(&self, state: &State, task: u32) -> u64 {
        let id = OpId::new(task);
        let overs = &self.flow.overs[id];
        let all = state.live + self.flow.extra[id];
        if overs.is_empty() || all <= self.target {
            return all;
        }
        let dies = |over: &Over| {
            let cells = &self.flow.over_cells[over.cells.0 as usize..over.cells.1 as usize];
            cells.iter().all(|&cell| self.is_last(state, task, cell))
        };
        all - saved(overs, dies)
    }

    fn live_after(&self, state: &State, task: u32) -> u64 {
        let id = OpId::new(task);
        let bytes = |cell: &u32| self.flow.bytes[*cell as usize];
        let born: u64 = self.flow.births[id].iter().map(bytes).sum();
        let dead = self.flow.uses[id].iter().filter(|&&cell| self.is_last(state, task, cell));
        state.live + born - dead.map(bytes).sum::<u64>()
    }

    /// Runs a task, and tells with which tasks more may come free from now on.
    fn step(&self, state: &mut State, task: u32, touched: &mut Few, meter: &mut Meter<'_>) {
        state.live = self.live_after(state, task);
        state.bits.insert(task);
        state.hash ^= self.hashes[task as usize];
        let at = state.ready.binary_search(&task).expect("only a ready task runs");
        state.ready.remove(at);
        let id = OpId::new(task);
        for &cell in &self.flow.uses[id] {
            let mut left = self.users(cell).iter().filter(|&&user| !state.bits.has(user));
            if let (Some(&last), None) = (left.next(), left.next()) {
                touched.push(last);
            }
        }
        let after = &self.flow.after[id];
        let looks = self.looks[task as usize];
        meter.spend(1 + looks + after.len() as u64 + state.bits.words.len() as u64 / 8);
        for &next in after {
            let before = &self.flow.before[next];
            if before.iter().all(|earlier| state.bits.has(earlier.raw())) {
                let at = state.ready.partition_point(|&ready| ready < next.raw());
                state.ready.insert(at, next.raw());
                touched.push(next.raw());
            }
        }
    }
}

fn index(len: usize) -> u32 {
    u32::try_from(len).expect("a search has a budget")
}

/// Tasks that use each cell, all in one list, and where each cell's begin.
fn users(flow: &Flow) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0_u32; flow.bytes.len() + 1];
    for task in flow.tasks() {
        flow.uses[task].iter().for_each(|&cell| first[cell as usize + 1] += 1);
    }
    for cell in 0..flow.bytes.len() {
        first[cell + 1] += first[cell];
    }
    let mut next = first.clone();
    let mut users = vec![0; first[flow.bytes.len()] as usize];
    for task in flow.tasks() {
        for &cell in &flow.uses[task] {
            let at = &mut next[cell as usize];
            users[*at as usize] = task.raw();
            *at += 1;
        }
    }
    (first, users)
}

/// Where the sequence of the tasks' hashes begins.
const SEED: u64 = 0x2545_f491_4f6c_dd1d;

/// Takes what is a hash already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}
