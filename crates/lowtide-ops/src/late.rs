//! [`LateOp`]: an operator whose shapes follow from the inputs of each run: the same rules as before a run, told more.
//!
//! ~~~text
//! inputs of this run ──facts──> dims as numbers, elements of small ones ──shapes or measure──> shapes ──> kernel
//!                                                                      equal to the last run's: all of it is kept
//! ~~~
//! Rules look at elements of small tensors only: of integers and truth values, from which shapes are calculated, as many
//! as inference follows, of fractions a few (scales, bounds). So a kernel is made anew when a size changes, or one of those
//! elements. Weights are what was known of them before. Cost of an equal run: comparing sizes and those elements.

use crate::call::{Call, Misfit};
use crate::expr::Expr;
use crate::fact::{self, Fact, MAX_ELEMENTS};
use crate::infer;
use crate::known::Known;
use crate::prepare::check_size;
use lowtide_core::operator::{Input, Kernel, Late, Measured, NoKernel};
use lowtide_core::{
    Bytes, DType, Graph, ModelOp, OpId, Registry, Size, Source, TensorId, element_count,
};
use std::sync::Arc;

/// Elements of a tensor of fractions that rules may look at: two scales an axis.
const MOST_FRACTIONS: usize = 16;

/// Whether an operand of an operator has no size before the run, or lies in something that has none.
pub(crate) fn is_late(graph: &Graph, id: OpId) -> bool {
    let op = &graph.ops()[id];
    let is_open = |tensor: TensorId| !matches!(graph.tensors()[tensor].size, Size::Fixed(_));
    let mut operands = op.inputs.iter().chain(&op.outputs);
    operands.any(|&id| is_open(id) || is_open(graph.storage(id)))
        || !matches!(op.scratch, Size::Fixed(_))
}

/// An operator of a model, and what it came to in the last run.
pub(crate) struct LateOp {
    registry: Arc<Registry>,
    op: ModelOp,
    opset: i64,
    /// What is known of inputs that are weights.
    weights: Vec<Option<Fact>>,
    /// What was known of the outputs before the run.
    declared: Vec<Option<Fact>>,
    /// Whether its outputs are views, so that it needs no kernel.
    is_view: bool,
    last: Option<Last>,
}

struct Last {
    seen: Vec<Option<Seen>>,
    measured: Measured,
    kernel: Option<Box<dyn Kernel>>,
    /// Whether the shapes depend on elements that were not seen.
    counts: bool,
}

/// What rules saw of an input.
#[derive(PartialEq, Eq)]
struct Seen {
    dims: Box<[usize]>,
    elements: Option<Box<[u8]>>,
}

impl LateOp {
    /// An operator of a graph; an error if it has no kernel, whatever its operands.
    pub(crate) fn new(
        known: Known<'_>,
        registry: &Arc<Registry>,
        op: &ModelOp,
        is_view: bool,
    ) -> Result<Self, NoKernel> {
        let operator = known.operator(op).ok_or(NoKernel::NotWritten)?;
        if !is_view && !operator.has_kernel() {
            return Err(NoKernel::NotWritten);
        }
        let is_weight = |id: TensorId| {
            let source = known.source.tensors[id].source;
            matches!(source, Source::Initializer | Source::Constant | Source::WeightInput)
        };
        let weight = |id: &Option<TensorId>| {
            let id = id.filter(|&id| is_weight(id))?;
            let is_told = |fact: &&Fact| {
                let count = fact.element_count();
                count.is_some_and(|count| count > MAX_ELEMENTS || fact.elements.is_some())
            };
            Some(&known.facts[id]).filter(is_told).cloned()
        };
        Ok(Self {
            registry: Arc::clone(registry),
            opset: infer::opset(known.model, &op.domain),
            weights: op.inputs.iter().map(weight).collect(),
            declared: known.facts(&op.outputs).into_iter().map(Option::<&Fact>::cloned).collect(),
            op: op.clone(),
            is_view,
            last: None,
        })
    }

    /// Whether the rules would see what they saw in the last run.
    fn is_as_before(&self, inputs: &[Option<Input<'_>>]) -> bool {
        let is_same = |(at, input): (usize, &Option<Input<'_>>), seen: &Option<Seen>| {
            let is_weight = self.weights.get(at).is_some_and(Option::is_some);
            match (input, seen) {
                (Some(input), Some(seen)) => {
                    let elements = if is_weight { None } else { looked_at(*input) };
                    *input.dims == *seen.dims && elements == seen.elements.as_deref()
                }
                (input, seen) => input.is_none() && seen.is_none(),
            }
        };
        self.last.as_ref().is_some_and(|last| {
            let rows = inputs.iter().enumerate().zip(&last.seen);
            inputs.len() == last.seen.len()
                && rows.into_iter().all(|(one, seen)| is_same(one, seen))
        })
    }

    fn see(&self, inputs: &[Option<Input<'_>>]) -> Vec<Option<Seen>> {
        let see = |(at, input): (usize, &Option<Input<'_>>)| {
            let input = (*input)?;
            let is_weight = self.weights.get(at).is_some_and(Option::is_some);
            let elements = if is_weight { None } else { looked_at(input) };
            Some(Seen { dims: input.dims.into(), elements: elements.map(Into::into) })
        };
        inputs.iter().enumerate().map(see).collect()
    }

    fn facts(&self, inputs: &[Option<Input<'_>>]) -> Result<Vec<Option<Fact>>, NoKernel> {
        let fact = |(at, input): (usize, &Option<Input<'_>>)| {
            let Some(input) = input else { return Ok(None) };
            match self.weights.get(at) {
                Some(Some(known)) => Ok(Some(known.clone())),
                _ => fact_of(*input).map(Some),
            }
        };
        inputs.iter().enumerate().map(fact).collect()
    }

    /// Applies the rules.
    fn renew(&mut self, inputs: &[Option<Input<'_>>]) -> Result<Measured, NoKernel> {
        let facts = self.facts(inputs)?;
        let given: Vec<Option<&Fact>> = facts.iter().map(Option::as_ref).collect();
        let call = Call { op: &self.op, opset: self.opset, inputs: &given };
        let operator = self.registry.find(&self.op.domain, &self.op.kind);
        let operator = operator.ok_or(NoKernel::NotWritten)?;
        let counted = operator.measure(&call, inputs).transpose()?;
        let counts = counted.is_some();
        let told: Vec<Fact> = match counted {
            Some(all) => all.iter().map(|dims| of_dims(None, dims)).collect::<Result<_, _>>()?,
            None => operator.shapes(&call).transpose()?.unwrap_or_default(),
        };
        let outputs = self.outputs(&told)?;
        let shapes: Vec<Option<Arc<[usize]>>> =
            outputs.iter().map(|fact| Some(numbers(fact.as_ref()?)?.into())).collect();
        if let Some(last) = self.last.as_ref().filter(|last| last.measured.shapes == shapes)
            && self.is_as_before(inputs)
        {
            return Ok(last.measured.clone());
        }
        if self.is_view {
            check_view(&facts, &outputs)?;
        }
        let scratch = operator.scratch(&call).map_or(Ok(Bytes::ZERO), |fact| bytes(&fact))?;
        let made: Vec<Option<&Fact>> = outputs.iter().map(Option::as_ref).collect();
        given.iter().chain(&made).flatten().try_for_each(|fact| check_size(fact))?;
        let kernel = if self.is_view { None } else { Some(operator.kernel(&call, &made)?) };
        let measured = Measured { shapes, scratch };
        let seen = self.see(inputs);
        self.last = Some(Last { seen, measured: measured.clone(), kernel, counts });
        Ok(measured)
    }

    /// What the wanted outputs are, all dimensions in numbers.
    fn outputs(&self, told: &[Fact]) -> Result<Vec<Option<Fact>>, NoKernel> {
        let unknown = Fact::default();
        let one = |(at, declared): (usize, &Option<Fact>)| {
            let declared = declared.as_ref();
            declared.map(|declared| complete(at, told.get(at).unwrap_or(&unknown), declared))
        };
        self.declared.iter().enumerate().map(|row| one(row).transpose()).collect()
    }
}

impl Late for LateOp {
    fn measure(&mut self, inputs: &[Option<Input<'_>>]) -> Result<Measured, NoKernel> {
        // Who counts elements may count others in the same sizes.
        if let Some(last) = self.last.as_ref().filter(|last| !last.counts)
            && self.is_as_before(inputs)
        {
            return Ok(last.measured.clone());
        }
        self.renew(inputs)
    }

    fn kernel(&mut self) -> Option<&mut dyn Kernel> {
        match &mut self.last.as_mut()?.kernel {
            Some(kernel) => Some(kernel.as_mut()),
            None => None,
        }
    }
}

/// The elements that rules may look at.
fn looked_at(input: Input<'_>) -> Option<&[u8]> {
    let most = match input.dtype {
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => MOST_FRACTIONS,
        _ => MAX_ELEMENTS,
    };
    input.bytes().ok().filter(|_| input.len() <= most)
}

/// What is known of an input in this run.
fn fact_of(input: Input<'_>) -> Result<Fact, NoKernel> {
    let fact = of_dims(Some(input.dtype), input.dims)?;
    let dims = fact.known_dims().unwrap_or_default();
    let elements = looked_at(input).and_then(|data| fact::elements_of(input.dtype, &dims, data));
    Ok(fact.with(elements))
}

fn of_dims(dtype: Option<DType>, dims: &[usize]) -> Result<Fact, NoKernel> {
    let too_large = || NoKernel::Misfit(format!("a shape of {dims:?} is too large"));
    let dims: Option<Vec<i64>> = dims.iter().map(|&dim| i64::try_from(dim).ok()).collect();
    let fact = Fact::of_dims(DType::U8, &dims.ok_or_else(too_large)?);
    Ok(Fact { dtype, ..fact })
}

/// The output `at` as the rule tells it in this run, or else as it was known before. Both have to agree.
fn complete(at: usize, told: &Fact, declared: &Fact) -> Result<Fact, NoKernel> {
    let misfit = |text: String| NoKernel::Misfit(format!("output {at} {text}"));
    if told.dtype.is_some() && told.dtype != declared.dtype {
        return Err(misfit(format!("is {:?}, planned as {:?}", told.dtype, declared.dtype)));
    }
    let Some(dims) = told.dims.as_ref().or(declared.dims.as_ref()) else {
        return Err(misfit("has a shape that no rule tells".to_owned()));
    };
    let before = declared.dims.as_deref().unwrap_or(dims);
    if before.len() != dims.len() {
        let (found, wanted) = (dims.len(), before.len());
        return Err(misfit(format!("has {found} dimensions, planned were {wanted}")));
    }
    let number = |(now, before): (&fact::Extent, &fact::Extent)| {
        let [now, before] = [now, before].map(|dim| dim.as_ref().and_then(Expr::known));
        match (now, before) {
            (Some(now), Some(before)) if now != before => {
                Err(misfit(format!("has a dimension of {now}, planned was {before}")))
            }
            (Some(dim), _) | (None, Some(dim)) if dim >= 0 => Ok(dim),
            (Some(dim), _) | (None, Some(dim)) => {
                Err(misfit(format!("has a dimension of {dim}, below 0")))
            }
            (None, None) => Err(misfit("has a dimension that no rule tells".to_owned())),
        }
    };
    let dims: Vec<i64> = dims.iter().zip(before).map(number).collect::<Result<_, _>>()?;
    let fact = Fact::of_dims(DType::U8, &dims);
    Ok(Fact { dtype: declared.dtype, ..fact }.with(told.elements.clone()))
}

/// That a view has as many bytes as what it is a view of.
fn check_view(inputs: &[Option<Fact>], outputs: &[Option<Fact>]) -> Result<(), NoKernel> {
    let of = |facts: &[Option<Fact>]| facts.first().cloned().flatten().unwrap_or_default();
    let (found, wanted) = (bytes(&of(outputs))?, bytes(&of(inputs))?);
    if found == wanted {
        return Ok(());
    }
    Err(Misfit(format!("its output of {found} is to be a view of {wanted}")).into())
}

fn numbers(fact: &Fact) -> Option<Vec<usize>> {
    fact.known_dims()?.iter().map(|&dim| usize::try_from(dim).ok()).collect()
}

/// What a tensor takes.
fn bytes(fact: &Fact) -> Result<Bytes, NoKernel> {
    let dims = numbers(fact).map(|dims| dims.iter().map(|&dim| dim as u64).collect::<Vec<u64>>());
    let count = dims.and_then(|dims| element_count(&dims));
    let bytes = fact.dtype.zip(count).and_then(|(dtype, count)| dtype.bytes(count));
    let fits = bytes.filter(|&bytes| bytes <= Bytes::MAX_TOTAL);
    fits.ok_or_else(|| NoKernel::Unsupported("a size that is not known, or too large".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResolveConfig;
    use crate::kernels::testing::{execute, runs};
    use crate::testing::model;
    use lowtide_core::Operator;
    use lowtide_core::operator::{Facts, LateCall, Operands, Place};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Where a tensor of two rows is not 0, and how often.
    const FOUND: [&str; 4] =
        ["weight x 2 3 = 0 5 0 6 0 7", "z = NonZero(x)", "t = Transpose(z)", "g = GatherND(x, t)"];
    const COUNT: [&str; 3] = ["s = Shape(g)", "weight one i64 1 = 1", "weight no i64 1 = 0"];

    #[track_caller]
    fn behind(lines: &[&str], wanted: &str) {
        runs(&[&FOUND[..], &COUNT, lines].concat(), wanted);
    }

    #[test]
    fn shapes_follow_from_what_is_calculated_in_the_run() {
        behind(&["y = Neg(g)"], "float32 [3] -5 -6 -7");
        behind(&["y = Expand(one, s)"], "int64 [3] 1 1 1");
        behind(&["y = ConstantOfShape(s) {value=tensor i32 4}"], "int32 [3] 4 4 4");
        behind(&["y = Tile(s, s)"], "int64 [3] 3 3 3");
        behind(&["h = Sub(s, one)", "y = Slice(g, no, h)"], "float32 [2] 5 6");
        behind(
            &["q = Squeeze(s)", "weight a i64 = 0", "weight b i64 = 2", "y = Range(a, q, b)"],
            "int64 [2] 0 2",
        );
        behind(&["h = Sub(s, one)", "y; i = TopK(g, h)"], "int64 [2] 2 1");
        behind(&["h = Concat(s, one) {axis=0}", "y = Reshape(g, h)"], "float32 [3, 1] 5 6 7");
        behind(&["h = Greater(g, g)", "y = Compress(g, h)"], "float32 [0] ");
        behind(&["h = Concat(no, s) {axis=0}", "y = Pad(g, h)"], "float32 [6] 5 6 7 0 0 0");
    }

    #[test]
    fn what_does_not_fit_is_said_in_the_run() {
        let fails = |lines: &[&str], wanted: &str| {
            let lines = [&FOUND[..], &COUNT, lines].concat();
            let error = execute(&model(&lines, "")).unwrap_err();
            assert!(error.ends_with(wanted), "{error}");
        };
        fails(
            &["weight w 2 = 1 2", "y = Add(g, w)"],
            "[3] and [2] cannot be broadcast to each other",
        );
        fails(&["weight w i64 2 = 2 2", "y = Reshape(g, w)"], "[3] cannot become [2, 2]");
        fails(&["y 7 = Neg(g)"], "has a dimension of 3, planned was 7");
    }

    /// Counts the kernels that it makes. Its output is as long as its second input says.
    #[derive(Debug)]
    struct Counting(Arc<AtomicUsize>);

    impl Operator for Counting {
        fn kind(&self) -> &'static str {
            "Counting"
        }

        fn shapes(&self, call: &Call<'_>) -> Option<Facts> {
            Some(Ok(vec![call.typed(0, Some(vec![call.scalar_int(1)]))]))
        }

        fn kernel(&self, _: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(|_: &mut Operands<'_>| Ok(())))
        }
    }

    #[test]
    fn a_kernel_is_kept_while_what_was_looked_at_stays() {
        let made = Arc::new(AtomicUsize::new(0));
        let mut registry = crate::standard();
        registry.add(Arc::new(Counting(Arc::clone(&made))));
        let model = model(&["input x n", "input k i64 1", "y f32 ? = Counting(x, k)"], "y");
        let resolved =
            crate::resolve(&model, model.main, &ResolveConfig::default(), &registry).unwrap();
        let program = crate::prepare(&model, resolved.graph, &resolved.facts, &registry).unwrap();
        let mut calls: Vec<(OpId, LateCall)> = program.late.into_iter().collect();
        let late = &mut calls[0].1.late;
        let mut kernels_for = |x: &[f32], k: i64| {
            let (x_dims, k) = ([x.len()], [k]);
            let input = |at, dtype, dims, bytes| {
                Some(Input { at, dtype, dims, place: Place::Apart(bytes) })
            };
            let x = input(0, DType::F32, &x_dims[..], bytemuck::cast_slice(x));
            let k_input = input(1, DType::I64, &[1], bytemuck::cast_slice(&k));
            let measured = late.measure(&[x, k_input]).unwrap();
            let wanted = [usize::try_from(k[0]).unwrap()];
            assert_eq!(measured.shapes[0].as_deref(), Some(&wanted[..]));
            made.load(Ordering::Relaxed)
        };
        assert_eq!(kernels_for(&[1.0; 20], 3), 1);
        assert_eq!(kernels_for(&[2.0; 20], 3), 1);
        assert_eq!(kernels_for(&[2.0; 21], 3), 2);
        assert_eq!(kernels_for(&[2.0; 21], 4), 3);
        assert_eq!(kernels_for(&[2.0; 21], 4), 3);
    }
}
