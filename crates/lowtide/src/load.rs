//! File to graph, whatever kind of file it is.
//!
//! ~~~text
//! model.onnx ──onnx::read──> Model ──ops::resolve──> Graph
//! graph.json, graph.json.gz ──formats::read_graph──> Graph
//! ~~~
//! The kind is known by the name's ending, and where that says nothing by the first byte. What is not a plain
//! file (a pipe, standard input) is read into memory.

use lowtide_core::operator::Fact;
use lowtide_core::{Data, Dim, Graph, GraphError, IndexVec, Model, OpId, Registry, TensorId};
use lowtide_formats::{GraphJsonError, GraphLimits};
use lowtide_onnx::{ReadOptions, WeightReport};
use lowtide_ops::{Cost, Machine, ResolveConfig, ResolveError};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How files are read and what their open dimensions are.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Values and bounds of named dimensions.
    pub resolve: ResolveConfig,
    /// How an ONNX file is read, and what it may hold.
    pub onnx: ReadOptions,
    /// What a graph file may hold.
    pub graph: GraphLimits,
    /// What operators mean.
    pub operators: Registry,
    /// How fast the machine is for which an ONNX model is planned: gives operators their times. The operators of a graph
    /// file have theirs, or none.
    pub machine: Machine,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            resolve: ResolveConfig::default(),
            onnx: ReadOptions::default(),
            graph: GraphLimits::default(),
            operators: lowtide_ops::standard(),
            machine: Machine::default(),
        }
    }
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
    /// Names of dimensions that the file has and nobody has bound, those of its inputs first.
    pub open_dims: Vec<String>,
    /// Where the values of the weights are and what they cost; a graph file has none.
    pub weights: Option<WeightReport>,
    /// What each operator costs, where that is known; of a graph file nothing is.
    pub costs: IndexVec<OpId, Option<Cost>>,
    /// What is known of each tensor; of a graph file nothing more than its graph says.
    pub facts: IndexVec<TensorId, Fact>,
    /// The bytes of an ONNX file, perhaps mapped, from which it can be written in another order.
    pub file: Option<Data>,
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
    #[error("`{}` is not an ONNX model that can be read (nor a graph, which begins with `{{`)", path.display())]
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
    /// The machine gives an operator a time that is none.
    #[error("the machine that `{}` is planned for is none", path.display())]
    Machine {
        /// Which file.
        path: PathBuf,
        /// Which operator, and which time.
        #[source]
        source: GraphError,
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
    /// A dimension was bound of a graph file.
    #[error("cannot bind `{name}`: the sizes of a graph file are fixed, --dim is for ONNX models")]
    FixedSizes {
        /// The name that was given.
        name: String,
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

/// Reads a model or graph; `-` is standard input. Memory follows the length of the file.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Loaded, LoadError> {
    let io = |source| LoadError::Io { path: path.to_owned(), source };
    let is_plain = path.as_os_str() != "-" && path.metadata().map_err(io)?.is_file();
    if is_plain && path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("onnx")) {
        let read = lowtide_onnx::read(path, &options.onnx);
        let read = read.map_err(|source| LoadError::Onnx { path: path.to_owned(), source })?;
        return resolve(path, read, options);
    }
    let bytes = read_all(path).map_err(io)?;
    if is_json(path, &bytes) {
        return load_json(path, &bytes, options);
    }
    let read = lowtide_onnx::read_bytes(bytes.into(), None, &options.onnx);
    let read = read.map_err(|source| LoadError::Onnx { path: path.to_owned(), source })?;
    resolve(path, read, options)
}

fn read_all(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str() != "-" {
        return std::fs::read(path);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a file is a graph in JSON; otherwise it is a model.
fn is_json(path: &Path, bytes: &[u8]) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        Some("onnx") => false,
        Some("json" | "gz") => true,
        _ => matches!(bytes, [b'{' | b'\n' | b' ', ..] | [0x1f, 0x8b, ..]),
    }
}

fn load_json(path: &Path, bytes: &[u8], options: &LoadOptions) -> Result<Loaded, LoadError> {
    let ResolveConfig { dims, max_dims, .. } = &options.resolve;
    if let Some(name) = dims.keys().chain(max_dims.keys()).next() {
        return Err(LoadError::FixedSizes { name: name.clone() });
    }
    let graph = lowtide_formats::read_graph(bytes, &options.graph)
        .map_err(|source| LoadError::GraphJson { path: path.to_owned(), source })?;
    Ok(Loaded {
        model: None,
        file_ops: graph.ops().len(),
        unknown_ops: BTreeMap::new(),
        contradictions: Vec::new(),
        unknown_tensors: unknown_tensors(&graph),
        open_dims: Vec::new(),
        weights: None,
        costs: IndexVec::new(),
        facts: IndexVec::new(),
        file: None,
        graph,
    })
}

fn resolve(
    path: &Path,
    read: lowtide_onnx::Loaded,
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    let lowtide_onnx::Loaded { model, report, bytes } = read;
    let unused = lowtide_ops::unused_dims(&model, &options.resolve);
    if !unused.is_empty() {
        let names = lowtide_ops::dim_names(&model);
        return Err(LoadError::UnusedDims { unused: quoted(&unused), known: quoted(&names) });
    }
    let resolved = lowtide_ops::resolve(&model, model.main, &options.resolve, &options.operators)
        .map_err(|source| LoadError::Resolve { path: path.to_owned(), source })?;
    let machine = options.machine;
    let seconds = |cost: &Option<Cost>| cost.as_ref().map(|cost| machine.seconds(cost));
    let graph = resolved
        .graph
        .with_costs(&resolved.costs.iter().map(seconds).collect())
        .map_err(|source| LoadError::Machine { path: path.to_owned(), source })?;
    Ok(Loaded {
        file_ops: model.main_graph().file_op_count(),
        unknown_ops: resolved.unknown_ops,
        contradictions: resolved.contradictions,
        unknown_tensors: unknown_tensors(&graph),
        open_dims: open_dims(&model, &graph),
        weights: Some(report),
        costs: resolved.costs,
        facts: resolved.facts,
        file: Some(bytes),
        graph,
        model: Some(model),
    })
}

/// Names that still stand in a shape; names that a file makes up for what follows from others do not.
fn open_dims(model: &Model, graph: &Graph) -> Vec<String> {
    let dims =
        graph.tensors().iter().flat_map(|tensor| tensor.shape.as_deref().unwrap_or_default());
    let left: BTreeSet<&str> = dims
        .filter_map(|dim| match dim {
            Dim::Named(name) => Some(&**name),
            Dim::Known(_) | Dim::Unknown => None,
        })
        .collect();
    let names = lowtide_ops::dim_names(model).into_iter().filter(|name| left.contains(name));
    names.map(str::to_owned).collect()
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
