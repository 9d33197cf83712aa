//! Lifetimes to buffers: which residences lie on the same bytes?
//!
//! ~~~text
//! x ─ conv ─ a ─ relu ─ b ─ add ─ c       a: [0,2)   b: [1,3)   c: [2,..)
//!      a dies where b is written and has its size: b is written over a; c over b.
//!      One buffer of three residences instead of three buffers, two of them live at each step.
//! ~~~
//!
//! What may share whatever the order is worked out once ([`Wishes`]): parts and pieces at fixed distances
//! (`bodies`), and what may be written over what (`overlays`). An order then decides which inputs die where: an
//! output is written over an input whose bytes nothing needs any more. That is never worse for the live sum, which
//! would hold both during that step. It ties two bodies together; one of them has to fit inside the tensor that is
//! handed over, or the rest of it could disturb the other, and the wish is refused.
//!
//! ~~~text
//!  body of a concat:  │── p ──│── q ──│       conv out r, relu out p: r comes to lie in the place of p
//!        r lies here  │── r ──│                                       (nothing else needs it before p is there)
//! ~~~
//! What an order costs needs no places at all, only cells (`ground`); those of all wishes at once, whether or not they
//! exclude each other, give a bound for every choice among them (`relaxed`).
//!
//! Tensors of unknown size, and unknown scratch, go to the pool, each on its own. Cost: O(n log n).

pub(crate) mod bodies;
mod forest;
mod ground;
mod layout;
pub(crate) mod overlays;
mod relaxed;

pub(crate) use ground::Ground;
pub(crate) use layout::{ARENA, Layout, POOL, joined};

use crate::PlanConfig;
use crate::lifetimes::storage_lifetimes;
use crate::order::pair::{Pair, pair};
use bodies::Bodies;
use forest::Forest;
use lowtide_core::{
    Graph, IndexVec, Interval, Lifetimes, Lists, OpId, Order, Reuse, RunId, Step, TensorId,
    TensorKind,
};
use overlays::Overlay;
use std::collections::BTreeSet;

/// Which parts and pieces may stay where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// None: every concat and split copies.
    None,
    /// Those of which the other half is needed for nothing else. They never make the live sum of an order larger.
    Dying,
    /// All. What lives on in a whole keeps others from being written over it, which can cost more than a copy.
    All,
}

impl Links {
    /// All ways, the one with most in place first.
    pub(crate) const ALL: [Self; 3] = [Self::All, Self::Dying, Self::None];
}

/// What may share bytes, whatever the order.
#[derive(Clone, Debug)]
pub(crate) struct Wishes {
    pub(crate) links: Links,
    pub(crate) bodies: Bodies,
    pub(crate) overlays: Lists<OpId, Overlay>,
}

impl Wishes {
    pub(crate) fn new(graph: &Graph, config: &PlanConfig, links: Links) -> Self {
        Self::without(graph, config, links, &BTreeSet::new())
    }

    /// The operators in `copied` leave nothing in place.
    pub(crate) fn without(
        graph: &Graph,
        config: &PlanConfig,
        links: Links,
        copied: &BTreeSet<OpId>,
    ) -> Self {
        // A concat has its output to itself, parts in place too: who reads such a part beside it would have to wait.
        let links = if !config.fences && links == Links::All { Links::Dying } else { links };
        let bodies = Bodies::new(graph, config, links, copied);
        let overlays = overlays::overlays(graph, config, &bodies);
        Self { links, bodies, overlays }
    }
}

/// Decides what shares bytes under `order`.
pub(crate) fn share(graph: &Graph, order: &Order, config: &PlanConfig, wishes: &Wishes) -> Layout {
    let lifetimes = placed_lifetimes(graph, order, config);
    let mut hand_over = HandOver::new(graph, config, wishes, &lifetimes);
    if config.in_place && config.reuse != Reuse::Safe {
        for (run, &op) in order.schedule().iter_enumerated() {
            hand_over.write_all_over(run, &wishes.overlays[op]);
        }
    }
    let HandOver { forest, lives, .. } = hand_over;
    layout::lay_out(
        graph,
        order,
        config,
        wishes,
        layout::Shared { lifetimes: &lifetimes, forest, lives },
    )
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

/// What is written over what under an order.
struct HandOver<'a> {
    wishes: &'a Wishes,
    lifetimes: &'a Lifetimes,
    forest: Forest,
    /// When each cell is held; until the step of the hand-over where something comes over it.
    lives: Vec<Interval>,
    /// Cells over which something has come, or nothing may.
    is_taken: Vec<bool>,
    has_place: IndexVec<TensorId, bool>,
}

impl<'a> HandOver<'a> {
    fn new(
        graph: &Graph,
        config: &PlanConfig,
        wishes: &'a Wishes,
        lifetimes: &'a Lifetimes,
    ) -> Self {
        let cells = wishes.bodies.cells.len();
        let mut lives: Vec<Interval> = vec![Interval::default(); cells];
        for (storage, life) in lifetimes.iter_enumerated() {
            let Some(life) = *life else { continue };
            for cell in wishes.bodies.cells_of[storage].clone() {
                let held = &mut lives[cell as usize];
                *held = if held.is_empty() { life } else { held.hull(life) };
            }
        }
        let mut is_taken = vec![false; cells];
        for storage in graph.tensors().ids().filter(|&id| graph.holds_output(id)) {
            for cell in wishes.bodies.cells_of[storage].clone() {
                is_taken[cell as usize] = true;
            }
        }
        let forest = Forest::new(graph, config, &wishes.bodies);
        let has_place = IndexVec::filled(lifetimes.len(), false);
        Self { wishes, lifetimes, forest, lives, is_taken, has_place }
    }

    /// Writes as many outputs of a run over dying inputs as can be.
    fn write_all_over(&mut self, run: RunId, overlays: &[Overlay]) {
        let Some(last) = overlays.last() else { return };
        if overlays[0].output != last.output {
            let open = overlays.iter().filter(|overlay| self.is_free(run, **overlay));
            let rows: Vec<Pair> = open.map(|&overlay| self.pair(overlay)).collect();
            for at in pair(&rows) {
                let [output, over] = [rows[at].one, rows[at].other].map(TensorId::new);
                self.write_over(run, Overlay { output, over });
            }
        }
        for &overlay in overlays {
            self.write_over(run, overlay);
        }
    }

    fn pair(&self, Overlay { output, over }: Overlay) -> Pair {
        let cells = self.wishes.bodies.cells_of[output].clone();
        let bytes = |cell: u32| self.wishes.bodies.cells[cell as usize].bytes.0;
        Pair { one: output.raw(), other: over.raw(), worth: cells.map(bytes).sum() }
    }

    /// Whether nothing needs the bytes of a storage after this run, and nothing has come over them.
    fn is_free(&self, run: RunId, Overlay { output, over }: Overlay) -> bool {
        let end = run.step().next();
        let mut cells = self.wishes.bodies.cells_of[over].clone();
        self.lifetimes[output].is_some()
            && !self.has_place[output]
            && cells
                .all(|cell| !self.is_taken[cell as usize] && self.lives[cell as usize].end == end)
    }

    /// Writes an output over a storage, if that is free and their bodies fit.
    fn write_over(&mut self, run: RunId, overlay: Overlay) {
        let Overlay { output, over } = overlay;
        if !self.is_free(run, overlay) || !self.forest.unite(output, over) {
            return;
        }
        self.has_place[output] = true;
        for cell in self.wishes.bodies.cells_of[over].clone() {
            self.is_taken[cell as usize] = true;
            self.lives[cell as usize].end = run.step();
        }
    }
}
