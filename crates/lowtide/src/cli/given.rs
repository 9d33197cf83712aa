//! What people hand over beside a model: arrays, and perhaps a plan.
//!
//! ~~~text
//! --input x=x.npy ──> arrays ──> shapes of the model, values of its inputs      --random: those that are not given
//! --plan plan.json ─> Plan, which nobody has judged yet                         no --plan: it is made
//! ~~~

use super::args::{GivenArgs, ModelArgs};
use super::{out, progress};
use anyhow::{Context, bail};
use lowtide::core::Dim;
use lowtide::core::operator::Program;
use lowtide::formats::{self, Array};
use lowtide::planner::{PlanConfig, plan_watched};
use lowtide::runtime::TensorSpec;
use lowtide::{LoadOptions, Loaded, Plan, TensorRef, load, random_input, random_weights};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Arrays by the name of their input.
pub(super) type Arrays = BTreeMap<String, Array>;

/// What it means if a plan of our own is refused.
pub(super) const OUR_FAULT: &str = "the planner made a wrong plan, which is a fault of lowtide";

/// A model, and what it is run on.
pub(super) struct Given {
    pub(super) arrays: Arrays,
    pub(super) options: LoadOptions,
    pub(super) loaded: Loaded,
    /// The model's file, as typed.
    pub(super) name: String,
}

/// Reads arrays and model, and warns of what is odd in it.
pub(super) fn read(model: &ModelArgs, args: &GivenArgs) -> anyhow::Result<Given> {
    let arrays = arrays(args)?;
    let options = options(model, &arrays)?;
    let path = &model.model;
    let name = path.display().to_string();
    let (loaded, _) = progress::during(&format!("reading {name}"), || load(path, &options));
    let loaded = loaded?;
    check_shapes(model, &loaded, &arrays)?;
    warn(&loaded);
    Ok(Given { arrays, options, loaded, name })
}

/// The arrays that are given as files.
fn arrays(args: &GivenArgs) -> anyhow::Result<Arrays> {
    let mut arrays = Arrays::new();
    for (name, path) in &args.input {
        let bytes = out::read_file(path)?;
        let array = formats::read_npy(&bytes)
            .with_context(|| format!("`{}` is not an array that can be read", path.display()))?;
        if arrays.insert(name.clone(), array).is_some() {
            bail!("--input gives `{name}` twice");
        }
    }
    Ok(arrays)
}

/// How the model is read; an array that is given says the shape of its input.
fn options(args: &ModelArgs, given: &Arrays) -> anyhow::Result<LoadOptions> {
    let mut options = args.options()?;
    for (name, array) in given {
        let dims = array.dims().iter().map(|&dim| dim as u64).collect();
        options.resolve.shapes.entry(name.clone()).or_insert(dims);
    }
    Ok(options)
}

/// That no array contradicts a dimension that the model declares as a number, unless `--shape` says so.
fn check_shapes(args: &ModelArgs, loaded: &Loaded, given: &Arrays) -> anyhow::Result<()> {
    let Some(model) = &loaded.model else { return Ok(()) };
    let graph = model.main_graph();
    for row in graph.inputs.iter().map(|&id| &graph.tensors[id]) {
        let (Some(array), Some(declared)) = (given.get(&row.name), &row.shape) else { continue };
        let differs =
            |(dim, &found): (&Dim, &usize)| matches!(dim, Dim::Known(n) if *n != found as u64);
        let is_meant = args.gives_shape(&row.name);
        if !is_meant && declared.iter().zip(array.dims()).any(differs) {
            let (name, found, wanted) = (&row.name, array.dims(), Dim::shape_text(declared));
            bail!(
                "the array for input `{name}` is {found:?}, the model declares {wanted}; --shape overrides that"
            );
        }
    }
    Ok(())
}

/// Says what is odd about a model.
fn warn(loaded: &Loaded) {
    let warnings = loaded.weights.iter().flat_map(|report| &report.warnings);
    for text in warnings.chain(&loaded.contradictions) {
        out::message(&format!("warning: {text}"));
    }
}

/// A plan: read from a file, or made now.
pub(super) fn plan(
    path: Option<&Path>,
    (config, limit): (&PlanConfig, Option<Duration>),
    loaded: &Loaded,
    name: &str,
) -> anyhow::Result<Plan> {
    if let Some(path) = path {
        let bytes = out::read_file(path)?;
        let read = formats::read_plan(&bytes);
        return read
            .with_context(|| format!("`{}` is not a plan that can be read", path.display()));
    }
    let make = || plan_watched(&loaded.graph, config, &progress::until(limit));
    let (planned, _) = progress::during(&format!("planning {name}"), make);
    Ok(planned.context("the flags make no plan")?.plan)
}

/// A model ready to run; with `--random` the weights that its file leaves out have values.
pub(super) fn program(
    args: &GivenArgs,
    loaded: &Loaded,
    options: &LoadOptions,
) -> anyhow::Result<Program> {
    let mut program = lowtide::program(loaded, &options.operators)?;
    if args.random {
        let count = random_weights(&mut program, args.seed);
        if count > 0 {
            out::message(&format!("note: {count} weights without values got random ones"));
        }
    }
    Ok(program)
}

/// An array for each input, in order.
pub(super) fn inputs(
    args: &GivenArgs,
    specs: &[TensorSpec],
    mut given: Arrays,
) -> anyhow::Result<Vec<Array>> {
    let described =
        |spec: &TensorSpec| format!("`{}` {} {}", spec.name, spec.dtype, spec.shape_text());
    let mut arrays = Vec::new();
    let mut missing = Vec::new();
    for spec in specs {
        let array = given.remove(&spec.name).or_else(|| {
            let dims = random_dims(spec).filter(|_| args.random)?;
            random_input(&spec.name, spec.dtype, &dims, args.seed)
        });
        match array {
            Some(array) => arrays.push(array),
            None => missing.push(described(spec)),
        }
    }
    if let Some(name) = given.keys().next() {
        let names: Vec<String> = specs.iter().map(described).collect();
        bail!("--input gives `{name}`, wanted one of the inputs: {}", names.join(", "));
    }
    if !missing.is_empty() {
        bail!(
            "no values are given for {}; wanted --input INPUT=FILE.npy, or --random",
            missing.join(", ")
        );
    }
    Ok(arrays)
}

/// The shape of an input with random values: 1 for what nobody has bound; `None` if not even the number of dimensions is
/// known.
fn random_dims(spec: &TensorSpec) -> Option<Vec<usize>> {
    let number = |dim: &Dim| match dim {
        Dim::Known(number) => usize::try_from(*number).ok(),
        Dim::Named(_) | Dim::Unknown => Some(1),
    };
    spec.shape.as_ref()?.iter().map(number).collect()
}

/// An array as a session takes it.
pub(super) fn as_tensor(array: &Array) -> TensorRef<'_> {
    let tensor = TensorRef::from_bytes(array.dtype(), array.dims(), array.bytes());
    tensor.expect("an array has as many bytes as its shape")
}
