//! [`vectorised`]: a loop in, the same loop compiled for the widest vectors of this machine.
//!
//! ~~~text
//! loop ──compiled thrice──> baseline | AVX2 | AVX-512      which one is chosen when it is called
//! ~~~
//! Only what is inlined into the loop is compiled with it, so what it calls is `#[inline(always)]`. No multiplication is
//! fused with an addition here: results do not depend on the machine.

#![expect(clippy::inline_always, reason = "or else the loop would not be compiled with its caller")]

use rten_simd::{Isa, SimdOp};

struct Loop<F>(F);

impl<R, F: FnOnce() -> R> SimdOp for Loop<F> {
    type Output = R;

    #[inline(always)]
    fn eval<I: Isa>(self, _: I) -> R {
        (self.0)()
    }
}

/// Runs `work`, which has to be marked `#[inline(always)]`.
#[inline]
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    Loop(work).dispatch()
}
