//! [`ResolveConfig`]: what a user says of the dimensions that a model leaves open.
//!
//! ~~~text
//! x [batch, seq, 64]    dims: batch = 8    max_dims: seq = 512    ──>  x takes at most 8 x 512 x 64 elements
//! ~~~
//! A name that the model does not have is most likely a slip of the pen: [`unused_dims`] finds it, and
//! [`dim_names`] says what could have been meant.

use crate::ResolveError;
use lowtide_core::{Dim, Model};
use std::collections::{BTreeMap, BTreeSet};

/// What a user says of the dimensions that a model leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolveConfig {
    /// Names of dimensions and their values.
    pub dims: BTreeMap<String, u64>,
    /// Names of dimensions and the most that they can be.
    pub max_dims: BTreeMap<String, u64>,
    /// Names of inputs and their whole shapes, instead of what the file declares.
    pub shapes: BTreeMap<String, Vec<u64>>,
}

impl ResolveConfig {
    /// No name is bound in two ways.
    pub(crate) fn check(&self) -> Result<(), ResolveError> {
        for (name, &value) in &self.dims {
            if let Some(&most) = self.max_dims.get(name) {
                return Err(ResolveError::BoundTwice { name: name.clone(), value, most });
            }
        }
        Ok(())
    }
}

/// All names of dimensions in a model, each once; those of the main graph's inputs come first.
pub fn dim_names(model: &Model) -> Vec<&str> {
    let tensors = model.graphs.iter().flat_map(|graph| &graph.tensors);
    let dims = tensors.flat_map(|tensor| tensor.shape.as_deref().unwrap_or_default());
    let names = dims.filter_map(|dim| match dim {
        Dim::Named(name) => Some(&**name),
        Dim::Known(_) | Dim::Unknown => None,
    });
    let mut seen = BTreeSet::new();
    names.filter(|&name| seen.insert(name)).collect()
}

/// Names in the configuration that the model does not have.
pub fn unused_dims<'c>(model: &Model, config: &'c ResolveConfig) -> Vec<&'c str> {
    let names: BTreeSet<&str> = dim_names(model).into_iter().collect();
    let given = config.dims.keys().chain(config.max_dims.keys()).map(String::as_str);
    given.filter(|name| !names.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bounds, dims, model};

    #[test]
    fn a_dimension_is_bound_once() {
        let config = ResolveConfig { max_dims: bounds("batch", 4).max_dims, ..dims("batch", 2) };
        let message = "dimension `batch` is bound to 2 and again to at most 4, wanted one of them";
        assert_eq!(config.check().unwrap_err().to_string(), message);
    }

    #[test]
    fn names_come_in_order_and_slips_are_found() {
        let model = model(&["input x batch 3 width", "y batch alpha = Conv(x)"], "y");
        assert_eq!(dim_names(&model), ["batch", "width", "alpha"]);
        assert_eq!(unused_dims(&model, &dims("bacth", 2)), ["bacth"]);
        assert!(unused_dims(&model, &bounds("width", 2)).is_empty());
    }
}
