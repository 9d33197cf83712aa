//! Plans and runs computation graphs in the least memory.
//!
//! ~~~text
//! model.onnx, graph.json ──load──> Graph ──plan──> Plan ──check──> CheckedPlan ─┐
//! model.onnx ────────────────────program──> Program (kernels, weights) ──────────┴─> Session ──run──> outputs
//! ~~~
//!
//! Each step is a function, usable alone; [`load`] is the one that knows files. A graph of another framework is
//! built with [`GraphBuilder`] and needs no file:
//!
//! ~~~
#![doc = include_str!("../examples/plan_a_graph.rs")]
//! ~~~

#![forbid(unsafe_code)]

mod doctor;
mod inspect;
mod load;
mod program;
mod summary;

pub use doctor::safe_plan;
pub use inspect::inspect;
pub use load::{LoadError, LoadOptions, Loaded, load};
pub use lowtide_core as core;
pub use lowtide_core::{
    Align, Bytes, CheckedPlan, Event, Faults, Graph, GraphBuilder, GraphError, Op, Plan, Sharing,
    Size, check,
};
pub use lowtide_formats as formats;
pub use lowtide_onnx as onnx;
pub use lowtide_ops as ops;
pub use lowtide_ops::ResolveConfig;
pub use lowtide_planner as planner;
pub use lowtide_planner::{PlanConfig, PlanError, Planned, plan};
pub use lowtide_runtime as runtime;
pub use lowtide_runtime::{Session, SessionConfig, TensorRef};
pub use program::{ProgramError, program, random_input, random_weights};
pub use summary::{Standing, standing_at_peak, summary};
