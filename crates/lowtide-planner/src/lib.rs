//! From a graph to a plan: order, sharing, placement, events.
//!
//! ~~~text
//! Graph ──order──> Order ──share──> residences and buffers ──pack / colour──> Placement ──events──> Plan
//!      rules, search     views, in place,     (Problem)          bounds: proven or not
//!      file, score       parts and pieces
//! ~~~
//!
//! [`plan()`] is a pure function of graph and config: no clock, no hash order, no randomness. Every stage is
//! near-linear in the size of the graph; what is not has a budget: looking at pairs of buffers that live together in
//! [`PlanConfig::pack_steps`], the search for an order in [`PlanConfig::order_steps`].

#![forbid(unsafe_code)]

mod apart;
mod bounds;
mod candidate;
mod colour;
mod config;
mod events;
mod fenced;
mod fences;
mod lifetimes;
mod meter;
mod mix;
mod order;
mod pack;
mod plan;
mod random;
mod red_zone;
mod share;
mod skyline;
mod time;
mod tradeoff;

pub use bounds::{live_bound, live_sums, order_bound};
pub use colour::{Colouring, colour, fewest_colours};
pub use config::{ColourBy, Effort, OrderRule, PlanConfig, Preset, ScoreWeights};
pub use fenced::Fenced;
pub use lifetimes::lifetimes;
pub use meter::{Budget, Progress, Watch};
pub use order::score_order;
pub use pack::{
    Earlier, FilledSpace, PackRequest, Packing, SpacesPackError, SpacesPacking, Stopped, Witness,
    certify, pack, pack_as_asked, pack_by_rules, pack_spaces, placement_bound, witness,
};
pub use plan::{
    Colours, PlanError, Planned, Tried, colours, peak_of, plan, plan_in_order, plan_watched,
};
pub use time::{CriticalPath, Times, critical_path, makespan};
