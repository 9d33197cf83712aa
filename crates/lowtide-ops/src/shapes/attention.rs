//! Rules of attention.
//!
//! ~~~text
//! query [b, s, heads * d]   key, value [b, t, heads * d]   past [b, heads, p, d]
//!   ──Attention──>  [b, s, heads * d],  present key and value [b, heads, p + t, d]
//! ~~~
//! The standard operator takes heads as an axis or folded into the last one; those of ONNX Runtime fold them.

use super::{add, mul, whole};
use crate::call::{Call, Facts};
use crate::expr::Expr;
use crate::fact::{Extent, Fact};

fn attribute(call: &Call<'_>, name: &str) -> Extent {
    call.int(name).filter(|&value| value > 0).map(Expr::Known)
}

fn quotient(a: &Extent, b: &Extent) -> Extent {
    a.as_ref()?.div_exactly(b.as_ref()?)
}

/// Heads, length and size of a head of input `at`; the heads of a folded one are an attribute.
pub(crate) fn heads(call: &Call<'_>, at: usize, name: &str) -> [Extent; 3] {
    match call.dims(at) {
        Some([_, heads, len, size]) => [heads.clone(), len.clone(), size.clone()],
        Some([_, len, folded]) => {
            let heads = attribute(call, name);
            [heads.clone(), len.clone(), quotient(folded, &heads)]
        }
        _ => [None, None, None],
    }
}

/// `Attention` of the standard domain.
pub(crate) fn standard(call: &Call<'_>) -> Facts {
    let [q_heads, q_len, _] = heads(call, 0, "q_num_heads");
    let [k_heads, k_len, k_size] = heads(call, 1, "kv_num_heads");
    let [v_heads, _, v_size] = heads(call, 2, "kv_num_heads");
    let batch = call.dim(0, 0);
    let total = if call.has(4) { add(&call.dim(4, 2), &k_len) } else { k_len };
    let y = match call.rank(0) {
        Some(3) => Some(vec![batch.clone(), q_len.clone(), mul(&q_heads, &v_size)]),
        Some(4) => Some(vec![batch.clone(), q_heads.clone(), q_len.clone(), v_size.clone()]),
        _ => None,
    };
    let key = vec![batch.clone(), k_heads, total.clone(), k_size];
    let value = vec![batch.clone(), v_heads, total.clone(), v_size];
    let product = vec![batch, q_heads, q_len, total];
    let facts = [
        call.typed(0, y),
        call.typed(1, Some(key)),
        call.typed(2, Some(value)),
        call.typed(0, Some(product)),
    ];
    Ok(facts.into_iter().take(call.output_count()).collect())
}

/// `Attention` of ONNX Runtime: one weight for query, key and value; past and present hold key and value.
pub(crate) fn packed(call: &Call<'_>) -> Facts {
    packed_of(call, 4)
}

/// `QAttention`: the same between integers, with scales and zero points in between.
pub(crate) fn quantised(call: &Call<'_>) -> Facts {
    let mut facts = packed_of(call, 8)?;
    for fact in &mut facts {
        fact.dtype = call.dtype(3);
    }
    Ok(facts)
}

fn packed_of(call: &Call<'_>, past: usize) -> Facts {
    let hidden = match call.ints("qkv_hidden_sizes") {
        Some(&[_, _, value]) => whole(value),
        _ => quotient(&call.dim(1, 1), &whole(3)),
    };
    let heads = attribute(call, "num_heads");
    let (batch, len) = (call.dim(0, 0), call.dim(0, 1));
    let total = if call.has(past) { add(&call.dim(past, 3), &len) } else { len.clone() };
    let size = quotient(&hidden, &heads);
    let y = call.typed(0, Some(vec![batch.clone(), len, hidden]));
    let present = call.typed(0, Some(vec![whole(2), batch, heads, total, size]));
    Ok(vec![y, present].into_iter().take(call.output_count()).collect())
}

/// `MultiHeadAttention`: separate inputs; past key and value at 6 and 7.
pub(crate) fn multi_head(call: &Call<'_>) -> Facts {
    let heads = attribute(call, "num_heads");
    let (batch, len) = (call.dim(0, 0), call.dim(0, 1));
    let (hidden, keys) = match call.dims(2) {
        Some([_, len, hidden]) => (hidden.clone(), len.clone()),
        Some([_, heads, len, size]) => (mul(heads, size), len.clone()),
        _ if call.has(1) || call.rank(0) != Some(3) => (None, None),
        _ => (call.dim(0, 2), len.clone()),
    };
    let total = if call.has(6) { add(&call.dim(6, 2), &keys) } else { keys };
    let size = quotient(&hidden, &heads);
    let present = call.typed(0, Some(vec![batch.clone(), heads, total, size]));
    let y = call.typed(0, Some(vec![batch, len, hidden]));
    Ok(vec![y, present.clone(), present].into_iter().take(call.output_count().min(3)).collect())
}

/// `DecoderMaskedMultiHeadAttention`: one step; how long its caches are is for the caller to say.
pub(crate) fn like_query(call: &Call<'_>) -> Facts {
    let y =
        if call.has(1) { call.typed(0, call.input(0).dims.clone()) } else { call.typed(0, None) };
    Ok(vec![y])
}

/// `GroupQueryAttention`: fewer heads of keys than of queries; the caches may be longer than what is in them.
pub(crate) fn grouped(call: &Call<'_>) -> Facts {
    let (q, kv) = (attribute(call, "num_heads"), attribute(call, "kv_num_heads"));
    let folded = call.dim(0, 2);
    let all = add(&q, &mul(&kv, &whole(2)));
    let size = if call.has(1) { quotient(&folded, &q) } else { quotient(&folded, &all) };
    let hidden = if call.has(1) { folded } else { mul(&q, &size) };
    let y = call.typed(0, Some(vec![call.dim(0, 0), call.dim(0, 1), hidden]));
    let present =
        Fact::new(call.dtype(3).or(call.dtype(0)), Some(vec![call.dim(0, 0), kv, None, size]));
    Ok(vec![y, present.clone(), present].into_iter().take(call.output_count().min(3)).collect())
}

/// `RelativePositionBias`: a table [buckets, heads], and the lengths of query and key.
pub(crate) fn position_bias(call: &Call<'_>) -> Facts {
    let dims = vec![whole(1), call.dim(0, 1), call.scalar_int(1), call.scalar_int(2)];
    Ok(vec![call.typed(0, Some(dims))])
}

/// `GatedRelativePositionBias`: a bias for each pair of positions.
pub(crate) fn gated_bias(call: &Call<'_>) -> Facts {
    let len = call.dim(0, 1);
    let dims = vec![call.dim(0, 0), attribute(call, "num_heads"), len.clone(), len];
    Ok(vec![call.typed(0, Some(dims))])
}

#[cfg(test)]
mod tests {
    use crate::testing::infers;

    #[test]
    fn heads_are_folded_or_an_axis() {
        infers(
            &[
                "input q n s 12",
                "input k n t 12",
                "input v n t 24",
                "y = Attention(q, k, v) {q_num_heads=3, kv_num_heads=3}",
            ],
            "f32 [n, s, 24]",
        );
        infers(
            &["input q n 3 s 4", "input k n 3 t 4", "input v n 3 t 8", "y = Attention(q, k, v)"],
            "f32 [n, 3, s, 8]",
        );
    }

    #[test]
    fn the_present_is_the_past_and_what_is_new() {
        infers(
            &[
                "input q n 3 s 4",
                "input k n 3 t 4",
                "input p n 3 u 4",
                "y; a; b; c = Attention(q, k, k, _, p, p)",
            ],
            "f32 [n, 3, s, 4]; f32 [n, 3, t + u, 4]; f32 [n, 3, t + u, 4]; f32 [n, 3, s, t + u]",
        );
        infers(
            &[
                "input x n s 8",
                "weight w 8 24",
                "weight b 24",
                "input p 2 n 2 u 4",
                "y; a = com.microsoft.Attention(x, w, b, _, p) {num_heads=2}",
            ],
            "f32 [n, s, 8]; f32 [2, n, 2, s + u, 4]",
        );
        infers(
            &[
                "input q n s 8",
                "input k n t 8",
                "y = com.microsoft.MultiHeadAttention(q, k, k) {num_heads=2}",
            ],
            "f32 [n, s, 8]",
        );
    }

    #[test]
    fn a_bias_is_between_positions() {
        infers(
            &[
                "weight t 32 8",
                "weight q i64 1 = 5",
                "weight k i64 1 = 6",
                "y = com.microsoft.RelativePositionBias(t, q, k)",
            ],
            "f32 [1, 8, 5, 6]",
        );
    }
}
