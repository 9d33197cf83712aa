//! [`Trace`]: which blocks are taken and given back, in which order.
//!
//! ~~~text
//! plan of a model ──events──> take 0 (3 MiB), take 1 (3 MiB), give 0, ...       each tensor a block, as a run has it
//! seed ──random──> the same of random sizes and lives
//! ~~~

use crate::corpus::load_bound;
use anyhow::Context;
use lowtide::core::{Event, Id, Reuse};
use lowtide::{PlanConfig, plan};
use std::path::Path;

/// One step of a trace; blocks are numbered, and numbers come again.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Take { slot: u32, bytes: usize },
    Give { slot: u32 },
}

/// Steps at whose end nothing is held.
pub struct Trace {
    pub name: String,
    pub steps: Vec<Step>,
    pub slots: usize,
}

impl Trace {
    /// Blocks that are taken and given back.
    pub fn pairs(&self) -> usize {
        self.steps.len() / 2
    }
}

/// The blocks of a run of a model in which each tensor has its own memory.
pub fn recorded(path: &Path) -> anyhow::Result<Trace> {
    let named = || format!("cannot record `{}`", path.display());
    let (loaded, bound) = load_bound(path).with_context(named)?;
    let config = PlanConfig { reuse: Reuse::Safe, ..PlanConfig::default() };
    let plan = plan(&loaded.graph, &config).with_context(named)?.plan;
    let slot = |id: lowtide::core::ResidenceId| u32::try_from(id.index()).unwrap_or(u32::MAX);
    let mut steps = Vec::new();
    let mut held = Vec::new();
    for event in &plan.events {
        match *event {
            Event::Alloc(id) => {
                let bytes = plan.residences[id].size.bound().unwrap_or_default().0;
                steps.push(Step::Take { slot: slot(id), bytes: usize::try_from(bytes)? });
                held.push(id);
            }
            Event::Free(id) => {
                steps.push(Step::Give { slot: slot(id) });
                held.retain(|&other| other != id);
            }
            _ => {}
        }
    }
    // Outputs are held until the next run.
    steps.extend(held.into_iter().map(|id| Step::Give { slot: slot(id) }));
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned() + &bound;
    Ok(Trace { name, steps, slots: plan.residences.len() })
}

/// So many blocks, of which some hundred live at once: each doubling of sizes from 256 B to `most` as often as any other.
pub fn random(pairs: usize, most: usize, seed: u64) -> Trace {
    const LIVE: usize = 100;
    let mut state = seed;
    let mut steps = Vec::with_capacity(2 * pairs);
    let mut live: Vec<u32> = Vec::new();
    let mut free: Vec<u32> = (0..=LIVE as u32).collect();
    for _ in 0..pairs {
        if live.len() == LIVE {
            let slot = live.swap_remove(below(&mut state, LIVE));
            steps.push(Step::Give { slot });
            free.push(slot);
        }
        let Some(slot) = free.pop() else { break };
        steps.push(Step::Take { slot, bytes: tensor_bytes(&mut state, most) });
        live.push(slot);
    }
    steps.extend(live.into_iter().map(|slot| Step::Give { slot }));
    Trace { name: format!("random to {} KiB", most >> 10), steps, slots: LIVE + 1 }
}

/// Bytes as tensors have them, from 256 to below `most`, a power of two.
pub fn tensor_bytes(state: &mut u64, most: usize) -> usize {
    let doublings = (most / 256).ilog2() as usize;
    let doubling = 256 << below(state, doublings);
    doubling + below(state, doubling)
}

/// Splitmix64 (Steele, Lea and Flood, 2014), below a number.
pub fn below(state: &mut u64, number: usize) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((mixed ^ (mixed >> 31)) % number as u64) as usize
}
