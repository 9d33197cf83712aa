//! Rules of operators on text.
//!
//! ~~~text
//! words [n]   separators   ──StringSplit──>  parts [n, ?], how many of each [n]
//! ~~~

use super::elementwise::broadcast_all;
use super::number;
use crate::call::{Call, Facts, Misfit};
use crate::expr::Expr;
use crate::fact::Fact;
use lowtide_core::{DType, Value};

pub(crate) fn concat(call: &Call<'_>) -> Facts {
    Ok(vec![Fact::new(Some(DType::String), broadcast_all(call)?)])
}

/// `StringNormalizer`: without words to leave out, as many as there were.
pub(crate) fn normalise(call: &Call<'_>) -> Facts {
    let leaves_out =
        matches!(call.op.attribute("stopwords"), Some(Value::Texts(list)) if !list.is_empty());
    let dims = call.input(0).dims.clone().map(|mut dims| {
        if let Some(last) = dims.last_mut().filter(|_| leaves_out) {
            *last = None;
        }
        dims
    });
    Ok(vec![Fact::new(Some(DType::String), dims)])
}

pub(crate) fn split(call: &Call<'_>) -> Facts {
    let counts = Fact::new(Some(DType::I64), call.input(0).dims.clone());
    let parts = call.dims(0).map(|dims| [dims, &[None]].concat());
    Ok(vec![Fact::new(Some(DType::String), parts), counts])
}

pub(crate) fn matches(call: &Call<'_>) -> Facts {
    Ok(vec![Fact::new(Some(DType::Bool), call.input(0).dims.clone())])
}

/// `TfIdfVectorizer`: a place for the greatest of the indices, and those below.
pub(crate) fn tf_idf(call: &Call<'_>) -> Facts {
    let most = call.ints("ngram_indexes").and_then(|list| list.iter().copied().max());
    let len = most.and_then(|most| most.checked_add(1)).map(Expr::Known);
    if len.as_ref().and_then(Expr::known).is_some_and(|len| len < 1) {
        return Err(Misfit(format!(
            "ngram_indexes go up to {}, wanted 0 or more",
            number(&len).unwrap_or(0) - 1
        )));
    }
    let dims = call.dims(0).map(|dims| match dims {
        [] | [_] => vec![len],
        [rows, ..] => vec![rows.clone(), len],
    });
    Ok(vec![Fact::new(Some(DType::F32), dims)])
}

/// `MurmurHash3`.
pub(crate) fn hash(call: &Call<'_>) -> Facts {
    let dtype = if call.int_or("positive", 1) == 0 { DType::I32 } else { DType::U32 };
    Ok(vec![Fact::new(Some(dtype), call.input(0).dims.clone())])
}

#[cfg(test)]
mod tests {
    use crate::testing::infers;

    #[test]
    fn text_stays_text() {
        infers(
            &["input a string n 1", "input b string 3", "y = StringConcat(a, b)"],
            "string [n, 3]",
        );
        infers(&["input a string n", "p; c = StringSplit(a)"], "string [n, ?]; i64 [n]");
        infers(&["input a string n", "y = RegexFullMatch(a)"], "bool [n]");
        infers(
            &["input a i32 n 9", "y = TfIdfVectorizer(a) {ngram_indexes=[0, 4, 2]}"],
            "f32 [n, 5]",
        );
    }
}
