//! One call of a function: operators of its body in, the same under the caller's names out.
//!
//! ~~~text
//! function f(x, s) -> y  [alpha]            call `c`: b = f(a) [alpha: 2]
//!   t = Elu(x) [alpha: @alpha]        ──>   c/t = Elu(a) [alpha: 2]
//!   y = Add(t, s)                           b = Add(c/t, )
//! ~~~
//! Inputs and outputs get the names of the call, an input that the call leaves out is absent, and all other
//! names begin with the call's. A body inside the function may define a name again: there it is that one.

use super::cost::Cost;
use crate::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto};
use std::collections::BTreeMap;

/// Names and attributes of a call.
pub(crate) struct Frame<'c> {
    prefix: &'c str,
    /// For inputs and outputs of the function: their names in the caller.
    names: BTreeMap<&'c str, &'c str>,
    attributes: BTreeMap<&'c str, &'c AttributeProto>,
    /// Attributes that took the place of references.
    pub(crate) substituted: Cost,
}

impl<'c> Frame<'c> {
    /// The frame of a call whose arity was checked.
    pub(crate) fn new(call: &'c NodeProto, function: &'c FunctionProto, prefix: &'c str) -> Self {
        let given = function.attribute_proto.iter().chain(&call.attribute);
        let attributes = given.map(|attribute| (attribute.name.as_str(), attribute)).collect();
        let actual = |names: &'c [String], index: usize| names.get(index).map_or("", |n| &n[..]);
        let mut names = BTreeMap::new();
        for (index, output) in function.output.iter().enumerate() {
            let actual = actual(&call.output, index);
            if !actual.is_empty() {
                names.entry(output.as_str()).or_insert(actual);
            }
        }
        // What is both is an input; `passed_through` writes the output.
        for (index, input) in function.input.iter().enumerate() {
            names.insert(input, actual(&call.input, index));
        }
        Self { prefix, names, attributes, substituted: Cost::default() }
    }

    /// Outputs of the call that are inputs or earlier outputs: the caller's name, and what it stands for.
    pub(crate) fn passed_through(
        &self,
        call: &NodeProto,
        function: &FunctionProto,
    ) -> Vec<(String, String)> {
        let pairs = function.output.iter().zip(&call.output).filter(|pair| !pair.1.is_empty());
        let pairs = pairs.map(|(output, actual)| (actual.clone(), self.names[output.as_str()]));
        let other = pairs.filter(|(actual, stands_for)| actual != stands_for);
        other.map(|(actual, stands_for)| (actual, stands_for.to_owned())).collect()
    }

    /// The longest name that takes the place of one in the function.
    pub(crate) fn longest_name(&self) -> usize {
        let names = self.names.values().map(|name| name.len());
        names.max().unwrap_or(0).max(self.prefix.len() + 1)
    }

    /// Whether a name of the function is one of the caller's.
    pub(crate) fn is_outer(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// What a name of the function is to the caller.
    pub(crate) fn name(&self, name: &str) -> String {
        match self.names.get(name) {
            _ if name.is_empty() => String::new(),
            Some(&actual) => actual.to_owned(),
            None => format!("{}/{name}", self.prefix),
        }
    }

    /// An operator of the function, as the caller sees it.
    pub(crate) fn node(&mut self, node: &NodeProto, index: usize) -> NodeProto {
        let mut copy = node.clone();
        if copy.name.is_empty() {
            copy.name = format!("{}_{index}", copy.op_type);
        }
        copy.name = format!("{}/{}", self.prefix, copy.name);
        self.rename_node(&mut copy);
        copy
    }

    fn rename(&self, name: &mut String) {
        *name = self.name(name);
    }

    fn rename_node(&mut self, node: &mut NodeProto) {
        node.input.iter_mut().chain(&mut node.output).for_each(|name| self.rename(name));
        node.attribute.retain_mut(|attribute| self.attribute(attribute));
    }

    /// Whether the attribute is there: a reference to one that the call does not give is none.
    fn attribute(&mut self, attribute: &mut AttributeProto) -> bool {
        if attribute.ref_attr_name.is_empty() {
            bodies_mut(attribute).for_each(|body| self.body(body));
            return true;
        }
        let Some(&given) = self.attributes.get(attribute.ref_attr_name.as_str()) else {
            return false;
        };
        self.substituted.attribute(given);
        *attribute = AttributeProto { name: std::mem::take(&mut attribute.name), ..given.clone() };
        true
    }

    fn body(&mut self, body: &mut GraphProto) {
        let defined: Vec<String> = defined_names(body).map(str::to_owned).collect();
        let hidden: Vec<_> =
            defined.iter().filter_map(|name| self.names.remove_entry(name.as_str())).collect();
        let infos = body.input.iter_mut().chain(&mut body.output).chain(&mut body.value_info);
        infos.for_each(|info| self.rename(&mut info.name));
        body.initializer.iter_mut().for_each(|tensor| self.rename(&mut tensor.name));
        body.node.iter_mut().for_each(|node| self.rename_node(node));
        self.names.extend(hidden);
    }
}

/// The bodies of an attribute.
pub(crate) fn bodies(attribute: &AttributeProto) -> impl Iterator<Item = &GraphProto> {
    attribute.g.as_deref().into_iter().chain(&attribute.graphs)
}

/// The bodies of an attribute, to be changed.
pub(crate) fn bodies_mut(attribute: &mut AttributeProto) -> impl Iterator<Item = &mut GraphProto> {
    attribute.g.as_deref_mut().into_iter().chain(&mut attribute.graphs)
}

/// Names that a graph defines itself.
pub(crate) fn defined_names(graph: &GraphProto) -> impl Iterator<Item = &str> {
    let inputs = graph.input.iter().map(|info| info.name.as_str());
    let weights = graph.initializer.iter().map(|tensor| tensor.name.as_str());
    let results = graph.node.iter().flat_map(|node| &node.output).map(String::as_str);
    inputs.chain(weights).chain(results).filter(|name| !name.is_empty())
}
