//! Lifetimes as a CSV table, one row a tensor, so that people can check them before they trust a plan.
//!
//! ~~~text
//! tensor_id,tensor_name,kind,bytes,first_step,last_step,first_op,last_op,storage
//! 3,conv1_out,activation,4096,2,5,conv1,add,3      written by `conv1` at step 2, last read by `add` at 5
//! 4,flat,activation,4096,3,4,flatten,dense,3       a view: its bytes are those of tensor 3
//! ~~~
//! `docs/csv.md` describes the columns.

use crate::graph_json::kind_name;
use lowtide_core::{Graph, Lifetimes, Order, RunId, Step, TensorId};
use serde::Serialize;
use std::io::{self, Write};

const HEADER: [&str; 9] = [
    "tensor_id",
    "tensor_name",
    "kind",
    "bytes",
    "first_step",
    "last_step",
    "first_op",
    "last_op",
    "storage",
];

/// Writes when each tensor is first and last used under an order.
///
/// # Panics
/// If `order` or `lifetimes` belongs to another graph.
pub fn write_lifetimes(
    graph: &Graph,
    order: &Order,
    lifetimes: &Lifetimes,
    out: impl Write,
) -> io::Result<()> {
    let mut table = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    table.write_record(HEADER)?;
    for tensor in graph.tensors().ids() {
        table.serialize(row(graph, order, lifetimes, tensor))?;
    }
    table.flush()
}

/// One row; the fields are the columns.
#[derive(Serialize)]
struct Row<'a> {
    tensor_id: u32,
    tensor_name: &'a str,
    kind: &'static str,
    bytes: Option<u64>,
    first_step: Option<u32>,
    last_step: Option<u32>,
    first_op: Option<String>,
    last_op: Option<String>,
    storage: u32,
}

fn row<'a>(graph: &'a Graph, order: &Order, lifetimes: &Lifetimes, id: TensorId) -> Row<'a> {
    let tensor = &graph.tensors()[id];
    let used = lifetimes[id].filter(|span| !span.is_empty());
    let first = used.map(|span| span.start);
    // The caller gets an output after the last step, whoever reads it before.
    let end = order.len().checked_sub(1).map(Step::from_index).filter(|_| tensor.is_output);
    let last = end.or(used.map(|span| Step(span.end.0 - 1)));
    let label = |step: Step| graph.op_label(order.schedule()[RunId::new(step.0)]);
    Row {
        tensor_id: id.raw(),
        tensor_name: &tensor.name,
        kind: kind_name(tensor),
        bytes: tensor.size.bound().map(|bytes| bytes.0),
        first_step: first.map(|step| step.0),
        last_step: last.map(|step| step.0),
        first_op: first.map(label),
        last_op: last.map(label),
        storage: graph.storage(id).raw(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowtide_core::{Bytes, GraphBuilder, Interval, Op, Sharing, Size};

    const BYTES: Size = Size::Fixed(Bytes(64));

    /// x -> conv -> y -> flatten (a view) -> z; w is read by nobody.
    fn table() -> Vec<String> {
        let mut b = GraphBuilder::new("");
        let (x, _) = (b.input("x", BYTES), b.weight("w, unused", Size::Unknown));
        let (y, z) = (b.computed("y", BYTES), b.computed("z", BYTES));
        b.op(Op::new("conv", "Conv", [x], [y]));
        let view = Sharing::View { output: z, of: y, offset: None };
        b.op(Op::new("", "Flatten", [y], [z]).sharing(view));
        b.output(z);
        let graph = b.finish().unwrap();
        let span = |start, end| Some(Interval::new(Step(start), Step(end)));
        let lifetimes = vec![span(0, 1), None, span(0, 2), span(1, 2)].into();
        let mut out = Vec::new();
        write_lifetimes(&graph, &graph.file_order(), &lifetimes, &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn first_and_last_use_are_named() {
        assert_eq!(table()[0], "0,x,input,64,0,0,conv,conv,0");
        assert_eq!(table()[2], "2,y,activation,64,0,1,conv,Flatten (op1),2");
    }

    #[test]
    fn an_output_lives_to_the_end_and_a_view_names_its_storage() {
        assert_eq!(table()[3], "3,z,output,64,1,1,Flatten (op1),Flatten (op1),2");
    }

    #[test]
    fn what_is_not_known_is_empty() {
        assert_eq!(table()[1], "1,\"w, unused\",weight,,,,,,1");
    }
}
