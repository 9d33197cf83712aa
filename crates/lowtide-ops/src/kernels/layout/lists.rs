//! [`Numbers`]: the integers that steer a kernel, from an attribute or from an input that is read when it runs.
//!
//! ~~~text
//! Slice-1(x) {starts=[1]}      Fixed
//! Slice(x, s, e)               Input(1)      s may come out of shape arithmetic
//! ~~~
//! A list lies on the stack: there are as many entries as axes, or twice as many.

use crate::kernels::facts::unsupported;
use crate::kernels::number::no_kernel_for;
use crate::kernels::strides::MAX_RANK;
use lowtide_core::DType;
use lowtide_core::operator::{Call, KernelError, NoKernel, Operands};
use std::fmt::Debug;
use std::ops::Deref;

/// Pads have two entries an axis.
const MOST: usize = 2 * MAX_RANK;

/// A few integers.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    values: [i64; MOST],
    len: usize,
}

impl Deref for List {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        &self.values[..self.len]
    }
}

impl List {
    /// Of so many integers, if they are few.
    pub(super) fn new(all: impl ExactSizeIterator<Item = i64>) -> Option<Self> {
        let (mut values, len) = ([0; MOST], all.len());
        values.iter_mut().zip(all).for_each(|(value, one)| *value = one);
        (len <= MOST).then_some(Self { values, len })
    }
}

/// Where the integers of a list come from.
#[derive(Clone, Debug)]
pub(super) enum Numbers {
    /// They are known.
    Fixed(Box<List>),
    /// They are the elements of this input.
    Input(usize),
    /// There are none.
    Absent,
}

impl Numbers {
    /// An attribute, or else an input.
    pub(super) fn new(call: &Call<'_>, name: &str, at: usize) -> Result<Self, NoKernel> {
        if let Some(all) = call.ints(name) {
            let list = List::new(all.iter().copied());
            let too_long = || unsupported(format!("{} entries of {name}", all.len()));
            return list.map_or_else(too_long, |list| Ok(Self::Fixed(Box::new(list))));
        }
        match call.dtype(at) {
            _ if !call.has(at) => Ok(Self::Absent),
            Some(DType::I32 | DType::I64) => Ok(Self::Input(at)),
            other => Err(no_kernel_for(other)),
        }
    }

    /// The integers as they are in this run.
    pub(super) fn read(&self, operands: &Operands<'_>) -> Result<Option<List>, KernelError> {
        match self {
            Self::Fixed(list) => Ok(Some(**list)),
            Self::Absent => Ok(None),
            Self::Input(at) => read(operands, *at).map(Some),
        }
    }

    /// The integers, which have to be there.
    pub(super) fn get(&self, operands: &Operands<'_>, what: &str) -> Result<List, KernelError> {
        self.read(operands)?.ok_or_else(|| KernelError::Value(format!("{what} are absent")))
    }
}

fn read(operands: &Operands<'_>, at: usize) -> Result<List, KernelError> {
    let input = operands.input(at)?;
    let list = match input.dtype {
        DType::I32 => List::new(input.values::<i32>()?.iter().map(|&one| one.into())),
        _ => List::new(input.values::<i64>()?.iter().copied()),
    };
    let too_long =
        || KernelError::Value(format!("input {at} has {} entries, at most {MOST}", input.len()));
    list.ok_or_else(too_long)
}

/// That two things are equal: one found in this run and one that is wanted.
pub(super) fn check<A: PartialEq<B> + Debug + ?Sized, B: Debug + ?Sized>(
    what: &str,
    found: &A,
    wanted: &B,
) -> Result<(), KernelError> {
    if found == wanted {
        return Ok(());
    }
    Err(KernelError::Value(format!("{what}: {found:?}, wanted {wanted:?}")))
}
