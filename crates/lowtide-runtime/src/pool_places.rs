//! [`PoolPlaces`]: which residences of a plan lie in the pool, and which runs use them.
//!
//! ~~~text
//! residences   r0 arena   r1 pool   r2 pool ─> places   0: r1   1: r2      run 4 uses 0 and 1
//! an open output that the plan leaves to the caller ──> place 2            it is kept, so no run counts it down
//! ~~~
//! Cost: near-linear in the plan.

use lowtide_core::{
    Graph, Lists, Occupant, Plan, ResidenceId, RunId, SpaceKind, TensorId, TensorKind,
};
use std::collections::BTreeMap;

/// The places of a pool.
#[derive(Clone, Debug, Default)]
pub(crate) struct PoolPlaces {
    /// Of each residence that lies there.
    of_residence: BTreeMap<ResidenceId, usize>,
    /// The storages that lie there, place by place.
    storages: Vec<TensorId>,
}

impl PoolPlaces {
    /// Those of residences in the pool that an operator writes.
    pub(crate) fn of(graph: &Graph, plan: &Plan) -> Self {
        let mut places = Self::default();
        for (id, row) in plan.residences.iter_enumerated() {
            let kind = plan.spaces[plan.buffers[row.buffer].space].kind;
            let Occupant::Tensor(storage) = row.what else { continue };
            let is_computed = graph.tensors()[storage].kind == TensorKind::Computed;
            if kind == SpaceKind::Pool && is_computed {
                places.of_residence.insert(id, places.storages.len());
                places.storages.push(storage);
            }
        }
        places
    }

    /// One more, for a storage that the plan leaves to the caller.
    pub(crate) fn add(&mut self, storage: TensorId) -> usize {
        self.storages.push(storage);
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
