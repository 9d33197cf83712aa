//! Order to lifetimes: when is each tensor needed?
//!
//! ~~~text
//! step     0    1    2    3            a: written at 0, read at 1 and 3: [0, 4)
//!       a ─ b ─ c ─ d(a, c)            the last of *all* readers counts, on every branch
//! ~~~
//!
//! One static scan over tensors and their readers; nothing is counted at run time. A *storage* is needed as
//! long as any tensor in it: its own value, its views, and its mutated values. Cost: linear.

use lowtide_core::{Graph, IndexVec, Interval, Lifetimes, Order, Step, TensorId};

/// The lifetime of every tensor; see [`Lifetimes`].
pub fn lifetimes(graph: &Graph, order: &Order) -> Lifetimes {
    graph.tensors().ids().map(|tensor| lifetime(graph, order, tensor)).collect()
}

fn lifetime(graph: &Graph, order: &Order, tensor: TensorId) -> Option<Interval> {
    let at = |step: Step| Interval::new(step, step.next());
    let written = graph.writer(tensor).map(|op| at(order.step(op)));
    let reads = graph.readers(tensor).iter().map(|&op| at(order.step(op)));
    let life = written.into_iter().chain(reads).reduce(Interval::hull)?;
    let end = Step::from_index(order.len());
    Some(if graph.tensors()[tensor].is_output { Interval { end, ..life } } else { life })
}

/// When each storage is needed; `None` for tensors that lie in another one's storage, and for storages that
/// nothing reads or writes. Inputs and weights count from their first reader.
pub(crate) fn storage_lifetimes(graph: &Graph, order: &Order) -> Lifetimes {
    let mut storages: Lifetimes = IndexVec::filled(graph.tensors().len(), None);
    for tensor in graph.tensors().ids() {
        if let Some(life) = lifetime(graph, order, tensor) {
            let storage = &mut storages[graph.storage(tensor)];
            *storage = Some(storage.map_or(life, |known| known.hull(life)));
        }
    }
    storages
}
