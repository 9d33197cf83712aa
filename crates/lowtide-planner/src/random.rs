//! Numbers that look random and are the same on every machine. Marsaglia, "Xorshift RNGs" (2003).

/// The next number; `state` must not be 0, and stays so.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// A number below another one.
pub(crate) fn below(limit: u64, state: &mut u64) -> u64 {
    next(state) % limit
}

/// An index into something of that length.
pub(crate) fn index(len: usize, state: &mut u64) -> usize {
    usize::try_from(below(len as u64, state)).expect("below a length")
}
