//! What rten-gemm allocates on a thread is no more than kernels declare, and nothing after the first run.
//!
//! ~~~text
//! small product, larger product, ..     one thread: buffers grow, and are kept
//!     first runs <= the most that one of them declares, later runs = 0
//! ~~~
//! The counting allocator sees all threads of the process, so this is a program without a harness.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use lowtide_core::operator::{Call, Fact, Input, Kernel, Operands, Output, Place};
use lowtide_core::{Attribute, Bytes, DType, ModelOp, Value};
use rayon::ThreadPoolBuilder;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::thread;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What a kernel reads or writes.
type Array = (Vec<usize>, Vec<f32>);

/// A kernel, and memory for its operands.
struct Ready {
    kernel: Box<dyn Kernel>,
    inputs: Vec<Array>,
    output: Array,
    scratch: Vec<f32>,
}

fn zeros(fact: &Fact) -> Array {
    let dims = fact.known_dims().unwrap();
    let dims: Vec<usize> = dims.iter().map(|&dim| usize::try_from(dim).unwrap()).collect();
    let len = dims.iter().product();
    (dims, vec![0.0; len])
}

/// The operator with inputs of these shapes, and attributes that are 1.
fn ready(kind: &str, shapes: [&[i64]; 2], flags: &[&str]) -> Ready {
    let flag = |name: &&str| Attribute { name: (*name).to_owned(), value: Value::Int(1) };
    let op = ModelOp {
        name: String::new(),
        domain: String::new(),
        kind: kind.to_owned(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        captured: Vec::new(),
        attributes: flags.iter().map(flag).collect(),
    };
    let facts = shapes.map(|dims| Fact::of_dims(DType::F32, dims));
    let inputs: Vec<Option<&Fact>> = facts.iter().map(Some).collect();
    let call = Call { op: &op, opset: 21, inputs: &inputs };
    let registry = lowtide_ops::standard();
    let operator = registry.find("", kind).unwrap();
    let output = operator.shapes(&call).unwrap().unwrap().remove(0);
    let scratch = operator.scratch(&call).and_then(|fact| fact.element_count()).unwrap_or(0);
    Ready {
        kernel: operator.kernel(&call, &[Some(&output)]).unwrap(),
        inputs: facts.iter().map(zeros).collect(),
        output: zeros(&output),
        scratch: vec![0.0; scratch],
    }
}

impl Ready {
    /// Runs it; what it allocated.
    fn run(&mut self) -> Bytes {
        let mut inputs = Vec::new();
        for (at, (dims, values)) in self.inputs.iter().enumerate() {
            let place = Place::Apart(bytemuck::cast_slice(values));
            inputs.push(Some(Input { at, dtype: DType::F32, dims, place }));
        }
        let (dims, values) = &mut self.output;
        let bytes = bytemuck::cast_slice_mut(values);
        let outputs = vec![Some(Output { at: 0, dtype: DType::F32, dims, bytes })];
        let scratch = bytemuck::cast_slice_mut(&mut self.scratch);
        let mut operands = Operands { inputs, outputs, scratch };
        let start = allocated();
        self.kernel.run(&mut operands).unwrap();
        allocated().saturating_sub(start)
    }
}

fn allocated() -> Bytes {
    Bytes(u64::try_from(ALLOCATOR.stats().bytes_allocated).unwrap())
}

/// Runs operators one after the other on one new thread, which is all that rayon has there: threads of a pool that
/// comes to its end later would be counted too.
fn check_declared(name: &str, mut kernels: Vec<Ready>) {
    let declared = kernels.iter().map(|ready| ready.kernel.hidden_bytes()).max().unwrap();
    let mut run =
        || kernels.iter_mut().fold(Bytes::ZERO, |sum, ready| Bytes(sum.0 + ready.run().0));
    let alone = || {
        ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
        (run(), run())
    };
    let (first, later) = thread::scope(|scope| scope.spawn(alone).join().unwrap());
    assert!(first <= declared, "{name}: {first} in the first runs, declared {declared}");
    assert_eq!(later, Bytes::ZERO, "{name}: in later runs");
}

/// Products allocate what they declare, and then nothing.
fn main() {
    let product = |m, k, n| ready("MatMul", [&[m, k], &[k, n]], &[]);
    check_declared("one product", vec![product(7, 300, 2000)]);
    check_declared("a small one", vec![product(2, 3, 5)]);
    check_declared("one row, one column", vec![product(1, 300, 900), product(900, 300, 1)]);
    let sizes = [(3, 10, 30), (9, 70, 90), (65, 130, 500), (200, 256, 600), (5, 999, 1025)];
    check_declared("ever larger", sizes.map(|(m, k, n)| product(m, k, n)).into());
    check_declared("a stack", vec![ready("MatMul", [&[3, 5, 70], &[3, 70, 90]], &[])]);
    let turned = ready("Gemm", [&[300, 130], &[700, 300]], &["transA", "transB"]);
    check_declared("both sides turned", vec![turned]);
    let image: &[i64] = &[2, 24, 40, 30];
    for kernel in [[48, 24, 3, 3], [48, 24, 1, 1], [3, 24, 5, 5]] {
        check_declared("a convolution", vec![ready("Conv", [image, &kernel], &[])]);
    }
    let transposed = ready("ConvTranspose", [image, &[24, 10, 3, 3]], &[]);
    check_declared("a transposed convolution", vec![transposed]);
}
