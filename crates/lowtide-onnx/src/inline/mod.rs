//! Local functions: a file with calls in, the same file with the operators of its functions out.
//!
//! ~~~text
//! function Gelu(x) -> y { t = Erf(x); y = Mul(x, t) }
//!
//! act: b = Gelu(a)   ──>   act/Erf_0: act/t = Erf(a)
//!                          act/Mul_1: b = Mul(a, act/t)
//! ~~~
//! Calls lie in graphs, in bodies and in functions, and all are replaced, also in functions that came from
//! a call. A local function goes before an operator of the same domain and type. Names are made of the
//! call's, and where somebody has such a name already, of the call's with a number behind it.
//!
//! Functions that call each other can write a long model in few bytes, so there are limits: on the depth of
//! calls and bodies together, on operators, and on the memory of the copies. Cost: linear in the result.

mod cost;
mod frame;
#[cfg(test)]
mod tests;

use crate::key::{Key, domain};
use crate::proto::{
    FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto,
};
use crate::{Limits, LoadError};
use cost::Cost;
use frame::{Frame, bodies, bodies_mut, defined_names};
use std::collections::{BTreeMap, BTreeSet};

/// Replaces all calls; returns what a person should know.
pub(crate) fn inline(proto: &mut ModelProto, limits: &Limits) -> Result<Vec<String>, LoadError> {
    let functions = std::mem::take(&mut proto.functions);
    let Some(graph) = proto.graph.as_mut().filter(|_| !functions.is_empty()) else {
        return Ok(Vec::new());
    };
    let mut inliner = Inliner::new(&functions, &mut proto.opset_import, limits)?;
    inliner.enter_names(graph);
    inliner.graph(graph, 0)?;
    Ok(inliner.warnings)
}

struct Inliner<'p> {
    limits: &'p Limits,
    functions: BTreeMap<Key, Callee<'p>>,
    opsets: &'p mut Vec<OperatorSetIdProto>,
    warnings: Vec<String>,
    /// Every name of a tensor in the model; for each call, its prefix.
    names: BTreeSet<String>,
    /// For each prefix that was wanted: how often it was taken.
    taken: BTreeMap<String, u32>,
    ops: u64,
    bytes: u64,
}

#[derive(Clone, Copy)]
struct Callee<'p> {
    function: &'p FunctionProto,
    cost: Cost,
    is_called: bool,
}

impl<'p> Inliner<'p> {
    fn new(
        functions: &'p [FunctionProto],
        opsets: &'p mut Vec<OperatorSetIdProto>,
        limits: &'p Limits,
    ) -> Result<Self, LoadError> {
        let mut table = BTreeMap::new();
        for function in functions {
            check_outputs(function)?;
            let callee = Callee { function, cost: Cost::of_call(function), is_called: false };
            if table.insert(function.key(), callee).is_some() {
                return Err(LoadError::DuplicateFunction { function: function.name.clone() });
            }
        }
        let (names, taken, warnings) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
        Ok(Self { limits, functions: table, opsets, warnings, names, taken, ops: 0, bytes: 0 })
    }

    fn enter_names(&mut self, graph: &GraphProto) {
        self.names.extend(defined_names(graph).map(str::to_owned));
        let attributes = graph.node.iter().flat_map(|node| &node.attribute);
        attributes.flat_map(bodies).for_each(|body| self.enter_names(body));
    }

    fn graph(&mut self, graph: &mut GraphProto, depth: usize) -> Result<(), LoadError> {
        let (depth, limit) = (depth + 1, self.limits.max_depth);
        if depth > limit + 1 {
            return Err(LoadError::TooDeep { graph: graph.name.clone(), depth: depth - 1, limit });
        }
        let mut flat = Flat { nodes: Vec::new(), infos: std::mem::take(&mut graph.value_info) };
        self.nodes(std::mem::take(&mut graph.node), depth, &mut flat)?;
        (graph.node, graph.value_info) = (flat.nodes, flat.infos);
        Ok(())
    }

    fn nodes(
        &mut self,
        nodes: Vec<NodeProto>,
        depth: usize,
        flat: &mut Flat,
    ) -> Result<(), LoadError> {
        for (index, mut node) in nodes.into_iter().enumerate() {
            if self.functions.contains_key(&node.key()) {
                self.call(&node, index, depth, flat)?;
                continue;
            }
            for body in node.attribute.iter_mut().flat_map(bodies_mut) {
                self.graph(body, depth)?;
            }
            flat.nodes.push(node);
        }
        Ok(())
    }

    fn call(
        &mut self,
        call: &NodeProto,
        index: usize,
        depth: usize,
        flat: &mut Flat,
    ) -> Result<(), LoadError> {
        let callee = self.callee(call);
        let function = callee.function;
        self.check_call(call, function, depth)?;
        let prefix = self.prefix(call, index);
        let mut frame = Frame::new(call, function, &prefix);
        self.count(callee.cost, frame.longest_name())?;
        let mut nodes = Vec::with_capacity(function.node.len());
        for (index, node) in function.node.iter().enumerate() {
            nodes.push(frame.node(node, index));
            self.count(std::mem::take(&mut frame.substituted), 0)?;
        }
        let passed = frame.passed_through(call, function).into_iter();
        nodes.extend(passed.map(|(output, input)| identity(&prefix, input, output)));
        flat.infos.extend(inner_infos(function, &frame));
        let copy = GraphProto { node: nodes, ..GraphProto::default() };
        self.enter_names(&copy);
        self.nodes(copy.node, depth + 1, flat)
    }

    /// What a call calls. The first time, its operator sets become those of the model.
    fn callee(&mut self, call: &NodeProto) -> Callee<'p> {
        let callee = self.functions.get_mut(&call.key()).expect("looked up before");
        let found = *callee;
        callee.is_called = true;
        if !found.is_called {
            found.function.opset_import.iter().for_each(|row| self.opset(row, found.function));
        }
        found
    }

    fn opset(&mut self, row: &OperatorSetIdProto, function: &FunctionProto) {
        let known = self.opsets.iter().find(|known| domain(&known.domain) == domain(&row.domain));
        match known {
            None => self.opsets.push(row.clone()),
            Some(known) if known.version != row.version => {
                let set = if row.domain.is_empty() { "ai.onnx" } else { &row.domain };
                self.warnings.push(format!(
                    "function `{}` wants version {} of operator set `{set}`, version {} is used",
                    function.name, row.version, known.version
                ));
            }
            Some(_) => {}
        }
    }

    fn check_call(
        &self,
        call: &NodeProto,
        function: &FunctionProto,
        depth: usize,
    ) -> Result<(), LoadError> {
        if depth > self.limits.max_depth {
            let (function, limit) = (function.name.clone(), self.limits.max_depth);
            return Err(LoadError::CallsTooDeep { function, limit });
        }
        let counts = [
            ("inputs", call.input.len(), function.input.len()),
            ("outputs", call.output.len(), function.output.len()),
        ];
        match counts.into_iter().find(|&(_, found, limit)| found > limit) {
            None => Ok(()),
            Some((kind, found, limit)) => {
                let (op, function) = (call.name.clone(), function.name.clone());
                Err(LoadError::TooManyArguments { op, function, kind, found, limit })
            }
        }
    }

    /// What names of this call begin with: nobody else has a name that begins so.
    fn prefix(&mut self, call: &NodeProto, index: usize) -> String {
        let wanted = match call.name.as_str() {
            "" => format!("{}_{index}", call.op_type),
            name => name.to_owned(),
        };
        let number = self.taken.entry(wanted.clone()).or_default();
        loop {
            let prefix = if *number == 0 { wanted.clone() } else { format!("{wanted}_{number}") };
            *number += 1;
            let start = format!("{prefix}/");
            let next = self.names.range(start.clone()..).next();
            if !next.is_some_and(|name| name.starts_with(&start)) {
                self.names.insert(start);
                return prefix;
            }
        }
    }

    fn count(&mut self, cost: Cost, longest_name: usize) -> Result<(), LoadError> {
        self.ops += cost.ops;
        let (found, limit) = (self.ops, self.limits.max_ops);
        if found > u64::from(limit) {
            return Err(LoadError::TooManyOps { found, limit });
        }
        let names = cost.names.saturating_mul(longest_name as u64);
        self.bytes = self.bytes.saturating_add(cost.bytes).saturating_add(names);
        let limit = self.limits.max_function_bytes;
        if self.bytes <= limit {
            return Ok(());
        }
        Err(LoadError::FunctionsTooLong { limit })
    }
}

/// A graph without calls.
struct Flat {
    nodes: Vec<NodeProto>,
    infos: Vec<ValueInfoProto>,
}

fn identity(prefix: &str, input: String, output: String) -> NodeProto {
    NodeProto {
        name: format!("{prefix}/Identity"),
        op_type: "Identity".to_owned(),
        input: vec![input],
        output: vec![output],
        ..NodeProto::default()
    }
}

/// What the function declares of its inner tensors. Its names of dimensions mean nothing outside.
fn inner_infos<'f>(
    function: &'f FunctionProto,
    frame: &Frame<'f>,
) -> impl Iterator<Item = ValueInfoProto> {
    function.value_info.iter().filter(|info| !frame.is_outer(&info.name)).map(|info| {
        let mut info = ValueInfoProto { name: frame.name(&info.name), ..info.clone() };
        info.forget_dim_names();
        info
    })
}

/// Every output is written, or is an input.
fn check_outputs(function: &FunctionProto) -> Result<(), LoadError> {
    let written = function.node.iter().flat_map(|node| &node.output);
    let known: BTreeSet<&str> = written.chain(&function.input).map(String::as_str).collect();
    match function.output.iter().find(|output| !known.contains(output.as_str())) {
        None => Ok(()),
        Some(tensor) => {
            let (function, tensor) = (function.name.clone(), tensor.clone());
            Err(LoadError::UndefinedFunctionOutput { function, tensor })
        }
    }
}
