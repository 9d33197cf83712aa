//! Runs small models for tests, each operator with its output apart and in every place that its sharing rule allows.
//!
//! ~~~text
//! ["weight x 2 = -1 3", "y = Relu(x)"]  ──run apart──> y = 0 3 <──equal bits── y written over x
//! ~~~

use crate::testing::model;
use crate::{ResolveConfig, prepare, resolve, standard};
use arbitrary::Unstructured;
use lowtide_core::operator::{
    Fact, Input, KernelError, LateCall, Operands, Output, Place, Prepared, Program, SharingRule,
};
use lowtide_core::{DType, Data, Id, Model, ModelOp, Registry, TensorId};
use std::sync::{Arc, OnceLock};

/// Outputs that are larger are not calculated.
const MOST_BYTES: u64 = 1 << 24;

/// Bytes that are aligned for every element type.
#[derive(Clone, Debug, Default)]
struct Aligned {
    words: Vec<u64>,
    len: usize,
}

impl Aligned {
    /// Memory whose content is left over from others.
    fn garbage(len: usize) -> Self {
        Self { words: vec![0xFFF7_A5A5_FFF7_A5A5; len.div_ceil(8)], len }
    }

    fn of(bytes: &[u8]) -> Self {
        let mut aligned = Self::garbage(bytes.len());
        aligned.bytes_mut().copy_from_slice(bytes);
        aligned
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }
}

/// All operators, made once for all tests.
pub(crate) fn operators() -> &'static Registry {
    static OPERATORS: OnceLock<Registry> = OnceLock::new();
    OPERATORS.get_or_init(standard)
}

/// Runs a model whose inputs are all weights with elements; its outputs as text, `dtype [dims] elements` each.
#[track_caller]
pub(crate) fn run(lines: &[&str], outputs: &str) -> Vec<String> {
    let model = model(lines, outputs);
    let resolved = resolve(&model, model.main, &ResolveConfig::default(), &standard()).unwrap();
    assert_eq!(resolved.contradictions, [""; 0], "{lines:?}");
    execute(&model).unwrap_or_else(|error| panic!("{error}: {lines:?}"))
}

/// Runs a model as [`run`] does; an error if it cannot be prepared or a kernel fails.
///
/// # Panics
/// If an operator gives other bits in place.
pub(crate) fn execute(model: &Model) -> Result<Vec<String>, String> {
    let registry = operators();
    let resolved = resolve(model, model.main, &ResolveConfig::default(), registry);
    let resolved = resolved.map_err(|error| error.to_string())?;
    let program = prepare(model, resolved.graph, &resolved.facts, registry);
    let mut program = program.map_err(|error| error.to_string())?;
    let of = |data: &Option<Data>| data.as_deref().map_or_else(Aligned::default, Aligned::of);
    let mut values: Vec<Aligned> = program.weights.iter().map(of).collect();
    for (id, op) in model.main_graph().ops.iter_enumerated() {
        if let Some(call) = program.late.remove(&id) {
            run_late(&mut program, call, &mut values)?;
            continue;
        }
        let Some(mut call) = program.calls[id].take() else {
            let (of, view) = (op.inputs[0].unwrap(), op.outputs[0].unwrap());
            values[view.index()] = values[of.index()].clone();
            continue;
        };
        let scratch = scratch_bytes(&program, id);
        let apart = run_one(&program, &mut call, &values, None, scratch);
        let apart = apart.map_err(|error| error.to_string())?;
        let rule = registry.find(&op.domain, &op.kind).unwrap().sharing();
        for over in places(&program, op, rule, &resolved.facts) {
            let shared = run_one(&program, &mut call, &values, Some(over), scratch).unwrap();
            assert_eq!(shared[0].bytes(), apart[0].bytes(), "{op:?}, output over input {over}");
        }
        for (output, value) in call.outputs.iter().zip(apart) {
            if let Some(id) = output {
                values[id.index()] = value;
            }
        }
    }
    Ok(program.outputs.iter().map(|&id| text(&program, id, &values[id.index()])).collect())
}

/// The one output of a model.
#[track_caller]
pub(crate) fn runs(lines: &[&str], wanted: &str) {
    assert_eq!(run(lines, ""), [wanted], "{lines:?}");
}

/// The elements of the one output of a model.
pub(crate) fn floats(lines: &[String]) -> Vec<f64> {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let text = run(&lines, "").remove(0);
    let elements = text.split_once("] ").map_or("", |row| row.1);
    elements.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// Small whole numbers, whose products are exact in every type. They come from one number: what is random is kept for
/// sizes.
pub(crate) fn numbers(u: &mut Unstructured<'_>, count: usize) -> arbitrary::Result<Vec<f64>> {
    let mut state: u32 = u.arbitrary()?;
    let numbers = (0..count).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 16).rem_euclid(7.0) - 3.0
    });
    Ok(numbers.collect())
}

/// Why the last operator of a model has no kernel.
#[track_caller]
pub(crate) fn refuses(lines: &[&str], wanted: &str) {
    let model = model(lines, "");
    let registry = standard();
    let resolved = resolve(&model, model.main, &ResolveConfig::default(), &registry).unwrap();
    let error = prepare(&model, resolved.graph, &resolved.facts, &registry).unwrap_err();
    assert_eq!(error.to_string(), wanted);
}

/// Why the last operator of a model fails when it runs.
#[track_caller]
pub(crate) fn fails(lines: &[&str], wanted: &str) {
    assert_eq!(execute(&model(lines, "")), Err(wanted.to_owned()), "{lines:?}");
}

fn scratch_bytes(program: &Program, id: lowtide_core::OpId) -> usize {
    let bound = program.graph.ops()[id].scratch.bound();
    usize::try_from(bound.unwrap().0).unwrap()
}

/// Inputs over which the first output may be written, if it is as large and they appear once.
fn places(
    program: &Program,
    op: &ModelOp,
    rule: SharingRule,
    facts: &lowtide_core::IndexVec<TensorId, Fact>,
) -> Vec<usize> {
    let Some(output) = op.outputs[0] else { return Vec::new() };
    let fits = |&at: &usize| {
        let Some(&Some(input)) = op.inputs.get(at) else { return false };
        let width = |id: TensorId| facts[id].dtype.and_then(DType::bits);
        let count = |id: TensorId| program.shapes[id].iter().product::<usize>();
        let is_alone = op.inputs.iter().flatten().filter(|&&other| other == input).count() == 1;
        is_alone && width(input) == width(output) && count(input) == count(output)
    };
    rule.overwrites(op).into_iter().filter(fits).collect()
}

/// Runs one operator; its first output over an input, if one is named.
fn run_one(
    program: &Program,
    call: &mut Prepared,
    values: &[Aligned],
    over: Option<usize>,
    scratch: usize,
) -> Result<Vec<Aligned>, KernelError> {
    let tensor = |id: TensorId| &program.graph.tensors()[id];
    let input = |(at, id): (usize, &Option<TensorId>)| {
        id.map(|id| {
            let place = if over == Some(at) {
                Place::In { output: 0, offset: 0 }
            } else {
                Place::Apart(values[id.index()].bytes())
            };
            let (dtype, dims) = (tensor(id).dtype.unwrap(), &*program.shapes[id]);
            Input { at, dtype, dims, place }
        })
    };
    let inputs: Vec<Option<Input<'_>>> = call.inputs.iter().enumerate().map(input).collect();
    let mut memory: Vec<Aligned> = call
        .outputs
        .iter()
        .map(|id| {
            let bytes = id.map_or(0, |id| tensor(id).size.bound().unwrap().0);
            Aligned::garbage(usize::try_from(bytes).unwrap())
        })
        .collect();
    if let Some(at) = over {
        memory[0] = values[call.inputs[at].unwrap().index()].clone();
    }
    let outputs: Vec<Option<Output<'_>>> = (call.outputs.iter().enumerate().zip(&mut memory))
        .map(|((at, id), memory)| {
            id.map(|id| {
                let (dtype, dims) = (tensor(id).dtype.unwrap(), &*program.shapes[id]);
                Output { at, dtype, dims, bytes: memory.bytes_mut() }
            })
        })
        .collect();
    let mut scratch = Aligned::garbage(scratch);
    let mut operands = Operands { inputs, outputs, scratch: scratch.bytes_mut() };
    call.kernel.run(&mut operands)?;
    Ok(memory)
}

/// Runs an operator that learns its shapes now.
fn run_late(program: &mut Program, call: LateCall, values: &mut [Aligned]) -> Result<(), String> {
    let LateCall { mut late, inputs, outputs } = call;
    let dtype = |program: &Program, id: TensorId| program.graph.tensors()[id].dtype.unwrap();
    let input = |(at, id): (usize, &Option<TensorId>)| {
        id.map(|id| {
            let place = Place::Apart(values[id.index()].bytes());
            Input { at, dtype: dtype(program, id), dims: &program.shapes[id], place }
        })
    };
    let inputs: Vec<Option<Input<'_>>> = inputs.iter().enumerate().map(input).collect();
    let measured = late.measure(&inputs).map_err(|error| error.to_string())?;
    let wanted = || outputs.iter().zip(&measured.shapes).enumerate();
    let sizes = wanted().map(|(_, (id, dims))| {
        let count = dims.as_ref().map_or(0, |dims| dims.iter().product::<usize>() as u64);
        id.and_then(|id| dtype(program, id).bytes(count)).unwrap_or_default().0
    });
    let sizes: Vec<u64> = sizes.collect();
    if sizes.iter().any(|&bytes| bytes > MOST_BYTES) {
        return Err(format!("{sizes:?} bytes are more than a test takes"));
    }
    let mut memory: Vec<Aligned> =
        sizes.iter().map(|&bytes| Aligned::garbage(usize::try_from(bytes).unwrap())).collect();
    let output = |((at, (id, dims)), memory): ((usize, (&Option<TensorId>, _)), _)| {
        let (id, dims): (TensorId, &Option<Arc<[usize]>>) = ((*id)?, dims);
        let memory: &mut Aligned = memory;
        let bytes = memory.bytes_mut();
        Some(Output { at, dtype: dtype(program, id), dims: dims.as_ref()?, bytes })
    };
    let all = wanted().zip(&mut memory).map(output).collect();
    let mut scratch = Aligned::garbage(usize::try_from(measured.scratch.0).unwrap());
    match late.kernel() {
        Some(kernel) => {
            let mut operands = Operands { inputs, outputs: all, scratch: scratch.bytes_mut() };
            kernel.run(&mut operands).map_err(|error| error.to_string())?;
        }
        None => memory[0] = Aligned::of(inputs[0].unwrap().bytes().unwrap()),
    }
    for ((id, dims), value) in outputs.iter().zip(&measured.shapes).zip(memory) {
        if let Some((id, dims)) = id.zip(dims.as_ref()) {
            values[id.index()] = value;
            program.shapes[id] = (**dims).into();
        }
    }
    Ok(())
}

fn text(program: &Program, id: TensorId, value: &Aligned) -> String {
    let dtype = program.graph.tensors()[id].dtype.unwrap();
    let bytes = value.bytes();
    macro_rules! words {
        ($($dtype:ident: $rust:ty),+) => {
            match dtype {
                $(DType::$dtype => bytemuck::cast_slice::<u8, $rust>(bytes).iter().map(ToString::to_string).collect(),)+
                other => vec![format!("{} bytes of {other}", bytes.len())],
            }
        };
    }
    let words: Vec<String> = words!(
        F32: f32, F64: f64, I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64, Bool: u8,
        F16: u16, BF16: u16
    );
    let shape: Vec<String> = program.shapes[id].iter().map(ToString::to_string).collect();
    format!("{dtype} [{}] {}", shape.join(", "), words.join(" "))
}
