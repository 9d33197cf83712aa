//! [`ResolveConfig`]: what a user says of the dimensions that a model leaves open.
//!
//! ~~~text
//! x [batch, seq, 64]    dims: batch = 8    max_dims: seq = 512    ──>  x takes at most 8 x 512 x 64 elements
//! ~~~
//! A name that the model does not have is most likely a slip of the pen: [`unused_dims`] finds it, and
//! [`dim_names`] says what could have been meant.

use crate::{ResolveError, dim_text};
use lowtide_core::{Dim, Model, ModelGraph, ModelTensor};
use std::collections::{BTreeMap, BTreeSet};

/// What a user says of the dimensions that a model leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolveConfig {
    /// Names of dimensions and their values.
    pub dims: BTreeMap<String, u64>,
    /// Names of dimensions and the most that they can be.
    pub max_dims: BTreeMap<String, u64>,
    /// Names of inputs and their whole shapes, instead of what the file declares. Where it declares a name, that
    /// is bound, as if it stood in `dims`.
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

    /// The same, with each name bound that an input declares where its shape is given.
    pub(crate) fn with_names_of_shapes(&self, graph: &ModelGraph) -> Result<Self, ResolveError> {
        let mut config = self.clone();
        for (name, given) in &self.shapes {
            let declared = input(graph, name)?.shape.as_deref().unwrap_or_default();
            let has_none = declared.is_empty() && input(graph, name)?.shape.is_none();
            if declared.len() != given.len() && !has_none {
                return Err(ResolveError::Rank {
                    input: name.clone(),
                    declared: Dim::shape_text(declared),
                    given: given.clone(),
                });
            }
            for (dim, &value) in declared.iter().zip(given) {
                if let Dim::Named(dim) = dim {
                    config.bind(dim, value, name)?;
                }
            }
        }
        Ok(config)
    }

    /// Binds a name as the shape of an input says.
    fn bind(&mut self, name: &str, value: u64, input: &str) -> Result<(), ResolveError> {
        let most = self.max_dims.remove(name).filter(|&most| value > most);
        let bound = self.dims.insert(name.to_owned(), value).filter(|&bound| bound != value);
        let conflict = |wanted: String| ResolveError::Conflict {
            input: input.to_owned(),
            name: name.to_owned(),
            given: value,
            wanted,
        };
        match (bound, most) {
            (Some(bound), _) => Err(conflict(bound.to_string())),
            (None, Some(most)) => Err(conflict(format!("at most {most}"))),
            (None, None) => Ok(()),
        }
    }
}

/// The input of a graph with this name.
fn input<'a>(graph: &'a ModelGraph, name: &str) -> Result<&'a ModelTensor, ResolveError> {
    let inputs = || graph.inputs.iter().map(|&id| &graph.tensors[id]);
    let found = inputs().find(|row| row.name == name);
    found.ok_or_else(|| ResolveError::NoSuchInput {
        name: name.to_owned(),
        inputs: inputs().map(|row| format!("`{}`", row.name)).collect::<Vec<_>>().join(", "),
    })
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
    let parts: BTreeSet<String> = names.iter().flat_map(|name| dim_text::names(name)).collect();
    given.filter(|&name| !names.contains(name) && !parts.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bounds, dims, model, resolve_with};

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

    fn shapes(rows: &[(&str, &[u64])]) -> ResolveConfig {
        let shapes = rows.iter().map(|(name, dims)| ((*name).to_owned(), dims.to_vec())).collect();
        ResolveConfig { shapes, ..ResolveConfig::default() }
    }

    /// The shape of the last tensor.
    fn last(lines: &[&str], config: &ResolveConfig) -> String {
        let resolved = resolve_with(lines, "", config).unwrap();
        let last = resolved.graph.tensors().iter().next_back().unwrap();
        Dim::shape_text(last.shape.as_deref().unwrap())
    }

    #[track_caller]
    fn fails(lines: &[&str], config: &ResolveConfig, message: &str) {
        assert_eq!(resolve_with(lines, "", config).unwrap_err().to_string(), message);
    }

    #[test]
    fn the_shape_of_an_input_binds_its_names_everywhere() {
        let lines = ["input x batch 3 h w", "input z batch h", "y = Relu(z)"];
        assert_eq!(last(&lines, &shapes(&[("x", &[1, 3, 224, 200])])), "[1, 224]");
        assert_eq!(last(&["input x 1 3", "y = Relu(x)"], &shapes(&[("x", &[8, 3])])), "[8, 3]");
    }

    #[test]
    fn names_that_are_expressions_are_bound_by_their_parts() {
        let lines = ["input x past", "input m past+1 2*batch", "input b batch", "y = Relu(m)"];
        assert_eq!(last(&lines, &dims("past", 7)), "[8, 2*batch]");
        assert_eq!(last(&lines, &dims("past+1", 7)), "[7, 2*batch]");
        assert_eq!(last(&["input m 2*batch", "y = Relu(m)"], &dims("batch", 3)), "[6]");
        assert!(unused_dims(&model(&["input m 2*batch"], ""), &dims("batch", 3)).is_empty());
    }

    #[test]
    fn a_shape_fits_what_it_is_for() {
        let lines = ["input x n 3", "input z n", "y = Relu(z)"];
        let message = "a shape is given for `y`, wanted one of the inputs: `x`, `z`";
        fails(&lines, &shapes(&[("y", &[1])]), message);
        let message = "shape [1] is given for input `x`, which is declared [n, 3]";
        fails(&lines, &shapes(&[("x", &[1])]), message);
    }

    #[test]
    fn names_are_bound_to_one_value() {
        let lines = ["input x n 3", "input z n", "y = Relu(z)"];
        let message = "the shape of input `z` binds dimension `n` to 5, wanted 4";
        fails(&lines, &shapes(&[("x", &[4, 3]), ("z", &[5])]), message);
        let both = ResolveConfig { dims: dims("n", 4).dims, ..shapes(&[("z", &[5])]) };
        fails(&lines, &both, message);
        let bounded = ResolveConfig { max_dims: bounds("n", 4).max_dims, ..shapes(&[("z", &[5])]) };
        let message = "the shape of input `z` binds dimension `n` to 5, wanted at most 4";
        fails(&lines, &bounded, message);
        let below = ResolveConfig { max_dims: bounds("n", 9).max_dims, ..shapes(&[("z", &[5])]) };
        assert_eq!(last(&lines, &below), "[5]");
    }
}
