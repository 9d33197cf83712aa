//! Plan to fences: which operators have to wait for others although no data makes them?
//!
//! ~~~text
//! step 3   g reads a                       h comes over the bytes of a when all that use a have run: on one worker they
//! step 7   h writes b where a was          have, in step 7. On several h may begin before g is over, unless data leads
//!          ──> FENCE g before h            from g to h, or a fence makes it wait.
//! ~~~
//! Runs are looked at in their order. For each byte of the arena it is known who wrote it last and who has read it since;
//! what a run has to come after, and is not led to by data or by fences that are there already, gets one, the latest
//! first, so that no fence follows from others. Cost: near-linear. Each look backwards ends at the earliest run in question
//! or when it has seen so many runs; then what data alone does not order ([`Reach`]) gets a fence: one more is better than a
//! longer look.

use lowtide_core::{
    Bytes, Event, Graph, Id, IndexVec, Lists, Occupant, Plan, Reach, ResidenceId, RunId, Sharing,
    SpaceKind, TensorKind,
};
use std::collections::{BTreeMap, BTreeSet};

/// The longest look backwards, in runs and what they wait for.
const LONGEST: u64 = 1 << 13;
/// All looks together: for each run, and for a plan at least.
const LOOKS: (u64, u64) = (256, 1 << 22);

/// Puts the fences that a plan needs into its events, each before the run that waits.
pub(crate) fn add_fences(graph: &Graph, plan: &mut Plan) {
    let fences = fences(graph, plan);
    let mut events = Vec::with_capacity(plan.events.len() + fences.item_count());
    for &event in &plan.events {
        if let Event::Exec(run) = event {
            events.extend(fences[run].iter().map(|&before| Event::Fence(before)));
        }
        events.push(event);
    }
    plan.events = events;
}

/// For each run, the ones that it has to wait for and would not.
fn fences(graph: &Graph, plan: &Plan) -> Lists<RunId, RunId> {
    // What has run before, an operator that runs again by its last time.
    let mut runs = IndexVec::filled(graph.ops().len(), None);
    let mut bytes = Shadow::with_inputs(graph, plan);
    let mut past = Past::new(plan.schedule.len());
    // What data orders, for what looks do not show; only where each operator runs once.
    let (mut reach, runs_once) = (None, plan.schedule.len() == graph.ops().len());
    let mut fences = Lists::new();
    for (run, &op) in plan.schedule.iter_enumerated() {
        let used = Used::of(graph, plan, run);
        let mut wanted = BTreeSet::new();
        for range in &used.reads {
            bytes.writers(*range, &mut wanted);
        }
        for range in &used.writes {
            bytes.users(*range, &mut wanted);
        }
        wanted.remove(&run);
        let mut data: Vec<RunId> =
            graph.predecessors(op).into_iter().filter_map(|op| runs[op]).collect();
        data.sort_unstable();
        let mut is_ordered = |other: RunId| {
            runs_once && {
                let reach = reach.get_or_insert_with(|| Reach::new(graph));
                reach.is_before(plan.op(other), op)
            }
        };
        fences.push(past.add(data, wanted, &mut is_ordered));
        runs[op] = Some(run);
        for range in used.reads {
            bytes.read(range, run);
        }
        for range in used.writes {
            bytes.write(range, Some(run));
        }
    }
    fences
}

/// First byte and end in one arena.
type Range = (u32, u64, u64);

/// Bytes of the arenas that a run has to itself, and those that it only reads.
struct Used {
    reads: Vec<Range>,
    writes: Vec<Range>,
}

impl Used {
    fn of(graph: &Graph, plan: &Plan, run: RunId) -> Self {
        let op = &graph.ops()[plan.op(run)];
        let row = &plan.bindings[run];
        let place = |tensor, bound: Option<ResidenceId>| {
            let (space, start) = start(plan, bound?)?;
            let extent = graph.extent(tensor);
            let start = start + extent.start.0;
            Some((space, start, start + extent.bytes.unwrap_or_default().0))
        };
        let inputs = op.inputs.iter().zip(row).map(|(&input, &bound)| (input, place(input, bound)));
        let inputs: BTreeMap<_, _> = inputs.filter_map(|(t, range)| Some((t, range?))).collect();
        let in_place = |output, range: Range| {
            op.sharing.iter().any(|sharing| match *sharing {
                Sharing::PieceOf { output: piece, of, offset: Bytes(offset) } => {
                    let base = inputs.get(&of).map(|base| (base.0, base.1 + offset));
                    piece == output && base == Some((range.0, range.1))
                }
                _ => false,
            })
        };
        let outputs = op.outputs.iter().zip(&row[op.inputs.len()..]);
        let written = outputs.filter(|&(&output, _)| graph.content(output) == output);
        let mut writes: Vec<Range> = written
            .filter_map(|(&output, &bound)| {
                place(output, bound).filter(|&range| !in_place(output, range))
            })
            .collect();
        if let (Some(scratch), Some(&Some(bound))) = (op.needed_scratch(), row.last()) {
            let bytes = scratch.bound().unwrap_or_default().0;
            writes.extend(start(plan, bound).map(|(space, start)| (space, start, start + bytes)));
        }
        let reads = inputs.into_values();
        Self { reads: reads.collect(), writes }
    }
}

/// The arena and the first byte of a residence; none in a pool, where nobody else comes to lie.
fn start(plan: &Plan, id: ResidenceId) -> Option<(u32, u64)> {
    let (space, offset) = plan.address(id)?;
    (plan.spaces[space].kind == SpaceKind::Arena).then_some((space.raw(), offset.0))
}

/// Who used each byte since it was written, the last first: a place in `uses`.
#[derive(Default)]
struct Shadow {
    /// By arena and first byte: the end, and the last use.
    segments: BTreeMap<(u32, u64), (u64, u32)>,
    /// Each with the use before it; that of the caller, who writes inputs before the first run, has no run.
    uses: Vec<(Option<RunId>, Option<u32>)>,
}

impl Shadow {
    fn with_inputs(graph: &Graph, plan: &Plan) -> Self {
        let mut shadow = Self::default();
        for (id, row) in plan.residences.iter_enumerated() {
            let is_input = matches!(row.what, Occupant::Tensor(tensor)
                if graph.tensors()[tensor].kind == TensorKind::Input);
            if let Some((space, first)) = start(plan, id).filter(|_| is_input) {
                let end = first + row.size.bound().unwrap_or_default().0;
                shadow.write((space, first, end), None);
            }
        }
        shadow
    }

    fn overlapping(&self, (space, start, end): Range) -> Vec<(Range, u32)> {
        let before = self.segments.range(..(space, start)).next_back();
        let within = self.segments.range((space, start)..(space, end.max(start)));
        let clipped =
            before.into_iter().chain(within).filter_map(|(&(other, from), &(to, last))| {
                let (from, to) = (from.max(start), to.min(end));
                (other == space && from < to).then_some(((space, from, to), last))
            });
        clipped.collect()
    }

    /// Cuts a range out of what is known.
    fn cut(&mut self, (space, start, end): Range) {
        for ((_, from, _), _) in self.overlapping((space, start, end)) {
            let whole = self.segments.range(..=(space, from)).next_back();
            let (&(_, first), &(last_end, last)) = whole.expect("it overlaps");
            self.segments.remove(&(space, first));
            if first < start {
                self.segments.insert((space, first), (start, last));
            }
            if end < last_end {
                self.segments.insert((space, end), (last_end, last));
            }
        }
    }

    fn push(&mut self, range: Range, run: Option<RunId>, before: Option<u32>) {
        let last = u32::try_from(self.uses.len()).expect("there are fewer uses than operands");
        self.uses.push((run, before));
        self.segments.insert((range.0, range.1), (range.2, last));
    }

    fn write(&mut self, range: Range, run: Option<RunId>) {
        self.cut(range);
        if range.1 < range.2 {
            self.push(range, run, None);
        }
    }

    fn read(&mut self, range: Range, run: RunId) {
        for (part, last) in self.overlapping(range) {
            if self.uses[last as usize].0 != Some(run) {
                self.cut(part);
                self.push(part, Some(run), Some(last));
            }
        }
    }

    /// All that used a range since it was written, and who wrote it.
    fn users(&self, range: Range, found: &mut BTreeSet<RunId>) {
        let mut known = BTreeSet::new();
        for (_, last) in self.overlapping(range) {
            let mut next = Some(last);
            while let Some(at) = next.filter(|&at| known.insert(at)) {
                let (run, before) = self.uses[at as usize];
                found.extend(run);
                next = before;
            }
        }
    }

    /// Who wrote a range.
    fn writers(&self, range: Range, found: &mut BTreeSet<RunId>) {
        let mut known = BTreeSet::new();
        for (_, mut at) in self.overlapping(range) {
            while known.insert(at) {
                match self.uses[at as usize] {
                    (_, Some(before)) => at = before,
                    (run, None) => {
                        found.extend(run);
                    }
                }
            }
        }
    }
}

/// What is before what, as far as runs have been added.
struct Past {
    /// What each run waits for, fences too.
    waits: Lists<RunId, RunId>,
    /// From which run each one was seen last.
    seen: IndexVec<RunId, Option<RunId>>,
    left: u64,
}

impl Past {
    fn new(runs: usize) -> Self {
        let left = LOOKS.1 + LOOKS.0 * runs as u64;
        Self { waits: Lists::new(), seen: IndexVec::filled(runs, None), left }
    }

    /// Adds the next run, which waits for `data`, sorted; returns the fences that make it wait for all that is wanted.
    /// Where looks were cut short, `is_ordered` is asked.
    fn add(
        &mut self,
        data: Vec<RunId>,
        wanted: BTreeSet<RunId>,
        is_ordered: &mut dyn FnMut(RunId) -> bool,
    ) -> Vec<RunId> {
        let run = RunId::from_index(self.waits.len());
        let mut fences = Vec::new();
        if let Some(&least) = wanted.first() {
            let mut looks = LONGEST.min(self.left);
            self.see(run, least, data.clone(), &mut looks);
            for other in wanted.into_iter().rev().filter(|other| data.binary_search(other).is_err())
            {
                if self.seen[other] != Some(run) && !(looks == 0 && is_ordered(other)) {
                    fences.push(other);
                    self.see(run, least, vec![other], &mut looks);
                }
            }
        }
        fences.reverse();
        self.waits.push(data.into_iter().chain(fences.iter().copied()));
        fences
    }

    /// Sees all that is before `ways`, back to `least`, in at most so many looks.
    fn see(&mut self, run: RunId, least: RunId, mut ways: Vec<RunId>, looks: &mut u64) {
        while let Some(at) = ways.pop() {
            if at < least || self.seen[at] == Some(run) || *looks == 0 {
                continue;
            }
            self.seen[at] = Some(run);
            let cost = (1 + self.waits[at].len() as u64).min(*looks);
            *looks -= cost;
            self.left = self.left.saturating_sub(cost);
            ways.extend_from_slice(&self.waits[at]);
        }
    }
}
