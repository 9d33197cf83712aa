//! Rules of losses.
//!
//! ~~~text
//! scores [n, c, d]   labels [n, d]   ──reduction none──>  [n, d]      ──mean, sum──>  []
//! ~~~

use crate::call::{Call, Facts};
use crate::fact::Fact;

/// The loss itself.
fn loss(call: &Call<'_>) -> Fact {
    let is_folded = call.text("reduction") != Some("none");
    call.typed(0, if is_folded { Some(Vec::new()) } else { call.input(1).dims.clone() })
}

/// `NegativeLogLikelihoodLoss`.
pub(crate) fn likelihood(call: &Call<'_>) -> Facts {
    Ok(vec![loss(call)])
}

/// `SoftmaxCrossEntropyLoss`: also the logarithms of the probabilities.
pub(crate) fn cross_entropy(call: &Call<'_>) -> Facts {
    Ok(vec![loss(call), call.typed(0, call.input(0).dims.clone())])
}
