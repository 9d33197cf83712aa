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

#[cfg(test)]
mod tests {
    use crate::testing::infers;

    #[test]
    fn a_loss_is_one_number_unless_it_is_not_folded() {
        infers(
            &["input x n 5 d", "input t i64 n d", "y = NegativeLogLikelihoodLoss(x, t)"],
            "f32 []",
        );
        infers(
            &[
                "input x n 5 d",
                "input t i64 n d",
                "y; l = SoftmaxCrossEntropyLoss(x, t) {reduction=none}",
            ],
            "f32 [n, d]; f32 [n, 5, d]",
        );
    }
}
