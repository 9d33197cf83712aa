//! Dimensions that are broadcast to each other.
//!
//! ~~~text
//! n, 1             ──>  n
//! n, m             ──>  broadcast(n, m)      equal, or one of them is 1
//! n, min(n, 512)   ──>  n                    a limit that cuts would not fit
//! ~~~

use super::{Atom, Expr};

impl Expr {
    /// The dimension of two that are broadcast to each other: equal, or one of them 1.
    pub fn broadcast(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            // A number other than 1 is the result, whatever the other one is.
            (Self::Known(1), _) => Some(other.clone()),
            (Self::Known(_), _) | (_, Self::Known(1)) => Some(self.clone()),
            (_, Self::Known(_)) => Some(other.clone()),
            _ if self == other || self.absorbs(other) => Some(self.clone()),
            _ if other.absorbs(self) => Some(other.clone()),
            _ => Self::pair(Atom::Broadcast, self.min_by_form(other), self.max_by_form(other)),
        }
    }

    /// Whether `other`, broadcast to this, adds nothing: it is a part of it, or this with a limit.
    fn absorbs(&self, other: &Self) -> bool {
        let is_part = |of: &Self, part: &Self| match of.only_atom() {
            Some(Atom::Broadcast(a, b)) => a == part || b == part,
            _ => false,
        };
        is_part(self, other)
            || self.is_clipped_to(other)
            || match other.only_atom() {
                Some(Atom::Min(a, b)) => {
                    let limit = if a == self { b } else { a };
                    (a == self || b == self) && limit.is_at_least(&Self::ONE)
                }
                _ => false,
            }
    }

    /// Whether `other` is `min(a, limit) - min(b, limit)` where `a - b` is this: a slice of so many rows, which
    /// may end early. (A slice behind the end has none; a model that broadcasts that to 1 is not thought of.)
    fn is_clipped_to(&self, other: &Self) -> bool {
        let terms = match other.only_atom() {
            Some(Atom::Max(Self::Known(0), length)) => length.terms(),
            _ => other.terms(),
        };
        let mut ends: Vec<(i64, &Self, &Self)> = Vec::new();
        for (product, &factor) in &terms {
            match product.as_slice() {
                [Atom::Min(a, b)] if matches!(factor, 1 | -1) => ends.push((factor, a, b)),
                _ => return false,
            }
        }
        ends.sort_by_key(|end| -end.0);
        let &[(1, a, b), (-1, c, d)] = ends.as_slice() else { return false };
        let pairs = [(a, b, c, d), (a, b, d, c), (b, a, c, d), (b, a, d, c)];
        let is_this = |a: &Self, b: &Self| a.sub(b).as_ref() == Some(self);
        pairs.into_iter().any(|(end, limit, start, same)| limit == same && is_this(end, start))
    }

    fn only_atom(&self) -> Option<&Atom> {
        let Self::Open(sum) = self else { return None };
        let mut terms = sum.terms.iter();
        match (terms.next(), terms.next()) {
            (Some((product, 1)), None) if product.len() == 1 => product.first(),
            _ => None,
        }
    }
}
