//! Writes a file again with its operators in another order: bytes in, the same bytes out, some elsewhere.
//!
//! ~~~text
//! file    | ir_version | graph: | relu | name | const | add | weights ... | opset |
//! order   add, relu
//! out     | ir_version | graph: | const | add | relu | name | weights ... | opset |
//! ~~~
//! Nothing is encoded anew: entries of the main graph's list of operators change places, so every length
//! around them stays the same, and what this crate does not know (documentation, metadata, fields of later
//! versions) stays as it was. Where the first operator stands, all are written: constants in file order,
//! since they read nothing, then the others in the given order. In file order the file itself is written.
//!
//! Cost: linear; what is written are pieces of the file, and only headers of fields are looked at.

use crate::proto::{FunctionKey, NodeKey};
use crate::wire::{Broken, Fields};
use lowtide_core::{Data, Id, IndexVec, OpId};
use prost::Message;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::Range;

/// Numbers of fields in messages.
mod field {
    pub(super) const GRAPH_OF_MODEL: u32 = 7;
    pub(super) const FUNCTION_OF_MODEL: u32 = 25;
    pub(super) const NODE_OF_GRAPH: u32 = 1;
}

/// Why a file was not written in another order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum WriteError {
    /// The bytes are not messages.
    #[error("not an ONNX file: {reason}")]
    Malformed { reason: String },
    /// No graph, or one in several parts, which the format allows and nobody writes.
    #[error("the file holds {found} graphs, wanted one")]
    GraphCount { found: usize },
    /// Reading replaced the call by the operators of the function, so ids do not count calls.
    #[error("operator {index} calls the function `{function}`; a model with calls keeps its order")]
    Call { index: usize, function: String },
    /// An order of another model.
    #[error("the order has {found} operators, the file has {wanted} without its constants")]
    WrongLength { found: usize, wanted: usize },
    /// No permutation.
    #[error("the order names operator {op} {found}, wanted each of {count} once")]
    NoPermutation { op: OpId, found: &'static str, count: usize },
    /// The output did not take it.
    #[error("cannot write the model")]
    Io(#[source] io::Error),
}

/// Writes `file` with the operators of its main graph in this order, which leaves constants out, as a
/// [`Model`](lowtide_core::Model) does. Whether each operator comes after those that it reads from is the
/// caller's to know; an [`Order`](lowtide_core::Order) does. Many short pieces are written, so `out` wants
/// a buffer; and `file` may be a map, so `out` may not be the file itself.
pub fn write_reordered(
    file: &Data,
    order: &[OpId],
    out: &mut impl Write,
) -> Result<(), WriteError> {
    let listing = Listing::of(file)?;
    check_permutation(order, listing.ops.len())?;
    if order.is_sorted() {
        return out.write_all(file).map_err(WriteError::Io);
    }
    listing.write(file, order, out).map_err(WriteError::Io)
}

/// Where the operators of a file's main graph stand.
#[derive(Default)]
struct Listing {
    /// All of them, in file order.
    entries: Vec<Range<usize>>,
    constants: Vec<Range<usize>>,
    ops: IndexVec<OpId, Range<usize>>,
}

impl Listing {
    fn of(file: &Data) -> Result<Self, WriteError> {
        let (mut graphs, mut functions) = (Vec::new(), BTreeSet::new());
        for field in Fields::new(file, 0..file.len()) {
            let field = field?;
            match (field.number, field.content) {
                (field::GRAPH_OF_MODEL, Some(content)) => graphs.push(content),
                (field::FUNCTION_OF_MODEL, Some(content)) => {
                    functions.insert(decode::<FunctionKey>(file, content)?.key());
                }
                _ => {}
            }
        }
        let [graph] = &graphs[..] else {
            return Err(WriteError::GraphCount { found: graphs.len() });
        };
        let mut listing = Self::default();
        for field in Fields::new(file, graph.clone()) {
            let field = field?;
            if let (field::NODE_OF_GRAPH, Some(content)) = (field.number, field.content) {
                listing.enter(field.whole, &decode(file, content)?, &functions)?;
            }
        }
        Ok(listing)
    }

    fn enter(
        &mut self,
        entry: Range<usize>,
        node: &NodeKey,
        functions: &BTreeSet<[String; 3]>,
    ) -> Result<(), WriteError> {
        if functions.contains(&node.key()) {
            let (index, function) = (self.entries.len(), node.op_type.clone());
            return Err(WriteError::Call { index, function });
        }
        self.entries.push(entry.clone());
        if node.is_constant() {
            self.constants.push(entry);
            return Ok(());
        }
        self.ops.push(entry);
        Ok(())
    }

    fn write(&self, file: &Data, order: &[OpId], out: &mut impl Write) -> io::Result<()> {
        let first = self.entries.first().map_or(file.len(), |entry| entry.start);
        out.write_all(&file[..first])?;
        for entry in self.constants.iter().chain(order.iter().map(|&op| &self.ops[op])) {
            out.write_all(&file[entry.clone()])?;
        }
        let mut end = first;
        for entry in &self.entries {
            out.write_all(&file[end..entry.start])?;
            end = entry.end;
        }
        out.write_all(&file[end..])
    }
}

fn decode<M: Message + Default>(file: &Data, content: Range<usize>) -> Result<M, WriteError> {
    let malformed = |error: prost::DecodeError| WriteError::Malformed { reason: error.to_string() };
    M::decode(&file[content]).map_err(malformed)
}

impl From<Broken> for WriteError {
    fn from(broken: Broken) -> Self {
        Self::Malformed { reason: broken.to_string() }
    }
}

fn check_permutation(order: &[OpId], count: usize) -> Result<(), WriteError> {
    if order.len() != count {
        return Err(WriteError::WrongLength { found: order.len(), wanted: count });
    }
    let mut is_named = vec![false; count];
    for &op in order {
        let wrong = |found| Err(WriteError::NoPermutation { op, found, count });
        match is_named.get_mut(op.index()) {
            None => return wrong("which is not there"),
            Some(true) => return wrong("twice"),
            Some(named) => *named = true,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{AttributeProto, FunctionProto, ModelProto};
    use crate::testing::{file, graph, op, weight, with};
    use crate::{Limits, parse};

    /// A file with a constant between operators and much that is not read.
    fn sample() -> ModelProto {
        let mut proto = graph("x -> z", &["a = Relu(x)", "b = Tanh(x)", "z = Sum(a, b, c, w)"]);
        let value = AttributeProto {
            name: "value_int".to_owned(),
            i: Some(1),
            ..AttributeProto::default()
        };
        proto.node.insert(1, with(op("c = Constant()"), value));
        proto.initializer = vec![weight("w", &[3])];
        file(proto)
    }

    fn ids(order: &[u32]) -> Vec<OpId> {
        order.iter().map(|&op| OpId::new(op)).collect()
    }

    fn written(bytes: &[u8], order: &[u32]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let file = Data::copy_from_slice(bytes);
        let result = write_reordered(&file, &ids(order), &mut out);
        result.map(|()| out).map_err(|error| error.to_string())
    }

    fn kinds(bytes: &[u8]) -> String {
        let nodes = ModelProto::decode(bytes).unwrap().graph.unwrap().node;
        nodes.iter().map(|node| node.op_type.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn file_order_is_the_file() {
        let bytes = sample().encode_to_vec();
        assert_eq!(written(&bytes, &[0, 1, 2]).unwrap(), bytes);
    }

    #[test]
    fn constants_come_first_and_the_rest_as_told() {
        let found = written(&sample().encode_to_vec(), &[1, 0, 2]).unwrap();
        assert_eq!(kinds(&found), "Constant Tanh Relu Sum");
        let model = parse(Data::from(found), &Limits::default()).unwrap();
        let kinds: Vec<_> = model.main_graph().ops.iter().map(|op| op.kind.as_str()).collect();
        assert_eq!(kinds, ["Tanh", "Relu", "Sum"]);
    }

    #[test]
    fn nothing_else_changes() {
        let mut wanted = sample();
        let found = written(&wanted.encode_to_vec(), &[1, 0, 2]).unwrap();
        let nodes = &mut wanted.graph.as_mut().unwrap().node;
        nodes[..3].rotate_left(1);
        assert_eq!(ModelProto::decode(&found[..]).unwrap(), wanted);
    }

    #[test]
    fn what_stands_between_operators_and_what_is_unknown_stays() {
        // Graph: node "a", field 99, node "b" with field 98, name "g"; then field 97 of the model.
        let (a, b) = ([0x0a, 3, 0x22, 1, b'a'], [0x0a, 6, 0x90, 0x06, 5, 0x22, 1, b'b']);
        let (unknown, name, tail) = ([0x98, 0x06, 1], [0x12, 1, b'g'], [0x88, 0x06, 9]);
        let wrap = |parts: [&[u8]; 4]| [&[0x3a, 19][..], &parts.concat(), &tail].concat();
        let found = written(&wrap([&a, &unknown, &b, &name]), &[1, 0]).unwrap();
        assert_eq!(found, wrap([&b, &a, &unknown, &name]));
    }

    #[test]
    fn any_order_is_read_as_it_was_written() {
        arbtest::arbtest(|u| {
            let count = u.int_in_range(0..=12)?;
            let ops: Vec<String> = (0..count).map(|i| format!("t{i} = K{i}(x)")).collect();
            let mut proto = graph("x ->", &ops.iter().map(String::as_str).collect::<Vec<_>>());
            for i in 0..u.int_in_range(0..=3)? {
                let value =
                    AttributeProto { name: "value_ints".to_owned(), ..AttributeProto::default() };
                let at = u.choose_index(proto.node.len() + 1)?;
                proto.node.insert(at, with(op(&format!("c{i} = Constant()")), value));
            }
            let mut order: Vec<u32> = (0..count).collect();
            for i in (1..order.len()).rev() {
                order.swap(i, u.int_in_range(0..=i)?);
            }
            let found = written(&file(proto).encode_to_vec(), &order).unwrap();
            let model = parse(Data::from(found), &Limits::default()).unwrap();
            let kinds = model.main_graph().ops.iter().map(|op| op.kind.clone());
            assert!(kinds.eq(order.iter().map(|op| format!("K{op}"))));
            Ok(())
        })
        .budget_ms(300);
    }

    #[test]
    fn an_order_names_each_operator_once() {
        let bytes = sample().encode_to_vec();
        let message = "the order has 4 operators, the file has 3 without its constants";
        assert_eq!(written(&bytes, &[0, 1, 2, 3]).unwrap_err(), message);
        let message = "the order names operator op1 twice, wanted each of 3 once";
        assert_eq!(written(&bytes, &[1, 1, 2]).unwrap_err(), message);
        let message = "the order names operator op3 which is not there, wanted each of 3 once";
        assert_eq!(written(&bytes, &[0, 3, 1]).unwrap_err(), message);
    }

    #[test]
    fn a_file_has_one_graph() {
        assert_eq!(written(&[], &[]).unwrap_err(), "the file holds 0 graphs, wanted one");
        let bytes = sample().encode_to_vec().repeat(2);
        assert_eq!(written(&bytes, &[]).unwrap_err(), "the file holds 2 graphs, wanted one");
        assert!(written(&[0x3a, 9], &[]).unwrap_err().starts_with("not an ONNX file"));
    }

    #[test]
    fn a_model_with_calls_is_refused() {
        let mut model = sample();
        model.functions =
            vec![FunctionProto { name: "Tanh".to_owned(), ..FunctionProto::default() }];
        let message = "operator 2 calls the function `Tanh`; a model with calls keeps its order";
        assert_eq!(written(&model.encode_to_vec(), &[0, 1, 2]).unwrap_err(), message);
    }

    #[test]
    fn an_output_that_takes_nothing_is_an_error() {
        let bytes = Data::from(sample().encode_to_vec());
        for order in [[0, 1, 2], [1, 0, 2]] {
            let error = write_reordered(&bytes, &ids(&order), &mut &mut [0; 9][..]).unwrap_err();
            assert_eq!(error.to_string(), "cannot write the model");
        }
    }
}
