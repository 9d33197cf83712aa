//! [`Call`]: one operator with what is known of its inputs, as shape rules see it.
//!
//! ~~~text
//! Call { op: Concat(axis = -1), inputs: [Fact, Fact] }  ──rule──>  Ok([Fact])        one fact an output
//!                                                                  Err(Misfit(..))   the inputs do not fit
//! ~~~
//! A rule says what it can tell and leaves the rest unknown; it never guesses. A [`Misfit`] is a contradiction
//! in the model: it is reported, and the outputs keep what the file declares.

use super::expr::Expr;
use super::fact::{Element, Extent, Fact, Scalar};
use crate::{DType, ModelOp, Value};

/// Why the inputs of an operator do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit(pub String);

/// What a rule tells of the outputs, by position; outputs that it leaves out are unknown.
pub type Facts = Result<Vec<Fact>, Misfit>;

/// From a call to what is known of its outputs.
pub type ShapeRule = fn(&Call<'_>) -> Facts;

/// One operator with its inputs.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The operator.
    pub op: &'a ModelOp,
    /// Version of the operator set that its domain has in this model.
    pub opset: i64,
    /// By position; `None` for one that is absent.
    pub inputs: &'a [Option<&'a Fact>],
}

static UNKNOWN: Fact = Fact { dtype: None, dims: None, elements: None };

impl<'a> Call<'a> {
    /// Whether input `at` is there.
    pub fn has(&self, at: usize) -> bool {
        self.inputs.get(at).is_some_and(Option::is_some)
    }

    /// What is known of input `at`; nothing if it is absent.
    pub fn input(&self, at: usize) -> &'a Fact {
        self.inputs.get(at).copied().flatten().unwrap_or(&UNKNOWN)
    }

    /// The shape of input `at`, as far as it is known.
    pub fn dims(&self, at: usize) -> Option<&'a [Extent]> {
        self.input(at).dims.as_deref()
    }

    /// The number of dimensions of input `at`.
    pub fn rank(&self, at: usize) -> Option<usize> {
        self.dims(at).map(<[Extent]>::len)
    }

    /// One dimension of input `at`.
    pub fn dim(&self, at: usize, axis: usize) -> Extent {
        self.dims(at)?.get(axis)?.clone()
    }

    /// A tensor with the type of input `at`.
    pub fn typed(&self, at: usize, dims: Option<Vec<Extent>>) -> Fact {
        Fact::new(self.dtype(at), dims)
    }

    /// The element type of input `at`.
    pub fn dtype(&self, at: usize) -> Option<DType> {
        self.input(at).dtype
    }

    /// The elements of input `at`, if it is small and its number of elements is known.
    pub fn elements(&self, at: usize) -> Option<&'a [Element]> {
        self.input(at).elements.as_deref()
    }

    /// The integer elements of input `at`, each if it is known; `None` if not even their number is.
    pub fn exprs(&self, at: usize) -> Option<Vec<Extent>> {
        let elements = self.elements(at)?;
        Some(elements.iter().map(|one| one.as_ref()?.int().cloned()).collect())
    }

    /// The integer elements of input `at`, if all are numbers.
    pub fn ints_of(&self, at: usize) -> Option<Vec<i64>> {
        self.input(at).ints()
    }

    /// The only element of input `at`.
    pub fn scalar(&self, at: usize) -> Option<&'a Scalar> {
        match self.elements(at)? {
            [one] => one.as_ref(),
            _ => None,
        }
    }

    /// The only element of input `at`, an integer.
    pub fn scalar_int(&self, at: usize) -> Extent {
        self.scalar(at)?.int().cloned()
    }

    /// An attribute that is an integer.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.op.attribute(name)? {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// An attribute that is an integer, or what it is where it is absent.
    pub fn int_or(&self, name: &str, default: i64) -> i64 {
        self.int(name).unwrap_or(default)
    }

    /// Whether an attribute is there and not 0.
    pub fn flag(&self, name: &str) -> bool {
        self.int_or(name, 0) != 0
    }

    /// An attribute that is a list of integers.
    pub fn ints(&self, name: &str) -> Option<&'a [i64]> {
        match self.op.attribute(name)? {
            Value::Ints(values) => Some(values),
            _ => None,
        }
    }

    /// An attribute that is a number.
    pub fn float(&self, name: &str) -> Option<f32> {
        match self.op.attribute(name)? {
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// An attribute that is a list of numbers.
    pub fn floats(&self, name: &str) -> Option<&'a [f32]> {
        match self.op.attribute(name)? {
            Value::Floats(values) => Some(values),
            _ => None,
        }
    }

    /// An attribute that is text in UTF-8.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        match self.op.attribute(name)? {
            Value::Text(value) => std::str::from_utf8(value).ok(),
            _ => None,
        }
    }

    /// Integers that are an attribute in old versions and input `at` in new ones. `Err` if there is such an
    /// input but its elements are not known; `Ok(None)` if neither is there.
    pub fn ints_either(&self, name: &str, at: usize) -> Result<Option<Vec<i64>>, NotKnown> {
        if let Some(values) = self.ints(name) {
            return Ok(Some(values.to_vec()));
        }
        if !self.has(at) {
            return Ok(None);
        }
        self.ints_of(at).map(Some).ok_or(NotKnown)
    }

    /// The element type that an attribute names, by its number in ONNX.
    pub fn dtype_of(&self, name: &str) -> Option<DType> {
        dtype_of_number(self.int(name)?)
    }

    /// How many outputs the operator has, unwanted ones included.
    pub fn output_count(&self) -> usize {
        self.op.outputs.len()
    }
}

/// Elements that a rule needs are not known before the model runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotKnown;

/// An axis, which may count from the end, as an index below `rank`.
pub fn axis(axis: i64, rank: usize) -> Result<usize, Misfit> {
    let signed = i64::try_from(rank).expect("ranks are small");
    let from_start = if axis < 0 { axis.checked_add(signed) } else { Some(axis) };
    let index = from_start.and_then(|axis| usize::try_from(axis).ok());
    index
        .filter(|&index| index < rank)
        .ok_or_else(|| Misfit(format!("axis {axis} is outside of a tensor of rank {rank}")))
}

/// Several axes, each once, ascending.
pub fn axes(list: &[i64], rank: usize) -> Result<Vec<usize>, Misfit> {
    let mut axes = list.iter().map(|&one| axis(one, rank)).collect::<Result<Vec<_>, _>>()?;
    axes.sort_unstable();
    if axes.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Misfit(format!("the axes {list:?} name one twice")));
    }
    Ok(axes)
}

/// Shapes as messages show them.
pub fn shape_text(dims: &[Extent]) -> String {
    let word = |dim: &Extent| dim.as_ref().map_or_else(|| "?".to_owned(), Expr::to_string);
    format!("[{}]", dims.iter().map(word).collect::<Vec<_>>().join(", "))
}

/// The dimension of two that must be equal: the one that is known; a misfit if both are numbers and differ.
pub fn equal(a: &Extent, b: &Extent, what: &str) -> Result<Extent, Misfit> {
    let known = |dim: &Extent| dim.as_ref().and_then(Expr::known);
    match (known(a), known(b)) {
        (Some(x), Some(y)) if x != y => Err(Misfit(format!("{what}: {x} and {y} should be equal"))),
        (None, Some(_)) => Ok(b.clone()),
        _ => Ok(a.clone().or_else(|| b.clone())),
    }
}

/// The element type with this number in ONNX.
pub fn dtype_of_number(number: i64) -> Option<DType> {
    DType::from_onnx(number)
}
