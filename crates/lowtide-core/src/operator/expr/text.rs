//! Expressions as people write them: products with names first, the number last.

use super::{Atom, Expr};
use std::fmt;

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Open(sum) = self else { return write!(f, "{}", self.known().unwrap_or(0)) };
        // Products with atoms first, the number last, as people write it.
        let (numbers, products): (Vec<_>, Vec<_>) =
            sum.terms.iter().partition(|row| row.0.is_empty());
        for (index, (product, factor)) in products.into_iter().chain(numbers).enumerate() {
            let sign = match (index, *factor < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            };
            f.write_str(sign)?;
            let size = factor.unsigned_abs();
            let mut words: Vec<String> = product.iter().map(Atom::to_string).collect();
            if size != 1 || words.is_empty() {
                words.insert(0, size.to_string());
            }
            f.write_str(&words.join("*"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Quotient(a, b) => write!(f, "floor({}/{})", part(a), part(b)),
            Self::Remainder(a, b) => write!(f, "mod({a}, {b})"),
            Self::Max(a, b) => write!(f, "max({a}, {b})"),
            Self::Min(a, b) => write!(f, "min({a}, {b})"),
            Self::Broadcast(a, b) => write!(f, "broadcast({a}, {b})"),
        }
    }
}

/// An operand of a quotient: in parentheses unless it is one word.
fn part(expr: &Expr) -> String {
    let text = expr.to_string();
    let is_word = text.chars().all(|c| c.is_alphanumeric() || c == '_');
    if is_word { text } else { format!("({text})") }
}
