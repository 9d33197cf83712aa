//! Rules of quantisation: the shape stays, the type changes.
//!
//! ~~~text
//! x float32 [n, 4] ──QuantizeLinear──>  uint8 [n, 4], or the type of the zero point, or of an attribute
//! ~~~

use crate::call::{Call, Facts, dtype_of_number};
use crate::fact::Fact;
use lowtide_core::DType;

fn named(call: &Call<'_>, name: &str) -> Option<DType> {
    call.int(name).filter(|&number| number != 0).and_then(dtype_of_number)
}

pub(crate) fn quantize(call: &Call<'_>) -> Facts {
    let by_default = if call.has(2) { call.dtype(2) } else { Some(DType::U8) };
    let dtype = named(call, "output_dtype").or(by_default);
    Ok(vec![Fact::new(dtype, call.input(0).dims.clone())])
}

pub(crate) fn dequantize(call: &Call<'_>) -> Facts {
    let dtype = named(call, "output_dtype").or_else(|| call.dtype(1));
    Ok(vec![Fact::new(dtype, call.input(0).dims.clone())])
}

/// `DynamicQuantizeLinear`: also scale and zero point.
pub(crate) fn dynamic(call: &Call<'_>) -> Facts {
    let first = Fact::new(Some(DType::U8), call.input(0).dims.clone());
    Ok(vec![first, Fact::of_dims(DType::F32, &[]), Fact::of_dims(DType::U8, &[])])
}

/// `QuantizeWithOrder`.
pub(crate) fn to_int8(call: &Call<'_>) -> Facts {
    Ok(vec![Fact::new(Some(DType::I8), call.input(0).dims.clone())])
}

/// `DequantizeWithOrder`, `BitCast`: the type is an attribute.
pub(crate) fn to_named(call: &Call<'_>) -> Facts {
    Ok(vec![Fact::new(named(call, "to"), call.input(0).dims.clone())])
}

#[cfg(test)]
mod tests {
    use crate::testing::infers;

    #[test]
    fn the_type_follows_zero_point_and_attribute() {
        infers(&["input x n 4", "weight s", "y = QuantizeLinear(x, s)"], "u8 [n, 4]");
        infers(
            &["input x n 4", "weight s", "weight z i8", "y = QuantizeLinear(x, s, z)"],
            "i8 [n, 4]",
        );
        infers(
            &["input x n 4", "weight s", "y = QuantizeLinear(x, s) {output_dtype=22}"],
            "i4 [n, 4]",
        );
        infers(&["input x u8 n 4", "weight s f16", "y = DequantizeLinear(x, s)"], "f16 [n, 4]");
    }

    #[test]
    fn scale_and_zero_point_may_be_calculated() {
        infers(&["input x n 4", "y; s; z = DynamicQuantizeLinear(x)"], "u8 [n, 4]; f32 []; u8 []");
    }
}
