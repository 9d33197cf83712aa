//! From the element type that a call names to code for it.
//!
//! ~~~text
//! Add  of float32   with_type!(numbers: dtype, T => ...)      T = f32
//! Neg  of uint8     with_type!(signed: dtype, T => ...)       Err: no kernel for type uint8
//! Tile of float16   with_width!(dtype, E => ...)              E = [u8; 2]: who only moves elements needs no more
//! ~~~

use bytemuck::Pod;
use lowtide_core::operator::{Input, Kernel, KernelError, NoKernel, Operand, Operands};

/// What a kernel rule makes.
pub(crate) type Made = Result<Box<dyn Kernel>, NoKernel>;

/// Code for the Rust type of an element type, of one of the families that operators take; an error for others.
macro_rules! with_type {
    (match $dtype:expr, $name:ident => $body:expr, $($variant:ident $rust:ty),+) => {
        match $dtype {
            $(Some(lowtide_core::DType::$variant) => {
                type $name = $rust;
                $body
            })+
            other => Err($crate::kernels::number::no_kernel_for(other)),
        }
    };
    (floats: $dtype:expr, $name:ident => $body:expr) => {
        with_type!(match $dtype, $name => $body, F32 f32, F64 f64)
    };
    (signed: $dtype:expr, $name:ident => $body:expr) => {
        with_type!(match $dtype, $name => $body, F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64)
    };
    (unsigned: $dtype:expr, $name:ident => $body:expr) => {
        with_type!(match $dtype, $name => $body, U8 u8, U16 u16, U32 u32, U64 u64)
    };
    (integers: $dtype:expr, $name:ident => $body:expr) => {
        with_type!(match $dtype, $name => $body,
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
    (numbers: $dtype:expr, $name:ident => $body:expr) => {
        with_type!(match $dtype, $name => $body, F32 f32, F64 f64,
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
    (values: $dtype:expr, $name:ident => $body:expr) => {
        with_type!(match $dtype, $name => $body, Bool u8, F32 f32, F64 f64,
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
    (indices: $dtype:expr, $name:ident => $body:expr) => {
        with_type!(match $dtype, $name => $body, I32 i32, I64 i64)
    };
}

/// Code for elements as wide as those of an element type; an error for types that are packed or have no width.
macro_rules! with_width {
    (match $dtype:expr, $name:ident => $body:expr, $($bits:literal $bytes:literal),+) => {
        match $dtype.and_then(lowtide_core::DType::bits) {
            $(Some($bits) => {
                type $name = [u8; $bytes];
                $body
            })+
            _ => Err($crate::kernels::number::no_kernel_for($dtype)),
        }
    };
    ($dtype:expr, $name:ident => $body:expr) => {
        with_width!(match $dtype, $name => $body, 8 1, 16 2, 32 4, 64 8, 128 16)
    };
}

pub(crate) use {with_type, with_width};

/// The elements of an input as the kernel was made for them, which must not lie in an output.
pub(crate) fn elements<E: Pod>(input: Input<'_>) -> Result<&[E], KernelError> {
    let bytes = input.bytes()?;
    let (found, wanted) = (bytes.len(), input.len() * size_of::<E>());
    let cast = bytemuck::try_cast_slice(bytes).ok().filter(|_| found == wanted);
    cast.ok_or(KernelError::Bytes { operand: Operand::Input(input.at), found, wanted })
}

/// The elements of output `at` as the kernel was made for them.
pub(crate) fn elements_mut<'a, E: Pod>(
    operands: &'a mut Operands<'_>,
    at: usize,
) -> Result<&'a mut [E], KernelError> {
    let output = operands.output(at)?;
    let (found, wanted) = (output.bytes.len(), output.len() * size_of::<E>());
    let cast = bytemuck::try_cast_slice_mut(output.bytes).ok().filter(|_| found == wanted);
    cast.ok_or(KernelError::Bytes { operand: Operand::Output(at), found, wanted })
}
