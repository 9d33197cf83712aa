//! File to graph, whatever kind of file it is.
//!
//! ~~~text
//! model.onnx ──onnx::read──> Model ──ops::resolve──> Graph
//! graph.json, graph.json.gz ──formats::read_graph──> Graph
//! ~~~
//! The kind is known by the name's ending, and where that says nothing by the first byte.

use lowtide_core::{Graph, Model, TensorId};
use lowtide_formats::{GraphJsonError, GraphLimits};
use lowtide_ops::{ResolveConfig, ResolveError};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How files are read and what their open dimensions are.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Values and bounds of named dimensions.
    pub resolve: ResolveConfig,
    /// How an ONNX file is read, and what it may hold.
    pub onnx: lowtide_onnx::ReadOptions,
    /// What a graph file may hold.
    pub graph: GraphLimits,
}

/// A graph, and what was found on the way to it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The graph.
    pub graph: Graph,
    /// The model that it was resolved from; a graph file has none.
    pub model: Option<Model>,
    /// Operators that the file lists, constants included.
    pub file_ops: usize,
    /// Operator types without a declaration, and how many operators are of each.
    pub unknown_ops: BTreeMap<String, usize>,
    /// What the file declares in two ways that do not agree.
    pub contradictions: Vec<String>,
    /// Computed tensors of unknown size.
    pub unknown_tensors: Vec<TensorId>,
    /// Names of dimensions that the file leaves open and that can be bound, those of its inputs first.
    pub dims: Vec<String>,
}

/// Why a file gives no graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no model.
    #[error("`{}` is not a model that can be read", path.display())]
    Onnx {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: lowtide_onnx::LoadError,
    },
    /// Its shapes or operators make no graph.
    #[error("`{}` cannot be resolved", path.display())]
    Resolve {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: ResolveError,
    },
    /// It is no graph file.
    #[error("`{}` is not a graph that can be read", path.display())]
    GraphJson {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: GraphJsonError,
    },
    /// Dimensions were bound that the file does not have.
    #[error("no dimension is named {unused}; the file has {known}")]
    UnusedDims {
        /// Names that were given.
        unused: String,
        /// Names that could be.
        known: String,
    },
}

/// Reads a model or graph. Memory follows the length of the file.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Loaded, LoadError> {
    let is_json =
        is_json(path).map_err(|source| LoadError::Io { path: path.to_owned(), source })?;
    if is_json { load_json(path, options) } else { load_onnx(path, options) }
}

/// Whether a file is a graph in JSON; otherwise it is a model.
fn is_json(path: &Path) -> io::Result<bool> {
    let mut first = [0; 1];
    let read = File::open(path)?.read(&mut first)?;
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    Ok(match ending.as_deref() {
        Some("onnx") => false,
        Some("json" | "gz") => true,
        _ => read == 1 && matches!(first[0], b'{' | 0x1f),
    })
}

fn load_json(path: &Path, options: &LoadOptions) -> Result<Loaded, LoadError> {
    let ResolveConfig { dims, max_dims } = &options.resolve;
    if let Some(name) = dims.keys().chain(max_dims.keys()).next() {
        return Err(LoadError::UnusedDims { unused: quoted(&[name]), known: quoted(&[]) });
    }
    let bytes =
        std::fs::read(path).map_err(|source| LoadError::Io { path: path.to_owned(), source })?;
    let graph = lowtide_formats::read_graph(&bytes, &options.graph)
        .map_err(|source| LoadError::GraphJson { path: path.to_owned(), source })?;
    Ok(Loaded {
        model: None,
        file_ops: graph.ops().len(),
        unknown_ops: BTreeMap::new(),
        contradictions: Vec::new(),
        unknown_tensors: unknown_tensors(&graph),
        dims: Vec::new(),
        graph,
    })
}

fn load_onnx(path: &Path, options: &LoadOptions) -> Result<Loaded, LoadError> {
    let model = lowtide_onnx::read(path, &options.onnx)
        .map_err(|source| LoadError::Onnx { path: path.to_owned(), source })?
        .model;
    let unused = lowtide_ops::unused_dims(&model, &options.resolve);
    if !unused.is_empty() {
        let known = lowtide_ops::dim_names(&model);
        return Err(LoadError::UnusedDims { unused: quoted(&unused), known: quoted(&known) });
    }
    let resolved = lowtide_ops::resolve(&model, model.main, &options.resolve)
        .map_err(|source| LoadError::Resolve { path: path.to_owned(), source })?;
    let dims = lowtide_ops::dim_names(&model).into_iter().map(str::to_owned).collect();
    Ok(Loaded {
        file_ops: model.main_graph().file_op_count(),
        unknown_ops: resolved.unknown_ops,
        contradictions: resolved.contradictions,
        unknown_tensors: unknown_tensors(&resolved.graph),
        dims,
        graph: resolved.graph,
        model: Some(model),
    })
}

/// The first few names of a list.
fn quoted(names: &[&str]) -> String {
    const SHOWN: usize = 12;
    let mut quoted: Vec<String> =
        names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    if names.len() > SHOWN {
        quoted.push(format!("and {} more", names.len() - SHOWN));
    }
    if quoted.is_empty() { "numbers only".to_owned() } else { quoted.join(", ") }
}

fn unknown_tensors(graph: &Graph) -> Vec<TensorId> {
    let is_unknown = |&id: &TensorId| {
        graph.is_storage(id)
            && graph.writer(id).is_some()
            && graph.tensors()[id].size.bound().is_none()
    };
    graph.tensors().ids().filter(is_unknown).collect()
}
