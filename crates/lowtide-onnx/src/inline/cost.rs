//! [`Cost`]: what a copy of a function takes, known before it is made.
//!
//! ~~~text
//! function f { t = Elu(x) [alpha: 2] }   ──>   1 operator, 3 names to be written anew, some 400 bytes
//! ~~~
//! A file that calls a long function many times asks for memory without holding it; with the cost known it
//! can be refused first. An estimate from above: what shares the memory of the file counts as little.

use super::frame::bodies;
use crate::elements;
use crate::proto::{
    AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto,
};

/// What a name or a small field takes, besides its bytes.
const SMALL: u64 = 32;

/// What copies take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Operators, those of bodies included.
    pub(crate) ops: u64,
    /// Names that are written anew.
    pub(crate) names: u64,
    /// Bytes of everything else.
    pub(crate) bytes: u64,
}

impl Cost {
    /// That of one call of a function.
    pub(crate) fn of_call(function: &FunctionProto) -> Self {
        let mut cost = Self { ops: 1, ..Self::default() };
        let outer = function.input.len() + function.output.len() + function.attribute_proto.len();
        cost.bytes += 4 * SMALL * outer as u64;
        function.value_info.iter().for_each(|info| cost.info(info));
        function.node.iter().for_each(|node| cost.node(node));
        cost
    }

    /// Adds an attribute.
    pub(crate) fn attribute(&mut self, attribute: &AttributeProto) {
        let lists = 8 * (attribute.floats.len() + attribute.ints.len()) as u64;
        let texts = SMALL * attribute.strings.len() as u64;
        self.bytes += 10 * SMALL + text(&attribute.name) + lists + texts;
        attribute.t.iter().for_each(|t| self.tensor(t));
        bodies(attribute).for_each(|body| self.body(body));
    }

    fn node(&mut self, node: &NodeProto) {
        self.ops += 1;
        self.names += 1 + (node.input.len() + node.output.len()) as u64;
        let texts = node.input.iter().chain(&node.output);
        let texts = texts.chain([&node.name, &node.op_type, &node.domain, &node.overload]);
        self.bytes += texts.map(|t| text(t)).sum::<u64>() + 8 * SMALL;
        node.attribute.iter().for_each(|attribute| self.attribute(attribute));
    }

    fn body(&mut self, body: &GraphProto) {
        let infos = body.input.iter().chain(&body.output).chain(&body.value_info);
        infos.for_each(|info| self.info(info));
        body.initializer.iter().for_each(|tensor| self.tensor(tensor));
        body.node.iter().for_each(|node| self.node(node));
    }

    fn info(&mut self, info: &ValueInfoProto) {
        self.names += 1;
        self.bytes += info.memory();
    }

    fn tensor(&mut self, tensor: &TensorProto) {
        let rows = tensor.external_data.iter().map(|row| text(&row.key) + text(&row.value));
        self.names += 1;
        self.bytes += 10 * SMALL + rows.sum::<u64>();
        self.bytes += text(&tensor.name) + 8 * tensor.dims.len() as u64 + elements::cost(tensor);
    }
}

fn text(text: &str) -> u64 {
    SMALL + text.len() as u64
}
