//! [`Kernel`]: what runs an operator, and [`Operands`]: the bytes that it is given.
//!
//! ~~~text
//! arena  [ a ............ ][ scratch ][ b ...... ]        Relu in place: input 0 lies *in* output 0;
//!                                                         the kernel gets the bytes once, to read and to write
//! inputs   a: In { output: 0, offset: 0 }
//! outputs  b: &mut [u8]
//! ~~~
//! A kernel never holds two references to the same bytes of which one can write: an input that shares bytes with an
//! output is given as a place in that output. That happens only where the operator's sharing rule allows it: byte
//! for byte for an overwritten input, at an offset for a part of a concatenation. The other way round, an output that is
//! a piece of an input and lies in it is not given at all: there is nothing to write.
//!
//! All memory comes with the call; in the steady state a kernel allocates nothing. What a library allocates on its own
//! is declared by [`Kernel::hidden_bytes`].

use crate::{Bytes, DType};
use std::fmt;

/// Runs one operator of one graph, again and again. Made for operands of one set of types and shapes.
pub trait Kernel: Send {
    /// Reads the inputs and writes all of every output.
    fn run(&mut self, operands: &mut Operands<'_>) -> Result<(), KernelError>;

    /// At most so many bytes do libraries that it calls allocate on each thread and keep, beside its operands and its
    /// scratch. Kernels that run one after the other share them.
    fn hidden_bytes(&self) -> Bytes {
        Bytes::ZERO
    }
}

impl<F: FnMut(&mut Operands<'_>) -> Result<(), KernelError> + Send> Kernel for F {
    fn run(&mut self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        self(operands)
    }
}

/// Why an operator cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoKernel {
    /// Nobody has written a kernel for this type of operator.
    #[error("no kernel")]
    NotWritten,
    /// There is a kernel, but not for these types, attributes or shapes.
    #[error("no kernel for {0}")]
    Unsupported(String),
    /// Its inputs or attributes make no sense.
    #[error("{0}")]
    Misfit(String),
}

impl From<super::Misfit> for NoKernel {
    fn from(misfit: super::Misfit) -> Self {
        Self::Misfit(misfit.0)
    }
}

/// Why a kernel failed. The executor adds which operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// An operand that has to be there is not.
    #[error("{operand} is absent")]
    Absent {
        /// Which, as in `input 1`.
        operand: Operand,
    },
    /// An operand has a type that the kernel does not take.
    #[error("{operand} holds {found}, wanted {wanted}")]
    Type {
        /// Which.
        operand: Operand,
        /// Its type.
        found: DType,
        /// What the kernel takes.
        wanted: &'static str,
    },
    /// An input shares bytes with an output, which this kernel is not made for.
    #[error("{operand} lies in an output, which this kernel cannot do")]
    InPlace {
        /// Which.
        operand: Operand,
    },
    /// An operand's bytes are not as many, or not as aligned, as its type and shape want.
    #[error("{operand} has {found} bytes at this address, wanted {wanted}, aligned for its type")]
    Bytes {
        /// Which.
        operand: Operand,
        /// How many there are.
        found: usize,
        /// How many its shape wants.
        wanted: usize,
    },
    /// A value, known only now, makes no sense: an index outside of its axis, shapes that do not fit.
    #[error("{0}")]
    Value(String),
}

/// Which operand of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// Input by position.
    Input(usize),
    /// Output by position.
    Output(usize),
    /// The scratch memory.
    Scratch,
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(at) => write!(f, "input {at}"),
            Self::Output(at) => write!(f, "output {at}"),
            Self::Scratch => f.write_str("scratch"),
        }
    }
}

/// The types in which kernels read and write elements. Truth values are bytes: 0 and 1 (any other is true when read).
pub trait Value: bytemuck::Pod + PartialEq + PartialOrd + Default + Send + Sync + 'static {
    /// The element types that are read and written as this.
    const TYPES: &'static [DType];
    /// As messages name it.
    const NAME: &'static str;
}

macro_rules! values {
    ($($rust:ty: $name:literal [$($dtype:ident),+];)+) => {
        $(impl Value for $rust {
            const TYPES: &'static [DType] = &[$(DType::$dtype),+];
            const NAME: &'static str = $name;
        })+
    };
}

values! {
    f32: "float32" [F32];
    f64: "float64" [F64];
    i8: "int8" [I8];
    i16: "int16" [I16];
    i32: "int32" [I32];
    i64: "int64" [I64];
    u8: "uint8 or bool" [U8, Bool];
    u16: "uint16" [U16];
    u32: "uint32" [U32];
    u64: "uint64" [U64];
}

/// What a kernel is given for one run. Inputs and outputs stand at their positions; absent ones are `None`.
#[derive(Debug)]
pub struct Operands<'a> {
    /// What is read.
    pub inputs: Vec<Option<Input<'a>>>,
    /// What is written. A piece that lies in its input already is absent, as is what nobody wants.
    pub outputs: Vec<Option<Output<'a>>>,
    /// As many bytes as the operator asked for (more at most by padding), aligned as the arena is; their content is
    /// left over from others.
    pub scratch: &'a mut [u8],
}

impl<'a> Operands<'a> {
    /// Input `at`, which has to be there.
    pub fn input(&self, at: usize) -> Result<Input<'a>, KernelError> {
        self.optional(at).ok_or(KernelError::Absent { operand: Operand::Input(at) })
    }

    /// Input `at`, if it is there.
    pub fn optional(&self, at: usize) -> Option<Input<'a>> {
        self.inputs.get(at).copied().flatten()
    }

    /// Output `at`, which has to be wanted.
    pub fn output(&mut self, at: usize) -> Result<&mut Output<'a>, KernelError> {
        let absent = KernelError::Absent { operand: Operand::Output(at) };
        self.outputs.get_mut(at).and_then(Option::as_mut).ok_or(absent)
    }

    /// The elements of output `at`.
    pub fn values_mut<T: Value>(&mut self, at: usize) -> Result<&mut [T], KernelError> {
        self.output(at)?.values_mut()
    }

    /// The elements of output `at`, and the scratch memory as elements of another type.
    pub fn values_and_scratch<T: Value, S: Value>(
        &mut self,
        at: usize,
    ) -> Result<(&mut [T], &mut [S]), KernelError> {
        let absent = KernelError::Absent { operand: Operand::Output(at) };
        let output = self.outputs.get_mut(at).and_then(Option::as_mut).ok_or(absent)?;
        let found = self.scratch.len();
        let whole = found - found % size_of::<S>();
        let scratch = bytemuck::try_cast_slice_mut(&mut self.scratch[..whole])
            .map_err(|_| KernelError::Bytes { operand: Operand::Scratch, found, wanted: whole })?;
        Ok((output.values_mut()?, scratch))
    }
}

/// Where the bytes of an input are.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// Apart from all outputs.
    Apart(&'a [u8]),
    /// In an output: there from the byte `offset` on.
    In {
        /// Which.
        output: usize,
        /// From which of its bytes on.
        offset: usize,
    },
}

/// One input of a run.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Its position.
    pub at: usize,
    /// Its element type.
    pub dtype: DType,
    /// Its shape.
    pub dims: &'a [usize],
    /// Its bytes.
    pub place: Place<'a>,
}

impl<'a> Input<'a> {
    /// Its bytes, which must not lie in an output.
    pub fn bytes(self) -> Result<&'a [u8], KernelError> {
        match self.place {
            Place::Apart(bytes) => Ok(bytes),
            Place::In { .. } => Err(KernelError::InPlace { operand: Operand::Input(self.at) }),
        }
    }

    /// Its elements, which must not lie in an output.
    pub fn values<T: Value>(self) -> Result<&'a [T], KernelError> {
        self.check::<T>()?;
        let bytes = self.bytes()?;
        let cast = bytemuck::try_cast_slice(bytes).ok();
        let values = cast.filter(|values: &&[T]| values.len() == self.len());
        let (operand, found) = (Operand::Input(self.at), bytes.len());
        values.ok_or(KernelError::Bytes { operand, found, wanted: self.len() * size_of::<T>() })
    }

    /// That its type is one that is read as `T`.
    pub fn check<T: Value>(self) -> Result<(), KernelError> {
        if T::TYPES.contains(&self.dtype) {
            return Ok(());
        }
        let operand = Operand::Input(self.at);
        Err(KernelError::Type { operand, found: self.dtype, wanted: T::NAME })
    }

    /// Whether it lies on the bytes of output `at`, from the first to the last.
    pub fn is_in(self, at: usize) -> bool {
        matches!(self.place, Place::In { output, offset: 0 } if output == at)
    }

    /// How many elements it has.
    pub fn len(self) -> usize {
        count(self.dims)
    }

    /// Whether it has no element.
    pub fn is_empty(self) -> bool {
        self.dims.contains(&0)
    }
}

/// One output of a run.
#[derive(Debug)]
pub struct Output<'a> {
    /// Its position.
    pub at: usize,
    /// Its element type.
    pub dtype: DType,
    /// Its shape.
    pub dims: &'a [usize],
    /// Its bytes; what they hold, unless an input lies here, is left over from others.
    pub bytes: &'a mut [u8],
}

impl Output<'_> {
    /// Its elements.
    pub fn values_mut<T: Value>(&mut self) -> Result<&mut [T], KernelError> {
        let operand = Operand::Output(self.at);
        if !T::TYPES.contains(&self.dtype) {
            return Err(KernelError::Type { operand, found: self.dtype, wanted: T::NAME });
        }
        let (found, len) = (self.bytes.len(), self.len());
        let cast = bytemuck::try_cast_slice_mut(self.bytes).ok();
        let values = cast.filter(|values: &&mut [T]| values.len() == len);
        values.ok_or(KernelError::Bytes { operand, found, wanted: len * size_of::<T>() })
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        count(self.dims)
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.dims.contains(&0)
    }
}

/// The same memory, empty, for elements of another lifetime: for operands that are put together in every run. The
/// standard library keeps it when all elements are mapped to such of the same layout.
pub fn recycled<A, B>(mut vec: Vec<A>) -> Vec<B> {
    vec.clear();
    vec.into_iter().map(|_| unreachable!("it was cleared")).collect()
}

/// How many elements a shape has; an empty dimension makes up for any other.
fn count(dims: &[usize]) -> usize {
    if dims.contains(&0) { 0 } else { dims.iter().product() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(dtype: DType, dims: &[usize], place: Place<'static>) -> Input<'static> {
        Input { at: 1, dtype, dims: dims.to_vec().leak(), place }
    }

    #[test]
    fn values_have_the_type_and_number_of_the_operand() {
        static BYTES: [u8; 6] = [1, 0, 2, 0, 3, 0];
        let of = |dtype, dims: &[usize]| input(dtype, dims, Place::Apart(&BYTES));
        assert_eq!(of(DType::U8, &[2, 3]).values::<u8>().unwrap(), BYTES);
        let error = of(DType::U8, &[2, 3]).values::<i8>().unwrap_err();
        assert_eq!(error.to_string(), "input 1 holds uint8, wanted int8");
        let error = of(DType::U8, &[2]).values::<u8>().unwrap_err();
        let message = "input 1 has 6 bytes at this address, wanted 2, aligned for its type";
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn an_input_in_an_output_is_read_there() {
        let input = input(DType::F32, &[2], Place::In { output: 0, offset: 0 });
        assert!(input.is_in(0) && !input.is_in(1));
        let error = input.values::<f32>().unwrap_err();
        assert_eq!(error.to_string(), "input 1 lies in an output, which this kernel cannot do");
    }

    #[test]
    fn absent_operands_are_named() {
        let mut operands = Operands { inputs: vec![None], outputs: Vec::new(), scratch: &mut [] };
        assert_eq!(operands.input(0).unwrap_err().to_string(), "input 0 is absent");
        assert_eq!(operands.output(2).unwrap_err().to_string(), "output 2 is absent");
        assert!(operands.optional(7).is_none());
    }
}
