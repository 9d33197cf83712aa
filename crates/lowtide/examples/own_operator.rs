//! An operator of one's own: declared, planned, and run in place, without touching Lowtide.
//!
//! ~~~text
//! x ─ Relu ─ a ─ ours.Scale(factor = 3) ─ y        y is written over a, as the declaration allows
//! ~~~

use lowtide::core::operator::{
    Call, Facts, Kernel, KernelError, NoKernel, Operands, Operator, Place, SharingRule,
};
use lowtide::core::{
    Attribute, DType, Dim, GraphId, IndexVec, Model, ModelGraph, ModelOp, ModelTensor, Source,
    TensorId, Value,
};
use lowtide::{PlanConfig, ResolveConfig, Session, SessionConfig, TensorRef, check, ops, plan};
use std::sync::Arc;

/// `y = factor * x`.
#[derive(Debug)]
struct Scale;

impl Operator for Scale {
    fn domain(&self) -> &'static str {
        "ours"
    }

    fn kind(&self) -> &'static str {
        "Scale"
    }

    /// The output is like the input.
    fn shapes(&self, call: &Call<'_>) -> Option<Facts> {
        let mut output = call.input(0).clone();
        output.elements = None;
        Some(Ok(vec![output]))
    }

    /// Element i is read before it is written, so the output may lie on the input.
    fn sharing(&self) -> SharingRule {
        SharingRule::Overwrite(&[0])
    }

    fn kernel(
        &self,
        call: &Call<'_>,
        _outputs: &[Option<&lowtide::core::operator::Fact>],
    ) -> Result<Box<dyn Kernel>, NoKernel> {
        if call.dtype(0) != Some(DType::F32) {
            return Err(NoKernel::Unsupported("elements other than float32".to_owned()));
        }
        let factor = call.float("factor").unwrap_or(1.0);
        Ok(Box::new(move |operands: &mut Operands<'_>| scale(factor, operands)))
    }
}

/// In place the input is already in the output; apart it is copied there first.
fn scale(factor: f32, operands: &mut Operands<'_>) -> Result<(), KernelError> {
    let input = operands.input(0)?;
    let output = operands.values_mut::<f32>(0)?;
    if let Place::Apart(_) = input.place {
        output.copy_from_slice(input.values()?);
    }
    for value in output {
        *value *= factor;
    }
    Ok(())
}

/// What a file would say.
fn model() -> Model {
    let mut graph = ModelGraph { name: "scaled".to_owned(), ..ModelGraph::default() };
    let sources = [("x", Source::Input), ("a", Source::Computed), ("y", Source::Computed)];
    let [x, a, y] = sources.map(|(name, source)| {
        let shape = Some(vec![Dim::Known(4)]).filter(|_| source == Source::Input);
        let (name, dtype) = (name.to_owned(), Some(DType::F32));
        graph.tensors.push(ModelTensor { name, dtype, shape, source })
    });
    let factor = Attribute { name: "factor".to_owned(), value: Value::Float(3.0) };
    graph.ops.push(op("", "Relu", x, a, Vec::new()));
    graph.ops.push(op("ours", "Scale", a, y, vec![factor]));
    (graph.inputs, graph.outputs) = (vec![x], vec![y]);
    Model {
        graphs: IndexVec::from(vec![graph]),
        main: GraphId::new(0),
        opsets: vec![(String::new(), 17), ("ours".to_owned(), 1)],
        ir_version: 8,
        producer: String::new(),
        metadata: Vec::new(),
    }
}

fn op(domain: &str, kind: &str, from: TensorId, to: TensorId, with: Vec<Attribute>) -> ModelOp {
    ModelOp {
        name: kind.to_lowercase(),
        domain: domain.to_owned(),
        kind: kind.to_owned(),
        inputs: vec![Some(from)],
        outputs: vec![Some(to)],
        captured: Vec::new(),
        attributes: with,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut operators = ops::standard();
    operators.add(Arc::new(Scale));
    let model = model();
    let resolved = ops::resolve(&model, model.main, &ResolveConfig::default(), &operators)?;
    let planned = plan(&resolved.graph, &PlanConfig::default())?;
    assert_eq!(planned.plan.buffers.len(), 1, "y lies on a");
    let checked = check(&resolved.graph, planned.plan)?;
    let program = ops::prepare(&model, resolved.graph, &resolved.facts, &operators)?;
    let mut session = Session::new(program, checked, &SessionConfig::default())?;
    let x = [1.0_f32, -2.0, 3.0, -4.0];
    let inputs = [TensorRef::new(&[4], &x)?];
    let outputs = session.run(&inputs)?;
    let y = outputs.get(0).and_then(TensorRef::values::<f32>).ok_or("no output")?;
    assert!(y == [3.0, 0.0, 9.0, 0.0]);
    Ok(())
}
