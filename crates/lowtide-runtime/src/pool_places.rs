//! [`PoolPlaces`]: which residences of a plan lie in the pool, and which runs use them.
//!
//! ~~~text
//! residences   r0 arena   r1 pool   r2 pool ─> places   0: r1   1: r2      run 4 uses 0 and 1
//! an open output that the plan leaves to the caller ──> place 2            it is kept, so no run counts it down
//! ~~~
//! Storages of one shape in names and numbers, and of one type, are of one size in every run; those that are never held together
//! have one home, so that each finds the block that the one before has left. Cost: near-linear in the plan.

use lowtide_core::{
    DType, Dim, Graph, Interval, Lists, Occupant, Plan, ResidenceId, RunId, SpaceKind, Step,
    TensorId, TensorKind,
};
use std::collections::BTreeMap;

/// The places of a pool.
#[derive(Clone, Debug, Default)]
pub(crate) struct PoolPlaces {
    /// Of each residence that lies there.
    of_residence: BTreeMap<ResidenceId, usize>,
    /// The storages that lie there, place by place, and their homes.
    storages: Vec<TensorId>,
    homes: Vec<Option<usize>>,
    home_count: usize,
}

/// Homes of one size: each with the step at which it is free again.
type Homes = Vec<(Step, usize)>;

impl PoolPlaces {
    /// Those of residences in the pool that an operator writes.
    pub(crate) fn of(graph: &Graph, plan: &Plan) -> Self {
        let mut places = Self::default();
        let mut spans = Vec::new();
        for (id, row) in plan.residences.iter_enumerated() {
            let kind = plan.spaces[plan.buffers[row.buffer].space].kind;
            let Occupant::Tensor(storage) = row.what else { continue };
            let is_computed = graph.tensors()[storage].kind == TensorKind::Computed;
            if kind == SpaceKind::Pool && is_computed {
                places.of_residence.insert(id, places.storages.len());
                places.storages.push(storage);
                spans.push(row.span);
            }
        }
        places.find_homes(graph, &spans);
        places
    }

    /// The first home of the size that is free, in the order of time.
    fn find_homes(&mut self, graph: &Graph, spans: &[Interval]) {
        let mut sizes: BTreeMap<(DType, &[Dim]), Homes> = BTreeMap::new();
        let mut in_time: Vec<usize> = (0..spans.len()).collect();
        in_time.sort_by_key(|&place| spans[place].start);
        self.homes = vec![None; spans.len()];
        for place in in_time {
            let tensor = &graph.tensors()[self.storages[place]];
            let is_known = |dims: &&[Dim]| !dims.contains(&Dim::Unknown);
            let dims = tensor.shape.as_deref().filter(is_known);
            let Some(size) = tensor.dtype.zip(dims) else { continue };
            let homes = sizes.entry(size).or_default();
            let free = homes.iter().position(|&(until, _)| until <= spans[place].start);
            let at = free.unwrap_or(homes.len());
            if at == homes.len() {
                homes.push((Step::ZERO, self.home_count));
                self.home_count += 1;
            }
            homes[at].0 = spans[place].end;
            self.homes[place] = Some(homes[at].1);
        }
    }

    /// The home of each place, where it has one.
    pub(crate) fn homes(&self) -> &[Option<usize>] {
        &self.homes
    }

    /// How many homes there are.
    pub(crate) fn home_count(&self) -> usize {
        self.home_count
    }

    /// One more, for a storage that the plan leaves to the caller.
    pub(crate) fn add(&mut self, storage: TensorId) -> usize {
        self.storages.push(storage);
        self.homes.push(None);
        self.storages.len() - 1
    }

    /// That of a residence.
    pub(crate) fn place(&self, residence: ResidenceId) -> Option<usize> {
        self.of_residence.get(&residence).copied()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.storages.len()
    }

    /// For each run the places that it uses, without those that hold outputs of the graph.
    pub(crate) fn of_runs(&self, graph: &Graph, plan: &Plan) -> Lists<RunId, u32> {
        let mut lists = Lists::new();
        for run in plan.schedule.ids() {
            let bound = plan.bindings[run].iter().flatten();
            let used = bound.filter_map(|id| self.of_residence.get(id).copied());
            let mut used: Vec<u32> = used
                .filter(|&place| !graph.holds_output(self.storages[place]))
                .map(|place| u32::try_from(place).expect("residences have ids"))
                .collect();
            used.sort_unstable();
            used.dedup();
            lists.push(used);
        }
        lists
    }
}
