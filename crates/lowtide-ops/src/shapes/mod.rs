//! Shape rules, by family. What each may use is in [`call`](crate::call).

#![expect(clippy::unnecessary_wraps, reason = "all rules have one signature")]

pub(crate) mod elementwise;
pub(crate) mod layout;

use crate::call::{Call, Facts};
use crate::fact::Fact;

/// The output is like input 0: type and shape.
pub(crate) fn like_first(call: &Call<'_>) -> Facts {
    let Fact { dtype, dims, .. } = call.input(0).clone();
    Ok(vec![Fact::new(dtype, dims)])
}
