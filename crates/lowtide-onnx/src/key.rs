//! What an operator does: domain, type and overload, by which calls find their function.
//!
//! ~~~text
//! NodeProto { domain: "ai.onnx", op_type: "Relu" }  ──>  ["", "Relu", ""]
//! ~~~

use crate::proto::{FunctionKey, FunctionProto, NodeKey, NodeProto};

/// Domain, type and overload.
pub(crate) type Key = [String; 3];

/// The standard domain has two names.
pub(crate) fn domain(name: &str) -> String {
    if name == "ai.onnx" { String::new() } else { name.to_owned() }
}

fn key(of_domain: &str, kind: &str, overload: &str) -> Key {
    [domain(of_domain), kind.to_owned(), overload.to_owned()]
}

/// Whether an operator is the value of a weight.
fn is_constant(of_domain: &str, kind: &str) -> bool {
    kind == "Constant" && matches!(of_domain, "" | "ai.onnx")
}

impl NodeProto {
    pub(crate) fn key(&self) -> Key {
        key(&self.domain, &self.op_type, &self.overload)
    }

    pub(crate) fn is_constant(&self) -> bool {
        is_constant(&self.domain, &self.op_type)
    }
}

impl NodeKey {
    pub(crate) fn key(&self) -> Key {
        key(&self.domain, &self.op_type, &self.overload)
    }

    pub(crate) fn is_constant(&self) -> bool {
        is_constant(&self.domain, &self.op_type)
    }
}

impl FunctionProto {
    pub(crate) fn key(&self) -> Key {
        key(&self.domain, &self.name, &self.overload)
    }
}

impl FunctionKey {
    pub(crate) fn key(&self) -> Key {
        key(&self.domain, &self.name, &self.overload)
    }
}
