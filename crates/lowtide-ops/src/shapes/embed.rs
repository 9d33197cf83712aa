//! Rules of embeddings with what follows them fused.
//!
//! ~~~text
//! ids [b, s]   words [vocabulary, 768]   ──>  [b, s, 768], lengths [b], the sum before it was normalised
//! ~~~

use super::whole;
use crate::call::{Call, Facts};
use crate::fact::{Extent, Fact};
use lowtide_core::DType;

fn outputs(call: &Call<'_>, dtype: Option<DType>) -> Facts {
    let (batch, len) = (call.dim(0, 0), call.dim(0, 1));
    let y = Fact::new(dtype, Some(vec![batch.clone(), len, call.dim(2, 1)]));
    let lengths = Fact::new(Some(DType::I32), Some(vec![batch]));
    Ok(vec![y.clone(), lengths, y].into_iter().take(call.output_count()).collect())
}

/// `EmbedLayerNormalization`: the type is that of the table of words.
pub(crate) fn embed(call: &Call<'_>) -> Facts {
    outputs(call, call.dtype(2))
}

/// `QEmbedLayerNormalization`: tables of integers make numbers.
pub(crate) fn quantised(call: &Call<'_>) -> Facts {
    outputs(call, Some(DType::F32))
}

/// `RestorePadding`: rows back into the places that the offsets give.
pub(crate) fn restore_padding(call: &Call<'_>) -> Facts {
    let dims = vec![call.dim(1, 0), call.dim(1, 1), call.dim(0, 1)];
    Ok(vec![call.typed(0, Some(dims))])
}

/// `RemovePadding`: as many rows as there are tokens.
pub(crate) fn remove_padding(call: &Call<'_>) -> Facts {
    let int = |dims: Vec<Extent>| Fact::new(Some(DType::I32), Some(dims));
    let offsets = int(vec![call.dim(0, 0), call.dim(0, 1)]);
    let ends = int(vec![call.dim(0, 0).and_then(|batch| batch.add(&crate::expr::Expr::ONE))]);
    Ok(vec![call.typed(0, Some(vec![None, call.dim(0, 2)])), offsets, ends, int(vec![whole(1)])])
}

#[cfg(test)]
mod tests {
    use crate::testing::infers;

    #[test]
    fn ids_become_rows() {
        infers(
            &[
                "input i i32 n s",
                "input g i32 n s",
                "weight w 100 8",
                "y; m = com.microsoft.EmbedLayerNormalization(i, g, w)",
            ],
            "f32 [n, s, 8]; i32 [n]",
        );
        infers(
            &["input x 9 8", "input o i32 2 6", "y = com.microsoft.RestorePadding(x, o)"],
            "f32 [2, 6, 8]",
        );
    }
}
