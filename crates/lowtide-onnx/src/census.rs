//! Counts what a file holds before any of it is decoded: bytes in, nothing or an error out.
//!
//! ~~~text
//! model ─ 7 ─> graph ─ 1 ─> operator ─ 5 ─> attribute ─ 6 ─> graph ...      counted on the way:
//!    └── 25 ─> function ─ 7 ─> operator         └─ 5 ─> tensor              operators, messages
//! ~~~
//! An empty message takes two bytes in the file and some two hundred in memory, so a hostile file is refused
//! here, where it has cost nothing yet. Bytes that are no messages are left to the decoder, which says why.
//!
//! Cost: linear in messages; only headers are read, and no recursion.

use crate::wire::{Field, Fields};
use crate::{Limits, LoadError};

/// How deep the decoder goes, and so the census.
const MAX_NESTED: usize = 100;

/// A message in which others lie, as far as they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Model,
    Graph,
    Function,
    Operator,
    Attribute,
    /// One whose content is small, or not made of messages.
    Leaf,
}

impl Kind {
    /// What lies in a field of this number.
    fn child(self, number: u32) -> Option<Self> {
        match (self, number) {
            (Self::Model, 7) | (Self::Attribute, 6 | 11) => Some(Self::Graph),
            (Self::Model, 25) => Some(Self::Function),
            (Self::Graph, 1) | (Self::Function, 7) => Some(Self::Operator),
            (Self::Operator, 5) | (Self::Function, 11) => Some(Self::Attribute),
            (Self::Model, 8 | 14)
            | (Self::Graph, 5 | 11 | 12 | 13 | 15)
            | (Self::Function, 9 | 12)
            | (Self::Attribute, 5 | 22) => Some(Self::Leaf),
            _ => None,
        }
    }
}

/// Refuses a file of too many operators or messages.
pub(crate) fn check(bytes: &[u8], limits: &Limits) -> Result<(), LoadError> {
    let (mut ops, mut messages) = (0_u64, 0_u64);
    let mut open = vec![(Kind::Model, Fields::new(bytes, 0..bytes.len()))];
    while let Some((kind, fields)) = open.last_mut() {
        let Some(Ok(field)) = fields.next() else {
            open.pop();
            continue;
        };
        let Field { number, content: Some(content), .. } = field else { continue };
        let Some(child) = kind.child(number) else { continue };
        messages += 1;
        ops += u64::from(child == Kind::Operator);
        check_counts(ops, messages, limits)?;
        if child != Kind::Leaf && open.len() < MAX_NESTED {
            open.push((child, Fields::new(bytes, content)));
        }
    }
    Ok(())
}

fn check_counts(ops: u64, messages: u64, limits: &Limits) -> Result<(), LoadError> {
    if ops > u64::from(limits.max_ops) {
        return Err(LoadError::TooManyOps { found: ops, limit: limits.max_ops });
    }
    if messages > limits.max_messages {
        return Err(LoadError::TooManyMessages { limit: limits.max_messages });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{AttributeProto, FunctionProto, ModelProto};
    use crate::testing::{body, file, graph, op, weight, with};
    use prost::Message;

    /// Operators: two in the main graph, one in its body, one in the function.
    fn sample() -> ModelProto {
        let mut proto = graph("c -> y", &["a = Relu(c)"]);
        proto.initializer = vec![weight("w", &[3])];
        let branch = graph("-> v", &["v = Relu(a)"]);
        proto.node.push(with(op("y = If(c)"), body("then_branch", branch)));
        let node = vec![with(op("y = F()"), AttributeProto::default())];
        let function = FunctionProto { node, ..FunctionProto::default() };
        ModelProto { functions: vec![function], ..file(proto) }
    }

    fn checked(limits: Limits) -> Result<(), String> {
        check(&sample().encode_to_vec(), &limits).map_err(|error| error.to_string())
    }

    #[test]
    fn operators_are_counted_wherever_they_lie() {
        let all = Limits::default();
        assert_eq!(checked(Limits { max_ops: 4, ..all }), Ok(()));
        let message = "the file has 4 operators or more, the limit is 3";
        assert_eq!(checked(Limits { max_ops: 3, ..all }).unwrap_err(), message);
    }

    #[test]
    fn messages_are_counted_all_together() {
        // Two graphs, an input, two outputs, a weight, a function, four operators, two attributes.
        let all = Limits::default();
        assert_eq!(checked(Limits { max_messages: 13, ..all }), Ok(()));
        let message = "the file has more than 12 messages, the limit";
        assert_eq!(checked(Limits { max_messages: 12, ..all }).unwrap_err(), message);
    }

    #[test]
    fn what_is_broken_or_too_deep_is_left_to_the_decoder() {
        assert!(check(&[0x3a, 9, 1], &Limits::default()).is_ok());
        let mut bytes = Vec::new();
        for tag in [0x32, 0x2a, 0x0a].into_iter().cycle().take(300) {
            let mut outer = vec![tag];
            prost::encoding::encode_varint(bytes.len() as u64, &mut outer);
            outer.append(&mut bytes);
            bytes = outer;
        }
        assert!(check(&bytes, &Limits::default()).is_ok());
    }
}
