//! Which orders are allowed? Byte by byte, against every permutation of tiny graphs.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use lowtide_core::testing::{Limits, describe, graph, permutations};
use lowtide_core::{Graph, Id, OpId, Order, Sharing, TensorId, TensorKind};

/// Runs `ops` on memory in which every storage has bytes of its own and every byte remembers who wrote it:
/// does every read find what the graph says, and do the outputs at the end?
fn reads_are_right(graph: &Graph, ops: &[OpId]) -> bool {
    let mut memory = Memory::new(graph);
    for &op in ops {
        let row = &graph.ops()[op];
        if !row.inputs.iter().all(|&input| memory.is_right(input)) {
            return false;
        }
        row.outputs.iter().for_each(|&output| memory.write(op, output));
    }
    graph.tensors().ids().filter(|&t| graph.tensors()[t].is_output).all(|t| memory.is_right(t))
}

struct Memory<'g> {
    graph: &'g Graph,
    /// For each tensor, once it is there: storage and bytes, found by walking the sharing up.
    places: Vec<Option<(TensorId, u64, u64)>>,
    /// Whether its elements may lie anywhere in these bytes: below a view in another order.
    scattered: Vec<bool>,
    /// For each storage and byte, whose value is there.
    bytes: Vec<Vec<Option<TensorId>>>,
}

impl<'g> Memory<'g> {
    fn new(graph: &'g Graph) -> Self {
        let len = graph.tensors().len();
        let (places, scattered) = (vec![None; len], vec![false; len]);
        let mut memory = Self { graph, places, scattered, bytes: vec![Vec::new(); len] };
        for (id, tensor) in graph.tensors().iter_enumerated() {
            let bytes = tensor.size.bound().unwrap().0;
            memory.bytes[id.index()] = vec![None; usize::try_from(bytes).unwrap()];
            if tensor.kind != TensorKind::Computed {
                memory.places[id.index()] = Some((id, 0, bytes));
                memory.bytes[id.index()].fill(Some(id));
            }
        }
        memory
    }

    fn write(&mut self, op: OpId, output: TensorId) {
        let size = self.graph.tensors()[output].size.bound().unwrap().0;
        let sharing = self.graph.ops()[op].sharing.iter().find_map(|sharing| match *sharing {
            Sharing::View { output: o, of, offset } if o == output => Some((of, offset, false)),
            Sharing::Mutates { output: o, of } if o == output => Some((of, None, true)),
            _ => None,
        });
        let place = match sharing {
            None => (output, 0, size),
            Some((of, offset, _)) => {
                let (storage, start, end) = self.places[of.index()].unwrap();
                let is_view = !matches!(sharing, Some((_, _, true)));
                let is_scattered = self.scattered[of.index()];
                self.scattered[output.index()] = is_scattered || (is_view && offset.is_none());
                match offset.filter(|_| !is_scattered) {
                    None => (storage, start, end),
                    Some(o) => (storage, start + o.0, start + o.0 + size),
                }
            }
        };
        self.places[output.index()] = Some(place);
        if sharing.is_none_or(|(_, _, writes)| writes) {
            self.range(place).fill(Some(output));
        }
    }

    fn range(&mut self, (storage, start, end): (TensorId, u64, u64)) -> &mut [Option<TensorId>] {
        let at = |byte: u64| usize::try_from(byte).unwrap();
        &mut self.bytes[storage.index()][at(start)..at(end)]
    }

    fn is_right(&mut self, tensor: TensorId) -> bool {
        let wanted = self.graph.content(tensor);
        let place = self.places[tensor.index()];
        place.is_some_and(|place| self.range(place).iter().all(|&found| found == Some(wanted)))
    }
}

#[test]
fn exactly_those_orders_are_allowed_in_which_every_read_is_right() {
    arbtest::arbtest(|u| {
        let limits = Limits { max_ops: 6, sharing: true, open_sizes: false, empty: false };
        let graph = graph(u, limits)?;
        let ops: Vec<OpId> = graph.ops().ids().collect();
        permutations(&ops, &mut |ops| {
            let allowed = Order::new(&graph, ops.to_vec()).is_ok();
            assert_eq!(allowed, reads_are_right(&graph, ops), "{ops:?}\n{}", describe(&graph));
        });
        Ok(())
    })
    .size_max(1 << 10)
    .budget_ms(3000);
}
