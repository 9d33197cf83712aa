//! Reads and writes the files of Lowtide, other than models.
//!
//! ~~~text
//! graph.json[.gz] ──read_graph──> Graph              Plan ──write_plan──> plan.json ──read_plan──> Plan
//! problem.csv ──read_problem──> NamedProblem         Plan ──write_events──> events.csv
//!             <──write_placement── Placement         Lifetimes ──write_lifetimes──> lifetimes.csv
//! times.csv ──read_times──> seconds of a Graph's operators
//! x.npy ──read_npy──> Array ──write_npy──> y.npy     Plan ──live_curve, memory_curve──> text for a terminal
//! Plan, and when each run really took place (Ran) ──write_trace──> trace.json
//! ~~~
//! What is read may be hostile: it is an error or a value, never a panic, and memory is set aside only for
//! what is there. What the values mean is for others to judge: a graph by its builder, a plan by the checker.

#![forbid(unsafe_code)]

mod column;
mod cover;
mod curve;
mod doctor_summary;
mod events_csv;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod graph_json;
mod inspect;
mod lifetimes_csv;
mod live;
mod npy;
mod plan_file;
mod plan_problem;
mod problem_csv;
mod run_summary;
#[cfg(test)]
mod sample;
mod spaces_summary;
mod summary;
mod times_csv;
mod trace;
mod value;

pub use curve::{CurveStyle, memory_curve};
pub use doctor_summary::{DifferenceRow, DoctorSummary, FindingRow, StayRow, UseRow};
pub use events_csv::write_events;
pub use graph_json::{GRAPH_VERSION, GraphJsonError, GraphLimits, read_graph, write_graph};
pub use inspect::{CostRow, InspectSummary, OperatorRow, ResultRow, ValuesRow};
pub use lifetimes_csv::write_lifetimes;
pub use live::live_curve;
pub use npy::{Array, NpyError, read_npy, write_npy};
pub use plan_file::{PLAN_VERSION, PlanFileError, read_plan, write_plan};
pub use plan_problem::write_plan_problem;
pub use problem_csv::{
    NamedProblem, NamedSpace, ProblemCsvError, read_problem, write_placement,
    write_spaces_placement,
};
pub use run_summary::{LatencyRow, OutputRow, ProfileRow, RunSummary};
pub use spaces_summary::{SpaceRow, SpacesSummary, SpilledRow};
pub use summary::{
    ByWorkersRow, CheckSummary, ColouringRow, ColoursRow, MovedRow, PackSummary, PlanSummary,
    SUMMARY_VERSION, TimeRow, TriedRow, WorkersRow,
};
pub use times_csv::{TimesCsvError, read_times};
pub use trace::write_trace;
