//! The loops: a function from elements to an element in, a kernel out.
//!
//! ~~~text
//! map   y[i] = f(x[i])
//! zip   y[i] = f(a[i], b[i])      a and b broadcast; as a pair, they have one type
//! ~~~
//! All read elements of one place and write those of another, also where the output lies on an input: what compilers
//! make of `y[i] = if y[i] < 0 { 0 } else { y[i] }` is a branch around a store, and no vector instruction.
//!
//! The functions are copied into the loops, which are compiled for several vector instructions. Loops of functions as
//! long as `Erf` have to be written as loops: a closure in the middle would not be copied into its iterator. And what
//! they read has to be moved to where they stand: through a reference, it might change while they write.

use super::reader::{PIECE, Reader, Spread, spread};
use crate::kernels::facts::same_type;
use crate::kernels::function;
use crate::kernels::types::{Made, elements_mut};
use crate::kernels::vectorise::vectorised;
use bytemuck::Pod;
use lowtide_core::operator::{Call, Fact, KernelError, KernelValue, Operands};

/// Applies a function to each element of input 0.
pub(super) fn map<X: Pod, Y: Pod>(f: impl Fn(X) -> Y + Copy + Send + 'static) -> Made {
    Ok(function(move |operands| map_now(operands, f)))
}

/// Applies a function that is known only now to each element of input 0.
pub(super) fn map_now<X: Pod, Y: Pod>(
    operands: &mut Operands<'_>,
    f: impl Fn(X) -> Y + Copy,
) -> Result<(), KernelError> {
    let mut x = Reader::<X>::of_first::<Y>(operands)?;
    let (x, y) = (&mut x, elements_mut::<Y>(operands, 0)?);
    vectorised(
        #[inline(always)]
        move || {
            for y in y.chunks_mut(PIECE) {
                let x = x.read(y);
                for (y, x) in y.iter_mut().zip(x) {
                    *y = f(*x);
                }
            }
        },
    );
    Ok(())
}

/// Applies a function to each element of input 0, and another one to those that are rare.
pub(super) fn map_unless<T: KernelValue>(
    is_rare: impl Fn(T) -> bool + Copy + Send + 'static,
    rare: impl Fn(T) -> T + Copy + Send + 'static,
    f: impl Fn(T) -> T + Copy + Send + 'static,
) -> Made {
    Ok(function(move |operands| {
        let mut reader = Reader::<T>::of_first::<T>(operands)?;
        let (reader, y) = (&mut reader, operands.values_mut::<T>(0)?);
        vectorised(
            #[inline(always)]
            move || {
                for y in y.chunks_mut(PIECE) {
                    let x = reader.read(y);
                    for (y, x) in y.iter_mut().zip(x) {
                        *y = f(*x);
                    }
                    if x.iter().fold(false, |any, x| any | is_rare(*x)) {
                        let pairs = y.iter_mut().zip(x);
                        pairs.filter(|(_, x)| is_rare(**x)).for_each(|(y, x)| *y = rare(*x));
                    }
                }
            },
        );
        Ok(())
    }))
}

/// Applies a function to each pair of elements of inputs 0 and 1, which have one type.
pub(super) fn pair<T: Pod + Send, Y: Pod + Send>(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
    f: impl Fn(T, T) -> Y + Copy + Send + 'static,
) -> Made {
    same_type(call, 1)?;
    zip(call, outputs, f)
}

/// Applies a function to each pair of elements of inputs 0 and 1, broadcast to the output.
pub(super) fn zip<A: Pod + Send, B: Pod + Send, Y: Pod + Send>(
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
    f: impl Fn(A, B) -> Y + Copy + Send + 'static,
) -> Made {
    let spreads = [spread(call, 0, outputs)?, spread(call, 1, outputs)?];
    Ok(function(move |operands| zip_now(operands, &spreads, f)))
}

/// Applies a function that is known only now to each pair of elements.
pub(super) fn zip_now<A: Pod, B: Pod, Y: Pod>(
    operands: &mut Operands<'_>,
    spreads: &[Spread; 2],
    f: impl Fn(A, B) -> Y + Copy,
) -> Result<(), KernelError> {
    let mut a = Reader::<A>::new::<Y>(operands.input(0)?, &spreads[0])?;
    let mut b = Reader::<B>::new::<Y>(operands.input(1)?, &spreads[1])?;
    let (a, b, y) = (&mut a, &mut b, elements_mut::<Y>(operands, 0)?);
    vectorised(
        #[inline(always)]
        move || {
            for y in y.chunks_mut(PIECE) {
                let (a, b) = (a.read(y), b.read(y));
                for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
                    *y = f(*a, *b);
                }
            }
        },
    );
    Ok(())
}
