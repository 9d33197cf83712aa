//! Operators on 16-bit fractions: calculated in float32, and rounded.
//!
//! ~~~text
//! x f16 ──> | x f32 | y f32 | the kernel's own scratch | ──> y f16        Add, Conv, Softmax, ...
//!             scratch; each part at a multiple of 64 bytes
//! x f16 ─────────────────────────────────────────────────> y f16        Transpose, Gather, ...: rows that say `moves`
//! ~~~
//! One kernel, of float32, serves three types. What it costs: the conversions, and scratch of twice the operands' bytes, which
//! the plan knows. An input may lie on an output here as elsewhere: all inputs are read before any output is written.

use crate::call::Call;
use crate::expr::Expr;
use crate::fact::{Extent, Fact};
use crate::kernels::KernelRule;
use bytemuck::Pod;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use lowtide_core::operator::{
    Input, Kernel, KernelError, NoKernel, Operand, Operands, Output, Place, recycled,
};
use lowtide_core::{Bytes, DType};

/// Parts of the scratch memory begin at multiples of it.
const ALIGN: usize = 64;

/// Whether a type is one of the two.
fn is_half(dtype: Option<DType>) -> bool {
    matches!(dtype, Some(DType::F16 | DType::BF16))
}

/// Whether inputs or outputs hold 16-bit fractions.
pub(crate) fn has_halves<'a>(mut facts: impl Iterator<Item = &'a Fact>) -> bool {
    facts.any(|fact| is_half(fact.dtype))
}

fn widened(fact: &Fact) -> Fact {
    let mut wide = fact.clone();
    if is_half(fact.dtype) {
        wide.dtype = Some(DType::F32);
    }
    wide
}

/// Works on a call as if its 16-bit fractions were float32.
pub(crate) fn with_wide<R>(call: &Call<'_>, work: impl FnOnce(&Call<'_>) -> R) -> R {
    let inputs: Vec<Option<Fact>> = call.inputs.iter().map(|fact| fact.map(widened)).collect();
    let inputs: Vec<Option<&Fact>> = inputs.iter().map(Option::as_ref).collect();
    work(&Call { inputs: &inputs, ..*call })
}

/// How many bytes of an element stand in the scratch memory. Other 16-bit types do, too, as their tensors may lie on
/// outputs of these.
fn width(dtype: Option<DType>) -> Option<usize> {
    match dtype {
        Some(DType::F16 | DType::BF16) => Some(4),
        Some(DType::I16 | DType::U16) => Some(2),
        _ => None,
    }
}

/// The scratch memory, given all operands and what the kernel itself needs.
pub(crate) fn scratch<'a>(operands: impl Iterator<Item = &'a Fact>, own: Option<&Fact>) -> Fact {
    let parts = operands.filter_map(|fact| Some(bytes(fact, width(fact.dtype)?)));
    let own = own.map(|fact| {
        let bits = fact.dtype.and_then(DType::bits)?;
        bytes(fact, usize::try_from(bits / 8).ok()?)
    });
    let mut all = parts.chain(own);
    let sum = all.try_fold(Expr::Known(0), |sum, part| sum.add(&part?));
    Fact::new(Some(DType::U8), Some(vec![sum]))
}

/// The bytes of a part, and of what may be left out before it.
fn bytes(fact: &Fact, width: usize) -> Extent {
    let known = |number: usize| i64::try_from(number).ok().map(Expr::Known);
    let mut count = known(width)?;
    for dim in fact.dims.as_ref()? {
        count = count.mul(dim.as_ref()?)?;
    }
    count.add(&known(ALIGN)?)
}

/// The kernel that a rule gives for float32, with conversions around it.
pub(crate) fn kernel(
    rule: KernelRule,
    call: &Call<'_>,
    outputs: &[Option<&Fact>],
) -> Result<Box<dyn Kernel>, NoKernel> {
    let wide: Vec<Option<Fact>> = outputs.iter().map(|fact| fact.map(widened)).collect();
    let wide: Vec<Option<&Fact>> = wide.iter().map(Option::as_ref).collect();
    let kernel = with_wide(call, |call| rule(call, &wide))?;
    let (inputs, outputs) =
        (Vec::with_capacity(call.inputs.len()), Vec::with_capacity(outputs.len()));
    Ok(Box::new(Widened { kernel, inputs, outputs }))
}

struct Widened {
    kernel: Box<dyn Kernel>,
    /// Memory for the operands of the kernel, empty between two runs.
    inputs: Vec<Option<Input<'static>>>,
    outputs: Vec<Option<Output<'static>>>,
}

impl Kernel for Widened {
    fn run(&mut self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let Operands { inputs, outputs, scratch } = operands;
        let behind_inputs = {
            let mut rest = Parts { rest: scratch, taken: 0 };
            let mut wide = recycled(std::mem::take(&mut self.inputs));
            for input in &*inputs {
                wide.push(input.map(|input| rest.read(input, outputs)).transpose()?);
            }
            let behind_inputs = rest.taken;
            let mut written = recycled(std::mem::take(&mut self.outputs));
            for output in &mut *outputs {
                written.push(output.as_mut().map(|output| rest.room(output)).transpose()?);
            }
            let mut of_kernel = Operands { inputs: wide, outputs: written, scratch: rest.rest };
            let result = self.kernel.run(&mut of_kernel);
            let Operands { inputs, outputs, .. } = of_kernel;
            (self.inputs, self.outputs) = (recycled(inputs), recycled(outputs));
            result?;
            behind_inputs
        };
        let mut rest = Parts { rest: &mut scratch[behind_inputs..], taken: 0 };
        outputs.iter_mut().flatten().try_for_each(|output| rest.round(output))
    }

    fn hidden_bytes(&self) -> Bytes {
        self.kernel.hidden_bytes()
    }
}

/// What is left of the scratch memory.
struct Parts<'a> {
    rest: &'a mut [u8],
    taken: usize,
}

impl<'a> Parts<'a> {
    fn take(&mut self, wanted: usize) -> Result<&'a mut [u8], KernelError> {
        let found = self.rest.len();
        if wanted > found {
            return Err(KernelError::Bytes { operand: Operand::Scratch, found, wanted });
        }
        let padded = wanted.next_multiple_of(ALIGN).min(found);
        let (part, rest) = std::mem::take(&mut self.rest).split_at_mut(padded);
        (self.rest, self.taken) = (rest, self.taken + padded);
        Ok(&mut part[..wanted])
    }

    /// An input as the kernel gets it.
    fn read(
        &mut self,
        input: Input<'a>,
        outputs: &[Option<Output<'_>>],
    ) -> Result<Input<'a>, KernelError> {
        let Some(width) = width(Some(input.dtype)) else { return Ok(input) };
        let (operand, wanted) = (Operand::Input(input.at), 2 * input.len());
        let bytes = match input.place {
            Place::Apart(bytes) => Some(bytes),
            Place::In { output, offset } => {
                let output = outputs.get(output).and_then(Option::as_ref);
                output.and_then(|output| output.bytes.get(offset..)?.get(..wanted))
            }
        };
        let bytes = bytes.ok_or(KernelError::InPlace { operand })?;
        let part = self.take(width * input.len())?;
        let fits = match input.dtype {
            DType::F16 => widen::<f16>(bytes, floats(part)?),
            DType::BF16 => widen::<bf16>(bytes, floats(part)?),
            _ => copy(bytes, part),
        };
        let dtype = if is_half(Some(input.dtype)) { DType::F32 } else { input.dtype };
        let misfit = KernelError::Bytes { operand, found: bytes.len(), wanted };
        fits.then_some(Input { dtype, place: Place::Apart(part), ..input }).ok_or(misfit)
    }

    /// An output as the kernel gets it: what it is to write is in the scratch memory, if that is wider.
    fn room<'o>(&mut self, output: &'o mut Output<'_>) -> Result<Output<'o>, KernelError>
    where
        'a: 'o,
    {
        let (at, dims) = (output.at, output.dims);
        if !is_half(Some(output.dtype)) {
            return Ok(Output { at, dims, dtype: output.dtype, bytes: &mut *output.bytes });
        }
        Ok(Output { at, dims, dtype: DType::F32, bytes: self.take(4 * output.len())? })
    }

    /// Writes what was calculated into an output.
    fn round(&mut self, output: &mut Output<'_>) -> Result<(), KernelError> {
        let dtype = output.dtype;
        if !is_half(Some(dtype)) {
            return Ok(());
        }
        let (operand, wanted) = (Operand::Output(output.at), 2 * output.len());
        let wide = &*floats(self.take(2 * wanted)?)?;
        let bytes = &mut *output.bytes;
        let misfit = KernelError::Bytes { operand, found: bytes.len(), wanted };
        let fits = if dtype == DType::F16 {
            narrow::<f16>(wide, bytes)
        } else {
            narrow::<bf16>(wide, bytes)
        };
        fits.then_some(()).ok_or(misfit)
    }
}

fn floats(part: &mut [u8]) -> Result<&mut [f32], KernelError> {
    let (operand, found) = (Operand::Scratch, part.len());
    let misfit = |_| KernelError::Bytes { operand, found, wanted: found };
    bytemuck::try_cast_slice_mut(part).map_err(misfit)
}

/// Whether there are as many as are wanted; then they are converted.
fn widen<T: Pod>(from: &[u8], to: &mut [f32]) -> bool
where
    [T]: HalfFloatSliceExt,
{
    let from: Option<&[T]> = bytemuck::try_cast_slice(from).ok();
    let from = from.filter(|from| from.len() == to.len());
    from.inspect(|from| from.convert_to_f32_slice(to)).is_some()
}

/// Whether there is room for as many; then they are rounded.
fn narrow<T: Pod>(from: &[f32], to: &mut [u8]) -> bool
where
    [T]: HalfFloatSliceExt,
{
    let to: Option<&mut [T]> = bytemuck::try_cast_slice_mut(to).ok();
    let to = to.filter(|to| to.len() == from.len());
    to.map(|to| to.convert_from_f32_slice(from)).is_some()
}

fn copy(from: &[u8], to: &mut [u8]) -> bool {
    let fits = from.len() == to.len();
    if fits {
        to.copy_from_slice(from);
    }
    fits
}

#[cfg(test)]
mod tests {
    use crate::ResolveConfig;
    use crate::kernels::testing::{refuses, run, runs};
    use crate::testing::{bounds, resolve_with};
    use lowtide_core::{Bytes, Size};

    // 1 and 2 in float16 and in bfloat16.
    const HALVES: (u16, u16) = (0x3C00, 0x4000);
    const BRAINS: (u16, u16) = (0x3F80, 0x4000);

    #[test]
    fn a_sum_is_rounded_once() {
        // 2048 + 1 lies between two float16, the even one is 2048; 2050 + 1 becomes 2052.
        let lines = ["weight x f16 2 = 26624 26625", "weight z f16 1 = 15360", "y = Add(x, z)"];
        runs(&lines, "float16 [2] 26624 26626");
    }

    #[test]
    fn both_types_are_calculated_in_float32() {
        for (name, long, (one, two)) in [("f16", "float16", HALVES), ("bf16", "bfloat16", BRAINS)] {
            let x = format!("weight x {name} 2 2 = {one} {two} {one} {one}");
            let product = ["y = MatMul(x, x)"];
            let lines = [&[x.as_str()], &product[..]].concat();
            let found = run(&lines, "").remove(0);
            // [[1, 2], [1, 1]] squared is [[3, 4], [2, 3]].
            let (three, four) = if name == "f16" { (0x4200, 0x4400) } else { (0x4040, 0x4080) };
            assert_eq!(found, format!("{long} [2, 2] {three} {four} {two} {three}"));
        }
    }

    #[test]
    fn operands_of_other_types_stay_as_they_are() {
        let (one, two) = HALVES;
        let x = format!("weight x f16 2 = {one} {two}");
        runs(&[&x, "weight z f16 1 = 0", "y = Greater(x, z)"], "bool [2] 1 1");
        // The exponents may lie where the output does.
        let power = format!("float16 [2] {two} {two}");
        let x = format!("weight x f16 2 = {two} {two}");
        runs(&[&x, "weight z i16 2 = 1 1", "y = Pow(x, z)"], &power);
    }

    #[test]
    fn moving_needs_no_scratch_and_keeps_all_bits() {
        let lines = ["weight x f16 1 2 = 31745 1", "y = Transpose(x) {perm=[1, 0]}"];
        runs(&lines, "float16 [2, 1] 31745 1");
        assert_eq!(
            scratch(&["input x f16 3 4", "y = Transpose(x)"], &ResolveConfig::default()),
            Size::Fixed(Bytes(0))
        );
    }

    #[test]
    fn a_scatter_moves_unless_it_adds() {
        let x = ["weight x f16 2 = 15360 15360", "weight i i64 1 = 1", "weight u f16 1 = 15360"];
        let call = "y = ScatterElements(x, i, u) {reduction=add}";
        runs(&[&x[..], &[call]].concat(), "float16 [2] 15360 16384");
        runs(&[&x[..], &["y = ScatterElements(x, i, u)"]].concat(), "float16 [2] 15360 15360");
    }

    #[test]
    fn scratch_holds_all_operands_and_that_of_the_kernel() {
        let one = |lines: &[&str]| scratch(lines, &ResolveConfig::default());
        assert_eq!(one(&["input x f16 10", "y = Relu(x)"]), Size::Fixed(Bytes(2 * (40 + 64))));
        assert_eq!(one(&["input x 10", "y = Relu(x)"]), Size::Fixed(Bytes(0)));
        let lines = ["input x f16 n", "y = Relu(x)"];
        assert_eq!(scratch(&lines, &bounds("n", 10)), Size::AtMost(Bytes(2 * (40 + 64))));
        assert_eq!(one(&lines), Size::Unknown);
    }

    #[test]
    fn what_the_kernel_refuses_is_refused() {
        let lines = ["input x f16 2", "y = Gelu(x) {approximate=cubic}"];
        refuses(&lines, "1 operators have no kernel: 1 x Gelu (the approximation cubic)");
    }

    fn scratch(lines: &[&str], config: &ResolveConfig) -> Size {
        resolve_with(lines, "", config).unwrap().graph.ops().as_slice()[0].scratch
    }
}
